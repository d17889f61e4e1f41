"""Tables and plots of data/benchmarks, for the documentation and `scripts/document draw`.

Handles any rows. In every file the columns before `way` name the case, one column holds
milliseconds, and `times_warpkit` is a way's time as a multiple of warpkit's.
"""

from __future__ import annotations

import csv
import io
import re
import textwrap
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

ROWS = Path(__file__).parents[1] / "data" / "benchmarks"
LIBRARIES = {
    # Okabe and Ito's colours and one more, which protanopes can tell apart; no marker is used twice
    "warpkit": ("#0072b2", "*", ("warpkit",)),
    "OpenCV": ("#d55e00", "s", ("cv2",)),
    "Pillow": ("#cc79a7", "^", ("Pillow",)),
    "torchvision": ("#009e73", "D", ("torchvision", "roi_align")),
    "kornia": ("#56b4e9", "v", ("kornia",)),
    "albumentations": ("#9a5cd0", "P", ("albumentations",)),
    "onnxruntime": ("#808080", "p", ("Resize",)),
    "py360convert": ("#808080", "<", ("py360convert",)),
    "equilib": ("#808080", ">", ("equilib",)),
    "ImageMagick": ("#808080", "h", ("mogrify",)),
    "libvips": ("#808080", "X", ("vips",)),
    "torch": ("#e69f00", "o", ("",)),
}
"""Each library's colour and marker, and the beginnings of its ways; the first match counts."""
FILLS = ("full", "none", "left", "right", "top", "bottom")
"""The fills that tell a library's ways apart in one plot."""
THEMES = {"": ("white", "#1b1f24", "#d9dce0"), "-dark": ("#1f2129", "#d5d8de", "#3c414c")}
"""The suffix of a plot's name and its colours of paper, ink and grid, for both themes."""
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
"""Columns with the conditions of a measurement, printed if all rows of a file agree."""

BENCH = {
    "face": "`warpkit.opencv` beside cv2, with its pixels",
    "warps_cpu": "Warps on the CPU beside grid_sample, kornia and OpenCV",
}
"""The files that `warpkit bench` wrote, and their titles."""

Row = dict[str, str]


def files() -> dict[str, list[Row]]:
    """The rows of every file, by its name."""
    rows_of = {}
    for path in sorted(ROWS.glob("*.csv")):
        with path.open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if row.get("way")]
        if rows:
            rows_of[path.stem] = rows
    return rows_of


def case_of(row: Row) -> str:
    """The name of a case: the columns before `way`, without empty ones."""
    columns = list(row)
    parts = [(name, row[name]) for name in columns[: columns.index("way")] if row[name]]
    return ", ".join(
        f"{int(v):,} {name.removesuffix('s') if v == '1' else name}" if v.isdigit() else v
        for name, v in parts
    )


def milliseconds(row: Row) -> str:
    """The time of one call, from whichever column has it."""
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
    """The conditions of a file's measurement, in words."""
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
        *(
            f"![What other ways take, in times warpkit's time](images/benchmarks-{name}{theme}.svg"
            f"#only-{'dark' if theme else 'light'})"
            for theme in THEMES
        ),
        "",
        "| case | way | ms | times warpkit's |",
        "|---|---|--:|--:|",
    ]
    for case, ways in cases(rows).items():
        for number, row in enumerate(ways):
            label = case if number == 0 else ""
            numbers = f"{milliseconds(row)} | {row['times_warpkit']}"
            lines.append(f"| {label} | {row['way']} | {numbers} |")
    return "\n".join(lines)


def about(name: str) -> str:
    """The description of the benchmark that wrote a file, and how to run it."""
    if name in BENCH:
        return f"{BENCH[name]} (`scripts/bench`).\n"
    path = Path(__file__).with_name(f"{name}.py")
    if not path.exists():
        return ""
    first = path.read_text().removeprefix('"""').split("\n")[0]
    return f"{re.split(': (?:python )?-m ', first)[0]} (`python -m benchmarks.{name}`).\n"


