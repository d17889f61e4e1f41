"""The steps of the backward kernel: each undoes one step of the forward one, for one tile."""

from __future__ import annotations

import numpy as np

from warpkit.kernels.cpu.compiler import inline
from warpkit.kernels.cpu.lanes import LANES, add4, load4, product4, scale4, store4, zero4
from warpkit.kernels.cpu.locate import AFFINE, NOTHING, PIXELS, POINTS, SIDE, WHOLE, inside
from warpkit.kernels.cpu.window import resolve, resolve_columns


@inline
def collect(shape, grad, start, line, plane, pixel, lanes, g):
    """The incoming gradient of up to four channels side by side, 0 for absent ones."""
    columns, rows = shape
    for r in range(rows):
        for k in range(LANES):
            base = start + r * line + k * plane
            for c in range(columns):
                p = np.uint64(LANES * (SIDE * r + c) + k)
                g[p] = grad[np.uint64(base + c * pixel)] if k < lanes else 0


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
def carry(kind, shape, corner, where, start, width, missing, whole, slopes, sums, to):
    """From each pixel's slopes to the points, or to the sums that make the matrix's gradient.

    An affine map's columns and rows count from the tile's corner, the others' from the image's.
    """
    (columns, rows), (x0, y0) = shape, corner
    for r in range(rows):
        for c in range(columns):
            p = SIDE * r + c
            gx = gy = np.float64(0)
            if whole or missing[p] != NOTHING:
                for k in range(LANES):
                    gx += slopes[0][LANES * p + k]
                    gy += slopes[1][LANES * p + k]
            if kind == POINTS:
                at = 2 * ((y0 + r) * width + x0 + c)
                sums[to + at], sums[to + at + 1] = gx, gy
                continue
            fx, fy = np.float64(c), np.float64(r)
            if kind != AFFINE:
                if not whole and missing[p] == NOTHING:
                    continue
                fx, fy = np.float64(x0 + c), np.float64(y0 + r)
                u = where[start] * fx + where[start + 1] * fy + where[start + 2]
                v = where[start + 3] * fx + where[start + 4] * fy + where[start + 5]
                w = where[start + 6] * fx + where[start + 7] * fy + where[start + 8]
                gx, gy = gx / w, gy / w
                gw = -(gx * (u / w) + gy * (v / w))
                sums[6] += gw * fx
                sums[7] += gw * fy
                sums[8] += gw
            sums[0] += gx * fx
            sums[1] += gx * fy
            sums[2] += gx
            sums[3] += gy * fx
            sums[4] += gy * fy
            sums[5] += gy


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
def flush(
    view, window, to, plane, pixel, base, lanes, border, taps, size, shape, scratch, table, band
):
    """Add the window's gradient to the image's rows band[0] .. band[1]."""
    if view.empty:
        return
    if view.boxed:
        flush_box(window, to, plane, pixel, base, lanes, border, size, view.box, table, band)
    else:
        column, row, missing = scratch[0], scratch[1], scratch[8]
        flush_single(
            window, to, plane, pixel, base, lanes, border, size, taps, shape,
            view.whole, column, row, missing, band,
        )  # fmt: skip


@inline
def flush_box(window, to, plane, pixel, base, lanes, border, size, box, table, band):
    """Add the gradient of a box to the image's rows band[0] .. band[1]."""
    height, width = size
    left, top, columns, rows = box
    first, last = min(max(-left, 0), columns), max(min(width - left, columns), 0)
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
