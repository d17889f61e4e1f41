"""OpenCV's pyramids: halves and doubles images by the weights 1 4 6 4 1, in plain torch.

Sums go along x first, then along y. Integers are summed exactly and rounded once. Floats are summed
in their own type; OpenCV uses another order, so whole numbers are exact and others agree except for
the last bits. Differentiable by torch's own rules. Images are (..., H, W).
"""

from __future__ import annotations

import torch
from torch import Tensor

from warpkit.engine.definitions.rules import resolve


def down(image: Tensor, size: tuple[int, int], border: str) -> Tensor:
    """cv2.pyrDown: every second pixel of the blurred image; `size` (h, w)."""
    height, width = size
    values = image if image.is_floating_point() else image.double()
    # an additional column is centred on the last pixel, an additional row beyond it
    columns = 2 * _steps(width, image)
    if image.shape[-1] > 2:  # of two pixels beyond it
        columns = columns.clamp(max=image.shape[-1] - 1)
    values = _blur(values, columns, border, -1)
    values = _blur(values, 2 * _steps(height, image), border, -2)
    return _rounded(values, 256, image.dtype)


def up(image: Tensor, size: tuple[int, int]) -> Tensor:
    """cv2.pyrUp: the image with zeros between its pixels, blurred, times 4; `size` (h, w)."""
    values = image if image.is_floating_point() else image.double()
    values = _doubled(values, size[1], -1)
    height = image.shape[-2]
    values = _doubled(values, min(size[0], 2 * height), -2)
    if size[0] > 2 * height:  # OpenCV repeats the last even row
        values = torch.cat((values, values.narrow(-2, 2 * height - 2, 1)), dim=-2)
    return _rounded(values, 64, image.dtype)


def _blur(values: Tensor, centres: Tensor, border: str, dim: int) -> Tensor:
    """Blurs one axis of values (..., n) at the pixels `centres` (m,)."""
    taps = [
        values.index_select(dim, resolve(centres + k, values.shape[dim], border)[0])
        for k in range(-2, 3)
    ]
    return taps[2] * 6 + (taps[1] + taps[3]) * 4 + taps[0] + taps[4]


def _doubled(values: Tensor, length: int, dim: int) -> Tensor:
    """Even pixels 1 6 1, odd ones 4 4; the second pixel precedes the first, the last one
    repeats."""
    n = values.shape[dim]
    even, odd = (torch.arange(first, length, 2, device=values.device) for first in (0, 1))
    middle, after = ((even // 2).clamp(max=n - 1), (even // 2 + 1).clamp(max=n - 1))
    before = torch.where(even == 0, min(1, n - 1), (even // 2 - 1).clamp(0, n - 1))
    evens = (
        values.index_select(dim, before)
        + values.index_select(dim, middle) * 6
        + values.index_select(dim, after)
    )
    first, second = odd // 2, (odd // 2 + 1).clamp(max=n - 1)
    odds = (values.index_select(dim, first) + values.index_select(dim, second)) * 4
    order = torch.cat((even, odd)).argsort()
    return torch.cat((evens, odds), dim=dim).index_select(dim, order)


def _steps(n: int, template: Tensor) -> Tensor:
    return torch.arange(n, device=template.device)


def _rounded(sums: Tensor, whole: int, dtype: torch.dtype) -> Tensor:
    """Sums divided by the weights' total; integers are rounded to nearest, ties up."""
    if dtype.is_floating_point:
        return sums * (1 / whole)
    return ((sums + whole // 2) / whole).floor().to(dtype)
