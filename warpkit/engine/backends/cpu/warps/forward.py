"""The forward kernel: for every tile, locate, fill the window, sum over taps, write."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from warpkit.engine.backends.cpu.runtime.compiler import DIGEST, inline, kernel
from warpkit.engine.backends.cpu.runtime.scratch import TILE, buffers_of, scratch_of
from warpkit.engine.backends.cpu.runtime.simd import (
    CHANNELS_PER_VECTOR,
    add4,
    load4,
    max_signed,
    min_signed,
    store4,
)
from warpkit.engine.backends.cpu.warps.positions import (
    ALL_TAPS_INSIDE,
    NO_TAP_INSIDE,
    ROUND,
    map_tile,
)
from warpkit.engine.backends.cpu.warps.tile import next_box, plan_of, view_of
from warpkit.engine.backends.cpu.warps.weights import weigh_eight, weigh_four, weigh_two
from warpkit.engine.backends.cpu.warps.window import copy_box, copy_single, fetch, sample


@inline
def saturate(value, low, high):
    """Rounded, ties to even, and cut to low .. high; as it is where both are 0."""
    return min_signed(max_signed((value + ROUND) - ROUND, low), high) if low < high else value


@inline
def show_border(shape, result, missing_weight, value):
    """Replace what is missing of all channels by `value`, lanes."""
    for r in range(shape[1]):
        for c in range(shape[0]):
            p = TILE * r + c
            if missing_weight[p] == NO_TAP_INSIDE:
                store4(result, CHANNELS_PER_VECTOR * p, value)
            elif missing_weight[p] != ALL_TAPS_INSIDE:
                store4(
                    result,
                    CHANNELS_PER_VECTOR * p,
                    add4(missing_weight[p], value, load4(result, CHANNELS_PER_VECTOR * p)),
                )


@inline
def show_background(shape, lane, result, missing_weight, fill, at, plan):
    """Replace what is missing of one channel; `at` is the tile's first place in `fill`."""
    for r in range(shape[1]):
        for c in range(shape[0]):
            p = np.uint64(TILE * r + c)
            q, m = np.uint64(CHANNELS_PER_VECTOR) * p + np.uint64(lane), missing_weight[p]
            v, o = result[q], fill[at + r * plan.fill_row + c * plan.fill_column]
            result[q] = v if m == ALL_TAPS_INSIDE else (o if m == NO_TAP_INSIDE else v + m * o)


@inline
def emit_three(shape, result, out, dst, plane, line, pixel, low, high):
    """Write three channels of a tile in one loop, which is vectorised with shuffles."""
    for r in range(shape[1]):
        for c in range(shape[0]):
            p = np.uint64(CHANNELS_PER_VECTOR * (TILE * r + c))
            q = np.uint64(dst + r * line + c * pixel)
            out[q] = saturate(result[p], low, high)
            out[q + np.uint64(plane)] = saturate(result[p + np.uint64(1)], low, high)
            out[q + np.uint64(2 * plane)] = saturate(result[p + np.uint64(2)], low, high)


@inline
def emit(shape, lane, result, out, dst, line, pixel, low, high):
    """Write one channel of a tile."""
    for r in range(shape[1]):
        for c in range(shape[0]):
            v = result[np.uint64(CHANNELS_PER_VECTOR * (TILE * r + c) + lane)]
            out[np.uint64(dst + r * line + c * pixel)] = saturate(v, low, high)


