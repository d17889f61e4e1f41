"""Calls the native library with plain numbers, without making tensors.

Plain arguments are arrays, and CPU tensors without derivatives. Each function returns None if an
argument is not plain or not valid: its caller then raises the error, or computes by torch
operations, whose gradients are those of the exact formulas.
"""

from __future__ import annotations

import math
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit.camera import optimal
from warpkit.core.lasting import lasting
from warpkit.core.tracing import is_eager, wants_gradient
from warpkit.engine.arithmetic.opencv_lenses import FIVE_STEPS
from warpkit.engine.definitions import lens_models
from warpkit.engine.definitions.lens_models import COUNTS, Lens
from warpkit.opencv import door, point_lists
from warpkit.opencv.cameras import is_nothing
from warpkit.opencv.door import written
from warpkit.opencv.layout import has_tensor
from warpkit.opencv.point_lists import IDENTITY, Run

FLOATS = {np.dtype(np.float32), np.dtype(np.float64)}
NUMBERS = FLOATS | {np.dtype(np.int32), np.dtype(np.int64)}
OF_TENSORS = {torch.float32, torch.float64, torch.int32, torch.int64}
"""`NUMBERS` as tensors have them; numpy lacks others of torch's types."""


def kernels() -> ModuleType | None:
    """The native library's maps and points, if it is available."""
    if not door.has_library():
        return None
    from warpkit.engine.cpu import maps

    return maps


def are_plain(*tensors: Tensor, followed: bool = True) -> bool:
    """Whether tensors hold numbers on the CPU, and if `followed`, need no derivative."""
    if any(tensor.device.type != "cpu" for tensor in tensors) or not is_eager(*tensors):
        return False
    return not (followed and wants_gradient(*tensors))


def numbers(value: Any, types: set[np.dtype] = NUMBERS) -> np.ndarray | None:
    """The numbers of an array or a tensor, of one of the types."""
    if isinstance(value, Tensor):
        if value.dtype not in OF_TENSORS or value.layout != torch.strided or not are_plain(value):
            return None
        value = value.detach().numpy()
    return value if type(value) is np.ndarray and value.dtype in types else None


def given(values: tuple[Any, ...], result: np.ndarray, output: Any = None) -> Any:
    """A tensor if one is among the arguments, else an array, written to `output` if that fits."""
    return torch.from_numpy(result) if has_tensor(*values) else written(output, result)


@lru_cache(maxsize=64)
@lasting
def _border(size: tuple[int, int], count: int) -> tuple[np.ndarray, Run]:
    """The points of an image's border, and `point_lists.undistorting` of so many coefficients."""
    points, k = optimal.border(size, torch.device("cpu")).numpy(), np.zeros(count)
    return points, point_lists.undistorting(points, IDENTITY, k, None, None, FIVE_STEPS)


def optimal_matrix(
    camera: Any, k: Any, size: tuple[int, int], alpha: Any, new: tuple[int, int]
) -> tuple[np.ndarray, list[float]] | None:
    """cv2.getOptimalNewCameraMatrix: the matrix, and the inner rectangle's sides in pixels."""
    matrix, k = numbers(camera), np.zeros(COUNTS["brown"][0]) if is_nothing(k) else numbers(k)
    if kernels() is None or matrix is None or matrix.shape != (3, 3):
        return None
    if k is None or k.size not in COUNTS["brown"] or k.size != max(k.shape):
        return None
    if not isinstance(alpha, (int, float)) or not abs(alpha) < np.inf:
        return None
    border, undistort = _border(size, k.size)
    directions = undistort(border, matrix, k, None, None)[:, 0]
    height, width = float(new[0] - 1), float(new[1] - 1)
    lenses = []
    for left, top, right, bottom in _rectangles(directions):
        if right == left or bottom == top:
            return None  # Python's division would raise an error, torch's gives infinities
        fx, fy = width / (right - left), height / (bottom - top)
        lenses.append((fx, fy, -fx * left, -fy * top))
    fx, fy, cx, cy = (a * (1 - alpha) + b * alpha for a, b in zip(*lenses, strict=True))
    matrix = np.array(((fx, 0.0, cx), (0.0, fy, cy), (0.0, 0.0, 1.0)))
    x, y = directions.T
    with np.errstate(all="ignore"):
        a, b, w = (row[0] * x + row[1] * y + row[2] for row in matrix)
        per = 1 / w
        inner, _ = _rectangles(np.stack((a * per, b * per), axis=-1))
    return matrix, inner


def _rectangles(points: np.ndarray) -> tuple[list[float], list[float]]:
    """As `camera.optimal.rectangles` of (36, 2)."""
    n, farthest = optimal.SIDE_POINTS, optimal.FARTHEST
    xs, ys = points.T.tolist()
    sides = xs[:n], ys[n : 2 * n], xs[2 * n : 3 * n], ys[3 * n :]

    if math.isnan(sum(xs) + sum(ys)):  # NaN does not count
        xs, ys, *sides = ([v for v in values if v == v] for values in (xs, ys, *sides))

    def first(values: list[float]) -> float:
        return min(*values, farthest, farthest)

    def last(values: list[float]) -> float:
        return max(*values, -farthest, -farthest)

    inner = [*map(last, sides[:2]), *map(first, sides[2:])]
    return inner, [first(xs), first(ys), last(xs), last(ys)]


def lens_map(lens: Lens, view: Tensor, size: tuple[int, int], kind: str) -> Any:
    """Two arrays, of which the second may be None: a map of one of the kinds of `cpu.maps`.

    view (3, 3): as in `camera.maps.undistorting`.
    """
    known, tensors = kernels(), (view, *lens.tensors())
    if known is None or not are_plain(*tensors, followed=kind != "fixed"):
        return None
    from warpkit.engine.cpu.inverse import invert

    with torch.no_grad():
        tilted = len(lens.k) == known.MOST_COEFFICIENTS
        tilt = lens_models.tilt(lens).flatten().tolist() if tilted else known.NO_MATRIX
        to_ray = invert(view).ravel().tolist()
    camera, k = (
        tuple(float(v.detach()) for v in part)
        for part in ((lens.fx, lens.fy, lens.cx, lens.cy), lens.k)
    )
    return known.lens_map(known.PlainLens(lens.model, camera, k, tilt), to_ray, size, kind)
