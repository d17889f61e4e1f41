"""Windows: the source pixels a tile needs, four channels side by side, in a small array.

A window is the tile's bounding box in the source, or, where that is much larger than what the tile
reads, one small box for each pixel. Everything a border, a layout or a type does happens here, when
a window is filled or its gradient is added to the image's; the sum over taps knows nothing of them.
"""

from __future__ import annotations

import numpy as np

from warpkit.engine.backends.cpu.runtime.compiler import inline
from warpkit.engine.backends.cpu.runtime.scratch import PIXELS, TILE
from warpkit.engine.backends.cpu.runtime.simd import (
    CHANNELS_PER_VECTOR,
    add4,
    load4,
    max_signed,
    min_signed,
    prefetch,
    scale4,
    store4,
    zero4,
)
from warpkit.engine.backends.cpu.warps.positions import (
    NO_TAP_INSIDE,
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
        return min_signed(max_signed(index, np.int64(0)), length - 1)
    if border == WRAP:
        return index % length
    period = 2 * length if border == REFLECT else max_signed(2 * length - 2, np.int64(1))
    index = index % period
    return min_signed(index, (period - 1 if border == REFLECT else period) - index)


@inline
def resolve_columns(left, columns, first, last, width, border, table):
    """Fill `table` for the columns of a box that lie outside the image."""
    for c in range(columns):
        if c < first or c >= last:
            table[c] = resolve(left + c, width, border)


@inline
def box_offsets(shape, column, row, missing_weight, whole, left, top, stride, window_offset):
    """Fill `window_offset` for one box whose first pixel is (left, top)."""
    columns, rows = shape
    for r in range(rows):
        for c in range(columns):
            p = np.uint64(TILE * r + c)
            here = (row[p] - top) * stride + (column[p] - left)
            if not whole:
                here = here if missing_weight[p] != NO_TAP_INSIDE else np.int32(0)
            window_offset[p] = CHANNELS_PER_VECTOR * here


@inline
def single_offsets(taps, shape, window_offset):
    """Fill `window_offset` for one small box a pixel."""
    columns, rows = shape
    for r in range(rows):
        for c in range(columns):
            p = TILE * r + c
            window_offset[p] = CHANNELS_PER_VECTOR * taps * taps * p


@inline
def copy_box(window, image, strides, base, lanes, border, size, box, table):
    """Copy the box (left, top, columns, rows) of up to four channels from `base`; missing is 0.

    strides: from one channel to the next, and from one pixel. Absent channels repeat the last one.
    """
    (plane, pixel), (height, width) = strides, size
    left, top, columns, rows = box
    one, two, three = (
        plane * min_signed(1, lanes - 1),
        plane * min_signed(2, lanes - 1),
        plane * (lanes - 1),
    )
    first, last = (
        min_signed(max_signed(-left, 0), columns),
        max_signed(min_signed(width - left, columns), 0),
    )
    resolve_columns(left, columns, first, last, width, border, table)
    for r in range(rows):
        y = resolve(top + r, height, border)
        to = CHANNELS_PER_VECTOR * columns * r
        if y < 0:
            for k in range(CHANNELS_PER_VECTOR * columns):
                window[np.uint64(to + k)] = 0
            continue
        row = base + y * width * pixel
        for c in range(columns):
            if c < first or c >= last:
                x = table[c]
                for k in range(CHANNELS_PER_VECTOR):
                    from_ = row + x * pixel + plane * min_signed(k, lanes - 1)
                    window[to + CHANNELS_PER_VECTOR * c + k] = image[from_] if x >= 0 else 0
        src = row + left * pixel
        for c in range(first, last):
            q, s = np.uint64(to + CHANNELS_PER_VECTOR * c), np.uint64(src + c * pixel)
            window[q] = image[s]
            window[q + np.uint64(1)] = image[s + np.uint64(one)]
            window[q + np.uint64(2)] = image[s + np.uint64(two)]
            window[q + np.uint64(3)] = image[s + np.uint64(three)]


@inline
def fetch(image, strides, base, lanes, size, box):
    """Ask for the part of a box that lies in the image, ahead of filling a window with it."""
    (plane, pixel), (height, width) = strides, size
    left, top, columns, rows = box
    first, last = max_signed(left, 0), min_signed(left + columns, width)
    step = max_signed(CACHE_LINE // image.itemsize // pixel, 1)
    for y in range(max_signed(top, 0), min_signed(top + rows, height)):
        for k in range(lanes if plane > 1 else 1):
            row = base + y * width * pixel + k * plane
            for x in range(first, last + step - 1, step):
                prefetch(image, row + min_signed(x, last - 1) * pixel)


@inline
def copy_single(window, image, strides, base, lanes, border, size, taps, tile, whole, points):
    """Copy the taps of every pixel of the tile (columns, rows); missing ones are 0.

    points: the columns, rows and missing weights of `Scratch`.
    """
    (plane, pixel), (height, width), (column, row, missing_weight) = strides, size, points
    before = taps // 2 - 1 if taps > 1 else 0
    for r in range(tile[1]):
        for c in range(tile[0]):
            p = TILE * r + c
            some = whole or missing_weight[p] != NO_TAP_INSIDE
            for j in range(taps):
                y = resolve(np.int64(row[p]) - before + j, height, border) if some else -1
                for i in range(taps):
                    x = resolve(np.int64(column[p]) - before + i, width, border) if some else -1
                    to = CHANNELS_PER_VECTOR * ((p * taps + j) * taps + i)
                    for k in range(CHANNELS_PER_VECTOR):
                        from_ = base + (y * width + x) * pixel + plane * min_signed(k, lanes - 1)
                        window[to + k] = image[from_] if x >= 0 and y >= 0 else 0


@inline
def sample(taps, shape, window_offset, stride, wx, wy, window, result):
    """The sum over taps of every pixel: all there is to an interpolation."""
    columns, rows = shape
    for r in range(rows):
        for c in range(columns):
            p = np.uint64(TILE * r + c)
            at = np.int64(window_offset[p])
            if taps == 1:
                store4(result, CHANNELS_PER_VECTOR * (TILE * r + c), load4(window, at))
                continue
            total = zero4(window)
            for j in range(taps):
                line = scale4(wx[p], load4(window, at + j * stride))
                for i in range(1, taps):
                    value = load4(window, at + j * stride + CHANNELS_PER_VECTOR * i)
                    line = add4(wx[p + np.uint64(PIXELS * i)], value, line)
                weight = wy[p + np.uint64(PIXELS * j)]
                total = scale4(weight, line) if j == 0 else add4(weight, line, total)
            store4(result, CHANNELS_PER_VECTOR * (TILE * r + c), total)
