"""Plans of lists of points by the native library, from arrays and tensors of numbers.

Each function takes a call's arrays, and returns a function of arrays of their kind.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.arithmetic.opencv_lenses import Criteria, tilts
from warpkit.engine.definitions.lens_models import TILTED
from warpkit.opencv.cameras import is_nothing, point_rows
from warpkit.opencv.door import as_array

TILT, UNTILT, MATRIX, ERROR, LENS_NUMBERS = slice(18, 27), slice(27, 36), slice(36, 45), 45, 46
"""Places in `LensNumbers`, which begin with fx, fy, cx, cy and the coefficients; their number."""

IDENTITY = np.eye(3)

Run = Callable[..., np.ndarray]
Read = Callable[[Any], Any]
"""Returns an array or a tensor whose numbers are dense."""


def dense(like: Any, dtype: Any = None) -> Read:
    """Reads arrays or tensors as `like` is, in a type, or in theirs."""
    here = like.is_contiguous() if isinstance(like, Tensor) else like.flags.c_contiguous
    if here and (dtype is None or as_array(like).dtype == dtype):
        return _unchanged
    return lambda value: np.ascontiguousarray(as_array(value), dtype)


def _unchanged(value: Any) -> Any:
    return value


def rows(like: Any, n: int) -> Read:
    """Reads points (N, n) in any form of cv2."""
    array = as_array(like)
    if array.flags.c_contiguous and point_rows(array, n).flags.c_contiguous:
        return _unchanged
    return lambda value: np.ascontiguousarray(point_rows(as_array(value), n))


def count_of(k: Any) -> int:
    """The number of coefficients."""
    return 0 if is_nothing(k) else prod(k.shape)


def lens_numbers(camera: Any, k: Any, count: int) -> np.ndarray:
    """The numbers of a camera (3, 3) and its coefficients, with zeros for what a tilt needs."""
    numbers = np.zeros(LENS_NUMBERS)
    (fx, _, cx), (_, fy, cy), _ = as_array(camera).tolist()
    numbers[:4] = fx, fy, cx, cy
    if count:
        numbers[4 : 4 + count] = as_array(k).ravel()
    return numbers


def view_of(R: Any, P: Any) -> Any:
    """The matrix (3, 3) that multiplies directions: R or None, then P (3, 3) or (3, 4) or None."""
    turn = _wide(IDENTITY if R is None else R)
    # torch's product: numpy's may round differently
    return turn if P is None else _wide(P)[:, :3] @ turn


def _wide(matrix: Any) -> Tensor:
    return torch.from_numpy(np.array(as_array(matrix), np.float64))


def transforming(src: Any, m: Any, arithmetic: str) -> Run:
    """cv2.transform of src (H, W, C) or (H, W) by m (R, C) or (R, C + 1)."""
    from warpkit.engine.cpu.transform import caller

    array = as_array(src)
    strides = tuple(step // array.itemsize for step in array.strides)
    call = caller(array.shape, strides, array.dtype, tuple(m.shape), arithmetic)
    points, matrix = dense(src), dense(m, np.float64)
    return lambda src, m: call(points(src), matrix(m))


def perspective(src: Any, m: Any) -> Run:
    """cv2.perspectiveTransform of src (H, W, C) or (H, W) by m (C + 1, C + 1)."""
    from warpkit.engine.cpu.points import caller

    array, channels = as_array(src), len(m) - 1
    shape = src.shape[:2] if channels == 1 else src.shape
    count = array.size // channels
    call = caller("moved_points", shape, count, array.dtype, channels=channels)
    points, matrix = dense(src), dense(m, np.float64)
    return lambda src, m: call(points(src), matrix(m))


def undistorting(src: Any, camera: Any, k: Any, R: Any, P: Any, criteria: Criteria) -> Run:
    """cv2.undistortPoints of src in any form of cv2: (N, 1, 2)."""
    from warpkit.engine.cpu.points import caller, codes_of

    points, count, dtype = rows(src, 2), count_of(k), as_array(src).dtype
    n, projects, error = prod(src.shape) // 2, R is not None or P is not None, criteria.error or 0.0
    codes = codes_of(criteria) | {"projects": int(projects)}
    task = "undistorted_points"
    straight, tilted = (
        caller(task, (n, 1, 2), n, dtype, coefficients=m, **codes) for m in (0, TILTED)
    )

    def run(src: Any, camera: Any, k: Any, R: Any, P: Any) -> np.ndarray:
        numbers, call = lens_numbers(camera, k, count), straight
        if count == TILTED and any(angles := numbers[16:18].tolist()):
            there, back = tilts(*angles)
            numbers[TILT], numbers[UNTILT], call = there.flatten(), back.flatten(), tilted
        if projects:
            numbers[MATRIX] = view_of(R, P).flatten()
        numbers[ERROR] = error
        return call(points(src), numbers)

    return run


def fisheye_undistorting(src: Any, K: Any, D: Any, R: Any, P: Any, criteria: Criteria) -> Run:
    """cv2.fisheye.undistortPoints of src (..., 2): of its shape."""
    from warpkit.engine.cpu.points import caller, codes_of

    points, count, error = dense(src), count_of(D), criteria.error or 0.0
    codes = codes_of(criteria) | {"projects": int(R is not None or P is not None)}
    dtype, n = as_array(src).dtype, prod(src.shape) // 2
    call = caller("fisheye_found", tuple(src.shape), n, dtype, **codes)

    def run(src: Any, K: Any, D: Any, R: Any, P: Any) -> np.ndarray:
        numbers = lens_numbers(K, D, count)
        if R is not None or P is not None:
            numbers[MATRIX] = view_of(R, P).flatten()
        numbers[ERROR] = error
        return call(points(src), numbers)

    return run


def fisheye_distorting(src: Any, K: Any, D: Any, none: None, skew: float) -> Run:
    """cv2.fisheye.distortPoints of directions (..., 2): of their shape."""
    from warpkit.engine.cpu.points import caller

    points, count = dense(src), count_of(D)
    shape, n = tuple(src.shape), prod(src.shape) // 2
    call = caller("fisheye_shown", shape, n, as_array(src).dtype)

    def run(src: Any, K: Any, D: Any, none: None) -> np.ndarray:
        numbers = lens_numbers(K, D, count)
        numbers[ERROR] = skew
        return call(points(src), numbers)

    return run
