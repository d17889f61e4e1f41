"""`identify` of programs whose numbers are coarse: compared in their own type, nothing guessed."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.support.hostile_programs import SIDE, resized
from tests.support.processors import picture
from warpkit.validation import identify
from warpkit.validation.programs.precision import ulp

MEAN = torch.tensor([0.485, 0.456, 0.406])[:, None, None]
STD = torch.tensor([0.229, 0.224, 0.225])[:, None, None]


def eight_bits(x: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(cv2.resize(x, (SIDE, SIDE))).movedim(-1, 0)


def floats(x: torch.Tensor, **options) -> torch.Tensor:
    return F.interpolate(x[None].float(), (SIDE, SIDE), mode="bilinear", **options)[0]


def normalised(levels: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Every step in this type."""
    return (levels.to(dtype) / 255 - MEAN.to(dtype)) / STD.to(dtype)


def test_an_ulp_is_that_of_the_type():
    numbers = np.array([1.0, 1.5, -2.64, 0.1, 1000.0])
    for dtype in ("float16", "float32", "float64"):
        wanted = np.abs(np.spacing(numbers.astype(dtype))).astype(float)
        assert (ulp(numbers, dtype) == wanted).all()
    assert ulp(numbers, "bfloat16").tolist() == [2**-7, 2**-7, 2**-6, 2**-11, 4.0]


def test_a_resize_in_bfloat16_is_not_claimed_as_another():
    """opencv5's bilinear differs from it in a third of values, by up to 1.5 levels."""

    def program(x):
        made = F.interpolate(x[None].bfloat16(), (SIDE, SIDE), mode="bilinear")[0]
        return normalised(made, torch.bfloat16)

    found = identify(program, takes="tensor")
    assert found.arithmetic is None
    assert found.pipeline is None
    assert not found.known
    assert "No resize that is known gives these numbers" in found.reasons[0]


EIGHT_BITS = {
    "bfloat16 at the end": lambda x: normalised(eight_bits(x), torch.float32).bfloat16(),
    "bfloat16 throughout": lambda x: normalised(eight_bits(x), torch.bfloat16),
    "float16 throughout": lambda x: normalised(eight_bits(x), torch.float16),
    "float32 plus 1000": lambda x: normalised(eight_bits(x), torch.float32) + 1000,
    "float64 plus 1000": lambda x: normalised(eight_bits(x), torch.float64) + 1000,
}
FLOATS = {
    "float16 at the end": lambda x: normalised(floats(x, antialias=True), torch.float32).half(),
    "bfloat16 at the end": lambda x: normalised(
        floats(x, antialias=True), torch.float32
    ).bfloat16(),
    "float32 plus 1000": lambda x: floats(x, antialias=True) / 255 + 1000,
    "stored in 64 bits": lambda x: (floats(x, antialias=True) / 255 + 1000).double(),
}


def apart(found, program, takes: str) -> float:
    """The largest difference, in levels, on another picture."""
    image = picture((301, 217))
    given = image if takes == "array" else torch.from_numpy(image).movedim(-1, 0)
    gain = torch.tensor(found.gain, dtype=torch.float64).reshape(-1, 1, 1)
    made = found.pipeline(torch.from_numpy(image).movedim(-1, 0)[None])[0]
    return float(((made.double() - program(given).double()) / gain).abs().max())


ROOM = {"bfloat16": 1.6, "float16": 0.3, "float32": 0.05, "float64": 0.05}
"""Levels: two last bits of the largest numbers; the twin's own numbers are float32."""


@pytest.mark.parametrize("name", EIGHT_BITS)
def test_eight_bits_behind_coarse_numbers_are_found(name):
    found = identify(EIGHT_BITS[name], takes="array")
    assert found.known, str(found)
    assert (found.interpolation, found.rounded, found.differing) == ("bilinear", True, 0)
    assert found.arithmetic.startswith("opencv")
    assert apart(found, EIGHT_BITS[name], "array") < ROOM[found.dtype]


@pytest.mark.parametrize("name", FLOATS)
def test_floats_behind_coarse_numbers_are_found(name):
    found = identify(FLOATS[name], takes="tensor")
    assert found.known, str(found)
    assert (found.arithmetic, found.interpolation) == ("torch", "bilinear")
    assert (found.antialias, found.rounded, found.differing) == (True, False, 0)
    assert apart(found, FLOATS[name], "tensor") < ROOM[found.dtype]


def test_one_level_in_a_thousand_pixels_is_detected_in_coarse_numbers():
    def program(x):
        y = eight_bits(x).clone()
        y[1, ::32, ::32] ^= 1
        return normalised(y, torch.float32).half()

    found = identify(program, takes="array")
    assert not found.known
    assert found.arithmetic is None


def test_several_resizes_that_fit_are_candidates():
    """The last bit of bfloat16 at 15 is 16 levels."""
    found = identify(lambda x: (floats(x, antialias=True) / 255 + 15).bfloat16(), takes="tensor")
    assert found.pipeline is None
    assert found.arithmetic is None
    assert found.interpolation is None
    assert "too coarse to tell" in found.reasons[0]
    names = [(one.interpolation, one.arithmetic) for one, *_ in found.candidates]
    assert ("bilinear", "torch") in names
    assert ("bicubic", "torch") in names


@pytest.mark.parametrize("tall", [False, True])
def test_long_pictures_of_both_kinds_are_in_the_last_proof(tall):
    def program(x):
        h, w = x.shape[:2] if tall else x.shape[1::-1]
        return resized(x)[..., ::-1] if h > 3 * w else resized(x)

    found = identify(program, takes="array")
    assert found.arithmetic is None
    assert not found.known
    which = "tall" if tall else "wide"
    assert f"on {which} pictures of 10 to 1" in found.reasons[0]
