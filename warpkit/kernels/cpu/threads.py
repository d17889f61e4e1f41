"""A pool of threads of our own: Numba's layers are not both safe in threads and across fork.

Work is a number of units, dealt in runs of consecutive ones to whichever thread is free. The units
never depend on the number of threads, so that neither do results.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count

import torch

INLINE = 250_000
"""Output values below which waking a thread (about 15 us) costs more than it saves."""

RUNS = 8
"""Runs of units a thread, enough to even out their costs."""

LONGEST = 4_000_000
"""Output values of a run: about 10 ms, after which an interrupt is noticed."""

_pools: dict[int, ThreadPoolExecutor] = {}


def _pool(workers: int) -> ThreadPoolExecutor:
    pool = _pools.get(workers)
    if pool is None:
        pool = _pools.setdefault(workers, ThreadPoolExecutor(workers, "warpkit"))
    return pool


# after a fork the child has the pool's memory but none of its threads: it would wait for ever
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.clear)


def run(work: Callable[[int, int], None], units: int, values: int) -> None:
    """Call work(begin, end) until all units are done, on as many threads as torch uses."""
    if values < INLINE:
        work(0, units)
        return
    threads = min(torch.get_num_threads(), units)
    runs = min(units, max(threads * RUNS, values // LONGEST))
    numbers, stopped = count(), False

    def share() -> None:
        while not stopped and (n := next(numbers)) < runs:  # next() on a count is atomic
            work(units * n // runs, units * (n + 1) // runs)

    helpers: list[Future[None]] = []
    try:
        helpers = [_pool(threads - 1).submit(share) for _ in range(threads - 1)]
        share()
    finally:  # also on KeyboardInterrupt: nobody may still write when the arrays are freed
        stopped = True
        errors = [helper.exception() for helper in helpers if not helper.cancel()]
    for error in filter(None, errors):
        raise error
