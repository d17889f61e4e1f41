"""Where the pixels of a row look in OpenCV's arithmetics: see `opencv5` and `opencv4_positions`.

A row here is a piece of one, at most ROW pixels; pixel c has one entry in each scratch array. The
operations and their order are those of the two modules, so that the same bits come out.
"""

from __future__ import annotations

import numpy as np

from warpkit.engine.arithmetic.opencv5 import COLUMNS
from warpkit.engine.backends.cpu.runtime.compiler import inline
from warpkit.engine.backends.cpu.runtime.packed_loads import fma
from warpkit.engine.backends.cpu.runtime.rules import ROUND
from warpkit.engine.backends.cpu.runtime.simd import max_signed, min_signed
from warpkit.engine.sampling.layout import AFFINE, POINTS
from warpkit.engine.sampling.rounding import INT_MAX, INT_MIN
from warpkit.engine.sampling.rules import LIMIT

ROW = 64
"""Pixels worked on at a time: what is known of them stays in the first cache."""

NOWHERE = np.int32(INT_MIN)
"""The column of a pixel that is sampled nowhere: no other one can have it."""


@inline
def line5(mapping, at, x, y, head):
    """One row of a matrix at (x, y) in float32, fused as in OpenCV 5's vector loop or its tail."""
    a, b, c = np.float32(mapping[at]), np.float32(mapping[at + 1]), np.float32(mapping[at + 2])
    down = y * b
    return fma(a, x, down + c) if head else fma(a, x, down) + c


@inline
def position5(kind, mapping, mapping_start, width, x, y):
    """The float32 source point of output pixel (x, y)."""
    if kind == POINTS:
        at = mapping_start + 2 * (y * width + x)
        return np.float32(mapping[at]), np.float32(mapping[at + 1])
    head = x < width // COLUMNS * COLUMNS
    fx, fy = np.float32(x), np.float32(y)
    u, v = (
        line5(mapping, mapping_start, fx, fy, head),
        line5(mapping, mapping_start + 3, fx, fy, head),
    )
    if kind == AFFINE:
        return u, v
    w = line5(mapping, mapping_start + 6, fx, fy, head)
    return u / w, v / w


@inline
def to_int(value):
    """Rounded half to even; INT_MIN for NaN and out of range; still a float64."""
    rounded = (value + ROUND) - ROUND
    return rounded if (rounded >= INT_MIN) & (rounded <= INT_MAX) else float(INT_MIN)


@inline
def line4(mapping, at, x, y, half):
    """One row of an affine matrix in 1/1024 pixel, and whether it is a place at all."""
    across, down = mapping[at] * x, mapping[at + 1] * y + mapping[at + 2]
    total = np.int64(to_int(across * 1024)) + np.int64(to_int(down * 1024)) + half
    return np.int32(total), abs(across + down) < LIMIT


@inline
def wide4(mapping, at, block_start, within, y):
    """One row of a perspective: what is left of a block of columns is added first."""
    first = mapping[at] * block_start + mapping[at + 1] * y + mapping[at + 2]
    return first + mapping[at] * within


@inline
def position4(kind, nearest, mapping, mapping_start, width, height, x, y):
    """The source point of output pixel (x, y) in 1/32 pixel, and whether it is one."""
    unit = 1.0 if nearest else 32.0
    if kind == AFFINE:
        half = 512 if nearest else 16
        u, u_near = line4(mapping, mapping_start, np.float64(x), np.float64(y), half)
        v, v_near = line4(mapping, mapping_start + 3, np.float64(x), np.float64(y), half)
        if nearest:
            return u >> 10 << 5, v >> 10 << 5, u_near & v_near
        return u >> 5, v >> 5, u_near & v_near
    if kind == POINTS:
        at = mapping_start + 2 * (y * width + x)
        u, v = np.float64(mapping[at]), np.float64(mapping[at + 1])
        u, v = u * unit, v * unit
    else:
        block = min_signed(1024 // min_signed(16, height), width)
        within, fy = x % block, np.float64(y)
        left, right = np.float64(x - within), np.float64(within)
        w = wide4(mapping, mapping_start + 6, left, right, fy)
        scale = unit / w if w != 0 else 0.0
        u = wide4(mapping, mapping_start, left, right, fy) * scale
        v = wide4(mapping, mapping_start + 3, left, right, fy) * scale
    near = (abs(u) < LIMIT * unit) & (abs(v) < LIMIT * unit)
    if kind != POINTS:
        u, v = clamp(u), clamp(v)
    i, j = np.int64(to_int(u)), np.int64(to_int(v))
    return (i << 5, j << 5, near) if nearest else (i, j, near)


@inline
def clamp(value):
    """Between INT_MIN and INT_MAX; NaN stays."""
    return min_signed(max_signed(value, np.float64(INT_MIN)), np.float64(INT_MAX))


@inline
def saturate16(value):
    """As an int16 holds it."""
    return np.int32(min_signed(max_signed(value, -(2**15)), 2**15 - 1))


@inline
def map_row(
    fixed, kind, nearest, finite, mapping, mapping_start, width, height, x0, y, count, taps_of_row
):
    """Fill whole pixels and fractions of a row.

    fixed: OpenCV 4's arithmetic. finite: the matrix is. Fractions of nearest stay as they are.
    """
    column, row, tx, ty = taps_of_row
    for c in range(count):
        p = np.uint64(c)
        if fixed:
            u, v, near = position4(kind, nearest, mapping, mapping_start, width, height, x0 + c, y)
            i, j = saturate16(u >> 5), saturate16(v >> 5)
            x = np.float32(u & 31) * np.float32(1 / 32)
            y_ = np.float32(v & 31) * np.float32(1 / 32)
        else:
            x, y_ = position5(kind, mapping, mapping_start, width, x0 + c, y)
            near = (abs(x) < np.float32(LIMIT)) & (abs(y_) < np.float32(LIMIT))
            x, y_ = (x, y_) if near else (np.float32(0), np.float32(0))
            if nearest:
                i, j = np.int32(np.rint(x)), np.int32(np.rint(y_))
            else:
                i, j = np.int32(x), np.int32(y_)
                i, j = np.int32(i - (x < np.float32(i))), np.int32(j - (y_ < np.float32(j)))
                x, y_ = x - np.float32(i), y_ - np.float32(j)
        near = near & finite
        i = i if near else NOWHERE
        j = j if near else np.int32(0)
        if not nearest:
            tx[p] = x if near else np.float32(0)
            ty[p] = y_ if near else np.float32(0)
        column[p], row[p] = i, j


@inline
def bounds(fixed, kind, mapping, mapping_start, width, x0, y, count, column, row):
    """Columns and rows that no pixel of a placed row lies beyond, as float64."""
    if kind == AFFINE and not fixed:  # from end to end, but for a rounding where tails begin
        a, b = position5(kind, mapping, mapping_start, width, x0, y)
        c, d = position5(kind, mapping, mapping_start, width, x0 + count - 1, y)
        return (
            min_signed(a, c) - 1.0,
            max_signed(a, c) + 1.0,
            min_signed(b, d) - 1.0,
            max_signed(b, d) + 1.0,
        )
    low_x = low_y = np.int32(INT_MAX)
    high_x = high_y = np.int32(INT_MIN)
    for n in range(count):
        p = np.uint64(n)
        low_x, high_x = min_signed(low_x, column[p]), max_signed(high_x, column[p])
        low_y, high_y = min_signed(low_y, row[p]), max_signed(high_y, row[p])
    return np.float64(low_x), np.float64(high_x), np.float64(low_y), np.float64(high_y)
