"""cv2.findHomography of plain points, by numpy and the native library's descent.

Each function returns None if an argument is not plain or not valid, or if the points are not
clearly in general position: the caller then decides by torch's operations, or raises the error.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from warpkit.engine.backends import select_fits
from warpkit.engine.operators.four_points import four_points
from warpkit.opencv import plain_calls

LEAST = 2.0**-23
"""A last entry up to this size, in the matrix that cv2 solves for, counts as 0."""

GAP = 1e-8
"""The least distance of the two smallest eigenvalues, as a part of the largest: rounding then moves
the eigenvector by at most 1e-7."""

FLAT = 1e-9
"""If the determinant of a matrix of norm 1 is at most this, the points may be collinear."""


def reach(threshold: float) -> float:
    """The distance up to which the mask counts a pair."""
    return threshold if threshold > 0 else 3.0


def _rounded(value: Any, count: int | None) -> np.ndarray | None:
    """Points (N, 2) in float64, rounded to float32: N is `count`, or any number above 4."""
    points = None if torch.compiler.is_compiling() else plain_calls.numbers(value)
    if points is None or points.ndim not in (2, 3) or points.shape[-1] != 2:
        return None
    if points.ndim == 3 and 1 not in points.shape[:2]:
        return None
    n = points.size // 2
    if n != count if count else n <= 4:
        return None
    with np.errstate(over="ignore"):
        rounded = points.reshape(n, 2).astype(np.float32).astype(np.float64)
    if not np.isfinite(rounded).all() or (rounded == rounded[0]).all(0).any():
        return None
    return rounded


def _as_array(points: Any) -> Any:
    """A list as an array: both must give the same bits."""
    if not isinstance(points, (list, tuple)):
        return points
    try:
        return np.asarray(points)
    except (RuntimeError, TypeError, ValueError):
        return None


def of_four(src: Any, dst: Any) -> np.ndarray | None:
    """The matrix (3, 3) of four pairs, if they have just one."""
    first, second = _rounded(src, 4), _rounded(dst, 4)
    if first is None or second is None:
        return None
    pairs = [torch.from_numpy(points[None]) for points in (first, second)]
    found, alone = four_points(pairs[0], pairs[1], torch.float64)
    matrix = found[0].numpy()
    if not bool(alone) or _ends_in_zero(matrix, first, second):
        return None
    return matrix / matrix[2, 2]


def of_many(
    src: Any, dst: Any, steps: int, threshold: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """The matrix (3, 3) of more pairs, and the mask (N, 1), uint8, of those within `threshold`."""
    first, second = (_rounded(_as_array(points), None) for points in (src, dst))
    if first is None or second is None or first.shape != second.shape:
        return None
    middles = first.mean(0), second.mean(0)
    near, sizes = zip(*map(_near_one, (first, second), middles), strict=True)
    start = _direct(*near)
    if start is None:
        return None
    pairs = [torch.from_numpy(points[None]) for points in near]
    entries = torch.from_numpy(start[None, :8])
    if (known := select_fits(entries, *pairs)) is None:
        return None
    matrix = np.ones(9)
    matrix[:8] = known.homography(entries, *pairs, steps)[0].numpy()
    matrix = _between_pixels(matrix.reshape(3, 3), middles, sizes)
    if not np.isfinite(matrix).all() or _ends_in_zero(matrix, first, second):
        return None
    matrix /= matrix[2, 2]
    with np.errstate(all="ignore"):
        x, y, w = matrix[:, :2] @ first.T + matrix[:, 2:]
        off = np.hypot(x / w - second[:, 0], y / w - second[:, 1])
    return matrix, (off <= reach(threshold)).astype(np.uint8)[:, None]


def _near_one(points: np.ndarray, middle: np.ndarray) -> tuple[np.ndarray, float]:
    """Points (N, 2) moved to 0 and scaled to about 1, and their divisor."""
    local = points - middle
    size = float(np.abs(local).mean())
    return local / size, size


def _direct(src: np.ndarray, dst: np.ndarray) -> np.ndarray | None:
    """The normalised direct linear transform of src and dst (N, 2), about 0: (9,), the last 1.

    As `geometry.fits.perspective`, by the eigenvector of the squared equations: the start of a
    descent.
    """
    scales = [math.sqrt(2) / float(np.hypot(*points.T).mean()) for points in (src, dst)]
    x, y = (points * scale for points, scale in zip((src, dst), scales, strict=True))
    equations = np.zeros((2, len(src), 9))
    equations[0, :, :2], equations[0, :, 2] = x, 1
    equations[1, :, 3:6] = equations[0, :, :3]
    equations[:, :, 6:] = -y.T[:, :, None] * equations[0, :, :3]
    rows = equations.reshape(-1, 9)
    sizes, vectors = np.linalg.eigh(rows.T @ rows)
    if not sizes[1] - sizes[0] > GAP * sizes[8]:
        return None
    found = vectors[:, 0]
    if abs(np.linalg.det(found.reshape(3, 3))) <= FLAT or abs(found[8]) <= FLAT:
        return None
    inner, outer = scales
    per = (1 / outer) * np.array((inner, inner, 1.0))
    factors = np.concatenate((per, per, (inner, inner, 1.0)))
    return found * factors / found[8]


def _between_pixels(
    matrix: np.ndarray, middles: tuple[np.ndarray, np.ndarray], sizes: tuple[float, float]
) -> np.ndarray:
    """A matrix (3, 3) between such points, converted to one between pixels."""
    rows = matrix.copy()
    rows[:, :2] /= sizes[0]
    rows[:, 2] -= rows[:, :2] @ middles[0]
    rows[:2] = rows[:2] * sizes[1] + middles[1][:, None] * rows[2]
    return rows


def _ends_in_zero(matrix: np.ndarray, src: np.ndarray, dst: np.ndarray) -> bool:
    """Whether cv2 takes the last entry of the matrix (3, 3) for src and dst (N, 2) as 0."""
    middles = src.mean(0), dst.mean(0)
    spreads = np.abs(src - middles[0]).mean(0), np.abs(dst - middles[1]).mean(0)
    rows = np.empty((3, 3))
    rows[:, :2] = matrix[:, :2] * spreads[0]
    rows[:, 2] = matrix[:, :2] @ middles[0] + matrix[:, 2]
    rows[:2] = (rows[:2] - middles[1][:, None] * rows[2]) / spreads[1][:, None]
    return abs(float(matrix[2, 2])) <= LEAST * math.sqrt(float(np.square(rows).sum()))
