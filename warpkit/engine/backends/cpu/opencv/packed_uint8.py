"""OpenCV's bilinear and nearest of 8-bit images: a pixel is read, and written, as one word.

Row by row of a tile: locate, fetch the four neighbours of every pixel as two words, blend, write.
What a border shows is decided when words are fetched; the blend knows nothing of it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from warpkit.engine.backends.cpu.opencv.positions import NOWHERE, ROW, bounds, map_row
from warpkit.engine.backends.cpu.opencv.tile import TILE_ROWS, all_finite, ask_ahead, make_room
from warpkit.engine.backends.cpu.runtime.compiler import DIGEST, inline, kernel
from warpkit.engine.backends.cpu.runtime.packed_loads import (
    fma,
    load_word2,
    load_word8,
    store_word4,
)
from warpkit.engine.backends.cpu.runtime.rules import misses, resolve
from warpkit.engine.backends.cpu.runtime.simd import min_signed
from warpkit.engine.sampling.layout import AFFINE


@inline
def pair(image, at, channels):
    """Two neighbouring pixels in a row as one word."""
    if channels == 1:
        return np.uint64(load_word2(image, at))
    return load_word8(image, at)


@inline
def border_pair(image, base, plan, channels, row, left, right, fill):
    """The same where pixels may be missing (-1), byte by byte."""
    word = np.uint64(0)
    for k in range(2 * channels):
        column = left if k < channels else right
        k_of = k if k < channels else k - channels
        value = np.uint64(fill[k_of])
        if row >= 0 and column >= 0:
            value = np.uint64(image[base + row * plan.line + column * plan.pixel + k_of])
        word |= value << np.uint64(8 * k)
    return word


@inline
def fetch_whole(image, base, plan, channels, count, column, row, first_byte, upper, lower):
    """All neighbours of every pixel of the row lie in the image."""
    line = plan.line
    for c in range(count):
        p = np.uint64(c)
        first_byte[p] = base + np.int64(row[p]) * line + np.int64(column[p]) * channels
    for c in range(count):
        p = np.uint64(c)
        at = first_byte[p]
        upper[p] = pair(image, at, channels)
        lower[p] = pair(image, at + line, channels)


@inline
def fetch_some(image, base, plan, channels, count, column, row, upper, lower, fill):
    """The same where neighbours are missing, or stand elsewhere under the border."""
    width, height, border = plan.width, plan.height, plan.border
    last_word, constant = image.size - 8, misses(border)
    nothing = border_pair(image, base, plan, channels, -1, -1, -1, fill)
    for c in range(count):
        p = np.uint64(c)
        i, j = np.int64(column[p]), np.int64(row[p])
        at = base + j * plan.line + i * plan.pixel
        if 0 <= i < width - 1 and 0 <= j < height - 1 and at + plan.line <= last_word:
            upper[p] = pair(image, at, channels)
            lower[p] = pair(image, at + plan.line, channels)
        elif constant and not (-1 <= i < width and -1 <= j < height):
            upper[p] = lower[p] = nothing
        else:
            left = right = above = below = np.int64(-1)
            if i != NOWHERE:
                left, right = resolve(i, width, border), resolve(i + 1, width, border)
                above, below = resolve(j, height, border), resolve(j + 1, height, border)
            upper[p] = border_pair(image, base, plan, channels, above, left, right, fill)
            lower[p] = border_pair(image, base, plan, channels, below, left, right, fill)


@inline
def byte(words, p, k):
    """Byte k of word p, of which the two halves are at hand, as a float32."""
    half = words[np.uint64(2) * p + np.uint64(k // 4)]
    return np.float32(np.int32((half >> np.uint32(8 * (k % 4))) & np.uint32(255)))


@inline
def blend(fixed, channels, count, upper, lower, tx, ty, word):
    """The weighted mean, rounded: half up where `fixed`, where nothing else is; else to even."""
    for c in range(count):
        p = np.uint64(c)
        a, b, total = tx[p], ty[p], np.uint32(0)
        for k in range(channels):
            p00, p01 = byte(upper, p, k), byte(upper, p, k + channels)
            p10, p11 = byte(lower, p, k), byte(lower, p, k + channels)
            first, second = fma(a, p01 - p00, p00), fma(a, p11 - p10, p10)
            value = fma(b, second - first, first)
            value = value + np.float32(0.5) if fixed else np.rint(value)
            total |= np.uint32(np.int32(value)) << np.uint32(8 * k)
        word[p] = total


@inline
def write(channels, count, word, out, at):
    """Write a row; the words of three channels overlap, but for the last one's."""
    if channels == 1:
        for c in range(count):
            out[np.uint64(at + c)] = word[np.uint64(c)]
    else:
        whole = count if channels == 4 else count - 1
        for c in range(whole):
            store_word4(out, at + c * channels, word[np.uint64(c)])
        if channels == 3:
            for k in range(3):
                out[at + 3 * whole + k] = (word[whole] >> np.uint32(8 * k)) & np.uint32(255)


