"""The gradient to the image as a fixed-point scatter, for points and borders that repeat pixels.

Integers have the same sum in any order, so atomics are exact and repeatable. Each channel of each
image has its own scale, for which its gradient's largest magnitude times the number of its values
is at most 2^57. So no sum overflows, and rounding is 2^-58 of that product per term. float64 keeps
the remainder in a second integer. The cost: TAPS^2 atomics per value, and 8 bytes (16 for float64)
per source value.
"""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false
# Triton's loops have no types

from __future__ import annotations

import triton.language as tl

from warpkit.engine.triton.kernels import kernel
from warpkit.engine.triton.positions import (
    MISSING,
    first_tap,
    map_tile,
    resolve,
    tile_corner,
    tile_pixels,
)
from warpkit.engine.triton.weights import normalize, weigh


@kernel
def scatter_kernel(
    grad, mapping, scale, units, rests,
    channels, height, width, out_height, out_width, tiles,
    image_div, image_mod, mapping_div, mapping_mod, numbers,
    plane, pixel, out_plane, out_pixel, rest_scale,
    KIND: tl.constexpr, TAPS: tl.constexpr, WAY: tl.constexpr,
    BORDER_Y: tl.constexpr, BORDER_X: tl.constexpr,
    REAL: tl.constexpr,
    OFFSET: tl.constexpr, CHANNEL_BLOCK: tl.constexpr, PIXELS: tl.constexpr, SPAN: tl.constexpr,
    UNROLL: tl.constexpr,
):  # fmt: skip
    """A program processes one tile of an item, as in the forward kernel."""
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

    near = near & live
    grad += item.to(tl.int64) * channels * out_height * out_width
    grad += ((y.to(OFFSET) * out_width + x) * out_pixel)[None, :]
    image_number = (item // image_div % image_mod).to(tl.int64)
    for first in range(0, channels, CHANNEL_BLOCK):
        channel = (first + tl.arange(0, CHANNEL_BLOCK)).to(OFFSET)[:, None]
        exists = channel < channels
        g = tl.load(grad + channel * out_plane, mask=exists & near[None, :], other=0).to(REAL)
        per_unit = tl.load(scale + image_number * channels + channel, mask=exists, other=0)
        dst = image_number * channels * height * width + channel * plane
        for j in tl.range(0, TAPS, loop_unroll_factor=UNROLL):
            at_y, in_y = resolve(first_y, j, height, BORDER_Y)
            weight_y = weigh(ty, j, norm_y, WAY)[0]
            for i in tl.static_range(TAPS):
                at_x, in_x = resolve(first_x, i, width, BORDER_X)
                weight_x = weigh(tx, i, norm_x, WAY)[0]
                inside = near
                if (MISSING >> BORDER_Y) & 1:
                    inside = inside & in_y
                if (MISSING >> BORDER_X) & 1:
                    inside = inside & in_x
                term = ((weight_y * weight_x)[None, :] * g).to(tl.float64) * per_unit
                # NaN, which has no integer, makes the whole channel NaN, see `scales`
                term = tl.where(tl.abs(term) < 4.0e18, term, 0.0)
                count = tl.floor(term + 0.5)
                to = dst + ((at_y.to(OFFSET) * width + at_x) * pixel)[None, :]
                some = exists & inside[None, :]
                tl.atomic_add(units + to, count.to(tl.int64), mask=some, sem="relaxed")
                if REAL == tl.float64:
                    rest = tl.floor((term - count) * rest_scale + 0.5).to(tl.int64)
                    tl.atomic_add(rests + to, rest, mask=some, sem="relaxed")


@kernel
def collect_kernel(
    units, rests, scale, grad_image, values, area, rest_scale, channels,
    REAL: tl.constexpr, LAST: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Converts integers to the image's type. `values` in total, `area` pixels per channel."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    some = at < values
    of = at // area
    if LAST:
        of = at // (area * channels) * channels + at % channels
    per = 1 / tl.load(scale + of, mask=some, other=1)
    total = tl.load(units + at, mask=some, other=0).to(tl.float64)
    if REAL == tl.float64:
        total += tl.load(rests + at, mask=some, other=0).to(tl.float64) / rest_scale
    total = (total * per).to(REAL)
    tl.store(grad_image + at, total.to(grad_image.dtype.element_ty), mask=some)
