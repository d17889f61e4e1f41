"""`attacks.Pipeline` compared with the same steps by hand: python -m benchmarks.pipelines

Forward and backward. Every case first proves that warpkit and by hand agree in every value and, to
1e-5, in the gradient; `F.interpolate` of the floats is the program that no one runs, within two
levels of it. Then the ways are timed in turns. The ratio is the median over the turns of (other /
warpkit), so that a slow moment hits both.
"""

from __future__ import annotations

import argparse
import csv
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.testing import assert_close

import warpkit as wk
from benchmarks.indexing import about
from warpkit.attacks import Pipeline
from warpkit.cli.bench.timing import Turns, in_turns, ratio
from warpkit.gradients import straight_through

ROWS = Path(__file__).parents[1] / "data" / "benchmarks" / "pipelines.csv"
TURNS = 15
PYRAMID = (64, 96, 128, 160, 192, 224)

Way = Callable[[Tensor], list[Tensor]]


class Case(NamedTuple):
    """Images, and ways to the results that a program makes of them."""

    name: str
    images: Tensor
    ways: dict[str, Way]


def resize(side: int) -> Callable[[Tensor], Tensor]:
    """Pillow's bilinear resize to a square."""
    return partial(wk.resize, size=(side, side), arithmetic="pillow")


def by_hand(images: Tensor, sides: tuple[int, ...]) -> list[Tensor]:
    """The integers of the 8-bit image, with the gradient of the same resize of the floats."""
    with torch.no_grad():
        levels = (images * 255).round().clamp(0, 255).to(torch.uint8)
        values = [resize(side)(levels) / 255 for side in sides]
    pairs = zip(values, sides, strict=True)
    return [straight_through(value, resize(side)(images)) for value, side in pairs]


def interpolated(images: Tensor) -> list[Tensor]:
    return [F.interpolate(images, (224, 224), mode="bilinear", antialias=True)]


def cases() -> Iterator[Case]:
    images = torch.rand(8, 3, 480, 640, generator=torch.Generator().manual_seed(0))
    one = Pipeline(resize(224))
    ways: dict[str, Way] = {
        "warpkit": lambda x: [one(x)],
        "by hand": lambda x: by_hand(x, (224,)),
        "F.interpolate": interpolated,
    }
    yield Case("Pillow's resize of 8 x 3 x 480 x 640 to 224", images, ways)
    ends = Pipeline({side: resize(side) for side in PYRAMID})
    single = [Pipeline(resize(side)) for side in PYRAMID]
    ways = {
        "warpkit": lambda x: list(ends(x).values()),
        "a Pipeline for each": lambda x: [each(x) for each in single],
        "by hand": lambda x: by_hand(x, PYRAMID),
    }
    yield Case("Pillow's resize of 8 x 3 x 480 x 640 to six sizes", images, ways)


def run(way: Way, images: Tensor) -> tuple[list[Tensor], Tensor]:
    """Forward and backward."""
    images = images.detach().requires_grad_()
    made = way(images)
    grads = [torch.linspace(-1, 1, x.numel()).reshape(x.shape) for x in made]
    (grad,) = torch.autograd.grad(made, images, grads)
    return [x.detach() for x in made], grad


def prove_equal(case: Case) -> None:
    values, grad = run(case.ways["warpkit"], case.images)
    for name, way in case.ways.items():
        others, other_grad = run(way, case.images)
        for value, other in zip(values, others, strict=True):
            assert_close(other, value, rtol=0, atol=2 / 255 if name == "F.interpolate" else 0)
        assert_close(other_grad, grad, rtol=0, atol=1e-5)


def measure(case: Case, turns: int) -> Iterator[dict[str, object]]:
    """One row for each way."""
    prove_equal(case)
    calls = {name: partial(run, way, case.images) for name, way in case.ways.items()}
    seconds = in_turns(calls, Turns(turns, untimed=2, rotate=True))
    for name, taken in seconds.items():
        yield {
            "case": case.name,
            "way": name,
            "ms": f"{1e3 * statistics.median(taken):.1f}",
            "times_warpkit": f"{ratio(taken, seconds['warpkit']):.2f}",
            "turns": turns,
        }


def main() -> None:
    """Measure all cases; write the rows and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=TURNS)
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
        print(*list(row.values())[:5], sep="  ")


if __name__ == "__main__":
    main()
