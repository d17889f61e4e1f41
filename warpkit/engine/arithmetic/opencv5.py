"""OpenCV 5's float path: positions and weights in float32, fused multiply-adds as with AVX2.

It applies to bicubic of every type, and to nearest and bilinear of uint8, uint16 and float32 images
with 1, 3 or 4 channels. Other calls use `opencv4_positions` and `opencv4_sums`, as in OpenCV 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.engine.definitions.reference import convert, reader
from warpkit.engine.definitions.rounding import fma32, to_int32
from warpkit.engine.definitions.rules import CUBIC_A, LIMIT, MISSING_BORDERS, SamplingRule, resolve

TYPES = (torch.uint8, torch.uint16, torch.float32)
CHANNELS = (1, 3, 4)

COLUMNS = 16
"""The number of positions that are computed together; the rest of a row uses another order."""

BLOCK = 8
"""The number of bicubic pixels that are computed together."""


class FloatGrid(NamedTuple):
    """Source positions, float32, (*P, h, w)."""

    x: Tensor
    y: Tensor
    valid: Tensor
    """False for NaN, and for positions of 2^31 pixels and beyond, which are not sampled."""

    def points(self) -> Tensor:
        """The positions as float64 points (*P, h, w, 2)."""
        return torch.stack([self.x, self.y], dim=-1).double()


def supports(image: Tensor, rule: SamplingRule) -> bool:
    """Whether OpenCV 5 takes this path."""
    if rule.interpolation in ("nearest", "bilinear"):
        return has_vector_kernel(image)
    return rule.interpolation == "bicubic"


def has_vector_kernel(image: Tensor) -> bool:
    """Whether OpenCV 5 has vector code for an image (*I, C, H, W)."""
    return image.dtype in TYPES and image.shape[-3] in CHANNELS


def warp_grid(
    to_source: Tensor, size: Sequence[int], image: Tensor, rule: SamplingRule
) -> FloatGrid:
    """The source position of every pixel of an output of `size`; to_source (..., 2 or 3, 3),
    float64."""
    height, width = size
    x = torch.arange(width, dtype=torch.float32, device=to_source.device)
    y = torch.arange(height, dtype=torch.float32, device=to_source.device)[:, None]
    finite = to_source.isfinite().all(-1).all(-1)[..., None, None]
    rows = to_source.float()[..., None, None].unbind(-4)
    cubic = rule.interpolation == "bicubic"
    if cubic and len(rows) == 3:
        u, v, w = (_cubic_wide(row, x, y) for row in rows)
        axes = ((u / w).float(), (v / w).float())
    else:
        u, v, *w = ((_cubic if cubic else _linear)(row, x, y) for row in rows)
        axes = (u / w[0], v / w[0]) if w else (u, v)
    return _grid(*axes, finite, image, rule)


def sample_grid(points: Tensor, image: Tensor, rule: SamplingRule) -> FloatGrid:
    """The positions of cv2.remap's maps; points (*P, h, w, 2), which become float32."""
    x, y = points.float().unbind(-1)
    return _grid(x, y, torch.ones((), dtype=torch.bool, device=x.device), image, rule)


