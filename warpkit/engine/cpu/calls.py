"""Calls of the native library: blocks of numbers, and their launch.

A call is a block of numbers that the library reads: native/shared/call.h. Shapes, types and options
determine the whole block except the tensors' addresses. So a family of calls keeps its last blocks,
as in `warp_calls`. To make a call, its block is copied, the addresses are written into the copy,
and this is passed on. Nothing here depends on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ctypes import addressof, c_char
from typing import Any

import numpy as np
from torch import Tensor

from warpkit.engine.cpu.native_library import LIBRARY
from warpkit.engine.cpu.threads import INLINE, run, run_on_team

assert LIBRARY is not None  # nobody imports this module without the library

RUN_BLOCK = LIBRARY.run
MISSING = "warpkit: no memory for a kernel to work in"

TASKS = LIBRARY.tasks
"""The number of each task, by its name."""


KEPT = 2048
"""The largest number of blocks that a family keeps for each of its tasks: see `plan.KEPT`."""


class Family:
    """Calls whose blocks have the same fields; native/shared/kernels.h lists the families."""

    def __init__(self, name: str) -> None:
        assert LIBRARY is not None
        self.fields = {field: n for n, field in enumerate(LIBRARY.families[name])}
        """The position of each number in a block."""

    def block(self, task: str, numbers: Mapping[str, int]) -> np.ndarray:
        """A block for a task, with 0 for numbers that are not given."""
        found = np.zeros(len(self.fields), np.int64)
        for name, number in numbers.items():
            found[self.fields[name]] = number
        found[TASK] = TASKS[task]
        return found


TASK, FIRST, END, RUN, THREADS, TEAM = range(6)
"""The positions of the numbers at the start of every block."""


def launch(numbers: np.ndarray, first: int, end: int, values: int) -> None:
    """Run units first .. end of a block, a copy for this call; they compute `values` numbers."""
    if first == end:
        return
    if values < INLINE:
        numbers[FIRST], numbers[END], numbers[RUN], numbers[THREADS] = first, end, end - first, 1
        if RUN_BLOCK(numbers.tobytes()):  # asking an array for its address takes 1 us
            raise MemoryError(MISSING)
        return

    def part(begin: int, stop: int, each: int = 0, threads: int = 1, team: int = 0) -> None:
        mine = numbers.copy()
        mine[FIRST], mine[END] = first + begin, first + stop
        mine[RUN], mine[THREADS], mine[TEAM] = each or stop - begin, threads, team
        if RUN_BLOCK(mine.tobytes()):
            raise MemoryError(MISSING)

    if not run_on_team(part, end - first, values):
        run(part, end - first, values)


def address(tensor: Tensor | np.ndarray) -> int:
    """The address of the first number; a kernel reads there, so only of tensors on the CPU."""
    if not isinstance(tensor, Tensor):
        return address_of(tensor)
    assert tensor.is_cpu, f"a kernel on the CPU got a tensor on {tensor.device}"
    return tensor.data_ptr()


def address_of(array: np.ndarray) -> int:
    """The address of an array's first number: `array.ctypes.data` in a quarter of its time."""
    try:
        return addressof(c_char.from_buffer(array))  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError):  # read-only, empty, or not contiguous
        return array.ctypes.data


def reader(like: Tensor | np.ndarray | None) -> Callable[[Any], int]:
    """What returns the addresses of arrays, or of tensors on the CPU, as `like` is; 0 of None."""
    if like is None:
        return lambda none: 0
    return Tensor.data_ptr if isinstance(like, Tensor) else address_of
