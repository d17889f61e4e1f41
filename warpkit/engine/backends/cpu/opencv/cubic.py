"""OpenCV 5's bicubic, in float32: see `arithmetic.opencv5`, of which this has every operation.

Row by row of a tile: find where it looks, and what shows the border alone, weigh, sum, write.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from warpkit.engine.arithmetic.opencv5 import BLOCK
from warpkit.engine.backends.cpu.opencv.planar import read, read_by
from warpkit.engine.backends.cpu.opencv.positions import NOWHERE, ROW, bounds
from warpkit.engine.backends.cpu.opencv.tile import TILE_ROWS, all_finite, ask_ahead
from warpkit.engine.backends.cpu.runtime.compiler import DIGEST, inline, kernel
from warpkit.engine.backends.cpu.runtime.packed_loads import fma
from warpkit.engine.backends.cpu.runtime.rules import CONSTANT, misses
from warpkit.engine.backends.cpu.runtime.simd import max_signed, min_signed
from warpkit.engine.sampling.layout import AFFINE, POINTS
from warpkit.engine.sampling.rules import CUBIC_A, LIMIT

LEAST_SIDE = 16
"""A position is held within one side of the image, or so many pixels, before its first one."""


@inline
def line(mapping, at, x, y):
    """One row of a matrix at (x, y): what is multiplied by x, and the rest."""
    a, b, c = np.float32(mapping[at]), np.float32(mapping[at + 1]), np.float32(mapping[at + 2])
    return a, y * b + c


@inline
def position(kind, mapping, mapping_start, columns, x, y):
    """The float32 source point of output pixel (x, y)."""
    if kind == POINTS:
        at = mapping_start + 2 * (y * columns + x)
        return np.float32(mapping[at]), np.float32(mapping[at + 1])
    fx, fy = np.float32(x), np.float32(y)
    a, p = line(mapping, mapping_start, fx, fy)
    b, q = line(mapping, mapping_start + 3, fx, fy)
    if kind == AFFINE:
        return fx * a + p, fx * b + q
    c, r = line(mapping, mapping_start + 6, fx, fy)
    double_x = np.float64(fx)
    w = double_x * np.float64(c) + np.float64(r)
    u, v = double_x * np.float64(a) + np.float64(p), double_x * np.float64(b) + np.float64(q)
    return np.float32(u / w), np.float32(v / w)


@inline
def held(value, length):
    """A coordinate between one side before the image and one behind it."""
    side = np.float32(max_signed(length, LEAST_SIDE))
    return min_signed(max_signed(value, -side), np.float32(2) * side)


@inline
def held_point(kind, finite, mapping, mapping_start, plan, x, y):
    """The point of output pixel (x, y), held near the image, and whether it is one at all."""
    u, v = position(kind, mapping, mapping_start, plan.out_width, x, y)
    near = finite & (abs(u) < np.float32(LIMIT)) & (abs(v) < np.float32(LIMIT))
    u, v = (u, v) if near else (np.float32(0), np.float32(0))
    return held(u, plan.width), held(v, plan.height), near


@inline
def is_far(i, j, plan):
    """Whether no tap of a pixel comes near the image."""
    return (i < -3) | (i > plan.width) | (j < -3) | (j > plan.height)


@inline
def far_from(kind, finite, mapping, mapping_start, plan, x0, y):
    """Whether all pixels of a block from x0 on are."""
    far = True
    for x in range(x0, x0 + BLOCK):
        u, v, _near = held_point(kind, finite, mapping, mapping_start, plan, x, y)
        far &= is_far(np.floor(u), np.floor(v), plan)
    return far


@inline
def map_cubic(kind, vector, finite, mapping, mapping_start, plan, x0, y, count, row):
    """Fill columns, rows and fractions; NOWHERE where a pixel shows the border's value alone.

    vector: by OpenCV's vector code, which asks that of whole blocks of pixels under a constant
    border; where a row is no whole blocks, its last BLOCK pixels are one.
    """
    column, rows, tx, ty = row
    by_blocks = vector & (plan.border == CONSTANT)
    for c in range(count):
        p = np.uint64(c)
        u, v, near = held_point(kind, finite, mapping, mapping_start, plan, x0 + c, y)
        low_x, low_y = np.floor(u), np.floor(v)
        i, j = np.int32(low_x), np.int32(low_y)
        tx[p], ty[p] = u - low_x, v - low_y
        alone = (not near) | (misses(plan.border) & (not by_blocks) & is_far(i, j, plan))
        column[p], rows[p] = (NOWHERE if alone else i), j
    if by_blocks and plan.out_width >= BLOCK:
        last = plan.out_width if plan.out_width % BLOCK == 0 else plan.out_width - BLOCK
        for first in range(x0, min_signed(x0 + count, last), BLOCK):
            if far_from(kind, finite, mapping, mapping_start, plan, first, y):
                for x in range(first, min_signed(first + BLOCK, last)):
                    column[np.uint64(x - x0)] = NOWHERE
        if x0 + count > last and far_from(kind, finite, mapping, mapping_start, plan, last, y):
            for x in range(max_signed(x0, last), x0 + count):
                column[np.uint64(x - x0)] = NOWHERE


@inline
def weigh(vector, count, fraction, weight):
    """Fill the weights of four taps, ROW of each after the other."""
    one = np.float32(1)
    for c in range(count):
        p = np.uint64(c)
        t = fraction[p]
        u = one - t
        if vector:
            first = np.float32(CUBIC_A) * (t * (u * u))
            last = np.float32(CUBIC_A) * (u * (t * t))
        else:
            first = (np.float32(CUBIC_A) * t) * (u * u)
            last = (np.float32(CUBIC_A) * (t * t)) * u
        slope = fma(np.float32(CUBIC_A + 2), t, np.float32(-(CUBIC_A + 3)))
        second = fma(slope, t * t, one)
        weight[p], weight[p + np.uint64(ROW)] = first, second
        weight[p + np.uint64(2 * ROW)] = ((one - first) - second) - last
        weight[p + np.uint64(3 * ROW)] = last


@inline
def sum_line(vector, a, b, c, d, weight, at):
    """Four taps of a row, in the order of either of OpenCV's kernels."""
    first, second = weight[at], weight[at + np.uint64(ROW)]
    total = fma(b, second, a * first) if vector else fma(a, first, b * second)
    total = fma(c, weight[at + np.uint64(2 * ROW)], total)
    return fma(d, weight[at + np.uint64(3 * ROW)], total)


