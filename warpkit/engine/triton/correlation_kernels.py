"""Kernels of local correlation and its first gradients: a program has some pixels.

All offsets of a pixel have one fraction (a, b), so a result is a blend of dot products q[v][u] at
whole pixels, a square one row and one column larger. The gradient of q is the adjoint of the blend:
G[v][u] = (1 - a) h[v][u] + a h[v][u - 1], with h[v][u] = (1 - b) g[v][u] + b g[v - 1][u] of the
result's g, which is 0 beyond its square.
"""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false, reportOperatorIssue=false

from __future__ import annotations

import triton
import triton.language as tl

from warpkit.engine.triton.fixed_point import add_units, finite_of
from warpkit.engine.triton.kernels import kernel
from warpkit.engine.triton.positions import LIMIT, resolve, settle


@triton.jit
def square_of(
    flows, pixel, live, width, from_height, from_width, rows, columns, step,
    BORDER_Y: tl.constexpr, BORDER_X: tl.constexpr, BLENDS: tl.constexpr,
):  # fmt: skip
    """Places (x, y) of pixels, which of them are near, fractions, and the first row and column."""
    x, y = (pixel % width).to(tl.float64), (pixel // width).to(tl.float64)
    if BLENDS:
        x += tl.load(flows + 2 * pixel, mask=live, other=0.0).to(tl.float64)
        y += tl.load(flows + 2 * pixel + 1, mask=live, other=0.0).to(tl.float64)
    # NaN, and what is so far that no offset has a place
    near = (tl.abs(x) < LIMIT + columns * step) & (tl.abs(y) < LIMIT + rows * step)
    x, y = tl.where(near, x, 0.0), tl.where(near, y, 0.0)
    a, b = (x - tl.floor(x)).to(tl.float32), (y - tl.floor(y)).to(tl.float32)
    left = settle(tl.floor(x) - columns * step, from_width, 2, BORDER_X)
    top = settle(tl.floor(y) - rows * step, from_height, 2, BORDER_Y)
    return x, y, near, a, b, left, top


@triton.jit
def dot(first, second, live, inside, channels, area, plane, PIXELS: tl.constexpr):
    """The dot products of pixels with others, whose channels are `area` and `plane` apart."""
    total = tl.zeros((PIXELS,), tl.float32)
    for _ in range(channels):
        own = tl.load(first, mask=live, other=0.0)
        total += own * tl.load(second, mask=live & inside, other=0.0)
        first += area
        second += plane
    return total


@kernel
def correlation_kernel(
    firsts, seconds, flows, out, channels, height, width, from_height, from_width, rows, columns,
    step, tiles, first_div, first_mod, second_div, second_mod, flow_div, flow_mod,
    BORDER_Y: tl.constexpr, BORDER_X: tl.constexpr, BLENDS: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    """out: (items, (2 rows + 1)(2 columns + 1), h w); a program has one row of offsets."""
    program = tl.program_id(0)
    tile, row = program % tiles, program // tiles % (2 * rows + 1)
    item = (program // tiles // (2 * rows + 1)).to(tl.int64)
    pixel = tile * PIXELS + tl.arange(0, PIXELS)
    area, plane = height * width, from_height * from_width
    live = pixel < area
    first = firsts + (item // first_div % first_mod) * channels * area + pixel
    second = seconds + (item // second_div % second_mod) * channels * plane
    flows += (item // flow_div % flow_mod) * (2 * area)
    x, y, near, a, b, left, top = square_of(
        flows, pixel, live, width, from_height, from_width, rows, columns, step,
        BORDER_Y, BORDER_X, BLENDS,
    )  # fmt: skip
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
            found += b * (lower - found)
            value = before + a * (found - before)
            before = found
        else:
            value = found
        offset = i - extra
        none = far_y | (tl.abs(x + (offset - columns) * step) >= LIMIT) | (near == 0)
        value = tl.where(none, 0.0, value / channels)
        tl.store(place + offset * area, value, mask=live & (pixel * 0 + offset >= 0))


@triton.jit
def pushes(grad, x, y, b, v, u, rows, columns, step, area, live, BLENDS: tl.constexpr):
    """h[v][u], and its slope by b, g[v - 1][u] - g[v][u]; grad points to the first offset's g."""
    # masks of one number confuse interpreters
    row, column = live.to(tl.int32) * 0 + v, live.to(tl.int32) * 0 + u
    is_row = live & (row <= 2 * rows) & (tl.abs(y + (v - rows) * step) < LIMIT)
    is_column = (column <= 2 * columns) & (tl.abs(x + (u - columns) * step) < LIMIT)
    at = grad + (v * (2 * columns + 1) + u) * area
    own = tl.load(at, mask=is_row & is_column, other=0.0)
    if BLENDS:
        was_row = live & (row >= 1) & (tl.abs(y + (v - 1 - rows) * step) < LIMIT)
        upper = tl.load(at - (2 * columns + 1) * area, mask=was_row & is_column, other=0.0)
        return own + b * (upper - own), upper - own
    return own, own


@triton.jit
def block_of(
    flows, height, width, from_height, from_width, rows, columns, step, tiles, blocks,
    flow_div, flow_mod, BORDER_Y: tl.constexpr, BORDER_X: tl.constexpr, BLENDS: tl.constexpr,
    CHANNELS: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    """A program's item, block, pixels, which of them exist, channels, and as `square_of`."""
    program = tl.program_id(0)
    tile, block = program % tiles, program // tiles % blocks
    item = (program // tiles // blocks).to(tl.int64)
    pixel = tile * PIXELS + tl.arange(0, PIXELS)
    live = pixel < height * width
    channel = (block * CHANNELS + tl.arange(0, CHANNELS)).to(tl.int64)[:, None]
    flows += (item // flow_div % flow_mod) * (2 * height * width)
    x, y, near, a, b, left, top = square_of(
        flows, pixel, live, width, from_height, from_width, rows, columns, step,
        BORDER_Y, BORDER_X, BLENDS,
    )  # fmt: skip
    return item, block, pixel, live, channel, (x, y, near & live, a, b, left, top)


@kernel
def correlation_gradient_kernel(
    grads, firsts, seconds, flows, to_firsts, to_flows, channels, height, width, from_height,
    from_width, rows, columns, step, tiles, blocks,
    first_div, first_mod, second_div, second_mod, flow_div, flow_mod,
    BORDER_Y: tl.constexpr, BORDER_X: tl.constexpr, BLENDS: tl.constexpr,
    NEEDS_FIRST: tl.constexpr, NEEDS_FLOW: tl.constexpr,
    CHANNELS: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    """The gradients of first (items, C, h w), and of the flow by a block of channels.

    grads (items, offsets, h w), over C; to_flows (items, blocks, 2, h w).
    """
    area, plane = height * width, from_height * from_width
    item, block, pixel, live, channel, square = block_of(
        flows, height, width, from_height, from_width, rows, columns, step, tiles, blocks,
        flow_div, flow_mod, BORDER_Y, BORDER_X, BLENDS, CHANNELS, PIXELS,
    )  # fmt: skip
    x, y, near, a, b, left, top = square
    exists = channel < channels
    grad = grads + item * (2 * rows + 1) * (2 * columns + 1) * area + pixel
    second = seconds + (item // second_div % second_mod) * channels * plane + channel * plane
    total = tl.zeros((CHANNELS, PIXELS), tl.float32)
    by_x, by_y = total, total
    extra = 1 if BLENDS else 0
    for v in range(2 * rows + 1 + extra):
        row, in_row = resolve(top, v * step, from_height, BORDER_Y)
        before = tl.zeros((PIXELS,), tl.float32)
        slope_before = before
        for u in range(2 * columns + 1 + extra):
            push, slope = pushes(grad, x, y, b, v, u, rows, columns, step, area, near, BLENDS)
            column, inside = resolve(left, u * step, from_width, BORDER_X)
            at = second + (row * from_width + column)[None, :]
            value = tl.load(at, mask=exists & (near & in_row & inside)[None, :], other=0.0)
            if NEEDS_FLOW:
                by_x += (before - push)[None, :] * value
                by_y += (slope + a * (slope_before - slope))[None, :] * value
                slope_before = slope
            if BLENDS:
                total += (push + a * (before - push))[None, :] * value
                before = push
            else:
                total += push[None, :] * value
    if NEEDS_FIRST:
        to = to_firsts + (item * channels + channel) * area + pixel[None, :]
        tl.store(to, total, mask=exists & live[None, :])
    if NEEDS_FLOW:
        first = firsts + ((item // first_div % first_mod) * channels + channel) * area
        own = tl.load(first + pixel[None, :], mask=exists & near[None, :], other=0.0)
        to = to_flows + (item * blocks + block) * 2 * area + pixel
        tl.store(to, tl.sum(own * by_x, 0), mask=live)
        tl.store(to + area, tl.sum(own * by_y, 0), mask=live)


@kernel
def correlation_gather_kernel(
    grads, firsts, to_seconds, channels, height, width, from_height, from_width, rows, columns,
    step, tiles, blocks, first_div, first_mod, CHANNELS: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    """The gradient of second (items, C, H W) without a flow, under "constant".

    A program has some pixels of second, which `height` and `width` are of, and reads those of first
    (`from_height`, `from_width`) whose squares have them.
    """
    program = tl.program_id(0)
    tile, block = program % tiles, program // tiles % blocks
    item = (program // tiles // blocks).to(tl.int64)
    pixel = tile * PIXELS + tl.arange(0, PIXELS)
    area, plane = height * width, from_height * from_width
    live = pixel < area
    channel = (block * CHANNELS + tl.arange(0, CHANNELS)).to(tl.int64)[:, None]
    exists = channel < channels
    grads += item * (2 * rows + 1) * (2 * columns + 1) * plane
    first = firsts + ((item // first_div % first_mod) * channels + channel) * plane
    total = tl.zeros((CHANNELS, PIXELS), tl.float32)
    for v in range(2 * rows + 1):
        row = pixel // width - (v - rows) * step
        in_row = live & (row >= 0) & (row < from_height)
        for u in range(2 * columns + 1):
            column = pixel % width - (u - columns) * step
            inside = in_row & (column >= 0) & (column < from_width)
            at = row * from_width + column
            push = tl.load(grads + at, mask=inside, other=0.0)
            value = tl.load(first + at[None, :], mask=exists & inside[None, :], other=0.0)
            total += push[None, :] * value
            grads += plane
    to = to_seconds + (item * channels + channel) * area + pixel[None, :]
    tl.store(to, total, mask=exists & live[None, :])


@kernel
def correlation_scatter_kernel(
    grads, firsts, flows, scale, units, spoiled, channels, height, width, from_height, from_width,
    rows, columns, step, tiles, blocks,
    first_div, first_mod, second_div, second_mod, flow_div, flow_mod,
    BORDER_Y: tl.constexpr, BORDER_X: tl.constexpr, BLENDS: tl.constexpr,
    CHANNELS: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    """The gradient of second as integers, see `fixed_point`."""
    area, plane = height * width, from_height * from_width
    item, _, pixel, _, channel, square = block_of(
        flows, height, width, from_height, from_width, rows, columns, step, tiles, blocks,
        flow_div, flow_mod, BORDER_Y, BORDER_X, BLENDS, CHANNELS, PIXELS,
    )  # fmt: skip
    x, y, near, a, b, left, top = square
    exists = channel < channels
    grad = grads + item * (2 * rows + 1) * (2 * columns + 1) * area + pixel
    first = firsts + ((item // first_div % first_mod) * channels + channel) * area
    own = tl.load(first + pixel[None, :], mask=exists & near[None, :], other=0.0).to(tl.float64)
    number = (item // second_div % second_mod) * channels + channel
    own *= tl.load(scale + number, mask=exists, other=0.0)
    extra = 1 if BLENDS else 0
    for v in range(2 * rows + 1 + extra):
        row, in_row = resolve(top, v * step, from_height, BORDER_Y)
        before = tl.zeros((PIXELS,), tl.float32)
        for u in range(2 * columns + 1 + extra):
            push = pushes(grad, x, y, b, v, u, rows, columns, step, area, near, BLENDS)[0]
            column, inside = resolve(left, u * step, from_width, BORDER_X)
            whole = push
            if BLENDS:
                whole = push + a * (before - push)
                before = push
            to = number * plane + (row * from_width + column)[None, :]
            some = exists & (near & in_row & inside)[None, :]
            term = whole[None, :].to(tl.float64) * own
            add_units(units, spoiled, to, term, finite_of(term), some)
