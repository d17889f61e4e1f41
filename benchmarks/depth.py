"""Warps by depth and a z-buffer, compared with code by hand and kornia: python -m benchmarks.depth

Every case first proves that its ways agree, then times them in turns on one thread and takes the
least time of each, because other load can only add to a time, and the median of their ratios. Times
are the processor's, which other load changes less.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.harness import about, table
from warpkit import camera, flow
from warpkit.cli.bench.timing import Turns, in_turns, ratio

ITEMS, SIZE = 8, (192, 640)

Way = Callable[[], Any]
Warp = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


class Case(NamedTuple):
    """Several ways to compute the same result."""

    name: str
    aim: str
    ways: dict[str, Way]


class Scene(NamedTuple):
    """A batch as a network for depth and pose is trained with."""

    image: Tensor
    """(N, 3, h, w)."""
    depth: Tensor
    """(N, 1, h, w), 4 to 34, smooth."""
    matrix: Tensor
    """(N, 3, 3)."""
    pose: Tensor
    """(N, 4, 4): forward by 0.6, turned by half a degree."""


def scene() -> Scene:
    (h, w), draw = SIZE, torch.Generator().manual_seed(0)
    coarse = torch.rand(ITEMS, 1, 6, 20, generator=draw)
    depth = F.interpolate(coarse, size=SIZE, mode="bicubic", align_corners=False).clamp(0) * 30 + 4
    matrix = torch.tensor([[0.58 * w, 0, w / 2 - 0.5], [0, 1.92 * h, h / 2 - 0.5], [0, 0, 1]])
    angles = 0.01 * torch.randn(ITEMS, 3, generator=draw)
    shift = 0.3 * torch.randn(ITEMS, 3, generator=draw) + torch.tensor([0, 0, -0.6])
    pose = camera.pose(camera.rotation(vector=angles), shift)
    image = torch.rand(ITEMS, 3, h, w, generator=draw)
    return Scene(image, depth, matrix.expand(ITEMS, 3, 3).contiguous(), pose)


def by_hand(image: Tensor, depth: Tensor, matrix: Tensor, pose: Tensor) -> Tensor:
    """The usual twelve lines: backproject, project, `F.grid_sample`, in float32."""
    n, _, h, w = depth.shape
    y, x = torch.meshgrid(torch.arange(h).float(), torch.arange(w).float(), indexing="ij")
    pixels = torch.stack((x, y, torch.ones_like(x))).reshape(1, 3, -1)
    points = torch.linalg.inv(matrix) @ pixels * depth.reshape(n, 1, -1)
    points = torch.cat((points, torch.ones_like(points[:, :1])), 1)
    ends = (matrix @ pose[:, :3]) @ points
    at = (ends[:, :2] / (ends[:, 2:] + 1e-7)).reshape(n, 2, h, w).permute(0, 2, 3, 1)
    at = at / at.new_tensor([w - 1, h - 1]) * 2 - 1
    return F.grid_sample(image, at, padding_mode="zeros", align_corners=True)


def by_kornia(image: Tensor, depth: Tensor, matrix: Tensor, pose: Tensor) -> Tensor:
    """Tensors as in `Scene`."""
    from kornia.geometry.depth import warp_frame_depth

    return warp_frame_depth(image, depth, pose, matrix)


def ours(image: Tensor, depth: Tensor, matrix: Tensor, pose: Tensor) -> Tensor:
    """Tensors as in `Scene`."""
    return camera.warp_depth(image, depth, matrix, pose).image


WARPS: dict[str, Warp] = {
    "warpkit": ours,
    "twelve lines by hand": by_hand,
    "kornia, warp_frame_depth": by_kornia,
}


def with_gradients(warp: Warp, inputs: Scene, grad: Tensor) -> tuple[Tensor, ...]:
    """The gradients to image, depth and pose from that of the result (N, 3, h, w)."""
    image, depth, pose = (
        v.detach().requires_grad_() for v in (inputs.image, inputs.depth, inputs[3])
    )
    return torch.autograd.grad(warp(image, depth, inputs.matrix, pose), (image, depth, pose), grad)


def front_by_hand(image: Tensor, field: Tensor, depth: Tensor) -> Tensor:
    """A z-buffer by two scatters: the least depth, and the first pixel that has it.

    image (N, C, h, w); field (N, h, w, 2); depth (N, 1, h, w).
    """
    n, _, h, w = image.shape
    y, x = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
    u, v = (x + field[..., 0]).round().long(), (y + field[..., 1]).round().long()
    lands = (u >= 0) & (u < w) & (v >= 0) & (v < h)
    to, near = torch.where(lands, v * w + u, h * w).flatten(1), depth.flatten(1)
    least = near.new_full((n, h * w + 1), torch.inf).scatter_reduce(1, to, near, "amin")
    order = torch.where(near == least.gather(1, to), torch.arange(h * w), h * w)
    first = order.new_full((n, h * w + 1), h * w).scatter_reduce(1, to, order, "amin")[:, :-1]
    index = torch.where(first < h * w, first, 0)[:, None].expand(-1, image.shape[1], -1)
    return (image.flatten(2).gather(2, index) * (first < h * w)[:, None]).view(image.shape)


def front_by_us(image: Tensor, field: Tensor, depth: Tensor) -> Tensor:
    """Tensors as in `front_by_hand`."""
    return flow.splat(image, field, mode="front", depth=depth).image


def cases() -> Iterator[Case]:
    """Warps forward and with gradients, and splats along two flows."""
    inputs, draw = scene(), torch.Generator().manual_seed(1)
    shape = "{} x 3 x {} x {}".format(ITEMS, *SIZE)
    wanted = ours(*inputs)
    for name, warp in WARPS.items():  # float32 places are off by 1e-4 pixels
        apart = (warp(*inputs) - wanted).abs().max()
        assert apart < 1e-3, f"{name}: {apart}"
    aim = "1/3 of the lines by hand, 1/4 of kornia"
    ways: dict[str, Way] = {n: partial(f, *inputs) for n, f in WARPS.items()}
    yield Case(f"warp_depth, {shape}", aim, ways)
    grad = torch.randn(ITEMS, 3, *SIZE, generator=draw)
    exact = with_gradients(ours, inputs, grad)
    for name, warp in WARPS.items():
        for gradient, best in zip(with_gradients(warp, inputs, grad), exact, strict=True):
            apart = (gradient - best).abs().sum() / best.abs().sum()
            assert apart < 0.02, f"{name}: {apart}"  # slopes jump where a float32 place does
    ways = {n: partial(with_gradients, f, inputs, grad) for n, f in WARPS.items()}
    yield Case(f"warp_depth, gradients to image, depth and pose, {shape}", aim, ways)
    places = camera.depth_points(inputs.depth, inputs.matrix, inputs.pose).points
    wild = (torch.randint(-640, 641, (ITEMS, *SIZE, 2), generator=draw)) / 64.0
    wild = torch.where(wild % 1 == 0.5, wild + 1 / 64, wild)  # float32 rounds x + 0.5 otherwise
    near = torch.rand(ITEMS, 1, *SIZE, generator=draw)
    for name, field, depth in (
        ("a camera's motion", flow.from_points(places).round(), inputs.depth),
        ("offsets up to 10 pixels at random", wild, near),
    ):
        ways = {
            "warpkit": partial(front_by_us, inputs.image, field, depth),
            "two scatter_reduce by hand": partial(front_by_hand, inputs.image, field, depth),
        }
        first, second = (way() for way in ways.values())
        assert torch.equal(first, second)
        yield Case(f"splat, front, {name}, {shape}", "1/3 of the scatters", ways)


def rows(options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """One row for each way of every case."""
    extra = {"kornia": version("kornia"), "noise": options.noise}
    for case in cases():
        turns = Turns(options.seconds, at_least=3, untimed=1, clock=time.process_time)
        seconds_of = in_turns(case.ways, turns)
        for name, times in seconds_of.items():
            row = {"case": case.name, "way": name, "ms": f"{1e3 * min(times):.4g}"}
            row["times_warpkit"] = f"{min(times) / min(seconds_of['warpkit']):.2f}"
            row["median_ratio"] = f"{ratio(times, seconds_of['warpkit']):.2f}"
            yield row | {"aim": case.aim, **about(), **extra}


if __name__ == "__main__":
    table(__doc__, "depth", rows, columns=14, seconds=20.0, noise="")
