"""The kernel of labels: for every tile, locate, then move each pixel's bits; no sum, no window."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from warpkit.engine.backends.cpu.runtime.compiler import DIGEST, inline, kernel
from warpkit.engine.backends.cpu.runtime.scratch import TILE, buffers_of, scratch_of
from warpkit.engine.backends.cpu.runtime.simd import min_signed
from warpkit.engine.backends.cpu.warps.positions import map_tile
from warpkit.engine.backends.cpu.warps.tile import plan_of
from warpkit.engine.backends.cpu.warps.window import resolve


@inline
def pixel_offsets(shape, size, border, whole, pixel, column, row, tx, pixel_index):
    """Fill `pixel_index` with where each pixel of a tile reads; -1 where it reads nothing."""
    height, width = size
    for r in range(shape[1]):
        for c in range(shape[0]):
            p = np.uint64(TILE * r + c)
            x, y = np.int64(column[p]), np.int64(row[p])
            if not whole:
                x, y = resolve(x, width, border), resolve(y, height, border)
            at = (y * width + x) * pixel
            pixel_index[p] = at if whole or (x >= 0 and y >= 0 and tx[p] == tx[p]) else -1


@cache
def moving_kernel(kind: int, channels_last: bool) -> Any:
    """The kernel for a kind of map and a layout (`channels_last`: channels-last), of nearest."""
    digest = DIGEST

    def move(image, mapping, fill, out, image_of, mapping_of, sizes, memory, begin, end):
        """Tile rows begin .. end, exclusive, numbered across all items."""
        _ = digest
        plan = plan_of(sizes)
        pixel_index, scratch = buffers_of(1, memory).table, scratch_of(1, memory)
        column, row, tx = scratch.column, scratch.row, scratch.tx
        size, channels = (plan.height, plan.width), plan.channels
        tile_rows = (plan.out_height + TILE - 1) // TILE
        area, out_area = plan.height * plan.width, plan.out_height * plan.out_width
        plane, pixel = (1, channels) if channels_last else (area, 1)
        out_plane, out_pixel = (1, channels) if channels_last else (out_area, 1)
        line = plan.out_width * out_pixel
        for unit in range(begin, end):
            item, y0 = unit // tile_rows, unit % tile_rows * TILE
            mapping_start = mapping_of[item] * plan.mapping_size
            source, rows = image_of[item] * channels * area, min_signed(TILE, plan.out_height - y0)
            for x0 in range(0, plan.out_width, TILE):
                shape = (min_signed(TILE, plan.out_width - x0), rows)
                west, east, north, south, nowhere = map_tile(
                    kind, 1, mapping, mapping_start, plan.out_width, (x0, y0), shape, column, row,
                    tx, scratch.ty,
                )  # fmt: skip
                whole = (west >= 0) & (north >= 0) & (nowhere == 0)
                whole &= (east < plan.width) & (south < plan.height)
                pixel_offsets(shape, size, plan.border, whole, pixel, column, row, tx, pixel_index)
                for k in range(channels):
                    base = source + k * plane
                    to = item * channels * out_area + y0 * line + x0 * out_pixel + k * out_plane
                    fill_start = (item * plan.fill_item + k * plan.fill_channel
                                  + y0 * plan.fill_row + x0 * plan.fill_column)  # fmt: skip
                    for r in range(shape[1]):
                        for c in range(shape[0]):
                            at = pixel_index[np.uint64(TILE * r + c)]
                            q = np.uint64(to + r * line + c * out_pixel)
                            if whole or at >= 0:
                                out[q] = image[np.uint64(base + at)]
                            else:
                                out[q] = fill[fill_start + r * plan.fill_row + c * plan.fill_column]

    return kernel(move)
