"""Positions rounded as in OpenCV's fixed-point path: all of OpenCV 4, and much of OpenCV 5.

They are multiples of 1/32 pixel with a 16-bit integer part. `opencv4_sums` samples there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.engine.arithmetic.opencv4_tables import STEPS
from warpkit.engine.definitions.rounding import (
    INT_MAX,
    INT_MIN,
    saturate16,
    to_int32,
    wrap16,
    wrap32,
)
from warpkit.engine.definitions.rules import LIMIT, SamplingRule


class FixedGrid(NamedTuple):
    """Source positions, (*P, h, w)."""

    x: Tensor
    """int64, in 1/32 pixel; a multiple of 32 for nearest."""
    y: Tensor
    valid: Tensor
    """False for NaN, and for positions of 2^31 pixels and beyond, which are not sampled."""
    block: int
    """OpenCV processes rows in blocks of this many columns, at whose ends vector loops end."""

    def pixel(self) -> tuple[Tensor, Tensor]:
        """The integer part: the source pixel at the position, or to its left and above it."""
        return saturate16(self.x >> 5), saturate16(self.y >> 5)

    def step(self) -> tuple[Tensor, Tensor]:
        """The fractional part, in 1/32 pixel."""
        return self.x & 31, self.y & 31

    def points(self) -> Tensor:
        """The positions as float64 points (*P, h, w, 2)."""
        axes = zip(self.pixel(), self.step(), strict=True)
        return torch.stack([pixel + step / STEPS for pixel, step in axes], dim=-1)


def warp_grid(to_source: Tensor, size: Sequence[int], rule: SamplingRule) -> FixedGrid:
    """The source position of every pixel of an output of `size`; to_source (..., 2 or 3, 3),
    float64."""
    nearest = rule.interpolation == "nearest"
    height, width = size
    x = torch.arange(width, device=to_source.device)
    y = torch.arange(height, device=to_source.device)[:, None]
    finite = to_source.isfinite().all(-1).all(-1)[..., None, None]
    make = _affine_grid if to_source.shape[-2] == 2 else _perspective_grid
    grid = make(to_source[..., None, None], x, y, nearest)
    # without _replace, which Dynamo could not trace before torch 2.8
    return FixedGrid(grid.x, grid.y, grid.valid & finite, grid.block)


def _affine_grid(m: Tensor, x: Tensor, y: Tensor, nearest: bool) -> FixedGrid:
    """Adds two rounded terms, in 1/1024 pixel, in an int32 that may overflow.

    m (*M, 2, 3), destination -> source; x (w,) and y (h, 1), output pixels.
    """

    def axis(row: Tensor) -> tuple[Tensor, Tensor]:
        a, b, c = row.unbind(-3)
        across, down = a * x, b * y + c
        # nearest adds half a pixel (ties round up), the others half of 1/32
        half = 512 if nearest else 16
        fixed = wrap32(to_int32(across * 1024) + to_int32(down * 1024) + half)
        valid = (across + down).abs() < LIMIT
        return fixed >> 10 << 5 if nearest else fixed >> 5, valid

    (u, u_valid), (v, v_valid) = (axis(row) for row in m.unbind(-4))
    block = min(4096 // min(32, len(y)), len(x))
    return FixedGrid(u, v, u_valid & v_valid, block)


def _perspective_grid(m: Tensor, x: Tensor, y: Tensor, nearest: bool) -> FixedGrid:
    """Computed in blocks of columns: the block's first column is added first, then the rest.

    m (*M, 3, 3), destination -> source; x (w,) and y (h, 1), output pixels.
    """
    block = min(1024 // min(16, len(y)), len(x))
    within = x % block
    block_start = x - within

    def axis(row: Tensor) -> Tensor:
        a, b, c = row.unbind(-3)
        return (a * block_start + b * y + c) + a * within

    u, v, w = (axis(row) for row in m.unbind(-4))
    unit = 1.0 if nearest else float(STEPS)
    scale = torch.where(w != 0, unit / w, 0.0)
    u, v = u * scale, v * scale
    valid = (u.abs() < LIMIT * unit) & (v.abs() < LIMIT * unit)
    u, v = (to_int32(value.clamp(INT_MIN, INT_MAX)) << (5 if nearest else 0) for value in (u, v))
    return FixedGrid(u, v, valid, block)


def sample_grid(points: Tensor, rule: SamplingRule, *, fixed_map: bool = False) -> FixedGrid:
    """The positions of cv2.remap's maps; points (*P, h, w, 2), which become float32.

    fixed_map: the points come from CV_16SC2 and CV_16UC1 maps, as multiples of 1/32. For these,
    nearest rounds ties up in OpenCV 4.14, and in the wrong direction in 5.0: 0.25 becomes 1.
    """
    points = points.float()
    height, width = points.shape[-3:-1]
    valid = (points.abs() < LIMIT).all(-1)
    if rule.interpolation != "nearest":
        fixed = to_int32(points * STEPS)
    elif not fixed_map:
        fixed = to_int32(points) << 5
    else:
        fixed = to_int32(points * STEPS)
        upper_half = (fixed & 31) >= STEPS // 2
        up = upper_half if rule.arithmetic == "opencv4" else ~upper_half
        fixed = wrap16((fixed >> 5) + up.long()) << 5
    block = min(16384 // min(128, height), width)
    return FixedGrid(fixed[..., 0], fixed[..., 1], valid, block)
