"""Calls without a torch operator: dispatch takes 10 us, and 50 with a gradient.

A small warp takes less time. So if only autograd's tape follows a call, values and first gradients
come directly from `launch`, with the same bits. A gradient of a gradient imports the operators,
because defining them takes as long as the rest of a process's first warp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from warpkit.core.lasting import lasting
from warpkit.core.tracing import is_eager, wants_gradient
from warpkit.engine.backends.cpu import launch
from warpkit.engine.backends.cpu.inverse import inverse_vjp, invert
from warpkit.engine.backends.cpu.warp_calls import Shape, WarpCall
from warpkit.engine.sampling.exact_gradient import Values
from warpkit.engine.sampling.layout import are_planes, batch_of, dense_mapping
from warpkit.engine.sampling.maps import added_to_pixels
from warpkit.engine.sampling.maps import inverse_vjp as inverse_vjp_by_torch
from warpkit.engine.sampling.reference import compute_dtype
from warpkit.engine.sampling.rules import SamplingRule


class WarpOptions(NamedTuple):
    """All options of a warp, without tensors."""

    size: Sequence[int]
    rule: SamplingRule
    forward: bool
    """The mapping is a matrix source -> destination."""
    relative: bool
    """The mapping is offsets of points from their pixel, added in float64."""
    made: tuple[WarpCall, Tensor] | None = None
    """The prepared call, and the fill in its format, if the mapping has the kernel's layout."""
    wide: bool = False
    """The result is not rounded to the image's type."""


def call(
    image: Tensor,
    mapping: Tensor,
    fill: Tensor,
    options: WarpOptions,
    values: Values | None = None,
) -> Tensor:
    """The result for plain tensors; values: computes it instead of the warp's kernel.

    image (*I, C, H, W); mapping (*M, 2 or 3, 3) or (*P, h, w, 2), pixels; fill broadcasts to the
    result, (*batch, C, h, w).
    """
    if options.rule.interpolation == "nearest":  # it has no slope, and autograd should report that
        mapping = mapping.detach()
    if image.is_floating_point() and wants_gradient(image, mapping, fill):
        found: Any = EagerWarp.apply(image, mapping, fill, options, values)
        return found[0] if options.forward else found
    if values is not None:
        return values()
    return _result(image, invert(mapping) if options.forward else mapping, fill, options)


def _result(image: Tensor, source: Tensor, fill: Tensor, options: WarpOptions) -> Tensor:
    """As `call`, for a map destination -> source: source (*M, 2 or 3, 3) or (*P, h, w, 2)."""
    size, rule, relative, wide = options.size, options.rule, options.relative, options.wide
    if options.made is not None:
        found = launch.result(options.made[0], image, source, options.made[1])
    else:
        found = launch.forward(image, source, fill, size, rule, relative=relative, wide=wide)
    if wide:
        return found.to(compute_dtype(image.dtype))  # nearest moves bits
    return found.to(image.dtype) if found.dtype != image.dtype else found


@lasting
def prepare(
    image: Tensor, mapping: Tensor, fill: Tensor, options: WarpOptions
) -> Callable[[Tensor, Tensor], Tensor] | None:
    """A function for calls like this one, if kernels can read the mapping directly.

    image (*I, C, H, W); mapping (*M, 2 or 3, 3) or (*P, h, w, 2); fill broadcasts to the result.
    """
    fill = fill.clone()  # it is kept, and may be of inference mode
    real = torch.float64 if mapping.shape[-1] == 3 else mapping.dtype
    source = torch.empty_like(mapping, dtype=real)  # with the strides of planar points
    size, rule, relative = options.size, options.rule, options.relative
    made = launch.prepared(image, source, fill, size, rule, relative=relative)
    if not (mapping.is_contiguous() or are_planes(mapping)):
        return None
    fill_read = launch.as_shown(fill, image.dtype) if made.taps == 1 else fill
    options = options._replace(made=(made, launch.stored_fill(made, fill_read)))
    widens = mapping.dtype != real and not options.forward

    def again(image: Tensor, mapping: Tensor) -> Tensor:
        """Tensors as in `prepare`."""
        return call(image, mapping.to(real) if widens else mapping, fill, options)

    return again


