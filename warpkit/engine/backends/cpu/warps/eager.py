"""Calls without a torch operator, whose dispatch takes 10 us, and that of its gradient 50.

A small warp takes less. So where nothing follows a call but autograd's tape, values and first
gradients come straight from `launch`: the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from warpkit.core.tracing import is_eager, wants_gradient
from warpkit.engine.backends.cpu.warps import launch
from warpkit.engine.backends.cpu.warps.inverse import invert, pull
from warpkit.engine.backends.cpu.warps.operators import operators
from warpkit.engine.backends.inverse import pull_inverse
from warpkit.engine.sampling.rules import Rule


def call(
    image: Tensor,
    where: Tensor,
    size: Sequence[int],
    outside: Tensor,
    rule: Rule,
    forward: bool,
) -> Tensor:
    """The result for plain tensors. forward: `where` is a matrix source -> destination."""
    if rule.interpolation == "nearest":  # it has no slope, and autograd should say so
        where = where.detach()
    if image.is_floating_point() and wants_gradient(image, where, outside):
        found: Any = Direct.apply(image, where, outside, size, rule, forward)
        return found[0] if forward else found
    return launch.forward(image, invert(where) if forward else where, outside, size, rule)


class Direct(torch.autograd.Function):
    """The kernels' result; of a matrix source -> destination also the inverse."""

    @staticmethod
    def forward(
        ctx: Any,
        image: Tensor,
        where: Tensor,
        outside: Tensor,
        size: Sequence[int],
        rule: Rule,
        forward: bool,
    ) -> Any:
        """By one launch."""
        source = invert(where) if forward else where
        result = launch.forward(image, source, outside, size, rule)
        to_where = ctx.needs_input_grad[1]
        # the image's pixels serve the gradient to the map alone
        kept = image if to_where else image.new_empty(()).expand(image.shape)
        ctx.save_for_backward(kept, source, outside)
        ctx.size, ctx.rule, ctx.matrix_type = size, rule, where.dtype if forward else None
        ctx.set_materialize_grads(False)
        if not forward:
            return result
        if not to_where:
            ctx.mark_non_differentiable(source)
        return result, source  # a gradient of the gradient comes back here by way of the inverse

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        """By another launch; by the operator where it is to be differentiated, or is a batch."""
        grad, to_source = (*grads, None)[:2]
        image, source, outside = ctx.saved_tensors
        wanted, rule = list(ctx.needs_input_grad[:3]), ctx.rule
        short = not torch.is_grad_enabled() and is_eager(*(g for g in grads if g is not None))
        found: Any = (None, None, None)
        if grad is not None and short:
            found = launch.backward(grad, image, source, outside, ctx.size, rule, wanted)
        elif grad is not None:
            options = (list(ctx.size), rule.interpolation, rule.border, wanted)
            found = operators.call_backward(grad, image, source, outside, *options)
        to_image, to_where, to_outside = (
            g if want else None for g, want in zip(found, wanted, strict=True)
        )
        if to_source is not None:
            to_where = to_source if to_where is None else to_where + to_source
        if ctx.matrix_type and to_where is not None:
            to_where = (pull if short else pull_inverse)(source, to_where).to(ctx.matrix_type)
        return to_image, to_where, to_outside, None, None, None
