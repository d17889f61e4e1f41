"""The steps of the backward kernel: each undoes one step of the forward one, for one tile."""

from __future__ import annotations

import numpy as np

from warpkit.engine.backends.cpu.runtime.compiler import inline
from warpkit.engine.backends.cpu.runtime.scratch import PIXELS, SIDE
from warpkit.engine.backends.cpu.runtime.simd import (
    LANES,
    add4,
    least,
    load4,
    most,
    product4,
    scale4,
    store4,
    zero4,
)
from warpkit.engine.backends.cpu.warps.positions import AFFINE, NOTHING, WHOLE, inside
from warpkit.engine.backends.cpu.warps.window import resolve, resolve_columns


@inline
def collect(shape, grad, start, line, plane, pixel, lanes, g):
    """The incoming gradient of up to four channels side by side, 0 for absent ones."""
    zero = g.dtype.type(0)
    one, two, three = plane * least(1, lanes - 1), plane * least(2, lanes - 1), plane * (lanes - 1)
    for r in range(shape[1]):
        for c in range(shape[0]):
            p, s = np.uint64(LANES * (SIDE * r + c)), np.uint64(start + r * line + c * pixel)
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
def spread(
    kind, taps, shape, whole, missing, offset, stride, weights, window, gradient, g, slopes, sums,
    row_sum, to_image, to_where, first,
):  # fmt: skip
    """Add the gradient to the window's and sum the slopes of the values.

    An affine map needs the slopes' sums only: four lanes a row in float32, rows in float64, into
    `sums`. For other maps each pixel's slopes go to `slopes`, added up over groups of channels.
    """
    wx, wy, dx, dy = weights
    slope_x, slope_y = slopes
    columns, rows = shape
    one = g.dtype.type(1)
    for r in range(rows):
        sum_x = sum_xc = sum_y = sum_yc = zero4(g)
        for c in range(columns):
            p = np.uint64(SIDE * r + c)
            if not whole and missing[p] == NOTHING:
                continue
            at = np.int64(offset[p])
            lanes = load4(g, LANES * (SIDE * r + c))
            along = across = zero4(g)
            for j in range(taps):
                weight = wy[p + np.uint64(PIXELS * j)]
                share = scale4(weight, lanes)
                line = change = zero4(g)
                for i in range(taps):
                    q = at + j * stride + LANES * i
                    w = wx[p + np.uint64(PIXELS * i)]
                    if to_image:
                        store4(gradient, q, add4(w, share, load4(gradient, q)))
                    if to_where:
                        value = load4(window, q)
                        d = sign(one, i) if taps == 2 else dx[p + np.uint64(PIXELS * i)]
                        line, change = add4(w, value, line), add4(d, value, change)
                if to_where:
                    d = sign(one, j) if taps == 2 else dy[p + np.uint64(PIXELS * j)]
                    along, across = add4(weight, change, along), add4(d, line, across)
            if to_where and kind == AFFINE:
                along, across = product4(lanes, along, zero4(g)), product4(lanes, across, zero4(g))
                at_c = g.dtype.type(c)
                sum_x, sum_xc = add4(one, along, sum_x), add4(at_c, along, sum_xc)
                sum_y, sum_yc = add4(one, across, sum_y), add4(at_c, across, sum_yc)
            elif to_where:
                at = LANES * (SIDE * r + c)
                before_x = zero4(g) if first else load4(slope_x, at)
                before_y = zero4(g) if first else load4(slope_y, at)
                store4(slope_x, at, product4(lanes, along, before_x))
                store4(slope_y, at, product4(lanes, across, before_y))
        if to_where and kind == AFFINE:
            add_row(r, sum_x, sum_xc, sum_y, sum_yc, row_sum, sums)


@inline
def add_row(r, sum_x, sum_xc, sum_y, sum_yc, row_sum, sums):
    """Add a row's slopes to `sums`: alone, times the column in the tile, times the row."""
    store4(row_sum, 0, sum_x)
    store4(row_sum, LANES, sum_xc)
    store4(row_sum, 2 * LANES, sum_y)
    store4(row_sum, 3 * LANES, sum_yc)
    for k in range(LANES):
        sums[0] += row_sum[LANES + k]
        sums[1] += r * np.float64(row_sum[k])
        sums[2] += row_sum[k]
        sums[3] += row_sum[3 * LANES + k]
        sums[4] += r * np.float64(row_sum[2 * LANES + k])
        sums[5] += row_sum[2 * LANES + k]


@inline
def slope_of_missing(taps, shape, size, column, row, weights, missing, g, lane, value, slopes):
    """Add what the missing taps' weights contribute: they are multiplied by `outside`."""
    wx, wy, dx, dy = weights
    outside, start, line, pixel = value
    columns, rows = shape
    before, one = taps // 2 - 1, g.dtype.type(1)
    for r in range(rows):
        for c in range(columns):
            p = SIDE * r + c
            if missing[p] == WHOLE or missing[p] == NOTHING:
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
            push = g[LANES * p + lane] * outside[start + r * line + c * pixel]
            slopes[0][LANES * p] -= push * slope_x * in_y
            slopes[1][LANES * p] -= push * in_x * slope_y


@inline
def slope_at(p, slopes):
    """A pixel's slope, added up over channels."""
    gx = gy = np.float64(0)
    for k in range(LANES):
        gx += slopes[0][LANES * p + k]
        gy += slopes[1][LANES * p + k]
    return gx, gy


