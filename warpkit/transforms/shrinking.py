"""How much matrices shrink an image, and its mean over what an output pixel covers.

`warp_affine`'s antialias, to rounding: the same number of samples in the same places. It is made
for maps that stay on the device; here they can be read, so that all samples of a few maps are one
larger warp, whose pixels are then averaged: 6 ms where it takes 13 (224 x 224 from 8 bits, twice as
small, one thread).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import hypot, inf, nan

import torch
from torch import Tensor

from warpkit.engine.sampling.antialias import MOST_AFFINE, SLACK
from warpkit.engine.sampling.maps import inverse_map
from warpkit.engine.sampling.reference import compute_dtype, convert
from warpkit.engine.sampling.rules import TAPS
from warpkit.transforms.composed import inverse_rows

LATTICE = 4
"""Spans along each side of a canvas where a perspective is looked at for its samples."""
MOST_SAMPLES = 16
"""In one larger warp; of more `warp_affine`'s antialias takes some at a time."""


def samples_of(
    matrix: Tensor, size: tuple[int, int], source: tuple[int, int], interpolation: str
) -> tuple[int, int]:
    """Samples along x and y for a matrix (3, 3), an image of `source` (H, W) and `size` (h, w).

    Less than a source pixel apart where the map shrinks what is in the image; (1, 1) where it does
    not. A perspective is looked at on a lattice.
    """
    rows = inverse_rows(matrix)
    flat = rows[2][0] == rows[2][1] == 0.0
    xs, ys = ([k * (n - 1) / LATTICE for k in range(LATTICE + 1)] for n in (size[1], size[0]))
    across = down = 0.0
    for x, y in [(0.0, 0.0)] if flat else product(xs, ys):
        right, below, largest, (u, v) = _footprint(rows, x, y)
        reach = inf if flat else (right + below) / 2 + TAPS[interpolation]
        seen = -reach < u < source[1] + reach and -reach < v < source[0] + reach
        if seen and largest > 1 + SLACK:
            across, down = max(across, right), max(down, below)
    return int(min(across, MOST_AFFINE)) + 1, int(min(down, MOST_AFFINE)) + 1


def _footprint(
    rows: list[list[float]], x: float, y: float
) -> tuple[float, float, float, tuple[float, float]]:
    """Of the pixel (x, y) under these rows: as of `antialias.footprint`, and where it looks."""
    (a, b, c), (d, e, f), (g, h, i) = rows
    w = g * x + h * y + i
    if w == 0:
        return inf, inf, inf, (nan, nan)
    u, v = (a * x + b * y + c) / w, (d * x + e * y + f) / w
    a, b, d, e = (a - g * u) / w, (b - h * u) / w, (d - g * v) / w, (e - h * v) / w
    largest = (hypot(a + e, b - d) + hypot(a - e, b + d)) / 2
    return hypot(a, d), hypot(b, e), largest, (u, v)


def shrinks_at(matrix: Tensor, size: tuple[int, int]) -> Tensor:
    """Which pixels of a canvas of `size` (h, w) stand for more than one: (..., h, w), bool.

    matrix (..., 3, 3).
    """
    y, x = (torch.arange(n, dtype=torch.float64) for n in size)
    a, b, d, e, depth = _slopes(inverse_map(matrix), x, y[:, None])
    return _largest(a, b, d, e) > (1 + SLACK) * depth


def mean_warp(
    warp: Callable[[Tensor, Tensor, tuple[int, int]], Tensor],
    image: Tensor,
    matrix: Tensor,
    size: tuple[int, int],
    samples: tuple[int, int],
) -> Tensor:
    """The mean of samples x samples in each output pixel, in the image's type: (..., C, h, w).

    image (..., C, H, W); matrix (..., 3, 3); `warp` of an image, a matrix and a size.
    """
    n, m = samples
    finer = matrix.new_tensor([[n, 0, (n - 1) / 2], [0, m, (m - 1) / 2], [0, 0, 1]])
    pixels = image.to(compute_dtype(image.dtype))  # rounded once, at the end
    large = warp(pixels, finer @ matrix, (size[0] * m, size[1] * n))
    rows = _sum_of([large[..., k::m, :] for k in range(m)])  # the fewer pixels are then strided
    return convert(_sum_of([rows[..., k::n] for k in range(n)]) / (n * m), image.dtype)


def _sum_of(parts: Sequence[Tensor]) -> Tensor:
    """The sum of tensors of one shape."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _slopes(to_source: Tensor, x: Tensor, y: Tensor) -> Sequence[Tensor]:
    """The derivative of a map, times the square of its depth, which comes last.

    to_source (..., 3, 3); x (w,) and y (h, 1), which broadcast. The first column does not change
    along x, nor the second along y.
    """
    rows = to_source[..., None, None].movedim((-4, -3), (0, 1))
    (a, b, c), (d, e, f), (g, h, i) = (row.unbind(0) for row in rows.unbind(0))
    across_y, across_x = h * y + i, g * x + i
    first = a * across_y - g * (b * y + c), d * across_y - g * (e * y + f)
    second = b * across_x - h * (a * x + c), e * across_x - h * (d * x + f)
    depth = (g * x + across_y).square()
    return first[0], second[0], first[1], second[1], depth


def _largest(a: Tensor, b: Tensor, d: Tensor, e: Tensor) -> Tensor:
    """The largest singular value of [[a, b], [d, e]]: (..., h, w); all broadcast to that."""
    return (torch.hypot(a + e, b - d) + torch.hypot(a - e, b + d)) / 2
