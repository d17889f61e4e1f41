"""Warps on a CUDA device, compared with grid_sample, kornia and a copy: scripts/bench --device cuda

Every case first proves that its ways agree, then times them in turns with device events, and beside
these the host's part of a call. Inputs rotate through several sets, so that no cache holds them;
each way's map is in its own form before the clock starts. kornia takes part where it is installed.
Rows are written as they are measured. The targets for an H200 or similar GPU: forward >= 70 % of a
copy's bandwidth, with gradients >= 3 times grid_sample, extra memory <= 1.1 times the output, one
image under 1024 matrices >= 8 times an expanded image.

Without a device nothing is timed, but the ways of every case are checked on small images.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

import warpkit as wk

ROWS = Path(__file__).parents[1] / "data" / "benchmarks" / "cuda.csv"
TURNS = 31
SETS = 4
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PACKAGES = ("torch", "triton", "kornia")
Way = Callable[[Tensor, Tensor], Tensor]


class Case(NamedTuple):
    """An image's shape, the number of maps, and the operation."""

    name: str
    shape: tuple[int, int, int, int]
    maps: int
    dtype: torch.dtype = torch.float32
    gradients: bool = False
    interpolation: str = "bilinear"
    last: bool = False
    points: bool = False
    bar: str = ""


LARGE, ONE = (64, 3, 512, 512), (1, 3, 224, 224)


def cases() -> Iterator[Case]:
    """All cases, those with targets first."""
    for dtype in (torch.float32, torch.float16):
        yield Case("64x3x512x512", LARGE, 64, dtype, bar="copy >= 0.7")
    yield Case("64x3x512x512", LARGE, 64, gradients=True, bar="grid_sample >= 3")
    yield Case("one under 1024", ONE, 1024, bar="grid_sample >= 8")
    yield Case("one under 1024", ONE, 1024, gradients=True)
    yield Case("64x3x512x512", LARGE, 64, torch.bfloat16)
    yield Case("64x3x512x512", LARGE, 64, torch.float16, gradients=True)
    yield Case("64x3x512x512 last", LARGE, 64, last=True)
    yield Case("32x64x56x56 last", (32, 64, 56, 56), 32, gradients=True, last=True)
    yield Case("64x3x512x512 points", LARGE, 64, points=True)
    yield Case("64x3x512x512 points", LARGE, 64, points=True, gradients=True)
    for interpolation in ("nearest", "bicubic", "lanczos4"):
        yield Case("64x3x512x512", LARGE, 64, interpolation=interpolation)
        yield Case("64x3x512x512", LARGE, 64, interpolation=interpolation, gradients=True)


def inputs(case: Case) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Sets of an image, a map and a gradient."""
    height, width = case.shape[-2:]
    layout = torch.channels_last if case.last else torch.contiguous_format
    sets = []
    for n in range(SETS):
        generator = torch.Generator(device=DEVICE).manual_seed(n)
        options = {"generator": generator, "device": DEVICE}
        image = torch.rand(case.shape, **options).to(case.dtype, memory_format=layout)
        grad = torch.rand((case.maps, *case.shape[1:]), **options)
        angle = 33.0 + torch.rand(case.maps, **options)
        where = wk.rotation_matrix(((width - 1) / 2, (height - 1) / 2), angle, 1.1)
        if case.points:
            where = points_of(where, case.shape[-2:])
        sets.append((image, where, grad.to(case.dtype, memory_format=layout)))
    return sets


def points_of(matrix: Tensor, size: tuple[int, int]) -> Tensor:
    """The source point of every output pixel."""
    y, x = torch.meshgrid(*(torch.arange(n, device=DEVICE) for n in size), indexing="ij")
    at = torch.stack((x, y), -1).reshape(-1, 2).double()
    return wk.transform_points(wk.invert(matrix.double()), at).reshape(-1, *size, 2).float()


def own_map(case: Case, way: str, where: Tensor) -> Tensor:
    """The map in a way's own form: for grid_sample a theta, or a grid from -1 to 1."""
    size = case.shape[-2:]
    if way != "grid_sample":
        return where
    if case.points:
        return (2 * where + 1) / where.new_tensor(size[::-1]) - 1
    return wk.to_theta(where, size, size).float()


def ways(case: Case) -> Iterator[tuple[str, Way]]:
    """Each way's name and function of an image and a map of `own_map`."""
    (height, width), maps = case.shape[-2:], case.maps
    call = wk.remap if case.points else wk.warp_affine
    yield "warpkit", partial(call, interpolation=case.interpolation)
    if case.interpolation == "lanczos4":
        return

    def grid_sample(image: Tensor, where: Tensor) -> Tensor:
        image = image.expand(maps, *image.shape[1:])
        if not case.points:
            where = F.affine_grid(where, list(image.shape), align_corners=False)
        where = where.to(image.dtype)
        return F.grid_sample(image, where, mode=case.interpolation, align_corners=False)

    yield "grid_sample", grid_sample
    # kornia's bicubic has another grid, and it cannot invert matrices of half types
    if case.points or case.interpolation == "bicubic" or case.dtype != torch.float32:
        return
    if find_spec("kornia") is None:
        return
    from kornia.geometry.transform import warp_affine

    def kornia(image: Tensor, where: Tensor) -> Tensor:
        image = image.expand(maps, *image.shape[1:])
        options = {"mode": case.interpolation, "align_corners": True}
        return warp_affine(image, where, (height, width), **options)

    yield "kornia", kornia


