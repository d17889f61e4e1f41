"""What benchmarks share: their cases, the command line, and the rows of their tables.

Ways are timed in turns on one thread. Times are the processor's, which other load hardly changes,
and ratios are medians over the turns, so that a slow moment affects both.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
import time
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import torch

import warpkit as wk
from warpkit.cli.bench.timing import Turns, in_turns, ratio
from warpkit.core.environment import processor

FOLDER = Path(__file__).parents[1] / "data" / "benchmarks"
LOAD = os.getloadavg()[0]

Way = Callable[[], Any]


class Case(NamedTuple):
    """Several ways to compute the same result; the first is warpkit's."""

    name: str
    ways: dict[str, Way]
    aim: str = ""


def about() -> dict[str, object]:
    """The machine and the versions of a measurement."""
    return {
        "threads": torch.get_num_threads(),
        "load": f"{LOAD:.1f}",  # load slows many small steps most
        "machine": processor(),
        "torch": torch.__version__,
        "warpkit": wk.__version__,
        "date": time.strftime("%Y-%m-%d"),
    }


def rows_of(case: Case, seconds: float) -> Iterable[dict[str, object]]:
    """One row for each way."""
    how = Turns(seconds=seconds, at_least=5, untimed=2, clock=time.process_time, rotate=True)
    seconds_of = in_turns(case.ways, how)
    first = next(iter(seconds_of.values()))
    for name, times in seconds_of.items():
        yield {
            "case": case.name,
            "way": name,
            "ms": f"{1e3 * statistics.median(times):.4g}",
            "least_ms": f"{1e3 * min(times):.4g}",
            "times_warpkit": f"{ratio(times, first):.2f}",
            "aim": case.aim,
            "turns": len(times),
        }


HELP = {
    "seconds": "for each case",
    "only": "cases whose name contains this",
    "noise": "note on other load of the machine",
}


def table(
    about_it: str | None,
    name: str,
    rows: Callable[[argparse.Namespace], Iterable[dict[str, object]]],
    *,
    columns: int = 5,
    **defaults: object,
) -> None:
    """Print rows as they are measured, and write data/benchmarks/NAME.csv.

    columns: the number of columns that are printed. defaults: options of the command line and their
    values, which `rows` gets: seconds, turns, only, noise, and threads, 1 without this option.
    """
    parser = argparse.ArgumentParser(description=about_it)
    for option, value in defaults.items():
        parser.add_argument(f"--{option}", type=type(value), default=value, help=HELP.get(option))
    parser.add_argument("--csv", type=Path, default=FOLDER / f"{name}.csv")
    options = parser.parse_args()
    torch.set_num_threads(getattr(options, "threads", 1))
    written_rows = []
    for row in rows(options):
        written_rows.append(row)
        print(*list(row.values())[:columns], sep="  ", flush=True)
    with options.csv.open("w", newline="") as file:
        writer = csv.DictWriter(file, written_rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(written_rows)


def main(
    about_it: str | None,
    name: str,
    cases: Callable[[], Iterable[Case]],
    *,
    seconds: float,
    packages: Iterable[str] = (),
) -> None:
    """Measure all cases, print them, and write data/benchmarks/NAME.csv.

    seconds: for each case, by default; packages: those whose versions matter.
    """
    versions = {package: version(package) for package in packages}

    def rows(options: argparse.Namespace) -> Iterable[dict[str, object]]:
        for case in cases():
            if options.only in case.name:
                for row in rows_of(case, options.seconds):
                    yield {**row, **about(), **versions, "noise": options.noise}

    table(about_it, name, rows, seconds=seconds, only="", noise="")
