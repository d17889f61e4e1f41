"""Inverts matrices with a backend: `maps.inverse_map` takes 30 operations, longer than a warp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from warpkit.core.tracing import is_eager, wants_gradient
from warpkit.engine.sampling import maps


def inverse_by(matrix: Tensor, invert: Callable[[Tensor], Tensor]) -> Tensor:
    """As `maps.inverse_map`, with `invert` on a dense tensor; under torch's transforms it is
    that."""
    if not is_eager(matrix):
        return maps.inverse_map(matrix)
    if not wants_gradient(matrix):
        return invert(matrix.detach().contiguous())
    return Invert.apply(matrix, invert)  # pyright: ignore


class Invert(torch.autograd.Function):
    """The inverse of float64 matrices (..., 2 or 3, 3); singular ones give NaN, with gradient 0."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, invert: Callable[[Tensor], Tensor]) -> Tensor:
        """The backend's result."""
        to_source = invert(matrix.detach().contiguous())
        ctx.save_for_backward(to_source)
        return to_source

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        """See `inverse_vjp`."""
        (to_source,) = ctx.saved_tensors
        (grad,) = grads
        return inverse_vjp(to_source, grad), None


def inverse_vjp(to_source: Tensor, grad: Tensor) -> Tensor:
    """-N' G N' for the inverse N, in sums, because cuBLAS is not always deterministic.

    to_source and grad (..., 2 or 3, 3), float64.
    """
    # no gradient for singular matrices, or if squares of the determinant or of products of entries
    # would overflow
    largest = to_source.abs().amax((-1, -2)).square().square()
    steady = (maps.determinant(to_source).square() + largest).isfinite()[..., None, None]
    safe = maps.to_3x3(torch.where(steady, to_source, 0.0))
    rows = to_source.shape[-2]
    # N' is safe with its indices exchanged; of G and of the result only `rows` rows matter
    right = (grad[..., :, None, :] * safe[..., None, :, :]).sum(-1)
    # narrow, since the slice of everything is an alias, which batches of gradients cannot have
    first = safe if rows == 3 else safe.narrow(-2, 0, rows)
    found = -(first[..., None] * right[..., :, None, :]).sum(-3)
    return found if rows == 3 else found.narrow(-2, 0, rows)
