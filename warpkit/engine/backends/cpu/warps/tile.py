"""The first half of every kernel: where a tile looks, and the window that holds what it reads."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from warpkit.engine.backends.cpu.runtime.compiler import inline
from warpkit.engine.backends.cpu.runtime.scratch import PIXELS, TILE, room
from warpkit.engine.backends.cpu.runtime.simd import CHANNELS_PER_VECTOR
from warpkit.engine.backends.cpu.warps.positions import map_corner, tap_coverage
from warpkit.engine.backends.cpu.warps.window import box_offsets, single_offsets


class WarpPlan(NamedTuple):
    """The sizes of one call. Images are flat; `fill` is read by its four strides."""

    items: int
    channels: int
    height: int
    width: int
    out_height: int
    out_width: int
    border: int
    mapping_size: int
    """Numbers in one item's matrix or points."""
    fill_item: int
    fill_channel: int
    fill_row: int
    fill_column: int
    dense: bool
    """`fill` has a value for every output pixel."""
    needs_grad_image: bool
    needs_grad_mapping: bool
    needs_grad_fill: bool


@inline
def plan_of(sizes):
    """A plan from its numbers as one array: 0.6 us to hand to a kernel, which a tuple takes 1."""
    n = sizes
    flags = n[12] != 0, n[13] != 0, n[14] != 0, n[15] != 0
    return WarpPlan(
        n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], *flags
    )


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
def view_of(taps, plan, bounds, shape, column, row, tx, wx, wy, missing_weight, window_offset):
    """From the bounds of a tile's whole pixels, see `map_tile`, to what it reads.

    Fills `window_offset`, and `missing_weight` unless all taps are inside.
    """
    before = taps // 2 - 1 if taps > 1 else 0
    west, east, north, south, nowhere = bounds
    whole = (west >= before) & (north >= before) & (nowhere == 0)
    whole &= (east + taps - before <= plan.width) & (south + taps - before <= plan.height)
    if not whole:
        west, east, north, south = tap_coverage(
            taps, plan.border, (plan.height, plan.width), shape, column, row, tx, wx, wy,
            missing_weight,
        )  # fmt: skip
    empty = east < west
    columns, rows = np.int64(east) - west + taps, np.int64(south) - north + taps
    # each alone too: from -2^31 to 2^31 both ways the product is beyond 64 bits
    boxed = (columns <= room(taps)) & (rows <= room(taps)) & (columns * rows <= room(taps))
    if empty:
        boxed, columns, rows = True, np.int64(0), np.int64(0)
    elif boxed:
        box_offsets(shape, column, row, missing_weight, whole, west, north, np.int32(columns),
                    window_offset)  # fmt: skip
    else:
        single_offsets(taps, shape, window_offset)
    stride = CHANNELS_PER_VECTOR * (columns if boxed else taps)
    box = (np.int64(west) - before, np.int64(north) - before, columns, rows)
    entries = columns * rows if boxed else np.int64(PIXELS * taps * taps)
    return View(whole, empty, boxed, stride, entries, box)


@inline
def next_box(kind, plan, maps, mapping_start, corner, view):
    """About what the tile to the right reads: this tile's box, moved as the corner moves."""
    left, top, columns, rows = view.box
    x, y = corner
    x_here, y_here = map_corner(kind, maps, mapping_start, plan.out_width, x, y)
    x_ahead, y_ahead = map_corner(kind, maps, mapping_start, plan.out_width, x + TILE, y)
    dx, dy = x_ahead - x_here, y_ahead - y_here
    far = plan.width + plan.height
    if abs(dx) < far and abs(dy) < far:  # false for NaN
        return left + np.int64(dx), top + np.int64(dy), columns, rows
    return left, top, np.int64(0), np.int64(0)
