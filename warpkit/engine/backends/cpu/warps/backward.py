"""The backward kernel: for every tile, the gradients to image, map and border value.

The image's gradient is summed in a window, then added to the image's. Where several threads work
on one image, each owns a band of its rows and does the tiles that touch it. A band's result does
not depend on the others, so that the sum is the same to the last bit whatever the threads.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from warpkit.engine.backends.cpu.runtime.compiler import DIGEST, inline, kernel
from warpkit.engine.backends.cpu.runtime.scratch import TILE, buffers_of, scratch_of
from warpkit.engine.backends.cpu.runtime.simd import CHANNELS_PER_VECTOR, max_signed, min_signed
from warpkit.engine.backends.cpu.warps.backward_steps import (
    add_fill_gradient,
    add_sums,
    clear,
    collect,
    flush_box,
    flush_single,
    slope_of_missing,
    spread_gradient,
    to_affine,
    to_perspective,
    to_points,
)
from warpkit.engine.backends.cpu.warps.positions import (
    AFFINE,
    REPLICATE,
    SINGLE_POINTS,
    map_tile,
    misses,
)
from warpkit.engine.backends.cpu.warps.tile import plan_of, view_of
from warpkit.engine.backends.cpu.warps.weights import weigh_eight, weigh_four, weigh_one, weigh_two
from warpkit.engine.backends.cpu.warps.window import copy_box, copy_single


@inline
def rows_read(taps, border, height, bounds):
    """The first and last image row that a tile may read; the last before the first for none."""
    before = taps // 2 - 1 if taps > 1 else 0
    top, bottom = np.int64(bounds[2]) - before, np.int64(bounds[3]) - before + taps - 1
    if misses(border) or border == REPLICATE:
        return min_signed(max_signed(top, 0), height - 1), min_signed(
            max_signed(bottom, 0), height - 1
        )
    if top >= 0 and bottom < height:
        return top, bottom
    return np.int64(0), height - 1


@cache
def row_range_kernel(taps: int) -> Any:
    """The kernel that finds the image rows each tile may read, for dealing tiles to bands."""
    digest = DIGEST

    def find_row_ranges(maps, kind, mapping_of, row_ranges, sizes, memory, begin, end):
        """Tile rows begin .. end, exclusive, numbered across all items."""
        _ = digest
        plan = plan_of(sizes)
        column, row, tx, ty = scratch_of(taps, memory)[:4]
        places = (column, row, tx, ty)
        tile_rows = (plan.out_height + TILE - 1) // TILE
        at = 2 * begin * ((plan.out_width + TILE - 1) // TILE)
        for unit in range(begin, end):
            item, y0 = unit // tile_rows, unit % tile_rows * TILE
            mapping_start = mapping_of[item] * plan.mapping_size
            for x0 in range(0, plan.out_width, TILE):
                columns = min_signed(TILE, plan.out_width - x0)
                shape = (columns, min_signed(TILE, plan.out_height - y0))
                bounds = map_tile(
                    kind, taps, maps, mapping_start, plan.out_width, (x0, y0), shape, places
                )
                row_ranges[at], row_ranges[at + 1] = rows_read(
                    taps, plan.border, plan.height, bounds
                )
                at += 2

    return kernel(find_row_ranges)


@cache
def backward_kernel(taps: int, channels_last: bool) -> Any:
    """The kernel for taps an axis and the layout of image, gradients and their memory."""
    digest = DIGEST

    def backward(
        arrays, kind, image_of, mapping_of, order, starts, row_ranges, sizes, bands, memory, begin,
        end,
    ):  # fmt: skip
        """Units begin .. end: unit u is band u % bands of the items of accumulator u // bands.

        With g the incoming gradient of an output pixel, v its taps and w = wy wx their weights:

            grad_image[tap]   += w g
            grad_mapping      += g (sum wy dx v, sum dy wx v) through the map's own derivative
            grad_fill         += (1 - sum of w over the taps inside) g

        An accumulator is one image's gradient, or one of several that are added up afterwards, in
        their order. The items of accumulator s are order[starts[s] : starts[s + 1]], done one after
        the other; so are the tiles of an item and the pixels of a tile: the order of every sum
        follows from shapes alone, and results are the same bits for any number of threads. A band
        is a range of the image's rows, or of tile rows where the image gets no gradient. A tile
        that several bands do belongs to the first of them, which alone adds to the other gradients.
        The same as grid_sampler_2d_backward, with a gradient to the matrix instead of a grid.
        """
        _ = digest
        plan = plan_of(sizes)
        grad, image, maps, fill, grad_image, grad_mapping, grad_fill = arrays
        needs_grad_image, needs_grad_mapping = plan.needs_grad_image, plan.needs_grad_mapping
        column, row, tx, ty, wx, wy, dx, dy, missing_weight, window_offset = scratch_of(
            taps, memory
        )
        points, places = (column, row, missing_weight), (column, row, tx, ty)
        state = missing_weight, window_offset
        window, gradient, g, slope_x, slope_y, row_sum, sums, table = buffers_of(taps, memory)
        weights, slopes, buffers = (wx, wy, dx, dy), (slope_x, slope_y), (window, gradient, g)
        affine = kind == AFFINE
        border, size, channels = plan.border, (plan.height, plan.width), plan.channels
        area, out_area = plan.height * plan.width, plan.out_height * plan.out_width
        strides = (1, channels) if channels_last else (area, 1)
        g_plane, g_pixel = (1, channels) if channels_last else (out_area, 1)
        g_line = plan.out_width * g_pixel
        tiles_x, tiles_y = (plan.out_width + TILE - 1) // TILE, (plan.out_height + TILE - 1) // TILE
        for unit in range(begin, end):
            accumulator, part = unit // bands, unit % bands
            band = (plan.height * part // bands, plan.height * (part + 1) // bands)
            first_row, last_row = tiles_y * part // bands, tiles_y * (part + 1) // bands
            if needs_grad_image:
                first_row, last_row = 0, tiles_y
                planes, row_of = (1, channels) if channels_last else (channels, 1)
                dst = accumulator * channels * area
                clear(grad_image, planes, area, dst, plan.width * row_of, band)
            tiles = (last_row - first_row) * tiles_x
            for step in range((starts[accumulator + 1] - starts[accumulator]) * tiles):
                item = order[starts[accumulator] + step // tiles]
                tile = first_row * tiles_x + step % tiles
                owner = True
                if needs_grad_image and bands > 1:
                    rows_at = 2 * (item * tiles_x * tiles_y + tile)
                    top, bottom = row_ranges[rows_at], row_ranges[rows_at + 1]
                    owner = band[0] <= top < band[1]
                    if not owner and (bottom < band[0] or top >= band[1]):
                        continue
                x0, y0 = tile % tiles_x * TILE, tile // tiles_x * TILE
                corner, columns = (x0, y0), min_signed(TILE, plan.out_width - x0)
                shape = (columns, min_signed(TILE, plan.out_height - y0))
                mapping_start = mapping_of[item] * plan.mapping_size
                bounds = map_tile(
                    kind, taps, maps, mapping_start, plan.out_width, corner, shape, places
                )
                if taps == 1:
                    weigh_one(shape, tx, wx)
                    weigh_one(shape, ty, wy)
                elif taps == 2:
                    weigh_two(shape, tx, wx)
                    weigh_two(shape, ty, wy)
                elif taps == 4:
                    if needs_grad_mapping:
                        weigh_four(shape, tx, wx, dx, True)
                        weigh_four(shape, ty, wy, dy, True)
                    else:
                        weigh_four(shape, tx, wx, dx, False)
                        weigh_four(shape, ty, wy, dy, False)
                else:
                    weigh_eight(shape, tx, wx, dx, True)
                    weigh_eight(shape, ty, wy, dy, True)
                view = view_of(taps, plan, bounds, shape, column, row, tx, wx, wy, missing_weight,
                               window_offset)  # fmt: skip
                sloped = needs_grad_mapping and owner
                lost = sloped and (not view.whole) and misses(border)
                if needs_grad_mapping:
                    sums[:] = 0
                    if lost or view.empty:
                        slope_x[:], slope_y[:] = 0, 0
                for first in range(0, channels, CHANNELS_PER_VECTOR):
                    lanes = min_signed(CHANNELS_PER_VECTOR, channels - first)
                    g_base = item * channels * out_area + first * g_plane
                    g_base += y0 * g_line + x0 * g_pixel
                    if not view.empty:
                        collect(shape, grad, g_base, g_line, g_plane, g_pixel, lanes, g)
                        if needs_grad_image:
                            gradient[: CHANNELS_PER_VECTOR * view.entries] = 0
                        if needs_grad_mapping:
                            at = image_of[item] * channels * area + first * strides[0]
                            if sloped and view.boxed:
                                copy_box(window, image, strides, at, lanes, border, size, view.box,
                                         table)  # fmt: skip
                            elif sloped:
                                copy_single(window, image, strides, at, lanes, border, size, taps,
                                            shape, view.whole, points)  # fmt: skip
                        to = state, weights, buffers, slopes, (sums, row_sum)
                        # three loops, since a test of what is wanted at each tap would cost more
                        if taps == 1 or not sloped:
                            if needs_grad_image:
                                spread_gradient(
                                    False, taps, shape, view, *to, True, False, first == 0
                                )
                        elif needs_grad_image:
                            spread_gradient(affine, taps, shape, view, *to, True, True, first == 0)
                        else:
                            spread_gradient(affine, taps, shape, view, *to, False, True, first == 0)
                        if needs_grad_image:
                            at = accumulator * channels * area + first * strides[0]
                            if view.boxed:
                                flush_box(gradient, grad_image, strides, at, lanes, border, size,
                                          view.box, table, band)  # fmt: skip
                            else:
                                flush_single(gradient, grad_image, strides, at, lanes, border, size,
                                             taps, shape, view.whole, points, band)  # fmt: skip
                    for k in range(first, first + lanes):
                        if needs_grad_mapping:
                            at = (item * plan.fill_item + k * plan.fill_channel
                                  + y0 * plan.fill_row + x0 * plan.fill_column)  # fmt: skip
                            if lost and (plan.dense or fill[at] != 0) and not view.empty:
                                value = (fill, at, plan.fill_row, plan.fill_column)
                                slope_of_missing(taps, shape, size, points, weights, g, k - first,
                                                 value, slopes)  # fmt: skip
                        if plan.needs_grad_fill and owner and (plan.dense or not view.whole):
                            at = (item * bands + part) * channels + k
                            if plan.dense:
                                at = (item * channels + k) * out_area + y0 * plan.out_width + x0
                            src = g_base + (k - first) * g_plane
                            add_fill_gradient(shape, grad, src, g_line, g_pixel, view.whole,
                                              missing_weight, plan.dense, grad_fill, at,
                                              plan.out_width)  # fmt: skip
                if needs_grad_mapping:
                    at = 9 * (item * bands + part)
                    if kind <= SINGLE_POINTS:
                        at = 2 * (item * out_area + y0 * plan.out_width + x0)
                        if sloped:
                            to_points(shape, slopes, view.whole, missing_weight, grad_mapping, at,
                                      plan.out_width)  # fmt: skip
                    elif kind == AFFINE:
                        if lost:
                            to_affine(shape, slopes, missing_weight, sums)
                        add_sums(sums, corner, grad_mapping, at)
                    else:
                        if sloped:
                            to_perspective(shape, corner, maps[0], mapping_start, slopes,
                                           view.whole, missing_weight, sums)  # fmt: skip
                        add_sums(sums, (0, 0), grad_mapping, at)

    return kernel(backward)
