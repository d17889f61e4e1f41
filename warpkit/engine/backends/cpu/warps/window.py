"""Windows: the source pixels a tile needs, four channels side by side, in a small array.

A window is the tile's bounding box in the source, or, where that is much larger than what the tile
reads, one small box for each pixel. Everything a border, a layout or a type does happens here, when
a window is filled or its gradient is added to the image's; the sum over taps knows nothing of them.
"""

from __future__ import annotations

import numpy as np

from warpkit.engine.backends.cpu.runtime.compiler import inline
from warpkit.engine.backends.cpu.runtime.scratch import PIXELS, SIDE
from warpkit.engine.backends.cpu.runtime.simd import (
    LANES,
    add4,
    least,
    load4,
    most,
    prefetch,
    scale4,
    store4,
    zero4,
)
from warpkit.engine.backends.cpu.warps.positions import (
    NOTHING,
    REFLECT,
    REPLICATE,
    WRAP,
    misses,
)

CACHE_LINE = 64


@inline
def resolve(index, length, border):
    """The pixel an index reads under a border, or -1 where it is missing; as `rules.resolve`."""
    if 0 <= index < length:
        return index
    if misses(border):
        return np.int64(-1)
    if border == REPLICATE:
        return least(most(index, np.int64(0)), length - 1)
    if border == WRAP:
        return index % length
    period = 2 * length if border == REFLECT else most(2 * length - 2, np.int64(1))
    index = index % period
    return least(index, (period - 1 if border == REFLECT else period) - index)


@inline
def resolve_columns(left, columns, first, last, width, border, table):
    """Fill `table` for the columns of a box that lie outside the image."""
    for c in range(columns):
        if c < first or c >= last:
            table[c] = resolve(left + c, width, border)


@inline
def aim_box(shape, column, row, missing, whole, left, top, stride, offset):
    """Fill `offset` for one box whose first pixel is (left, top)."""
    columns, rows = shape
    for r in range(rows):
        for c in range(columns):
            p = np.uint64(SIDE * r + c)
            here = (row[p] - top) * stride + (column[p] - left)
            if not whole:
                here = here if missing[p] != NOTHING else np.int32(0)
            offset[p] = LANES * here


@inline
def aim_single(taps, shape, offset):
    """Fill `offset` for one small box a pixel."""
    columns, rows = shape
    for r in range(rows):
        for c in range(columns):
            p = SIDE * r + c
            offset[p] = LANES * taps * taps * p


@inline
def fill_box(window, image, plane, pixel, base, lanes, border, size, box, table):
    """Copy the box (left, top, columns, rows) of up to four channels from `base`; missing is 0.

    Channels are `plane` apart and pixels `pixel`; absent channels repeat the last one.
    """
    height, width = size
    left, top, columns, rows = box
    one, two, three = plane * least(1, lanes - 1), plane * least(2, lanes - 1), plane * (lanes - 1)
    first, last = least(most(-left, 0), columns), most(least(width - left, columns), 0)
    resolve_columns(left, columns, first, last, width, border, table)
    for r in range(rows):
        y = resolve(top + r, height, border)
        to = LANES * columns * r
        if y < 0:
            for k in range(LANES * columns):
                window[np.uint64(to + k)] = 0
            continue
        row = base + y * width * pixel
        for c in range(columns):
            if c < first or c >= last:
                x = table[c]
                for k in range(LANES):
                    from_ = row + x * pixel + plane * least(k, lanes - 1)
                    window[to + LANES * c + k] = image[from_] if x >= 0 else 0
        start = row + left * pixel
        for c in range(first, last):
            q, s = np.uint64(to + LANES * c), np.uint64(start + c * pixel)
            window[q] = image[s]
            window[q + np.uint64(1)] = image[s + np.uint64(one)]
            window[q + np.uint64(2)] = image[s + np.uint64(two)]
            window[q + np.uint64(3)] = image[s + np.uint64(three)]


@inline
def fetch(image, plane, pixel, base, lanes, size, box):
    """Ask for the part of a box that lies in the image, ahead of filling a window with it."""
    height, width = size
    left, top, columns, rows = box
    first, last = most(left, 0), least(left + columns, width)
    step = most(CACHE_LINE // image.itemsize // pixel, 1)
    for y in range(most(top, 0), least(top + rows, height)):
        for k in range(lanes if plane > 1 else 1):
            row = base + y * width * pixel + k * plane
            for x in range(first, last + step - 1, step):
                prefetch(image, row + least(x, last - 1) * pixel)


@inline
def fill_single(
    window, image, plane, pixel, base, lanes, border, size, taps, tile, whole, column, row,
    missing,
):  # fmt: skip
    """Copy the taps of every pixel of the tile (columns, rows); missing ones are 0."""
    height, width = size
    before = taps // 2 - 1 if taps > 1 else 0
    for r in range(tile[1]):
        for c in range(tile[0]):
            p = SIDE * r + c
            some = whole or missing[p] != NOTHING
            for j in range(taps):
                y = resolve(np.int64(row[p]) - before + j, height, border) if some else -1
                for i in range(taps):
                    x = resolve(np.int64(column[p]) - before + i, width, border) if some else -1
                    to = LANES * ((p * taps + j) * taps + i)
                    for k in range(LANES):
                        from_ = base + (y * width + x) * pixel + plane * least(k, lanes - 1)
                        window[to + k] = image[from_] if x >= 0 and y >= 0 else 0


@inline
def sample(taps, shape, offset, stride, wx, wy, window, result):
    """The sum over taps of every pixel: all there is to an interpolation."""
    columns, rows = shape
    for r in range(rows):
        for c in range(columns):
            p = np.uint64(SIDE * r + c)
            at = np.int64(offset[p])
            if taps == 1:
                store4(result, LANES * (SIDE * r + c), load4(window, at))
                continue
            total = zero4(window)
            for j in range(taps):
                line = scale4(wx[p], load4(window, at + j * stride))
                for i in range(1, taps):
                    value = load4(window, at + j * stride + LANES * i)
                    line = add4(wx[p + np.uint64(PIXELS * i)], value, line)
                weight = wy[p + np.uint64(PIXELS * j)]
                total = scale4(weight, line) if j == 0 else add4(weight, line, total)
            store4(result, LANES * (SIDE * r + c), total)
