"""The backward kernel: for every tile, the gradients to image, map and border value.

The image's gradient is summed in a window, then added to the image's. Where several threads work
on one image, each owns a band of its rows and does the tiles that touch it. A band's result does
not depend on the others, so that the sum is the same to the last bit whatever the threads.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from warpkit.kernels.cpu.compiler import DIGEST, inline, kernel
from warpkit.kernels.cpu.gradient import carry, collect, credit, flush, slope_of_missing, spread
from warpkit.kernels.cpu.lanes import LANES
from warpkit.kernels.cpu.locate import (
    AFFINE,
    PIXELS,
    POINTS,
    REPLICATE,
    SIDE,
    misses,
    scratch,
)
from warpkit.kernels.cpu.tile import survey
from warpkit.kernels.cpu.window import capacity, fill


@inline
def rows_read(view, border, height):
    """The first and last image row that a tile reads; the last before the first for none."""
    top, bottom = view.box[1], view.box[1] + view.box[3] - 1
    if view.empty:
        return np.int64(0), np.int64(-1)
    if misses(border) or border == REPLICATE:
        return min(max(top, 0), height - 1), min(max(bottom, 0), height - 1)
    return (top, bottom) if top >= 0 and bottom < height else (np.int64(0), height - 1)


@cache
def spans_kernel(kind: int, taps: int) -> Any:
    """The kernel that finds the image rows each tile reads, for dealing tiles to bands."""

    digest = DIGEST

    def find_spans(where, where_of, spans, plan, begin, end):
        """Tile rows begin .. end of all items, counted through."""
        _ = digest
        space = scratch(taps, where)
        tall = (plan.out_height + SIDE - 1) // SIDE
        at = 2 * begin * ((plan.out_width + SIDE - 1) // SIDE)
        for unit in range(begin, end):
            item, y0 = unit // tall, unit % tall * SIDE
            start = where_of[item] * plan.where
            for x0 in range(0, plan.out_width, SIDE):
                shape = (min(SIDE, plan.out_width - x0), min(SIDE, plan.out_height - y0))
                view = survey(kind, taps, False, plan, where, start, (x0, y0), shape, space)
                spans[at], spans[at + 1] = rows_read(view, plan.border, plan.height)
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

    def backward(arrays, image_of, where_of, order, starts, spans, plan, parts, begin, end):
        """Units begin .. end: unit u is part u % parts of the items of slot u // parts.

        A slot is one image's gradient, or one of several that are added up later. The items of slot
        s are order[starts[s] : starts[s + 1]]; a part is a band of the image's rows, or tile rows
        where the image gets no gradient.
        """
        _ = digest
        like = arrays[0]
        space = scratch(taps, like)
        area = LANES * capacity(taps)
        buffers = (
            np.empty(area, like.dtype),
            np.empty(area if to_image else 1, like.dtype),
            np.empty(LANES * PIXELS, like.dtype),
            np.empty(LANES * PIXELS, like.dtype),
            np.empty(LANES * PIXELS, like.dtype),
            np.empty(4 * LANES, like.dtype),
            np.empty(9, np.float64),
            np.empty(capacity(taps), np.int64),
        )
        tiles_x, tiles_y = (plan.out_width + SIDE - 1) // SIDE, (plan.out_height + SIDE - 1) // SIDE
        for unit in range(begin, end):
            slot, part = unit // parts, unit % parts
            band = (plan.height * part // parts, plan.height * (part + 1) // parts)
            first, last_ = (
                tiles_y * part // parts * tiles_x,
                tiles_y * (part + 1) // parts * tiles_x,
            )
            if to_image:
                first, last_ = 0, tiles_y * tiles_x
            for n in range(starts[slot], starts[slot + 1]):
                item = order[n]
                for tile in range(first, last_):
                    owner = True
                    if to_image and parts > 1:
                        span = 2 * (item * tiles_x * tiles_y + tile)
                        owner = band[0] <= spans[span] < band[1]
                        if not owner and (spans[span + 1] < band[0] or spans[span] >= band[1]):
                            continue
                    corner = (tile % tiles_x * SIDE, tile // tiles_x * SIDE)
                    places = (item, where_of[item], image_of[item], slot, part, parts)
                    backward_tile(
                        kind, taps, last, to_image, to_where, owner, arrays, buffers, space, plan,
                        places, corner, band,
                    )  # fmt: skip

    return kernel(backward)


@inline
def backward_tile(
    kind, taps, last, to_image, to_where, owner, arrays, buffers, space, plan, places, corner, band,
):  # fmt: skip
    """All gradients of the tile at `corner`; those that are not of the image to the owner only."""
    border, dense, to_outside = plan.border, plan.dense, plan.credited and owner
    slope = to_where and owner
    grad, image, where, outside, g_image, g_where, g_outside = arrays
    window, gradient, g, slope_x, slope_y, row_sum, sums, table = buffers
    column, row, missing, offset, weights = space[0], space[1], space[8], space[9], space[4:8]
    item, where_item, image_item, slot, part, parts = places
    slopes, size, channels = (slope_x, slope_y), (plan.height, plan.width), plan.channels
    area, out_area = plan.height * plan.width, plan.out_height * plan.out_width
    plane, pixel = (1, channels) if last else (area, 1)
    g_plane, g_pixel = (1, channels) if last else (out_area, 1)
    g_line = plan.out_width * g_pixel
    x0, y0 = corner
    shape = (min(SIDE, plan.out_width - x0), min(SIDE, plan.out_height - y0))
    start = where_item * plan.where
    view = survey(kind, taps, to_where, plan, where, start, corner, shape, space)
    lost = (not view.whole) and misses(border) and taps > 1
    if slope:
        sums[:] = 0
        if lost or view.empty:
            slope_x[:], slope_y[:] = 0, 0
    for first in range(0, channels, LANES):
        lanes = min(LANES, channels - first)
        g_base = item * channels * out_area + first * g_plane + y0 * g_line + x0 * g_pixel
        base = first * plane
        if (to_image or slope) and not view.empty:
            collect(shape, grad, g_base, g_line, g_plane, g_pixel, lanes, g)
            if to_image:
                gradient[: LANES * view.entries] = 0
            if slope:
                fill(view, window, image, plane, pixel, image_item * channels * area + base, lanes,
                     border, taps, size, shape, space, table)  # fmt: skip
            spread(kind, taps, shape, view.whole, missing, offset, view.stride, weights, window,
                   gradient, g, slopes, sums, row_sum, to_image, slope, first == 0)  # fmt: skip
            if to_image:
                flush(view, gradient, g_image, plane, pixel, slot * channels * area + base, lanes,
                      border, taps, size, shape, space, table, band)  # fmt: skip
        for k in range(lanes):
            at = (item * plan.outside_item + (first + k) * plan.outside_channel
                  + y0 * plan.outside_row + x0 * plan.outside_column)  # fmt: skip
            if slope and lost and (dense or outside[at] != 0) and not view.empty:
                value = (outside, at, plan.outside_row, plan.outside_column)
                slope_of_missing(taps, shape, size, column, row, weights, missing, g, k, value,
                                 slopes)  # fmt: skip
            if to_outside and (dense or not view.whole):
                to = (item * parts + part) * channels + first + k
                if dense:
                    to = (item * channels + first + k) * out_area + y0 * plan.out_width + x0
                credit(shape, grad, g_base + k * g_plane, g_line, g_pixel, view.whole, missing,
                       dense, g_outside, to, plan.out_width)  # fmt: skip
    if slope:
        to = item * out_area * 2 if kind == POINTS else (item * parts + part) * 9
        if kind == POINTS:
            carry(kind, shape, corner, where, start, plan.out_width, missing, view.whole, slopes,
                  g_where, to)  # fmt: skip
        elif kind != AFFINE or lost:
            carry(kind, shape, corner, where, start, plan.out_width, missing, view.whole, slopes,
                  sums, 0)  # fmt: skip
        if kind != POINTS:
            for k in range(9):
                g_where[to + k] += sums[k]
            if kind == AFFINE:  # the tile's columns and rows count from its corner
                for k in range(2):
                    g_where[to + 3 * k] += x0 * sums[3 * k + 2]
                    g_where[to + 3 * k + 1] += y0 * sums[3 * k + 2]
