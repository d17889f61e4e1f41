"""Where the pixels of a tile look: whole pixels, fractions, weights, and what is missing.

A tile is SIDE x SIDE output pixels; pixel p = SIDE * row + column has one entry in each scratch
array. Positions are float64, in the reference's order of operations, so that both choose the same
neighbours to the last bit.
"""

from __future__ import annotations

import numpy as np

from warpkit.engine.backends.cpu.runtime.compiler import inline
from warpkit.engine.backends.cpu.runtime.scratch import PIXELS, SIDE
from warpkit.engine.backends.cpu.runtime.simd import least, most
from warpkit.engine.sampling.rules import CODE, LIMIT

POINTS, AFFINE, PERSPECTIVE = 0, 2, 3
"""Kinds of map: given points, or a matrix by its rows."""

WHOLE, NOTHING = 8.0, 16.0
"""`missing` of a pixel with all its taps, and with none; no sum of weights is as large."""

ROUND = 1.5 * 2.0**52
"""Adding and subtracting it rounds to an integer, ties to even."""

CONSTANT, REPLICATE, REFLECT = CODE["constant"], CODE["replicate"], CODE["reflect"]
WRAP, TRANSPARENT = CODE["wrap"], CODE["transparent"]


@inline
def position(kind, where, start, x, y):
    """The source point of output pixel (x, y); `where` holds matrices or points."""
    if kind == POINTS:
        return np.float64(where[start]), np.float64(where[start + 1])
    fx, fy = np.float64(x), np.float64(y)
    u = where[start] * fx + where[start + 1] * fy + where[start + 2]
    v = where[start + 3] * fx + where[start + 4] * fy + where[start + 5]
    if kind == AFFINE:
        return u, v
    w = where[start + 6] * fx + where[start + 7] * fy + where[start + 8]
    limit = LIMIT * abs(w)
    good = (abs(u) < limit) & (abs(v) < limit) & (abs(w) < np.inf)
    w = w if good else np.nan
    return u / w, v / w


@inline
def place(kind, taps, where, start, width, corner, shape, column, row, tx, ty):
    """Fill whole pixels and fractions; return their bounds and how many points are nowhere."""
    (x0, y0), (columns, rows) = corner, shape
    low_x = low_y = np.int32(2**31 - 1)
    high_x = high_y = np.int32(-(2**31))
    nowhere = 0
    for r in range(rows):
        for c in range(columns):
            p = np.uint64(SIDE * r + c)
            at = start + 2 * ((y0 + r) * width + x0 + c) if kind == POINTS else start
            x, y = position(kind, where, at, x0 + c, y0 + r)
            near = (abs(x) < LIMIT) & (abs(y) < LIMIT)
            x = x if near else 0.0
            y = y if near else 0.0
            if taps == 1:
                i = np.int32(least((x + ROUND) - ROUND, LIMIT - 1))
                j = np.int32(least((y + ROUND) - ROUND, LIMIT - 1))
                x, y = 0.0, 0.0
            else:
                i, j = np.int32(x), np.int32(y)
                i -= np.int32(x < i)
                j -= np.int32(y < j)
                x, y = x - i, y - j
            nowhere += not near
            low_x, high_x = least(low_x, i), most(high_x, i)
            low_y, high_y = least(low_y, j), most(high_y, j)
            column[p], row[p] = i, j
            tx[p] = x if near else np.nan
            ty[p] = y
    return low_x, high_x, low_y, high_y, nowhere


@inline
def misses(border):
    """Whether taps outside the image are missing."""
    return (border == CONSTANT) | (border == TRANSPARENT)


@inline
def inside(index, length):
    """Whether 0 <= index < length."""
    return (index >= 0) & (index < length)


@inline
def reach(taps, border, width, height, shape, column, row, tx, wx, wy, missing):
    """Fill `missing`; return the bounds of the whole pixels that some tap inside belongs to.

    Written without branches: small images are mostly border, and this is vectorised.
    """
    columns, rows = shape
    before = np.int32(taps // 2 - 1) if taps > 1 else np.int32(0)
    low_x = low_y = np.int32(2**31 - 1)
    high_x = high_y = np.int32(-(2**31))
    for r in range(rows):
        for c in range(columns):
            p = np.uint64(SIDE * r + c)
            near = tx[p] == tx[p]
            if border == REPLICATE:  # farther out the same pixels are read
                column[p] = least(most(column[p], -taps), width + taps)
                row[p] = least(most(row[p], -taps), height + taps)
            i, j = column[p], row[p]
            state = missing.dtype.type(WHOLE)
            if misses(border):
                sum_x = sum_y = missing.dtype.type(0)
                count_x = count_y = 0
                # taps beyond 2^31 - 1 would wrap around in int32
                i, j = least(i, np.int32(2**30)) - before, least(j, np.int32(2**30)) - before
                for k in range(taps):
                    q = p + np.uint64(k * PIXELS)
                    in_x, in_y = inside(i + k, width), inside(j + k, height)
                    count_x, count_y = count_x + in_x, count_y + in_y
                    sum_x += wx[q] if in_x else missing.dtype.type(0)
                    sum_y += wy[q] if in_y else missing.dtype.type(0)
                i, j = column[p], row[p]
                near = near & (count_x > 0) & (count_y > 0)
                some = missing.dtype.type(1) - sum_x * sum_y
                state = state if count_x * count_y == taps * taps else some
            missing[p] = state if near else missing.dtype.type(NOTHING)
            low_x, high_x = (least(low_x, i), most(high_x, i)) if near else (low_x, high_x)
            low_y, high_y = (least(low_y, j), most(high_y, j)) if near else (low_y, high_y)
    return low_x, high_x, low_y, high_y
