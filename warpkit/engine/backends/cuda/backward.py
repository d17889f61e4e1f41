"""The backward kernel: the gradients to the map and to what stands outside.

A map's gradient is a sum over all pixels: every program writes its part, added up in a fixed order.
"""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false
# Triton's loops have no types

from __future__ import annotations

import triton
import triton.language as tl

from warpkit.engine.backends.cuda.positions import (
    PERSPECTIVE,
    POINTS,
    aim,
    locate,
    resolve,
    tile_corner,
    tile_pixels,
)
from warpkit.engine.backends.cuda.weights import cover, normalize, weigh


@triton.jit
def backward_kernel(
    grad, image, where, outside, to_where, to_outside,
    channels, height, width, out_height, out_width, tiles,
    image_div, image_mod, where_div, where_mod, numbers,
    plane, pixel, out_plane, out_pixel,
    outside_item, outside_channel, outside_row, outside_column,
    KIND: tl.constexpr, TAPS: tl.constexpr, BORDER: tl.constexpr, DENSE: tl.constexpr,
    TO_WHERE: tl.constexpr, TO_OUTSIDE: tl.constexpr, REAL: tl.constexpr, OFFSET: tl.constexpr,
    LANES: tl.constexpr, PIXELS: tl.constexpr, SPAN: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """A program is one tile of an item, as in the forward kernel."""
    unit = tl.program_id(0)
    tile, item = unit % tiles, unit // tiles
    corner_x, corner_y = tile_corner(tile, out_width, PIXELS)
    column, row = tile_pixels(PIXELS, SPAN)
    x, y = corner_x + column, corner_y + row
    live = (x < out_width) & (y < out_height)

    where += (item // where_div % where_mod).to(tl.int64) * numbers
    u, v, w, near = locate(where, x, y, live, out_width, KIND)
    first_x, tx = aim(u, width, TAPS, BORDER, REAL)
    first_y, ty = aim(v, height, TAPS, BORDER, REAL)
    norm_x, norm_y = normalize(tx, TAPS), normalize(ty, TAPS)
    some_x, every_x, sum_x = cover(first_x, tx, norm_x, width, TAPS, BORDER)
    some_y, every_y, sum_y = cover(first_y, ty, norm_y, height, TAPS, BORDER)
    near = near & live
    reached = near & some_x & some_y
    lost = tl.where(every_x & every_y, 0.0, 1 - sum_x * sum_y)
    lost = tl.where(reached, lost, 1.0)[None, :]

    image += (item // image_div % image_mod).to(tl.int64) * channels * height * width
    item = item.to(tl.int64)
    outside += item * outside_item
    if DENSE:
        outside += (y.to(OFFSET) * outside_row + x * outside_column)[None, :]
    grad += item * channels * out_height * out_width
    grad += ((y.to(OFFSET) * out_width + x) * out_pixel)[None, :]
    gx, gy = tl.zeros([PIXELS], REAL), tl.zeros([PIXELS], REAL)
    for first in range(0, channels, LANES):
        channel = (first + tl.arange(0, LANES)).to(OFFSET)[:, None]
        exists = channel < channels
        have = exists & live[None, :]
        g = tl.load(grad + channel * out_plane, mask=have, other=0).to(REAL)
        if TO_OUTSIDE:
            push = tl.where(lost != 0, lost * g, 0.0)
            if DENSE:  # of the result's shape, always planar
                to = (item * channels + channel) * out_height * out_width
                to += y.to(OFFSET) * out_width + x
                tl.store(to_outside + to, push, mask=have)
            else:
                to = (item * tiles + tile) * channels + channel
                tl.store(to_outside + to, tl.sum(push.to(tl.float64), axis=1)[:, None], mask=exists)
        if TO_WHERE:
            beyond = outside + channel * outside_channel
            missing = tl.load(beyond, mask=have if DENSE else exists, other=0).to(REAL)
            along, across = tl.zeros([LANES, PIXELS], REAL), tl.zeros([LANES, PIXELS], REAL)
            for j in tl.range(0, TAPS, loop_unroll_factor=UNROLL):
                at_y, in_y = resolve(first_y, j, height, BORDER)
                weight_y, slope_y = weigh(ty, j, norm_y, TAPS)
                for i in tl.static_range(TAPS):
                    at_x, in_x = resolve(first_x, i, width, BORDER)
                    weight_x, slope_x = weigh(tx, i, norm_x, TAPS)
                    inside = (near & in_y & in_x)[None, :]
                    at = ((at_y.to(OFFSET) * width + at_x) * pixel)[None, :]
                    value = tl.load(image + channel * plane + at, mask=exists & inside, other=0).to(
                        REAL
                    )
                    value = tl.where(inside, value, missing)
                    along += (weight_y * slope_x)[None, :] * value
                    across += (slope_y * weight_x)[None, :] * value
            # by value, as in the reference: what was not read has no slope, be it NaN
            gx += tl.sum(tl.where(reached[None, :], g * along, 0.0), axis=0)
            gy += tl.sum(tl.where(reached[None, :], g * across, 0.0), axis=0)
    if TO_WHERE and KIND == POINTS:
        where_at = to_where + 2 * ((item * out_height + y) * out_width + x)
        tl.store(where_at, gx, mask=live)
        tl.store(where_at + 1, gy, mask=live)
    elif TO_WHERE:
        to_where += unit.to(tl.int64) * 9
        if KIND == PERSPECTIVE:
            gx, gy = gx / w.to(REAL), gy / w.to(REAL)
            gw = -(gx * u.to(REAL) + gy * v.to(REAL))
            add_row(to_where + 6, gw, column, row, corner_x, corner_y)
        add_row(to_where, gx, column, row, corner_x, corner_y)
        add_row(to_where + 3, gy, column, row, corner_x, corner_y)


@triton.jit
def add_row(to, g, column, row, corner_x, corner_y):
    """The sums of g x, g y and g over a tile: counted from its corner, where float32 is exact."""
    total = tl.sum(g, axis=0).to(tl.float64)
    tl.store(to, tl.sum(g * column, axis=0) + corner_x * total)
    tl.store(to + 1, tl.sum(g * row, axis=0) + corner_y * total)
    tl.store(to + 2, total)
