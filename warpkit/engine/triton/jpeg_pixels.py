"""Kernels of a JPEG file's pixels: enlarged colours, RGB, and their gradients.

A value gathers the gradients of all that read it, so nothing is added atomically.
"""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false

from __future__ import annotations

import triton
import triton.language as tl

from warpkit.engine.triton.kernels import kernel


@triton.jit
def colour_at(
    colours, y, x, height, width, stride, live, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """A colour of a pixel, from a plane of ROWS and COLUMNS times fewer."""
    row, column = y // ROWS, x // COLUMNS
    if COLUMNS == 1:
        return tl.load(colours + row * stride + column, mask=live, other=128).to(tl.int32)
    rows, columns = (height + ROWS - 1) // ROWS, (width + 1) // 2
    beside = tl.minimum(tl.maximum(tl.where(x % 2 == 1, column + 1, column - 1), 0), columns - 1)
    far = row
    if ROWS == 2:
        far = tl.minimum(tl.maximum(tl.where(y % 2 == 1, row + 1, row - 1), 0), rows - 1)
    total = tl.zeros_like(x)
    near = total
    for k in tl.static_range(2):
        weight = 3 - 2 * k
        at_x = column if k == 0 else beside
        number = tl.load(colours + row * stride + at_x, mask=live, other=128).to(tl.int32)
        near = number if k == 0 else near
        if ROWS == 2:
            other = tl.load(colours + far * stride + at_x, mask=live, other=128).to(tl.int32)
            number = 3 * number + other
        total += weight * number
    if ROWS == 2:
        total = (total + tl.where(x % 2 == 1, 7, 8)) >> 4
    else:
        total = (total + tl.where(x % 2 == 1, 2, 1)) >> 2
    return tl.where(columns <= 2, near, total)


@kernel
def shown_kernel(
    brightness, colours, out, grad, grad_brightness, grad_colours, height, width, tiles,
    stride, rows, small, small_rows,
    CHANNELS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    BACKWARD: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    """The result, (N, C, H, W), from planes of bytes; or from its gradient those of the planes.

    Planes have `rows` of `stride` numbers, colours `small_rows` of `small`; the gradients to
    colours are those of enlarged ones, (N, 2, H, W).
    """
    program = tl.program_id(0)
    item, plane = (program // tiles).to(tl.int64), height * width
    pixel = program % tiles * PIXELS + tl.arange(0, PIXELS)
    live, y, x = pixel < plane, pixel // width, pixel % width
    first = item * (CHANNELS * plane) + pixel
    at = item * (rows * stride) + y * stride + x
    level = tl.load(brightness + at, mask=live, other=0).to(tl.int32)
    if CHANNELS == 1:
        if BACKWARD:
            tl.store(grad_brightness + at, tl.load(grad + first, mask=live), mask=live)
        else:
            tl.store(out + first, as_result(level, out), mask=live)
    else:
        base = colours + item * (2 * small_rows * small)
        u = colour_at(base, y, x, height, width, small, live, ROWS, COLUMNS) - 128
        base += small_rows * small
        v = colour_at(base, y, x, height, width, small, live, ROWS, COLUMNS) - 128
        r = level + ((91881 * v + 32768) >> 16)
        g = level + ((32768 - 22554 * u - 46802 * v) >> 16)
        b = level + ((116130 * u + 32768) >> 16)
        if BACKWARD:
            r = tl.load(grad + first, mask=live & (r >= 0) & (r <= 255), other=0.0)
            g = tl.load(grad + first + plane, mask=live & (g >= 0) & (g <= 255), other=0.0)
            b = tl.load(grad + first + 2 * plane, mask=live & (b >= 0) & (b <= 255), other=0.0)
            tl.store(grad_brightness + at, r + g + b, mask=live)
            to = grad_colours + item * (2 * plane) + pixel
            tl.store(to, (116130 / 65536) * b - (22554 / 65536) * g, mask=live)
            tl.store(to + plane, (91881 / 65536) * r - (46802 / 65536) * g, mask=live)
        else:
            tl.store(out + first, as_result(r, out), mask=live)
            tl.store(out + first + plane, as_result(g, out), mask=live)
            tl.store(out + first + 2 * plane, as_result(b, out), mask=live)


@triton.jit
def as_result(level, out):
    """Clipped levels as bytes, or as floats in [0, 1]."""
    level = tl.minimum(tl.maximum(level, 0), 255)
    if out.dtype.element_ty == tl.uint8:
        return level.to(tl.uint8)
    return (level.to(tl.float64) / 255).to(out.dtype.element_ty)


@kernel
def gathered_kernel(
    grads, out, height, width, tiles, small, small_rows,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    """The gradients to planes of colours, from those of enlarged ones."""
    program = tl.program_id(0)
    item = (program // tiles).to(tl.int64)  # of images and colours
    pixel = program % tiles * PIXELS + tl.arange(0, PIXELS)
    y, x = pixel // small, pixel % small
    rows, columns = (height + ROWS - 1) // ROWS, (width + COLUMNS - 1) // COLUMNS
    live = (y < rows) & (x < columns)
    grads += item * (height * width)
    total = tl.zeros([PIXELS], tl.float32)
    if COLUMNS == 1:
        total = tl.load(grads + y * width + x, mask=live, other=0.0)
    else:
        for k in tl.static_range(4 if ROWS == 2 else 1):
            at_y, of_y = y, total * 0 + 1
            if ROWS == 2:
                at_y, of_y = reader(y, rows, columns, k)
            for n in tl.static_range(4):
                at_x, of_x = reader(x, columns, columns, n)
                mask = live & (at_y < height) & (at_x < width)
                grad = tl.load(grads + at_y * width + at_x, mask=mask, other=0.0)
                total += of_y * of_x * grad
    tl.store(out + item * (small_rows * small) + pixel, total, mask=pixel < small_rows * small)


@triton.jit
def reader(place, end, columns, which: tl.constexpr):
    """One of the four places that read a place of half as many, and its weight.

    Planes of `columns` 2 or less are repeated.
    """
    narrow = place * 0 + columns <= 2
    if which == 0 or which == 1:
        return 2 * place + which, tl.where(narrow, 1.0, 0.75)
    if which == 2:
        at = tl.where(place == 0, 0, 2 * place - 1)
    else:
        at = tl.where(place == end - 1, 2 * place + 1, 2 * place + 2)
    return at, tl.where(narrow, 0.0, 0.25)


@kernel
def colours_kernel(
    brightness, colours, out, height, width, tiles, stride, rows, small, small_rows,
    CHANNELS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    """The gradient to the images, from those to brightness and to means of colours."""
    program = tl.program_id(0)
    item, plane = (program // tiles).to(tl.int64), height * width
    pixel = program % tiles * PIXELS + tl.arange(0, PIXELS)
    live, y, x = pixel < plane, pixel // width, pixel % width
    edge = live & (x == width - 1)
    at = brightness + item * (rows * stride) + y * stride + x
    g = tl.load(at, mask=live, other=0.0)
    g += tl.load(at + 1, mask=edge & (x + 1 < stride), other=0.0)
    out += item * (CHANNELS * plane) + pixel
    if CHANNELS == 1:
        tl.store(out, g, mask=live)
    else:
        share = tl.zeros([PIXELS], tl.float32) + 1.0 / COLUMNS
        if ROWS == 2:  # the last row of an odd number was counted twice
            share = tl.where((y % 2 == 0) & (y == height - 1), share, share * 0.5)
        column = x // COLUMNS
        place = colours + item * (2 * small_rows * small) + y // ROWS * small + column
        beyond = edge & (column + 1 < small)
        again = tl.where(edge & (x % COLUMNS == 0), COLUMNS, 1).to(tl.float32)
        u = again * tl.load(place, mask=live, other=0.0)
        u = share * (u + COLUMNS * tl.load(place + 1, mask=beyond, other=0.0))
        place += small_rows * small
        v = again * tl.load(place, mask=live, other=0.0)
        v = share * (v + COLUMNS * tl.load(place + 1, mask=beyond, other=0.0))
        r = (19595 / 65536) * g - (11059 / 65536) * u + (32768 / 65536) * v
        b = (7471 / 65536) * g + (32768 / 65536) * u - (5329 / 65536) * v
        g = (38470 / 65536) * g - (21709 / 65536) * u - (27439 / 65536) * v
        tl.store(out, r, mask=live)
        tl.store(out + plane, g, mask=live)
        tl.store(out + 2 * plane, b, mask=live)
