"""Lookups, forward and backward, compared with common alternatives: python -m benchmarks.indexing

Every case first proves that its ways agree in value and gradients, then times them in turns. The
ratio is the median over the turns of (other / warpkit), so that a slow moment hits both.
"""

from __future__ import annotations

import argparse
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

TURNS = 21


class Case(NamedTuple):
    """One size, and the equivalent functions of (array, index)."""

    name: str
    indices: int
    rows: int
    ways: dict[str, Callable[[Tensor, Tensor], Tensor]]


def grid_sample(array: Tensor, index: Tensor) -> Tensor:
    """F.grid_sample as a lookup in an image of one row."""
    x = index * (2 / (array.shape[0] - 1)) - 1
    grid = torch.stack((x, torch.zeros_like(x)), -1)[None, None]
    options = {"align_corners": True, "padding_mode": "border"}
    return F.grid_sample(array[None, None, None], grid, **options)[0, 0, 0]


def interpolate(array: Tensor, index: Tensor) -> Tensor:
    """F.interpolate: only evenly spaced indices, without a gradient to them."""
    size = index.shape[0]
    return F.interpolate(array[None, None], size=size, mode="linear", align_corners=True)[0, 0]


def one_hot(array: Tensor, index: Tensor) -> Tensor:
    """Dense weights and a matrix product."""
    below = index.detach().floor()
    part = (index - below)[:, None]
    below = below.long()
    above = (below + 1).clamp(max=array.shape[0] - 1)
    n = array.shape[0]
    return ((1 - part) * F.one_hot(below, n) + part * F.one_hot(above, n)) @ array


def cases() -> Iterator[Case]:
    """The sizes; one-hot only gets a size that fits (64 MB per matrix)."""
    ours = {"warpkit": wk.indexing.linear_lookup}
    million = 1_000_000
    yield Case("random", million, million, {**ours, "grid_sample": grid_sample})
    yield Case("evenly spaced", million, million // 2, {**ours, "interpolate": interpolate})
    yield Case("one-hot size", 4096, 4096, {**ours, "one_hot": one_hot})


def inputs(case: Case) -> tuple[Tensor, Tensor, Tensor]:
    """The array, the index and a gradient; float32."""
    generator = torch.Generator().manual_seed(0)
    array = torch.rand(case.rows, generator=generator)
    if "interpolate" in case.ways:
        index = torch.linspace(0, case.rows - 1, case.indices, dtype=torch.float64).float()
    else:
        index = torch.rand(case.indices, generator=generator) * (case.rows - 1)
    weight = torch.rand(case.indices, generator=generator)
    return array.requires_grad_(), index.requires_grad_(), weight


def run(way: Callable[[Tensor, Tensor], Tensor], case: tuple[Tensor, Tensor, Tensor]):
    """Forward and backward: the value and both gradients."""
    array, index, weight = case
    array.grad = index.grad = None
    value = way(array, index)
    value.backward(weight)
    return value.detach(), array.grad, index.grad


def prove_equal(case: Case) -> None:
    """Values and gradients of all ways against warpkit's, at up to 512 rows.

    grid_sample maps the index to [-1, 1] and back and interpolate computes its own, both in
    float32. Their errors are 3e-5 of a row here, but half a row at a million rows, where float32
    has steps of 0.06. The sums in the array's gradient add two or three such weights.
    """
    small = case._replace(indices=min(case.indices, 1024), rows=min(case.rows, 512))
    data = inputs(small)
    value, to_array, to_index = run(case.ways["warpkit"], data)
    # the slope jumps at whole numbers, and a rounded coordinate may be on the other side
    near = (data[1] - data[1].round()).abs().detach() < 1e-3
    for name, way in case.ways.items():
        other, other_array, other_index = run(way, data)
        assert_close(other, value, rtol=0, atol=5e-5)
        assert_close(other_array, to_array, rtol=0, atol=1e-4)
        if name != "interpolate":
            assert_close(other_index[~near], to_index[~near], rtol=0, atol=1e-6)


def measure(case: Case, turns: int) -> Iterator[dict[str, object]]:
    """One row for each way."""
    prove_equal(case)
    data = inputs(case)
    calls = {name: partial(run, way, data) for name, way in case.ways.items()}
    seconds = in_turns(calls, Turns(turns, untimed=2))
    for name, times in seconds.items():
        yield {
            "case": case.name,
            "indices": case.indices,
            "rows": case.rows,
            "way": name,
            "forward_backward_ms": f"{1e3 * statistics.median(times):.2f}",
            "times_warpkit": f"{ratio(times, seconds['warpkit']):.2f}",
            "turns": turns,
        }


def rows(options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """One row for each way of every case."""
    for case in cases():
        for row in measure(case, options.turns):
            yield {**row, **about()}


if __name__ == "__main__":
    table(__doc__, "indexing", rows, columns=6, threads=2, turns=TURNS)
