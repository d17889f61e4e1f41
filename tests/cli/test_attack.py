"""`warpkit attack` on the shipped classifier: its accuracy, the figure, and errors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from PIL import Image

from tests.support import ROOT
from tests.support.tolerances import TOLERANCE
from warpkit.cli.app import main
from warpkit.cli.attack import models
from warpkit.cli.attack.models import Subject, attack_model
from warpkit.cli.attack.programs import read_pipeline
from warpkit.cli.attack.small_classifier import FILE, PIPELINE, read_small_classifier
from warpkit.cli.demo.run import photograph

PHOTOGRAPHS = sorted((ROOT / "data" / "images").glob("*.png"))


@pytest.fixture(scope="module")
def subject() -> Subject:
    model, labels = read_small_classifier()
    return Subject(model, read_pipeline(PIPELINE), labels)


def test_the_shipped_classifier_recognises_every_photograph(subject: Subject):
    assert subject.labels == [path.stem for path in PHOTOGRAPHS]
    assert FILE.stat().st_size < 60_000
    for path in PHOTOGRAPHS:
        answer = subject.answer(photograph(path, 2**31, 1))
        assert answer.name == path.stem
        assert answer.probability > 0.5


def test_the_classifier_is_fooled_under_transformations(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(models, "UNSEEN", 20)
    image = photograph(ROOT / "data" / "images" / "rocket.png", 192, 1)
    done = attack_model(image, subject, None, 16 / 255, 20)
    clean, still, found = done.rates.values()
    assert clean < 0.2
    assert found > still + 0.1
    assert found > 0.8
    assert [answer.name == "rocket" for answer in done.answers.values()] == [True, False, False]
    assert (done.after - done.before).abs().max() <= 16 / 255 + 1e-6
    levels = done.after * 255
    torch.testing.assert_close(levels, levels.round(), rtol=0, atol=TOLERANCE["levels"])
    assert len(done.history) == 20


def test_the_command_writes_its_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(models, "UNSEEN", 2)
    out = tmp_path / "out.png"
    assert main(["attack", "--out", str(out), "--steps", "2", "--target", "text"]) == 0
    with Image.open(out) as figure:
        assert (figure.format, figure.width) == ("PNG", 1200)
    captured = capsys.readouterr()
    assert re.search(r"the photograph +coffee \(\d\d\.\d%\) +\d", captured.out)
    assert re.search(r"perturbed as it stands +\w+ \(", captured.out)
    assert re.search(r"perturbed under transformations +\w+ \(\d\d\.\d%\) +\d", captured.out)
    assert f"wrote {out}" in captured.out
    assert "2/2" in captured.err


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        ("attack missing.png", 1, "warpkit: missing.png: No such file or directory"),
        ("attack --out a.jpg", 1, "warpkit: a.jpg: the figure is a PNG: its name must end in .png"),
        ("attack --epsilon 0", 2, "warpkit: Invalid value for '--epsilon': "),
        ("attack --target cat", 2, "warpkit: --target takes one of 5 labels, or a number below 5"),
        ("attack --target coffee", 2, "warpkit: --target coffee is what the model says already"),
        ("attack --pipeline blur:3", 2, "warpkit: --pipeline has no step 'blur:3'"),
    ],
)
def test_errors_are_one_line(
    words: str,
    status: int,
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == status
    captured = capsys.readouterr()
    assert captured.err.startswith(text)
    assert captured.out == ""


@pytest.mark.parametrize(
    "line",
    ["attack photo.png --out photo.png", "attack photo.png --out a.png --image-out a.png"],
)
def test_no_input_is_overwritten(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("photo.png").write_bytes(PHOTOGRAPHS[0].read_bytes())
    before = Path("photo.png").read_bytes()
    assert main(line.split()) == 2
    assert "give another name" in capsys.readouterr().err
    assert Path("photo.png").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["photo.png"]
