"""Counts the bytes that a call allocates."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

from torch.profiler import ProfilerActivity, profile


def allocated(call: Callable[[], Any]) -> int:
    """The bytes of all tensors, and the largest number of bytes that numpy and Python hold."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True):
        call()  # a process's first record allocates megabytes
    tracemalloc.start()
    try:
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
            call()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return peak + sum(max(0, event.self_cpu_memory_usage) for event in profiler.events() or ())
