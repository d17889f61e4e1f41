"""Where the pixels of a tile look: whole pixels, fractions, and the weight of missing taps.

A tile is TILE x TILE output pixels; pixel p = TILE * row + column has one entry in each scratch
array. Positions are float64, in the reference's order of operations, so that both choose the same
neighbours to the last bit.
"""

from __future__ import annotations

import numpy as np

from warpkit.engine.backends.cpu.runtime.compiler import inline
from warpkit.engine.backends.cpu.runtime.scratch import PIXELS, TILE
from warpkit.engine.backends.cpu.runtime.simd import max_signed, min_signed
from warpkit.engine.sampling.rules import CODE, LIMIT

POINTS, AFFINE, PERSPECTIVE = 0, 2, 3
"""Kinds of map: given points, or a matrix by its rows."""

SINGLE_POINTS = 1
"""Points of float32, to the kernels that take either."""

ALL_TAPS_INSIDE, NO_TAP_INSIDE = 8.0, 16.0
"""`missing_weight` of a pixel with all its taps, and with none; no sum of weights is as large."""

ROUND = 1.5 * 2.0**52
"""Adding and subtracting it rounds to an integer, ties to even."""

CONSTANT, REPLICATE, REFLECT = CODE["constant"], CODE["replicate"], CODE["reflect"]
WRAP, TRANSPARENT = CODE["wrap"], CODE["transparent"]


@inline
def map_point(kind, mapping, mapping_start, x, y):
    """The source point of output pixel (x, y); `mapping` holds matrices or points."""
    if kind == POINTS:
        return np.float64(mapping[mapping_start]), np.float64(mapping[mapping_start + 1])
    fx, fy = np.float64(x), np.float64(y)
    u = mapping[mapping_start] * fx + mapping[mapping_start + 1] * fy + mapping[mapping_start + 2]
    v = (
        mapping[mapping_start + 3] * fx
        + mapping[mapping_start + 4] * fy
        + mapping[mapping_start + 5]
    )
    if kind == AFFINE:
        return u, v
    w = (
        mapping[mapping_start + 6] * fx
        + mapping[mapping_start + 7] * fy
        + mapping[mapping_start + 8]
    )
    limit = LIMIT * abs(w)
    good = (abs(u) < limit) & (abs(v) < limit) & (abs(w) < np.inf)
    w = w if good else np.nan
    return u / w, v / w


@inline
def map_tile(kind, taps, maps, mapping_start, width, corner, shape, places):
    """Fill whole pixels and fractions; return their bounds and how many points are nowhere.

    maps: matrices or points of float64, and points of float32, of which `kind` says which are
    meant. places: column, row, tx and ty of `Scratch`. One loop for each kind, chosen once a tile:
    a kernel for each took as long to compile as all four loops and the rest of it together.
    """
    doubles, singles = maps
    if kind == AFFINE:
        return map_pixels(AFFINE, taps, doubles, mapping_start, width, corner, shape, places)
    if kind == PERSPECTIVE:
        return map_pixels(PERSPECTIVE, taps, doubles, mapping_start, width, corner, shape, places)
    if kind == SINGLE_POINTS:
        return map_pixels(POINTS, taps, singles, mapping_start, width, corner, shape, places)
    return map_pixels(POINTS, taps, doubles, mapping_start, width, corner, shape, places)


@inline
def map_corner(kind, maps, mapping_start, width, x, y):
    """The source point of one pixel, `maps` as of `map_tile`."""
    doubles, singles = maps
    if kind == AFFINE:
        return map_point(AFFINE, doubles, mapping_start, x, y)
    if kind == PERSPECTIVE:
        return map_point(PERSPECTIVE, doubles, mapping_start, x, y)
    at = mapping_start + 2 * (y * width + min_signed(x, width - 1))
    if kind == SINGLE_POINTS:
        return map_point(POINTS, singles, at, x, y)
    return map_point(POINTS, doubles, at, x, y)


@inline
def map_pixels(kind, taps, mapping, mapping_start, width, corner, shape, places):
    """`map_tile` of one kind."""
    column, row, tx, ty = places
    (x0, y0), (columns, rows) = corner, shape
    low_x = low_y = np.int32(2**31 - 1)
    high_x = high_y = np.int32(-(2**31))
    nowhere = 0
    for r in range(rows):
        for c in range(columns):
            p = np.uint64(TILE * r + c)
            at = (
                mapping_start + 2 * ((y0 + r) * width + x0 + c) if kind == POINTS else mapping_start
            )
            x, y = map_point(kind, mapping, at, x0 + c, y0 + r)
            near = (abs(x) < LIMIT) & (abs(y) < LIMIT)
            x = x if near else 0.0
            y = y if near else 0.0
            if taps == 1:
                i = np.int32(min_signed((x + ROUND) - ROUND, LIMIT - 1))
                j = np.int32(min_signed((y + ROUND) - ROUND, LIMIT - 1))
                x, y = 0.0, 0.0
            else:
                i, j = np.int32(x), np.int32(y)
                i -= np.int32(x < i)
                j -= np.int32(y < j)
                x, y = x - i, y - j
            nowhere += not near
            low_x, high_x = min_signed(low_x, i), max_signed(high_x, i)
            low_y, high_y = min_signed(low_y, j), max_signed(high_y, j)
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
def tap_coverage(taps, border, size, shape, column, row, tx, wx, wy, missing_weight):
    """Fill `missing_weight`; return the bounds of the whole pixels that some tap inside belongs to.

    Written without branches: small images are mostly border, and this is vectorised.
    """
    (height, width), (columns, rows) = size, shape
    before = np.int32(taps // 2 - 1) if taps > 1 else np.int32(0)
    low_x = low_y = np.int32(2**31 - 1)
    high_x = high_y = np.int32(-(2**31))
    for r in range(rows):
        for c in range(columns):
            p = np.uint64(TILE * r + c)
            near = tx[p] == tx[p]
            if border == REPLICATE:  # farther out the same pixels are read
                column[p] = min_signed(max_signed(column[p], -taps), width + taps)
                row[p] = min_signed(max_signed(row[p], -taps), height + taps)
            i, j = column[p], row[p]
            state = missing_weight.dtype.type(ALL_TAPS_INSIDE)
            if misses(border):
                sum_x = sum_y = missing_weight.dtype.type(0)
                count_x = count_y = 0
                # taps beyond 2^31 - 1 would wrap around in int32
                i, j = (
                    min_signed(i, np.int32(2**30)) - before,
                    min_signed(j, np.int32(2**30)) - before,
                )
                for k in range(taps):
                    q = p + np.uint64(k * PIXELS)
                    in_x, in_y = inside(i + k, width), inside(j + k, height)
                    count_x, count_y = count_x + in_x, count_y + in_y
                    sum_x += wx[q] if in_x else missing_weight.dtype.type(0)
                    sum_y += wy[q] if in_y else missing_weight.dtype.type(0)
                i, j = column[p], row[p]
                near = near & (count_x > 0) & (count_y > 0)
                some = missing_weight.dtype.type(1) - sum_x * sum_y
                state = state if count_x * count_y == taps * taps else some
            missing_weight[p] = state if near else missing_weight.dtype.type(NO_TAP_INSIDE)
            low_x, high_x = (
                (min_signed(low_x, i), max_signed(high_x, i)) if near else (low_x, high_x)
            )
            low_y, high_y = (
                (min_signed(low_y, j), max_signed(high_y, j)) if near else (low_y, high_y)
            )
    return low_x, high_x, low_y, high_y
