"""The image's gradient under an affine map: `gather` with bounds and positions from a few sums.

Output pixels are counted from one near the source pixel's own place in the output, where u - x and
v - y are small: found in float64, then in the type of the computation. That is as exact, since a
weight changes little where the position does; nearest's does not, and goes through `gather`.
"""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false
# Triton's loops have no types

from __future__ import annotations

import triton
import triton.language as tl

from warpkit.kernels.cuda.gather import SLACK
from warpkit.kernels.cuda.locate import AFFINE, INFINITY, ROUND, read_map, tile_corner, tile_pixels
from warpkit.kernels.cuda.weights import cubic, normalize, weigh


@triton.jit
def gather_affine_kernel(
    grad, where, to_image,
    channels, height, width, out_height, out_width, tiles, groups, parts, readers,
    image_div, image_mod, where_div, where_mod, numbers,
    plane, pixel, out_plane, out_pixel,
    KIND: tl.constexpr, TAPS: tl.constexpr, REAL: tl.constexpr, OFFSET: tl.constexpr,
    LANES: tl.constexpr, PIXELS: tl.constexpr, SPAN: tl.constexpr,
):  # fmt: skip
    """As `gather_kernel`."""
    unit = tl.program_id(0)
    group, unit_image = unit // tiles % groups, unit // tiles // groups
    part, slot = (unit_image % parts).to(tl.int64), (unit_image // parts).to(tl.int64)
    corner_x, corner_y = tile_corner(unit % tiles, width, PIXELS)
    column, row = tile_pixels(PIXELS, SPAN)
    x, y = corner_x + column, corner_y + row
    live = (x < width) & (y < height)
    channel = (group * LANES + tl.arange(0, LANES)).to(OFFSET)[:, None]
    exists = channel < channels

    total = tl.zeros([LANES, PIXELS], REAL)
    for n in range(readers * part // parts, readers * (part + 1) // parts):
        item = n // image_div * (image_div * image_mod) + slot * image_div + n % image_div
        m = read_map(where + item // where_div % where_mod * numbers, AFFINE)
        a, b, _, d, e, _, _, _, _ = m
        at_x, at_y, du, dv, rows = start_of(m, x, y, out_height, out_width, TAPS)
        rows = tl.where(live, rows, 0)
        du, dv = du.to(REAL), dv.to(REAL)
        a, b, d, e = a.to(REAL), b.to(REAL), d.to(REAL), e.to(REAL)
        per_a, per_d = 1 / tl.maximum(tl.abs(a), 1e-30), 1 / tl.maximum(tl.abs(d), 1e-30)
        reach = TAPS // 2 + SLACK
        widest = tl.floor(2 * reach * tl.minimum(per_a, per_d)) + 1
        columns = tl.minimum(widest, out_width + 0.0).to(tl.int32)
        from_item = grad + item * channels * out_height * out_width + channel * out_plane
        for r in range(tl.max(rows, axis=0)):
            low_u = (tl.where(a < 0, du, -du) - reach) * per_a
            low_v = (tl.where(d < 0, dv, -dv) - reach) * per_d
            low = tl.maximum(tl.maximum(tl.ceil(low_u), tl.ceil(low_v)), 0.0 - at_x)
            low = tl.minimum(low, out_width - at_x)
            left = at_x + low.to(tl.int32)
            u, v = tl.fma(low, low * 0 + a, du), tl.fma(low, low * 0 + d, dv)
            line = (at_y + r).to(OFFSET) * out_width
            step = 0.0
            for c in range(columns):
                weight, reads = weight_at(u + a * step, v + d * step, TAPS)
                reads = (reads & (r < rows) & (left + c < out_width))[None, :]
                at = from_item + ((line + (left + c)) * out_pixel)[None, :]
                g = tl.load(at, mask=exists & reads, other=0).to(REAL)
                weight = tl.where(reads, weight[None, :], 0.0)
                total = tl.fma(tl.broadcast_to(weight, g.shape), g, total)
                step += 1.0
            du, dv = du + b, dv + e
    to_image += unit_image.to(tl.int64) * channels * height * width + channel * plane
    to_image += ((y.to(OFFSET) * width + x) * pixel)[None, :]
    tl.store(to_image, total.to(to_image.dtype.element_ty), mask=exists & live[None, :])


@triton.jit
def start_of(m, x, y, out_height, out_width, TAPS: tl.constexpr):
    """The first output row that may read source pixel (x, y), a column near, what the two look at
    from (x, y), and how many rows follow."""
    a, b, c, d, e, f, _, _, _ = m
    x, y = x.to(tl.float64) - c, y.to(tl.float64) - f
    finite = tl.abs(a) + tl.abs(b) + tl.abs(c) + tl.abs(d) + tl.abs(e) + tl.abs(f) < INFINITY
    per = 1 / (a * e - b * d)
    middle = (a * y - d * x) * per
    half = (TAPS // 2 + SLACK) * (tl.abs(a) + tl.abs(d)) * tl.abs(per)
    # all rows where the map has no inverse: NaN, which minimum and maximum leave out
    top = tl.minimum(tl.maximum(tl.ceil(middle - half), 0.0), out_height + 0.0)
    bottom = tl.maximum(tl.minimum(tl.floor(middle + half), out_height - 1.0), -1.0)
    rows = tl.where(finite, tl.maximum(bottom - top + 1, 0.0), 0.0)
    # the middle of the row's own readers, so that u - x and v - y are small there
    along = tl.where(tl.abs(a) > tl.abs(d), (x - b * top) / a, (y - e * top) / d)
    left = tl.minimum(tl.maximum(along, 0.0), out_width - 1.0)
    left = (left + ROUND) - ROUND
    left = tl.where(left == left, left, 0.0)
    du, dv = a * left + b * top - x, d * left + e * top - y
    return left.to(tl.int32), top.to(tl.int32), du, dv, rows.to(tl.int32)


@triton.jit
def weight_at(u, v, TAPS: tl.constexpr):
    """The weight of a pixel at a distance, and whether it is a tap."""
    half: tl.constexpr = TAPS // 2
    taps = (u >= -half) & (u < half) & (v >= -half) & (v < half)
    if TAPS == 2:
        return (1 - tl.abs(u)) * (1 - tl.abs(v)), taps
    if TAPS == 4:
        return cubic(u)[0] * cubic(v)[0], taps
    u, v = tl.where(taps, u, 0.0), tl.where(taps, v, 0.0)
    i, j = tl.floor(u), tl.floor(v)
    tx, ty = u - i, v - j
    weight_x = weigh(tx, 3 - i.to(tl.int32), normalize(tx, TAPS), TAPS)[0]
    return weight_x * weigh(ty, 3 - j.to(tl.int32), normalize(ty, TAPS), TAPS)[0], taps
