"""OpenCV's matrices to the last bit: its order of elimination, its float32 products.

OpenCV computes them on the CPU, each operation rounded separately and nothing fused. numpy does the
same for a whole batch. Versions 4.14 and 5.0.0 agree. On a division by zero they raise no error,
and neither does this module.
"""

from __future__ import annotations

import math

import numpy as np

from warpkit.engine.arithmetic.opencv_null_space import null_vectors

TOO_SMALL = 100 * np.finfo(np.float64).eps
"""If a pivot is smaller, OpenCV calls a system singular."""
SOLVED = 1e-8
"""If the residual of a perspective's equations has at least this norm, they count as unsolved."""


@np.errstate(all="ignore")
def rotation(center: np.ndarray, angle: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """cv2.getRotationMatrix2D: center (..., 2) float32, angle (...) degrees and scale (...).

    Returns (..., 2, 3). Cosine and sine come from the C library: numpy's and torch's vectorised
    ones differ in the last bit for some angles.
    """
    x, y, angle, scale = np.broadcast_arrays(
        center[..., 0].astype(np.float64), center[..., 1].astype(np.float64), angle, scale
    )
    radians = angle * (math.pi / 180)
    a, b = (_by_c(f, radians) * scale for f in (math.cos, math.sin))
    rows = ((a, b, (1 - a) * x - b * y), (-b, a, b * x + (1 - a) * y))
    return np.stack([np.stack(row, -1) for row in rows], -2)


def _by_c(function: object, values: np.ndarray) -> np.ndarray:
    results = [function(v) if math.isfinite(v) else math.nan for v in values.ravel().tolist()]  # pyright: ignore
    return np.array(results, np.float64).reshape(values.shape)


@np.errstate(all="ignore")
def box_corners(center: np.ndarray, size: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """cv2.boxPoints: center and size (..., 2), angle (...) degrees, all float32; returns (..., 4,
    2)."""
    x, y, width, height, angle = np.broadcast_arrays(
        center[..., 0], center[..., 1], size[..., 0], size[..., 1], angle
    )
    radians = angle.astype(np.float64) * math.pi / 180
    b, a = (_by_c(f, radians).astype(np.float32) * np.float32(0.5) for f in (math.cos, math.sin))
    ah, aw, bh, bw = a * height, a * width, b * height, b * width
    corners = (
        (x - ah - bw, y + bh - aw),
        (x + ah - bw, y - bh - aw),
        (x + ah + bw, y - bh + aw),
        (x - ah + bw, y + bh + aw),
    )
    return np.stack([np.stack(corner, -1) for corner in corners], -2)


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


@np.errstate(all="ignore")
def inverse(matrix: np.ndarray) -> np.ndarray:
    """cv2.invertAffineTransform: (..., 2, 3), in float32 or float64; zeros if singular.

    In float32, only the division and the shifts are computed in float64, and rounded once.
    """
    (a, b, c), (d, e, f) = (np.moveaxis(row, -1, 0) for row in np.moveaxis(matrix, -2, 0))
    det = a * e - b * d
    per = np.where(det == 0, 0, 1 / det.astype(np.float64)).astype(matrix.dtype)
    a11, a12, a21, a22 = e * per, -b * per, -d * per, a * per
    doubles = [value.astype(np.float64) for value in (a11, a12, a21, a22, c, f)]
    w11, w12, w21, w22, x, y = doubles
    shifts = (v.astype(matrix.dtype) for v in (-w11 * x - w12 * y, -w21 * x - w22 * y))
    rows = ((a11, a12, next(shifts)), (a21, a22, next(shifts)))
    return np.stack([np.stack(row, -1) for row in rows], -2)
