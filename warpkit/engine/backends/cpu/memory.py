"""Memory for results, reused once they are freed.

The first write to a new page costs more than warping its pixels: at 4K it takes a third of a
forward call on pages of 2 MiB, and more on the 4 KiB pages of smaller arrays. With this module, a
loop that drops its results gets the same pages again, with arbitrary contents.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Sequence
from math import prod

import numpy as np

LEAST = 1 << 20
"""Smaller arrays, in bytes, are left to the C library, which keeps their pages."""


def limit(text: str) -> int:
    """The limit in bytes from the value of WARPKIT_KEPT_MB."""
    if not text.isascii() or not text.isdigit():
        raise ValueError(f"warpkit: WARPKIT_KEPT_MB must be a number such as 256, got {text!r}")
    return int(text) << 20


KEPT = limit(os.environ.get("WARPKIT_KEPT_MB", "256"))
"""The largest total size, in bytes, of free blocks that are kept."""

UNIT = 1 << 18
"""Blocks are multiples of this, so arrays of similar sizes can share them."""

LINE = 64

_waiting: deque[np.ndarray] = deque()  # appending and popping are atomic; the oldest is left


class _Lease:
    """A block in use; when the last array on it is gone, the block is free for the next one."""

    def __init__(self, block: np.ndarray, count: int, dtype: np.dtype) -> None:
        self.block = block
        address = block.ctypes.data
        self.__array_interface__ = {
            "version": 3,
            "shape": (count,),
            "typestr": dtype.str,
            "data": (address + -address % LINE, False),  # so that no store crosses a cache line
        }

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not ending():  # when Python exits, this module's names may be gone
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
    """Release all free blocks."""
    _waiting.clear()


def _take(size: int) -> np.ndarray:
    """A free block of exactly this size, or a new one; numpy puts large ones on huge pages."""
    for _ in range(len(_waiting)):
        try:
            block = _waiting.popleft()
        except IndexError:  # other threads took them all
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
