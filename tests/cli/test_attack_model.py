"""`warpkit attack --model`: a user's model, its labels, its pipeline, and errors."""

from __future__ import annotations

import io
import os
import pickle
import re
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from tests.support.inputs import noise
from warpkit.attacks import Photometric
from warpkit.cli.app import main
from warpkit.cli.attack.models import SAMPLES, read_model
from warpkit.cli.attack.programs import IMAGENET, read_pipeline
from warpkit.cli.errors import CommandError

NAMES = ("cat", "dog", "cup")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A photograph, a model of its colours in three formats, and its labels."""
    path = tmp_path_factory.mktemp("models")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 3)).eval()
    with torch.no_grad():
        model[2].weight.copy_(torch.eye(3) * 4)
        model[2].bias.copy_(torch.tensor([0.1, 0.0, 0.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch deprecates one of the formats
        torch.jit.save(torch.jit.trace(model, torch.zeros(2, 3, 16, 16)), str(path / "model.pt"))
    torch.export.save(torch.export.export(model, (torch.zeros(1, 3, 16, 16),)), path / "model.pt2")
    torch.save(model.state_dict(), path / "weights.pt")
    (path / "broken.pt").write_bytes(b"PK\x03\x04 and no more")
    (path / "labels.txt").write_text("\n".join(NAMES) + "\n")
    reddish = noise(40, 48, 3, seed=1).numpy() * [0.9, 0.85, 0.85] + [0.05, 0, 0]
    pixels = (reddish * 255).astype(np.uint8)
    Image.fromarray(pixels).save(path / "photo.png")
    return path


def test_files_of_random_qualities_are_part_of_the_transformations(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("warpkit.cli.attack.models.UNSEEN", 5)
    seen: list[float] = []
    apply = Photometric.apply

    def watched(self: Photometric, views: Tensor, draws: Tensor) -> Tensor:
        seen.extend(draws[:, 4].tolist())
        return apply(self, views, draws)

    monkeypatch.setattr(Photometric, "apply", watched)
    words = "attack photo.png --model model.pt --pipeline resize:16:pillow --steps 2 --jpeg 30 40 "
    assert main([*words.split(), "--out", "jpeg.png"]) == 0
    assert "wrote jpeg.png" in capsys.readouterr().out
    assert len(seen) == 3 * 5 + 2 * SAMPLES  # three pictures in unseen views, and two steps
    assert 30 <= min(seen) < max(seen) <= 40
    for range_of in ("0 50", "60 50", "50 101"):
        assert main([*words.split()[:-2], *range_of.split()]) != 0
        assert "--jpeg takes two qualities" in capsys.readouterr().err


@pytest.mark.parametrize("model", ["model.pt", "model.pt2"])
def test_a_users_model_is_fooled(
    model: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("warpkit.cli.attack.models.UNSEEN", 5)
    words = f"attack photo.png --model {model} --labels labels.txt --pipeline "
    words += "resize:16:pillow,jpeg:90,normalize:0.5:0.25 --epsilon 16 --steps 8 --out out.png "
    words += "--image-out found.png"
    target = " --target dog" if model == "model.pt" else ""
    assert main((words + target).split()) == 0
    said = capsys.readouterr().out
    other = "dog" if target else "(dog|cup)"
    assert re.search(rf"perturbed as it stands +{other} ", said)
    assert re.search(r"the photograph +cat \(\d\d\.\d%\) +\d", said)
    assert re.search(rf"transformations +{other} \(\d\d\.\d%\) +100\.0%", said)
    assert "wrote out.png and found.png" in said
    found, given = (np.asarray(Image.open(name)).astype(int) for name in ("found.png", "photo.png"))
    assert 0 < np.abs(found - given).max() <= 16
    # read by Pillow and not by warpkit, the file still fools the model
    pipeline = read_pipeline("resize:16:pillow,jpeg:90,normalize:0.5:0.25")
    levels = torch.from_numpy(found.astype(np.uint8)).permute(2, 0, 1)[None]
    assert read_model(folder / "model.pt")(pipeline(levels)).argmax().item() in (1, 2)


def test_a_pipeline_is_made_from_its_options():
    images = noise(1, 3, 40, 48, dtype=torch.float32, seed=2)
    levels = (images * 255).round().byte()
    got = read_pipeline("resize:24x30:pillow:bicubic, crop:20x16, bgr, normalize")(images)
    array = levels[0].permute(1, 2, 0).numpy()
    small = Image.fromarray(array).resize((30, 24), Image.Resampling.BICUBIC)
    rows = np.asarray(small)[2:22, 7:23, ::-1].astype(np.float32) / 255
    mean, std = (np.float32(values) for values in IMAGENET)
    assert np.array_equal(got[0].permute(1, 2, 0).numpy(), (rows - mean) / std)
    assert torch.equal(read_pipeline(None)(images) * 255, levels.float())
    scaled = read_pipeline("normalize:0.1:0.2:0.3:1:1:1,round,scale:255")(images)
    lower = (images * 255).round() / 255 - torch.tensor([0.1, 0.2, 0.3])[:, None, None]
    assert torch.equal(scaled, (lower.clamp(0, 1) * 255).round() / 255 * 255)


@pytest.mark.parametrize(
    "text",
    ["blur:3", "resize", "resize:0", "resize:8:pilow", "jpeg:101", "jpeg:a", "normalize:1:0", ""],
)
def test_an_invalid_pipeline_is_one_line(text: str):
    with pytest.raises(CommandError, match=r"^--pipeline(:| has no step) '") as caught:
        read_pipeline(f"bgr,{text}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        ("--model none.pt", 1, "none.pt: No such file"),
        ("--model .", 1, ".: a folder"),
        ("--model weights.pt", 1, "weights.pt: not a model that torch.jit.save or torch.export"),
        ("--model broken.pt", 1, "broken.pt: not a model that torch.jit.save or torch.export"),
        ("--model labels.txt", 1, "labels.txt: not a model that torch.jit.save or torch.export"),
        ("--labels labels.txt", 2, "--labels is of a model of yours: give --model too"),
        ("--model model.pt --labels none.txt", 1, "none.txt: No such file or directory"),
        (
            "--model model.pt --labels short.txt",
            2,
            "--labels must have a line for each class, it has 2 names for 3 classes",
        ),
        ("--model model.pt --target 3", 2, "--target takes a number below 3, got '3'"),
        ("--model model.pt --target 0", 2, "--target 0 is what the model says already"),
        ("--model model.pt --pipeline crop:99", 2, "--pipeline: crop:99x99 is larger than images"),
        ("--model model.pt2", 2, "--model cannot take what --pipeline makes, 1x3x40x48: "),
        ("--image-out out.jpg", 1, "out.jpg: the perturbed photograph is a PNG"),
    ],
)
def test_errors_are_one_line(
    words: str,
    status: int,
    text: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(folder)
    (folder / "short.txt").write_text("cat\ndog\n")
    assert main(["attack", "photo.png", *words.split(), "--steps", "1"]) == status
    captured = capsys.readouterr()
    assert captured.err.startswith(f"warpkit: {text}")
    assert captured.err.count("\n") == 1


class Trap:
    """Unpickling it creates a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (str(self.path),))


