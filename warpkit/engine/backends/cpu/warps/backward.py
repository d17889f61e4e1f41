"""The backward kernel: for every tile, the gradients to image, map and border value.

The image's gradient is summed in a window, then added to the image's. Where several threads work
on one image, each owns a band of its rows and does the tiles that touch it. A band's result does
not depend on the others, so that the sum is the same to the last bit whatever the threads.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from warpkit.engine.backends.cpu.runtime.compiler import DIGEST, inline, kernel
from warpkit.engine.backends.cpu.runtime.scratch import SIDE, buffers_of, scratch_of
from warpkit.engine.backends.cpu.runtime.simd import LANES, least, most
from warpkit.engine.backends.cpu.warps.backward_steps import (
    add_sums,
    clear,
    collect,
    credit,
    flush_box,
    flush_single,
    slope_of_missing,
    spread,
    to_affine,
    to_perspective,
    to_points,
)
from warpkit.engine.backends.cpu.warps.positions import AFFINE, POINTS, REPLICATE, misses, place
from warpkit.engine.backends.cpu.warps.tile import frame, plan_of
from warpkit.engine.backends.cpu.warps.weights import weigh_eight, weigh_four, weigh_one, weigh_two
from warpkit.engine.backends.cpu.warps.window import fill_box, fill_single


@inline
def rows_read(taps, border, height, bounds):
    """The first and last image row that a tile may read; the last before the first for none."""
    before = taps // 2 - 1 if taps > 1 else 0
    top, bottom = np.int64(bounds[2]) - before, np.int64(bounds[3]) - before + taps - 1
    if misses(border) or border == REPLICATE:
        return least(most(top, 0), height - 1), least(most(bottom, 0), height - 1)
    if top >= 0 and bottom < height:
        return top, bottom
    return np.int64(0), height - 1


@cache
def spans_kernel(kind: int, taps: int) -> Any:
    """The kernel that finds the image rows each tile may read, for dealing tiles to bands."""
    digest = DIGEST

    def find_spans(where, where_of, spans, sizes, memory, begin, end):
        """Tile rows begin .. end of all items, counted through."""
        _ = digest
        plan = plan_of(sizes)
        column, row, tx, ty = scratch_of(taps, memory)[:4]
        tall = (plan.out_height + SIDE - 1) // SIDE
        at = 2 * begin * ((plan.out_width + SIDE - 1) // SIDE)
        for unit in range(begin, end):
            item, y0 = unit // tall, unit % tall * SIDE
            start = where_of[item] * plan.where
            for x0 in range(0, plan.out_width, SIDE):
                shape = (least(SIDE, plan.out_width - x0), least(SIDE, plan.out_height - y0))
                bounds = place(kind, taps, where, start, plan.out_width, (x0, y0), shape,
                               column, row, tx, ty)  # fmt: skip
                spans[at], spans[at + 1] = rows_read(taps, plan.border, plan.height, bounds)
                at += 2

    return kernel(find_spans)


class Task(NamedTuple):
    """What a backward kernel is compiled for."""

    kind: int
    taps: int
    last: bool
    """Channels-last."""
    to_image: bool
    to_where: bool


@cache
def backward_kernel(task: Task) -> Any:
    """The kernel for the gradients asked for."""
    kind, taps, last, to_image, to_where = task
    digest = DIGEST

    def backward(
        arrays, image_of, where_of, order, starts, spans, sizes, parts, memory, begin, end
    ):  # fmt: skip
        """Units begin .. end: unit u is part u % parts of the items of slot u // parts.

        A slot is one image's gradient, or one of several that are added up later. The items of slot
        s are order[starts[s] : starts[s + 1]]; a part is a band of the image's rows, or tile rows
        where the image gets no gradient. A tile that several bands do belongs to the first of them,
        which alone adds to the other gradients.
        """
        _ = digest
        plan = plan_of(sizes)
        grad, image, where, outside, g_image, g_where, g_outside = arrays
        column, row, tx, ty, wx, wy, dx, dy, missing, offset = scratch_of(taps, memory)
        window, gradient, g, slope_x, slope_y, row_sum, sums, table = buffers_of(taps, memory)
        weights, slopes = (wx, wy, dx, dy), (slope_x, slope_y)
        border, size, channels = plan.border, (plan.height, plan.width), plan.channels
        area, out_area = plan.height * plan.width, plan.out_height * plan.out_width
        plane, pixel = (1, channels) if last else (area, 1)
        g_plane, g_pixel = (1, channels) if last else (out_area, 1)
        g_line = plan.out_width * g_pixel
        tiles_x, tiles_y = (plan.out_width + SIDE - 1) // SIDE, (plan.out_height + SIDE - 1) // SIDE
        for unit in range(begin, end):
            slot, part = unit // parts, unit % parts
            band = (plan.height * part // parts, plan.height * (part + 1) // parts)
            first_row, tile_rows = tiles_y * part // parts, tiles_y * (part + 1) // parts
            if to_image:
                first_row, tile_rows = 0, tiles_y
                planes, row_of = (1, channels) if last else (channels, 1)
                clear(g_image, planes, area, slot * channels * area, plan.width * row_of, band)
            tiles = (tile_rows - first_row) * tiles_x
            for step in range((starts[slot + 1] - starts[slot]) * tiles):
                item, tile = order[starts[slot] + step // tiles], first_row * tiles_x + step % tiles
                owner = True
                if to_image:
                    span = 2 * (item * tiles_x * tiles_y + tile)
                    if parts > 1:
                        owner = band[0] <= spans[span] < band[1]
                        if not owner and (spans[span + 1] < band[0] or spans[span] >= band[1]):
                            continue
                x0, y0 = tile % tiles_x * SIDE, tile // tiles_x * SIDE
                corner = (x0, y0)
                shape = (least(SIDE, plan.out_width - x0), least(SIDE, plan.out_height - y0))
                start = where_of[item] * plan.where
                bounds = place(kind, taps, where, start, plan.out_width, corner, shape,
                               column, row, tx, ty)  # fmt: skip
                if taps == 1:
                    weigh_one(shape, tx, wx)
                    weigh_one(shape, ty, wy)
                elif taps == 2:
                    weigh_two(shape, tx, wx)
                    weigh_two(shape, ty, wy)
                elif taps == 4:
                    weigh_four(shape, tx, wx, dx, to_where)
                    weigh_four(shape, ty, wy, dy, to_where)
                else:
                    weigh_eight(shape, tx, wx, dx, to_where)
                    weigh_eight(shape, ty, wy, dy, to_where)
                view = frame(taps, plan, bounds, shape, column, row, tx, wx, wy, missing, offset)
                sloped = to_where and owner
                lost = sloped and (not view.whole) and misses(border)
                if to_where:
                    sums[:] = 0
                    if lost or view.empty:
                        slope_x[:], slope_y[:] = 0, 0
                for first in range(0, channels, LANES):
                    lanes = least(LANES, channels - first)
                    g_base = item * channels * out_area + first * g_plane
                    g_base += y0 * g_line + x0 * g_pixel
                    if not view.empty:
                        collect(shape, grad, g_base, g_line, g_plane, g_pixel, lanes, g)
                        if to_image:
                            gradient[: LANES * view.entries] = 0
                        if to_where:
                            at = image_of[item] * channels * area + first * plane
                            if sloped and view.boxed:
                                fill_box(window, image, plane, pixel, at, lanes, border, size,
                                         view.box, table)  # fmt: skip
                            elif sloped:
                                fill_single(window, image, plane, pixel, at, lanes, border, size,
                                            taps, shape, view.whole, column, row,
                                            missing)  # fmt: skip
                        spread(kind, taps, shape, view.whole, missing, offset, view.stride, weights,
                               window, gradient, g, slopes, sums, row_sum, to_image, sloped,
                               first == 0)  # fmt: skip
                        if to_image:
                            at = slot * channels * area + first * plane
                            if view.boxed:
                                flush_box(gradient, g_image, plane, pixel, at, lanes, border, size,
                                          view.box, table, band)  # fmt: skip
                            else:
                                flush_single(gradient, g_image, plane, pixel, at, lanes, border,
                                             size, taps, shape, view.whole, column, row, missing,
                                             band)  # fmt: skip
                    for k in range(first, first + lanes):
                        if to_where:
                            at = (item * plan.outside_item + k * plan.outside_channel
                                  + y0 * plan.outside_row + x0 * plan.outside_column)  # fmt: skip
                            if lost and (plan.dense or outside[at] != 0) and not view.empty:
                                value = (outside, at, plan.outside_row, plan.outside_column)
                                slope_of_missing(taps, shape, size, column, row, weights, missing,
                                                 g, k - first, value, slopes)  # fmt: skip
                        if plan.credited and owner and (plan.dense or not view.whole):
                            at = (item * parts + part) * channels + k
                            if plan.dense:
                                at = (item * channels + k) * out_area + y0 * plan.out_width + x0
                            credit(shape, grad, g_base + (k - first) * g_plane, g_line, g_pixel,
                                   view.whole, missing, plan.dense, g_outside, at,
                                   plan.out_width)  # fmt: skip
                if to_where:
                    at = 9 * (item * parts + part)
                    if kind == POINTS:
                        at = 2 * (item * out_area + y0 * plan.out_width + x0)
                        if sloped:
                            to_points(shape, slopes, view.whole, missing, g_where, at,
                                      plan.out_width)  # fmt: skip
                    elif kind == AFFINE:
                        if lost:
                            to_affine(shape, slopes, missing, sums)
                        add_sums(sums, corner, g_where, at)
                    else:
                        if sloped:
                            to_perspective(shape, corner, where, start, slopes, view.whole, missing,
                                           sums)  # fmt: skip
                        add_sums(sums, (0, 0), g_where, at)

    return kernel(backward)
