"""OpenCV's arithmetics for one channel at a time: every layout, uint8 and float32.

Row by row of a tile: locate, find the pixels that the taps of both axes read, sum, write. uint8
bilinear and nearest of packed pixels have a faster kernel, `packed_uint8.bytes_kernel`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from warpkit.engine.arithmetic.opencv4_tables import ONE, STEPS
from warpkit.engine.backends.cpu.opencv.positions import NOWHERE, ROW, bounds, map_row
from warpkit.engine.backends.cpu.opencv.tile import TILE_ROWS, all_finite, ask_ahead
from warpkit.engine.backends.cpu.runtime.compiler import DIGEST, inline, kernel
from warpkit.engine.backends.cpu.runtime.packed_loads import fma
from warpkit.engine.backends.cpu.runtime.rules import resolve
from warpkit.engine.backends.cpu.runtime.simd import max_signed, min_signed

TABLE_TAPS = 4
"""Taps along an axis of all rules with a table of weights."""


@inline
def read_by(whole, taps, length, border, stride, count, pixel, reads):
    """Fill, for every tap along one axis, where it reads; -1 where it is missing."""
    before = taps // 2 - 1 if taps > 1 else 0
    for k in range(taps):
        for c in range(count):
            at = np.int64(pixel[c]) - before + k
            at = at if whole else resolve(at, length, border)
            reads[k * ROW + c] = at * stride if at >= 0 else -1


@inline
def is_empty(taps, c, column, across, down):
    """Whether a pixel is sampled nowhere, or by missing taps alone."""
    some_x = some_y = False
    for k in range(taps):
        some_x |= across[k * ROW + c] >= 0
        some_y |= down[k * ROW + c] >= 0
    return column[c] == NOWHERE or not (some_x and some_y)


@inline
def read(image, base, x, y, fill):
    """The pixel of two taps, or the fill."""
    return image[base + x + y] if (x >= 0) & (y >= 0) else fill


@inline
def mean(fixed, integer, tx, ty, p00, p01, p10, p11):
    """Bilinear, in the order of operations of either arithmetic."""
    one = np.float32(1)
    if fixed and not integer:
        left, up = one - tx, one - ty
        return p00 * (up * left) + p01 * (up * tx) + p10 * (ty * left) + p11 * (ty * tx)
    first, second = fma(tx, p01 - p00, p00), fma(tx, p11 - p10, p10)
    value = fma(ty, second - first, first)
    if integer:  # `fixed` loses nothing so far, and rounds half up
        return np.floor(value + np.float32(0.5)) if fixed else np.rint(value)
    return value


@inline
def table_sum(taps, image, base, c, across, down, tx, ty, fill, table):
    """Bicubic and lanczos4 of 8-bit images, in whole numbers."""
    step = np.int64(ty[c] * STEPS) * STEPS + np.int64(tx[c] * STEPS)
    total, at = np.int64(ONE // 2), step * taps * taps
    for j in range(taps):
        y = down[j * ROW + c]
        for i in range(taps):
            value = np.int64(read(image, base, across[i * ROW + c], y, fill))
            total += value * table[at + j * taps + i]
    return min_signed(max_signed(total >> 15, np.int64(0)), np.int64(255))


@inline
def sum_row(rule, image, base, row, whole, fill, table, out, dst, step):
    """Sum and write one channel of a row.

    rule: OpenCV 4's arithmetic or not, taps that the kernel is compiled for, taps that there are,
    8-bit or not. row: how many pixels, their columns and fractions, and where their taps read.
    """
    fixed, taps, reach, integer = rule
    count, column, tx, ty, across, down = row
    single = np.float32
    for c in range(count):
        q = dst + c * step
        if not whole and is_empty(reach, c, column, across, down):
            out[q] = fill
        elif taps == 1:
            out[q] = read(image, base, across[c], down[c], fill)
        elif taps == 2:
            x0, x1, y0, y1 = across[c], across[ROW + c], down[c], down[ROW + c]
            p00 = single(read(image, base, x0, y0, fill))
            p01 = single(read(image, base, x1, y0, fill))
            p10 = single(read(image, base, x0, y1, fill))
            p11 = single(read(image, base, x1, y1, fill))
            out[q] = mean(fixed, integer, tx[c], ty[c], p00, p01, p10, p11)
        else:
            out[q] = table_sum(reach, image, base, c, across, down, tx, ty, fill, table)


@cache
def planes_kernel(kind: int, fixed: bool, taps: int, integer: bool) -> Any:
    """The kernel for a kind of map, an arithmetic, taps an axis, and 8-bit or float images.

    TABLE_TAPS taps stand for bicubic's and lanczos4's: loops over 64 taps take long to compile if
    the compiler knows their length, and run no faster.
    """
    digest = DIGEST

    def warp_planes(
        image, image_at, mapping, mapping_of, fill, out, table, plan, memory, begin, end
    ):
        """Tile rows begin .. end of all items, counted through."""
        _ = digest
        column, row, tx, ty, _u, _v, _w, across, down = memory[:9]
        taps_of_row = (column, row, tx, ty)
        tile_rows = (plan.out_height + TILE_ROWS - 1) // TILE_ROWS
        width, height, columns, border = plan.width, plan.height, plan.out_width, plan.border
        reach = taps if taps < TABLE_TAPS else plan.taps
        before = reach // 2 - 1 if reach > 1 else 0
        after = reach - before
        for unit in range(begin, end):
            item, y0 = unit // tile_rows, unit % tile_rows * TILE_ROWS
            mapping_start, base = mapping_of[item] * plan.mapping_size, image_at[item]
            finite = all_finite(kind, mapping, mapping_start)
            for x0 in range(0, columns, ROW):
                count = min_signed(ROW, columns - x0)
                rows = min_signed(TILE_ROWS, plan.out_height - y0)
                ask_ahead(kind, image, base, plan, mapping, mapping_start, x0 + ROW, y0, rows)
                for y in range(y0, y0 + rows):
                    map_row(fixed, kind, taps == 1, finite, mapping, mapping_start, columns,
                            plan.out_height, x0, y, count, taps_of_row)  # fmt: skip
                    west, east, north, south = bounds(
                        fixed, kind, mapping, mapping_start, columns, x0, y, count, column, row
                    )
                    whole = (west >= before) & (east + after <= width)
                    whole &= (north >= before) & (south + after <= height)
                    read_by(whole, reach, width, border, plan.pixel, count, column, across)
                    read_by(whole, reach, height, border, plan.line, count, row, down)
                    at = item * plan.out_item + y * plan.out_line + x0 * plan.out_pixel
                    for k in range(plan.channels):
                        value, dst = fill[item * plan.fill + k], at + k * plan.out_plane
                        sum_row(
                            (fixed, taps, reach, integer), image, base + k * plan.plane,
                            (count, column, tx, ty, across, down), whole, value, table, out, dst,
                            plan.out_pixel,
                        )  # fmt: skip

    return kernel(warp_planes)