def trapped(folder: Path, target: Path, members: tuple[str, ...], name: str = "{}") -> Path:
    """The exported model with a trap in its `members`; if it has none, the first is added."""
    data = io.BytesIO()
    torch.save(((Trap(target),), {}), data)
    path = target.with_name("model.pt2")
    with zipfile.ZipFile(folder / "model.pt2") as whole, zipfile.ZipFile(path, "w") as changed:
        replaced = [each for each in whole.namelist() if any(part in each for part in members)]
        for info in whole.infolist():
            if info.filename not in replaced:
                changed.writestr(info, whole.read(info))
        for each in replaced or [f"model/{members[0]}"]:
            changed.writestr(name.format(each), data.getvalue())
    return path


def test_unpickling_a_trap_creates_its_folder(tmp_path: Path):
    pickle.loads(pickle.dumps(Trap(tmp_path / "sprung")))
    assert (tmp_path / "sprung").exists()


@pytest.mark.parametrize("name", ["{}", "model/data/Sample_Inputs/Model.pt"])
def test_sample_inputs_are_never_unpickled(name: str, folder: Path, tmp_path: Path):
    sprung = tmp_path / "sprung"
    path = trapped(folder, sprung, ("sample_inputs", "serialized_example_inputs"), name)
    images = noise(1, 3, 16, 16, dtype=torch.float32, seed=3)
    assert torch.equal(read_model(path)(images), read_model(folder / "model.pt2")(images))
    assert not sprung.exists()


@pytest.mark.parametrize(
    "members",
    [
        ("data/weights/model.pt", "serialized_state_dict"),
        ("data/constants/model.pt", "serialized_constants"),
    ],
)
def test_weights_are_tensors_or_refused(
    members: tuple[str, str], folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    """In the place where old versions of torch kept them, which new ones still read."""
    sprung = tmp_path / "sprung"
    path = trapped(folder, sprung, members)
    assert main(["attack", "--model", str(path), "--steps", "1"]) == 1
    said = capfd.readouterr().err
    assert said.startswith(f"warpkit: {path}: not a model that torch.jit.save or torch.export")
    assert said.endswith(": it has weights or constants that are no tensors\n")
    assert said.count("\n") == 1
    assert not sprung.exists()


def test_reading_a_model_leaves_torchs_setting_unchanged(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", raising=False)
    read_model(folder / "model.pt2")
    assert "TORCH_FORCE_WEIGHTS_ONLY_LOAD" not in os.environ
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0")
    read_model(folder / "model.pt2")
    assert os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] == "0"
