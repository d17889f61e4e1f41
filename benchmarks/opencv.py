"""`warpkit.opencv` on the CPU, compared with OpenCV at equal pixels: python -m benchmarks.opencv

Every workload first proves that no value differs, then times both in turns, with equal numbers of
threads; each allocates its results. The ratio is the median over the turns of (cv2 / warpkit).
Arithmetic "opencv4" has other pixels than OpenCV 5, and is compared with the reference.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
import torch

import warpkit as wk
import warpkit.opencv as wcv
from warpkit.cli.bench.timing import PAUSE, Turns, in_turns, ratio
from warpkit.core.environment import processor
from warpkit.opencv.values import BORDERS, INTERPOLATIONS

ROWS = Path(__file__).parents[1] / "data" / "benchmarks" / "opencv.csv"
SECONDS = 2.0
"""The time for each workload."""


class Workload(NamedTuple):
    """An image (H, W, C) or (H, W), turned by 33 degrees and enlarged 1.1 times."""

    shape: tuple[int, ...]
    dtype: str = "uint8"
    interpolation: str = "bilinear"
    border: str = "constant"
    arithmetic: str = "opencv5"


SMALL, LARGE, HUGE = (224, 224, 3), (512, 512, 3), (2160, 3840, 3)
WORKLOADS = [
    Workload(SMALL),
    Workload(LARGE),
    Workload(HUGE),
    Workload((512, 512)),
    Workload((512, 512, 4)),
    Workload(LARGE, border="reflect_101"),
    Workload(LARGE, interpolation="nearest"),
    Workload(LARGE, interpolation="bicubic"),
    Workload(LARGE, interpolation="lanczos4"),
    Workload(LARGE, dtype="float32"),
    Workload(LARGE, arithmetic="opencv4"),
    Workload(HUGE, arithmetic="opencv4"),
]


def prepare(work: Workload) -> dict[str, Callable[[], np.ndarray]]:
    """The calls to time, after a proof that they agree."""
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, work.shape).astype(work.dtype)
    height, width = work.shape[:2]
    matrix = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), 33, 1.1)
    flags = {name: number for number, name in INTERPOLATIONS.items() if number != 3}
    modes = {name: number for number, name in BORDERS.items()}
    options = {"flags": flags[work.interpolation], "borderMode": modes[work.border]}
    arguments = (image, matrix, (width, height))
    ours = partial(wcv.warpAffine, *arguments, arithmetic=work.arithmetic, **options)
    theirs = partial(cv2.warpAffine, *arguments, **options)
    same = wcv.installed_arithmetic() == work.arithmetic
    wanted = theirs() if same or work.interpolation == "lanczos4" else reference(image, ours)
    differing = int((ours() != wanted).sum())
    assert differing == 0, f"{work}: {differing} values differ"
    return {"warpkit": ours, "cv2": theirs}


def reference(image: np.ndarray, ours: partial[np.ndarray]) -> np.ndarray:
    """The same warp by the reference backend."""
    planes = torch.from_numpy(np.atleast_3d(image)).permute(2, 0, 1)
    matrix, (width, height), options = *ours.args[1:], ours.keywords
    result = wk.warp_affine(
        planes,
        matrix,
        size=(height, width),
        interpolation=INTERPOLATIONS[options["flags"]],
        border=BORDERS[options["borderMode"]],
        arithmetic=options["arithmetic"],
        backend="reference",
    )
    return result.permute(1, 2, 0).numpy().reshape(image.shape)


def measure(work: Workload, seconds: float) -> Iterator[dict[str, object]]:
    """One row for each way."""
    calls = prepare(work)
    load = os.getloadavg()[0]
    how = Turns(seconds=seconds, at_least=3, untimed=3, warm=True, pause=PAUSE)
    times = in_turns(calls, how)
    for name, spent in times.items():
        yield {
            "image": "x".join(map(str, work.shape)),
            **work._asdict(),
            "way": name,
            "ms": f"{statistics.median(spent) * 1e3:.4g}",
            "least_ms": f"{min(spent) * 1e3:.4g}",
            "times_warpkit": f"{ratio(spent, times['warpkit']):.2f}",
            "turns": len(spent),
            "threads": torch.get_num_threads(),
            "load": f"{load:.1f}",
            "machine": processor(),
            "torch": version("torch"),
            "cv2": cv2.__version__,
            "warpkit": wk.__version__,
            "date": time.strftime("%Y-%m-%d"),
        }


def main() -> None:
    """Measure and print; write the rows where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each workload")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, help=f"a CSV file to write, such as {ROWS.name}")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    cv2.setNumThreads(options.threads)
    rows = []
    for work in WORKLOADS:
        for row in measure(work, options.seconds):
            row.pop("shape")
            rows.append(row)
            keys = ("image", "dtype", "interpolation", "border", "arithmetic", "way")
            print(
                "  ".join(f"{row[key]!s:<12}" for key in (*keys, "ms", "times_warpkit")), flush=True
            )
    if options.out:
        with options.out.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
