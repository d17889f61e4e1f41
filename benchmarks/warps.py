"""Warps on the CPU against grid_sample, kornia and OpenCV: python -m benchmarks.warps

Every workload first proves that its ways agree, then times them in turns, all outputs allocated as
each way does. The ratio is the median over the turns of (other / warpkit).
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

import warpkit as wk

ROWS = Path(__file__).parents[1] / "data" / "benchmarks" / "warps_cpu.csv"
TURNS = 21
LOAD = os.getloadavg()[0]


class Workload(NamedTuple):
    """An image size, matrices for each image (or for the one), and what is done."""

    name: str
    shape: tuple[int, int, int, int]
    matrices: int
    gradients: bool = False
    interpolation: str = "bilinear"


LARGE, HUGE, SMALL, DEEP = (8, 3, 512, 512), (1, 3, 2160, 3840), (64, 3, 64, 64), (32, 64, 56, 56)
WORKLOADS = [
    Workload("8x3x512x512", LARGE, 8),
    Workload("8x3x512x512", LARGE, 8, gradients=True),
    Workload("1x3x2160x3840", HUGE, 1),
    Workload("1x3x2160x3840", HUGE, 1, gradients=True),
    Workload("64x3x64x64", SMALL, 64),
    Workload("64x3x64x64", SMALL, 64, gradients=True),
    Workload("32x64x56x56", DEEP, 32),
    Workload("32x64x56x56", DEEP, 32, gradients=True),
    Workload("one 224x224, 64 matrices", (1, 3, 224, 224), 64),
    Workload("one 224x224, 64 matrices", (1, 3, 224, 224), 64, gradients=True),
    Workload("one 1x3x32x32 call", (1, 3, 32, 32), 1),
    Workload("8x3x512x512", LARGE, 8, interpolation="bicubic"),
    Workload("8x3x512x512", LARGE, 8, interpolation="nearest"),
]


def ways(work: Workload) -> Iterator[tuple[str, Callable[..., Tensor], list[Tensor]]]:
    """Each way's name, its function, and its inputs: an image and a map in its own convention."""
    items, channels, height, width = work.shape
    image = torch.rand(work.shape)
    size, mode = (height, width), {"mode": work.interpolation}
    center = ((width - 1) / 2, (height - 1) / 2)
    matrix = wk.rotation_matrix(center, torch.full((work.matrices,), 33.0), 1.1)
    warp = partial(wk.warp_affine, interpolation=work.interpolation)
    yield "warpkit", warp, [image, matrix]

    def grid_sample(image: Tensor, theta: Tensor) -> Tensor:
        grid = F.affine_grid(theta, [work.matrices, channels, *size], align_corners=False)
        image = image.expand(work.matrices, *image.shape[1:])
        return F.grid_sample(image, grid, align_corners=False, **mode)

    yield "grid_sample", grid_sample, [image, wk.to_theta(matrix, size, size).float()]
    if work.interpolation != "bicubic":  # kornia's has another grid than its bilinear one
        from kornia.geometry.transform import warp_affine as kornia_warp

        def kornia(image: Tensor, matrix: Tensor) -> Tensor:
            image = image.expand(work.matrices, *image.shape[1:])
            return kornia_warp(image, matrix, size, align_corners=True, **mode)

        yield "kornia", kornia, [image, matrix]
    if not work.gradients and work.matrices == items and channels == 3:
        yield (
            "cv2",
            partial(opencv, matrix.double().numpy(), work.interpolation),
            [image.permute(0, 2, 3, 1).contiguous()],
        )


def opencv(matrices: np.ndarray, interpolation: str, images: Tensor) -> Tensor:
    """cv2.warpAffine in a loop over (H, W, C) images; the result as the others have it."""
    import cv2

    cv2.setNumThreads(torch.get_num_threads())
    flags = {"nearest": cv2.INTER_NEAREST, "bilinear": cv2.INTER_LINEAR}
    flags |= {"bicubic": cv2.INTER_CUBIC}
    height, width = images.shape[1:3]
    warped = [
        cv2.warpAffine(image, matrix, (width, height), flags=flags[interpolation])
        for image, matrix in zip(images.numpy(), matrices, strict=True)
    ]
    if len(warped) == 1:
        return torch.from_numpy(warped[0])[None].permute(0, 3, 1, 2)
    return torch.stack([torch.from_numpy(w) for w in warped]).permute(0, 3, 1, 2)


def opencv_loop(matrices: np.ndarray, interpolation: str, images: Tensor) -> None:
    """The same without the stacking, for the clock."""
    for n in range(len(matrices)):
        opencv(matrices[n : n + 1], interpolation, images[n : n + 1])


def prepare(work: Workload) -> dict[str, Callable[[], object]]:
    """The calls to time, after a proof that they agree."""
    calls: dict[str, Callable[[], object]] = {}
    wanted = None
    for name, function, inputs in ways(work):
        result = function(*inputs)
        wanted = result if wanted is None else wanted
        # float32 coordinates are off by up to 2e-4 pixels at 4K, and a nearest pixel may flip
        far = ((result - wanted).abs() > 5e-3).double().mean().item()
        assert far < 1e-3, f"{work.name}: {name} differs in {far:.1%} of the values"
        if name == "cv2":
            calls[name] = partial(opencv_loop, *function.args, *inputs)
        elif work.gradients:
            calls[name] = partial(both_ways, function, inputs, torch.rand_like(result))
        else:
            calls[name] = partial(function, *inputs)
    return calls


def both_ways(function: Callable[..., Tensor], inputs: list[Tensor], grad: Tensor) -> None:
    """Forward, and the gradients to image and map."""
    inputs = [x.detach().requires_grad_() for x in inputs]
    torch.autograd.grad(function(*inputs), inputs, grad)


def measure(work: Workload, turns: int) -> Iterator[dict[str, object]]:
    """One row for each way."""
    calls = prepare(work)
    repeat = 200 if work.shape[0] * work.shape[-1] < 64 else 1
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(turns + 1):  # the first turn warms up
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(repeat):
                call()
            times[name].append((time.perf_counter() - start) / repeat)
    for name, seconds in times.items():
        pairs = zip(seconds[1:], times["warpkit"][1:], strict=True)
        yield {
            "workload": work.name,
            "interpolation": work.interpolation,
            "does": "forward + gradients" if work.gradients else "forward",
            "way": name,
            "ms": f"{statistics.median(seconds[1:]) * 1e3:.4g}",
            "times_warpkit": f"{statistics.median(a / b for a, b in pairs):.2f}",
            "turns": turns,
            "threads": torch.get_num_threads(),
            "load": f"{LOAD:.1f}",
            "machine": machine(),
            **{name: version(name) for name in ("torch", "numba", "kornia")},
            "warpkit": wk.__version__,
            "date": time.strftime("%Y-%m-%d"),
        }


def machine() -> str:
    """The CPU's name."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(": ")[1] for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def main() -> None:
    """Measure and print; write the rows where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="5 turns each")
    parser.add_argument("--only", default="", help="workloads whose name contains this")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, help=f"a CSV file to write, such as {ROWS.name}")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows = []
    for work in WORKLOADS:
        if options.only in work.name:
            for row in measure(work, 5 if options.quick else TURNS):
                rows.append(row)
                keys = ("workload", "interpolation", "does", "way", "ms", "times_warpkit")
                print("  ".join(f"{row[key]!s:<20}" for key in keys), flush=True)
    if options.out and rows:
        with options.out.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
