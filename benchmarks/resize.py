"""`resize` on the CPU beside torch, torchvision, cv2 and Pillow: python -m benchmarks.resize

The ways of a group compute the same result, which is proved first: 8-bit values equal cv2's or
Pillow's (torchvision's differ from Pillow's by a few levels, see docs), floats agree to 2e-4. All
are timed in turns with equal numbers of threads, and allocate their results; cv2 and Pillow process
image by image. The ratio is the median over the turns of (other / warpkit): above 1, warpkit is
faster.
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
import torch.nn.functional as F
import torchvision.transforms.v2.functional as transforms
from PIL import Image
from torch import Tensor

import warpkit as wk
from warpkit.cli.bench.timing import PAUSE, Turns, in_turns, ratio
from warpkit.core.environment import processor

ROWS = Path(__file__).parents[1] / "data" / "benchmarks" / "resize.csv"
SECONDS = 2.0
"""The time for each workload."""

SIZES = (
    ((512, 512), (224, 224)),
    ((1024, 1024), (224, 224)),
    ((2160, 3840), (1080, 1920)),
    ((224, 224), (512, 512)),
)
GROUPS = (
    "float32 antialias",
    "float32 antialias, gradients",
    "float32 points",
    "float32 points, gradients",
    "uint8 Pillow bilinear",
    "uint8 cv2 linear",
    "uint8 cv2 area",
)
LARGEST = 1_500_000
"""Images with more pixels are not timed in batches of 32."""


class Workload(NamedTuple):
    """The operation, and the number of RGB images."""

    group: str
    batch: int
    source: tuple[int, int]
    target: tuple[int, int]


WORKLOADS = [
    Workload(group, batch, source, target)
    for source, target in SIZES
    for batch in (1, 32)
    for group in GROUPS
    if batch == 1 or source[0] * source[1] < LARGEST
]

Call = Callable[[], object]


def both_ways(function: Callable[[Tensor], Tensor], image: Tensor, grad: Tensor) -> None:
    """Forward, and the gradient to the image."""
    image = image.detach().requires_grad_()
    torch.autograd.grad(function(image), image, grad)


def floats(work: Workload) -> dict[str, Call]:
    """warpkit and F.interpolate."""
    image, antialias = torch.rand(work.batch, 3, *work.source), "antialias" in work.group
    ways: dict[str, Callable[[Tensor], Tensor]] = {
        "warpkit": partial(wk.resize, size=work.target, antialias=antialias),
        "F.interpolate": partial(
            F.interpolate, size=work.target, mode="bilinear", antialias=antialias
        ),
    }
    results = [way(image) for way in ways.values()]
    torch.testing.assert_close(*results, rtol=0, atol=2e-4)
    if "gradients" not in work.group:
        return {name: partial(way, image) for name, way in ways.items()}
    grad = torch.rand_like(results[0])
    return {name: partial(both_ways, way, image, grad) for name, way in ways.items()}


def bytes_of(work: Workload) -> dict[str, Call]:
    """warpkit, and the library whose pixels it computes; the images are (N, H, W, C) in memory."""
    random = np.random.default_rng(0)
    arrays = random.integers(0, 256, (work.batch, *work.source, 3), dtype=np.uint8)
    image, dsize = torch.from_numpy(arrays).permute(0, 3, 1, 2), work.target[::-1]
    if "Pillow" in work.group:
        pictures = [Image.fromarray(array) for array in arrays]
        calls: dict[str, Call] = {
            "warpkit": lambda: wk.resize(image, work.target, arithmetic="pillow"),
            "Pillow": lambda: [p.resize(dsize, Image.Resampling.BILINEAR) for p in pictures],
            "torchvision": lambda: transforms.resize(image, list(work.target)),
        }
        wanted = np.stack([np.array(p.resize(dsize, Image.Resampling.BILINEAR)) for p in pictures])
    else:
        name, flag = ("area", cv2.INTER_AREA), ("bilinear", cv2.INTER_LINEAR)
        name, flag = name if "area" in work.group else flag
        arithmetic = wk.opencv.installed_arithmetic()
        options = {"interpolation": name, "arithmetic": arithmetic}
        calls = {
            "warpkit": lambda: wk.resize(image, work.target, **options),
            "cv2": lambda: [cv2.resize(array, dsize, interpolation=flag) for array in arrays],
        }
        wanted = np.stack([cv2.resize(array, dsize, interpolation=flag) for array in arrays])
    got = calls["warpkit"]()
    assert isinstance(got, Tensor)
    differing = int((got.permute(0, 2, 3, 1).numpy() != wanted).sum())
    assert differing == 0, f"{work}: {differing} values differ"
    return calls


def measure(work: Workload, seconds: float) -> Iterator[dict[str, object]]:
    """One row for each way."""
    calls = floats(work) if work.group.startswith("float32") else bytes_of(work)
    load = os.getloadavg()[0]
    how = Turns(seconds=seconds, at_least=3, untimed=2, warm=True, pause=PAUSE)
    times = in_turns(calls, how)
    for name, spent in times.items():
        yield {
            "computes": work.group,
            "batch": work.batch,
            "from": "x".join(map(str, work.source)),
            "to": "x".join(map(str, work.target)),
            "way": name,
            "ms": f"{statistics.median(spent) * 1e3:.4g}",
            "least_ms": f"{min(spent) * 1e3:.4g}",
            "times_warpkit": f"{ratio(spent, times['warpkit']):.2f}",
            "turns": len(spent),
            "threads": torch.get_num_threads(),
            "load": f"{load:.1f}",
            "machine": processor(),
            **{name: version(name) for name in ("torch", "torchvision", "pillow")},
            "cv2": cv2.__version__,
            "warpkit": wk.__version__,
            "date": time.strftime("%Y-%m-%d"),
        }


def main() -> None:
    """Measure and print; write the rows where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each workload")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", help="groups whose name contains this")
    parser.add_argument("--out", type=Path, help=f"a CSV file to write, such as {ROWS.name}")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    cv2.setNumThreads(options.threads)
    rows = []
    for work in WORKLOADS:
        if options.only not in work.group:
            continue
        for row in measure(work, options.seconds):
            rows.append(row)
            keys = ("computes", "batch", "from", "to", "way", "ms", "times_warpkit")
            print("  ".join(f"{row[key]!s:<12}" for key in keys), flush=True)
    if options.out:
        with options.out.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
