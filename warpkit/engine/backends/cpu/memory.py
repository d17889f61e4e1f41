"""Memory for results, reused once they are freed.

The first write to a new page costs more than a warp of the pixels on it: at 4K a third of the time
of a forward call, on pages of 2 MiB, and more on those of 4 KiB that smaller arrays get. A loop
that drops its results gets the same pages back here, whose contents are whatever was left in them.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Sequence
from math import prod

import numpy as np

LEAST = 1 << 20
"""Bytes of an array from which on its pages are kept; the C library keeps smaller ones."""


def limit(text: str) -> int:
    """Bytes from what WARPKIT_KEPT_MB says."""
    if not text.isascii() or not text.isdigit():
        raise ValueError(f"warpkit: WARPKIT_KEPT_MB must be a number such as 256, got {text!r}")
    return int(text) << 20


KEPT = limit(os.environ.get("WARPKIT_KEPT_MB", "256"))
"""Bytes of blocks waiting for use, at most."""

UNIT = 1 << 18
"""Blocks are multiples of it, so that arrays of about the same size share them."""

LINE = 64

_waiting: deque[np.ndarray] = deque()  # each step on it is atomic; the oldest stand left


class _Lease:
    """A block in use: when the last array on it is gone, it waits for the next."""

    def __init__(self, block: np.ndarray, count: int, dtype: np.dtype) -> None:
        self.block = block
        address = block.ctypes.data
        self.__array_interface__ = {
            "version": 3,
            "shape": (count,),
            "typestr": dtype.str,
            "data": (address + -address % LINE, False),  # so that no store straddles two lines
        }

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not ending():  # when Python ends, the names of this module may be gone
            _keep(self.block)


def empty(shape: int | Sequence[int], dtype: np.dtype) -> np.ndarray:
    """As np.empty."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    count = prod(shape)
    if count * dtype.itemsize < LEAST:
        return np.empty(shape, dtype)
    block = _take(-(-count * dtype.itemsize // UNIT) * UNIT + LINE)
    return np.asarray(_Lease(block, count, dtype)).reshape(shape)


def release() -> None:
    """Give back what waits."""
    _waiting.clear()


def _take(size: int) -> np.ndarray:
    """A waiting block of just that size, or a new one; numpy puts large ones on huge pages."""
    for _ in range(len(_waiting)):
        try:
            block = _waiting.popleft()
        except IndexError:  # other threads took the rest
            break
        if block.nbytes == size:
            return block
        _waiting.append(block)
    return np.empty(size, np.uint8)


def _keep(block: np.ndarray) -> None:
    _waiting.append(block)
    while sum(each.nbytes for each in list(_waiting)) > KEPT:
        try:
            _waiting.popleft()
        except IndexError:
            break
