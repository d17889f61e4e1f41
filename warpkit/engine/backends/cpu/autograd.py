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
from warpkit.engine.backends.cpu import launch
from warpkit.engine.backends.cpu.inverse import inverse_vjp_numpy, invert
from warpkit.engine.backends.cpu.operators import OPERATORS
from warpkit.engine.backends.inverse import inverse_vjp
from warpkit.engine.backends.operators import ADJOINT
from warpkit.engine.sampling.layout import batch_of
from warpkit.engine.sampling.maps import added_to_pixels
from warpkit.engine.sampling.rules import SamplingRule


def call(
    image: Tensor,
    mapping: Tensor,
    size: Sequence[int],
    fill: Tensor,
    rule: SamplingRule,
    forward: bool,
    relative: bool = False,
) -> Tensor:
    """The result for plain tensors. forward: `mapping` is a matrix source -> destination.

    relative: `mapping` is offsets of points from their pixel, added in float64.

    image (*I, C, H, W); mapping (*M, 2 or 3, 3), destination -> source, or (*P, h, w, 2), pixels;
    fill broadcasts to the result, (*batch, C, h, w).
    """
    if rule.interpolation == "nearest":  # it has no slope, and autograd should say so
        mapping = mapping.detach()
    if image.is_floating_point() and wants_gradient(image, mapping, fill):
        found: Any = EagerWarp.apply(image, mapping, fill, size, rule, forward, relative)
        return found[0] if forward else found
    source = invert(mapping) if forward else mapping
    return launch.forward(image, source, fill, size, rule, relative=relative)


class EagerWarp(torch.autograd.Function):
    """The kernels' result; of a matrix source -> destination also the inverse."""

    @staticmethod
    def forward(
        ctx: Any,
        image: Tensor,
        mapping: Tensor,
        fill: Tensor,
        size: Sequence[int],
        rule: SamplingRule,
        forward: bool,
        relative: bool,
    ) -> Any:
        """By one launch.

        Tensors as of `call`.
        """
        source = invert(mapping) if forward else mapping
        ctx.dense = source.detach().contiguous()  # a field of planes is copied once
        result = launch.forward(image, ctx.dense, fill, size, rule, relative=relative)
        grad_mapping = ctx.needs_input_grad[1]
        # the image's pixels serve the gradient to the map alone
        kept = image if grad_mapping else image.new_empty(()).expand(image.shape)
        ctx.save_for_backward(kept, source, fill)
        ctx.size, ctx.rule, ctx.matrix_type = size, rule, mapping.dtype if forward else None
        ctx.relative = relative
        ctx.set_materialize_grads(False)
        if not forward:
            return result
        if not grad_mapping:
            ctx.mark_non_differentiable(source)
        return result, source  # a gradient of the gradient comes back here by way of the inverse

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        """By another launch; by the operator where it is to be differentiated, or is a batch."""
        grad, grad_source = (*grads, None)[:2]
        image, source, fill = ctx.saved_tensors
        wanted, rule = list(ctx.needs_input_grad[:3]), ctx.rule
        short = not torch.is_grad_enabled() and is_eager(*(g for g in grads if g is not None))
        found: Any = (None, None, None)
        if grad is not None and short:
            sizes = (ctx.size, rule, wanted)
            found = launch.backward(grad, image, ctx.dense, fill, *sizes, relative=ctx.relative)
        elif grad is not None:
            options = (list(ctx.size), rule.interpolation, rule.border, wanted)
            points = added_to_pixels(source) if ctx.relative else source
            found = OPERATORS.call_backward(grad, image, points, fill, *options)
            if ctx.relative:
                found = (found[0], found[1].to(source.dtype), found[2])
        grad_image, grad_mapping, grad_fill = (
            g if want else None for g, want in zip(found, wanted, strict=True)
        )
        if grad_source is not None:
            grad_mapping = grad_source if grad_mapping is None else grad_mapping + grad_source
        if ctx.matrix_type and grad_mapping is not None:
            if short:
                pulled = torch.from_numpy(inverse_vjp_numpy(source, grad_mapping.numpy()))
            else:
                pulled = inverse_vjp(source, grad_mapping)
            grad_mapping = pulled.to(ctx.matrix_type)
        return grad_image, grad_mapping, grad_fill, None, None, None, None


class EagerSplat(torch.autograd.Function):
    """Pixels added where offsets from their own places lead: see `reference.splat`."""

    @staticmethod
    def forward(
        ctx: Any, image: Tensor, offsets: Tensor, size: Sequence[int], rule: SamplingRule
    ) -> Tensor:
        """By the launch of a warp's gradient.

        image (*I, C, H, W); offsets (*P, H, W, 2), pixels; size (h, w) of the result.
        """
        ctx.save_for_backward(image, offsets)
        ctx.size, ctx.rule = size, rule
        batch = batch_of(image.shape, offsets.shape)
        zero = image.new_zeros(())
        target = zero.expand(*batch, image.shape[-3], *size)
        image = image.expand(*batch, *image.shape[-3:])
        options = image.shape[-2:], rule, ADJOINT
        return launch.backward(image, target, offsets, zero, *options, relative=True)[0]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """By a warp and its gradient; by the operators where they are to be differentiated."""
        (grad,), (image, offsets), rule = grads, ctx.saved_tensors, ctx.rule
        zero, size, wanted = image.new_zeros(()), image.shape[-2:], ctx.needs_input_grad[:2]
        grad_image = grad_offsets = None
        whole = image.expand(*grad.shape[:-2], *size)
        if not torch.is_grad_enabled() and is_eager(grad):
            inputs: Any = grad, offsets, zero, size, rule
            if wanted[0]:
                grad_image = launch.forward(*inputs, relative=True)
            if wanted[1]:
                to_map = [False, True, False]
                found = launch.backward(whole, *inputs, wanted=to_map, relative=True)
                grad_offsets = found[1]
        else:
            inputs = grad, added_to_pixels(offsets), zero, list(size)
            names = rule.interpolation, rule.border
            if wanted[0]:
                grad_image = OPERATORS.call(*inputs, *names)
            if wanted[1]:
                found = OPERATORS.call_backward(whole, *inputs, *names, [False, True, False])
                grad_offsets = found[1].to(offsets.dtype)
        if grad_image is not None:
            grad_image = grad_image.sum_to_size(image.shape)
        return grad_image, grad_offsets, None, None
