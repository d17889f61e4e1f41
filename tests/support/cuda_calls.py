"""Calls of the CUDA kernels and their gradients, with tensors that have no memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from warpkit.engine.definitions.correlation import Square
from warpkit.engine.definitions.depth import Depths
from warpkit.engine.definitions.reference import compute_dtype
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.engine.definitions.sweep import Sweep
from warpkit.engine.operators.warp import Warp
from warpkit.engine.triton import correlation, depth, front, inverse, jpeg, sweep, warps

FLOAT, DOUBLE, BYTE = torch.float32, torch.float64, torch.uint8
Size = tuple[int, int]


def make(*shape: int, dtype: torch.dtype = FLOAT) -> Tensor:
    """A tensor without memory."""
    return torch.empty(shape, dtype=dtype, device="meta")


def both(module: Any, options: Any, tensors: Sequence[Tensor], wanted: Sequence[bool] = ()) -> None:
    """A call, and the gradients that are wanted, if any."""
    results, kept = module.forward(options, *tensors)
    if any(wanted):
        results = results if isinstance(results, tuple) else (results,)
        floats = [torch.empty_like(r) for r in results if r.is_floating_point()]
        module.backward(options, kept, tuple(floats), tuple(tensors), tuple(wanted))


def warp(
    count: int,
    size: Size,
    wanted: Sequence[bool] = (),
    *,
    dtype: torch.dtype = FLOAT,
    way: str = "bilinear",
    border: str = "constant",
    kind: str = "affine",
    channels: int = 3,
) -> None:
    """A warp of images to their own size; wanted: image, mapping, fill."""
    image = make(count, channels, *size, dtype=dtype)
    shapes = {"affine": (2, 3), "perspective": (3, 3), "points": (*size, 2)}
    mapping = make(count, *shapes[kind], dtype=DOUBLE)
    fill = make(dtype=compute_dtype(dtype))
    rule = SamplingRule(way, border)  # pyright: ignore
    both(warps, Warp(size, rule), (image, mapping, fill), wanted)


def invert(count: int, rows: int) -> None:
    """Inverses of matrices."""
    inverse.forward(torch.nan, make(count, rows, 3, dtype=DOUBLE))


def files(count: int, size: Size, wanted: Sequence[bool] = (), dtype: torch.dtype = BYTE) -> None:
    """JPEG files; wanted: images, qualities."""
    tensors = make(count, 3, *size, dtype=dtype), make(count, dtype=torch.int32)
    both(jpeg, "4:2:0", tensors, wanted)


def points(count: int, size: Size, wanted: Sequence[bool] = ()) -> None:
    """Points of depths, under a lens with five coefficients."""
    tensors = make(count, *size), make(count, 4, dtype=DOUBLE), make(count, 3, 4, dtype=DOUBLE)
    tensors += make(count, 9, dtype=DOUBLE), make(count, dtype=DOUBLE)
    both(depth, Depths("z", "brown", True, False, None), tensors, wanted)


def squares(count: int, size: Size, wanted: Sequence[bool] = (), *, flow: bool = True) -> None:
    """Local correlations of 32 channels, of radius 4; wanted: first, second, flow."""
    tensors = [make(count, 32, *size), make(count, 32, *size)]
    if flow:
        tensors.append(make(count, *size, 2))
    both(correlation, Square((4, 4), 1, "constant"), tensors, wanted)


def fronts(count: int, size: Size, wanted: Sequence[bool] = ()) -> None:
    """Pixels in front; wanted: image, flow, depth."""
    tensors = make(count, 3, *size), make(count, *size, 2, dtype=DOUBLE), make(count, *size)
    both(front, size, tensors, wanted)


def sweeps(count: int, size: Size, wanted: Sequence[bool] = ()) -> None:
    """Costs of 8 planes in two sources of 32 channels, for all gradients of features."""
    options = Sweep("z", "brown", True, size, "variance", 32, None)
    lead = (count, 2)
    tensors = (
        make(*lead, 32, *size), make(count, 8, 1, 1), make(count, 4, dtype=DOUBLE),
        make(*lead, 3, 4, dtype=DOUBLE), make(*lead, 9, dtype=DOUBLE), make(*lead, dtype=DOUBLE),
        make(count, 32, *size),
    )  # fmt: skip
    both(sweep, options, tensors, wanted)


CALLS: dict[str, Callable[[int, Size], None]] = {
    "warp": warp,
    "warp, gradients to image and matrix": lambda n, s: warp(n, s, (True, True, False)),
    "warp under reflect, gradients": lambda n, s: warp(n, s, (True, True, False), border="reflect"),
    "remap, gradients": lambda n, s: warp(n, s, (True, True, False), kind="points"),
    "inverse": lambda n, _: invert(n, 2),
    "jpeg": files,
    "jpeg, gradient": lambda n, s: files(n, s, (True, False), FLOAT),
    "depth_points": points,
    "depth_points, gradients": lambda n, s: points(n, s, (True,) * 4 + (False,)),
    "correlation": squares,
    "correlation, gradients": lambda n, s: squares(n, s, (True, True, True)),
    "correlation without a flow, gradients": lambda n, s: squares(n, s, (True, True), flow=False),
    "front": fronts,
    "front, gradient": lambda n, s: fronts(n, s, (True, False, False)),
    "plane_sweep": sweeps,
    "plane_sweep, gradients": lambda n, s: sweeps(n, s, (True,) * 5 + (False, True)),
}
"""Calls by what users call, with a number of images and their size."""
