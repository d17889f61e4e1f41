"""Fits tables to narrow terminals: drops columns before digits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Table


def print_fitting(
    console: Console, make: Callable[[Sequence[str]], Table], names: Sequence[str]
) -> None:
    """Print the table that `make` makes of its last columns, by their names.

    Columns that do not fit the console are dropped, and a line names them.
    """
    kept, wide = list(names), console.options.update_width(1000)
    while kept and console.measure(make(kept), options=wide).minimum > console.width:
        kept.pop()
    console.print(make(kept))
    if gone := names[len(kept) :]:
        console.print(f"too narrow for {', '.join(gone)}", style="dim", markup=False)
