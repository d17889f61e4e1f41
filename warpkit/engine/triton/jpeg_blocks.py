"""Kernels of a JPEG file's blocks: colours, means, cosines, coefficients, and the way back.

A program computes blocks beside each other, forward or for the gradient.
"""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false, reportOperatorIssue=false

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from warpkit.engine.definitions import jpeg
from warpkit.engine.triton.kernels import kernel


def _words(rows: list[tuple[int, ...]], bits: int) -> Any:
    """Numbers of rows in a word of 64 bits each, all in one integer.

    A kernel has no arrays of constants, and copies none; Triton 3.3 cannot index tuples of them.
    """
    words = [sum((n % 2**bits) << (bits * k) for k, n in enumerate(row)) for row in rows]
    return tl.constexpr(sum(word << (64 * k) for k, word in enumerate(words)))


COSINES = _words([row[:4] for row in jpeg.COSINES], 16)
BRIGHTNESS = _words([jpeg.BRIGHTNESS[8 * k : 8 * k + 8] for k in range(8)], 8)
COLOUR = _words([jpeg.COLOUR[8 * k : 8 * k + 8] for k in range(8)], 8)

MASK, SIGN = tl.constexpr(2**64 - 1), tl.constexpr(2**63)


@triton.jit
def word_of(words: tl.constexpr, row):
    """The word of a row, as int64."""
    word = tl.zeros_like(row).to(tl.int64)
    for k in tl.static_range(8):
        # in one expression: a name would stand for a tensor, which cannot hold 2^63
        word = tl.where(row == k, (((words >> (64 * k)) & MASK) ^ SIGN) - SIGN, word)
    return word


@triton.jit
def cosines_at(frequency, place):
    """`COSINES` of the definition: rows are symmetric, or antisymmetric if the frequency is odd."""
    near = tl.minimum(place, 7 - place)
    number = ((word_of(COSINES, frequency) >> (16 * near)) & 0xFFFF).to(tl.int32)
    number = (number ^ 0x8000) - 0x8000
    return tl.where((place > 3) & (frequency % 2 == 1), -number, number)


