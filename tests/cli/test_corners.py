"""`warpkit warp`: --corners, --inverse, --antialias, --quality, beside cv2, numpy and Pillow."""

from __future__ import annotations

import io
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from tests.support.installed_opencv import compares_with_opencv
from warpkit.cli.app import main

PIXELS = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)
PAGE = np.array([[8.0, 5.0], [41.0, 9.0], [44.0, 33.0], [6.0, 36.0]])
"""A page's corners, clockwise from its top left."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Image.fromarray(PIXELS).save("in.png")
    return tmp_path


def result(name: str = "out.png") -> np.ndarray:
    with Image.open(name) as image:
        return np.array(image)


def numbers(values: object) -> list[str]:
    return [str(v) for v in np.ravel(np.asarray(values))]


@compares_with_opencv
@pytest.mark.parametrize("size", [None, (20, 30)])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 3, 2, 1), (0, 1, 3, 2)])
def test_a_page_is_straightened_as_by_opencv(order: tuple[int, ...], size: tuple[int, int] | None):
    words = [] if size is None else ["--size", *numbers(size)]
    arithmetic = f"opencv{cv2.__version__.split('.')[0]}"
    corners = numbers(PAGE[list(order)])
    line = ["warp", "in.png", "out.png", "--corners", *corners, "--arithmetic", arithmetic]
    assert main([*line, *words]) == 0
    # the larger of 33.24 and 38.13 pixels, and of 24.19 and 31.06, plus 1: centre to centre
    height, width = size or (32, 39)
    square = [(0, 0), (width - 1, 0), (width - 1, height - 1), (0, height - 1)]
    matrix = cv2.getPerspectiveTransform(PAGE.astype(np.float32), np.array(square, np.float32))
    theirs = cv2.warpPerspective(PIXELS, matrix, (width, height))
    assert result().shape == (height, width, 3)
    assert (result() != theirs).mean() < 1e-3  # its matrix differs in the last bits


def test_the_corner_pixels_become_the_results_corners():
    assert main(["warp", "in.png", "out.png", "--corners", *numbers(PAGE)]) == 0
    found = result()
    for (x, y), here in zip(PAGE.astype(int), ((0, 0), (0, -1), (-1, -1), (-1, 0)), strict=True):
        np.testing.assert_array_equal(found[here], PIXELS[y, x])


def test_the_images_own_corners_change_nothing():
    line = "warp in.png out.png --corners 0 0 49 0 49 39 0 39"
    assert main(line.split()) == 0
    np.testing.assert_array_equal(result(), PIXELS)


def test_the_first_corner_becomes_the_top_left():
    line = "warp in.png out.png --corners 49 0 49 39 0 39 0 0"
    assert main(line.split()) == 0
    np.testing.assert_array_equal(result(), np.rot90(PIXELS))


def test_an_inverse_matrix_maps_destination_to_source():
    line = "warp in.png out.png --matrix 1 0 3 0 1 2 --inverse --size 20 30"
    assert main(line.split()) == 0
    np.testing.assert_array_equal(result(), PIXELS[2:22, 3:33])
    singular = "warp in.png out.png --matrix 1 0 0 0 0 7 --inverse"
    assert main(singular.split()) == 0
    np.testing.assert_array_equal(result(), np.broadcast_to(PIXELS[7], PIXELS.shape))


def test_the_inverse_of_angle_and_scale():
    line = "warp in.png out.png --scale 2 --center 0 0 --inverse --interpolation nearest"
    assert main(line.split()) == 0
    np.testing.assert_array_equal(result()[:20, :25], PIXELS[::2, ::2])


def test_antialiasing_takes_means():
    steps = ["--scale", "0.25", "--center", "-0.5", "-0.5", "--size", "10", "12"]
    assert main(["warp", "in.png", "out.png", *steps, "--antialias"]) == 0
    means = PIXELS[:, :48].reshape(10, 4, 12, 4, 3).mean((1, 3))[1:-1, 1:-1]
    smooth = np.abs(result()[1:-1, 1:-1] - means).mean()
    assert main(["warp", "in.png", "out.png", *steps]) == 0
    assert smooth < 10 < 20 < np.abs(result()[1:-1, 1:-1] - means).mean()


@pytest.mark.parametrize("quality", [20, 80])
@pytest.mark.parametrize("name", ["out.jpg", "out.webp"])
def test_quality_is_passed_to_pillow(name: str, quality):
    assert main(["warp", "in.png", name, "--quality", str(quality)]) == 0
    expected = io.BytesIO()
    kind = "JPEG" if name == "out.jpg" else "WEBP"
    Image.fromarray(PIXELS).save(expected, kind, quality=quality)
    np.testing.assert_array_equal(result(name), np.array(Image.open(expected)))


BAD = {
    "--corners 0 0 1 1": "Invalid value for '--corners': takes 8 numbers, got 4",
    "--corners 0 0 9 0 9 9 0 9 --matrix 1 0 0 0 1 0": (
        "--corners takes the place of --matrix: give one of them"
    ),
    "--corners 0 0 9 0 9 9 0 9 --angle 4": "--corners takes the place of --angle: give one of them",
    "--corners 0 0 9 0 9 9 0 9 --inverse": (
        "--corners takes the place of --inverse: give one of them"
    ),
    "--corners 0 0 9 0 9 9 8 1": "--corners must be the corners of a quadrilateral without dents",
    "--corners 0 0 1 1 2 2 3 3": "--corners must be the corners of a quadrilateral without dents",
    "--corners 0 0 9 0 9 0 0 9": "--corners must be the corners of a quadrilateral without dents",
    "--corners 0 0 .3 0 .3 .3 0 .3": "--corners must be at least 1 pixel apart",
    "--corners 0 0 9e9 0 9e9 9e9 0 9e9": (
        "--corners makes images of up to 178,956,970 pixels, the most that Pillow reads, "
        "got 9000000001 x 9000000001"
    ),
    "--corners 0 0 9 0 9 9 0 9 --size 1 5": "--size takes numbers of 2 and more with --corners",
    "--antialias --arithmetic opencv4": "--antialias is for --arithmetic exact, got opencv4",
    "--quality 0": "Invalid value for '--quality': takes a whole number from 1 to 100, got 0",
    "--quality 80": "--quality is for AVIF, JPEG, WEBP, not PNG",
    "--format xyz": (
        "Invalid value for '--format': 'xyz' is not the ending of an image to write, such as png"
    ),
    "--format jpg": "--format jpg does not go with out.png, which names PNG",
}


@pytest.mark.parametrize("words", BAD)
def test_an_error_is_one_line(words: str, folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["warp", "in.png", "out.png", *words.split()]) == 2
    assert capsys.readouterr() == ("", f"warpkit: {BAD[words]}\n")
    assert [path.name for path in folder.iterdir()] == ["in.png"]
