"""Flow fields, compared with handwritten torch code: python -m benchmarks.flow

Every case first proves that its ways agree, then times them in turns and takes the least time of
each, because other load can only add to a time. The ratio compares these. Memory is the peak of one
call beyond its inputs: see `benchmarks.patches`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.testing import assert_close

import warpkit as wk
from benchmarks.harness import about, table
from benchmarks.patches import peak_mb
from warpkit import flow
from warpkit.cli.bench.timing import Turns, in_turns

TURNS = 3

Way = Callable[[], tuple[Tensor, ...]]


class Case(NamedTuple):
    """Several ways to compute the same result."""

    name: str
    ways: dict[str, Way]
    turns: int = TURNS


def gridded(image: Tensor, field: Tensor) -> Tensor:
    """A warp by F.grid_sample; image (B, C, H, W), field (B, h, w, 2), pixels."""
    h, w = image.shape[-2:]
    y, x = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
    points = field + torch.stack((x, y), -1)
    grid = points * (2 / torch.tensor([w - 1.0, h - 1.0])) - 1
    return F.grid_sample(image, grid, align_corners=True)


def scattered(image: Tensor, field: Tensor) -> Tensor:
    """A splat by four scatter_adds; image (B, C, H, W), field (B, H, W, 2), pixels."""
    b, c, h, w = image.shape
    y, x = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
    points = field + torch.stack((x, y), -1)
    base = points.detach().floor()
    total = image.new_zeros(b, c, h * w)
    for dy in (0, 1):
        for dx in (0, 1):
            place = base + base.new_tensor((dx, dy))
            share = (1 - (points - place).abs()).prod(-1)
            u, v = place.long().unbind(-1)
            inside = (u >= 0) & (u < w) & (v >= 0) & (v < h)
            index = torch.where(inside, v * w + u, 0).flatten(1)[:, None].expand(b, c, h * w)
            values = image * torch.where(inside, share, 0.0)[:, None]
            total = total.scatter_add(2, index, values.flatten(2))
    return total.view_as(image)


def with_gradients(function: Callable[..., Tensor], *inputs: Tensor) -> Way:
    """Value and gradients of a function, to all its inputs."""

    def run() -> tuple[Tensor, ...]:
        leaves = [t.detach().requires_grad_() for t in inputs]
        result = function(*leaves)
        return result.detach(), *torch.autograd.grad(result.sum(), leaves)

    return run


def cases(size: int) -> Iterator[Case]:
    """Smooth fields of a few pixels on 8 images of `size` x `size`, in float32."""
    generator = torch.Generator().manual_seed(0)
    image = torch.rand(8, 3, size, size, generator=generator)
    control = 8 * torch.randn(8, 9, 9, 2, generator=generator)
    field = flow.bspline(control, (size, size))
    shape = f"8 x 3 x {size} x {size}"
    ways = {
        "warpkit": with_gradients(wk.warp_flow, image, field),
        "grid_sample by hand": with_gradients(gridded, image, field),
    }
    yield Case(f"warp, forward and both gradients, {shape}", ways)
    leaf = image.clone().requires_grad_()
    warped = wk.warp_flow(leaf, field)
    ways = {
        "warpkit": lambda: (flow.splat(image, field).image,),
        "scatter_add by hand": lambda: (scattered(image, field),),
        "the warp's backward": lambda: torch.autograd.grad(warped, leaf, image, retain_graph=True),
    }
    yield Case(f"splat, {shape}", ways)
    ways = {
        "warpkit": with_gradients(lambda i, f: flow.splat(i, f).image, image, field),
        "scatter_add by hand": with_gradients(scattered, image, field),
    }
    yield Case(f"splat, forward and both gradients, {shape}", ways)
    weights = torch.rand(8, 1, size, size, generator=generator)
    options = {"mode": "softmax", "weights": weights}
    yield Case(
        f"softmax splat, {shape}",
        {"warpkit": lambda: (flow.splat(image, field, **options).image,)}, turns=1,
    )  # fmt: skip
    megabytes = f"{field.numel() * 4 / 1e6:.0f} MB"
    yield Case(
        f"compose, 8 fields of {megabytes}", {"warpkit": lambda: (flow.compose(field, field),)}
    )
    yield Case(
        f"integrate, 8 fields of {megabytes}",
        {"warpkit": lambda: (flow.integrate(field),)},
        turns=1,
    )
    yield Case(
        f"invert, one of {size} x {size}", {"warpkit": lambda: (flow.invert(field[0]).flow,)},
        turns=1,
    )  # fmt: skip
    target = size * torch.rand(1000, 2, generator=generator, dtype=torch.float64)
    source = target + torch.randn(1000, 2, generator=generator, dtype=torch.float64)
    yield Case(
        f"thin plate, 1,000 points, {size} x {size}",
        {"warpkit": lambda: (flow.thin_plate_spline(source, target, (size, size)),)}, turns=1,
    )  # fmt: skip


def measure(case: Case) -> Iterator[dict[str, object]]:
    """One row for each way."""
    results = {name: way() for name, way in case.ways.items()}
    for name, result in results.items():
        for ours, theirs in zip(results["warpkit"], result, strict=True):
            # float32 positions up to 512 have errors of 3e-5 pixels, multiplied by the slope of
            # noise
            share = ((ours - theirs).abs() < 2e-3).float().mean()
            assert_close(share, torch.ones(()), rtol=0, atol=1e-3, msg=f"{case.name}: {name}")
    del results
    times = in_turns(case.ways, Turns(case.turns, untimed=0))
    least = {name: min(seconds) for name, seconds in times.items()}
    for name, way in case.ways.items():
        yield {
            "case": case.name,
            "way": name,
            "ms": f"{1e3 * least[name]:.1f}",
            "times_warpkit": f"{least[name] / least['warpkit']:.2f}",
            "peak_mb": f"{peak_mb(way):.0f}",
            "turns": case.turns,
        }


def rows(options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """One row for each way of every case."""
    for case in cases(options.size):
        for row in measure(case):
            yield {**row, **about()}


if __name__ == "__main__":
    table(__doc__, "flow", rows, threads=2, size=512)
