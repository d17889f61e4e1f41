"""Identify random data sets, each from its pairs alone: data/identify/pairs.csv.

    scripts/identify pairs --seed 0 --count 300 --out data/identify/pairs.csv
    scripts/identify pairs --table data/identify/pairs.csv

Of ten runs four are lossless, two are decoded from JPEG, two are JPEG files, and two mix the
results of two programs. The results are:

- whole: every attribute matches the code
- alike: every attribute but the arithmetic; the remaining libraries give the same bits
- first: the first candidate has the right filter
- parted: both groups are exact
- open: some attribute stays unknown
- wrong: some attribute is wrong; the exit status is 1
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import cv2
import torch

from tests.support.drawn_pairs import KINDS, draw_run, judged, kinds_of
from warpkit.validation import identify_pairs

COLUMNS = ("seed", "kind", "name", "pairs", "result", "seconds", "said")
RESULTS = ("whole", "alike", "first", "parted", "open", "not", "wrong")

Row = dict[str, Any]


def row_of(seed: int, kind: str) -> Row:
    """One run, and the CPU seconds that it took."""
    run = draw_run(seed, kind)
    begun = time.process_time()
    try:
        answer = identify_pairs(run.images, run.results)
    except ValueError as error:
        result, text = "not", str(error)
    else:
        seconds = time.process_time() - begun
        result, text = judged(run, answer)
    seconds = round(time.process_time() - begun, 2)
    values = (seed, kind, run.name, len(run.images), result, seconds, " ".join(text.split()))
    return dict(zip(COLUMNS, values, strict=True))


def table(rows: list[Row]) -> str:
    """The counts of each kind as a Markdown table."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for line in rows:
        counts[line["kind"]][line["result"]] += 1
    lines = ["| kind | runs | " + " | ".join(RESULTS) + " |", "|---" * (len(RESULTS) + 2) + "|"]
    for kind in KINDS:
        numbers = [str(counts[kind][result]) for result in RESULTS]
        lines.append(f"| {kind} | {counts[kind].total()} | " + " | ".join(numbers) + " |")
    seconds = sorted(float(line["seconds"]) for line in rows)
    middle, most = seconds[len(seconds) // 2], seconds[-1]
    return "\n".join([*lines, "", f"CPU seconds per run: median {middle:.2f}, at most {most:.2f}."])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--out", type=Path, default=Path("/dev/null"))
    parser.add_argument("--table", type=Path, help="print the table of this file")
    options = parser.parse_args()
    if options.table is not None:
        with options.table.open(newline="") as file:
            print(table(list(csv.DictReader(file))))
        return 0
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    seeds = range(options.seed, options.seed + options.count)
    rows = []
    with options.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for seed, kind in zip(seeds, kinds_of(seeds), strict=True):
            if options.kind not in (None, kind):
                continue
            line = row_of(seed, kind)
            rows.append(line)
            writer.writerow(line)
            file.flush()
            if line["result"] in ("open", "not", "wrong"):
                print(*(line[column] for column in COLUMNS), flush=True)
    print(table(rows))
    return int(any(line["result"] == "wrong" for line in rows))


if __name__ == "__main__":
    sys.exit(main())
