"""`warpkit align`: input files, output files, and the exit status."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import warpkit as wk
from tests.support.scenes import Scene, corner_error
from tests.support.tolerances import TOLERANCE
from warpkit.cli.app import main

SIZE = (40, 52)
TRUE = wk.affine_matrix(angle=100.0, scale=0.9, center=wk.image_center(SIZE)).double()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with moving.png in colour and fixed.png in grey."""
    monkeypatch.chdir(tmp_path)
    scene = Scene(4)
    eye = torch.eye(2, 3, dtype=torch.float64)
    for name, matrix in (("moving", eye), ("fixed", TRUE)):
        grey = (scene.seen(matrix, SIZE)[0] * 255).clamp(0, 255).numpy().astype(np.uint8)
        image = Image.fromarray(grey)
        (image.convert("RGB") if name == "moving" else image).save(f"{name}.png")
    return tmp_path


def test_it_aligns_and_writes_the_requested_files(folder, capsys):
    words = "align moving.png fixed.png out.png --model similarity --init search"
    words += " --matrix-out matrix.txt --overlay overlay.png"
    assert main(words.split()) == 0
    said = capsys.readouterr()
    assert said.out.startswith(("correlation 0.99", "correlation 1.00"))
    text = (folder / "matrix.txt").read_text()
    assert said.out.endswith(text)
    matrix = torch.tensor([[float(v) for v in row.split()] for row in text.splitlines()])
    assert corner_error(matrix.double(), TRUE, SIZE) < TOLERANCE["align pixels"]
    # the file equals the result of `warpkit warp` with this matrix
    again = f"warp moving.png again.png --matrix {text} --size {SIZE[0]} {SIZE[1]}"
    assert main(again.split()) == 0
    images = [np.asarray(Image.open(name)) for name in ("out.png", "again.png")]
    assert images[0].shape == (*SIZE, 3)
    assert np.array_equal(*images)
    # the moving image is red, the fixed one green; once aligned, they agree
    overlay = np.asarray(Image.open("overlay.png")).astype(float)
    assert overlay.shape == (SIZE[0], 2 * SIZE[1] + 4, 3)
    inner = overlay[12:-12]
    apart = np.abs(inner[..., 0] - inner[..., 1])
    before, after = apart[:, 14 : SIZE[1] - 14], apart[:, SIZE[1] + 18 : -14]
    assert after.mean() < before.mean() / 4


def test_images_that_do_not_agree(folder, capsys):
    Image.fromarray(np.zeros(SIZE, np.uint8)).save("black.png")
    assert main(["align", "black.png", "fixed.png", "out.png"]) == 1
    assert "black.png: does not converge on fixed.png" in capsys.readouterr().err
    assert (folder / "out.png").exists()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        ("tiny.png fixed.png out.png", 1, "tiny.png: less than 16 pixels a side"),
        ("moving.png fixed.png out.png --model rigid", 2, "'rigid' is not one of translation"),
        ("moving.png none.png out.png", 1, "none.png: No such file"),
        ("moving.png fixed.png out.xyz", 1, "which names no image format"),
        ("moving.png fixed.png out.png --overlay out.png", 2, "--overlay is out.png, and"),
        ("moving.png fixed.png out.png --matrix-out out.png", 2, "--matrix-out is out.png, and"),
    ],
)
def test_an_error_is_one_line(words, status, text, capsys):
    Image.fromarray(np.zeros((9, 9), np.uint8)).save("tiny.png")
    assert main(["align", *words.split()]) == status
    assert text in capsys.readouterr().err.strip().splitlines()[-1]


@pytest.mark.parametrize("named", ["{}.png", "link.png", "folder/../{}.png"])
@pytest.mark.parametrize("name", ["moving", "fixed"])
@pytest.mark.parametrize("option", ["--overlay", "--matrix-out"])
def test_an_input_is_not_overwritten(folder, capsys, option, name, named):
    (folder / "folder").mkdir()
    (folder / "link.png").symlink_to(f"{name}.png")
    before = {path.name: path.read_bytes() for path in folder.glob("*.png")}
    target = named.format(name)
    assert main(["align", "moving.png", "fixed.png", "out.png", option, target]) == 2
    wanted = f"warpkit: {option} is {target}, and so is {name.upper()}: give another name\n"
    assert capsys.readouterr() == ("", wanted)
    assert {path.name: path.read_bytes() for path in folder.glob("*.png")} == before


@pytest.mark.parametrize("name", ["moving", "fixed"])
def test_the_result_replaces_neither_image(name, folder, capsys):
    before = (folder / f"{name}.png").read_bytes()
    assert main(["align", "moving.png", "fixed.png", f"{name}.png"]) == 2
    wanted = f"OUT is {name}.png, and so is {name.upper()}: give another name"
    assert wanted in capsys.readouterr().err
    assert (folder / f"{name}.png").read_bytes() == before
