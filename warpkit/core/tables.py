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
    columns, wide = list(names), console.options.update_width(1000)
    while columns and console.measure(make(columns), options=wide).minimum > console.width:
        columns.pop()
    console.print(make(columns))
    if omitted := names[len(columns) :]:
        console.print(f"too narrow for {', '.join(omitted)}", style="dim", markup=False)