@inline
def sum_pixels(vector, integer, image, base, row, whole, fill, out, dst, step):
    """Sum and write one channel of a row."""
    count, column, across, down, wx, wy = row
    single = np.float32
    for c in range(count):
        q, p, total = dst + c * step, np.uint64(c), np.float32(0)
        if column[p] == NOWHERE:
            out[q] = fill
            continue
        for r in range(4):
            y = down[r * ROW + c]
            if whole:
                at = base + y
                w0, w1 = single(image[at + across[c]]), single(image[at + across[ROW + c]])
                w2 = single(image[at + across[2 * ROW + c]])
                w3 = single(image[at + across[3 * ROW + c]])
            else:
                w0 = single(read(image, base, across[c], y, fill))
                w1 = single(read(image, base, across[ROW + c], y, fill))
                w2 = single(read(image, base, across[2 * ROW + c], y, fill))
                w3 = single(read(image, base, across[3 * ROW + c], y, fill))
            value = sum_line(vector, w0, w1, w2, w3, wx, p)
            factor = wy[p + np.uint64(r * ROW)]
            total = value * factor if r == 0 else fma(value, factor, total)
        if integer:
            total = min_signed(max_signed(np.rint(total), single(0)), single(255))
        out[q] = total


@cache
def cubic_kernel(kind: int, vector: bool, integer: bool) -> Any:
    """The kernel for a kind of map, the order of either of OpenCV's loops, and bytes or floats."""
    digest = DIGEST

    def warp_cubic(
        image, image_at, mapping, mapping_of, fill, out, table, plan, memory, begin, end
    ):
        """Tile rows begin .. end of all items, counted through."""
        _ = digest
        column, row, tx, ty, _u, _v, _w, across, down, wx, wy = memory
        tile_rows = (plan.out_height + TILE_ROWS - 1) // TILE_ROWS
        width, height, columns, border = plan.width, plan.height, plan.out_width, plan.border
        for unit in range(begin, end):
            item, y0 = unit // tile_rows, unit % tile_rows * TILE_ROWS
            mapping_start, base = mapping_of[item] * plan.mapping_size, image_at[item]
            finite = all_finite(kind, mapping, mapping_start)
            rows = min_signed(TILE_ROWS, plan.out_height - y0)
            for x0 in range(0, columns, ROW):
                count = min_signed(ROW, columns - x0)
                ask_ahead(kind, image, base, plan, mapping, mapping_start, x0 + ROW, y0, rows)
                for y in range(y0, y0 + rows):
                    map_cubic(kind, vector, finite, mapping, mapping_start, plan, x0, y, count,
                              (column, row, tx, ty))  # fmt: skip
                    west, east, north, south = bounds(
                        True, kind, mapping, mapping_start, columns, x0, y, count, column, row
                    )
                    whole = (west >= 1) & (east + 2 < width) & (north >= 1) & (south + 2 < height)
                    read_by(whole, 4, width, border, plan.pixel, count, column, across)
                    read_by(whole, 4, height, border, plan.line, count, row, down)
                    weigh(vector, count, tx, wx)
                    weigh(vector, count, ty, wy)
                    at = item * plan.out_item + y * plan.out_line + x0 * plan.out_pixel
                    for k in range(plan.channels):
                        value = fill[item * plan.fill + k]
                        sum_pixels(
                            vector, integer, image, base + k * plan.plane,
                            (count, column, across, down, wx, wy), whole, value, out,
                            at + k * plan.out_plane, plan.out_pixel,
                        )  # fmt: skip

    return kernel(warp_cubic)
