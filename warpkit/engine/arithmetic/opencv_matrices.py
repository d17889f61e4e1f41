"""OpenCV's matrices to the last bit: its order of elimination, its float32 products.

OpenCV computes them on the CPU, each operation rounded separately and nothing fused. numpy does the
same for a whole batch. Versions 4.14 and 5.0.0 agree. On a division by zero they raise no error,
and neither does this module.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from warpkit.engine.arithmetic.opencv_null_space import null_vectors

TOO_SMALL = 100 * np.finfo(np.float64).eps
"""If a pivot is smaller, OpenCV calls a system singular."""
SOLVED = 1e-8
"""If the residual of a perspective's equations has at least this norm, they count as unsolved."""


HALF = np.float32(0.5)

Rows = tuple[tuple[Any, ...], ...]
Number = Any
"""A float or a numpy scalar, or an array of one number for each matrix of a batch."""


@np.errstate(all="ignore")
def matrices(formula: Callable[..., Rows], *values: np.ndarray) -> np.ndarray:
    """The matrices (..., r, c) of a formula of numbers, for arrays (...) of them."""
    rows = formula(*np.broadcast_arrays(*values))
    return np.stack([np.stack(row, -1) for row in rows], -2)


def rotation(x: Number, y: Number, angle: Number, scale: Number) -> Rows:
    """cv2.getRotationMatrix2D: a centre that float32 represents, angle in degrees, and scale."""
    cosine, sine = _turn(angle * (math.pi / 180))
    a, b = cosine * scale, sine * scale
    return (a, b, (1 - a) * x - b * y), (-b, a, b * x + (1 - a) * y)


def _turn(radians: Number) -> tuple[Number, Number]:
    """Cosines and sines of the C library: numpy's and torch's differ for some in the last bit."""
    if isinstance(radians, float):
        if not math.isfinite(radians):
            return math.nan, math.nan
        return math.cos(radians), math.sin(radians)
    pairs = np.array([_turn(value) for value in radians.ravel().tolist()]).reshape(-1, 2)
    return pairs[:, 0].reshape(radians.shape), pairs[:, 1].reshape(radians.shape)


def box_corners(x: Number, y: Number, width: Number, height: Number, angle: Number) -> Rows:
    """cv2.boxPoints: all numbers are float32, angle in degrees."""
    cosine, sine = _turn(_wide(angle) * math.pi / 180)
    a, b = np.float32(sine) * HALF, np.float32(cosine) * HALF
    ah, aw, bh, bw = a * height, a * width, b * height, b * width
    return (
        (x - ah - bw, y + bh - aw),
        (x + ah - bw, y - bh - aw),
        (x + ah + bw, y - bh + aw),
        (x - ah + bw, y + bh + aw),
    )


def inverse(a: Number, b: Number, c: Number, d: Number, e: Number, f: Number) -> Rows:
    """cv2.invertAffineTransform of the rows (a, b, c) and (d, e, f): zeros if singular.

    In float32, only the division and the shifts are computed in float64, and rounded once.
    """
    det = a * e - b * d
    if type(det) is float:
        per = 1 / det if det else 0.0
    else:
        per = np.where(det == 0, 0, 1 / _wide(det)).astype(det.dtype)
    a11, a12, a21, a22 = e * per, -b * per, -d * per, a * per
    return (a11, a12, _shift(a11, a12, c, f)), (a21, a22, _shift(a21, a22, c, f))


def _shift(p: Number, q: Number, x: Number, y: Number) -> Number:
    """-p x - q y, computed in float64."""
    if type(p) is float:
        return -p * x - q * y
    return (-_wide(p) * _wide(x) - _wide(q) * _wide(y)).astype(p.dtype)


def _wide(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float64)


@np.errstate(all="ignore")
def affine(src: np.ndarray, dst: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """cv2.getAffineTransform: src and dst (..., 3, 2) float32, their batches broadcast.

    Returns the matrix (..., 2, 3), zeros if OpenCV finds none, and whether it finds one, (...).
    """
    src, dst = np.broadcast_arrays(src, dst)
    system = np.zeros((*src.shape[:-2], 6, 7))
    for row, axis in ((0, 0), (1, 1)):  # the rows of x and y alternate
        system[..., row::2, 3 * axis : 3 * axis + 2] = src
        system[..., row::2, 3 * axis + 2] = 1
        system[..., row::2, 6] = dst[..., axis]
    solution, solved = _eliminate(system)
    return np.where(solved[..., None], solution, 0).reshape(*solved.shape, 2, 3), solved


@np.errstate(all="ignore")
def perspective(src: np.ndarray, dst: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """cv2.getPerspectiveTransform: src and dst (..., 4, 2) float32, their batches broadcast.

    Returns the matrix (..., 3, 3), and whether its last entry is 1, (...). Otherwise the equations
    for that are singular, or not solved to 1e-8; then the matrix is OpenCV's null vector of norm 1.
    """
    src, dst = np.broadcast_arrays(src, dst)
    system = np.zeros((*src.shape[:-2], 8, 9))
    for axis in (0, 1):
        rows = system[..., 4 * axis : 4 * axis + 4, :]
        rows[..., 3 * axis : 3 * axis + 2] = src
        rows[..., 3 * axis + 2] = 1
        rows[..., 6:8] = -(src * dst[..., axis, None])  # float32 products
        rows[..., 8] = dst[..., axis]
    solution, solved = _eliminate(system.copy())
    terms = system[..., :8] * solution[..., None, :]
    four = terms[..., :4] + terms[..., 4:]  # the order of 5.0.0; 4.14 uses another
    sums = four[..., 0] + four[..., 1] + four[..., 2] + four[..., 3]
    solved &= np.linalg.norm(sums - system[..., 8], axis=-1) < SOLVED
    entries = np.concatenate((solution, np.ones((*solved.shape, 1))), -1)
    system[..., 8] *= -1
    if not solved.all():
        finite = np.isfinite(system).all((-1, -2))
        entries[~solved & ~finite] = math.nan
        entries[~solved & finite] = null_vectors(system[~solved & finite])
    return entries.reshape(*solved.shape, 3, 3), solved


def _eliminate(system: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian elimination of (..., n, n + 1), in place, with pivots by columns.

    Returns the solutions (..., n), and whether all pivots were large enough, (...).
    """
    n = system.shape[-2]
    a = system.reshape(-1, n, n + 1)
    item, solved = np.arange(len(a)), np.ones(len(a), bool)
    for i in range(n):
        pivot = i + np.abs(a[:, i:, i]).argmax(1)  # the first one if several are largest
        first = a[item, pivot]
        a[item, pivot] = a[:, i]
        a[:, i] = first
        solved &= ~(np.abs(a[:, i, i]) < TOO_SMALL)
        factor = a[:, i + 1 :, i] * (-1 / a[:, i, i])[:, None]
        a[:, i + 1 :, i + 1 :] += factor[..., None] * a[:, None, i, i + 1 :]
    x = np.zeros((len(a), n))
    for i in reversed(range(n)):
        rest = a[:, i, n].copy()
        for k in range(i + 1, n):
            rest -= a[:, i, k] * x[:, k]
        x[:, i] = rest / a[:, i, i]
    batch = system.shape[:-2]
    return x.reshape(*batch, n), solved.reshape(batch)
