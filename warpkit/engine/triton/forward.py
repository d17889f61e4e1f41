"""The forward kernel: finds the position, sums over taps, writes."""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false
# Triton's loops have no types

from __future__ import annotations

import triton.language as tl

from warpkit.engine.triton.kernels import kernel
from warpkit.engine.triton.positions import (
    ROUND,
    first_tap,
    map_tile,
    resolve,
    tile_corner,
    tile_pixels,
)
from warpkit.engine.triton.weights import normalize, tap_coverage, weigh


@kernel
def forward_kernel(
    image, mapping, fill, out,
    channels, height, width, out_height, out_width, tiles,
    image_div, image_mod, mapping_div, mapping_mod, numbers,
    plane, pixel, out_plane, out_pixel,
    fill_item, fill_channel, fill_row, fill_column,
    KIND: tl.constexpr, TAPS: tl.constexpr, WAY: tl.constexpr,
    BORDER_Y: tl.constexpr, BORDER_X: tl.constexpr,
    DENSE: tl.constexpr,
    REAL: tl.constexpr, OFFSET: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr,
    MOVED: tl.constexpr, VALUE: tl.constexpr,
    CHANNEL_BLOCK: tl.constexpr, PIXELS: tl.constexpr, SPAN: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """A program processes one tile of an item, tiles first; all channels share its taps.

    MOVED: labels, of the type VALUE, of which a single tap is copied.
    """
    unit = tl.program_id(0)
    item = unit // tiles
    corner_x, corner_y = tile_corner(unit % tiles, out_width, PIXELS)
    column, row = tile_pixels(PIXELS, SPAN)
    x, y = corner_x + column, corner_y + row
    live = (x < out_width) & (y < out_height)

    mapping += (item // mapping_div % mapping_mod).to(tl.int64) * numbers
    u, v, _, near = map_tile(mapping, x, y, live, out_width, KIND)
    first_x, tx = first_tap(u, width, TAPS, BORDER_X, REAL)
    first_y, ty = first_tap(v, height, TAPS, BORDER_Y, REAL)
    norm_x, norm_y = normalize(tx, WAY), normalize(ty, WAY)
    some_x = tap_coverage(first_x, tx, norm_x, width, TAPS, WAY, BORDER_X)[0]
    some_y = tap_coverage(first_y, ty, norm_y, height, TAPS, WAY, BORDER_Y)[0]
    near = near & live
    reached = (near & some_x & some_y)[None, :]

    image += (item // image_div % image_mod).to(tl.int64) * channels * height * width
    fill += item.to(tl.int64) * fill_item
    if DENSE:
        fill += (y.to(OFFSET) * fill_row + x * fill_column)[None, :]
    out += item.to(tl.int64) * channels * out_height * out_width
    out += ((y.to(OFFSET) * out_width + x) * out_pixel)[None, :]
    for first in range(0, channels, CHANNEL_BLOCK):
        channel = (first + tl.arange(0, CHANNEL_BLOCK)).to(OFFSET)[:, None]
        exists = channel < channels
        have = exists & live[None, :]
        fill_at = fill + channel * fill_channel
        fill_value = tl.load(fill_at, mask=have if DENSE else exists, other=0).to(VALUE)
        from_channel = image + channel * plane
        total = tl.zeros([CHANNEL_BLOCK, PIXELS], VALUE)
        for j in tl.range(0, TAPS, loop_unroll_factor=UNROLL):
            at_y, in_y = resolve(first_y, j, height, BORDER_Y)
            weight_y = weigh(ty, j, norm_y, WAY)[0]
            for i in tl.static_range(TAPS):
                at_x, in_x = resolve(first_x, i, width, BORDER_X)
                weight = (weight_y * weigh(tx, i, norm_x, WAY)[0])[None, :]
                inside = (near & in_y & in_x)[None, :]
                at = from_channel + ((at_y.to(OFFSET) * width + at_x) * pixel)[None, :]
                value = tl.load(at, mask=exists & inside, other=0).to(VALUE)
                # selected by value: 0 times a NaN on the other side would be NaN
                value = tl.where(inside, value, fill_value)
                if MOVED:
                    total = value
                else:
                    total = tl.fma(tl.broadcast_to(weight, value.shape), value, total)
        total = tl.where(reached, total, fill_value)
        if LOW < HIGH:
            total = tl.minimum(tl.maximum((total + ROUND) - ROUND, LOW), HIGH)
        tl.store(out + channel * out_plane, total.to(out.dtype.element_ty), mask=have)
