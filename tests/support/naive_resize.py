"""A second implementation of resizes: numpy, one output pixel at a time.

It shares no line with the package: kernels follow textbook formulas, and source positions are exact
fractions.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

SUPPORT = {"box": 0.5, "bilinear": 1, "hamming": 1, "bicubic": 2, "lanczos": 3}


def kernel(name: str, x: Fraction) -> float:
    """An antialiasing filter at a distance, in units of its stretch."""
    if name == "box":
        return float(Fraction(-1, 2) < x <= Fraction(1, 2))
    d = abs(float(x))
    if d >= SUPPORT[name]:
        return 0.0
    if name == "bilinear":
        return 1 - d
    if name == "hamming":
        return float(np.sinc(d)) * (0.54 + 0.46 * math.cos(math.pi * d))
    if name == "bicubic":  # Keys, a = -1/2
        return 1.5 * d**3 - 2.5 * d**2 + 1 if d <= 1 else -0.5 * d**3 + 2.5 * d**2 - 4 * d + 2
    return float(np.sinc(d) * np.sinc(d / 3))


def axis(n: int, m: int, name: str, antialias: bool, low: Fraction, high: Fraction) -> np.ndarray:
    """The weights (m, n) of all input pixels in each output pixel."""
    from tests.support.naive_warp import axis as taps

    weights, scale = np.zeros((m, n)), (high - low) / m
    for i in range(m):
        start, end = low + i * scale, low + (i + 1) * scale
        if not antialias:
            position = (start + end) / 2 - Fraction(1, 2)
            if name == "nearest":
                weights[i, min(max(round(position), 0), n - 1)] = 1  # ties to even
                continue
            for pixel, weight in taps(float(position), n, name, "replicate"):
                weights[i, pixel] += weight
            continue
        for j in range(n):
            if name == "area":
                covered = max(min(end, Fraction(j + 1)) - max(start, Fraction(j)), Fraction(0))
                weights[i, j] = covered / scale
            else:
                distance = j + Fraction(1, 2) - (start + end) / 2
                weights[i, j] = kernel(name, distance / max(scale, Fraction(1)))
        weights[i] /= weights[i].sum()
    return weights


def resize(
    image: np.ndarray,
    size: tuple[int, int],
    name: str,
    antialias: bool,
    box: tuple[float, float, float, float] | None = None,
) -> np.ndarray:
    """image (..., H, W), float64; box (x1, y1, x2, y2) or None. Returns (..., h, w)."""
    height, width = image.shape[-2:]
    x1, y1, x2, y2 = map(Fraction, box or (0, 0, width, height))
    down = axis(height, size[0], name, antialias, y1, y2)
    across = axis(width, size[1], name, antialias, x1, x2)
    return np.einsum("yh,...hw,xw->...yx", down, image, across)
