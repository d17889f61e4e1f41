"""Prints a parity report on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import StringIO
from itertools import groupby
from typing import TypeVar

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from warpkit.core.tables import print_fitting
from warpkit.validation.metrics import Figures
from warpkit.validation.resizes import ResizeRow
from warpkit.validation.results import Results
from warpkit.validation.suite import Row

AnyRow = TypeVar("AnyRow", Row, ResizeRow)

HEADS = {"opencv": "OpenCV", "pillow": "Pillow"}
BROKEN = {
    "differing": "differ-\ning",
    "torchvision": "torch-\nvision",
    "grid_sample": "grid_\nsample",
}
WIDE = 90
"""The width, in columns, of a terminal that has room for headings of one line."""
LIBRARIES = {
    "opencv": "OpenCV",
    "opencv_ipp": "OpenCV + IPP",
    "pillow": "Pillow",
    "torchvision": "torchvision",
    "torch": "torch",
}
DEFAULTS = (
    "resizes as each library has them by default: torchvision's with antialias=True, torch's "
)
DEFAULTS += "(F.interpolate) and kornia's with antialias=False"
NOTE = "values are those promised to be the same; then the largest difference in levels of 8 bits"


def as_text(report: Results) -> str:
    """The table without colour."""
    out = StringIO()
    show(report, Console(file=out, width=80, color_system=None, highlight=False))
    return out.getvalue()


def show(report: Results, console: Console) -> None:
    """Print the tables, the settings without a guarantee, and the verdict."""
    peers = list(report.rows[0].peers) if report.rows else []
    print_fitting(console, lambda names: table(report, names, console.width), peers)
    if report.resizes:
        peers = list(report.resizes[0].peers)
        print_fitting(console, lambda names: resize_table(report, names, console.width), peers)
        console.print(DEFAULTS, style="dim")
    others = ", the others' in uint8 and float32" if report.rows and report.rows[0].peers else ""
    console.print(f"\n{NOTE}{others}", style="dim")
    for reason, count, differing in left_out([*report.rows, *report.resizes]):
        text = f"not promised: {reason}; {differing:,} of {count:,} values differ"
        console.print(text, style="dim", markup=False)
    style = "green" if report.promised else "dim"
    style = style if report.passed else "bold red"
    console.print(report.verdict, style=style, markup=False)


def empty_table(first: str, names: Iterable[str], width: int) -> Table:
    """A table with words in its first column and numbers in the others."""
    result = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    result.add_column(first)
    for name in names:
        head = HEADS.get(name, name) if width >= WIDE else BROKEN.get(name, HEADS.get(name, name))
        result.add_column(head, justify="right", vertical="bottom", no_wrap=True)
    return result


def table(report: Results, names: Sequence[str], width: int) -> Table:
    """One line for each map and interpolation; one column for each peer in `names`."""
    result = empty_table("warp", ("values", "differing", "warpkit", *names), width)
    for (kind, interpolation), group in groups(report.rows, "map"):
        result.add_row(f"{kind} {interpolation}", *cells(group, names))
    return result


def resize_table(report: Results, names: Sequence[str], width: int) -> Table:
    """One line for each library and filter: the distances of warpkit and of the peers in
    `names`."""
    result = empty_table("resize", ("differing", "warpkit", *names), width)
    for (library, interpolation), group in groups(report.resizes, "library"):
        # the longest name must have at most 21 characters for all columns to fit in 80
        short = "IPP" if library == "opencv_ipp" else LIBRARIES[library]
        result.add_row(f"{short} {interpolation}", *cells(group, names)[1:])
    return result


def groups(rows: Iterable[AnyRow], first: str) -> list[tuple[tuple[str, str], list[AnyRow]]]:
    """Rows grouped by the attribute `first`, "map" or "library", and by interpolation, in order."""
    parted = groupby(rows, lambda row: (getattr(row.setting, first), row.setting.interpolation))
    return [(key, list(group)) for key, group in parted]


def cells(group: Sequence[Row | ResizeRow], names: Sequence[str]) -> list[str | Text]:
    """The numbers of one line."""
    guaranteed = [(row, row.guaranteed) for row in group]
    total, differing = counted(row.guaranteed for row in group)
    count = Text(f"{differing:,}", "bold red" if differing else "green") if total else "-"
    peers = [[(row, row.peers[name]) for row in group] for name in names]
    return [
        f"{total:,}" if total else "-",
        count,
        *(largest(parts) for parts in (guaranteed, *peers)),
    ]


def counted(parts: Iterable[Figures | None]) -> tuple[int, int]:
    """The number of values, and of those that differ."""
    figures = [part for part in parts if part is not None]
    return sum(part.total for part in figures), sum(part.differing for part in figures)


def left_out(rows: Iterable[Row | ResizeRow]) -> list[tuple[str, int, int]]:
    """Each reason for a missing guarantee, the number of its values, and of those that differ."""
    reasons: dict[str, list[Figures | None]] = {}
    for row in rows:
        if row.promise.reason:
            reasons.setdefault(row.promise.reason, []).append(row.open)
    return [(reason, *counted(parts)) for reason, parts in reasons.items()]


def largest(parts: Iterable[tuple[Row | ResizeRow, Figures | None]]) -> str:
    """The largest difference in levels, or a dash if there is none."""
    values = [levels(row, part) for row, part in parts if part is not None]
    return number(max(values)) if values else "-"


def levels(row: Row | ResizeRow, figures: Figures) -> float:
    """The largest difference in levels of 8 bits."""
    return figures.max_abs / row.white * 255


def number(value: float) -> str:
    """Two significant digits, and no fraction from 10 on."""
    return "0" if value == 0 else f"{value:.2g}" if value < 10 else f"{value:.0f}"
