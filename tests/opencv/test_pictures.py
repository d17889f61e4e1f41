"""Compiled pyramids, borders, rotations and rectangles: the bits of cv2 and of torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import warpkit.opencv as ours
from tests.support.guarded_memory import survives
from tests.support.installed_opencv import installed_opencv
from warpkit.opencv import arrangements, pyramids

cv2 = installed_opencv()
BORDERS = [cv2.BORDER_REPLICATE, cv2.BORDER_REFLECT, cv2.BORDER_WRAP, cv2.BORDER_REFLECT_101]
COMPUTED = ["uint8", "int16", "uint16", "float32", "float64"]
MOVED = [*COMPUTED, "int8", "int32"]

Draw = np.random.Generator
Call = Callable[[Any], np.ndarray]
"""One call, of `ours` or of cv2."""


def drawn(random: Draw, types: list[str], most: int = 5) -> np.ndarray:
    """An image of any size, often tiny, with any number of channels; often a view."""
    sides = [int(random.integers(1, random.choice([5, 20, 100]))) for _ in range(2)]
    channels = int(random.integers(1, most))
    dtype = np.dtype(random.choice(types))
    low, high = (0, 256) if dtype.itemsize == 1 else (-30000, 30000)
    if dtype.kind == "u":
        low, high = 0, min(high * 2, np.iinfo(dtype).max + 1)
    if dtype == np.int8:
        low, high = -128, 128
    shape = (sides[0], sides[1] + 3, channels) if random.random() < 0.3 else (*sides, channels)
    image = random.integers(low, high, shape).astype(dtype)[:, : sides[1]]
    return image[..., 0] if channels == 1 else image


def pyramid_down(random: Draw) -> Call:
    image = drawn(random, COMPUTED)
    height, width = image.shape[:2]
    sizes = [[n for n in range(1, side + 2) if abs(2 * n - side) <= 2] for side in (width, height)]
    size = tuple(int(random.choice(each)) for each in sizes) if random.random() < 0.5 else None
    border = int(random.choice(BORDERS))
    return lambda module: module.pyrDown(image, dstsize=size, borderType=border)


def pyramid_up(random: Draw) -> Call:
    image = drawn(random, COMPUTED)
    size = tuple(2 * side for side in image.shape[1::-1])
    # cv2 reads memory to the right of a doubled column
    if random.random() < 0.5 and image.shape[1] > 1:
        size = tuple(int(side + random.integers(-1, 2)) for side in size)
    return lambda module: module.pyrUp(image, dstsize=size)


def frame(random: Draw) -> Call:
    image = drawn(random, MOVED)
    sides = [int(n) for n in random.integers(0, random.choice([3, 40]), 4)]
    border = int(random.choice([*BORDERS, cv2.BORDER_CONSTANT]))
    value = tuple(float(n) for n in random.integers(0, 100, 4))
    return lambda module: module.copyMakeBorder(image, *sides, border, value=value)


def turn(random: Draw) -> Call:
    image = drawn(random, MOVED)
    code = int(random.integers(-1, 6))
    if code < 0:
        return lambda module: module.transpose(image)
    if code < 3:
        return lambda module: module.rotate(image, code)
    return lambda module: module.flip(image, code - 4)


def rectangle(random: Draw) -> Call:
    """With two or three channels, for which cv2 does not use IPP, and sometimes one."""
    image = drawn(random, ["uint8", "float32"], most=4)
    if image.ndim == 3 and image.shape[2] == 2:
        image = np.ascontiguousarray(image[..., :1])[..., 0]
    size = tuple(int(n) for n in random.integers(1, 30, 2))
    center = tuple(float(np.float32(n)) for n in random.uniform(-10, 60, 2))
    if random.random() < 0.5:  # positions whose sums are ties
        center = tuple(round(2 * n) / 2 for n in center)
    kind = int(random.choice([-1, cv2.CV_32F]))
    return lambda module: module.getRectSubPix(image, size, center, patchType=kind)


MAKERS = [pyramid_down, pyramid_up, frame, turn, rectangle]


@pytest.fixture
def plain():
    used = cv2.ipp.useIPP()
    cv2.ipp.setUseIPP(False)
    yield
    cv2.ipp.setUseIPP(used)


def differing(one: np.ndarray, other: np.ndarray) -> int:
    assert (one.shape, one.dtype) == (other.shape, other.dtype)
    return int((one.view(f"u{one.itemsize}") != other.view(f"u{one.itemsize}")).sum())


@pytest.mark.parametrize("make", MAKERS)
def test_random_calls_have_cv2s_bits(make, plain):
    random = np.random.default_rng(0)
    for number in range(400):
        call = make(random)
        assert differing(call(ours), call(cv2)) == 0, f"call {number}"


@pytest.mark.parametrize("make", MAKERS)
def test_random_calls_have_the_bits_of_torchs_path(make, monkeypatch):
    """Also with fractions, which cv2 sums in another order."""
    random = np.random.default_rng(1)
    calls = [make(random) for _ in range(200)]
    fast = [call(ours) for call in calls]
    for module in (arrangements, pyramids):
        monkeypatch.setattr(module, "select_pictures", lambda: None)
    for number, (call, result) in enumerate(zip(calls, fast, strict=True)):
        assert differing(call(ours), result) == 0, f"call {number}"


OUTSIDE = """
import sys
import numpy as np
from tests.opencv import test_pictures as calls
from tests.support.guarded_memory import bytes_between_guards, guard_what_is_made
from warpkit import opencv
guard_what_is_made()
random, drawn = np.random.default_rng(2), calls.drawn
def guarded(*arguments, **options):
    image = np.ascontiguousarray(drawn(*arguments, **options))
    memory = bytes_between_guards(image.nbytes, bool(random.integers(2)))
    copy = memory.view(image.dtype).reshape(image.shape)
    copy[...] = image
    return copy
calls.drawn = guarded
for make in calls.MAKERS:
    for _ in range(150):
        make(random)(opencv)
"""


def test_calls_stay_inside_the_arrays():
    assert survives(OUTSIDE)
