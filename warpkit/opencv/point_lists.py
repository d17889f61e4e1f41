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

from warpkit.engine.arithmetic.guarantees import installed_arithmetic
from warpkit.engine.arithmetic.opencv_angles import block_of
from warpkit.engine.arithmetic.opencv_lenses import Criteria, tilts
from warpkit.engine.definitions.lens_models import TILTED
from warpkit.opencv import jacobians
from warpkit.opencv.cameras import is_nothing, point_rows
from warpkit.opencv.door import as_array

TILT, UNTILT, MATRIX, ERROR, LENS_NUMBERS = slice(18, 27), slice(27, 36), slice(36, 45), 45, 46
"""Places in `LensNumbers`, which begin with fx, fy, cx, cy and the coefficients; their number."""

POSE, EXTRA, PROJECTION_NUMBERS = slice(45, 60), 60, 61
"""Places in `ProjectionNumbers`, which begin likewise: vector, matrix and shift, and the last."""
TILTING = slice(27, 45)

FLOATS = (torch.float32, torch.float64)
"""The types of points that kernels read."""

IDENTITY = np.eye(3)
UPRIGHT = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
NO_MATRIX = (0.0,) * 9

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


def lens_numbers(camera: Any, k: Any, count: int, size: int = LENS_NUMBERS) -> np.ndarray:
    """The numbers of a camera (3, 3) and its coefficients, with zeros for what follows them."""
    numbers = np.zeros(size)
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

    channels = len(m) - 1
    call = caller("moved_points", as_array(src).dtype, channels=channels)
    points, matrix = dense(src), dense(m, np.float64)

    def run(src: Any, m: Any) -> np.ndarray:
        shape = src.shape[:2] if channels == 1 else src.shape
        return call(points(src), matrix(m), shape, prod(src.shape) // channels)

    return run


def undistorting(src: Any, camera: Any, k: Any, R: Any, P: Any, criteria: Criteria) -> Run:
    """cv2.undistortPoints of src in any form of cv2: (N, 1, 2)."""
    from warpkit.engine.cpu.points import caller, codes_of

    points, count, dtype = rows(src, 2), count_of(k), as_array(src).dtype
    projects, error = R is not None or P is not None, criteria.error or 0.0
    codes = codes_of(criteria) | {"projects": int(projects)}
    task = "undistorted_points"
    straight, tilted = (caller(task, dtype, coefficients=m, **codes) for m in (0, TILTED))

    def run(src: Any, camera: Any, k: Any, R: Any, P: Any) -> np.ndarray:
        numbers, call = lens_numbers(camera, k, count), straight
        if count == TILTED and any(angles := numbers[16:18].tolist()):
            there, back = tilts(*angles)
            numbers[TILT], numbers[UNTILT], call = there.flatten(), back.flatten(), tilted
        if projects:
            numbers[MATRIX] = view_of(R, P).flatten()
        numbers[ERROR], n = error, prod(src.shape) // 2
        return call(points(src), numbers, (n, 1, 2), n)

    return run


def fisheye_undistorting(src: Any, K: Any, D: Any, R: Any, P: Any, criteria: Criteria) -> Run:
    """cv2.fisheye.undistortPoints of src (..., 2): of its shape."""
    from warpkit.engine.cpu.points import caller, codes_of

    points, count, error = dense(src), count_of(D), criteria.error or 0.0
    codes = codes_of(criteria) | {"projects": int(R is not None or P is not None)}
    call = caller("fisheye_found", as_array(src).dtype, **codes)

    def run(src: Any, K: Any, D: Any, R: Any, P: Any) -> np.ndarray:
        numbers = lens_numbers(K, D, count)
        if R is not None or P is not None:
            numbers[MATRIX] = view_of(R, P).flatten()
        numbers[ERROR] = error
        return call(points(src), numbers, src.shape, prod(src.shape) // 2)

    return run


def fisheye_distorting(src: Any, K: Any, D: Any, none: None, skew: float) -> Run:
    """cv2.fisheye.distortPoints of directions (..., 2): of their shape."""
    from warpkit.engine.cpu.points import caller

    points, count = dense(src), count_of(D)
    call = caller("fisheye_shown", as_array(src).dtype)

    def run(src: Any, K: Any, D: Any, none: None) -> np.ndarray:
        numbers = lens_numbers(K, D, count)
        numbers[ERROR] = skew
        return call(points(src), numbers, src.shape, prod(src.shape) // 2)

    return run


def projecting(
    scene: Any,
    rvec: Any,
    tvec: Any,
    camera: Any,
    k: Any,
    model: str,
    extra: float,
    vector_of: Callable[[np.ndarray], Any],
) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """cv2.projectPoints, or cv2.fisheye's: pixels, and their Jacobian.

    extra: for a fisheye the skew, for other lenses a fixed fx / fy, or 0; vector_of: the rotation
    vector of a matrix (3, 3).
    """
    from warpkit.engine.cpu.points import projector

    fisheye, count = model == "fisheye", count_of(k)
    points = dense(scene) if fisheye else rows(scene, 3)
    columns, task = (15, "fisheye_projected") if fisheye else (10 + count, "projected")
    turned = tuple(rvec.shape) == (3, 3)
    codes = {"coefficients": 4 if fisheye else count, "projects": int(turned)}
    call = projector(task, as_array(scene).dtype, columns, **codes)

    def run(scene: Any, rvec: Any, tvec: Any, camera: Any, k: Any) -> tuple[np.ndarray, np.ndarray]:
        numbers = lens_numbers(camera, k, count, PROJECTION_NUMBERS)
        if extra and not fisheye:
            numbers[0] = numbers[1] * extra
        if count == TILTED:
            numbers[TILT], numbers[TILTING] = _tilt(*numbers[16:18].tolist())
        turn, vector = NO_MATRIX, as_array(rvec)
        if turned:
            vector = np.array(vector, np.float64)
            turn, vector = vector.ravel(), vector_of(vector)
        numbers[POSE] = (*vector.ravel().tolist(), *turn, *as_array(tvec).ravel().tolist())
        numbers[EXTRA], n = extra, prod(scene.shape) // 3
        return call(points(scene), numbers, (*scene.shape[:-1], 2) if fisheye else (n, 1, 2), n)

    return run


def _tilt(tx: float, ty: float) -> tuple[Any, Any]:
    """The matrix (9,) of a tilted sensor, and its derivatives (18,) by both angles."""
    tilt = tilts(tx, ty)[0].flatten() if tx or ty else UPRIGHT
    return tilt, np.concatenate([slope.flatten().numpy() for slope in jacobians.tilting(tx, ty)])


def in_polar(
    first: Any, second: Any, task: str, shape: tuple[int, ...], degrees: bool
) -> Callable[[Any, Any], tuple[np.ndarray, np.ndarray, bool]]:
    """cv2.cartToPolar or polarToCart, by its task: two of a shape, and whether angles are too
    large; first may be None.
    """
    from warpkit.engine.cpu.points import polar_caller

    at_once = block_of(tuple(second.shape), installed_arithmetic())
    call = polar_caller(task, shape, as_array(second).dtype, at_once, degrees)
    other = dense(second)
    if first is None:  # or an empty array, which nobody reads
        return lambda first, second: call(None, other(second))
    one = dense(first)
    return lambda first, second: call(one(first), other(second))
