"""The gradients of a function's inputs, in whatever mode torch is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from warpkit.core.tracing import in_transform


def vjp(
    function: Callable[..., Any],
    inputs: Sequence[Tensor],
    grads: Sequence[Tensor],
    wanted: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    """The gradients of a function's inputs, None for those that are not wanted.

    In a graph they can be differentiated again. grads: those of the function's first results.
    Tensors are of any shape.
    """
    if in_transform():
        return _transformed_vjp(function, inputs, grads, wanted)
    in_graph = torch.is_grad_enabled()
    with torch.enable_grad():
        # an input may depend on another one, whose gradient must not include this path; and one of
        # which the tape has the shape alone has lost its own
        apart = [
            value.view_as(value)
            if value.requires_grad or not want
            else value.detach().requires_grad_()
            for value, want in zip(inputs, wanted, strict=True)
        ]
        results = function(*apart)
    results = results if isinstance(results, tuple) else (results,)
    of = [value for value, want in zip(apart, wanted, strict=True) if want]
    options = {"create_graph": in_graph, "allow_unused": True, "materialize_grads": True}
    # a gradient does not depend on the inputs in which its function is linear
    depend = [n for n in range(len(grads)) if results[n].requires_grad]
    values, seeds = [results[n] for n in depend], [grads[n] for n in depend]
    found = iter(torch.autograd.grad(values, of, seeds, **options))
    return tuple(next(found) if want else None for want in wanted)


def _transformed_vjp(
    function: Callable[..., Any],
    inputs: Sequence[Tensor],
    grads: Sequence[Tensor],
    wanted: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    """As `vjp` in torch.func's transforms, which know no leaves."""

    def of(*chosen: Tensor) -> tuple[Tensor, ...]:
        new = iter(chosen)
        every = [next(new) if want else x for x, want in zip(inputs, wanted, strict=True)]
        results = function(*every)
        return (results if isinstance(results, tuple) else (results,))[: len(grads)]

    chosen = [x for x, want in zip(inputs, wanted, strict=True) if want]
    found: Any = torch.func.vjp(of, *chosen)[1](tuple(grads))
    rest = iter(found)
    return tuple(next(rest) if want else None for want in wanted)


def blank(value: Tensor) -> Tensor:
    """Zeros of any shape in the memory of one number."""
    return value.detach().new_zeros(()).expand(value.shape)
