"""Second derivatives and antialiased warps, compared with torch: python -m benchmarks.gradients

Every case first proves that both ways agree in value and gradients, then times them in turns. The
ratio is the median over the turns of (other / warpkit), so that a slow moment hits both.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.testing import assert_close

import warpkit as wk
from benchmarks.harness import about, table
from warpkit.cli.bench.timing import Turns, in_turns, ratio

TURNS = 11
SCALE = 0.21
SAMPLES = 5  # along an axis: floor(1 / 0.21) + 1, as antialias=True takes

Way = Callable[[Tensor, Tensor], tuple[Tensor, ...]]


class Case(NamedTuple):
    """Inputs, and the operation in warpkit and in plain torch."""

    name: str
    image: Tensor
    matrix: Tensor
    ways: dict[str, Way]


def by_torch(image: Tensor, matrix: Tensor, size: tuple[int, int]) -> Tensor:
    """F.affine_grid and F.grid_sample with a theta made in float64."""
    theta = wk.to_theta(matrix, image.shape[-2:], size).to(image.dtype)
    grid = F.affine_grid(theta, [len(image), 1, *size], align_corners=False)
    return F.grid_sample(image, grid, align_corners=False)


def second_order(warp: Callable[[Tensor, Tensor], Tensor]) -> Way:
    """The gradient of the squared norm of the gradient: a gradient penalty."""

    def run(image: Tensor, matrix: Tensor) -> tuple[Tensor, ...]:
        result = warp(image, matrix)
        first = torch.autograd.grad(result.square().sum(), (image, matrix), create_graph=True)
        total = torch.stack([grad.square().sum() for grad in first]).sum()
        return result.detach(), *torch.autograd.grad(total, (image, matrix))

    return run


def first_order(warp: Callable[[Tensor, Tensor], Tensor]) -> Way:
    """Forward and backward."""

    def run(image: Tensor, matrix: Tensor) -> tuple[Tensor, ...]:
        result = warp(image, matrix)
        return result.detach(), *torch.autograd.grad(result.square().sum(), (image, matrix))

    return run


def supersampled(image: Tensor, matrix: Tensor) -> Tensor:
    """The handwritten way: a warp of 5 times the size, then the mean of 5 x 5 pixels."""
    h, w = small(image)
    shift = (SAMPLES - 1) / 2  # from centres of pixels to centres of samples
    finer = torch.tensor([[SAMPLES, 0, shift], [0, SAMPLES, shift]], dtype=torch.float64)
    return F.avg_pool2d(
        by_torch(image, wk.compose(matrix, finer), (h * SAMPLES, w * SAMPLES)), SAMPLES
    )


def small(image: Tensor) -> tuple[int, int]:
    """The size of the shrunk output."""
    return int(image.shape[-2] * SCALE), int(image.shape[-1] * SCALE)


def cases() -> Iterator[Case]:
    """A batch of rotations for second order; a shrunk image of photograph size for the mean."""
    generator = torch.Generator().manual_seed(0)
    image = torch.rand(8, 3, 128, 128, generator=generator)
    angles = torch.linspace(-40, 40, 8, dtype=torch.float64)
    turns = wk.rotation_matrix(wk.image_center((128, 128)), angles, 1.1)
    both = {
        "warpkit": lambda i, m: wk.warp_affine(i, m),
        "torch": lambda i, m: by_torch(i, m, (128, 128)),
    }
    ways = {name: second_order(warp) for name, warp in both.items()}
    yield Case("second order, 8 x 3 x 128 x 128", image, turns, ways)
    image = torch.rand(4, 3, 512, 768, generator=generator)
    (x, y), (cx, cy) = wk.image_center(small(image)), wk.image_center((512, 768))
    angles = torch.tensor([10.0, 20, 30, 40], dtype=torch.float64)
    shrink = wk.affine_matrix(
        angle=angles, scale=SCALE, center=(cx, cy), translation=(x - cx, y - cy)
    )
    both = {
        "warpkit": lambda i, m: wk.warp_affine(i, m, size=small(i), antialias=True),
        "torch": supersampled,
        "warpkit, aliased": lambda i, m: wk.warp_affine(i, m, size=small(i)),
    }
    ways = {name: first_order(warp) for name, warp in both.items()}
    yield Case("antialias, 4 x 3 x 512 x 768 by 0.21", image, shrink, ways)


def inputs(case: Case, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Fresh leaves."""
    return case.image.to(dtype).requires_grad_(), case.matrix.clone().requires_grad_()


def prove_equal(case: Case) -> None:
    """Compare in float64, which torch's normalised grid needs, relative to the largest entry."""
    ours = case.ways["warpkit"](*inputs(case, torch.float64))
    theirs = case.ways["torch"](*inputs(case, torch.float64))
    for a, b in zip(ours, theirs, strict=True):
        assert_close(a, b, rtol=0, atol=1e-8 * float(b.abs().max()))


def measure(case: Case, turns: int) -> Iterator[dict[str, object]]:
    """One row for each way, in float32."""
    prove_equal(case)
    how = Turns(turns, untimed=2)
    seconds = in_turns(case.ways, how, inputs=partial(inputs, case, torch.float32))
    for name, times in seconds.items():
        yield {
            "case": case.name,
            "way": name,
            "ms": f"{1e3 * statistics.median(times):.1f}",
            "times_warpkit": f"{ratio(times, seconds['warpkit']):.2f}",
            "turns": turns,
        }


def rows(options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """One row for each way of every case."""
    for case in cases():
        for row in measure(case, options.turns):
            yield {**row, **about()}


if __name__ == "__main__":
    table(__doc__, "gradients", rows, columns=5, threads=min(2, os.cpu_count() or 1), turns=TURNS)
