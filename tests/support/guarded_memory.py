"""Arrays between guard pages: a read or write outside an array ends the process.

Unlike a build with a sanitizer, it runs the same code as users do.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import subprocess
from itertools import count
from math import prod
from typing import Any

import numpy as np
import numpy.ma  # reads np.empty's docstring on first access
import torch
from torch import Tensor

from tests.support.forks import python

GUARD = 1 << 26
"""Bytes that are closed on each side. No place in them costs memory."""

_libc = ctypes.CDLL(None, use_errno=True)
_number = count()


def bytes_between_guards(size: int, at_end: bool) -> np.ndarray:
    """Bytes that end where the upper guard begins, or begin where the lower guard ends."""
    room = -(-max(size, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, GUARD + room + GUARD, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    lower = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for guard in (lower, lower + GUARD + room):
        failed = _libc.mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(GUARD), 0)
        assert not failed, ctypes.get_errno()
    return np.frombuffer(memory, np.uint8, size, GUARD + (room - size if at_end else 0))


def empty(shape: Any, dtype: Any = float) -> np.ndarray:
    """np.empty; every second one at the end of its memory."""
    sides = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    kind = np.dtype(dtype)
    memory = bytes_between_guards(prod(sides) * kind.itemsize, next(_number) % 2 == 0)
    return memory.view(kind).reshape(sides)


def zeros(shape: Any, dtype: Any = float) -> np.ndarray:
    """np.zeros, since new pages are zero."""
    return empty(shape, dtype)


def guarded(tensor: Tensor) -> Tensor:
    """A copy with the same strides; a leaf with a gradient, if the tensor has one."""
    flat = torch.from_numpy(empty(tensor.numel() * tensor.element_size(), np.uint8))
    copy = flat.view(tensor.dtype).as_strided(tensor.shape, tensor.stride())
    return copy.copy_(tensor.detach()).requires_grad_(tensor.requires_grad)


def guard_what_is_made() -> None:
    """From now on, also put empty arrays and tensors that warpkit allocates between guards."""
    made_by_torch = torch.empty
    np.empty, np.zeros = empty, zeros
    torch.empty = lambda *shape, **options: guarded(made_by_torch(*shape, **options))


def survives(program: str, **environment: str) -> bool:
    """Whether a program touches no guard, in a new process; other errors are raised."""
    process = subprocess.run(
        [*python(), "-c", program],
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
        capture_output=True,
        text=True,
        timeout=900,
    )
    if process.returncode not in (0, -signal.SIGSEGV, -signal.SIGBUS):
        raise AssertionError(process.stderr)
    return process.returncode == 0
