"""The backward kernel: the gradients to the map and to the fill.

A map's gradient is a sum over all pixels: every program writes a part, and parts are added in
order.
"""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false
# Triton's loops have no types

from __future__ import annotations

import triton
import triton.language as tl

from warpkit.engine.triton.kernels import kernel
from warpkit.engine.triton.positions import (
    PERSPECTIVE,
    POINTS,
    first_tap,
    map_tile,
    resolve,
    tile_corner,
    tile_pixels,
)
from warpkit.engine.triton.weights import normalize, tap_coverage, weigh


@kernel
def backward_kernel(
    grad, image, mapping, fill, grad_mapping, grad_fill,
    channels, height, width, out_height, out_width, tiles,
    image_div, image_mod, mapping_div, mapping_mod, numbers,
    plane, pixel, out_plane, out_pixel,
    fill_item, fill_channel, fill_row, fill_column,
    KIND: tl.constexpr, TAPS: tl.constexpr, WAY: tl.constexpr,
    BORDER_Y: tl.constexpr, BORDER_X: tl.constexpr,
    DENSE: tl.constexpr,
    NEEDS_GRAD_MAPPING: tl.constexpr, NEEDS_GRAD_FILL: tl.constexpr,
    REAL: tl.constexpr, OFFSET: tl.constexpr,
    CHANNEL_BLOCK: tl.constexpr, PIXELS: tl.constexpr, SPAN: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """A program processes one tile of an item, as in the forward kernel."""
    unit = tl.program_id(0)
    tile, item = unit % tiles, unit // tiles
    corner_x, corner_y = tile_corner(tile, out_width, PIXELS)
    column, row = tile_pixels(PIXELS, SPAN)
    x, y = corner_x + column, corner_y + row
    live = (x < out_width) & (y < out_height)

    mapping += (item // mapping_div % mapping_mod).to(tl.int64) * numbers
    u, v, w, near = map_tile(mapping, x, y, live, out_width, KIND)
    first_x, tx = first_tap(u, width, TAPS, BORDER_X, REAL)
    first_y, ty = first_tap(v, height, TAPS, BORDER_Y, REAL)
    norm_x, norm_y = normalize(tx, WAY), normalize(ty, WAY)
    some_x, every_x, sum_x = tap_coverage(first_x, tx, norm_x, width, TAPS, WAY, BORDER_X)
    some_y, every_y, sum_y = tap_coverage(first_y, ty, norm_y, height, TAPS, WAY, BORDER_Y)
    near = near & live
    reached = near & some_x & some_y
    lost = tl.where(every_x & every_y, 0.0, 1 - sum_x * sum_y)
    lost = tl.where(reached, lost, 1.0)[None, :]

    image += (item // image_div % image_mod).to(tl.int64) * channels * height * width
    item = item.to(tl.int64)
    fill += item * fill_item
    if DENSE:
        fill += (y.to(OFFSET) * fill_row + x * fill_column)[None, :]
    grad += item * channels * out_height * out_width
    grad += ((y.to(OFFSET) * out_width + x) * out_pixel)[None, :]
    gx, gy = tl.zeros([PIXELS], REAL), tl.zeros([PIXELS], REAL)
    for first in range(0, channels, CHANNEL_BLOCK):
        channel = (first + tl.arange(0, CHANNEL_BLOCK)).to(OFFSET)[:, None]
        exists = channel < channels
        have = exists & live[None, :]
        g = tl.load(grad + channel * out_plane, mask=have, other=0).to(REAL)
        if NEEDS_GRAD_FILL:
            push = tl.where(lost != 0, lost * g, 0.0)
            if DENSE:  # of the result's shape, always planar
                to = (item * channels + channel) * out_height * out_width
                to += y.to(OFFSET) * out_width + x
                tl.store(grad_fill + to, push, mask=have)
            else:
                to = (item * tiles + tile) * channels + channel
                tl.store(grad_fill + to, tl.sum(push.to(tl.float64), axis=1)[:, None], mask=exists)
        if NEEDS_GRAD_MAPPING:
            fill_at = fill + channel * fill_channel
            fill_value = tl.load(fill_at, mask=have if DENSE else exists, other=0).to(REAL)
            # by differences of taps, and of rows, which are 0 where a border repeats one pixel:
            # up to 2^31 pixels away, towards a horizon, matrices multiply any rounding error
            along = tl.zeros([CHANNEL_BLOCK, PIXELS], REAL)
            across = tl.zeros([CHANNEL_BLOCK, PIXELS], REAL)
            top = tl.zeros([CHANNEL_BLOCK, PIXELS], REAL)
            for j in tl.range(0, TAPS, loop_unroll_factor=UNROLL):
                at_y, in_y = resolve(first_y, j, height, BORDER_Y)
                weight_y, slope_y = weigh(ty, j, norm_y, WAY)
                line = tl.zeros([CHANNEL_BLOCK, PIXELS], REAL)
                change = tl.zeros([CHANNEL_BLOCK, PIXELS], REAL)
                left = tl.zeros([CHANNEL_BLOCK, PIXELS], REAL)
                for i in tl.static_range(TAPS):
                    at_x, in_x = resolve(first_x, i, width, BORDER_X)
                    weight_x, slope_x = weigh(tx, i, norm_x, WAY)
                    inside = (near & in_y & in_x)[None, :]
                    at = ((at_y.to(OFFSET) * width + at_x) * pixel)[None, :]
                    value = tl.load(image + channel * plane + at, mask=exists & inside, other=0).to(
                        REAL
                    )
                    value = tl.where(inside, value, fill_value)
                    if i == 0:
                        left = value
                    change += slope_x[None, :] * (value - left)
                    line += weight_x[None, :] * value
                top = tl.where(j == 0, line, top)
                along += weight_y[None, :] * change
                across += slope_y[None, :] * (line - top)
            # selected by value, as in the reference: unread taps have no slope, even if NaN
            gx += tl.sum(tl.where(reached[None, :], g * along, 0.0), axis=0)
            gy += tl.sum(tl.where(reached[None, :], g * across, 0.0), axis=0)
    if NEEDS_GRAD_MAPPING and KIND == POINTS:
        mapping_at = grad_mapping + 2 * ((item * out_height + y) * out_width + x)
        tl.store(mapping_at, gx, mask=live)
        tl.store(mapping_at + 1, gy, mask=live)
    elif NEEDS_GRAD_MAPPING:
        grad_mapping += unit.to(tl.int64) * 9
        if KIND == PERSPECTIVE:
            gx, gy = gx / w.to(REAL), gy / w.to(REAL)
            gw = -(gx * u.to(REAL) + gy * v.to(REAL))
            add_row(grad_mapping + 6, gw, column, row, corner_x, corner_y)
        add_row(grad_mapping, gx, column, row, corner_x, corner_y)
        add_row(grad_mapping + 3, gy, column, row, corner_x, corner_y)


@triton.jit
def add_row(to, g, column, row, corner_x, corner_y):
    """The sums of g x, g y and g over a tile, relative to its corner, where float32 is exact."""
    total = tl.sum(g, axis=0).to(tl.float64)
    tl.store(to, tl.sum(g * column, axis=0) + corner_x * total)
    tl.store(to + 1, tl.sum(g * row, axis=0) + corner_y * total)
    tl.store(to + 2, total)
