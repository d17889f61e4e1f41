"""The steps of the backward kernel: each undoes one step of the forward one, for one tile."""

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
    product4,
    scale4,
    store4,
    zero4,
)
from warpkit.engine.backends.cpu.warps.positions import (
    ALL_TAPS_INSIDE,
    NO_TAP_INSIDE,
    inside,
)
from warpkit.engine.backends.cpu.warps.window import resolve, resolve_columns


@inline
def collect(shape, grad, src, line, plane, pixel, lanes, g):
    """The incoming gradient of up to four channels side by side, 0 for absent ones."""
    zero = g.dtype.type(0)
    one, two, three = (
        plane * min_signed(1, lanes - 1),
        plane * min_signed(2, lanes - 1),
        plane * (lanes - 1),
    )
    for r in range(shape[1]):
        for c in range(shape[0]):
            p, s = (
                np.uint64(CHANNELS_PER_VECTOR * (TILE * r + c)),
                np.uint64(src + r * line + c * pixel),
            )
            # all four in one loop, which is vectorised with shuffles
            g[p] = grad[s]
            g[p + np.uint64(1)] = grad[s + np.uint64(one)] if lanes > 1 else zero
            g[p + np.uint64(2)] = grad[s + np.uint64(two)] if lanes > 2 else zero
            g[p + np.uint64(3)] = grad[s + np.uint64(three)] if lanes > 3 else zero


@inline
def sign(one, tap):
    """The slope of a bilinear weight."""
    return one if tap == 1 else -one


@inline
def spread_gradient(
    affine, taps, shape, view, state, weights, buffers, slopes, totals, needs_grad_image,
    needs_grad_mapping, first,
):  # fmt: skip
    """Add the incoming gradient to the window's, and sum the slopes of the values.

    For each pixel, with its gradient g (up to four channels side by side) and its taps v[j, i]:

        gradient[j, i] += wy[j] wx[i] g
        along  = sum_j wy[j] sum_i dx[i] v[j, i]      the value's derivative by x
        across = sum_j dy[j] sum_i wx[i] v[j, i]      and by y

    An affine map needs only the sums of g along and g across, alone and times column and row: four
    lanes a row in the type of the computation, rows in float64, into totals = (sums, row_sum); see
    `add_row`. For other maps each pixel's g along and g across go to `slopes`, added up over groups
    of channels, of which `first` says whether it is the first. One pixel after the other, in rows:
    the order of the sums is the same for any number of threads.

    view: of `view_of`. state: missing_weight and window_offset of `Scratch`. buffers: window,
    gradient and incoming gradient of `Buffers`.
    """
    wx, wy, dx, dy = weights
    slope_x, slope_y = slopes
    (missing_weight, window_offset), (window, gradient, g), (sums, row_sum) = state, buffers, totals
    whole, stride = view.whole, view.stride
    columns, rows = shape
    one = g.dtype.type(1)
    for r in range(rows):
        sum_x = sum_xc = sum_y = sum_yc = zero4(g)
        for c in range(columns):
            p = np.uint64(TILE * r + c)
            if not whole and missing_weight[p] == NO_TAP_INSIDE:
                continue
            at = np.int64(window_offset[p])
            lanes = load4(g, CHANNELS_PER_VECTOR * (TILE * r + c))
            along = across = zero4(g)
            for j in range(taps):
                weight = wy[p + np.uint64(PIXELS * j)]
                share = scale4(weight, lanes)
                line = change = zero4(g)
                for i in range(taps):
                    q = at + j * stride + CHANNELS_PER_VECTOR * i
                    w = wx[p + np.uint64(PIXELS * i)]
                    if needs_grad_image:
                        store4(gradient, q, add4(w, share, load4(gradient, q)))
                    if needs_grad_mapping:
                        value = load4(window, q)
                        d = sign(one, i) if taps == 2 else dx[p + np.uint64(PIXELS * i)]
                        line, change = add4(w, value, line), add4(d, value, change)
                if needs_grad_mapping:
                    d = sign(one, j) if taps == 2 else dy[p + np.uint64(PIXELS * j)]
                    along, across = add4(weight, change, along), add4(d, line, across)
            if needs_grad_mapping and affine:
                along, across = product4(lanes, along, zero4(g)), product4(lanes, across, zero4(g))
                at_c = g.dtype.type(c)
                sum_x, sum_xc = add4(one, along, sum_x), add4(at_c, along, sum_xc)
                sum_y, sum_yc = add4(one, across, sum_y), add4(at_c, across, sum_yc)
            elif needs_grad_mapping:
                at = CHANNELS_PER_VECTOR * (TILE * r + c)
                before_x = zero4(g) if first else load4(slope_x, at)
                before_y = zero4(g) if first else load4(slope_y, at)
                store4(slope_x, at, product4(lanes, along, before_x))
                store4(slope_y, at, product4(lanes, across, before_y))
        if needs_grad_mapping and affine:
            add_row(r, sum_x, sum_xc, sum_y, sum_yc, row_sum, sums)