@lru_cache(maxsize=64)
@lasting
def _blank(shape: Shape, dtype: torch.dtype) -> Tensor:
    """A placeholder for an image whose pixels are not read, in the memory of one number."""
    return torch.empty((), dtype=dtype, device="cpu").expand(shape)


class EagerWarp(torch.autograd.Function):
    """The kernels' result; for a matrix source -> destination, also the inverse."""

    @staticmethod
    def forward(
        ctx: Any,
        image: Tensor,
        mapping: Tensor,
        fill: Tensor,
        options: WarpOptions,
        values: Values | None,
    ) -> Any:
        """One launch, or the given values.

        Tensors as in `call`.
        """
        source = invert(mapping) if options.forward else mapping
        ctx.dense = dense_mapping(source.detach())
        result = _result(image, ctx.dense, fill, options) if values is None else values()
        grad_mapping = ctx.needs_input_grad[1]
        # only the mapping's gradient needs the image's pixels
        kept = image if grad_mapping else _blank(image.shape, image.dtype)
        ctx.save_for_backward(kept, source, fill)
        ctx.options, ctx.matrix_type = options, mapping.dtype
        ctx.set_materialize_grads(False)
        if not options.forward:
            return result
        if not grad_mapping:
            ctx.mark_non_differentiable(source)
        return result, source  # a gradient of the gradient needs the inverse

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        """Another launch; or the operator, if it is differentiated or batched."""
        grad, grad_source = (*grads, None)[:2]
        image, source, fill = ctx.saved_tensors
        size, rule, forward, relative, made, _ = ctx.options
        wanted = list(ctx.needs_input_grad[:3])
        short = not torch.is_grad_enabled() and is_eager(*(g for g in grads if g is not None))
        found: Any = (None, None, None)
        if grad is not None:
            grad = grad.to(compute_dtype(image.dtype))
        if grad is not None and short:
            extra: Any = {"relative": relative, "made": made and made[0]}
            found = launch.backward(grad, image, ctx.dense, fill, size, rule, wanted, **extra)
        elif grad is not None:
            from warpkit.engine.backends.cpu.operators import OPERATORS

            names = (list(size), rule.interpolation, rule.border, wanted)
            points = added_to_pixels(source) if relative else source
            whole = image.to(grad.dtype)  # of halves
            found = OPERATORS.call_backward(grad, whole, points, fill, *names)
            if relative:
                found = (found[0], found[1].to(source.dtype), found[2])
        grad_image, grad_mapping, grad_fill = (
            g if want else None for g, want in zip(found, wanted, strict=True)
        )
        if grad_image is not None:
            grad_image = grad_image.to(image.dtype)
        if grad_source is not None:
            grad_mapping = grad_source if grad_mapping is None else grad_mapping + grad_source
        if forward and grad_mapping is not None:
            if short:
                grad_mapping = inverse_vjp(source, grad_mapping, ctx.matrix_type)
            else:
                grad_mapping = inverse_vjp_by_torch(source, grad_mapping).to(ctx.matrix_type)
        return grad_image, grad_mapping, grad_fill, None, None


class EagerSplat(torch.autograd.Function):
    """Adds pixels at their own positions plus offsets: see `reference.splat`."""

    @staticmethod
    def forward(
        ctx: Any, image: Tensor, offsets: Tensor, size: Sequence[int], rule: SamplingRule
    ) -> Tensor:
        """The launch of a warp's image gradient.

        image (*I, C, H, W); offsets (*P, H, W, 2), pixels; size (h, w) of the result.
        """
        ctx.save_for_backward(image, offsets)
        ctx.size, ctx.rule = size, rule
        batch = batch_of(image.shape, offsets.shape)
        zero = image.new_zeros(())
        target = zero.expand(*batch, image.shape[-3], *size)
        image = image.expand(*batch, *image.shape[-3:])
        options = image.shape[-2:], rule, [True, False, False]  # only the image's gradient
        return launch.backward(image, target, offsets, zero, *options, relative=True)[0]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """A warp and its gradient; or the operators, if these are differentiated."""
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
            from warpkit.engine.backends.cpu.operators import OPERATORS

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
