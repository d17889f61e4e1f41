"""`warpkit view`: the pixels of `camera.from_sphere`, directions, one line per error."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.support.naive_sphere import turn
from warpkit import camera
from warpkit.cli.app import main

PIXELS = np.random.default_rng(0).integers(0, 256, (24, 48, 3), dtype=np.uint8)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder that holds in.png."""
    monkeypatch.chdir(tmp_path)
    Image.fromarray(PIXELS).save("in.png")
    return tmp_path


def truth(size=(20, 30), angles=(), **options):
    options = {"field_of_view": 90.0, **options}
    seen = camera.from_sphere(
        torch.from_numpy(PIXELS).permute(2, 0, 1), size, rotation=turn(*angles), **options
    )
    return seen.permute(1, 2, 0).numpy()


CALLS = {
    "": {},
    "--fov 120 --yaw -30 --pitch 20 --roll 7.5": {"field_of_view": 120.0, "angles": (-30, 20, 7.5)},
    "--pitch -90": {"angles": (0, -90)},
    "--fisheye --fov 220 --yaw 170": {
        "model": "fisheye",
        "field_of_view": 220.0,
        "angles": (170,),
    },
    "--interpolation nearest --yaw=10": {"interpolation": "nearest", "angles": (10,)},
    "--antialias --roll 90": {"antialias": True, "angles": (0, 0, 90)},
}


@pytest.mark.parametrize("call", CALLS)
def test_files_hold_the_pixels_of_from_sphere(call):
    assert main(["view", "in.png", "out.png", "--size", "20", "30", *call.split()]) == 0
    found = np.asarray(Image.open("out.png")).astype(int)
    # a value at half a level may round to either side: the rotations differ in their last bits
    assert (np.abs(found - truth(**CALLS[call])) <= 1).all()
    assert (found == truth(**CALLS[call])).mean() > 0.995


def test_a_folder_of_spheres_and_the_size_of_a_view():
    assert main(["view", "in.png", "--out", "views"]) == 0
    with Image.open("views/in.png") as found:
        assert found.size == (1280, 720)


def test_colours_are_weighted_by_alpha():
    pixels = np.dstack([PIXELS, np.full((24, 48), 255, np.uint8)])
    pixels[::2, :, 3] = 0
    pixels[::2, :, :3] = 255
    pixels[1::2, :, :3] = 10
    Image.fromarray(pixels, "RGBA").save("in.png")
    assert main(["view", "in.png", "out.png", "--size", "9", "9"]) == 0
    found = np.asarray(Image.open("out.png"))
    assert (found[found[..., 3] > 0][:, :3] == 10).all()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("--fov 180", "--fov takes less than 180 without --fisheye, got 180"),
        ("--fov 361 --fisheye", "--fov takes at most 360 degrees, got 361"),
        ("--fov -3", "takes 1 positive number, got -3"),
        ("--yaw", "--yaw"),
        ("--yaw 1 2", "takes 1 number, got 2"),
        ("--size 3", "takes 2 whole positive numbers, got 1"),
        ("--size 200000 200000", "--size"),
    ],
)
def test_an_error_is_one_line(call, text, capsys):
    assert main(["view", "in.png", "out.png", *call.split()]) in (1, 2)
    said = capsys.readouterr().err
    assert text in said
    assert said.count("\n") == 1
    assert not Path("out.png").exists()


def test_a_picture_that_is_no_sphere_is_one_line(capsys: pytest.CaptureFixture[str]):
    Image.fromarray(PIXELS[:, :32]).save("photograph.png")
    with warnings.catch_warnings():
        warnings.simplefilter("always")  # an error in the tests
        assert main(["view", "photograph.png", "out.png", "--size", "8", "8"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("warpkit: from_sphere: `sphere` of 24 x 32 pixels is stretched over")