@triton.jit
def steps_at(words: tl.constexpr, quality, frequency, along):
    """The steps of a table at a quality: as `steps_of`."""
    quality = tl.minimum(tl.maximum(quality, 1), 100)
    percent = tl.where(quality < 50, 5000 // quality, 200 - 2 * quality)
    at_50 = ((word_of(words, frequency) >> (8 * along)) & 0xFF).to(tl.int32)
    return tl.minimum(tl.maximum((at_50 * percent + 50) // 100, 1), 255)


@triton.jit
def level_at(images, place):
    """The level of a byte, or of a float in [0, 1]: 1.5 * 2^52 has no fraction, so it rounds."""
    given = tl.load(images + place)
    if given.dtype == tl.uint8:
        return given.to(tl.int32)
    levels = given.to(tl.float64) * 255
    levels = tl.where(levels > 0, tl.where(levels < 255, levels, 255.0), 0.0)
    rounded = levels + 6755399441055744.0
    return (rounded - 6755399441055744.0).to(tl.int32)


@triton.jit
def plane_at(images, y, x, height, width, PLANE: tl.constexpr, CHANNELS: tl.constexpr):
    """Brightness (plane 0) or a colour (1, 2) of a pixel, or of the nearest one in the image."""
    y, x, plane = tl.minimum(y, height - 1), tl.minimum(x, width - 1), height * width
    place = y * width + x
    r = level_at(images, place)
    if CHANNELS == 1:
        return r
    g, b = level_at(images, place + plane), level_at(images, place + 2 * plane)
    if PLANE == 0:
        return (19595 * r + 38470 * g + 7471 * b + 32768) >> 16
    if PLANE == 1:
        return (32768 * b - 11059 * r - 21709 * g + 8421375) >> 16
    return (32768 * r - 27439 * g - 5329 * b + 8421375) >> 16


@triton.jit
def sampled_at(
    images, y, x, height, width,
    PLANE: tl.constexpr, CHANNELS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """A pixel of brightness, or a mean of colours. ROWS, COLUMNS: 1 for brightness."""
    if COLUMNS == 1:
        return plane_at(images, y, x, height, width, PLANE, CHANNELS)
    y = tl.minimum(y, (height + ROWS - 1) // ROWS - 1)  # means are repeated below, pixels beside
    total = x % 2 + (ROWS - 1)
    for k in tl.static_range(ROWS):
        for n in tl.static_range(2):
            total += plane_at(images, y * ROWS + k, 2 * x + n, height, width, PLANE, CHANNELS)
    return total >> ROWS


@triton.jit
def along_x(cosines, blocks):
    """The sums of `cosines` (8, 8) over the last axis of blocks (B, 8, 8)."""
    return tl.sum(cosines[None, None, :, :] * blocks[:, :, None, :], 3)


@triton.jit
def along_y(cosines, blocks):
    """The same over the axis before."""
    return tl.sum(cosines[None, :, :, None] * blocks[:, None, :, :], 2)


@triton.jit
def waves_of(levels, cosines):
    """The 8-fold coefficients of blocks (B, 8, 8) of levels."""
    rows = (along_x(cosines, levels - 128) + 1024) >> 11
    return (along_y(cosines, rows) + 16384) >> 15


@triton.jit
def levels_of(waves, steps, inverse):
    """The levels of rounded coefficients, before the clip; inverse: `cosines`, transposed."""
    kept = (tl.abs(waves) + 4 * steps) // (8 * steps) * steps
    kept = tl.where(waves < 0, -kept, kept)
    columns = (along_y(inverse, kept) + 1024) >> 11
    return ((along_x(inverse, columns) + 131072) >> 18) + 128


@kernel
def blocks_kernel(
    images, qualities, planes, grads, height, width, block_rows, block_columns, groups,
    PLANES: tl.constexpr, CHANNELS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    BACKWARD: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """Planes of bytes (N, P, h, w) of whole blocks; or the gradients of such planes, in place.

    PLANES: 1 for brightness, 2 for colours. The gradients are those of clipped levels, and become
    those of the levels before the file: of repeated rows and columns, the rows are added to the
    last one, and the columns to the first repeated one.
    """
    program = tl.program_id(0)
    group, above = program % groups, program // groups
    row, item = above % block_rows, (above // block_rows).to(tl.int64)
    images += item * (CHANNELS * height * width)
    quality = tl.load(qualities + item)
    eight = tl.arange(0, 8)
    cosines = cosines_at(eight[:, None], eight[None, :])
    inverse = cosines_at(eight[None, :], eight[:, None])
    block = group * BLOCKS + tl.arange(0, BLOCKS)
    y = row * 8 + eight[None, :, None] + tl.zeros_like(block)[:, None, None]
    x = block[:, None, None] * 8 + eight[None, None, :]
    live, stride = block[:, None, None] < block_columns, block_columns * 8
    size = block_rows * 8 * stride
    for plane in tl.static_range(PLANES):
        if PLANES == 1:
            levels = plane_at(images, y, x, height, width, 0, CHANNELS)
            steps = steps_at(BRIGHTNESS, quality, eight[:, None], eight[None, :])
        else:
            levels = sampled_at(images, y, x, height, width, plane + 1, CHANNELS, ROWS, COLUMNS)
            steps = steps_at(COLOUR, quality, eight[:, None], eight[None, :])
        waves = waves_of(levels, cosines)
        made = levels_of(waves, steps[None, :, :], inverse)
        place = (item * PLANES + plane) * size + y * stride + x
        if BACKWARD:
            mask = live & (made >= 0) & (made <= 255)
            given = tl.load(grads + place, mask=mask, other=0.0)
            there, back = cosines.to(tl.float32) / 8192, inverse.to(tl.float32) / 8192
            quotient = tl.abs(waves).to(tl.float32) / (8 * steps[None, :, :]).to(tl.float32)
            slope = tl.minimum(0.1 + 1.8 * quotient, 1.0) / 64
            given = along_y(there, along_x(there, given)) * slope
            given = along_x(back, along_y(back, given))
            end_y, end_x = height, width
            if PLANES == 2:
                end_y, end_x = (height + ROWS - 1) // ROWS, (width + COLUMNS - 1) // COLUMNS
            last = tl.sum(tl.where(y >= end_y - 1, given, 0.0), 1)
            given = tl.where(y == end_y - 1, last[:, None, :], given)
            beyond = tl.sum(tl.where(x >= end_x, given, 0.0), 2)
            given = tl.where(x == end_x, beyond[:, :, None], given)
            tl.store(grads + place, given, mask=live)
        else:
            clipped = tl.minimum(tl.maximum(made, 0), 255)
            tl.store(planes + place, clipped.to(tl.uint8), mask=live)
