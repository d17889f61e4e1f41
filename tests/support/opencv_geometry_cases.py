"""Calls of cv2's other geometric functions, for both cv2 and `warpkit.opencv`.

torch is not imported at the top, since scripts/record golden records them where only OpenCV is
installed; the tests repeat them with `warpkit.opencv`, which has the same names and arguments.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from tests.support.opencv_cases import GOLDEN, noise

GEOMETRY = str(GOLDEN / "geometry-opencv-{}.npz")

CAMERA = np.array([[21.0, 0, 12.5], [0, 20, 10.2], [0, 0, 1]])
VIEW = np.array([[18.0, 0, 12], [0, 18.5, 9], [0, 0, 1]])
PROJECTION = np.hstack((VIEW, np.ones((3, 1))))
TURN = np.array([[0.96, -0.28, 0.0], [0.28, 0.96, 0.0], [0.0, 0.0, 1.0]])
TILT = np.array([[0.8, 0.0, 0.6], [0.0, 1.0, 0.0], [-0.6, 0.0, 0.8]])
SIZE = (26, 20)
"""Width and height of what is seen through a lens; the camera's middle lies in it."""
FISHEYE = np.array([0.08, -0.03, 0.01, -0.004])
BROWN = np.array([-0.2, 0.06, 0.004, -0.003, 0.02, 0.05, -0.02, 0.01])
BROWN = np.concatenate((BROWN, [0.004, -0.005, 0.003, -0.004, 0.03, -0.02]))
"""Fourteen coefficients, of which a lens takes the first 4, 5, 8, 12 or all."""
COUNTS = (0, 4, 5, 8, 12, 14)
TYPES = ("uint8", "uint16", "int16", "float32", "float64")

Call = tuple[str, Any, tuple[Any, ...]]
"""Name of the call, its function as "name" or "module.name", and what it is given."""


def picture(size: tuple[int, int], dtype: str, channels: int = 3, seed: int = 0) -> np.ndarray:
    """Noise (H, W) or (H, W, C); integers, whose sums are exact in any order."""
    values = np.floor(noise((*size, channels), dtype, seed))
    return (values[..., 0] if channels == 1 else values).astype(dtype)


def calls(cv: Any) -> Iterator[Call]:
    """The recorded calls. cv: cv2 or `warpkit.opencv`, for the values of types and flags."""
    yield from _lens_maps(cv)
    yield from _lens_pictures()
    yield from _lens_points()
    yield from _polar(cv)
    yield from _pyramids()
    yield from _rectangles(cv)
    yield from _vectors()
    yield from _converted(cv)


def answers(cv: Any, call: Call) -> list[np.ndarray]:
    """The library's result: one array or several."""
    function = cv
    for part in call[1].split("."):
        function = getattr(function, part)
    out = function(*call[2])
    parts = out if isinstance(out, tuple) else (out,)
    return [np.asarray(part) for part in parts if part is not None]


def _lens_maps(cv: Any) -> Iterator[Call]:
    views = ((None, CAMERA), (TURN, VIEW), (None, None))
    for n, (rotation, view), kind in product(COUNTS, views, ("CV_32FC1", "CV_32FC2", "CV_16SC2")):
        name = f"initUndistortRectifyMap {n} {rotation is None} {view is None} {kind}"
        args = (CAMERA, BROWN[:n] if n else None, rotation, view, SIZE, getattr(cv, kind))
        yield name, "initUndistortRectifyMap", args
    views = ((None, CAMERA), (TILT, VIEW), (TURN, PROJECTION))
    for (rotation, view), kind in product(views, ("CV_32FC1", "CV_16SC2")):
        name = f"fisheye.initUndistortRectifyMap {rotation is None} {view.shape[1]} {kind}"
        args = (CAMERA, FISHEYE, rotation, view, SIZE, getattr(cv, kind))
        yield name, "fisheye.initUndistortRectifyMap", args


def _lens_pictures() -> Iterator[Call]:
    for dtype, channels in product(TYPES, (1, 3)):
        image = picture(SIZE[::-1], dtype, channels, seed=3)
        for n in (0, 5, 14):
            args = (image, CAMERA, BROWN[:n] if n else None, None, VIEW if n == 5 else None)
            yield f"undistort {dtype} {channels} {n}", "undistort", args
        args = (image, CAMERA, FISHEYE, None, CAMERA, (23, 21))
        yield f"fisheye.undistortImage {dtype} {channels}", "fisheye.undistortImage", args


