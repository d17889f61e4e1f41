"""`warpkit undistort`: the pixels of `warpkit.camera`, and one line for every error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from warpkit import camera
from warpkit.cli.app import main

PIXELS = np.random.default_rng(0).integers(0, 256, (24, 32, 3), dtype=np.uint8)
MATRIX = [[30.0, 0, 15.5], [0, 31, 11], [0, 0, 1]]
CAMERA = "--camera 30 31 15.5 11"
K = [-0.2, 0.05, 0.001, -0.002, 0.01]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder that holds in.png."""
    monkeypatch.chdir(tmp_path)
    Image.fromarray(PIXELS).save("in.png")
    return tmp_path


def truth(**options):
    image = torch.from_numpy(PIXELS).permute(2, 0, 1)
    matrix = torch.tensor(MATRIX, dtype=torch.float64)
    k = torch.tensor(options.pop("k", K), dtype=torch.float64)
    if "alpha" in options:
        view = camera.optimal_camera_matrix(matrix, k, (24, 32), options.pop("alpha"))
        options["new_camera_matrix"] = view
    return camera.undistort(image, matrix, k, **options).permute(1, 2, 0).numpy()


FISHEYE = [0.05, -0.01, 0.002, -0.001]
CALLS = {
    "--distortion -0.2 0.05 0.001 -0.002 0.01": {},
    "--distortion -0.2 0.05 0.001 -0.002 0.01 --alpha 0": {"alpha": 0.0},
    "--distortion -0.2 0.05 0.001 -0.002 0.01 --alpha 1 --border-value 7": {
        "alpha": 1.0,
        "border_value": 7,
    },
    "--distortion 0.05 -0.01 0.002 -0.001 --fisheye": {"k": FISHEYE, "model": "fisheye"},
    "--distortion -0.28 0.09": {"k": [-0.28, 0.09, 0, 0]},
    "--distortion 0.05 -0.01 --fisheye": {"k": [0.05, -0.01, 0, 0], "model": "fisheye"},
    "--distortion=-0.2,0.05,0.001,-0.002,0.01 --interpolation bicubic --border reflect": {
        "interpolation": "bicubic",
        "border": "reflect",
    },
    "--distortion -0.2 0.05 0.001 -0.002 0.01 --arithmetic opencv5": {"arithmetic": "opencv5"},
}


@pytest.mark.parametrize("call", CALLS)
def test_files_hold_the_pixels_of_undistort(call):
    assert main(["undistort", "in.png", "out.png", *CAMERA.split(), *call.split()]) == 0
    assert np.array_equal(np.asarray(Image.open("out.png")), truth(**CALLS[call]))


def test_many_files_and_alpha_channels(folder):
    seen = np.dstack((PIXELS, np.full((24, 32), 255, np.uint8)))
    Image.fromarray(seen).save("alpha.png")
    words = ["in.png", "alpha.png", "--out", "flat", *CAMERA.split(), "--distortion", *map(str, K)]
    assert main(["undistort", *words]) == 0
    assert np.array_equal(np.asarray(Image.open("flat/in.png")), truth())
    assert np.asarray(Image.open("flat/alpha.png")).shape == (24, 32, 4)


BAD = {
    "--distortion 0 0 0 0": "Missing option '--camera'.",
    f"{CAMERA}": "Missing option '--distortion'.",
    f"{CAMERA} --distortion 1 2 3": "takes 2 or 4 or 5 or 8 or 12 or 14 numbers, got 3",
    f"{CAMERA} --distortion 0 0 0 0 0 --fisheye": "takes 2 or 4 numbers with --fisheye, got 5",
    f"{CAMERA} --distortion 0 0 0 0 --alpha 2": "--alpha takes a number from 0 to 1",
    "--camera -1 1 0 0 --distortion 0 0 0 0": "--camera takes positive focal lengths FX and FY",
    f"{CAMERA} --distortion -2 0 0 0 --alpha 0": "--alpha is for lenses that show a part of every",
    f"{CAMERA} --distortion 0 0 0 0 --border-value 1 2": "--border-value takes 1 or 3 numbers",
}


@pytest.mark.parametrize("call", BAD)
def test_every_error_is_one_line(call, capfd):
    assert main(["undistort", "in.png", "out.png", *call.split()]) in (1, 2)
    words = capfd.readouterr().err
    assert BAD[call] in words
    assert words.count("\n") == 1
    assert not Path("out.png").exists()