@inline
def add_row(r, sum_x, sum_xc, sum_y, sum_yc, row_sum, sums):
    """Add a row's slopes to `sums`: alone, times the column in the tile, times the row."""
    store4(row_sum, 0, sum_x)
    store4(row_sum, CHANNELS_PER_VECTOR, sum_xc)
    store4(row_sum, 2 * CHANNELS_PER_VECTOR, sum_y)
    store4(row_sum, 3 * CHANNELS_PER_VECTOR, sum_yc)
    for k in range(CHANNELS_PER_VECTOR):
        sums[0] += row_sum[CHANNELS_PER_VECTOR + k]
        sums[1] += r * np.float64(row_sum[k])
        sums[2] += row_sum[k]
        sums[3] += row_sum[3 * CHANNELS_PER_VECTOR + k]
        sums[4] += r * np.float64(row_sum[2 * CHANNELS_PER_VECTOR + k])
        sums[5] += row_sum[2 * CHANNELS_PER_VECTOR + k]


@inline
def slope_of_missing(taps, shape, size, points, weights, g, lane, value, slopes):
    """Add what the missing taps' weights contribute: they are multiplied by the fill.

    points: as of `window.fill_single`. value: the fill, its first place, and its strides from row
    to row and from column to column.
    """
    column, row, missing_weight = points
    wx, wy, dx, dy = weights
    fill, fill_start, line, pixel = value
    columns, rows = shape
    before, one = taps // 2 - 1, g.dtype.type(1)
    for r in range(rows):
        for c in range(columns):
            p = TILE * r + c
            if missing_weight[p] == ALL_TAPS_INSIDE or missing_weight[p] == NO_TAP_INSIDE:
                continue
            in_x = in_y = slope_x = slope_y = g.dtype.type(0)
            for k in range(taps):
                q = p + k * PIXELS
                if inside(np.int64(column[p]) - before + k, size[1]):
                    in_x += wx[q]
                    slope_x += sign(one, k) if taps == 2 else dx[q]
                if inside(np.int64(row[p]) - before + k, size[0]):
                    in_y += wy[q]
                    slope_y += sign(one, k) if taps == 2 else dy[q]
            push = g[CHANNELS_PER_VECTOR * p + lane] * fill[fill_start + r * line + c * pixel]
            slopes[0][CHANNELS_PER_VECTOR * p] -= push * slope_x * in_y
            slopes[1][CHANNELS_PER_VECTOR * p] -= push * in_x * slope_y


@inline
def slope_at(p, slopes):
    """A pixel's slope, added up over channels."""
    gx = gy = np.float64(0)
    for k in range(CHANNELS_PER_VECTOR):
        gx += slopes[0][CHANNELS_PER_VECTOR * p + k]
        gy += slopes[1][CHANNELS_PER_VECTOR * p + k]
    return gx, gy


@inline
def to_points(shape, slopes, whole, missing_weight, grad_mapping, at, width):
    """Write the gradient to points; the tile's first one is at `at`, rows are `width` points."""
    for r in range(shape[1]):
        for c in range(shape[0]):
            p, to = TILE * r + c, at + 2 * (r * width + c)
            gx, gy = slope_at(p, slopes)
            here = whole or missing_weight[p] != NO_TAP_INSIDE
            grad_mapping[to] = gx if here else 0.0
            grad_mapping[to + 1] = gy if here else 0.0


@inline
def to_affine(shape, slopes, missing_weight, sums):
    """Add the slopes of missing taps to the sums; rows and columns count from the tile's corner."""
    for r in range(shape[1]):
        for c in range(shape[0]):
            p = TILE * r + c
            if missing_weight[p] != NO_TAP_INSIDE:
                gx, gy = slope_at(p, slopes)
                for k, g in enumerate((gx, gy)):
                    sums[3 * k] += g * c
                    sums[3 * k + 1] += g * r
                    sums[3 * k + 2] += g


