"""Measures how much of the processors other programs use during a benchmark."""

from __future__ import annotations

import statistics
import time

import torch

LOUD_SHARE, LOUD_SPREAD = 0.05, 0.5
"""A run is loud if other programs took a larger share of the processors' time, or if the median
time of a fixed task exceeds its fastest turn by a larger fraction. On two virtual CPUs, a quiet
machine has 0.00 and 0.3; beside two busy processes it has 0.5 to 0.7 and 0.7 to 4."""

VALUES, REPEAT = 1 << 20, 16
"""The fixed task: an array of 4 MB, larger than the first caches, and how often it is read."""


class Noise:
    """A fixed task on all threads, run between the turns, to measure the machine's load."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.walls: list[float] = []
        self.missing: list[float] = []
        self._values = torch.rand(VALUES)
        self._out = torch.empty_like(self._values)
        self._work()  # starts the threads

    def _work(self) -> None:
        for _ in range(REPEAT):
            torch.add(self._values, 1.0, out=self._out)

    def listen(self) -> None:
        """Run the task once and record its time."""
        wall, busy = time.perf_counter(), time.process_time()
        self._work()
        wall, busy = time.perf_counter() - wall, time.process_time() - busy
        self.walls.append(wall)
        self.missing.append(wall - busy / self.threads)

    @property
    def share(self) -> float:
        """The share of the processors' time that other programs used."""
        return max(sum(self.missing) / sum(self.walls), 0.0)

    @property
    def spread(self) -> float:
        """How much longer the median turn took than the fastest one, relative to the latter."""
        return statistics.median(self.walls) / min(self.walls) - 1

    @property
    def is_loud(self) -> bool:
        """Whether the machine was too busy for valid timings."""
        return self.share > LOUD_SHARE or self.spread > LOUD_SPREAD

    @property
    def word(self) -> str:
        """The verdict."""
        return "loud" if self.is_loud else "quiet"

    def __str__(self) -> str:
        """One line of text."""
        load = f"others took {self.share:.0%} of the processors"
        return f"{self.word}: {load}, a fixed work varied by {self.spread:.0%}"
