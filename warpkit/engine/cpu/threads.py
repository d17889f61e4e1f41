"""Threads for kernels: torch's own thread pool if it has one, otherwise ours.

torch's operators run on OpenMP threads, which spin for about a millisecond after each. A second
pool would share the cores with these spinning threads: two threads on two cores then take 1.4 times
as long as on torch's own team, which is also awake already.

Work consists of units, which are distributed in runs of consecutive ones to whichever thread is
free. Units do not depend on the number of threads, so results do not, either.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import count, pairwise
from pathlib import Path
from threading import get_ident
from typing import Any

import torch

INLINE = 100_000
"""Below this many output values, waking a thread costs more than it saves."""

RUNS = 8
"""Runs of units per thread, enough to balance their costs."""

SHORTEST = 50_000
"""Output values of the shortest run; starting a run takes 10 us, in which threads wait for each
other."""

LONGEST = 4_000_000
"""Output values of the longest run: about 10 ms, after which an interrupt is noticed."""

SLICE = 16_000_000
"""Output values per thread of the team between two checks for an interrupt: 10 to 60 ms."""

BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

_pools: dict[int, ThreadPoolExecutor] = {}


def _entry() -> Any:
    """`GOMP_parallel(body, argument, threads, flags)` of the OpenMP library that torch uses.

    It is part of OpenMP's binary interface on Linux, in both GNU's and LLVM's library.
    """
    try:
        torch_library = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
        entry = ctypes.CDLL(str(torch_library)).GOMP_parallel
    except (OSError, AttributeError):
        return None
    entry.argtypes = [BODY, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
    entry.restype = None
    return entry


_team = _entry()
_team_address = ctypes.cast(_team, ctypes.c_void_p).value or 0 if _team is not None else 0


def _forget_threads() -> None:
    """A forked child has the memory of teams and pools, but none of their threads."""
    global _team
    _team = None
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def _dealt(units: int, values: int) -> tuple[int, int]:
    """The number of threads that share the units, and the number of runs, to balance costs."""
    threads = min(torch.get_num_threads(), units)
    return threads, max(threads, min(threads * RUNS, values // SHORTEST))


def run_on_team(part: Callable[[int, int, int, int, int], None], units: int, values: int) -> bool:
    """Call part(begin, end, each, threads, team) until all units are done; False without a team.

    Native code distributes the units begin .. end, `each` at a time, to the threads of torch's own
    team, whose entry point is at the address `team`.
    """
    if _team is None:
        return False
    threads, runs = _dealt(units, values)
    slices = max(1, values // (threads * SLICE))
    each = max(1, units // runs)
    edges = [units * n // slices for n in range(slices + 1)]
    for begin, end in pairwise(edges):
        part(begin, end, each, threads, _team_address)
    return True


def run(work: Callable[[int, int], None], units: int, values: int) -> None:
    """Call work(begin, end) until all units are done, on as many threads as torch uses."""
    if values < INLINE:
        work(0, units)
        return
    threads, runs = _dealt(units, values)
    runs = min(units, max(runs, values // LONGEST))
    numbers, reached, errors = count(), list[int](), list[BaseException]()

    def share(_: object = None) -> None:
        try:
            reached.append(get_ident())
            while not errors and (n := next(numbers)) < runs:  # next() of a count is atomic
                work(units * n // runs, units * (n + 1) // runs)
        except BaseException as error:  # raised in a callback it would only be printed
            errors.append(error)

    if threads == 1:
        share()
    elif _team is not None:
        _team(BODY(share), None, threads, 0)
    else:
        _share_in_pool(share, threads, errors)
    if errors:
        raise errors[0]
    if get_ident() not in reached:
        raise KeyboardInterrupt  # it came in the callback, before `share` could note it


def _share_in_pool(share: Callable[[], None], threads: int, errors: list[BaseException]) -> None:
    helpers: list[Future[None]] = []
    try:
        if threads not in _pools:
            _pools.setdefault(threads, ThreadPoolExecutor(threads - 1, "warpkit"))
        helpers = [_pools[threads].submit(share) for _ in range(threads - 1)]
        share()
    except BaseException as error:
        errors.append(error)
        raise
    finally:  # also after KeyboardInterrupt: threads must stop writing before arrays are freed
        wait([helper for helper in helpers if not helper.cancel()])
