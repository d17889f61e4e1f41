"""Progress on stderr for the functions that have `progress=`: a bar by rich, or lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from warpkit.core.environment import import_optional

PAUSE = 5.0
"""Seconds between two lines where a bar cannot move: in pipes, logs and dumb terminals."""

_named: ContextVar[str | None] = ContextVar("_named", default=None)


@contextmanager
def bar_named(name: str) -> Iterator[None]:
    """Bars in here are called so: the two runs of a command, which would have one name."""
    token = _named.set(name)
    try:
        yield
    finally:
        _named.reset(token)


@contextmanager
def progress_bar(
    label: str, *, total: int, completed: int = 0, visible: bool = True
) -> Iterator[Callable[[str], None]]:
    """A function that advances the bar by one and shows a few words; it does nothing if not shown.

    Raises ModuleNotFoundError that names what to install where rich is missing.
    """
    if not visible:
        yield lambda words: None
        return
    rich_console = import_optional("rich.console", label, "progress=True")
    console = rich_console.Console(stderr=True, highlight=False, soft_wrap=True)
    label = _named.get() or label
    if console.is_jupyter or (console.is_terminal and not console.is_dumb_terminal):
        with _moving(console, label, total, completed) as advance:
            yield advance
    else:
        yield _lines(console, label, total, completed)


@contextmanager
def _moving(
    console: Any, label: str, total: int, completed: int
) -> Iterator[Callable[[str], None]]:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[words]}", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(label, total=total, completed=completed, words="")
        yield lambda words: bar.update(task, advance=1, words=words)


def _lines(console: Any, label: str, total: int, completed: int) -> Callable[[str], None]:
    count, last = completed, time.monotonic()

    def advance(words: str) -> None:
        nonlocal count, last
        count += 1
        if count == total or time.monotonic() - last > PAUSE:
            console.print(f"{label} {count}/{total} {words}", markup=False)
            last = time.monotonic()

    return advance
