"""PIL.Image.resize's pixels, bit for bit, on tensors, as the installed Pillow computes them.

There are two passes, each only if its axis changes. Weights are float64, and the filter is
stretched if the image shrinks. 8-bit images have 22-bit weights and are rounded to 8 bits between
the passes. uint16 (mode I;16) is rounded, too; float32 (mode F) is summed in float64 and stored as
float32. The pass along x comes first, which affects the result; from Pillow 13 on, the pass along y
comes first if that leaves fewer pixels to the other.

Nearest moves pixels, with the gradient of that. The others have none here:
`engine.backends.resizing` adds that of "exact".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from warpkit.core.environment import installed
from warpkit.engine.arithmetic.resize_axes import move
from warpkit.engine.arithmetic.resize_tables import TableKey, Taps, on_device
from warpkit.engine.definitions.maps import no_float64
from warpkit.engine.definitions.resize import Edges, ResizeRule, beside

BITS = 22
"""Weights of 8-bit images are integers in units of 2^-22."""

CHOOSES_ORDER = int((installed("pillow") or "13").split(".")[0]) >= 13
"""Whether the installed Pillow (13 if there is none) starts with y if that is less work: 13.0.0
does, 10.0 to 12.3 do not."""


def unsupported_reasons(image: Tensor, rule: ResizeRule) -> list[str]:
    """The reasons why Pillow's pixels are not available."""
    return no_float64(image)


def resize(
    image: Tensor,
    size: Sequence[int],
    rule: ResizeRule,
    box: Sequence[Edges] | None = None,
    factors: None = None,
) -> Tensor:
    """Resizes the image (..., C, H, W), or its part in a box, to `size` (h, w) as Pillow does.

    box: the edges along x and y, plain numbers. factors: None.
    """
    across, down, down_first = sides(image.shape, size, box)
    if keeps(*across) and keeps(*down):
        return image.clone()
    axes = {-1: across, -2: down}
    if rule.interpolation == "nearest":
        kind = "nearest_each" if image.dtype == torch.uint16 else "nearest"
        return move(image, *(_taps(kind, axis, image.device) for axis in axes.values()))
    order = [dim for dim in ((-2, -1) if down_first else (-1, -2)) if not keeps(*axes[dim])]
    for dim in order:
        image = _pass(image, rule.interpolation, axes[dim], dim)
    return image


def _plain(edges: Edges) -> tuple[float, float]:
    """Corners are float32 in Pillow."""
    return float(np.float32(edges.low)), float(np.float32(edges.high))


Sides = tuple[int, int, float, float]
"""Of an axis: its length, the output's length, and the box's edges."""


def sides(
    shape: Sequence[int], size: Sequence[int], box: Sequence[Edges] | None
) -> tuple[Sides, Sides, bool]:
    """The sides along x and y, and whether the pass along y comes first; shape (..., H, W)."""
    (height, width), (rows, columns) = (map(int, s) for s in (shape[-2:], size))
    edges_x, edges_y = (0.0, float(width)), (0.0, float(height))
    if box is not None:
        edges_x, edges_y = map(_plain, box)
    # decided by the whole image's size, even with a box
    down_first = CHOOSES_ORDER and rows < height and height - rows > 2 * (width - columns)
    return (width, columns, *edges_x), (height, rows, *edges_y), down_first


def keeps(length: int, size: int, low: float, high: float) -> bool:
    """Whether an axis is unchanged."""
    return (length, 0.0, float(length)) == (size, low, high)


def table_of(interpolation: str, axis: Sides) -> TableKey | None:
    """The table of a filter along an axis; None if the axis is unchanged."""
    return None if keeps(*axis) else (f"pillow_{interpolation}", *axis)


def _taps(kind: str, axis: Sides, device: torch.device) -> Taps:
    return on_device(f"pillow_{kind}", *axis, device=device)


def _pass(image: Tensor, kind: str, axis: Sides, dim: int) -> Tensor:
    """One pass along dimension -1 or -2, in the arithmetic of the image's type."""
    pixel, weight, inside = _taps(kind, axis, image.device)
    if image.dtype == torch.uint8:
        weight = (weight * 2.0**BITS + torch.where(weight < 0, -0.5, 0.5)).trunc().long()
    pixels = image.to(weight.dtype)
    total = torch.full((), 1 << (BITS - 1), device=image.device)
    total = total if image.dtype == torch.uint8 else torch.zeros_like(total, dtype=weight.dtype)
    for k in range(pixel.shape[1]):
        w, there = beside(weight[:, k], dim), beside(inside[:, k], dim)
        total = torch.where(there, total + pixels.index_select(dim, pixel[:, k]) * w, total)
    if image.dtype == torch.uint8:
        return (total >> BITS).clamp(0, 255).to(torch.uint8)
    if image.dtype == torch.uint16:
        return (total + torch.where(total >= 0, 0.5, -0.5)).trunc().clamp(0, 65535).to(image.dtype)
    return total.to(image.dtype)
