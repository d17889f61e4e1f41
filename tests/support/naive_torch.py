"""A second implementation of F.interpolate for bytes with AVX2: dense integer matrices."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np


def naive_bytes(image: np.ndarray, size: tuple[int, int], name: str, antialias: bool) -> np.ndarray:
    """Resize image (C, H, W), uint8, along x, round to bytes, then along y."""
    (height, width), (rows, columns) = image.shape[1:], size
    levels = image.astype(np.int64)
    if columns != width:
        levels = _pass(levels, weights(width, columns, name, antialias))
    if rows != height:
        levels = _pass(levels.swapaxes(1, 2), weights(height, rows, name, antialias)).swapaxes(1, 2)
    return levels.astype(np.uint8)


def _pass(image: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    bits = 0
    while bits < 22 and math.floor(0.5 + matrix.max() * 2 ** (bits + 1)) < 2**15:
        bits += 1
    scaled = matrix * 2**bits
    whole = np.where(scaled < 0, np.ceil(scaled - 0.5), np.floor(scaled + 0.5)).astype(np.int64)
    return np.clip((image @ whole.T + 2**bits // 2) // 2**bits, 0, 255)


def weights(n: int, m: int, name: str, antialias: bool) -> np.ndarray:
    """The weights (m, n), float64."""
    matrix = np.zeros((m, n))
    scale = n / m
    if not antialias:
        for i in range(m):
            x = (i + 0.5) * scale - 0.5
            x = max(x, 0.0) if name == "bilinear" else x
            for j in range(math.floor(x) - 1, math.floor(x) + 3):
                weight = triangle(x - j) if name == "bilinear" else cubic(x - j, -0.75)
                matrix[i, min(max(j, 0), n - 1)] += weight
        return matrix
    kernel, reach = FILTERS[name]
    stretch = max(scale, 1.0)
    for i in range(m):
        middle = scale * (i + 0.5)
        first = max(int(middle - reach * stretch + 0.5), 0)
        end = min(int(middle + reach * stretch + 0.5), n)
        for j in range(first, end):
            matrix[i, j] = kernel((j - middle + 0.5) / stretch)
        matrix[i] /= sum(matrix[i])
    return matrix


def triangle(x: float) -> float:
    return max(1 - abs(x), 0.0)


def cubic(x: float, a: float) -> float:
    x = abs(x)
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0.0


def lanczos(x: float) -> float:
    return float(np.sinc(x) * np.sinc(x / 3)) if -3 <= x < 3 else 0.0


FILTERS: dict[str, tuple[Callable[[float], float], float]] = {
    "bilinear": (triangle, 1.0),
    "bicubic": (lambda x: cubic(x, -0.5), 2.0),
    "lanczos": (lanczos, 3.0),
}
