"""Measures how much of the processors other programs use during a benchmark."""

from __future__ import annotations

import statistics
import time

import torch

LOUD_SHARE, LOUD_SPREAD = 0.05, 0.5
"""A run is loud where others took more of the processors' time, or where the median of a fixed
work is longer than its fastest turn by more. Two virtual CPUs of a quiet machine have 0.00 and 0.3,
beside two busy processes 0.5 to 0.7 and 0.7 to 4."""

VALUES, REPEAT = 1 << 20, 16
"""Of the fixed work: an array of 4 MB, which leaves the first caches, and how often it is read."""


class Noise:
    """A fixed work on all threads, done between the turns; what its times say of the machine."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.walls: list[float] = []
        self.missing: list[float] = []
        self._values = torch.rand(VALUES)
        self._out = torch.empty_like(self._values)
        self._work()  # wakes the threads

    def _work(self) -> None:
        for _ in range(REPEAT):
            torch.add(self._values, 1.0, out=self._out)

    def listen(self) -> None:
        """Do the work once, and note what it took."""
        wall, busy = time.perf_counter(), time.process_time()
        self._work()
        wall, busy = time.perf_counter() - wall, time.process_time() - busy
        self.walls.append(wall)
        self.missing.append(wall - busy / self.threads)

    @property
    def share(self) -> float:
        """The part of the processors' time that was not ours."""
        return max(sum(self.missing) / sum(self.walls), 0.0)

    @property
    def spread(self) -> float:
        """How much longer than the fastest turn the median turn was, as a part of it."""
        return statistics.median(self.walls) / min(self.walls) - 1

    @property
    def is_loud(self) -> bool:
        """Whether times taken meanwhile are no result."""
        return self.share > LOUD_SHARE or self.spread > LOUD_SPREAD

    @property
    def word(self) -> str:
        """The verdict."""
        return "loud" if self.is_loud else "quiet"

    def __str__(self) -> str:
        """One line for people."""
        taken = f"others took {self.share:.0%} of the processors"
        return f"{self.word}: {taken}, a fixed work varied by {self.spread:.0%}"
