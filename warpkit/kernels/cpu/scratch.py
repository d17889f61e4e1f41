"""The memory kernels work in: made once a thread, since making it costs more than a small call."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import NamedTuple, TypeVar

import numpy as np

from warpkit.kernels.cpu.lanes import LANES

SIDE = 32
"""A tile is SIDE x SIDE output pixels. Turned by 33 degrees a square tile spans 1.6 times its
pixels in the source, one of 16 x 64 spans 2.4 times."""

PIXELS = SIDE * SIDE


class Scratch(NamedTuple):
    """One entry a pixel of a tile, SIDE * row + column; weights have a plane of PIXELS a tap."""

    column: np.ndarray
    """The whole pixel at or before the point; the nearest one for nearest."""
    row: np.ndarray
    tx: np.ndarray
    """The fraction; NaN where the point is sampled nowhere."""
    ty: np.ndarray
    wx: np.ndarray
    """Weights of the taps along each axis, and their derivatives."""
    wy: np.ndarray
    dx: np.ndarray
    dy: np.ndarray
    missing: np.ndarray
    """The sum of the weights of missing taps, or WHOLE, or NOTHING."""
    offset: np.ndarray
    """The first tap in the window."""


class Buffers(NamedTuple):
    """What a tile's pixels are summed in. Lanes: up to four channels side by side."""

    window: np.ndarray
    gradient: np.ndarray
    """The window's gradient."""
    values: np.ndarray
    """One group of lanes a pixel: the result, or the incoming gradient."""
    slope_x: np.ndarray
    slope_y: np.ndarray
    row_sum: np.ndarray
    sums: np.ndarray
    """What a tile adds to the matrix's gradient."""
    table: np.ndarray
    """The image column that each column of a window reads."""


def capacity(taps: int) -> int:
    """Pixels of a window; a box larger than this is replaced by one box a pixel.

    A box is filled row by row at a quarter of the price of single taps.
    """
    return PIXELS * taps * taps * (2 if taps > 2 else 4)


T = TypeVar("T")

_made: dict[tuple[object, ...], object] = {}


def of_this_thread(make: Callable[..., T], *given: object) -> T:
    """make(*given), made once a thread; whatever is in it was left there by the last call.

    By the system's number of the thread: to Python, a thread of OpenMP is a new one at each call,
    and would find `threading.local` empty. The next thread of a dead one's number has its memory.
    """
    key = (get_ident(), make, *given)
    if key not in _made:
        _made[key] = make(*given)
    return _made[key]  # pyright: ignore


def scratch(taps: int, dtype: np.dtype) -> tuple[Scratch, Buffers]:
    """This thread's memory for kernels of so many taps an axis."""
    return of_this_thread(_make, taps, dtype)


def _make(taps: int, dtype: np.dtype) -> tuple[Scratch, Buffers]:
    column, row, offset = (np.empty(PIXELS, np.int32) for _ in range(3))
    tx, ty = np.empty(PIXELS), np.empty(PIXELS)
    wx, wy, dx, dy = (np.empty(PIXELS * taps, dtype) for _ in range(4))
    window, gradient = (np.empty(LANES * capacity(taps), dtype) for _ in range(2))
    values, slope_x, slope_y = (np.empty(LANES * PIXELS, dtype) for _ in range(3))
    row_sum, sums, table = np.empty(4 * LANES, dtype), np.empty(9), np.empty(capacity(taps), "i8")
    return (
        Scratch(column, row, tx, ty, wx, wy, dx, dy, np.empty(PIXELS, dtype), offset),
        Buffers(window, gradient, values, slope_x, slope_y, row_sum, sums, table),
    )
