"""The gradient to the image under an affine map: `gather` with cheaper positions.

In each row the first candidate's u - x and v - y are small. They are computed in float64, and for
the following columns in the type of the computation. That is equally exact, because a small change
of the position changes a weight little. This is not so for nearest, which uses `gather`.
"""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false
# Triton's loops have no types

from __future__ import annotations

import triton
import triton.language as tl

from warpkit.engine.triton.gather import SLACK, WIDER, most_columns, rows_of
from warpkit.engine.triton.kernels import kernel
from warpkit.engine.triton.positions import AFFINE, read_map, tile_corner, tile_pixels
from warpkit.engine.triton.weights import weight_apart


@kernel
def gather_affine_kernel(
    grad, mapping, grad_image,
    channels, height, width, out_height, out_width, tiles, groups, splits, readers,
    image_div, image_mod, mapping_div, mapping_mod, numbers,
    plane, pixel, out_plane, out_pixel,
    KIND: tl.constexpr, TAPS: tl.constexpr, WAY: tl.constexpr, REAL: tl.constexpr,
    OFFSET: tl.constexpr,
    CHANNEL_BLOCK: tl.constexpr, PIXELS: tl.constexpr, SPAN: tl.constexpr,
):  # fmt: skip
    """As `gather_kernel`."""
    unit = tl.program_id(0)
    group, unit_image = unit // tiles % groups, unit // tiles // groups
    split, image_number = (unit_image % splits).to(tl.int64), (unit_image // splits).to(tl.int64)
    corner_x, corner_y = tile_corner(unit % tiles, width, PIXELS)
    column, row = tile_pixels(PIXELS, SPAN)
    x, y = corner_x + column, corner_y + row
    live = (x < width) & (y < height)
    channel = (group * CHANNEL_BLOCK + tl.arange(0, CHANNEL_BLOCK)).to(OFFSET)[:, None]
    exists = channel < channels

    total = tl.zeros([CHANNEL_BLOCK, PIXELS], REAL)
    for n in range(readers * split // splits, readers * (split + 1) // splits):
        item = n // image_div * (image_div * image_mod) + image_number * image_div + n % image_div
        m = read_map(mapping + item // mapping_div % mapping_mod * numbers, AFFINE)
        a, _, _, d, _, _, _, _, _ = m
        top, rows = rows_of(m, x, y, 0, out_height, AFFINE, TAPS)
        rows = tl.where(live, rows, 0)
        columns = most_columns(m, rows, out_width, AFFINE, TAPS)
        per = 1 / tl.maximum(tl.abs(a), 1e-300), 1 / tl.maximum(tl.abs(d), 1e-300)
        # far beyond any reach, but finite in float32: infinity times column 0 would be NaN
        slope_u, slope_v = within(a, 1e30).to(REAL), within(d, 1e30).to(REAL)
        from_item = grad + item * channels * out_height * out_width + channel * out_plane
        for r in range(tl.max(rows, axis=0)):
            left, u, v = first_of(m, per, x, y, top + r, out_width, TAPS)
            u, v = u.to(REAL), v.to(REAL)
            line = (top + r).to(OFFSET) * out_width
            step = 0.0
            for c in range(columns):
                weight, reads = weight_at(u + slope_u * step, v + slope_v * step, TAPS, WAY)
                reads = (reads & (r < rows) & (left + c < out_width))[None, :]
                at = from_item + ((line + (left + c)) * out_pixel)[None, :]
                g = tl.load(at, mask=exists & reads, other=0).to(REAL)
                weight = tl.where(reads, weight[None, :], 0.0)
                total = tl.fma(tl.broadcast_to(weight, g.shape), g, total)
                step += 1.0
    grad_image += unit_image.to(tl.int64) * channels * height * width + channel * plane
    grad_image += ((y.to(OFFSET) * width + x) * pixel)[None, :]
    tl.store(grad_image, total.to(grad_image.dtype.element_ty), mask=exists & live[None, :])


@triton.jit
def within(value, limit):
    """The value, clamped to the limit with its sign."""
    return tl.minimum(tl.maximum(value, -limit), limit)


@triton.jit
def first_of(m, per, x, y, at_y, out_width, TAPS: tl.constexpr):
    """The first column of an output row that may read source pixel (x, y), and its source point, in
    the forward kernel's float64. `per` are 1 / |a| and 1 / |d|."""
    a, b, c, d, e, f, _, _, _ = m
    per_a, per_d = per
    fy, reach = at_y.to(tl.float64), TAPS // 2 + SLACK
    bu, ev = b * fy, e * fy
    u, v = bu + c - x, ev + f - y
    low_u = (tl.where(a < 0, u, -u) - reach) * per_a
    low_v = (tl.where(d < 0, v, -v) - reach) * per_d
    low = tl.ceil(tl.maximum(low_u, low_v) * (2 - WIDER))
    low = tl.minimum(tl.maximum(low, 0.0), out_width + 0.0)
    return low.to(tl.int32), a * low + bu + c - x, d * low + ev + f - y


@triton.jit
def weight_at(u, v, TAPS: tl.constexpr, WAY: tl.constexpr):
    """The weight of a pixel at a distance, and whether it is a tap."""
    half: tl.constexpr = TAPS // 2
    taps = (u >= -half) & (u < half) & (v >= -half) & (v < half)
    return weight_apart(u, taps, TAPS, WAY) * weight_apart(v, taps, TAPS, WAY), taps
