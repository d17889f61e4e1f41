"""Warps by depth in the native library: points of depths, made in the tiles that sample them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.cpu import launch
from warpkit.engine.cpu.depth import (
    View,
    block_of,
    gradients,
    room_for_gradients,
    view_of,
)
from warpkit.engine.cpu.warp_calls import WarpCall
from warpkit.engine.definitions.depth_warp import DepthWarp


class Kept(NamedTuple):
    """What the backward pass reads."""

    view: View
    call: WarpCall


def forward(
    options: DepthWarp, image: Tensor, fill: Tensor, *scene: Tensor
) -> tuple[tuple[Tensor, Tensor], Kept]:
    """As `definitions.depth_warp.shown`: scene are the tensors of `definitions.depth.points`."""
    view = view_of(options.view, *scene)
    # no points: their shape determines the call
    points = torch.empty((), dtype=torch.float64, device="cpu").expand(*view.batch, *view.size, 2)
    call = launch.prepared(image, points, fill, view.size, options.rule)
    inside = torch.empty((*view.batch, *view.size), dtype=torch.bool, device="cpu")
    block = block_of("depth_points", options.view, view, {"inside": inside})
    fill = launch.stored_fill(call, fill)
    return (launch.result(call, image, points, fill, depths=block), inside), Kept(view, call)


def backward(
    options: DepthWarp,
    kept: Kept,
    grads: tuple[Tensor, ...],
    tensors: tuple[Tensor, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor, ...]:
    """The gradients of `forward`'s tensors, of which the last has none."""
    (image, fill, *scene), (view, call) = tensors, kept
    made: dict[str, Tensor] = {}

    def room(parts: int) -> np.ndarray:
        made.update(room_for_gradients(options.view, view, parts))
        return block_of("depth_points_backward", options.view, view, made, wanted[2:])

    needs = [*wanted[:2], any(wanted[2:])]
    points = torch.empty((), dtype=torch.float64, device="cpu").expand(*view.batch, *view.size, 2)
    to_image, _, to_fill = launch.backward(
        grads[0], image, points, fill, view.size, options.rule,
        (needs[0], needs[2], needs[1]), made=call, depths=room,
    )  # fmt: skip
    rest = gradients(view, made, tuple(scene)) if needs[2] else tuple(scene)
    return to_image, to_fill, *rest
