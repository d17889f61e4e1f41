"""Memory for results, reused once they are freed.

The first write to a new page costs more than warping its pixels: at 4K it takes a third of a
forward call on pages of 2 MiB, and more on the 4 KiB pages of smaller arrays. With this module, a
loop that drops its results gets the same pages again, with arbitrary contents.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from weakref import ref

import numpy as np

LEAST = 1 << 20
"""Smaller arrays, in bytes, are left to the C library, which keeps their pages."""


def limit(text: str) -> int:
    """The limit in bytes from the value of WARPKIT_KEPT_MB."""
    if not text.isascii() or not text.isdigit():
        raise ValueError(f"warpkit: WARPKIT_KEPT_MB must be a number such as 256, got {text!r}")
    return int(text) << 20


KEPT = limit(os.environ.get("WARPKIT_KEPT_MB", "256"))
"""The largest total size, in bytes, of the blocks that are kept, free or in use."""

UNIT = 1 << 18
"""Blocks are multiples of this, so arrays of similar sizes can share them."""

LINE = 64


class _Lease:
    """The memory of one array; it dies with the last array on it."""

    def __init__(self, memory: np.ndarray, count: int, dtype: np.dtype) -> None:
        self.memory = memory
        address = memory.ctypes.data
        self.__array_interface__ = {
            "version": 3,
            "shape": (count,),
            "typestr": dtype.str,
            "data": (address + -address % LINE, False),  # so that no store crosses a cache line
        }


class _Block:
    """Memory that is kept; it is free when its lease is dead.

    A lease has no `__del__`: Python drops a KeyboardInterrupt that is raised in one.
    """

    __slots__ = ("lease", "memory", "size")

    def __init__(self, memory: np.ndarray, lease: _Lease) -> None:
        self.memory, self.size = memory, memory.nbytes
        self.lease = ref(lease)


_kept: deque[_Block] = deque()  # appending, removing and popping are atomic; the oldest is left


def empty(shape: int | Sequence[int], dtype: np.dtype) -> np.ndarray:
    """As np.empty."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    count = prod(shape)
    size = -(-count * dtype.itemsize // UNIT) * UNIT + LINE
    if count * dtype.itemsize < LEAST or size > KEPT:
        return np.empty(shape, dtype)
    memory = _take(size)
    lease = _Lease(memory, count, dtype)
    _kept.append(_Block(memory, lease))
    return np.asarray(lease).reshape(shape)


def allocator(shape: Sequence[int], dtype: np.dtype) -> Callable[[], np.ndarray]:
    """`empty` of one shape and type."""
    is_small = prod(shape) * dtype.itemsize < LEAST
    return partial(np.empty if is_small else empty, tuple(shape), dtype)


def release() -> None:
    """Keep none of the present blocks, free or in use."""
    _kept.clear()


def _take(size: int) -> np.ndarray:
    """A free block of exactly this size, or a new one; numpy puts large ones on huge pages.

    Older blocks that no longer fit beside it are not kept; one in use is freed with its array.
    """
    found, total = None, size
    for block in reversed(list(_kept)):
        if found is None and block.size == size and block.lease() is None and _dropped(block):
            found = block.memory
        elif total + block.size > KEPT:
            _dropped(block)
        else:
            total += block.size
    return np.empty(size, np.uint8) if found is None else found


def _dropped(block: _Block) -> bool:
    """Keep a block no longer; False if another thread was first."""
    try:
        _kept.remove(block)
    except (IndexError, ValueError):
        return False
    return True