def _linear(row: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Applies a row (*M, 3, 1, 1) of a matrix to output pixels x (w,) and y (h, 1), in float32."""
    a, b, c = row.unbind(-3)
    head = fma32(a, x, y * b + c)
    tail = fma32(a, x, y * b) + c
    width = x.shape[-1]
    return torch.where(x < width // COLUMNS * COLUMNS, head, tail)


def _cubic(row: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The same in the order of operations of bicubic: row (*M, 3, 1, 1), x (w,), y (h, 1)."""
    a, b, c = row.unbind(-3)
    return x * a + (y * b + c)


def _cubic_wide(row: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The same in float64: row (*M, 3, 1, 1), x (w,), y (h, 1)."""
    a, b, c = row.unbind(-3)
    return x.double() * a.double() + (y * b + c).double()


def _grid(x: Tensor, y: Tensor, finite: Tensor, image: Tensor, rule: SamplingRule) -> FloatGrid:
    """Source pixels x and y, (*M, h, w), for maps that are `finite`; image (*I, C, H, W)."""
    valid = finite & (x.abs() < LIMIT) & (y.abs() < LIMIT)
    x, y = (torch.where(valid, p, 0.0) for p in (x, y))
    if rule.interpolation == "bicubic":
        # before the border's rule: reflect and wrap are not periodic farther out
        height, width = (max(n, 16) for n in image.shape[-2:])
        x, y = x.clamp(-width, 2 * width), y.clamp(-height, 2 * height)
    return FloatGrid(x, y, valid)


ReadTap = Callable[[int, int], tuple[Tensor, Tensor | None]]
"""Reads a neighbour by (dy, dx): its value, or the fill; and whether it is inside the image (None:
always)."""


def values(image: Tensor, grid: FloatGrid, fill: Tensor, rule: SamplingRule) -> Tensor:
    """Sample `image` (*I, C, H, W) at the grid, without gradients.

    fill is the border's value, or the background.
    """
    height, width = image.shape[-2:]
    work = torch.float64 if image.dtype == torch.float64 else torch.float32
    fill = fill.to(work)
    read = reader(image, grid.x.shape, work)
    if rule.interpolation == "nearest":
        x, y = (p.double().round().long() for p in (grid.x, grid.y))
    else:
        x, y = (p.floor().long() for p in (grid.x, grid.y))
    frame = None
    if work == torch.float64:  # bicubic: all 16 taps become int32 if one is missing
        frame = (x < 1) | (x >= width - 2) | (y < 1) | (y >= height - 2)
        frame = frame[..., None, :, :]

    def tap(dy: int, dx: int) -> tuple[Tensor, Tensor | None]:
        row, row_inside = resolve(y + dy, height, rule.border)
        column, column_inside = resolve(x + dx, width, rule.border)
        value, inside = read(row * width + column), None
        if row_inside is not None and column_inside is not None:
            inside = (row_inside & column_inside)[..., None, :, :]
            value = torch.where(inside, value, fill)
        if frame is not None:
            value = torch.where(frame, to_int32(value.trunc()), value).float()
        return value, inside

    if rule.interpolation == "nearest":
        return convert(tap(0, 0)[0], image.dtype)
    tx, ty = ((p - p.floor())[..., None, :, :] for p in (grid.x, grid.y))
    if rule.interpolation == "bilinear":
        total = _bilinear(tap, tx, ty, fill)
    else:
        total = _bicubic(tap, tx, ty, has_vector_kernel(image))
        if rule.border in MISSING_BORDERS:
            far = (x < -3) | (x > width) | (y < -3) | (y > height)
            if has_vector_kernel(image) and rule.border == "constant":
                far = _whole_blocks(far)
            total = torch.where(far[..., None, :, :], fill, total.to(work))
    return convert(total, image.dtype)


def _bilinear(tap: ReadTap, tx: Tensor, ty: Tensor, fill: Tensor) -> Tensor:
    """tx and ty (*P, 1, h, w): fractions; fill broadcasts to the result."""
    (p00, in00), (p01, in01), (p10, in10), (p11, in11) = (tap(r, c) for r in (0, 1) for c in (0, 1))
    upper = fma32(tx, p01 - p00, p00)
    lower = fma32(tx, p11 - p10, p10)
    total = fma32(ty, lower - upper, upper)
    if in00 is None or in01 is None or in10 is None or in11 is None:
        return total
    return torch.where(in00 | in01 | in10 | in11, total, fill)


def _bicubic(tap: ReadTap, tx: Tensor, ty: Tensor, vector: bool) -> Tensor:
    """Sums rows, then the column of sums; OpenCV's two kernels use different orders.

    tx and ty (*P, 1, h, w): fractions.
    """
    across, down = _cubic_weights(tx, vector), _cubic_weights(ty, vector)
    total = None
    for r in range(4):
        p = [tap(r - 1, c - 1)[0] for c in range(4)]
        first, second = (0, 1) if vector else (1, 0)
        line = p[first] * across[first]
        for c in (second, 2, 3):
            line = fma32(p[c], across[c], line)
        total = line * down[0] if total is None else fma32(line, down[r], total)
    assert total is not None
    return total


def _cubic_weights(t: Tensor, vector: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    u = 1 - t
    if vector:
        first, last = CUBIC_A * (t * (u * u)), CUBIC_A * (u * (t * t))
    else:
        first, last = (CUBIC_A * t) * (u * u), (CUBIC_A * (t * t)) * u
    slope = fma32(torch.full_like(t, CUBIC_A + 2), t, torch.full_like(t, -(CUBIC_A + 3)))
    second = fma32(slope, t * t, torch.ones_like(t))
    return first, second, ((1 - first) - second) - last, last


def _whole_blocks(far: Tensor) -> Tensor:
    """True if all columns of a block are; the last block ends with the row."""
    width = far.shape[-1]
    if width < BLOCK:
        return torch.zeros_like(far)
    full = width // BLOCK * BLOCK
    blocks = far[..., :full].unflatten(-1, (-1, BLOCK)).all(-1).repeat_interleave(BLOCK, -1)
    if full == width:
        return blocks
    last = far[..., -BLOCK:].all(-1, keepdim=True).expand(*far.shape[:-1], BLOCK)
    return torch.cat([blocks[..., : width - BLOCK], last], dim=-1)
