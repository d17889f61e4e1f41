"""Finds occlusions by the consistency of a forward and a backward flow."""

from __future__ import annotations

import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.core.mistakes import warn_if_points, without_warnings
from warpkit.core.numbers import check_positive
from warpkit.core.sharding import batched
from warpkit.flow.arguments import as_field
from warpkit.flow.fields import compose
from warpkit.flow.positions import places
from warpkit.types import FlowLike


@batched(forward=3, backward=3)
def consistency(forward: FlowLike, backward: FlowLike, *, tolerance: float = 1.0) -> Tensor:
    """Where `backward` undoes `forward`: the forward-backward check.

    forward (..., h, w, 2), from the first image to the second, and backward (..., H, W, 2), from
    the second to the first, both in pixels; their batches broadcast. tolerance: pixels, above 0.
    Returns bool, (..., h, w): whether |forward(p) + backward(p + forward(p))| is at most
    `tolerance` and p + forward(p) lies in the second image, which ends half a pixel beyond its last
    centres. False for NaN. Computed in float64; no gradient.

    >>> consistency([[[1.0, 0.0], [1.0, 0.0]]], [[[0.0, 0.0], [-1.0, 0.0]]])
    tensor([[ True, False]])
    """
    name = "consistency"
    device, _ = checks.result_kind(forward, backward)
    there = as_field(name, "forward", forward, device).detach().double()
    back = as_field(name, "backward", backward, device or there.device).detach().double()
    checks.check_device(name, "backward", back, there.device, "`forward`")
    checks.broadcast_batch(name, forward=there.shape[:-3], backward=back.shape[:-3])
    tolerance = check_positive(name, "tolerance", tolerance)
    for argument, flow in (("forward", there), ("backward", back)):
        warn_if_points(name, flow, argument=argument)
    returned = without_warnings(compose)(back, there).norm(dim=-1) <= tolerance
    ends = torch.tensor(back.shape[-3:-1][::-1], device=there.device) - 0.5
    target = places(there)
    return returned & ((target >= -0.5) & (target <= ends)).all(-1)