@cache
def bytes_kernel(kind: int, fixed: bool, channels: int, nearest: bool) -> Any:
    """The kernel for a kind of map and an arithmetic, bilinear or nearest.

    channels: 3 or 4 side by side in memory, or 1, for planes of pixels.
    """
    digest = DIGEST

    def warp_bytes(
        image, image_at, mapping, mapping_of, fill, out, table, plan, memory, begin, end
    ):
        """Tile rows begin .. end of all planes, counted through."""
        _ = digest
        column, row, tx, ty, upper, lower, word, first_bytes, _y = memory[:9]
        upper_half, lower_half = upper.view(np.uint32), lower.view(np.uint32)
        taps_of_row = (column, row, tx, ty)
        tile_rows = (plan.out_height + TILE_ROWS - 1) // TILE_ROWS
        width, height, columns = plan.width, plan.height, plan.out_width
        for unit in range(begin, end):
            plane, y0 = unit // tile_rows, unit % tile_rows * TILE_ROWS
            item, k = plane // plan.planes, plane % plan.planes
            mapping_start = mapping_of[item] * plan.mapping_size
            base = image_at[item] + k * plan.plane
            fill_here = fill[item * plan.fill + k :]
            border = np.uint32(border_pair(image, 0, plan, channels, -1, -1, -1, fill_here))
            finite = all_finite(kind, mapping, mapping_start)
            to = item * plan.out_item + k * plan.out_plane
            for x0 in range(0, columns, ROW):
                count = min_signed(ROW, columns - x0)
                rows = min_signed(TILE_ROWS, plan.out_height - y0)
                ask_ahead(kind, image, base, plan, mapping, mapping_start, x0 + ROW, y0, rows)
                ahead = to + y0 * plan.out_line + (x0 + ROW) * channels
                make_room(out, ahead, plan.out_line, rows, ROW * channels)
                for y in range(y0, y0 + rows):
                    early = kind == AFFINE and not fixed  # bounds are known before the pixels
                    if not early:
                        map_row(fixed, kind, nearest, finite, mapping, mapping_start, columns,
                                plan.out_height, x0, y, count, taps_of_row)  # fmt: skip
                    west, east, north, south = bounds(
                        fixed, kind, mapping, mapping_start, columns, x0, y, count, column, row
                    )
                    at = to + y * plan.out_line + x0 * channels
                    beyond = (east < -1) | (west >= width) | (south < -1) | (north >= height)
                    if beyond and misses(plan.border):
                        for c in range(count):
                            word[np.uint64(c)] = border
                        write(channels, count, word, out, at)
                        continue
                    if early:
                        map_row(fixed, kind, nearest, finite, mapping, mapping_start, columns,
                                plan.out_height, x0, y, count, taps_of_row)  # fmt: skip
                    # a word of three channels reaches two bytes into the next pixel but one
                    if west >= 0 and east < width - 2 and north >= 0 and south < height - 1:
                        fetch_whole(image, base, plan, channels, count, column, row, first_bytes,
                                    upper, lower)  # fmt: skip
                    else:
                        fetch_some(image, base, plan, channels, count, column, row, upper, lower,
                                   fill_here)  # fmt: skip
                    if nearest:
                        for c in range(count):
                            word[np.uint64(c)] = upper_half[np.uint64(2 * c)]
                    else:
                        blend(fixed, channels, count, upper_half, lower_half, tx, ty, word)
                    write(channels, count, word, out, at)

    return kernel(warp_bytes)