@inline
def to_perspective(shape, corner, mapping, mapping_start, slopes, whole, missing_weight, sums):
    """Add the slopes to the sums, through the division by w."""
    for r in range(shape[1]):
        for c in range(shape[0]):
            p = TILE * r + c
            if not whole and missing_weight[p] == NO_TAP_INSIDE:
                continue
            gx, gy = slope_at(p, slopes)
            x, y = np.float64(corner[0] + c), np.float64(corner[1] + r)
            u = (
                mapping[mapping_start] * x
                + mapping[mapping_start + 1] * y
                + mapping[mapping_start + 2]
            )
            v = (
                mapping[mapping_start + 3] * x
                + mapping[mapping_start + 4] * y
                + mapping[mapping_start + 5]
            )
            w = (
                mapping[mapping_start + 6] * x
                + mapping[mapping_start + 7] * y
                + mapping[mapping_start + 8]
            )
            gx, gy = gx / w, gy / w
            gw = -(gx * (u / w) + gy * (v / w))
            for k, g in enumerate((gx, gy, gw)):
                sums[3 * k] += g * x
                sums[3 * k + 1] += g * y
                sums[3 * k + 2] += g


@inline
def add_sums(sums, corner, grad_mapping, at):
    """Add a tile's sums, whose columns and rows count from `corner`, to the matrix's gradient."""
    for k in range(3):
        grad_mapping[at + 3 * k] += sums[3 * k] + corner[0] * sums[3 * k + 2]
        grad_mapping[at + 3 * k + 1] += sums[3 * k + 1] + corner[1] * sums[3 * k + 2]
        grad_mapping[at + 3 * k + 2] += sums[3 * k + 2]


@inline
def add_fill_gradient(
    shape, grad, src, line, pixel, whole, missing_weight, dense, grad_fill, to, width
):
    """The gradient to the fill: one value for every output pixel if `dense`, else one sum."""
    total = np.float64(0)
    columns, rows = shape
    for r in range(rows):
        for c in range(columns):
            share = missing_weight[TILE * r + c]
            if whole or share == ALL_TAPS_INSIDE:
                share = missing_weight.dtype.type(0)
            elif share == NO_TAP_INSIDE:
                share = missing_weight.dtype.type(1)
            push = share * grad[src + r * line + c * pixel]
            if share == 0:
                push = missing_weight.dtype.type(0)
            total += push
            if dense:
                grad_fill[to + r * width + c] = push
    if not dense:
        grad_fill[to] += total


@inline
def clear(to, planes, area, dst, line, band):
    """Set the rows band[0] .. band[1] of an image's planes to 0; `line` numbers make up a row."""
    for k in range(planes):
        for p in range(band[0] * line, band[1] * line):
            to[np.uint64(dst + k * area + p)] = 0


@inline
def flush_box(window, to, strides, base, lanes, border, size, box, table, band):
    """Add the gradient of a box to the image's rows band[0] .. band[1]."""
    (plane, pixel), (height, width) = strides, size
    left, top, columns, rows = box
    first, last = (
        min_signed(max_signed(-left, 0), columns),
        max_signed(min_signed(width - left, columns), 0),
    )
    resolve_columns(left, columns, first, last, width, border, table)
    for r in range(rows):
        y = resolve(top + r, height, border)
        if y < band[0] or y >= band[1]:
            continue
        for k in range(lanes):
            row = base + y * width * pixel + k * plane
            source = CHANNELS_PER_VECTOR * columns * r + k
            if first > 0 or last < columns:
                for c in range(columns):
                    if (c < first or c >= last) and table[c] >= 0:
                        to[row + table[c] * pixel] += window[source + CHANNELS_PER_VECTOR * c]
            dst = row + left * pixel
            for c in range(first, last):
                s = np.uint64(source + CHANNELS_PER_VECTOR * c)
                to[np.uint64(dst + c * pixel)] += window[s]


@inline
def flush_single(window, to, strides, base, lanes, border, size, taps, tile, whole, points, band):
    """Add the gradients of one box a pixel to the image's rows band[0] .. band[1].

    points: as of `window.fill_single`.
    """
    (plane, pixel), (height, width), (column, row, missing_weight) = strides, size, points
    before = taps // 2 - 1 if taps > 1 else 0
    for r in range(tile[1]):
        for c in range(tile[0]):
            p = TILE * r + c
            if not whole and missing_weight[p] == NO_TAP_INSIDE:
                continue
            for j in range(taps):
                y = resolve(np.int64(row[p]) - before + j, height, border)
                if y < band[0] or y >= band[1]:
                    continue
                for i in range(taps):
                    x = resolve(np.int64(column[p]) - before + i, width, border)
                    if x >= 0:
                        source = CHANNELS_PER_VECTOR * ((p * taps + j) * taps + i)
                        for k in range(lanes):
                            to[base + (y * width + x) * pixel + k * plane] += window[source + k]
