"""Objects in images against loops and roi_align, there and back: python -m benchmarks.patches

Every case first proves that its ways agree in value and gradients, then times them in turns. The
ratio is the median over the turns of (other / warpkit), so that a slow moment hits both. Memory is
the most that one forward and backward holds beyond what it was handed: torch's by its own profiler,
and numpy's, which the compiled kernels write to, by tracemalloc; the two peaks are added up.
The processor's time is beside the clock's: on a machine that others use, it is the steadier figure.
"""

from __future__ import annotations

import argparse
import csv
import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from torch.testing import assert_close

import warpkit as wk
from benchmarks.indexing import about
from warpkit.kernels.cpu.memory import release

ROWS = Path(__file__).parents[1] / "data" / "benchmarks" / "patches.csv"
BATCH, SIZE, SIDE = 4, 256, 32


class Objects(NamedTuple):
    """Images, boxes of 32 x 32 pixels, thetas and the index; leaves that need a gradient first."""

    images: Tensor
    theta: Tensor
    boxes: Tensor
    index: Tensor


Way = Callable[[Objects], Tensor]


class Case(NamedTuple):
    name: str
    objects: int
    ways: dict[str, Way]
    most: int | None = None
    """Turns that a slow way is worth; all of them if None."""


def inputs(count: int, dtype: torch.dtype = torch.float32) -> Objects:
    """Noise, and boxes anywhere within it."""
    generator = torch.Generator().manual_seed(0)
    low = torch.randint(0, SIZE - SIDE + 1, (count, 2), generator=generator)
    turn = 0.2 * torch.randn(count, 2, 3, generator=generator)
    return Objects(
        torch.rand(BATCH, 3, SIZE, SIZE, generator=generator).to(dtype).requires_grad_(),
        (torch.eye(2, 3) + turn).to(dtype).requires_grad_(),
        torch.cat((low, low + SIDE), 1).to(dtype),
        torch.randint(0, BATCH, (count,), generator=generator),
    )


def warpkit_last(given: Objects) -> Tensor:
    return wk.transform_patches(given.images, given.boxes, given.theta, given.index, space="theta")


def warpkit_sequential(given: Objects) -> Tensor:
    return wk.transform_patches(
        given.images, given.boxes, given.theta, given.index, space="theta", overlap="sequential"
    )


def loop(given: Objects, *, sequential: bool, copy: bool) -> Tensor:
    """What people write: slice, grid_sample, put back, with a copy where autograd wants one."""
    images, theta, boxes, index = given
    result = images.clone()
    places = zip(index.tolist(), boxes.long().tolist(), strict=True)
    for i, (b, (x1, y1, x2, y2)) in enumerate(places):
        source = (result if sequential else images)[b : b + 1, :, y1:y2, x1:x2]
        grid = F.affine_grid(theta[i : i + 1], list(source.shape), align_corners=False)
        if copy:
            result = result.clone()
        result[b, :, y1:y2, x1:x2] = F.grid_sample(source, grid, align_corners=False)[0]
    return result


def copying_loop(given: Objects) -> Tensor:
    return loop(given, sequential=False, copy=True)


def in_place_loop(given: Objects) -> Tensor:
    """Without the copies: right where every object reads the original."""
    return loop(given, sequential=False, copy=False)


def sequential_loop(given: Objects) -> Tensor:
    return loop(given, sequential=True, copy=True)


def crop(given: Objects) -> Tensor:
    # roi_align clamps points to the image within a pixel of it
    size, border = (SIDE, SIDE), "replicate"
    return wk.crop_patches(given.images, given.boxes + 0.25, given.index, size, border=border)


def roi_align(given: Objects) -> Tensor:
    from torchvision.ops import roi_align

    rois = torch.cat((given.index[:, None].to(given.boxes.dtype), given.boxes + 0.25), 1)
    return roi_align(given.images, rois, (SIDE, SIDE), sampling_ratio=1, aligned=True)


