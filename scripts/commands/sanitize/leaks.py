"""Call each function of the fuzz tests many times, with gradients, and print how memory grew.

    OMP_NUM_THREADS=1 scripts/sanitize leaks
    OMP_NUM_THREADS=1 scripts/sanitize leaks --calls 10000 --seconds 60 'flows.*' face.resize

Memory is measured after a tenth of the calls and at the end; the exit status is 1 if it grew by
more than a megabyte in between. The arguments are a few valid ones from the function's table of
cases.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import resource
import sys
import time
import warnings
from fnmatch import fnmatch
from itertools import cycle
from pathlib import Path
from typing import Any

from tests.fuzz import (
    test_family,
    test_flows,
    test_images,
    test_models,
    test_numbers,
    test_pipeline,
)
from tests.support.fuzzing import Case, fuzz, gradients, leaves, twice

TABLES: dict[str, tuple[dict[str, Case], ...]] = {
    "images": (test_images.WARPS, test_images.OBJECTS, test_images.DROP_IN),
    "numbers": (test_numbers.CASES,),
    "models": (test_models.CASES,),
    "flows": (test_flows.WARPS, test_flows.CASES, {"align": test_flows.ALIGN}),
    "pipeline": ({"resize": test_pipeline.RESIZE}, test_pipeline.LENSES),
    "face": (test_pipeline.FACE,),
    "family": (test_family.FAMILY, test_family.ATTACKS),
}
FUNCTIONS = {
    f"{group}.{name}": case
    for group, tables in TABLES.items()
    for table in tables
    for name, case in table.items()
}
MEGABYTE = 1 << 20
DIFFERENT = 6


def right_arguments(name: str, case: Case) -> list[dict[str, Any]]:
    """The arguments of some valid calls, the same ones every time."""
    valid: list[dict[str, Any]] = []

    def keep(name: str, case: Case, values: dict[str, Any]) -> None:
        if len(valid) < DIFFERENT and twice(name, case, values) is not None:
            valid.append(values)

    fuzz(name, case._replace(spoiled=()), keep, least=200)
    assert valid, f"{name}: found no valid arguments"
    return valid


def held() -> int:
    """The resident memory of this process in bytes."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def grow(name: str, wanted: int, seconds: float) -> tuple[int, int]:
    """The number of calls, and by how many bytes memory grew after the first tenth of them."""
    warnings.simplefilter("ignore")
    case = FUNCTIONS[name]
    arguments = cycle(right_arguments(name.split(".", 1)[1], case))
    begun, before = time.monotonic(), None
    count = 0
    while count < wanted:
        values = leaves(next(arguments))
        gradients(case.function(**values), values)
        count += 1
        if before is None and (10 * count >= wanted or time.monotonic() - begun > seconds / 10):
            before, wanted = held(), min(wanted, 10 * count)
    return count, held() - (before or 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=600, help="time limit for each function")
    parser.add_argument(
        "pattern", nargs="*", default=["*"], help="names of functions, such as flows.splat"
    )
    options = parser.parse_args()
    chosen = [name for name in FUNCTIONS if any(fnmatch(name, p) for p in options.pattern)]
    if not chosen:
        parser.error(f"no function of that name; there are {', '.join(FUNCTIONS)}")
    # one process per function: memory that one leaves behind is not counted for the next
    forks = multiprocessing.get_context("fork")
    leaking = 0
    for name in chosen:
        with forks.Pool(1) as alone:
            count, grown = alone.apply(grow, (name, options.calls, options.seconds))
        leaking += grown > MEGABYTE
        print(f"{name:36} {count:7} calls {grown / MEGABYTE:+8.2f} MB", flush=True)
    return leaking > 0


if __name__ == "__main__":
    sys.exit(main())