def both_ways(way: Way, image: Tensor, where: Tensor, grad: Tensor) -> tuple[Tensor, ...]:
    """Forward, and the gradients to image and map."""
    leaves = [image.detach().requires_grad_(), where.detach().requires_grad_()]
    return torch.autograd.grad(way(*leaves), leaves, grad, allow_unused=True)


def prove_equal(case: Case, image: Tensor, where: Tensor) -> None:
    """Compare with the reference on at most three images; a nearest pixel may flip."""
    few = slice(0, min(3, case.maps))
    image = image[few] if image.shape[0] == case.maps else image
    call = wk.remap if case.points else wk.warp_affine
    truth = call(image, where[few], interpolation=case.interpolation, backend="reference")
    for name, way in ways(case._replace(maps=where[few].shape[0])):
        far = (way(image, own_map(case, name, where[few])).float() - truth.float()).abs() > 1e-2
        rate = far.double().mean().item()
        # half types also round grid_sample's coordinates: they are off by pixels
        if name == "warpkit" or case.dtype == torch.float32:
            assert rate < 1e-3, f"{case}: {name} differs in {rate:.1%} of the values"


def measure(case: Case, turns: int) -> Iterator[dict[str, object]]:
    """One row for each way."""
    sets = inputs(case)
    prove_equal(case, *sets[0][:2])
    calls: dict[str, Callable[..., object]] = {}
    for name, way in ways(case):
        calls[name] = partial(both_ways, way) if case.gradients else lambda i, w, _, f=way: f(i, w)
    if not case.gradients:
        # reads and writes as many bytes as the output has: a bound for warps of equal sizes
        calls["copy"] = lambda _i, _w, grad: grad.clone()
    inputs_of = {
        name: [(image, own_map(case, name, where), grad) for image, where, grad in sets]
        for name in calls
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    host: dict[str, list[float]] = {name: [] for name in calls}
    memory: dict[str, float] = {}
    for turn in range(turns + 3):
        for name, call in calls.items():
            arguments = inputs_of[name][turn % SETS]
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            start.record()
            begin = time.perf_counter()
            result = call(*arguments)
            called = time.perf_counter() - begin
            end.record()
            torch.cuda.synchronize()
            if turn >= 3:  # the first turns compile kernels and fill the allocator
                times[name].append(start.elapsed_time(end))
                host[name].append(called)
            grad = arguments[2]
            extra = torch.cuda.max_memory_allocated() - before
            memory[name] = extra / (grad.numel() * grad.element_size())
            del result
    for name, seconds in times.items():
        pairs = zip(seconds, times["warpkit"], strict=True)
        yield {
            "case": case.name,
            "does": "forward + gradients" if case.gradients else "forward",
            "interpolation": case.interpolation,
            "dtype": str(case.dtype).removeprefix("torch."),
            "way": name,
            "ms": f"{statistics.median(seconds):.4f}",
            "times_warpkit": f"{statistics.median(a / b for a, b in pairs):.2f}",
            "host_us": f"{1e6 * min(host[name]):.0f}",
            "peak_over_output": f"{memory[name]:.2f}",
            "bar": case.bar,
            "turns": turns,
            "device": torch.cuda.get_device_name(),
            **{name: version(name) if find_spec(name) else "" for name in PACKAGES},
            "warpkit": wk.__version__,
            "date": time.strftime("%Y-%m-%d"),
        }


def rehearse() -> None:
    """Without a device: check that the ways of every case agree on small images."""
    count = 0
    for case in cases():
        shape = (min(case.shape[0], 3), min(case.shape[1], 8), 64, 64)
        small = case._replace(shape=shape, maps=min(case.maps, 3))
        prove_equal(small, *inputs(small)[0][:2])
        count += 1
    print(f"no CUDA device: {count} cases agree on small images by the CPU; nothing was timed")


def main() -> None:
    """Measure all cases; print the rows and write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only the cases with targets, 9 turns")
    parser.add_argument("--out", type=Path, help=f"a CSV file to write, such as {ROWS.name}")
    options = parser.parse_args()
    if DEVICE != "cuda":
        rehearse()
        return
    with options.out.open("w", newline="") if options.out else nullcontext() as file:
        writer = None
        for case in cases():
            if options.quick and not case.bar:
                continue
            for row in measure(case, 9 if options.quick else TURNS):
                print("  ".join(f"{row[key]!s:<20}" for key in list(row)[:10]), flush=True)
                if file is None:
                    continue
                if writer is None:
                    writer = csv.DictWriter(file, row, lineterminator="\n")
                    writer.writeheader()
                writer.writerow(row)
                file.flush()  # a lease may end at any moment


if __name__ == "__main__":
    main()
