"""Waiting processes that run functions, so that many tests import torch only once."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

SECONDS = 60
"""How long a process may keep another waiting."""
STARTED = "started"
PRELOADED = ["torch.distributed.tensor", "torch._dynamo"]
"""What the first call on a DTensor and the first kernel import, a second of each process."""


class Processes:
    """Processes of one gloo group, initialised through a file."""

    def __init__(self, count: int, store: Path) -> None:
        # forks of one process that has loaded torch, which takes 10 s of CPU time; each loads the
        # package itself, which must know in which process it was loaded
        server = "forkserver" in mp.get_all_start_methods()
        context: Any = mp.get_context("forkserver" if server else "spawn")
        if server:
            context.set_forkserver_preload(PRELOADED)
        self.calls = [context.Queue() for _ in range(count)]
        self.results = [context.Queue() for _ in range(count)]
        self.processes = [
            context.Process(target=serve, args=(rank, count, store, call, result), daemon=True)
            for rank, (call, result) in enumerate(zip(self.calls, self.results, strict=True))
        ]
        for process in self.processes:
            process.start()
        for result in self.results:
            assert result.get(timeout=3 * SECONDS) == STARTED

    def run(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """The results of a module's function in each process; raises the errors from there."""
        for call in self.calls:
            call.put((function, args))
        answers = [result.get(timeout=2 * SECONDS) for result in self.results]
        failed = [text for succeeded, text in answers if not succeeded]
        # processes that only waited for a failed one report less
        failed.sort(key=lambda text: "gloo" in text)
        assert not failed, failed[0]
        return [value for _, value in answers]

    def close(self) -> None:
        for call in self.calls:
            call.put(None)
        for process in self.processes:
            process.join(SECONDS)


def serve(rank: int, count: int, store: Path, calls: Any, results: Any) -> None:
    """Run incoming functions until None arrives."""
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    dist.init_process_group(
        "gloo",
        init_method=f"file://{store}",
        rank=rank,
        world_size=count,
        timeout=timedelta(seconds=SECONDS),
    )
    results.put(STARTED)
    while (call := calls.get()) is not None:
        function, args = call
        try:
            results.put((True, function(*args)))
        except BaseException:
            results.put((False, f"process {rank}: {traceback.format_exc()}"))
    dist.destroy_process_group()
