"""Fits matrices to plain points by one call of the native library for all items.

If an item has no solution, or several, `from_points` continues without the library, and reports the
reason.
"""

from __future__ import annotations

from math import prod
from typing import Any

import torch
from torch import Tensor

from warpkit.core.shapes import broadcast_shapes
from warpkit.core.tracing import is_eager, wants_gradient
from warpkit.engine.backends import select_fits
from warpkit.engine.backends.again import gradients_again
from warpkit.geometry import quads


def four_points(src: Tensor, dst: Tensor, dtype: torch.dtype) -> Tensor | None:
    """`perspective_from_points` of float64 points (..., 4, 2), in float64: (..., 3, 3)."""
    known = select_fits(src, dst)
    if known is None:
        return None
    flat, batch = _flat(src, dst)
    found, good = known.four_points(*flat, dtype)
    if not good:
        return None
    found = found.view(*batch, 3, 3)
    if wants_gradient(src, dst):
        return _EagerFourPoints.apply(src, dst, found, dtype)  # pyright: ignore
    return found


def similarity(
    src: Tensor, dst: Tensor, weights: Tensor | None, dtype: torch.dtype
) -> Tensor | None:
    """`similarity_from_points` of float64 points (..., N, 2) without a gradient: (..., 2, 3)."""
    tensors = (src, dst) if weights is None else (src, dst, weights)
    known = select_fits(*tensors)
    if known is None or wants_gradient(*tensors):
        return None
    flat, batch = _flat(*tensors)
    found, good = known.similarity(*flat[:2], flat[2] if len(flat) > 2 else None, dtype)
    return found.view(*batch, 2, 3) if good else None


def _flat(*tensors: Tensor) -> tuple[list[Tensor], tuple[int, ...]]:
    """Points (..., N, 2) and weights (..., N), broadcast to one flat batch; the batch's shape."""
    cores = [2, 2, 1][: len(tensors)]
    shapes = [t.shape[: t.ndim - core] for t, core in zip(tensors, cores, strict=True)]
    batch = broadcast_shapes(*shapes)
    flat = [
        t.detach().expand(*batch, *t.shape[t.ndim - core :]).reshape(prod(batch), *t.shape[-core:])
        for t, core in zip(tensors, cores, strict=True)
    ]
    return flat, tuple(batch)


def _by_torch(src: Tensor, dst: Tensor, dtype: torch.dtype) -> Tensor:
    """The matrix (..., 3, 3) for points (..., 4, 2) in general position."""
    whole = quads.quad_to_quad(src, dst)
    return quads.normalised(whole, quads.origin_is_far(whole, src, dtype))


class _EagerFourPoints(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, src: Tensor, dst: Tensor, found: Tensor, dtype: torch.dtype) -> Tensor:
        """`found` (..., 3, 3), computed from src and dst (..., 4, 2)."""
        ctx.save_for_backward(src, dst)
        ctx.dtype = dtype
        return found

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # pyright: ignore
        """By one launch, or by torch operations for second derivatives and under transforms."""
        src, dst = ctx.saved_tensors
        wanted, dtype = ctx.needs_input_grad[:2], ctx.dtype
        if torch.is_grad_enabled() or not is_eager(grad):

            def formula(src: Tensor, dst: Tensor) -> tuple[Tensor]:
                """src and dst (..., 4, 2)."""
                return (_by_torch(src, dst, dtype),)

            return *gradients_again(formula, (src, dst), (grad,), wanted), None, None
        known: Any = select_fits(src)
        flat, batch = _flat(src, dst)
        both = known.four_points_backward(*flat, grad.reshape(prod(batch), 3, 3), dtype)
        to_points = (
            made.view(*batch, 4, 2).sum_to_size(points.shape)
            for made, points in zip(both, (src, dst), strict=True)
        )
        return *(g if want else None for g, want in zip(to_points, wanted, strict=True)), None, None
