"""The rows of data/benchmarks as tables and plots, for the documentation and `scripts/draw`.

Takes whatever rows there are. In every file the columns before `way` name the case, one column
holds milliseconds, and `times_warpkit` says how many times warpkit's time a way takes.
"""

from __future__ import annotations

import csv
import io
from itertools import cycle
from pathlib import Path

ROWS = Path(__file__).parents[1] / "data" / "benchmarks"
OURS = "#1f5fa8"
COLOURS = ("#d1495b", "#d9730d", "#2a9d8f", "#7b5ea7", "#6b7280", "#b08900")
ABOUT = {
    "machine": "{}",
    "device": "{}",
    "threads": "threads: {}",
    "load": "a load of {} before",
    "torch": "torch {}",
    "warpkit": "warpkit {}",
    "turns": "median of {} turns",
    "date": "{}",
}
"""Columns that say how a file was measured, told where they are the same in all its rows."""

Row = dict[str, str]


def files() -> dict[str, list[Row]]:
    """The rows of every file, by its name."""
    found = {}
    for path in sorted(ROWS.glob("*.csv")):
        with path.open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if row.get("way")]
        if rows:
            found[path.stem] = rows
    return found


def case_of(row: Row) -> str:
    """What was measured: the columns before `way`, without empty ones."""
    columns = list(row)
    parts = [(name, row[name]) for name in columns[: columns.index("way")] if row[name]]
    return ", ".join(f"{int(v):,} {name}" if v.isdigit() else v for name, v in parts)


def milliseconds(row: Row) -> str:
    """The time of one call, in whichever column it stands."""
    name = next(name for name in row if name == "ms" or name.endswith("_ms"))
    return row[name]


def cases(rows: list[Row]) -> dict[str, list[Row]]:
    """The rows of each case, warpkit's first, in the file's order.

    A file with several numbers of threads has a case for each.
    """
    several = len({row.get("threads") for row in rows}) > 1
    grouped: dict[str, list[Row]] = {}
    for row in rows:
        case = case_of(row) + (f", {ABOUT['threads'].format(row['threads'])}" if several else "")
        grouped.setdefault(case, []).append(row)
    for ways in grouped.values():
        ways.sort(key=lambda row: row["way"] != "warpkit")
    return grouped


def conditions(rows: list[Row]) -> str:
    """How a file was measured, in words."""
    values = {name: {row[name] for row in rows if row.get(name)} for name in ABOUT}
    return ", ".join(
        ABOUT[name].format(each.pop()) for name, each in values.items() if len(each) == 1
    )


def tables() -> str:
    """A heading, a plot and a table for each file, as Markdown."""
    return "\n\n".join(section(name, rows) for name, rows in files().items())


def section(name: str, rows: list[Row]) -> str:
    """One file."""
    lines = [
        f"## {name}",
        "",
        f"{about(name)}`data/benchmarks/{name}.csv`: {conditions(rows)}.",
        "",
        f"![What other ways take, in times warpkit's time](images/benchmarks-{name}.svg)",
        "",
        "| case | way | ms | times warpkit's |",
        "|---|---|--:|--:|",
    ]
    for case, ways in cases(rows).items():
        for number, row in enumerate(ways):
            shown = case if number == 0 else ""
            numbers = f"{milliseconds(row)} | {row['times_warpkit']}"
            lines.append(f"| {shown} | {row['way']} | {numbers} |")
    return "\n".join(lines)


def about(name: str) -> str:
    """What the benchmark that wrote a file says of itself, and how to run it."""
    module = name.split("_")[0]  # warps_cpu.csv is of warps.py
    path = Path(__file__).with_name(f"{module}.py")
    if not path.exists():
        return ""
    first = path.read_text().removeprefix('"""').split("\n")[0]
    return f"{first.split(': python')[0]} (`python -m benchmarks.{module}`).\n"


def pictures() -> dict[str, str]:
    """A plot for each file, as SVG."""
    return {f"benchmarks-{name}": picture(rows) for name, rows in files().items()}


def ratios(rows: list[Row]) -> dict[str, list[tuple[str, float]]]:
    """How many times warpkit's time every other way takes, for each case."""
    found = {
        case: [(row["way"], float(row["times_warpkit"])) for row in ways if row["way"] != "warpkit"]
        for case, ways in cases(rows).items()
    }
    return {case: each for case, each in found.items() if each}


def picture(rows: list[Row]) -> str:
    """A line for each case, with a dot for each other way; to the right of 1 warpkit is faster."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    shown = ratios(rows)
    ways = sorted({way for each in shown.values() for way, _ in each})
    with mpl.rc_context({"svg.hashsalt": "warpkit", "font.size": 9}):  # the same at every run
        figure = Figure(figsize=(8.5, 1.1 + 0.27 * len(shown)), layout="constrained")
        axes = figure.add_subplot()
        axes.axvline(1, color=OURS, linewidth=1.5, label="warpkit")
        for way, colour in zip(ways, cycle(COLOURS), strict=False):
            dots = [(r, n) for n, each in enumerate(shown.values()) for w, r in each if w == way]
            axes.plot(*zip(*dots, strict=True), "o", color=colour, label=way)
            for ratio, line in dots:
                axes.plot((1, ratio), (line, line), color=colour, linewidth=1, zorder=0)
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_yticks(range(len(shown)), list(shown))
        axes.set_ylim(len(shown) - 0.5, -0.5)
        axes.set_xlabel("time, in times warpkit's")
        axes.grid(axis="x", color="0.9")
        axes.spines[["top", "right", "left"]].set_visible(False)
        figure.legend(loc="outside upper center", ncols=len(ways) + 1, frameon=False)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", facecolor="white", metadata={"Date": None})
    return buffer.getvalue()


def write(folder: Path) -> None:
    """Write the plots into a folder."""
    for name, svg in pictures().items():
        (folder / f"{name}.svg").write_text(svg)
        print(f"wrote {folder / name}.svg")
