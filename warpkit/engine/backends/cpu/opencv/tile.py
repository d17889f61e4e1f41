"""The sizes of a call in OpenCV's arithmetics, and looking ahead from one tile to the next."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpkit.engine.backends.cpu.opencv.positions import ROW, position5
from warpkit.engine.backends.cpu.runtime.compiler import inline
from warpkit.engine.backends.cpu.runtime.rules import CACHE_LINE
from warpkit.engine.backends.cpu.runtime.simd import max_signed, min_signed, prefetch
from warpkit.engine.sampling.layout import POINTS

TILE_ROWS = 16
"""A tile is ROW x TILE_ROWS pixels of the output."""


class OpenCVPlan(NamedTuple):
    """The sizes of one call, and its strides in numbers."""

    channels: int
    planes: int
    """Planes of one item that `packed_uint8` warps one by one: 1 where channels are packed."""
    height: int
    width: int
    line: int
    pixel: int
    plane: int
    out_height: int
    out_width: int
    out_item: int
    out_line: int
    out_pixel: int
    out_plane: int
    mapping_size: int
    """Numbers in one item's matrix or points."""
    fill: int
    """Numbers in one item's border value; 0 where it is one for all."""
    border: int
    taps: int


@inline
def all_finite(kind, mapping, mapping_start):
    """Whether an item's matrix is."""
    good = True
    if kind != POINTS:
        for k in range(3 * kind):
            good &= abs(mapping[mapping_start + k]) < np.inf
    return good


@inline
def ask_ahead(kind, image, base, plan, mapping, mapping_start, x0, y0, rows):
    """Prefetch about what the tile at (x0, y0) reads: the box of where its corners look."""
    if x0 >= plan.out_width:
        return
    x1, y1 = min_signed(x0 + ROW, plan.out_width) - 1, y0 + rows - 1
    low_x = low_y = np.float32(2**30)
    high_x = high_y = np.float32(-(2**30))
    for n in range(4):
        x = x0 if n % 2 == 0 else x1
        y = y0 if n < 2 else y1
        u, v = position5(kind, mapping, mapping_start, plan.out_width, x, y)
        low_x, high_x = min_signed(u, low_x), max_signed(u, high_x)
        low_y, high_y = min_signed(v, low_y), max_signed(v, high_y)
    if high_x - low_x > 8 * ROW or high_y - low_y > 8 * ROW:  # would read more than it is worth
        return
    west = np.int64(max_signed(low_x, np.float32(0)))
    east = np.int64(min_signed(high_x + 1, np.float32(plan.width - 1)))
    top = np.int64(max_signed(low_y, np.float32(0)))
    bottom = np.int64(min_signed(high_y + 1, np.float32(plan.height - 1)))
    step = max_signed(CACHE_LINE // image.itemsize // plan.pixel, 1)
    for j in range(top, bottom + 1):
        for i in range(west, east + step, step):
            prefetch(image, base + j * plan.line + min_signed(i, east) * plan.pixel)


@inline
def make_room(out, at, line, rows, numbers):
    """Prefetch the part of the output that a tile writes, or the stores wait for it."""
    step = CACHE_LINE // out.itemsize
    for r in range(rows):
        for i in range(0, numbers + step, step):
            prefetch(out, at + r * line + i)
