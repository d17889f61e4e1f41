"""The memory kernels work in: made once a thread, since making it costs more than a small call."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any, NamedTuple, TypeVar

import numpy as np

from warpkit.engine.backends.cpu.runtime.compiler import inline
from warpkit.engine.backends.cpu.runtime.simd import CHANNELS_PER_VECTOR
from warpkit.engine.backends.cpu.runtime.vector_values import REGISTER

TILE = 32
"""A tile is TILE x TILE output pixels. Turned by 33 degrees a square tile spans 1.6 times its
pixels in the source, one of 16 x 64 spans 2.4 times."""

PIXELS = TILE * TILE


class Scratch(NamedTuple):
    """One entry a pixel of a tile, TILE * row + column; weights have a plane of PIXELS a tap."""

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
    missing_weight: np.ndarray
    """The sum of the weights of missing taps, or ALL_TAPS_INSIDE, or NO_TAP_INSIDE."""
    window_offset: np.ndarray
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


room: Any = inline(capacity)

T = TypeVar("T")

_made: dict[tuple[object, ...], object] = {}


def of_this_thread(make: Callable[..., T], *arguments: object) -> T:
    """make(*arguments), made once a thread; whatever is in it was left there by the last call.

    By the system's number of the thread: to Python, a thread of OpenMP is a new one at each call,
    and would find `threading.local` empty. The next thread of a dead one's number has its memory.
    """
    key = (get_ident(), make, *arguments)
    if key not in _made:
        _made[key] = make(*arguments)
    return _made[key]  # pyright: ignore


def aligned(count: int) -> tuple[int, np.ndarray]:
    """Bytes that begin where a vector may: their address, and what keeps them."""
    memory = np.empty(count + REGISTER, np.uint8)
    return memory.ctypes.data + -memory.ctypes.data % REGISTER, memory


def scratch(taps: int, dtype: np.dtype) -> tuple[np.ndarray, ...]:
    """This thread's memory for kernels of so many taps an axis."""
    return of_this_thread(_make, taps, dtype)


def _make(taps: int, dtype: np.dtype) -> tuple[np.ndarray, ...]:
    """Few arrays, since handing one to a kernel takes 0.1 us: see `scratch_of` and `buffers_of`."""
    reals = 4 * PIXELS * taps + PIXELS + CHANNELS_PER_VECTOR * (2 * capacity(taps) + 3 * PIXELS + 4)
    whole = np.empty(3 * PIXELS, np.int32), np.empty(capacity(taps), np.int64)
    return *whole, np.empty(2 * PIXELS + 9), np.empty(reals, dtype)


@inline
def scratch_of(taps, memory):
    """A tile's scratch arrays in what `scratch` made."""
    whole, _, doubles, reals = memory
    n = PIXELS * taps
    return Scratch(
        whole[:PIXELS],
        whole[PIXELS : 2 * PIXELS],
        doubles[:PIXELS],
        doubles[PIXELS : 2 * PIXELS],
        reals[:n],
        reals[n : 2 * n],
        reals[2 * n : 3 * n],
        reals[3 * n : 4 * n],
        reals[4 * n : 4 * n + PIXELS],
        whole[2 * PIXELS : 3 * PIXELS],
    )


@inline
def buffers_of(taps, memory):
    """Its buffers."""
    _, table, doubles, reals = memory
    n, p = CHANNELS_PER_VECTOR * room(taps), CHANNELS_PER_VECTOR * PIXELS
    reals = reals[4 * PIXELS * taps + PIXELS :]
    lanes = reals[2 * n :]
    return Buffers(
        reals[:n],
        reals[n : 2 * n],
        lanes[:p],
        lanes[p : 2 * p],
        lanes[2 * p : 3 * p],
        lanes[3 * p : 3 * p + 4 * CHANNELS_PER_VECTOR],
        doubles[2 * PIXELS :],
        table,
    )
