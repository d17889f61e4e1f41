"""cv2.findHomography of one list of pairs, by numpy and the native library's descent.

Matrices are NaN if the points are not clearly in general position: the definition then decides by
torch's operations, or raises the error.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from warpkit.engine.backends import select_fits
from warpkit.engine.operators.four_points import four_points

SINGLE, WIDE = np.dtype(np.float32), np.dtype(np.float64)

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


NONE = np.full((3, 3), np.nan)


def fitted(
    src: np.ndarray, dst: np.ndarray, steps: int, threshold: float
) -> tuple[np.ndarray, np.ndarray]:
    """The matrix (3, 3) of n pairs of points, n times (x, y) in any shape, and the mask (n, 1)."""
    src, dst = (_rounded(points.reshape(-1, 2)) for points in (src, dst))
    every = np.ones((len(src), 1), np.uint8)
    if any(not np.isfinite(p).all() or (p == p[0]).all(0).any() for p in (src, dst)):
        return NONE, every
    if len(every) == 4:
        return _of_four(src, dst), every
    matrix = _of_many(src, dst, steps)
    with np.errstate(all="ignore"):
        x, y, w = matrix[:, :2] @ src.T + matrix[:, 2:]
        off = np.hypot(x / w - dst[:, 0], y / w - dst[:, 1])
    return matrix, (off <= reach(threshold)).astype(np.uint8)[:, None]


def _rounded(points: np.ndarray) -> np.ndarray:
    """Points (N, 2) rounded to float32, in float64."""
    if points.dtype != SINGLE:
        with np.errstate(over="ignore"):
            points = points.astype(SINGLE)
    return points.astype(WIDE)


def _of_four(src: np.ndarray, dst: np.ndarray) -> np.ndarray:
    """The matrix (3, 3) of pairs (4, 2)."""
    pairs = [torch.from_numpy(points[None]) for points in (src, dst)]
    found, alone = four_points(pairs[0], pairs[1], torch.float64)
    matrix = found[0].numpy()
    if not bool(alone) or _ends_in_zero(matrix, src, dst):
        return NONE
    return matrix / matrix[2, 2]


def _of_many(src: np.ndarray, dst: np.ndarray, steps: int) -> np.ndarray:
    """The matrix (3, 3) of more pairs (N, 2)."""
    middles = src.mean(0), dst.mean(0)
    near, sizes = zip(*map(_near_one, (src, dst), middles), strict=True)
    start = _direct(*near)
    pairs = [torch.from_numpy(points[None]) for points in near]
    entries = torch.from_numpy(start[None, :8])
    known = select_fits(entries, *pairs)
    if np.isnan(start[0]) or known is None:
        return NONE
    matrix = np.ones(9)
    matrix[:8] = known.homography(entries, *pairs, steps)[0].numpy()
    matrix = _between_pixels(matrix.reshape(3, 3), middles, sizes)
    if not np.isfinite(matrix).all() or _ends_in_zero(matrix, src, dst):
        return NONE
    return matrix / matrix[2, 2]


def _near_one(points: np.ndarray, middle: np.ndarray) -> tuple[np.ndarray, float]:
    """Points (N, 2) moved to 0 and scaled to about 1, and their divisor."""
    local = points - middle
    size = float(np.abs(local).mean())
    return local / size, size


def _direct(src: np.ndarray, dst: np.ndarray) -> np.ndarray:
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
        return np.full(9, np.nan)
    found = vectors[:, 0]
    if abs(np.linalg.det(found.reshape(3, 3))) <= FLAT or abs(found[8]) <= FLAT:
        return np.full(9, np.nan)
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
