"""Arrays in every form that numpy has give the pixels of dense ones, at every call.

cv2 gives the truth, from dense arrays. Each call is made three times: the second and third may run
by a cached call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpkit.opencv as ours
from tests.support.installed_opencv import installed_opencv
from tests.support.tolerances import TOLERANCE

RANDOM = np.random.default_rng(0)
AFFINE = np.array([[0.9, 0.2, 0.5], [-0.3, 1.1, 0.25]])
PERSPECTIVE = np.array([[0.9, 0.2, 0.5], [-0.3, 1.1, 0.25], [0.004, -0.002, 1]])
X, Y = ((RANDOM.random((5, 6)) * 9 - 1).astype(np.float32) for _ in range(2))
POINTS = np.dstack((X, Y))
CAMERA, LENS = np.array([[9.0, 0, 4], [0, 9, 4], [0, 0, 1]]), np.array([0.1, 0.01, 0, 0])
SRC = np.array([[0, 0], [1, 0], [0, 1], [1, 1]], np.float32)
DST = np.array([[5, 7], [6, 7], [5, 9], [7, 10]], np.float32)
SCENE, TURN = RANDOM.uniform(1, 3, (7, 3)), np.array([0.1, 0.2, 0.3])


def _axes(array: np.ndarray) -> list[tuple[int, tuple[int, int]]]:
    return list(enumerate(zip(array.strides, array.shape, strict=True)))


def _with_strides(array: np.ndarray, step: int) -> np.ndarray:
    """With the strides 0, `step`, 2 * step ... along axes of length 1, which no index reaches."""
    strides = [s if n > 1 else step * i for i, (s, n) in _axes(array)]
    return np.lib.stride_tricks.as_strided(array.copy(), array.shape, strides)


def _field(array: np.ndarray) -> np.ndarray:
    """A field of a structured array, not aligned, with strides of no whole number of items."""
    pairs = np.zeros(array.shape, [("before", "u1"), ("value", array.dtype)])
    pairs["value"] = array
    return pairs["value"]


def _unaligned(array: np.ndarray) -> np.ndarray:
    found = np.ndarray(array.shape, array.dtype, np.zeros(array.nbytes + 1, np.uint8), 1)
    found[...] = array
    return found


def _read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


def _reversed(array: np.ndarray) -> np.ndarray:
    every = (slice(None, None, -1),) * array.ndim
    return array[every].copy()[every]


def _spread(array: np.ndarray) -> np.ndarray:
    every = (slice(None, None, 2),) * array.ndim
    wide = np.zeros([2 * n for n in array.shape], array.dtype)
    wide[every] = array
    return wide[every]


class Own(np.ndarray):
    """A subclass, as np.matrix and np.memmap are."""


FORMS = {
    "dense": lambda array: array.copy(),
    "big-endian": lambda array: array.astype(array.dtype.newbyteorder(">")),
    "zero strides": lambda array: _with_strides(array, 0),
    "whole strides": lambda array: _with_strides(array, 7 * array.itemsize),
    "odd strides": lambda array: _with_strides(array, -13),
    "upside down": lambda array: array[::-1].copy()[::-1],
    "reversed": _reversed,
    "read-only": _read_only,
    "a field": _field,
    "unaligned": _unaligned,
    "Fortran": np.asfortranarray,
    "every second": _spread,
    "masked": lambda array: np.ma.masked_array(array, mask=np.zeros(array.shape, bool)),
    "a subclass": lambda array: array.copy().view(Own),
}
SHAPES = [(1, 1, 3), (1, 9), (9, 1), (1, 9, 3), (9, 1, 3), (9, 7, 1), (9, 7, 3), (9, 7, 4)]

Call = tuple[str, tuple[Any, ...], dict[str, Any]]


def picture_calls(src: np.ndarray) -> list[Call]:
    """Calls of the functions that take an image (H, W) or (H, W, C)."""
    cv2 = installed_opencv()
    calls: list[Call] = [
        ("warpAffine", (src, AFFINE, (6, 5)), {"flags": flags}) for flags in (0, 1, 2)
    ]
    calls += [
        ("warpPerspective", (src, PERSPECTIVE, (6, 5)), {"borderMode": b, "borderValue": 7})
        for b in (0, 1)
    ]
    maps = ((X, Y), (POINTS, None), cv2.convertMaps(X, Y, cv2.CV_16SC2))
    calls += [("remap", (src, *pair, 1), {}) for pair in maps]
    calls += [
        ("resize", (src, size), {"interpolation": n})
        for n in range(7)
        for size in ((6, 5), (1, 1), (1, 5))
    ]
    calls += [("copyMakeBorder", (src, 1, 2, 1, 0, kind), {}) for kind in (0, 1)]
    calls += [("flip", (src, -1), {}), ("rotate", (src, 0), {}), ("transpose", (src,), {})]
    calls += [("pyrDown", (src,), {}), ("pyrUp", (src,), {})]
    calls += [("warpPolar", (src, (6, 5), (2.5, 2.0), 4.0, flags), {}) for flags in (9, 25)]
    calls += [("undistort", (src, CAMERA, LENS), {})]
    calls += [("fisheye.undistortImage", (src, CAMERA, LENS), {"Knew": CAMERA})]
    if src.dtype == np.uint8 and src.shape[2:] == (3,):  # IPP's differ for one channel
        calls += [("getRectSubPix", (src, (4, 3), (2.3, 1.7)), {})]
    return calls


def number_calls() -> list[Call]:
    """Calls of the functions that take matrices, maps and points."""
    cv2 = installed_opencv()
    fixed = cv2.convertMaps(X, Y, cv2.CV_16SC2)
    view, wide = (CAMERA, LENS, np.eye(3), CAMERA, (6, 5), cv2.CV_32FC1), (1, 6, 3)
    return [
        ("convertMaps", (X, Y, cv2.CV_16SC2), {}),
        ("convertMaps", (POINTS, None, cv2.CV_16SC2), {}),
        ("convertMaps", (*fixed, cv2.CV_32FC1), {}),
        ("initUndistortRectifyMap", view, {}),
        ("fisheye.initUndistortRectifyMap", view, {}),
        ("undistortPoints", (POINTS.reshape(-1, 1, 2), CAMERA, LENS), {}),
        ("perspectiveTransform", (POINTS, PERSPECTIVE), {}),
        ("transform", (RANDOM.random((5, 6, 3)), RANDOM.random((3, 4))), {}),
        ("transform", (RANDOM.random(wide).astype(np.float32), RANDOM.random((1, 3))), {}),
        ("cartToPolar", (X, Y), {}),
        ("polarToCart", (X % 7, Y % 6), {}),
        ("getAffineTransform", (SRC[:3], DST[:3]), {}),
        ("getPerspectiveTransform", (SRC, DST), {}),
        ("findHomography", (SRC, DST), {}),
        ("invertAffineTransform", (AFFINE,), {}),
        ("getOptimalNewCameraMatrix", (CAMERA, LENS, (20, 10), 0.3), {}),
        ("fisheye.distortPoints", (POINTS.reshape(-1, 1, 2) / 9, CAMERA, LENS), {}),
        ("projectPoints", (SCENE, TURN, TURN, CAMERA, LENS), {}),
    ]


def results(library: Any, call: Call, form: Any = None) -> list[np.ndarray]:
    name, args, options = call
    for part in name.split("."):
        library = getattr(library, part)
    if form is not None:
        args = tuple(form(arg) if isinstance(arg, np.ndarray) else arg for arg in args)
    found = library(*args, **options)
    return [np.asarray(a) for a in (found if isinstance(found, tuple) else (found,))]


def check(call: Call, tolerance: float) -> None:
    truth = results(installed_opencv(), call)
    for name, form in FORMS.items():
        for turn in range(3):
            message = f"{call[0]} {call[2]} of arrays: {name}; call {turn + 1}"
            for one, other in zip(results(ours, call, form), truth, strict=True):
                assert (one.shape, one.dtype) == (other.shape, other.dtype), message
                np.testing.assert_allclose(one, other, tolerance, tolerance * 250, err_msg=message)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float64"])
def test_images_in_any_form_give_cv2s_pixels_at_every_call(dtype, shape):
    src = (np.random.default_rng(1).random(shape) * 250).astype(dtype)
    for call in picture_calls(src):
        check(call, TOLERANCE["order of sums"] if dtype == "float64" else 0)


def test_numbers_in_any_form_give_cv2s_results_at_every_call():
    for call in number_calls():
        check(call, TOLERANCE["order of sums"])


@pytest.mark.parametrize("form", sorted(FORMS.keys() - {"read-only", "big-endian"}))
def test_results_are_written_to_a_dst_of_any_form(form):
    cv2, src = installed_opencv(), np.arange(9, dtype=np.float64)[:, None]
    for size, flags in (((1, 7), 1), ((7, 1), 1), ((6, 5), 1)):
        truth = cv2.warpAffine(src, AFFINE, size, flags=flags, borderMode=1)
        for _ in range(2):
            dst = FORMS[form](np.zeros(size[::-1]))
            found = ours.warpAffine(src, AFFINE, size, dst, flags, ours.BORDER_REPLICATE)
            assert found is dst
            assert np.array_equal(np.asarray(dst), truth)
            dst = FORMS[form](np.full(size[::-1], 3.0))
            found = ours.warpAffine(src, AFFINE, size, dst, flags, ours.BORDER_TRANSPARENT)
            below = np.full(size[::-1], 3.0)
            cv2.warpAffine(src, AFFINE, size, below, flags, cv2.BORDER_TRANSPARENT)
            assert found is dst
            assert np.array_equal(np.asarray(dst), below)


def test_one_pixel_keeps_its_channels():
    for _ in range(3):
        found = ours.resize(np.array([[[10, 20, 30]]], np.uint8), (2, 2))
        assert found.tolist() == [[[10, 20, 30]] * 2] * 2
