"""The perspective of four pairs of points in the native library, with its gradients."""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor

from warpkit.core.shapes import broadcast_shapes
from warpkit.engine.cpu.fits import fitted, flat, limits_of, run


def forward(dtype: torch.dtype, src: Tensor, dst: Tensor) -> tuple[tuple[Tensor, Tensor], None]:
    """As `quads.perspective` of points (..., 4, 2)."""
    batch = broadcast_shapes(src.shape[:-2], dst.shape[:-2])
    arrays = {"src": flat(src, batch, 2), "dst": flat(dst, batch, 2)}
    return fitted("four_points", batch, (3, 3), 4, arrays, dtype), None


def backward(
    dtype: torch.dtype,
    kept: None,
    grads: tuple[Tensor, ...],
    tensors: tuple[Tensor, ...],
    wanted: tuple[bool, ...],
) -> list[Tensor]:
    """The gradients of both lists of points (..., 4, 2) from that of their matrices."""
    batch = tuple(grads[0].shape[:-2])
    src, dst = (flat(points, batch, 2) for points in tensors)
    grad = grads[0].reshape(prod(batch), 3, 3).contiguous()
    to_points = torch.empty_like(src), torch.empty_like(dst)
    arrays = {"src": src, "dst": dst, "grad": grad}
    arrays |= {"grad_src": to_points[0], "grad_dst": to_points[1]}
    run("four_points_backward", 4, arrays, limits_of(dtype))
    pairs = zip(to_points, tensors, strict=True)
    return [g.view(*batch, 4, 2).sum_to_size(points.shape) for g, points in pairs]
