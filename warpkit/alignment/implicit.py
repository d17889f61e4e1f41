"""The gradient of an alignment, by the implicit function theorem.

The solution satisfies J^T w r = 0 at the finest level. With the step's parameters p around it,
d p = -(d (J^T w r) / d p)^-1 d (J^T w r): one evaluation of the equations and K + 1 backward
passes through it, however many steps were made. Gain and bias depend on the images, and on p.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from warpkit.alignment import pyramid
from warpkit.alignment.equations import equations
from warpkit.alignment.models import model_named, step_matrix
from warpkit.alignment.pyramid import Pairs


class Answer(NamedTuple):
    """The differentiable results of N pairs."""

    matrix: Tensor
    """(N, 3, 3), moving -> fixed."""
    gain: Tensor
    """(N, C), of the original images."""
    bias: Tensor
    """(N, C), the same."""


class EndState(NamedTuple):
    """The end state of the pairs, without gradients."""

    masks: tuple[Tensor | None, Tensor | None]
    """The masks of moving and fixed, (N or 1, 1, H or h, W or w)."""
    good: Tensor
    """(N,), bool: pairs that have a gradient."""
    sharp: Tensor
    """(N,), bool: pairs that ended on unsmoothed images."""
    model: str
    loss: str


class Implicit(torch.autograd.Function):
    """The result with the gradient of the solution; first order, in reverse mode."""

    @staticmethod
    def forward(
        ctx: Any, moving: Tensor, fixed: Tensor, ended: EndState, *answer: Tensor
    ) -> tuple[Tensor, ...]:
        """Returns `answer`, an Answer's tensors; moving (N, C, H, W), fixed (N, C, h, w)."""
        ctx.save_for_backward(moving, fixed, answer[0])
        ctx.ended = ended
        return tuple(tensor.clone() for tensor in answer)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore
        """From the answer's gradients to both images; zeros for pairs that are not `good`."""
        moving, fixed = ctx.saved_tensors[:2]
        twice = torch.is_grad_enabled()
        with torch.no_grad():
            results = _to_images(ctx, Answer(*grads))
        if twice:
            results = [FirstOrder.apply(result, moving, fixed) for result in results]
        return results[0], results[1], *(None,) * (1 + len(grads))


class FirstOrder(torch.autograd.Function):
    """A gradient that cannot be differentiated: the attempt raises an error."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, moving: Tensor, fixed: Tensor) -> Tensor:
        """The value, which came from moving (N, C, H, W) and fixed (N, C, h, w)."""
        return value.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # pyright: ignore
        """Raises the error."""
        raise RuntimeError("align: gradients of the first order only")


def _to_images(ctx: Any, grads: Answer) -> list[Tensor]:
    """The gradients to both images from those of the answer."""
    moving, fixed, matrix = ctx.saved_tensors
    ended: EndState = ctx.ended
    results = [torch.zeros_like(moving), torch.zeros_like(fixed)]
    whole = Pairs(moving, fixed, *ended.masks)
    for sharp in (False, True):
        index = (ended.good & (ended.sharp == sharp)).nonzero()[:, 0]
        if len(index) == 0:
            continue
        some = Answer(*(grad[index] for grad in grads))
        stage = "sharp" if sharp else "settled"
        parts = _backward(whole.take(index), matrix[index], some, ended, stage)
        for result, part in zip(results, parts, strict=True):
            result.index_copy_(0, index, part)
    return results


def _backward(
    pairs: Pairs, matrix: Tensor, grads: Answer, ended: EndState, stage: str
) -> tuple[Tensor, ...]:
    """The gradients to both images of pairs that all ended at one stage; matrix (N, 3, 3)."""
    model = model_named(ended.model, matrix.device)
    with torch.enable_grad():
        pairs = pairs._replace(
            moving=pairs.moving.detach().requires_grad_(),
            fixed=pairs.fixed.detach().requires_grad_(),
        )
        numbers = torch.zeros(
            len(matrix), len(model.generators), dtype=torch.float64, device=matrix.device
        ).requires_grad_()
        pyr = pyramid.build(pairs, ended.loss, 1)
        every = torch.arange(len(matrix), device=matrix.device)
        level = pyr.sharp(every) if stage == "sharp" else pyr.levels[0]
        step = step_matrix(model, numbers, level.size)
        to_source = torch.linalg.inv(matrix) @ step
        terms = equations(level, to_source, model, ended.loss, stage)
        rows = [
            torch.autograd.grad(column.sum(), numbers, retain_graph=True)[0]
            for column in terms.rhs.unbind(-1)
        ]
        slope = torch.stack(rows, 1)  # (N, K, K): d rhs[k] / d numbers[m]
        answer = (normalise(torch.linalg.inv(to_source)), *pyr.in_units(terms.gain, terms.bias))
        total: Any = sum((a * grad).sum() for a, grad in zip(answer, grads, strict=True))
        (to_numbers,) = torch.autograd.grad(total, numbers, retain_graph=True)
        solved, failed = torch.linalg.solve_ex(slope.mT, to_numbers)
        solved = torch.where((failed != 0)[:, None] | ~solved.isfinite(), 0.0, solved)
        total = total - (terms.rhs * solved.detach()).sum()
        return torch.autograd.grad(total, (pairs.moving, pairs.fixed))


def normalise(matrix: Tensor) -> Tensor:
    """Matrices (N, 3, 3), scaled to a last entry of 1."""
    return matrix / matrix[:, 2:, 2:]
