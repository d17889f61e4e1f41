"""The gradient of an alignment: that of the solution, not of the steps that led to it.

The answer solves J^T w r = 0 at the finest level. With the step's parameters p around the answer,
d p = -(d (J^T w r) / d p)^-1 d (J^T w r): one evaluation of the equations and K + 1 backward
passes through it, however many steps were made.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from warpkit.alignment import pyramid
from warpkit.alignment.equations import equations
from warpkit.alignment.models import model_named, step_matrix
from warpkit.alignment.pyramid import Pairs


class Implicit(torch.autograd.Function):
    """The matrix found, with the gradient of the solution; of first order, in reverse mode."""

    @staticmethod
    def forward(
        ctx: Any,
        moving: Tensor,
        fixed: Tensor,
        masks: tuple[Tensor | None, Tensor | None],
        matrix: Tensor,
        good: Tensor,
        options: tuple[str, str],
    ) -> Tensor:
        """The matrix (N, 3, 3), moving -> fixed, as it came.

        moving (N, C, H, W), fixed (N, C, h, w), their masks (N or 1, 1, H or h, W or w) or None;
        good (N,), bool: pairs that have a gradient; options: model and loss.
        """
        ctx.save_for_backward(moving, fixed, matrix, good)
        ctx.masks, ctx.options = masks, options
        return matrix.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore
        """From grad (N, 3, 3) to both images; zeros for pairs that are not `good`."""
        moving, fixed = ctx.saved_tensors[:2]
        twice = torch.is_grad_enabled()
        with torch.no_grad():
            results = _to_images(ctx, grad)
        if twice:
            results = [FirstOrder.apply(result, moving, fixed) for result in results]
        return results[0], results[1], None, None, None, None


class FirstOrder(torch.autograd.Function):
    """A gradient that has none itself, and says so where one is asked for."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, moving: Tensor, fixed: Tensor) -> Tensor:
        """The value, which came from moving (N, C, H, W) and fixed (N, C, h, w)."""
        return value.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # pyright: ignore
        """An error."""
        raise RuntimeError("align: gradients of the first order only")


def _to_images(ctx: Any, grad: Tensor) -> list[Tensor]:
    """The gradients to both images from grad (N, 3, 3)."""
    moving, fixed, matrix, good = ctx.saved_tensors
    index = good.nonzero()[:, 0]
    results = [torch.zeros_like(moving), torch.zeros_like(fixed)]
    if len(index) == 0:
        return results
    parts = _backward(ctx, moving, fixed, matrix, grad, index)
    return [whole.index_copy(0, index, part) for whole, part in zip(results, parts, strict=True)]


def _backward(
    ctx: Any, moving: Tensor, fixed: Tensor, matrix: Tensor, grad: Tensor, index: Tensor
) -> tuple[Tensor, ...]:
    """The gradients to moving[index] and fixed[index].

    moving (N, C, H, W), fixed (N, C, h, w), matrix and grad (N, 3, 3), index (M,).
    """
    pairs = Pairs(moving, fixed, *ctx.masks).take(index)
    name, loss = ctx.options
    model = model_named(name, matrix.device)
    with torch.enable_grad():
        pairs = pairs._replace(
            moving=pairs.moving.detach().requires_grad_(),
            fixed=pairs.fixed.detach().requires_grad_(),
        )
        numbers = torch.zeros(
            len(index), len(model.generators), dtype=torch.float64, device=matrix.device
        ).requires_grad_()
        level = pyramid.build(pairs, loss, 1).levels[0]
        step = step_matrix(model, numbers, level.size)
        to_source = torch.linalg.inv(matrix[index]) @ step
        rhs = equations(level, to_source, model, loss).rhs
        rows = [
            torch.autograd.grad(column.sum(), numbers, retain_graph=True)[0]
            for column in rhs.unbind(-1)
        ]
        slope = torch.stack(rows, 1)  # (M, K, K): of rhs[k] by numbers[m]
        result = normalised(torch.linalg.inv(to_source))
        (to_numbers,) = torch.autograd.grad(
            (result * grad[index]).sum(), numbers, retain_graph=True
        )
        solved, failed = torch.linalg.solve_ex(slope.mT, to_numbers)
        solved = torch.where((failed != 0)[:, None] | ~solved.isfinite(), 0.0, solved)
        return torch.autograd.grad(rhs, (pairs.moving, pairs.fixed), -solved)


def normalised(matrix: Tensor) -> Tensor:
    """(N, 3, 3) with a last entry of 1."""
    return matrix / matrix[:, 2:, 2:]
