"""A second implementation of warps: float64 numpy, one pixel and one tap at a time.

It shares no line with the package: weights follow the kernels' textbook formulas, borders walk back
into the image step by step, and coordinates use numpy's inverse.
"""

from __future__ import annotations

import math

import numpy as np


def kernel(interpolation: str, distance: float) -> float:
    """The interpolation kernel at a distance from the point."""
    d = abs(distance)
    if interpolation == "bilinear":
        return max(0.0, 1 - d)
    if interpolation == "bicubic":  # Keys, a = -3/4
        if d <= 1:
            return 1.25 * d**3 - 2.25 * d**2 + 1
        return -0.75 * d**3 + 3.75 * d**2 - 6 * d + 3 if d < 2 else 0.0
    return float(np.sinc(d) * np.sinc(d / 4)) if d < 4 else 0.0  # Lanczos of 4 lobes


def walk(index: int, length: int, border: str) -> int | None:
    """The pixel at `index`, found in steps of one reflection or one period."""
    if border in ("constant", "transparent"):
        return index if 0 <= index < length else None
    if border == "replicate":
        return min(max(index, 0), length - 1)
    if length == 1:
        return 0
    while not 0 <= index < length:
        if border == "wrap":
            index += length if index < 0 else -length
        elif border == "reflect":
            index = -1 - index if index < 0 else 2 * length - 1 - index
        else:
            index = -index if index < 0 else 2 * length - 2 - index
    return index


def axis(position: float, length: int, interpolation: str, border: str):
    """The (pixel or None, weight) of every tap along an axis."""
    if interpolation == "nearest":
        return [(walk(round(position), length, border), 1.0)]  # Python rounds ties to even
    half = {"bilinear": 1, "bicubic": 2, "lanczos4": 4}[interpolation]
    base = math.floor(position)
    indices = range(base - half + 1, base + half + 1)
    weights = [kernel(interpolation, position - i) for i in indices]
    if interpolation == "lanczos4":
        weights = [w / sum(weights) for w in weights]
    return [(walk(i, length, border), w) for i, w in zip(indices, weights, strict=True)]


def sample(image, points, interpolation, border, outside):
    """Sample image (C, H, W) at points (h, w, 2) over outside (C, h, w); all float64 arrays."""
    channels, height, width = image.shape
    result = np.empty((channels, *points.shape[:2]))
    for v, u in np.ndindex(*points.shape[:2]):
        x, y = points[v, u]
        if not (abs(x) < 2**31 and abs(y) < 2**31):
            result[:, v, u] = outside[:, v, u]
            continue
        total = np.zeros(channels)
        for row, wy in axis(y, height, interpolation, border):
            for column, wx in axis(x, width, interpolation, border):
                missing = row is None or column is None
                total += wy * wx * (outside[:, v, u] if missing else image[:, row, column])
        result[:, v, u] = total
    return result


def source_points(matrix, size, inverse=False):
    """The source position of each output pixel of `size` under a source -> destination matrix."""
    full = np.vstack([matrix, [0, 0, 1]]) if len(matrix) == 2 else np.asarray(matrix)
    to_source = full if inverse else np.linalg.inv(full)
    height, width = size
    v, u = np.mgrid[:height, :width]
    with np.errstate(all="ignore"):
        x, y, w = np.einsum("ij,jvu->ivu", to_source, np.stack([u, v, np.ones_like(u)]))
        return np.stack([x / w, y / w], axis=-1)