def _lens_points() -> Iterator[Call]:
    points = noise((50, 1, 2), "float64", 5) / 255 * SIZE
    for n, dtype in product(COUNTS, ("float32", "float64")):
        lens = BROWN[:n] * 0.3 if n else None
        args = (points.astype(dtype), CAMERA, lens, None, TURN, VIEW)
        yield f"undistortPoints {n} {dtype}", "undistortPoints", args
    args = (points, CAMERA, FISHEYE, None, TILT, VIEW)
    yield "fisheye.undistortPoints", "fisheye.undistortPoints", args
    yield "fisheye.distortPoints", "fisheye.distortPoints", (points / 13 - 1, CAMERA, FISHEYE)


def _polar(cv: Any) -> Iterator[Call]:
    circles = (((20.0, 15.0), 14.0), ((7.3, 25.1), 30.5))
    for dtype, mode, n in product(("uint8", "float32"), ("LINEAR", "LOG"), range(2)):
        image = picture((27, 33), dtype, seed=7)
        for interpolation in ("NEAREST", "LINEAR", "CUBIC"):
            flags = getattr(cv, f"INTER_{interpolation}") | getattr(cv, f"WARP_POLAR_{mode}")
            args = (image, (22, 18), *circles[n], flags | cv.WARP_FILL_OUTLIERS)
            yield f"warpPolar {dtype} {mode} {n} {interpolation}", "warpPolar", args


def _pyramids() -> Iterator[Call]:
    for dtype, size, border in product(TYPES, ((9, 14), (1, 5), (16, 7)), (1, 2, 4)):
        image = picture(size, dtype, seed=9)
        half = ((size[1] + 1) // 2, (size[0] + 1) // 2)
        name = f"{dtype} {size} {border}"
        yield f"pyrDown {name}", "pyrDown", (image, None, half, border)
        if border == 4:  # the only border that it supports
            yield f"pyrUp {name}", "pyrUp", (image,)


def _rectangles(cv: Any) -> Iterator[Call]:
    for dtype, channels, n in product(("uint8", "float32"), (1, 3), range(6)):
        image = picture((9, 11), dtype, channels, seed=11)
        x, y = noise((2,), "float64", 13 + n) / 255 * 18 - 4
        args = (image, (1 + n % 5, 5 - n % 4), (x, y), None, -1 if n % 2 else cv.CV_32F)
        yield f"getRectSubPix {dtype} {channels} {n}", "getRectSubPix", args


def _vectors() -> Iterator[Call]:
    for dtype, columns, rows, more in product(TYPES, (1, 2, 3, 4), (1, 3, 4), (0, 1)):
        matrix = noise((rows, columns + more), "float64", 17) / 255 - 0.4
        matrix[:, columns:] *= 60
        args = (picture((3, 67), dtype, columns, seed=19), matrix)
        yield f"transform {dtype} {columns} {rows} {more}", "transform", args
    for dtype, columns in product(("float32", "float64"), (2, 3)):
        points = noise((60, 1, columns), dtype, 23) / 2
        matrix = noise((columns + 1, columns + 1), "float64", 29) / 100 - 1
        matrix[-1] = [0.01] * columns + [1.0]
        yield f"perspectiveTransform {dtype} {columns}", "perspectiveTransform", (points, matrix)


def _converted(cv: Any) -> Iterator[Call]:
    pairs = (noise((7, 9, 2), "float64", 31) / 4 - 9).astype(np.float32)
    pairs[0, 0], pairs[0, 1], pairs[1, 0] = (0.015625, 0.046875), (np.nan, 1e12), (-4e4, 5e4)
    for whole in (False, True):
        yield f"convertMaps {whole}", "convertMaps", (pairs, None, cv.CV_16SC2, None, None, whole)
    fixed = cv.convertMaps(pairs, None, cv.CV_16SC2)
    for kind in ("CV_32FC1", "CV_32FC2"):
        yield f"convertMaps back {kind}", "convertMaps", (*fixed, getattr(cv, kind))