@inline
def to_points(shape, slopes, whole, missing, g_where, at, width):
    """Write the gradient to points; the tile's first one is at `at`, rows are `width` points."""
    for r in range(shape[1]):
        for c in range(shape[0]):
            p, to = SIDE * r + c, at + 2 * (r * width + c)
            gx, gy = slope_at(p, slopes)
            here = whole or missing[p] != NOTHING
            g_where[to] = gx if here else 0.0
            g_where[to + 1] = gy if here else 0.0


@inline
def to_affine(shape, slopes, missing, sums):
    """Add the slopes of missing taps to the sums; rows and columns count from the tile's corner."""
    for r in range(shape[1]):
        for c in range(shape[0]):
            p = SIDE * r + c
            if missing[p] != NOTHING:
                gx, gy = slope_at(p, slopes)
                for k, g in enumerate((gx, gy)):
                    sums[3 * k] += g * c
                    sums[3 * k + 1] += g * r
                    sums[3 * k + 2] += g


@inline
def to_perspective(shape, corner, where, start, slopes, whole, missing, sums):
    """Add the slopes to the sums, through the division by w."""
    for r in range(shape[1]):
        for c in range(shape[0]):
            p = SIDE * r + c
            if not whole and missing[p] == NOTHING:
                continue
            gx, gy = slope_at(p, slopes)
            x, y = np.float64(corner[0] + c), np.float64(corner[1] + r)
            u = where[start] * x + where[start + 1] * y + where[start + 2]
            v = where[start + 3] * x + where[start + 4] * y + where[start + 5]
            w = where[start + 6] * x + where[start + 7] * y + where[start + 8]
            gx, gy = gx / w, gy / w
            gw = -(gx * (u / w) + gy * (v / w))
            for k, g in enumerate((gx, gy, gw)):
                sums[3 * k] += g * x
                sums[3 * k + 1] += g * y
                sums[3 * k + 2] += g


@inline
def add_sums(sums, corner, g_where, at):
    """Add a tile's sums, whose columns and rows count from `corner`, to the matrix's gradient."""
    for k in range(3):
        g_where[at + 3 * k] += sums[3 * k] + corner[0] * sums[3 * k + 2]
        g_where[at + 3 * k + 1] += sums[3 * k + 1] + corner[1] * sums[3 * k + 2]
        g_where[at + 3 * k + 2] += sums[3 * k + 2]


@inline
def credit(shape, grad, start, line, pixel, whole, missing, dense, g_outside, to, width):
    """The gradient to what stands outside: one place an output pixel if `dense`, or one sum."""
    total = np.float64(0)
    columns, rows = shape
    for r in range(rows):
        for c in range(columns):
            share = missing[SIDE * r + c]
            if whole or share == WHOLE:
                share = missing.dtype.type(0)
            elif share == NOTHING:
                share = missing.dtype.type(1)
            push = share * grad[start + r * line + c * pixel]
            if share == 0:
                push = missing.dtype.type(0)
            total += push
            if dense:
                g_outside[to + r * width + c] = push
    if not dense:
        g_outside[to] += total


@inline
def clear(to, planes, area, start, line, band):
    """Set the rows band[0] .. band[1] of an image's planes to 0; `line` numbers make up a row."""
    for k in range(planes):
        for p in range(band[0] * line, band[1] * line):
            to[np.uint64(start + k * area + p)] = 0


@inline
def flush_box(window, to, plane, pixel, base, lanes, border, size, box, table, band):
    """Add the gradient of a box to the image's rows band[0] .. band[1]."""
    height, width = size
    left, top, columns, rows = box
    first, last = least(most(-left, 0), columns), most(least(width - left, columns), 0)
    resolve_columns(left, columns, first, last, width, border, table)
    for r in range(rows):
        y = resolve(top + r, height, border)
        if y < band[0] or y >= band[1]:
            continue
        for k in range(lanes):
            row = base + y * width * pixel + k * plane
            source = LANES * columns * r + k
            if first > 0 or last < columns:
                for c in range(columns):
                    if (c < first or c >= last) and table[c] >= 0:
                        to[row + table[c] * pixel] += window[source + LANES * c]
            start = row + left * pixel
            for c in range(first, last):
                s = np.uint64(source + LANES * c)
                to[np.uint64(start + c * pixel)] += window[s]


@inline
def flush_single(
    window, to, plane, pixel, base, lanes, border, size, taps, tile, whole, column, row, missing,
    band,
):  # fmt: skip
    """Add the gradients of one box a pixel to the image's rows band[0] .. band[1]."""
    height, width = size
    before = taps // 2 - 1 if taps > 1 else 0
    for r in range(tile[1]):
        for c in range(tile[0]):
            p = SIDE * r + c
            if not whole and missing[p] == NOTHING:
                continue
            for j in range(taps):
                y = resolve(np.int64(row[p]) - before + j, height, border)
                if y < band[0] or y >= band[1]:
                    continue
                for i in range(taps):
                    x = resolve(np.int64(column[p]) - before + i, width, border)
                    if x >= 0:
                        source = LANES * ((p * taps + j) * taps + i)
                        for k in range(lanes):
                            to[base + (y * width + x) * pixel + k * plane] += window[source + k]
