"""One kernel for every resize: sums of rows, sums of columns, and how a sum becomes a pixel.

A plane is H rows of `line` numbers: one channel's pixels, or all channels' side by side. Along y a
row of the result is a sum of rows, number by number, which is vectorised as it stands. Along x the
numbers that are summed lie at irregular distances; so VECTOR rows at a time are turned on their
side, after which a pixel of VECTOR rows is one vector, and a sum of columns is one of vectors.

Sums run over the taps in their order, products and sums each rounded, as in the reference: the
bits are the same, and do not depend on how the work is split. Work is bands of rows of the result.

    vertical first   a band's rows are summed into `lines`, turned, summed along x, turned back
    horizontal first the rows that a band reads are turned, summed along x, turned back into
                     `lines`, and summed along y
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from warpkit.engine.backends.cpu.resize.vectors import VECTOR, turn_square, weigh
from warpkit.engine.backends.cpu.runtime.compiler import DIGEST, inline, kernel

FLOAT, ROUND, CELLS, SHIFT, PILLOW, LINEAR, CUBIC = range(7)
"""How a sum becomes a pixel: as it is; rounded half to even; the same of a whole number, which is
scaled in float32; whole numbers shifted, rounded half up; the same between the passes too; and
OpenCV's 8-bit bilinear and bicubic."""


class ResizePlan(NamedTuple):
    """Sizes of a call."""

    height: int
    width: int
    out_height: int
    out_width: int
    inner: int
    """Numbers that lie side by side for a pixel: the channels of channels-last images, or 1."""
    rows: int
    """Of the result, in a band."""
    room: int
    """Rows that `lines` has room for."""


class Axis(NamedTuple):
    """The taps along an axis, flat: tap k of output n is number n * count + k."""

    pixel: np.ndarray
    weight: np.ndarray
    begin: np.ndarray
    """The first tap that is there, and the end of them, for every output."""
    end: np.ndarray


@inline
def combine(source, base, stride, axis, count, n, out, at, length):
    """out[at : at + length] = the sum over the taps of output n, each of `length` numbers.

    Tap k reads source[base + pixel * stride : ...]; an axis has `count` taps for each output.
    """
    begin, end = n * count + axis.begin[n], n * count + axis.end[n]
    full = length // VECTOR * VECTOR
    for e in range(0, full, VECTOR):
        weigh(source, base + e, stride, axis.pixel, axis.weight, begin, end, out, at + e)
    if full == length:
        return
    for e in range(full, length):
        out[np.uint64(at + e)] = 0
    for k in range(begin, end):
        row, w = np.uint64(base + axis.pixel[k] * stride), axis.weight[k]
        if k == begin:
            for e in range(full, length):
                out[np.uint64(at + e)] = source[row + np.uint64(e)] * w
        else:
            for e in range(full, length):
                i = np.uint64(at + e)
                out[i] = out[i] + source[row + np.uint64(e)] * w


@inline
def turn(source, base, line, read, first, rows, out):
    """The rows read[first], ... of a line each on their side, VECTOR; the last repeats."""
    full = line // VECTOR * VECTOR if rows == VECTOR else 0
    for e in range(0, full, VECTOR):
        turn_square(source, base + e, line, read, first, out, e * VECTOR)
    for r in range(VECTOR):
        row = np.uint64(base + read[first + (r if r < rows else rows - 1)] * line)
        for e in range(full, line):
            out[np.uint64(e * VECTOR + r)] = source[row + np.uint64(e)]


@inline
def across(turned, axis, count, width, inner, out):
    """Sums along x of turned rows."""
    for x in range(width):
        begin, end = x * count + axis.begin[x], x * count + axis.end[x]
        for c in range(inner):
            weigh(turned, c * VECTOR, inner * VECTOR, axis.pixel, axis.weight, begin, end,
                  out, (x * inner + c) * VECTOR)  # fmt: skip


@inline
def rounded(value, low, high):
    """Half to even, cut to low .. high."""
    return min(max(np.rint(value), low), high)


@inline
def shifted(value, bits):
    """value / 2^bits, half up, cut to a byte; the sum before it wraps as one of 32 bits."""
    return min(max(np.int32(value + (1 << (bits - 1))) >> bits, 0), 255)


@inline
def two_rows(source, line, shift, axis, n, out):
    """OpenCV's 8-bit bilinear along y: of each product 4 and 16 bits are cut off."""
    a = np.uint64((axis.pixel[2 * n] - shift) * line)
    b = np.uint64((axis.pixel[2 * n + 1] - shift) * line)
    v, w = axis.weight[2 * n], axis.weight[2 * n + 1]
    for e in range(line):
        i = np.uint64(e)
        upper = np.int32((source[a + i] >> 4) * v) >> 16
        lower = np.int32((source[b + i] >> 4) * w) >> 16
        out[i] = upper + lower


