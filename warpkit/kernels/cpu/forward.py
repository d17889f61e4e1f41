"""The forward kernel: for every tile, locate, fill the window, sum over taps, write."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from warpkit.kernels.cpu.compiler import DIGEST, inline, kernel
from warpkit.kernels.cpu.lanes import LANES
from warpkit.kernels.cpu.locate import NOTHING, PIXELS, SIDE, WHOLE, scratch
from warpkit.kernels.cpu.tile import next_box, survey
from warpkit.kernels.cpu.window import capacity, fetch, fill, sample


@inline
def emit(columns, rows, lane, result, out, start, line, pixel, whole, missing, value, plan, limits):
    """Write one channel of a tile: what is missing replaced, integers rounded and saturated.

    `value` is the outside array and the tile's first place in it.
    """
    outside, first = value
    low, high = limits
    for r in range(rows):
        for c in range(columns):
            p = np.uint64(SIDE * r + c)
            v = result[np.uint64(LANES) * p + np.uint64(lane)]
            if not whole:
                m = missing[p]
                o = outside[first + r * plan.outside_row + c * plan.outside_column]
                v = v if m == WHOLE else (o if m == NOTHING else v + m * o)
            if low < high:
                v = min(max(np.rint(v), low), high)
            out[np.uint64(start + r * line + c * pixel)] = v


@cache
def forward_kernel(kind: int, taps: int, last: bool, low: int, high: int) -> Any:
    """The kernel for a kind of map, taps an axis and a layout (`last`: channels-last).

    Integer images round and saturate to low .. high; for floating ones both are 0.
    """

    digest = DIGEST

    def forward(image, where, outside, out, image_of, where_of, plan, begin, end):
        """Tile rows begin .. end of all items, counted through."""
        _ = digest
        space = scratch(taps, outside)
        weights_x, weights_y, missing, offset = space[4], space[5], space[8], space[9]
        window = np.empty(LANES * capacity(taps), outside.dtype)
        result = np.empty(LANES * PIXELS, outside.dtype)
        table = np.empty(capacity(taps), np.int64)
        tall = (plan.out_height + SIDE - 1) // SIDE
        size = (plan.height, plan.width)
        area, out_area = plan.height * plan.width, plan.out_height * plan.out_width
        plane, pixel = (1, plan.channels) if last else (area, 1)
        out_plane, out_pixel = (1, plan.channels) if last else (out_area, 1)
        line = plan.out_width * out_pixel
        for unit in range(begin, end):
            item, y0 = unit // tall, unit % tall * SIDE
            rows = min(SIDE, plan.out_height - y0)
            for x0 in range(0, plan.out_width, SIDE):
                columns = min(SIDE, plan.out_width - x0)
                corner, shape = (x0, y0), (columns, rows)
                view = survey(kind, taps, False, plan, where, where_of[item] * plan.where,
                              corner, shape, space)  # fmt: skip
                ahead = next_box(kind, taps, plan, where, where_of[item] * plan.where, corner, view)
                place_out = item * plan.channels * out_area + y0 * line + x0 * out_pixel
                place_outside = (item * plan.outside_item + y0 * plan.outside_row
                                 + x0 * plan.outside_column)  # fmt: skip
                for first in range(0, plan.channels, LANES):
                    lanes = min(LANES, plan.channels - first)
                    base = image_of[item] * plan.channels * area + first * plane
                    fill(view, window, image, plane, pixel, base, lanes, plan.border, taps, size,
                         shape, space, table)  # fmt: skip
                    if first + LANES >= plan.channels and view.boxed and x0 + SIDE < plan.out_width:
                        begins = image_of[item] * plan.channels * area
                        fetch(image, plane, pixel, begins, min(LANES, plan.channels), size, ahead)
                    if not view.empty:
                        sample(taps, columns, rows, offset, view.stride, weights_x, weights_y,
                               window, result)  # fmt: skip
                    for k in range(lanes):
                        c = first + k
                        emit(columns, rows, k, result, out, place_out + c * out_plane, line,
                             out_pixel, view.whole, missing,
                             (outside, place_outside + c * plan.outside_channel), plan,
                             (low, high))  # fmt: skip

    return kernel(forward)
