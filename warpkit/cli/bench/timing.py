"""Times several calls in turns, so that other load on the machine affects all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

PAUSE = 0.005
"""Seconds before a call: OpenMP's threads spin for about a millisecond after their work, and would
take a core from the next call."""


class Turns(NamedTuple):
    """The settings of a measurement."""

    timed: int = 0
    """The number of timed turns; 0: as many as fit in `seconds`."""
    seconds: float = 0.0
    at_least: int = 1
    """The smallest number of timed turns within `seconds`."""
    untimed: int = 1
    """The number of turns before the timed ones, which fill caches."""
    warm: bool = False
    """Whether to make each call once before it is timed, so that its data is in the caches."""
    pause: float = 0.0
    """Seconds to wait before each call."""
    repeat: int = 1
    """The number of successive calls that are timed together; the result is the time of one."""
    clock: Callable[[], float] = time.perf_counter
    rotate: bool = False
    """Whether each turn begins with another call."""


def in_turns(
    calls: Mapping[str, Callable[..., Any]],
    turns: Turns,
    *,
    inputs: Callable[[], tuple[Any, ...]] = tuple,
    between: Callable[[], None] | None = None,
) -> dict[str, list[float]]:
    """The seconds of each call in each timed turn.

    inputs: makes the arguments of a call; this is not timed. between: called after each turn.

    >>> seconds = in_turns({"a": lambda: None, "b": lambda: None}, Turns(3))
    >>> [len(times) for times in seconds.values()]
    [3, 3]
    """
    names = list(calls)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    end, turn = time.perf_counter() + turns.seconds, 0
    while turn < turns.untimed + (turns.timed or turns.at_least) or (
        not turns.timed and time.perf_counter() < end
    ):
        first = turn % len(names) if turns.rotate else 0
        for name in names[first:] + names[:first]:
            call, arguments = calls[name], inputs()
            time.sleep(turns.pause)
            if turns.warm:
                call(*arguments)
            start = turns.clock()
            for _ in range(turns.repeat):
                call(*arguments)
            spent = (turns.clock() - start) / turns.repeat
            if turn >= turns.untimed:
                seconds[name].append(spent)
        if between is not None:
            between()
        turn += 1
    return seconds


def ratio(seconds: list[float], other: list[float]) -> float:
    """The median over the turns of one call's time divided by another's."""
    return statistics.median(a / b for a, b in zip(seconds, other, strict=True))
