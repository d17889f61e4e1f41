"""The gradient to the image under a matrix, as a gather: one sum per source pixel.

The output pixels that read source pixel s have source points within `reach` of it. Under a matrix
they fill a quadrilateral. Its rows come from the corners of that square, mapped forward, and the
columns in each row from four lines. Bounds are slightly too wide; a candidate counts if the forward
kernel's own position says so. No atomics: each pixel is one sum, in one order.

The cost is the number of output pixels in a rotated square of side 2 reach: about 9 candidates at
scale 1, of which 4 read the pixel. It is higher if the map magnifies, or maps a source pixel to the
horizon.
"""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false
# Triton's loops have no types

from __future__ import annotations

import triton
import triton.language as tl

from warpkit.engine.triton.kernels import kernel
from warpkit.engine.triton.positions import (
    AFFINE,
    INFINITY,
    PERSPECTIVE,
    finite,
    map_point,
    read_map,
    tile_corner,
    tile_pixels,
    whole,
)
from warpkit.engine.triton.weights import normalize, weigh

SLACK = tl.constexpr(1 / 64)
"""Bounds are wider by this, in pixels: rounding moves them by at most 1e-9."""

WIDER = tl.constexpr(1 + 1e-12)
"""And by this factor: if a column is 1e15 source pixels wide, rounding moves them by more."""