def cases() -> Iterator[Case]:
    loops = {"in-place loop": in_place_loop, "copying loop": copying_loop}
    yield Case("transform, last", 400, {"warpkit": warpkit_last, **loops})
    yield Case("transform, last", 4000, {"warpkit": warpkit_last, **loops}, most=1)
    sequential = {"warpkit": warpkit_sequential, "copying loop": sequential_loop}
    yield Case("transform, sequential", 400, sequential)
    yield Case("crop", 400, {"warpkit": crop, "roi_align": roi_align})


def run(way: Way, given: Objects) -> list[Tensor | None]:
    """Forward and backward: the value and both gradients."""
    value = way(given)
    weight = torch.linspace(-1, 1, value.numel(), dtype=value.dtype).reshape(value.shape)
    leaves = (given.images, given.theta)
    gradients = torch.autograd.grad(value, leaves, weight, allow_unused=True)
    return [value.detach(), *gradients]


def prove_equal(case: Case) -> None:
    """Values and gradients of all ways against warpkit's, in float64 at 200 objects."""
    given = inputs(200, torch.float64)
    ours = run(case.ways["warpkit"], given)
    for way in case.ways.values():
        for mine, other in zip(ours, run(way, given), strict=True):
            if mine is not None and other is not None:
                assert_close(other, mine, rtol=0, atol=1e-9)


def memory(way: Way, given: Objects) -> float:
    """The peaks, in MB, of what torch and numpy have allocated and not freed during one run."""
    run(way, given)  # compile first
    gc.collect()
    release()  # what waits to be used again would not be counted
    tracemalloc.start()
    kept = run(way, given)
    del kept
    arrays = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        kept = run(way, given)
    del kept
    held = peak = 0
    events = record.profiler.kineto_results.events() if record.profiler else []
    changes = [(e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]"]
    for _, change in sorted(changes, key=lambda item: item[0]):
        held += change
        peak = max(peak, held)
    return (peak + arrays) / 1e6


def measure(case: Case, turns: int) -> Iterator[dict[str, object]]:
    """One row for each way."""
    prove_equal(case)
    given = inputs(case.objects)
    seconds: dict[str, list[float]] = {name: [] for name in case.ways}
    busy: dict[str, list[float]] = {name: [] for name in case.ways}
    turns = min(turns, case.most or turns)
    for turn in range(turns + 1):
        for name, way in case.ways.items():
            if turns > 1:  # each way finds its own data in the caches, not what another left
                run(way, given)
            start, cpu = time.perf_counter(), time.process_time()
            run(way, given)
            if turn >= 1:  # the first turn fills caches
                seconds[name].append(time.perf_counter() - start)
                busy[name].append(time.process_time() - cpu)
    ours = seconds["warpkit"]
    for name, taken in seconds.items():
        ratio = statistics.median(t / o for t, o in zip(taken, ours, strict=True))
        # the profiler's record of a loop over thousands of copies would not fit itself
        held = memory(case.ways[name], given) if name == "warpkit" or case.objects < 1000 else None
        yield {
            "case": case.name,
            "objects": case.objects,
            "way": name,
            "forward_backward_ms": f"{1e3 * statistics.median(taken):.1f}",
            "times_warpkit": f"{ratio:.2f}",
            "cpu_ms": f"{1e3 * statistics.median(busy[name]):.1f}",
            "peak_mb": "" if held is None else f"{held:.0f}",
            "turns": turns,
        }


def main() -> None:
    """Measure all cases; write the rows and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--csv", type=Path, default=ROWS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows = [{**row, **about()} for case in cases() for row in measure(case, options.turns)]
    options.csv.parent.mkdir(parents=True, exist_ok=True)
    with options.csv.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    for row in rows:
        print(" ".join(f"{row[key]!s:>22}" for key in list(row)[:7]))


if __name__ == "__main__":
    main()
