"""The first half of every kernel: where a tile looks, and the window that holds what it reads."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from warpkit.engine.backends.cpu.runtime.compiler import inline
from warpkit.engine.backends.cpu.runtime.scratch import PIXELS, SIDE, room
from warpkit.engine.backends.cpu.runtime.simd import LANES, least
from warpkit.engine.backends.cpu.warps.positions import POINTS, position, reach
from warpkit.engine.backends.cpu.warps.window import aim_box, aim_single


class Plan(NamedTuple):
    """The sizes of one call. Images are flat; `outside` is read by its four strides."""

    items: int
    channels: int
    height: int
    width: int
    out_height: int
    out_width: int
    border: int
    where: int
    """Numbers in one item's matrix or points."""
    outside_item: int
    outside_channel: int
    outside_row: int
    outside_column: int
    dense: bool
    """`outside` has a value for every output pixel."""
    credited: bool
    """`outside` wants a gradient."""


@inline
def plan_of(sizes):
    """A plan from its numbers as one array: 0.6 us to hand to a kernel, which a tuple takes 1."""
    n = sizes
    flags = n[12] != 0, n[13] != 0
    return Plan(n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], *flags)


class View(NamedTuple):
    """What a tile reads."""

    whole: bool
    """Every tap of every pixel lies in the image."""
    empty: bool
    """No tap does."""
    boxed: bool
    """The window is one box, not one a pixel."""
    stride: int
    """From one row of taps to the next in the window."""
    entries: Any
    """Pixels of the window."""
    box: Any
    """(left, top, columns, rows) of all taps."""


@inline
def frame(taps, plan, bounds, shape, column, row, tx, wx, wy, missing, offset):
    """From the bounds of a tile's whole pixels (see `place`) to what it reads; fills `offset`."""
    before = taps // 2 - 1 if taps > 1 else 0
    west, east, north, south, nowhere = bounds
    whole = (west >= before) & (north >= before) & (nowhere == 0)
    whole &= (east + taps - before <= plan.width) & (south + taps - before <= plan.height)
    if not whole:
        west, east, north, south = reach(
            taps, plan.border, plan.width, plan.height, shape, column, row, tx, wx, wy, missing
        )
    empty = east < west
    wide, tall = np.int64(east) - west + taps, np.int64(south) - north + taps
    boxed = wide * tall <= room(taps)
    if empty:
        boxed, wide, tall = True, np.int64(0), np.int64(0)
    elif boxed:
        aim_box(shape, column, row, missing, whole, west, north, np.int32(wide), offset)
    else:
        aim_single(taps, shape, offset)
    stride = LANES * (wide if boxed else taps)
    box = (np.int64(west) - before, np.int64(north) - before, wide, tall)
    entries = wide * tall if boxed else np.int64(PIXELS * taps * taps)
    return View(whole, empty, boxed, stride, entries, box)


@inline
def next_box(kind, plan, where, start, corner, view):
    """About what the tile to the right reads: this tile's box, moved as the corner moves."""
    left, top, columns, rows = view.box
    x, y = corner
    here, ahead = start, start
    if kind == POINTS:
        last = plan.out_width - 1
        here = start + 2 * (y * plan.out_width + x)
        ahead = start + 2 * (y * plan.out_width + least(x + SIDE, last))
    x_here, y_here = position(kind, where, here, x, y)
    x_ahead, y_ahead = position(kind, where, ahead, x + SIDE, y)
    dx, dy = x_ahead - x_here, y_ahead - y_here
    far = plan.width + plan.height
    if abs(dx) < far and abs(dy) < far:  # false for NaN
        return left + np.int64(dx), top + np.int64(dy), columns, rows
    return left, top, np.int64(0), np.int64(0)
