"""Fisheye points, and the new camera from four of them, by the native library: no gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.arithmetic.opencv_lenses import FISHEYE_STEPS, Criteria
from warpkit.engine.arithmetic.opencv_projection import turn_of
from warpkit.engine.definitions.lens_models import Lens
from warpkit.opencv import plain_calls
from warpkit.opencv.plain_matrices import number

FLOATS = (torch.float32, torch.float64)


def distorted(directions: Tensor, lens: Lens, skew: Tensor) -> Tensor | None:
    """cv2.fisheye.distortPoints of directions (..., 2), in their type; None if unsupported."""
    known, points = _plain(directions, lens, skew)
    if known is None:
        return None
    found = known.fisheye_shown(points, _numbers(known, lens), float(skew.detach()))
    return torch.from_numpy(found).view(directions.shape)


def undistorted(
    pixels: Tensor, lens: Lens, view: Tensor | None, criteria: Criteria
) -> Tensor | None:
    """cv2.fisheye.undistortPoints of pixels (..., 2), in their type; None if unsupported.

    view (3, 3): multiplies the directions.
    """
    known, points = _plain(pixels, lens, *(() if view is None else (view,)))
    if known is None:
        return None
    matrix = None if view is None else view.detach().flatten().tolist()
    found = known.fisheye_found(points, _numbers(known, lens), criteria, matrix)
    return torch.from_numpy(found).view(pixels.shape)


def distorted_numbers(directions: Any, K: Any, D: Any, alpha: Any) -> np.ndarray | None:
    """`distorted` of plain arguments; None for others."""
    points, lens = _places(directions), plain_calls.fisheye_lens(K, D)
    if points is None or lens is None or type(alpha) not in (int, float):
        return None
    return _known().fisheye_shown(points.reshape(-1, 2), lens, float(alpha)).reshape(points.shape)


def undistorted_numbers(
    pixels: Any, K: Any, D: Any, R: Any, P: Any, criteria: Criteria
) -> np.ndarray | None:
    """`undistorted` of plain arguments; None for others."""
    points, lens = _places(pixels), plain_calls.fisheye_lens(K, D)
    looks = R is not None or P is not None
    view = plain_calls.view_of(R, P) if looks else None
    if points is None or lens is None or (looks and view is None):
        return None
    found = _known().fisheye_found(points.reshape(-1, 2), lens, criteria, view)
    return found.reshape(points.shape)


def new_camera(
    K: Any, D: Any, R: Any, size: tuple[int, int], new: tuple[int, int], balance: Any, scale: Any
) -> np.ndarray | None:
    """cv2.fisheye.estimateNewCameraMatrixForUndistortRectify of plain arguments; None for others.

    (3, 3), float64, by OpenCV's operations; sizes (h, w).
    """
    lens, turn = plain_calls.fisheye_lens(K, D), _turn(R)
    share, scale = number(balance), number(scale)
    if (
        lens is None
        or turn is None
        or share is None
        or scale is None
        or K.dtype not in plain_calls.FLOATS
    ):
        return None
    if not math.isfinite(share) or not math.isfinite(scale) or not K[1, 1]:
        return None
    height, width = size
    middles = (width // 2, 0), (width, height // 2), (width // 2, height), (0, height // 2)
    seen = _known().fisheye_found(np.array(middles, np.float64), lens, FISHEYE_STEPS, turn)
    squash = float(K[0, 0] / K[1, 1])  # divided in K's type, as in cv2
    xs, ys = seen.T.tolist()
    cx, cy = sum(xs) * 0.25, sum(ys) * 0.25 * squash
    ys = [y * squash for y in ys]
    half_x, half_y = width * 0.5, height * 0.5 * squash
    reaches = cx - min(xs), max(xs) - cx, cy - min(ys), max(ys) - cy
    if not all(reach > 0 for reach in reaches):
        return None  # 0 or NaN: Python's division would raise an error, torch's gives infinities
    lengths = [
        half / reach for half, reach in zip((half_x, half_x, half_y, half_y), reaches, strict=True)
    ]
    share = min(max(share, 0.0), 1.0)
    f = share * min(lengths) + (1.0 - share) * max(lengths)
    f *= 1.0 / scale if scale > 0 else 1.0
    by_x, by_y = new[1] / width, new[0] / height
    cx, cy = -cx * f + half_x, (-cy * f + half_y) / squash
    rows = (f * by_x, 0.0, cx * by_x), (0.0, f / squash * by_y, cy * by_y), (0.0, 0.0, 1.0)
    return np.array(rows)


def _turn(R: Any) -> list[float] | None:
    """The rotation (9,) from None, a matrix (3, 3) or a rotation vector."""
    vector = None if R is None else plain_calls.numbers(R)
    if vector is None or vector.size != 3:
        return plain_calls.view_of(R, None)
    flat = vector.ravel().tolist()
    return turn_of(flat)[0] if all(map(math.isfinite, flat)) else None


def _known() -> Any:
    return plain_calls.kernels()


def _places(value: Any) -> np.ndarray | None:
    points = plain_calls.numbers(value, plain_calls.FLOATS)
    good = points is not None and points.ndim in (2, 3) and points.shape[-1] == 2
    return points if good else None


def _plain(places: Tensor, lens: Lens, *others: Tensor) -> tuple[Any, Any]:
    """The library's module, and positions (..., 2) as an array (N, 2); None if unsupported."""
    known, tensors = plain_calls.kernels(), (places, *lens.tensors(), *others)
    if known is None or places.dtype not in FLOATS or not plain_calls.are_plain(*tensors):
        return None, None
    return known, places.detach().reshape(-1, 2).numpy()


def _numbers(known: Any, lens: Lens) -> Any:
    """The lens as the library's `PlainLens`."""
    fx, fy, cx, cy, *k = (float(value.detach()) for value in lens.tensors())
    return known.PlainLens(lens.model, (fx, fy, cx, cy), tuple(k))
