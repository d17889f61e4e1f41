"""The bicubic resize of bytes as OpenCV's wheels have it from IPP: see `opencv_ipp_resize`.

Sums along x in float32, whose order differs inside and at the ends of a row; then of four rows.
With AVX2 the pixels that look beyond the image are summed in an order of their own.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from warpkit.engine.backends.cpu.runtime.compiler import DIGEST, inline, kernel
from warpkit.engine.backends.cpu.runtime.packed_loads import fma

CHAIN, PAIRS, SKIP, HALVES, ENDS, ALONE = range(6)
"""The orders of a sum of four products: one after the other, or two pairs of them.

ALONE: each pixel of the column is summed alone, see `sum_alone`.
"""


class CubicPlan(NamedTuple):
    """Sizes of a call; from a channel, a pixel and a row to the next, in bytes."""

    channels: int
    height: int
    plane: int
    pixel: int
    line: int
    out_height: int
    out_width: int
    out_plane: int
    out_pixel: int
    out_line: int
    rows: int
    """Of the result, in a band."""
    alone: bool
    """Whether pixels that look beyond the image are summed alone, as IPP does with AVX2."""


@inline
def sum_four(order, a, b, c, d, w, at):
    """Four products in one of the orders; weights w[at], ..."""
    w0, w1, w2, w3 = w[at], w[at + np.uint64(1)], w[at + np.uint64(2)], w[at + np.uint64(3)]
    if order == PAIRS:
        return (a * w0 + b * w1) + (c * w2 + d * w3)
    if order == SKIP:
        return (a * w0 + c * w2) + (b * w1 + d * w3)
    if order == HALVES:
        return fma(c, w2, a * w0) + fma(d, w3, b * w1)
    if order == ENDS:
        return fma(a, w0, d * w3) + fma(b, w1, c * w2)
    return fma(d, w3, fma(c, w2, fma(b, w1, a * w0)))


@inline
def four_pixels(image, first, pixel, i):
    """The pixels of an output in the row that begins at `first`."""
    single = np.float32
    return (
        single(image[np.uint64(first + pixel[i])]),
        single(image[np.uint64(first + pixel[i + np.uint64(1)])]),
        single(image[np.uint64(first + pixel[i + np.uint64(2)])]),
        single(image[np.uint64(first + pixel[i + np.uint64(3)])]),
    )


@inline
def sum_row(image, base, plan, x, lines, to):
    """The sums along x of a row of the image, its channels side by side."""
    pixel, weight, order = x
    for k in range(plan.channels):
        first = base + k * plan.plane
        for n in range(plan.out_width):
            i = np.uint64(4 * n)
            a, b, c, d = four_pixels(image, first, pixel, i)
            total = sum_four(order[np.uint64(n)], a, b, c, d, weight, i)
            lines[np.uint64(to + k * plan.out_width + n)] = total


@inline
def sum_rows(lines, starts, weight, at, size, found):
    """Four rows of sums as bytes, in two fused pairs."""
    a, b, c, d = (
        np.uint64(starts[0]),
        np.uint64(starts[1]),
        np.uint64(starts[2]),
        np.uint64(starts[3]),
    )
    v0, v1, v2, v3 = weight[at], weight[at + 1], weight[at + 2], weight[at + 3]
    for n in range(size):
        e = np.uint64(n)
        upper = fma(lines[a + e], v0, lines[b + e] * v1)
        total = upper + fma(lines[c + e], v2, lines[d + e] * v3)
        found[e] = as_byte(total)


@inline
def sum_alone(image, base, plan, x, n, rows, weight, at):
    """Column n of a channel, of four rows of the image, as bytes.

    The two rows in the middle begin with the second product, and the rows are not fused.
    """
    pixel, across, _ = x
    i = np.uint64(4 * n)
    single = np.float32
    upper, lower = single(0), single(0)
    for k in range(4):
        a, b, c, d = four_pixels(image, base + rows[at + k] * plan.line, pixel, i)
        w0, w1 = across[i], across[i + np.uint64(1)]
        w2, w3 = across[i + np.uint64(2)], across[i + np.uint64(3)]
        two = fma(a, w0, b * w1) if k == 1 or k == 2 else fma(b, w1, a * w0)
        total = fma(d, w3, fma(c, w2, two)) * weight[at + k]
        if k % 2 == 0:
            upper += total
        else:
            lower += total
    return as_byte(upper + lower)


@inline
def as_byte(value):
    single = np.float32
    return np.int32(min(max(np.rint(value), single(0)), single(255)))


@cache
def ipp_cubic_kernel() -> Any:
    """The kernel; layouts, sizes and orders are among the arguments."""
    digest = DIGEST

    def resize_cubic(image, out, starts, x, y, plan, memory, begin, end):
        """Bands begin .. end of all images, counted through.

        x: for every tap its place in a row, its weight, and of every column its order; y: rows,
        weights, and of every row whether it is inside; starts: where each image and its result
        begin; memory: four rows of sums, which ones they are, and a row of the result.
        """
        _ = digest
        lines, held, found = memory
        row_of, weight, inside = y
        bands = (plan.out_height + plan.rows - 1) // plan.rows
        size = plan.channels * plan.out_width
        for unit in range(begin, end):
            item, first = unit // bands, unit % bands * plan.rows
            held[:] = -1
            for r in range(first, min(first + plan.rows, plan.out_height)):
                for k in range(4):
                    row = row_of[4 * r + k]
                    if held[row % 4] != row:
                        held[row % 4] = row
                        base = starts[0, item] + row * plan.line
                        sum_row(image, base, plan, x, lines, row % 4 * size)
                upper = (row_of[4 * r] % 4 * size, row_of[4 * r + 1] % 4 * size)
                lower = (row_of[4 * r + 2] % 4 * size, row_of[4 * r + 3] % 4 * size)
                sum_rows(lines, upper + lower, weight, 4 * r, size, found)
                if plan.alone:
                    for n in range(plan.out_width):
                        if x[2][n] == ALONE or not inside[r]:
                            for k in range(plan.channels):
                                base = starts[0, item] + k * plan.plane
                                value = sum_alone(image, base, plan, x, n, row_of, weight, 4 * r)
                                found[np.uint64(k * plan.out_width + n)] = value
                to = starts[1, item] + r * plan.out_line
                for k in range(plan.channels):
                    for n in range(plan.out_width):
                        at = np.uint64(to + k * plan.out_plane + n * plan.out_pixel)
                        out[at] = found[np.uint64(k * plan.out_width + n)]

    return kernel(resize_cubic)
