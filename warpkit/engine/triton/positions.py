"""Positions of output pixels: their tile, the source point, its integer and fractional parts.

Positions are float64, in the reference's order of operations, and compiled without fusing products
and sums, so both select the same neighbours to the last bit. That takes about 10 float64 operations
per pixel. If float64 runs at 1/2 of the float32 rate, this is a tenth of the time for the pixel's
bytes; at 1/64 of the rate, it is about as long.
"""

from __future__ import annotations

import triton
import triton.language as tl

from warpkit.engine.definitions.rules import CODE, MISSING_BORDERS

AFFINE = tl.constexpr(2)
PERSPECTIVE = tl.constexpr(3)
POINTS = tl.constexpr(0)
"""Kinds of map: given points, or a matrix by its rows."""

REPLICATE = tl.constexpr(CODE["replicate"])
REFLECT = tl.constexpr(CODE["reflect"])
WRAP = tl.constexpr(CODE["wrap"])
MISSING = tl.constexpr(sum(1 << CODE[name] for name in MISSING_BORDERS))
"""The borders under which taps outside the image are missing: bit n stands for border n."""

COLUMNS = tl.constexpr(32)
"""The width of a tile."""

LIMIT = tl.constexpr(2.0**31)
FAR = tl.constexpr(2.0**30)
"""Farther out than any image: if only inside or outside matters, positions end here."""

ROUND = tl.constexpr(1.5 * 2.0**52)
"""Adding and subtracting it rounds to an integer, ties to even."""

INFINITY = tl.constexpr(float("inf"))


@triton.jit
def tile_corner(tile, width, PIXELS: tl.constexpr):
    """The first column and row of a tile in an area that is `width` wide."""
    across = tl.cdiv(width, COLUMNS)
    return tile % across * COLUMNS, tile // across * (PIXELS // COLUMNS)


@triton.jit
def tile_pixels(PIXELS: tl.constexpr, SPAN: tl.constexpr):
    """Column and row in the tile; 32 consecutive numbers cover SPAN columns.

    Under a rotation, a row of 32 pixels reads as many cache lines as a compact patch reads 9.
    """
    n = tl.arange(0, PIXELS)
    across: tl.constexpr = COLUMNS // SPAN
    column = n % SPAN + SPAN * (n // 32 % across)
    # without hints about neighbours, the compiler keeps one layout for all tensors; with hints, it
    # moves every tap's offsets through shared memory to write four neighbours at once: 25 barriers,
    # 50 instructions
    column = tl.max_contiguous(column, 1)
    row = n // SPAN % (32 // SPAN) + (32 // SPAN) * (n // (32 * across))
    return column, row


@triton.jit
def read_map(mapping, KIND: tl.constexpr):
    """The entries of one matrix (2 or 3, 3); a missing last row is 0, 0, 1."""
    a, b, c = tl.load(mapping), tl.load(mapping + 1), tl.load(mapping + 2)
    d, e, f = tl.load(mapping + 3), tl.load(mapping + 4), tl.load(mapping + 5)
    g, h, i = a * 0, a * 0, a * 0 + 1
    if KIND == PERSPECTIVE:
        g, h, i = tl.load(mapping + 6), tl.load(mapping + 7), tl.load(mapping + 8)
    return a, b, c, d, e, f, g, h, i


@triton.jit
def finite(m):
    """Whether all entries of a matrix are finite: x - x is then 0, otherwise NaN."""
    a, b, c, d, e, f, g, h, i = m
    nothing = (a - a) + (b - b) + (c - c) + (d - d) + (e - e) + (f - f)
    return nothing + (g - g) + (h - h) + (i - i) == 0


@triton.jit
def map_point(m, x, y, KIND: tl.constexpr):
    """The source point of pixel (x, y) under a matrix, its divisor, and whether it is near."""
    a, b, c, d, e, f, g, h, i = m
    x, y = x.to(tl.float64), y.to(tl.float64)
    u = a * x + b * y + c
    v = d * x + e * y + f
    w = u
    if KIND == PERSPECTIVE:
        w = g * x + h * y + i
        limit = tl.abs(w) * LIMIT
        good = (tl.abs(u) < limit) & (tl.abs(v) < limit) & (tl.abs(w) < INFINITY)
        w = tl.where(good, w, float("nan"))
        u, v = u / w, v / w
    near = (tl.abs(u) < LIMIT) & (tl.abs(v) < LIMIT)
    return tl.where(near, u, 0.0), tl.where(near, v, 0.0), tl.where(near, w, 1.0), near


@triton.jit
def map_tile(mapping, x, y, live, width, KIND: tl.constexpr):
    """As `map_point`, for matrices and for points; `live` marks the pixels that exist."""
    if KIND == POINTS:
        at = mapping + 2 * (y.to(tl.int64) * width + x)
        u = tl.load(at, mask=live, other=float("nan")).to(tl.float64)
        v = tl.load(at + 1, mask=live, other=float("nan")).to(tl.float64)
        near = (tl.abs(u) < LIMIT) & (tl.abs(v) < LIMIT)
        return tl.where(near, u, 0.0), tl.where(near, v, 0.0), u, near
    return map_point(read_map(mapping, KIND), x, y, KIND)


@triton.jit
def whole(p, TAPS: tl.constexpr):
    """The first tap of a position and the fraction, both float64."""
    if TAPS == 1:
        return (p + ROUND) - ROUND, p * 0
    base = tl.floor(p)
    return base - (TAPS // 2 - 1), p - base


@triton.jit
def period_of(length, BORDER: tl.constexpr):
    """The number of pixels after which a border repeats."""
    if BORDER == WRAP:
        return length
    if BORDER == REFLECT:
        return 2 * length
    return tl.maximum(2 * length - 2, 1)


@triton.jit
def settle(first, length, TAPS: tl.constexpr, BORDER: tl.constexpr):
    """The first tap as int32, reduced to one period of the border, or clamped near the image."""
    if (MISSING >> BORDER) & 1 or BORDER == REPLICATE:
        if TAPS == 1:  # it rounds up to 2^31, beyond int32
            return tl.minimum(tl.maximum(first, -FAR), FAR).to(tl.int32)
        # clamped as integers: 34 fewer instructions per pixel than in float64
        base = (first + (TAPS // 2 - 1)).to(tl.int32)
        return tl.minimum(tl.maximum(base, -(2**30)), 2**30) - (TAPS // 2 - 1)
    period = period_of(length, BORDER)
    laps = tl.floor(first / period)  # off by at most one, and exact below 2^53
    first = first - laps * period
    first = tl.where(first < 0, first + period, first)
    return tl.where(first >= period, first - period, first).to(tl.int32)


@triton.jit
def first_tap(p, length, TAPS: tl.constexpr, BORDER: tl.constexpr, REAL: tl.constexpr):
    """The first tap of a position, as `settle` has it, and the fraction."""
    first, t = whole(p, TAPS)
    return settle(first, length, TAPS, BORDER), t.to(REAL)


@triton.jit
def resolve(first, k, length, BORDER: tl.constexpr):
    """Tap k as an index in range, and whether it is inside, as in `rules.resolve`."""
    index = first + k
    inside = (index >= 0) & (index < length)
    if (MISSING >> BORDER) & 1:
        return index, inside
    if BORDER == REPLICATE:
        index = tl.minimum(tl.maximum(index, 0), length - 1)
    elif BORDER == WRAP:
        index = index % length
    else:
        period = period_of(length, BORDER)
        index = index % period
        last_index = period
        if BORDER == REFLECT:
            last_index = period - 1
        index = tl.minimum(index, last_index - index)
    return index, index >= 0