def pictures() -> dict[str, str]:
    """A plot for each file and theme, as SVG."""
    return {
        f"benchmarks-{name}{theme}": picture(title(name), rows, *colours)
        for name, rows in files().items()
        for theme, colours in THEMES.items()
    }


def title(name: str) -> str:
    """The description of a file's benchmark, or the file's name if it has none."""
    return about(name).split(" (`")[0].replace("`", "") or name


def library_of(way: str) -> str:
    """The library of a way; ways without a library's name are written in torch."""
    return next(name for name, (_, _, begins) in LIBRARIES.items() if way.startswith(begins))


def styles(ways: Iterable[str]) -> dict[str, dict[str, str]]:
    """The style of each way in a plot: its library's colour and marker, and its own fill."""
    counts: Counter[str] = Counter()
    by_way = {}
    for way in ways:
        library = library_of(way)
        colour, marker, _ = LIBRARIES[library]
        fill = FILLS[(counts[library] + (library == "warpkit")) % len(FILLS)]
        by_way[way] = {"color": colour, "marker": marker, "fillstyle": fill}
        counts[library] += 1
    return by_way


def ratios(rows: list[Row]) -> dict[str, list[tuple[str, float]]]:
    """The time of every other way as a multiple of warpkit's, for each case."""
    by_case = {
        case: [(row["way"], float(row["times_warpkit"])) for row in ways if row["way"] != "warpkit"]
        for case, ways in cases(rows).items()
    }
    return {case: each for case, each in by_case.items() if each}


def picture(title: str, rows: list[Row], paper: str, ink: str, grid: str) -> str:
    """One line per way of each case; right of 1 warpkit is faster."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    rows_of = ratios(rows)
    own = [milliseconds(ways[0]) for case, ways in cases(rows).items() if case in rows_of]
    style_of = styles(sorted({way for each in rows_of.values() for way, _ in each}))
    parts = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    params = {**dict.fromkeys(parts, ink), "axes.facecolor": paper, "grid.color": grid}
    # hashsalt: the same at every run
    with mpl.rc_context({"svg.hashsalt": "warpkit", "font.size": 9, **params}):
        height = 1.5 + sum(0.16 + 0.12 * len(each) for each in rows_of.values())
        figure = Figure(figsize=(8.5, height), layout="constrained")
        axes = figure.add_subplot()
        axes.axvline(1, color=LIBRARIES["warpkit"][0], linewidth=1.5, label="warpkit")
        places, line = [], 0.0
        for each in rows_of.values():
            places.append(line + 0.5 * (len(each) - 1))
            for way, ratio in each:  # one line each, because equal ratios would hide each other
                style, label = style_of[way], f"_{way}"
                axes.plot((1, ratio), (line, line), color=style["color"], linewidth=1, zorder=1)
                axes.plot(ratio, line, **style, linestyle="", label=label, markerfacecoloralt=paper)
                line += 1.0
            line += 1.3
        for way, style in style_of.items():
            axes.plot([], [], **style, linestyle="", label=way, markerfacecoloralt=paper)
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_yticks(places, list(rows_of))
        axes.set_ylim(line - 0.8, -1)
        right = axes.secondary_yaxis("right")
        right.set_yticks(places, [f"{ms} ms" for ms in own])
        right.set_ylabel("warpkit's time")
        axes.set_xlabel("time of a call, in multiples of warpkit's (right of 1: warpkit is faster)")
        axes.grid(axis="x")
        axes.spines[["top", "right", "left"]].set_visible(False)
        right.spines["right"].set_visible(False)
        for side in (axes, right):
            side.tick_params(axis="y", length=0)
        figure.suptitle(textwrap.fill(title, 90), fontsize=11)
        figure.legend(loc="outside lower center", ncols=4, frameon=False)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", facecolor=paper, metadata={"Date": None})
    return buffer.getvalue()


def write(folder: Path) -> None:
    """Write the plots into a folder."""
    for name, svg in pictures().items():
        (folder / f"{name}.svg").write_text(svg)
        print(f"wrote {folder / name}.svg")
