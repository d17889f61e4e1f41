"""`warpkit resize`: the right pixels of each library, and one line for every error."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from PIL import Image

import warpkit as wk
from tests.support.installed_opencv import compares_with_opencv
from warpkit.cli.app import main

PIXELS = np.random.default_rng(0).integers(0, 256, (19, 25, 3), dtype=np.uint8)
ALPHA = np.random.default_rng(1).integers(0, 256, (19, 25, 4), dtype=np.uint8)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder that holds in.png and alpha.png."""
    monkeypatch.chdir(tmp_path)
    Image.fromarray(PIXELS).save("in.png")
    Image.fromarray(ALPHA).save("alpha.png")
    return tmp_path


def result(name: str = "out.png") -> np.ndarray:
    with Image.open(name) as image:
        return np.array(image)


def test_the_default_is_antialiased():
    assert main(["resize", "in.png", "out.png", "--size", "7", "9"]) == 0
    wanted = wk.resize(torch.from_numpy(PIXELS).permute(2, 0, 1), (7, 9)).permute(1, 2, 0)
    np.testing.assert_array_equal(result(), wanted.numpy())
    words = ["--size", "7", "9", "--no-antialias"]
    assert main(["resize", "in.png", "out.png", *words]) == 0
    assert (result() != wanted.numpy()).any()


@pytest.mark.parametrize("name", ["in.png", "alpha.png"])
@pytest.mark.parametrize("filter", ["nearest", "box", "bilinear", "bicubic", "lanczos"])
def test_pillows_pixels_with_and_without_alpha(name, filter):
    words = ["--size", "7", "41", "--arithmetic", "pillow", "--interpolation", filter]
    assert main(["resize", name, "out.png", *words]) == 0
    with Image.open(name) as image:
        wanted = image.resize((41, 7), getattr(Image.Resampling, filter.upper()))
    np.testing.assert_array_equal(result(), np.array(wanted))


@compares_with_opencv
def test_opencvs_pixels():
    cv2.ipp.setUseIPP(False)
    words = ["--size", "7", "9", "--interpolation", "area", "--arithmetic", "opencv5"]
    assert main(["resize", "in.png", "out.png", *words]) == 0
    wanted = cv2.resize(PIXELS, (9, 7), interpolation=cv2.INTER_AREA)
    np.testing.assert_array_equal(result(), wanted)
    cv2.ipp.setUseIPP(True)


@pytest.mark.parametrize(("scale", "size"), [("0.5", (10, 12)), ("2 1", (38, 25))])
def test_scales_determine_the_size(scale, size):
    assert main(["resize", "in.png", "out.png", "--scale", *scale.split()]) == 0
    assert result().shape == (*size, 3)


def test_hidden_colours_do_not_show():
    hidden = ALPHA.copy()
    hidden[..., 3] = 0
    hidden[6:12, 8:16] = (10, 200, 30, 255)
    Image.fromarray(hidden).save("in.png")
    assert main(["resize", "in.png", "out.png", "--size", "9", "11"]) == 0
    seen = result()[result()[..., 3] > 0]
    assert len(seen) > 3
    assert (seen[:, :3] == (10, 200, 30)).all()


def test_many_files():
    assert main(["resize", "in.png", "alpha.png", "--out", "small", "--size", "3", "4"]) == 0
    assert result("small/in.png").shape == (3, 4, 3)
    assert result("small/alpha.png").shape == (3, 4, 4)


WRONG = [
    ("", "takes --size or --scale: give one of them"),
    ("--size 3 4 --scale 2", "takes --size or --scale: give one of them"),
    ("--size 3", "takes 2 whole positive numbers"),
    ("--size 0 4", "takes 2 whole positive numbers"),
    ("--scale 0.001", "--scale makes 0 x 0 of 19 x 25"),
    ("--size 3 4 --interpolation cubic", "interpolation must be one of 'nearest', 'bilinear'"),
    ("--size 3 4 --arithmetic pillow --interpolation area", "one of 'nearest', 'box', 'bilinear'"),
    ("--size 3 4 --arithmetic opencv5 --antialias", "antialias must be None or False"),
    ("--size 3 4 --arithmetic other", "'other' is not one of exact, opencv4"),
]


@pytest.mark.parametrize(("words", "text"), WRONG)
def test_errors_are_one_line(words, text, capsys):
    assert main(["resize", "in.png", "out.png", *words.split()]) in (1, 2)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert text in lines[0]


def test_a_mode_that_a_library_cannot_resize_is_named(capsys):
    Image.fromarray(PIXELS[..., 0].astype(np.int32)).save("in.tif")
    words = ["--size", "3", "4", "--arithmetic", "pillow"]
    assert main(["resize", "in.tif", "out.tif", *words]) == 2
    assert "--arithmetic pillow is not for 32-bit grey images" in capsys.readouterr().err
