"""The null vector from OpenCV's own singular value decomposition, to the last bit.

cv::SVDecomp of a small matrix rotates pairs of its columns (one-sided Jacobi, at most 30 sweeps)
until all are orthogonal. Each operation is rounded separately, and sums go from the first term to
the last. numpy does the same for a whole batch; np.cumsum adds in that order.
"""

from __future__ import annotations

import numpy as np

RIGHT = 10 * np.finfo(np.float64).eps
"""Columns whose cosine is at most this are orthogonal."""
TINY = np.finfo(np.float64).tiny
"""A vector of at most this length has no direction; OpenCV draws a random one."""
SWEEPS = 30
SEED, FACTOR = 0x12345678, 4164903690
"""OpenCV's generator: its low 32 bits times the factor, plus its high ones."""


@np.errstate(all="ignore")
def null_vectors(systems: np.ndarray) -> np.ndarray:
    """The last left singular vectors (N, n) of A^T A, for homogeneous equations (N, m, n)."""
    squares = _sum(systems[..., :, None] * systems[..., None, :], 1) + 0.0
    rows = squares.swapaxes(1, 2).copy()  # its columns
    _turn(rows)
    lengths = np.sqrt(_sum(rows * rows))
    item = np.arange(len(rows))
    for i in range(rows.shape[1] - 1):  # sorts by length, stably
        at = i + lengths[:, i:].argmax(1)
        rows[item, at], rows[:, i] = rows[:, i].copy(), rows[item, at]
        lengths[item, at], lengths[:, i] = lengths[:, i].copy(), lengths[item, at]
    vectors = rows[:, -1] * (1 / lengths[:, -1:])
    for i in np.flatnonzero(lengths[:, -1] <= TINY):
        vectors[i] = _drawn(rows[i], lengths[i])
    return vectors


def _sum(terms: np.ndarray, axis: int = -1) -> np.ndarray:
    """Sums from the first term to the last; np.sum would add in pairs."""
    return np.cumsum(terms, axis).take(-1, axis)


def _turn(rows: np.ndarray) -> None:
    """Rotate pairs of rows (N, n, n) in place until all are orthogonal."""
    squares = _sum(rows * rows)
    n = rows.shape[1]
    for _ in range(SWEEPS):
        changed = False
        for i in range(n - 1):
            for j in range(i + 1, n):
                p, a, b = _sum(rows[:, i] * rows[:, j]), squares[:, i], squares[:, j]
                at = np.flatnonzero(np.abs(p) > RIGHT * np.sqrt(a * b))
                if len(at) == 0:
                    continue
                changed = True
                c, s = _rotation(2 * p[at], a[at] - b[at])
                first, second = rows[at, i], rows[at, j]
                rows[at, i] = c * first + s * second
                rows[at, j] = -s * first + c * second
                for k in (i, j):
                    squares[at, k] = _sum(rows[at, k] ** 2)
        if not changed:
            return


def _rotation(p: np.ndarray, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cosine and sine (N, 1) for twice a product p and the difference beta of two squares."""
    large, small = (f(np.abs(p), np.abs(beta)) for f in (np.maximum, np.minimum))
    gamma = large * np.sqrt(1 + np.square(small / large))
    larger = np.sqrt(np.where(beta < 0, (gamma - beta) * 0.5 / gamma, (gamma + beta) / (gamma * 2)))
    smaller = p / (gamma * larger * 2)
    c, s = np.where(beta < 0, smaller, larger), np.where(beta < 0, larger, smaller)
    return c[:, None], s[:, None]


def _drawn(rows: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The last row (n,) if lengths are 0: random signs, made orthogonal to the rows before."""
    n, state = len(rows), SEED
    rows = rows.copy()
    for i in range(n):
        length = lengths[i]
        for _ in range(100):
            if length > TINY:
                break
            for k in range(n):
                state = (state & 0xFFFFFFFF) * FACTOR + (state >> 32)
                rows[i, k] = 1 / n if state & 256 else -1 / n
            for _ in range(2):
                for j in range(i):
                    rows[i] = rows[i] - _sum(rows[i] * rows[j]) * rows[j]
                    total = _sum(np.abs(rows[i]))
                    rows[i] *= 1 / total if total > 100 * RIGHT else 0.0
            length = np.sqrt(_sum(rows[i] * rows[i]))
        rows[i] *= 1 / length if length > TINY else 0.0
    return rows[-1]
