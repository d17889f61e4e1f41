"""Second derivatives of kernels: differentiates the same formulas in torch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def gradients_again(
    formula: Callable[..., tuple[Tensor, ...]],
    inputs: tuple[Tensor, ...],
    grads: tuple[Tensor, ...],
    wanted: tuple[bool, ...],
) -> list[Tensor | None]:
    """The gradients of the inputs that need one, which can be differentiated again.

    For the backward pass of an autograd.Function. inputs: as it saved them, (...) each; grads:
    those of the results, (...) each.
    """
    twice = torch.is_grad_enabled()
    with torch.enable_grad():
        # an input may depend on another one, whose gradient must not include this path
        apart = [value.view_as(value) for value in inputs]
        results = formula(*apart)
    some = [value for value, want in zip(apart, wanted, strict=True) if want]
    options = {"create_graph": twice, "allow_unused": True, "materialize_grads": True}
    found = iter(torch.autograd.grad(results, some, grads, **options))
    return [next(found) if want else None for want in wanted]
