"""Where the pixels of a result are read: planes and perspectives fitted to what ramps show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpkit.validation.programs.matrices import apply

Array = NDArray[Any]

BENT = 1.0
"""Pixels: a perspective that is nearer to a plane than this is not one."""


def affine(at: Sequence[Array], good: NDArray[np.bool_]) -> Array | None:
    """(2, 3): result pixel -> source position, from x and y (h, w) of each pixel; or None."""
    rows = [plane(one, good) for one in at]
    return None if any(row is None for row in rows) else np.array(rows)


def perspective(at: Sequence[Array], good: NDArray[np.bool_]) -> Array | None:
    """As `affine`, (3, 3), ending in 1; None if the places are on a plane, or on nothing known."""
    y, x = np.nonzero(good)
    if len(x) < 100:
        return None
    pixels = np.stack([x, y], 1).astype(float)
    positions = np.stack([one[good] for one in at], 1)
    matrix, near = np.eye(3), np.ones(len(x), bool)
    for room in (np.inf, np.inf, 6.0, 3.0, 3.0):
        if np.isfinite(room):
            near = np.abs(apply(matrix, pixels) - positions).max(1) < room
        if near.sum() < 0.5 * len(x):
            return None
        matrix = _weighted_fit(pixels[near], positions[near], matrix)
    bent = _weighted_fit(pixels[near], positions[near], np.eye(3), bends=False)
    flat = np.abs(apply(bent, pixels[near]) - apply(matrix, pixels[near])).max()
    return matrix if np.isfinite(matrix).all() and flat > BENT else None


def _weighted_fit(pixels: Array, positions: Array, before: Array, *, bends: bool = True) -> Array:
    """The matrix (3, 3) with the least distances of pixels (N, 2) to places (N, 2), to first order.

    before: one nearby, whose w makes equations into distances. bends: False leaves w at 1."""
    ones, zeros = np.ones((len(pixels), 1)), np.zeros((len(pixels), 3))
    point = np.concatenate([pixels, ones], 1)
    weight = 1 / (point @ before[2])
    parts, wanted = [], []
    for row, u in enumerate(positions.T):
        linear = [point, zeros] if row == 0 else [zeros, point]
        tail = [-u[:, None] * pixels] if bends else []
        parts.append(np.concatenate([*linear, *tail], 1) * weight[:, None])
        wanted.append(u * weight)
    design = np.concatenate(parts)
    scale = np.abs(design).max(0) + 1e-12
    solution = np.linalg.lstsq(design / scale, np.concatenate(wanted), rcond=None)[0] / scale
    return np.append(np.append(solution, [] if bends else [0.0, 0.0]), 1.0).reshape(3, 3)


def plane(at: Array, good: NDArray[np.bool_]) -> Array | None:
    """(a, b, c) with at = a x + b y + c, without the pixels that a border mirrors or repeats."""
    slopes = []
    for axis in (1, 0):
        step = min(8, at.shape[axis] // 4)
        both = good & np.roll(good, -step, axis)
        ends = np.roll(at, -step, axis) - at
        both = both.take(range(at.shape[axis] - step), axis)
        if both.sum() < 30:
            return None
        slopes.append(np.median(ends.take(range(at.shape[axis] - step), axis)[both]) / step)
    y, x = np.nonzero(good)
    rest = at[good] - slopes[0] * x - slopes[1] * y
    coefficients = np.array([*slopes, np.median(rest)])
    design = np.stack([x, y, np.ones_like(x)], 1).astype(float)
    for room in (6.0, 3.0, 3.0):
        near = np.abs(design @ coefficients - at[good]) < room
        if near.sum() < 30:
            return None
        coefficients = np.linalg.lstsq(design[near], at[good][near], rcond=None)[0]
    return coefficients