@inline
def four_rows(source, line, shift, axis, n, out, to, vectors):
    """OpenCV's 8-bit bicubic along y: the first `vectors` numbers of a row in float32."""
    s = np.float32(2.0**-22)
    rows = (axis.pixel[4 * n] - shift, axis.pixel[4 * n + 1] - shift,
            axis.pixel[4 * n + 2] - shift, axis.pixel[4 * n + 3] - shift)  # fmt: skip
    a, b = np.uint64(rows[0] * line), np.uint64(rows[1] * line)
    c, d = np.uint64(rows[2] * line), np.uint64(rows[3] * line)
    w = axis.weight
    wa, wb = np.float32(w[4 * n]) * s, np.float32(w[4 * n + 1]) * s
    wc, wd = np.float32(w[4 * n + 2]) * s, np.float32(w[4 * n + 3]) * s
    at = np.uint64(to)
    for e in range(vectors):
        i = np.uint64(e)
        value = np.float32(source[d + i]) * wd
        value = np.float32(source[c + i]) * wc + value
        value = np.float32(source[b + i]) * wb + value
        value = np.float32(source[a + i]) * wa + value
        out[at + i] = min(max(np.rint(value), np.float32(0)), np.float32(255))


@cache
def resize_kernel(mode: int, down_first: bool) -> Any:
    """The kernel for a way to make pixels and an order of passes; types come from the arrays."""
    digest = DIGEST

    def resize(image, out, axes, read, plan, limits, memory, begin, end):
        """Bands begin .. end of all planes, counted through; memory: lines, turned, summed.

        read: the rows that are turned, of the image (of which `y` names the places in here), or of
        `lines`, all of them.
        """
        _ = digest
        x, y = axes
        lines, turned, summed = memory
        scale, low, high, bits = limits
        line, out_line = plan.width * plan.inner, plan.out_width * plan.inner
        bands = (plan.out_height + plan.rows - 1) // plan.rows
        count, count_x = y.pixel.size // plan.out_height, x.pixel.size // plan.out_width
        for unit in range(begin, end):
            plane, first = unit // bands, unit % bands * plan.rows
            rows = min(plan.rows, plan.out_height - first)
            source = plane * plan.height * line
            to = (plane * plan.out_height + first) * out_line
            if down_first:
                for r in range(rows):
                    combine(image, source, line, y, count, first + r, lines, r * line, line)
                if mode == PILLOW:
                    for e in range(rows * line):
                        lines[np.uint64(e)] = shifted(lines[np.uint64(e)], bits)
                turn(lines, 0, line, read, 0, rows, turned)
                across(turned, x, count_x, plan.out_width, plan.inner, summed)
                for r in range(rows):
                    for e in range(out_line):
                        value = summed[np.uint64(e * VECTOR + r)]
                        if mode == ROUND:
                            value = rounded(value, low, high)
                        if mode == PILLOW:
                            value = shifted(value, bits)
                        out[np.uint64(to + r * out_line + e)] = value
            else:
                top, bottom = read.size, 0
                for n in range(first * count, (first + rows) * count):
                    top, bottom = min(top, y.pixel[n]), max(bottom, y.pixel[n] + 1)
                for row in range(top, bottom, VECTOR):
                    together = min(VECTOR, bottom - row)
                    turn(image, source, line, read, row, together, turned)
                    across(turned, x, count_x, plan.out_width, plan.inner, summed)
                    for r in range(together):
                        at = (row - top + r) * out_line
                        for e in range(out_line):
                            value = summed[np.uint64(e * VECTOR + r)]
                            if mode == PILLOW:
                                value = shifted(value, bits)
                            lines[np.uint64(at + e)] = value
                for r in range(rows):
                    at, vectors = to + r * out_line, 0
                    if mode == CUBIC:
                        vectors = out_line // 8 * 8
                        four_rows(lines, out_line, top, y, first + r, out, at, vectors)
                    if mode == LINEAR:
                        two_rows(lines, out_line, top, y, first + r, summed)
                    else:
                        combine(lines, -top * out_line, out_line, y, count, first + r, summed, 0,
                                out_line)  # fmt: skip
                    for e in range(vectors, out_line):
                        value = summed[np.uint64(e)]
                        if mode == ROUND:
                            value = rounded(value, low, high)
                        elif mode == CELLS:
                            value = rounded(np.float32(value) * scale, low, high)
                        elif mode != FLOAT:
                            value = shifted(value, bits)
                        out[np.uint64(at + e)] = value

    return kernel(resize)
