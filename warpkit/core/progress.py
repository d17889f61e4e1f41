"""A progress bar on stderr, by rich, for the functions that have `progress=`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from warpkit.core.environment import how_to_install


@contextmanager
def progress_bar(
    label: str, *, total: int, done: int = 0, shown: bool = True
) -> Iterator[Callable[[str], None]]:
    """A function that advances the bar by one and shows a few words; it does nothing if not shown.

    Raises ModuleNotFoundError that names what to install where rich is missing.
    """
    if not shown:
        yield lambda words: None
        return
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )
    except ModuleNotFoundError as error:
        text = f"{label}: progress=True needs {error.name}: {how_to_install('cli')}"
        raise ModuleNotFoundError(text, name=error.name) from None
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[words]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True, highlight=False)) as bar:
        task = bar.add_task(label, total=total, completed=done, words="")
        yield lambda words: bar.update(task, advance=1, words=words)
