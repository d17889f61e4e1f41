"""`warpkit bench`: progress bar, table and CSV file."""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Sequence
from io import TextIOWrapper
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

import warpkit as wk
from warpkit.cli.bench import face
from warpkit.cli.bench.noise import Noise
from warpkit.cli.bench.work import WORKLOADS, measure
from warpkit.cli.image_files import check_target, replacing
from warpkit.core.environment import installed, processor
from warpkit.core.progress import progress_bar
from warpkit.core.tables import print_fitting
from warpkit.engine.arithmetic.guarantees import PACKAGES

TURNS, QUICK = 21, 5


def run(quick: bool, only: str, threads: int, out: Path | None, loud: bool = False) -> int:
    """Measure, print, write the results of a quiet machine, and return the exit status."""
    check_target(out)
    torch.set_num_threads(threads)
    works = (*WORKLOADS, *face.WORKS)
    chosen = [work for work in works if only in f"{work.name} {work.interpolation}"]
    if not chosen:
        names = ", ".join(dict.fromkeys(work.name for work in works))
        raise ValueError(f"--only {only} is in no workload's name: {names}")
    stamp = about(QUICK if quick else TURNS, threads)
    rows, noise = [], Noise(threads)
    with progress_bar("bench", total=len(chosen)) as advance:
        for work in chosen:
            measured = face.measure if isinstance(work, face.FaceWork) else measure
            rows += [row | stamp for row in measured(work, stamp["turns"], noise)]  # pyright: ignore
            advance(work.name)
    console = Console(highlight=False)
    others = list(dict.fromkeys(row["way"] for row in rows if row["way"] != "warpkit"))
    print_fitting(console, lambda names: table(rows, names), others)
    console.print(f"The machine was {noise}.", soft_wrap=True)
    rows = [row | {"noise": noise.word} for row in rows]
    if noise.is_loud and not loud:
        console.print("These times are no result: repeat them on a quiet machine.", soft_wrap=True)
        if out is not None:
            console.print(f"{out} is not written (--loud writes it all the same)", soft_wrap=True)
        return 1
    if out is not None:
        with replacing(out) as file, TextIOWrapper(file, "utf-8", newline="") as text:
            writer = csv.DictWriter(text, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        console.print(f"wrote {out}", markup=False, soft_wrap=True)
    return 0


def about(turns: int, threads: int) -> dict[str, Any]:
    """The columns about the machine and the versions, which every row has."""
    return {
        "turns": turns,
        "threads": threads,
        "load": f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "",
        "machine": processor(),
        **{name: installed(name) for name in ("torch", "kornia")},
        "opencv": next(filter(None, map(installed, PACKAGES)), ""),
        "warpkit": wk.__version__,
        "date": time.strftime("%Y-%m-%d"),
    }


def table(rows: list[dict[str, Any]], others: Sequence[str]) -> Table:
    """warpkit's time in milliseconds, and the others' times relative to it."""
    result = Table()
    result.add_column("workload")
    result.add_column("")
    for name in ("warpkit, ms", *others):
        result.add_column(name, justify="right", no_wrap=True)
    keys = ("workload", "interpolation", "does")
    for case, group in groupby(rows, key=lambda row: tuple(row[key] for key in keys)):
        row_of = {row["way"]: row for row in group}
        ratios = (f"{row_of[way]['times_warpkit']}x" if way in row_of else "" for way in others)
        name, interpolation, does = case
        result.add_row(name, f"{interpolation}, {does}", row_of["warpkit"]["ms"], *ratios)
    return result
