"""Local correlation: a program has some pixels, and one row of their offsets.

All offsets of a pixel have one fraction, so a row of results is a blend of two rows of dot products
at whole pixels. The gradient is the definition's.
"""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false, reportOperatorIssue=false

from __future__ import annotations

from math import prod

import torch
import triton
import triton.language as tl
from torch import Tensor

from warpkit.core.shapes import broadcast_shapes
from warpkit.engine.backends.cuda.positions import LIMIT, resolve, settle
from warpkit.engine.backends.cuda.work import in_cycle, launch
from warpkit.engine.definitions.correlation import Square
from warpkit.engine.sampling.rules import CODE, borders_of

PIXELS = 128
"""Pixels of a program."""


@triton.jit
def dot(first, second, live, inside, channels, area, plane, PIXELS: tl.constexpr):
    """The dot products of pixels with others, whose channels are `area` and `plane` apart."""
    total = tl.zeros((PIXELS,), tl.float32)
    for c in range(channels):
        own = tl.load(first + c * area, mask=live, other=0.0)
        total += own * tl.load(second + c * plane, mask=live & inside, other=0.0)
    return total


@triton.jit
def correlation_kernel(
    firsts, seconds, flows, out, channels, height, width, from_height, from_width, rows, columns,
    step, tiles, first_div, first_mod, second_div, second_mod, flow_div, flow_mod,
    BORDER_Y: tl.constexpr, BORDER_X: tl.constexpr, BLENDS: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    """out: (items, (2 rows + 1)(2 columns + 1), h w)."""
    program = tl.program_id(0)
    tile, row = program % tiles, program // tiles % (2 * rows + 1)
    item = (program // tiles // (2 * rows + 1)).to(tl.int64)
    pixel = tile * PIXELS + tl.arange(0, PIXELS)
    area, plane = height * width, from_height * from_width
    live = pixel < area
    first = firsts + (item // first_div % first_mod) * channels * area + pixel
    second = seconds + (item // second_div % second_mod) * channels * plane
    x, y = (pixel % width).to(tl.float64), (pixel // width).to(tl.float64)
    if BLENDS:
        flow = flows + (item // flow_div % flow_mod) * 2 * area + 2 * pixel
        x += tl.load(flow, mask=live, other=0.0).to(tl.float64)
        y += tl.load(flow + 1, mask=live, other=0.0).to(tl.float64)
    # NaN, and what is so far that no offset has a place
    near = (tl.abs(x) < LIMIT + columns * step) & (tl.abs(y) < LIMIT + rows * step)
    x, y = tl.where(near, x, 0.0), tl.where(near, y, 0.0)
    fx, fy = (x - tl.floor(x)).to(tl.float32), (y - tl.floor(y)).to(tl.float32)
    left = settle(tl.floor(x) - columns * step, from_width, 2, BORDER_X)
    top = settle(tl.floor(y) - rows * step, from_height, 2, BORDER_Y)
    above, in_above = resolve(top, row * step, from_height, BORDER_Y)
    below, in_below = resolve(top, (row + 1) * step, from_height, BORDER_Y)
    far_y = tl.abs(y + (row - rows) * step) >= LIMIT
    before = tl.zeros((PIXELS,), tl.float32)
    place = out + (item * (2 * rows + 1) + row) * (2 * columns + 1) * area + pixel
    extra = 1 if BLENDS else 0
    for i in range(2 * columns + 1 + extra):
        column, inside = resolve(left, i * step, from_width, BORDER_X)
        at = second + above * from_width + column
        found = dot(first, at, live, inside & in_above, channels, area, plane, PIXELS)
        if BLENDS:
            at = second + below * from_width + column
            lower = dot(first, at, live, inside & in_below, channels, area, plane, PIXELS)
            found += fy * (lower - found)
            value = before + fx * (found - before)
            before = found
        else:
            value = found
        offset = i - extra
        none = far_y | (tl.abs(x + (offset - columns) * step) >= LIMIT) | (near == 0)
        value = tl.where(none, 0.0, value / channels)
        tl.store(place + offset * area, value, mask=live & (pixel * 0 + offset >= 0))


def forward(
    options: Square, first: Tensor, second: Tensor, flow: Tensor | None = None
) -> tuple[Tensor, None]:
    """As `definitions.correlation.correlation`, of float32 pictures."""
    shapes = [t.shape[:-3] for t in (first, second, flow) if t is not None]
    batch = tuple(broadcast_shapes(*shapes))
    (height, width), (rows, columns) = first.shape[-2:], options.radius
    count = len(options.offsets)
    out = first.new_empty((*batch, count, height, width))
    first, first_div, first_mod = in_cycle(first, batch, 3)
    second, second_div, second_mod = in_cycle(second, batch, 3)
    blends, flow_div, flow_mod = flow is not None, 1, 1
    if flow is not None:
        flow = flow if flow.dtype in (torch.float32, torch.float64) else flow.float()
        flow, flow_div, flow_mod = in_cycle(flow, batch, 3)
    tiles = triton.cdiv(height * width, PIXELS)
    border_y, border_x = borders_of(options.border)
    programs = prod(batch) * tiles * (2 * rows + 1)
    if programs:
        launch(
            correlation_kernel, programs, first, second, first if flow is None else flow, out,
            channels=first.shape[-3], height=height, width=width, from_height=second.shape[-2],
            from_width=second.shape[-1], rows=rows, columns=columns, step=int(options.step),
            tiles=tiles, first_div=first_div, first_mod=first_mod, second_div=second_div,
            second_mod=second_mod, flow_div=flow_div, flow_mod=flow_mod,
            BORDER_Y=CODE[border_y], BORDER_X=CODE[border_x], BLENDS=blends, PIXELS=PIXELS,
        )  # fmt: skip
    return out, None
