"""The kernel of labels: for every tile, locate, then move each pixel's bits; no sum, no window."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from warpkit.engine.backends.cpu.runtime.compiler import DIGEST, inline, kernel
from warpkit.engine.backends.cpu.runtime.scratch import SIDE, buffers_of, scratch_of
from warpkit.engine.backends.cpu.runtime.simd import least
from warpkit.engine.backends.cpu.warps.positions import place
from warpkit.engine.backends.cpu.warps.tile import plan_of
from warpkit.engine.backends.cpu.warps.window import resolve


@inline
def aim(shape, size, border, whole, pixel, column, row, tx, places):
    """Fill `places` with where each pixel of a tile reads; -1 where it reads nothing."""
    height, width = size
    for r in range(shape[1]):
        for c in range(shape[0]):
            p = np.uint64(SIDE * r + c)
            x, y = np.int64(column[p]), np.int64(row[p])
            if not whole:
                x, y = resolve(x, width, border), resolve(y, height, border)
            at = (y * width + x) * pixel
            places[p] = at if whole or (x >= 0 and y >= 0 and tx[p] == tx[p]) else -1


@cache
def moving_kernel(kind: int, last: bool) -> Any:
    """The kernel for a kind of map and a layout (`last`: channels-last), of nearest."""
    digest = DIGEST

    def move(image, where, outside, out, image_of, where_of, sizes, memory, begin, end):
        """Tile rows begin .. end of all items, counted through."""
        _ = digest
        plan = plan_of(sizes)
        places, scratch = buffers_of(1, memory).table, scratch_of(1, memory)
        column, row, tx = scratch.column, scratch.row, scratch.tx
        size, channels = (plan.height, plan.width), plan.channels
        tall = (plan.out_height + SIDE - 1) // SIDE
        area, out_area = plan.height * plan.width, plan.out_height * plan.out_width
        plane, pixel = (1, channels) if last else (area, 1)
        out_plane, out_pixel = (1, channels) if last else (out_area, 1)
        line = plan.out_width * out_pixel
        for unit in range(begin, end):
            item, y0 = unit // tall, unit % tall * SIDE
            start, source = where_of[item] * plan.where, image_of[item] * channels * area
            for x0 in range(0, plan.out_width, SIDE):
                shape = (least(SIDE, plan.out_width - x0), least(SIDE, plan.out_height - y0))
                west, east, north, south, nowhere = place(
                    kind, 1, where, start, plan.out_width, (x0, y0), shape, column, row, tx,
                    scratch.ty
                )  # fmt: skip
                whole = (west >= 0) & (north >= 0) & (nowhere == 0)
                whole &= (east < plan.width) & (south < plan.height)
                aim(shape, size, plan.border, whole, pixel, column, row, tx, places)
                for k in range(channels):
                    base = source + k * plane
                    to = item * channels * out_area + y0 * line + x0 * out_pixel + k * out_plane
                    shown = (item * plan.outside_item + k * plan.outside_channel
                             + y0 * plan.outside_row + x0 * plan.outside_column)  # fmt: skip
                    for r in range(shape[1]):
                        for c in range(shape[0]):
                            at = places[np.uint64(SIDE * r + c)]
                            q = np.uint64(to + r * line + c * out_pixel)
                            if whole or at >= 0:
                                out[q] = image[np.uint64(base + at)]
                            else:
                                out[q] = outside[
                                    shown + r * plan.outside_row + c * plan.outside_column
                                ]

    return kernel(move)