@cache
def forward_kernel(taps: int, channels_last: bool, low: int, high: int) -> Any:
    """The kernel for taps an axis and a layout (`channels_last`: channels-last).

    Integer images round and saturate to low .. high; for floating ones both are 0.
    """
    digest = DIGEST

    def forward(image, maps, kind, fill, out, image_of, mapping_of, sizes, memory, begin, end):
        """Tile rows begin .. end, exclusive, numbered across all items.

        For each tile: the whole pixels and fractions of its points (`map_tile`); the weights along
        both axes; what of that lies in the image (`view_of`). Then for each group of up to four
        channels: copy the box of source pixels that the tile reads into a window, in which the
        channels of a pixel lie side by side and a missing pixel is 0; sum over taps,
        sum_j wy[j] sum_i wx[i] window[j, i]; add the missing taps' share of the fill; round, and
        write. A tile depends on nothing outside it, so that threads change no bit. The same as
        F.grid_sample, but in the order of `reference.sum_of_taps` up to the fused products.
        """
        _ = digest
        plan = plan_of(sizes)
        scratch = scratch_of(taps, memory)
        column, row, tx, ty, wx, wy, dx, dy, missing_weight, window_offset = scratch
        points, places = (column, row, missing_weight), (column, row, tx, ty)
        window, _g, result, _x, _y, value, _s, table = buffers_of(taps, memory)
        tile_rows, border = (plan.out_height + TILE - 1) // TILE, plan.border
        size, channels = (plan.height, plan.width), plan.channels
        area, out_area = plan.height * plan.width, plan.out_height * plan.out_width
        strides = (1, channels) if channels_last else (area, 1)
        out_plane, out_pixel = (1, channels) if channels_last else (out_area, 1)
        line = plan.out_width * out_pixel
        for unit in range(begin, end):
            item, y0 = unit // tile_rows, unit % tile_rows * TILE
            mapping_start = mapping_of[item] * plan.mapping_size
            source = image_of[item] * channels * area
            rows = min_signed(TILE, plan.out_height - y0)
            for x0 in range(0, plan.out_width, TILE):
                corner, shape = (x0, y0), (min_signed(TILE, plan.out_width - x0), rows)
                bounds = map_tile(
                    kind, taps, maps, mapping_start, plan.out_width, corner, shape, places
                )
                # here, not in a helper: what a constant of the closure rules out is dropped before
                # types are inferred, which spares the compiler the other three
                if taps == 2:
                    weigh_two(shape, tx, wx)
                    weigh_two(shape, ty, wy)
                elif taps == 4:
                    weigh_four(shape, tx, wx, dx, False)
                    weigh_four(shape, ty, wy, dy, False)
                else:
                    weigh_eight(shape, tx, wx, dx, False)
                    weigh_eight(shape, ty, wy, dy, False)
                view = view_of(taps, plan, bounds, shape, column, row, tx, wx, wy, missing_weight,
                               window_offset)  # fmt: skip
                ahead = next_box(kind, plan, maps, mapping_start, corner, view)
                dst = item * channels * out_area + y0 * line + x0 * out_pixel
                fill_start = item * plan.fill_item + y0 * plan.fill_row + x0 * plan.fill_column
                for first in range(0, channels, CHANNELS_PER_VECTOR):
                    lanes = min_signed(CHANNELS_PER_VECTOR, channels - first)
                    base = source + first * strides[0]
                    if view.boxed:
                        copy_box(window, image, strides, base, lanes, border, size, view.box, table)
                    else:
                        copy_single(window, image, strides, base, lanes, border, size, taps, shape,
                                    view.whole, points)  # fmt: skip
                    is_last = first + CHANNELS_PER_VECTOR >= channels
                    if is_last and view.boxed and x0 + TILE < plan.out_width:
                        lanes_ahead = min_signed(CHANNELS_PER_VECTOR, channels)
                        fetch(image, strides, source, lanes_ahead, size, ahead)
                    if not view.empty:
                        sample(taps, shape, window_offset, view.stride, wx, wy, window, result)
                    if not view.whole:
                        for k in range(lanes):
                            at = fill_start + (first + k) * plan.fill_channel
                            value[k] = fill[at]
                            if plan.dense:
                                show_background(shape, k, result, missing_weight, fill, at, plan)
                        if not plan.dense:
                            show_border(shape, result, missing_weight, load4(value, 0))
                    at = dst + first * out_plane
                    if lanes >= 3:
                        emit_three(shape, result, out, at, out_plane, line, out_pixel, low, high)
                    for k in range(3 if lanes >= 3 else 0, lanes):
                        emit(shape, k, result, out, at + k * out_plane, line, out_pixel, low, high)

    return kernel(forward)
