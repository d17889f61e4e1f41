"""Splines in plain numpy, as a linear system: a second definition of `engine/definitions/splines`.

Coefficients are the solution of B c = s, where B has the B-spline's values at whole pixels, folded
by the border. Nothing here knows poles, recursions or how weights fall off.
"""

from __future__ import annotations

import numpy as np

BEYOND = {"replicate": "reflect", "constant": "reflect_101"}


def bspline(order: int, x: float) -> float:
    """By Cox and de Boor's recursion; order 0 is the box."""
    if order == 0:
        return 1.0 if -0.5 <= x < 0.5 else 0.0
    half = (order + 1) / 2
    left = (x + half) * bspline(order - 1, x + 0.5)
    return (left + (half - x) * bspline(order - 1, x - 0.5)) / order


def folded(index: int, length: int, border: str) -> int:
    """The pixel of 0 .. length - 1 that an index reads, step by step; -1 if it is missing."""
    while not 0 <= index < length:
        if border == "constant":
            return -1
        if border == "replicate":
            index = 0 if index < 0 else length - 1
        elif border == "wrap":
            index += length if index < 0 else -length
        elif border == "reflect":
            index = -1 - index if index < 0 else 2 * length - 1 - index
        elif length == 1:
            return 0
        else:
            index = -index if index < 0 else 2 * length - 2 - index
    return index


def coefficients(length: int, order: int, border: str) -> tuple[np.ndarray, int]:
    """(n, length): pixels to coefficients; and by how many these begin earlier."""
    pad = 12 if border in BEYOND and order > 1 else 0
    n = length + 2 * pad
    rows = np.zeros((n, length))
    for k in range(n):
        source = folded(k - pad, length, border)
        if source >= 0:
            rows[k, source] = 1
    if order < 2:
        return rows, pad
    system = np.zeros((n, n))
    for k in range(n):
        for step in range(-3, 4):
            system[k, folded(k + step, n, BEYOND.get(border, border))] += bspline(order, step)
    return np.linalg.solve(system, rows), pad


def samples(positions: np.ndarray, length: int, order: int, border: str) -> np.ndarray:
    """(len(positions), length): the weights of all pixels in the spline's values at positions."""
    values, pad = coefficients(length, order, border)
    weights = np.zeros((len(positions), len(values)))
    for row, position in enumerate(np.asarray(positions, float) + pad):
        for k in range(int(np.floor(position)) - 3, int(np.floor(position)) + 5):
            pixel = folded(k, len(values), border)
            if pixel >= 0:
                weights[row, pixel] += bspline(order, position - k)
    return weights @ values


def places(length: int, size: int, aligned: str) -> np.ndarray:
    """The positions of scipy.ndimage.zoom."""
    i = np.arange(size)
    if aligned == "centers":
        return (i + 0.5) * (length / size) - 0.5
    return i * ((length - 1) / (size - 1) if size > 1 else 1.0)