@kernel
def gather_kernel(
    grad, mapping, grad_image,
    channels, height, width, out_height, out_width, tiles, groups, splits, readers,
    image_div, image_mod, mapping_div, mapping_mod, numbers,
    plane, pixel, out_plane, out_pixel,
    KIND: tl.constexpr, TAPS: tl.constexpr, WAY: tl.constexpr, REAL: tl.constexpr,
    OFFSET: tl.constexpr,
    CHANNEL_BLOCK: tl.constexpr, PIXELS: tl.constexpr, SPAN: tl.constexpr,
):  # fmt: skip
    """A program processes a tile of CHANNEL_BLOCK channels of an image's gradient, for some
    readers."""
    unit = tl.program_id(0)
    group, unit_image = unit // tiles % groups, unit // tiles // groups
    split, image_number = unit_image % splits, (unit_image // splits).to(tl.int64)
    corner_x, corner_y = tile_corner(unit % tiles, width, PIXELS)
    column, row = tile_pixels(PIXELS, SPAN)
    x, y = corner_x + column, corner_y + row
    live = (x < width) & (y < height)
    channel = group * CHANNEL_BLOCK + tl.arange(0, CHANNEL_BLOCK)[:, None]
    exists = channel < channels

    total = tl.zeros([CHANNEL_BLOCK, PIXELS], REAL)
    begin, end = (
        readers * split.to(tl.int64) // splits,
        readers * (split + 1).to(tl.int64) // splits,
    )
    for n in range(begin, end):
        item = n // image_div * (image_div * image_mod) + image_number * image_div + n % image_div
        m = read_map(mapping + item // mapping_div % mapping_mod * numbers, KIND)
        from_item = grad + item * channels * out_height * out_width + channel.to(OFFSET) * out_plane
        for side in range(KIND - 1):  # a perspective has two sides of its horizon
            top, rows = rows_of(m, x, y, side, out_height, KIND, TAPS)
            rows = tl.where(live, rows, 0)
            for r in range(tl.max(rows, axis=0)):
                at_y = top + r
                left, columns = columns_of(m, x, y, at_y, side, out_width, KIND, TAPS)
                columns = tl.where(r < rows, columns, 0)
                for c in range(most_columns(m, columns, out_width, KIND, TAPS)):
                    at_x = left + c
                    weight, reads = weight_of(m, at_x, at_y, x, y, KIND, TAPS, WAY, REAL)
                    reads = reads & (c < columns)
                    at = (at_y.to(OFFSET) * out_width + at_x) * out_pixel
                    g = tl.load(from_item + at[None, :], mask=exists & reads[None, :], other=0)
                    total += tl.where(reads, weight, 0.0)[None, :] * g.to(REAL)
    grad_image += unit_image.to(tl.int64) * channels * height * width + channel.to(OFFSET) * plane
    at = (y.to(OFFSET) * width + x) * pixel
    tl.store(
        grad_image + at[None, :], total.to(grad_image.dtype.element_ty), mask=exists & live[None, :]
    )


@triton.jit
def weight_of(
    m, at_x, at_y, x, y,
    KIND: tl.constexpr, TAPS: tl.constexpr, WAY: tl.constexpr, REAL: tl.constexpr,
):  # fmt: skip
    """The weight of source pixel (x, y) in output pixel (at_x, at_y), and whether it is a tap."""
    u, v, _, near = map_point(m, at_x, at_y, KIND)
    first_x, tx = whole(u, TAPS)
    first_y, ty = whole(v, TAPS)
    i, j = x - first_x, y - first_y
    taps = near & (i >= 0) & (i < TAPS) & (j >= 0) & (j < TAPS)
    i, j = tl.where(taps, i, 0.0).to(tl.int32), tl.where(taps, j, 0.0).to(tl.int32)
    tx, ty = tx.to(REAL), ty.to(REAL)
    weight_x = weigh(tx, i, normalize(tx, WAY), WAY)[0]
    weight_y = weigh(ty, j, normalize(ty, WAY), WAY)[0]
    return weight_x * weight_y, taps


@triton.jit
def reach_of(TAPS: tl.constexpr):
    """The largest distance from a reader's source point to the pixel that it reads."""
    if TAPS == 1:
        return 0.5 + SLACK
    return TAPS // 2 + SLACK


@triton.jit
def rows_of(m, x, y, side, out_height, KIND: tl.constexpr, TAPS: tl.constexpr):
    """The first output row that may read source pixel (x, y), and how many follow.

    An output pixel reads (x, y) if its source point (u, v) lies within `reach` of it: in the square
    S = [x - reach, x + reach] x [y - reach, y + reach]. Under an affine map, S is mapped forward to
    a parallelogram, whose rows are those of its centre plus and minus

        reach (|a| + |d|) / |det|      the forward map's second row is (-d, a) / det

    and under a perspective to a quadrilateral. Its rows lie between those of its corners, if all
    corners are on one side of the horizon. There the divisor of the adjugate's last row has one
    sign. If a corner is within rounding of 0, all rows remain; if a square is on the other side,
    none does (the loop visits both sides of a perspective). Bounds only have to be wide enough:
    `weight_of` decides what counts, so rounding here cannot change a bit of the sum, which runs
    over rows, then columns, in order. index_add over the forward pass's taps would compute the same
    sum in another order.
    """
    a, b, c, d, e, f, g, h, i = m
    reach = reach_of(TAPS)
    x, y = x.to(tl.float64), y.to(tl.float64)
    if KIND == AFFINE:
        det = a * e - b * d
        per = 1 / tl.where(tl.abs(det) < INFINITY, det, 0.0)
        middle = a * per * (y - f) - d * per * (x - c)
        half = reach * (tl.abs(a) + tl.abs(d)) * tl.abs(per)
        low, high = middle - half, middle + half  # all rows if the map has no inverse: NaN
    else:
        ei, fh, di, fg, dh, eg = e * i, f * h, d * i, f * g, d * h, e * g
        det = a * (ei - fh) - b * (di - fg) + c * (dh - eg)
        terms = tl.abs(a) * (tl.abs(ei) + tl.abs(fh)) + tl.abs(b) * (tl.abs(di) + tl.abs(fg))
        terms += tl.abs(c) * (tl.abs(dh) + tl.abs(eg))
        det = tl.where(tl.abs(det) > 1e-12 * terms, det, 0.0)  # else its sign may be rounding's
        # the last two rows of the adjugate map the square's corners forward, with a divisor q whose
        # sign gives the side of the horizon; all rows remain if a corner is too near to it
        k, s, n = fg - di, a * i - c * g, c * d - a * f
        o, p, q = dh - eg, b * g - a * h, a * e - b * d
        turn = tl.where(det > 0, 1.0, tl.where(det < 0, -1.0, 0.0)) * (1 - 2 * side)
        small = 1e-9 * (tl.abs(o * x) + tl.abs(p * y) + tl.abs(q))
        small += 1e-13 * (tl.abs(k * x) + tl.abs(s * y) + tl.abs(n))
        low, high = x * 0 + INFINITY, x * 0 - INFINITY
        ahead, behind = x == x, x == x
        for corner in tl.static_range(4):
            cx = x + reach * (2 * (corner % 2) - 1)
            cy = y + reach * (2 * (corner // 2) - 1)
            divisor = (o * cx + p * cy + q) * turn
            ahead, behind = ahead & (divisor > small), behind & (divisor < -small)
            at = (k * cx + s * cy + n) * turn / tl.where(divisor == 0, 1.0, divisor)
            low, high = tl.minimum(low, at), tl.maximum(high, at)
        low, high = tl.where(ahead, low, -INFINITY), tl.where(ahead, high, INFINITY)
        low = tl.where(behind, INFINITY, low)
    return clipped_range(low - SLACK, tl.where(finite(m), high + SLACK, -1.0), out_height)


@triton.jit
def columns_of(m, x, y, at_y, side, out_width, KIND: tl.constexpr, TAPS: tl.constexpr):
    """The first column of an output row that may read source pixel (x, y), and how many follow.

    In row at_y the source point is (u + a c, v + d c) / (w + g c) for column c, with w = 1 and
    g = 0 under an affine map. It lies within `reach` of (x, y) where

        -reach w <= u - x w <= reach w        and the same for v and y

    with w positive, on the side of the horizon that `turn` selects. These are four inequalities
    along c + constant >= 0, each of which cuts the row from the left or from the right. Replacing 0
    by 1e-300 makes a line parallel to the row keep all of it or nothing.
    """
    a, b, c, d, e, f, g, h, i = m
    reach, fy = reach_of(TAPS), at_y.to(tl.float64)
    u, v, w, turn = b * fy + c, e * fy + f, i, 1.0
    if KIND == PERSPECTIVE:
        w, turn = h * fy + i, 1.0 - 2 * side
    low, high = fy * 0 - INFINITY, fy * 0 + INFINITY
    for line in tl.static_range(4):
        along, constant, edge = a, u, x + reach * (2 * (line % 2) - 1)
        if line >= 2:
            along, constant, edge = d, v, y + reach * (2 * (line % 2) - 1)
        constant = constant - edge * w
        if KIND == PERSPECTIVE:
            along = (along - edge * g) * turn
            constant = constant * turn
        if line % 2 == 1:
            along, constant = -along, -constant
        # along * column + constant >= 0, where the constant's slack exceeds its rounding
        cut = -constant * (1 / tl.where(along == 0, 1e-300, along))
        low = tl.where(along >= 0, tl.maximum(low, cut), low)
        high = tl.where(along >= 0, high, tl.minimum(high, cut))
    return clipped_range(low, high, out_width)


@triton.jit
def clipped_range(low, high, length):
    """The integers of 0 .. length - 1 between two bounds: the first, and their number.

    NaN is no bound: minimum and maximum ignore it.
    """
    first = tl.minimum(tl.maximum(tl.ceil(low * (2 - WIDER)), 0.0), length.to(tl.float64))
    last = tl.maximum(tl.minimum(tl.floor(high * WIDER), length - 1.0), -1.0)
    return first.to(tl.int32), tl.maximum(last - first + 1, 0.0).to(tl.int32)


@triton.jit
def most_columns(m, columns, out_width, KIND: tl.constexpr, TAPS: tl.constexpr):
    """The number of columns to visit in a row. Under an affine map no pixel has more than this."""
    if KIND == AFFINE:
        a, _, _, d, _, _, _, _, _ = m
        widest = 2 * reach_of(TAPS) / tl.maximum(tl.maximum(tl.abs(a), tl.abs(d)), 1e-300)
        return tl.minimum(tl.floor(widest) + 1, out_width + 0.0).to(tl.int32)
    return tl.max(columns, axis=0)
