"""The forward kernel: for every tile, locate, fill the window, sum over taps, write."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from warpkit.engine.backends.cpu.runtime.compiler import DIGEST, inline, kernel
from warpkit.engine.backends.cpu.runtime.scratch import SIDE, buffers_of, scratch_of
from warpkit.engine.backends.cpu.runtime.simd import LANES, add4, least, load4, most, store4
from warpkit.engine.backends.cpu.warps.positions import NOTHING, ROUND, WHOLE, place
from warpkit.engine.backends.cpu.warps.tile import frame, next_box, plan_of
from warpkit.engine.backends.cpu.warps.weights import weigh_eight, weigh_four, weigh_one, weigh_two
from warpkit.engine.backends.cpu.warps.window import fetch, fill_box, fill_single, sample


@inline
def saturate(value, low, high):
    """Rounded, ties to even, and cut to low .. high; as it is where both are 0."""
    return least(most((value + ROUND) - ROUND, low), high) if low < high else value


@inline
def show_border(shape, result, missing, value):
    """Replace what is missing of all channels by `value`, lanes."""
    for r in range(shape[1]):
        for c in range(shape[0]):
            p = SIDE * r + c
            if missing[p] == NOTHING:
                store4(result, LANES * p, value)
            elif missing[p] != WHOLE:
                store4(result, LANES * p, add4(missing[p], value, load4(result, LANES * p)))


@inline
def show_background(shape, lane, result, missing, outside, at, plan):
    """Replace what is missing of one channel; `at` is the tile's first place in `outside`."""
    for r in range(shape[1]):
        for c in range(shape[0]):
            p = np.uint64(SIDE * r + c)
            q, m = np.uint64(LANES) * p + np.uint64(lane), missing[p]
            v, o = result[q], outside[at + r * plan.outside_row + c * plan.outside_column]
            result[q] = v if m == WHOLE else (o if m == NOTHING else v + m * o)


@inline
def emit_three(shape, result, out, start, plane, line, pixel, low, high):
    """Write three channels of a tile in one loop, which is vectorised with shuffles."""
    for r in range(shape[1]):
        for c in range(shape[0]):
            p = np.uint64(LANES * (SIDE * r + c))
            q = np.uint64(start + r * line + c * pixel)
            out[q] = saturate(result[p], low, high)
            out[q + np.uint64(plane)] = saturate(result[p + np.uint64(1)], low, high)
            out[q + np.uint64(2 * plane)] = saturate(result[p + np.uint64(2)], low, high)


@inline
def emit(shape, lane, result, out, start, line, pixel, low, high):
    """Write one channel of a tile."""
    for r in range(shape[1]):
        for c in range(shape[0]):
            v = result[np.uint64(LANES * (SIDE * r + c) + lane)]
            out[np.uint64(start + r * line + c * pixel)] = saturate(v, low, high)


@cache
def forward_kernel(kind: int, taps: int, last: bool, low: int, high: int) -> Any:
    """The kernel for a kind of map, taps an axis and a layout (`last`: channels-last).

    Integer images round and saturate to low .. high; for floating ones both are 0.
    """
    digest = DIGEST

    def forward(image, where, outside, out, image_of, where_of, sizes, memory, begin, end):
        """Tile rows begin .. end of all items, counted through."""
        _ = digest
        plan = plan_of(sizes)
        column, row, tx, ty, wx, wy, dx, dy, missing, offset = scratch_of(taps, memory)
        window, _g, result, _x, _y, value, _s, table = buffers_of(taps, memory)
        tall, border = (plan.out_height + SIDE - 1) // SIDE, plan.border
        size, channels = (plan.height, plan.width), plan.channels
        area, out_area = plan.height * plan.width, plan.out_height * plan.out_width
        plane, pixel = (1, channels) if last else (area, 1)
        out_plane, out_pixel = (1, channels) if last else (out_area, 1)
        line = plan.out_width * out_pixel
        for unit in range(begin, end):
            item, y0 = unit // tall, unit % tall * SIDE
            start, source = where_of[item] * plan.where, image_of[item] * channels * area
            for x0 in range(0, plan.out_width, SIDE):
                corner = (x0, y0)
                shape = (least(SIDE, plan.out_width - x0), least(SIDE, plan.out_height - y0))
                bounds = place(kind, taps, where, start, plan.out_width, corner, shape,
                               column, row, tx, ty)  # fmt: skip
                # here, not in a helper: what a constant of the closure rules out is dropped before
                # types are inferred, which spares the compiler the other three
                if taps == 1:
                    weigh_one(shape, tx, wx)
                    weigh_one(shape, ty, wy)
                elif taps == 2:
                    weigh_two(shape, tx, wx)
                    weigh_two(shape, ty, wy)
                elif taps == 4:
                    weigh_four(shape, tx, wx, dx, False)
                    weigh_four(shape, ty, wy, dy, False)
                else:
                    weigh_eight(shape, tx, wx, dx, False)
                    weigh_eight(shape, ty, wy, dy, False)
                view = frame(taps, plan, bounds, shape, column, row, tx, wx, wy, missing, offset)
                ahead = next_box(kind, plan, where, start, corner, view)
                to = item * channels * out_area + y0 * line + x0 * out_pixel
                shown = (item * plan.outside_item + y0 * plan.outside_row
                         + x0 * plan.outside_column)  # fmt: skip
                for first in range(0, channels, LANES):
                    lanes = least(LANES, channels - first)
                    base = source + first * plane
                    if view.boxed:
                        fill_box(window, image, plane, pixel, base, lanes, border, size,
                                 view.box, table)  # fmt: skip
                    else:
                        fill_single(window, image, plane, pixel, base, lanes, border, size,
                                    taps, shape, view.whole, column, row, missing)  # fmt: skip
                    if first + LANES >= channels and view.boxed and x0 + SIDE < plan.out_width:
                        fetch(image, plane, pixel, source, least(LANES, channels), size, ahead)
                    if not view.empty:
                        sample(taps, shape, offset, view.stride, wx, wy, window, result)
                    if not view.whole:
                        for k in range(lanes):
                            at = shown + (first + k) * plan.outside_channel
                            value[k] = outside[at]
                            if plan.dense:
                                show_background(shape, k, result, missing, outside, at, plan)
                        if not plan.dense:
                            show_border(shape, result, missing, load4(value, 0))
                    at = to + first * out_plane
                    if lanes >= 3:
                        emit_three(shape, result, out, at, out_plane, line, out_pixel, low, high)
                    for k in range(3 if lanes >= 3 else 0, lanes):
                        emit(shape, k, result, out, at + k * out_plane, line, out_pixel, low, high)

    return kernel(forward)
