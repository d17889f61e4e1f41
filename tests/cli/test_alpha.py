"""`warpkit warp` of images with alpha: colours are weighted by their opacity."""

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

SIZE = (12, 15)
MATRIX = np.array([[0.9, 0.3, -1.2], [-0.25, 1.1, 1.7]])
WORDS = ["--matrix", *map(str, MATRIX.ravel())]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def noise(channels: int, seed: int = 0) -> np.ndarray:
    """Noise whose last channel, alpha, is 0 or 255 in halves of the image."""
    generator = np.random.default_rng(seed)
    pixels = generator.integers(0, 256, (*SIZE, channels), dtype=np.uint8)
    pixels[:6, :7, -1] = 0
    pixels[:6, 8:, -1] = 255
    return pixels


def bilinear(plane: np.ndarray, outside: float) -> np.ndarray:
    """A plane under MATRIX, by the definition: four neighbours, `outside` around the image."""
    height, width = plane.shape
    back = np.linalg.inv(np.vstack((MATRIX, [0, 0, 1])))
    result = np.empty(plane.shape)
    for y, x in np.ndindex(height, width):
        u, v, _ = back @ (x, y, 1)
        total = 0.0
        for j in (int(np.floor(v)), int(np.floor(v)) + 1):
            for i in (int(np.floor(u)), int(np.floor(u)) + 1):
                inside = 0 <= i < width and 0 <= j < height
                value = float(plane[j, i]) if inside else outside
                total += (1 - abs(u - i)) * (1 - abs(v - j)) * value
        result[y, x] = total
    return result


def result(name: str = "out.png") -> np.ndarray:
    with Image.open(name) as image:
        return np.array(image)


@pytest.mark.parametrize("value", [(0, 0, 0, 0), (200, 10, 90, 255), (50, 60, 70, 128)])
@pytest.mark.parametrize("mode", ["LA", "RGBA"])
def test_pixels_match_premultiplied_interpolation(mode: str, value: tuple[int, ...]):
    channels = len(mode)
    value = (*value[: channels - 1], value[-1])
    pixels = noise(channels)
    Image.fromarray(pixels).save("in.png")
    assert main(["warp", "in.png", "out.png", *WORDS, "--border-value", *map(str, value)]) == 0
    found = result().astype(np.float64)
    alpha = bilinear(pixels[..., -1], value[-1])
    assert np.abs(found[..., -1] - alpha).max() <= 0.5 + 1e-9
    seen = found[..., -1] > 0
    assert 20 < seen.sum() < seen.size or value[-1]
    for c in range(channels - 1):
        weighed = bilinear(pixels[..., c] * (pixels[..., -1] / 1.0), value[c] * value[-1])
        true = weighed[seen] / alpha[seen]
        assert np.abs(found[..., c][seen] - true).max() <= 0.5 + 1e-9, c  # only one rounding
        straight = np.rint(bilinear(pixels[..., c], value[c]))[seen]
        assert np.abs(straight - true).max() > 20, c  # without alpha the colours differ


def test_half_covered_pixels_keep_their_colour():
    pixels = np.empty((*SIZE, 4), np.uint8)
    pixels[...] = (200, 100, 50, 255)
    Image.fromarray(pixels).save("in.png")
    assert main(["warp", "in.png", "out.png", "--angle", "30", "--scale", "0.6"]) == 0
    found = result()
    half = (found[..., 3] > 0) & (found[..., 3] < 255)
    assert half.sum() > 10
    assert (found[found[..., 3] > 0][:, :3] == (200, 100, 50)).all()


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "lanczos4"])
@pytest.mark.parametrize("arithmetic", ["exact", "opencv4", "opencv5"])
def test_an_opaque_image_has_the_pixels_of_a_plain_warp(interpolation: str, arithmetic: str):
    pixels = noise(4)
    pixels[..., 3] = 255
    Image.fromarray(pixels).save("in.png")
    words = ["--interpolation", interpolation, "--arithmetic", arithmetic]
    assert main(["warp", "in.png", "out.png", *WORDS, *words, "--border", "replicate"]) == 0
    plain = wk.warp_affine(
        torch.from_numpy(pixels).permute(2, 0, 1),
        torch.from_numpy(MATRIX),
        interpolation=interpolation,
        border="replicate",
        arithmetic=arithmetic,
    )
    np.testing.assert_array_equal(result(), plain.permute(1, 2, 0).numpy())


@compares_with_opencv
def test_opencvs_pixels_are_kept_where_all_neighbours_are_opaque():
    pixels = noise(4)
    pixels[..., 3] = 255
    Image.fromarray(pixels).save("in.png")
    arithmetic = f"opencv{cv2.__version__.split('.')[0]}"
    assert main(["warp", "in.png", "out.png", *WORDS, "--arithmetic", arithmetic]) == 0
    theirs = cv2.warpAffine(pixels, MATRIX, SIZE[::-1], flags=cv2.INTER_LINEAR)
    opaque = theirs[..., 3] == 255
    assert opaque.sum() > 90
    np.testing.assert_array_equal(result()[opaque], theirs[opaque])
    np.testing.assert_array_equal(result()[..., 3], theirs[..., 3])


@pytest.mark.parametrize("options", ["", "--interpolation bicubic", "--interpolation nearest"])
def test_the_identity_also_keeps_hidden_colours(options: str):
    Image.fromarray(noise(4)).save("in.png")
    assert main(["warp", "in.png", "out.png", *options.split()]) == 0
    np.testing.assert_array_equal(result(), noise(4))


def test_antialiasing_weights_colours_by_alpha():
    pixels = np.zeros((16, 16, 4), np.uint8)
    pixels[...] = (0, 0, 0, 0)
    pixels[:, ::2] = (240, 120, 60, 255)  # every second column
    Image.fromarray(pixels).save("in.png")
    for more in ((), ("--interpolation", "nearest")):
        words = ["--scale", "0.25", "--center", "-0.5", "-0.5", "--size", "4", "4", "--antialias"]
        assert main(["warp", "in.png", "out.png", *words, *more]) == 0
        found = result()
        assert (found[1:3, 1:3, :3] == (240, 120, 60)).all()
        assert (found[1:3, 1:3, 3] < 200).all()


def test_colours_of_a_transparent_palette_are_weighted_by_alpha():
    index = Image.fromarray(np.repeat([[0] * 7 + [1] * 8], 12, 0).astype(np.uint8)).convert("P")
    index.putpalette([0, 255, 0, 200, 100, 50])
    index.save("in.png", transparency=0)
    assert main(["warp", "in.png", "out.png", "--translate", "0.5", "0"]) == 0
    with Image.open("out.png") as out:
        assert out.mode == "P"
        found = np.array(out.convert("RGBA"))
    assert tuple(found[3, 7]) == (200, 100, 50, 128)  # the transparent green lowers only the alpha
