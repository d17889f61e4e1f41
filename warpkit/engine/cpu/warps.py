"""Warps and their gradients: see `operators.warp`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from warpkit.core.lasting import lasting
from warpkit.engine.cpu import launch
from warpkit.engine.cpu.inverse import inverse_vjp, invert
from warpkit.engine.cpu.warp_calls import WarpCall
from warpkit.engine.definitions.exact_gradient import Given
from warpkit.engine.definitions.layout import are_planes, restore_memory_format
from warpkit.engine.definitions.reference import compute_dtype
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.engine.operators.warp import WARP, Warp


def forward(options: Warp, image: Tensor, mapping: Tensor, fill: Tensor) -> tuple[Tensor, Any]:
    """The result; also the map destination -> source that the kernel read, and no call.

    Tensors as of `WARP`, here and below.
    """
    size, rule, _, relative, wide = options
    source = to_source(options, mapping)
    found = launch.forward(image, source, fill, size, rule, None, relative, wide)
    # of halves, the kernel computes in float32
    return found.to(compute_dtype(image.dtype) if wide else image.dtype), (source, None)


def to_source(options: Warp, mapping: Tensor) -> Tensor:
    """The map destination -> source, or points."""
    return invert(mapping) if options.forward else mapping.detach()


def backward(
    options: Warp,
    kept: tuple[Tensor, WarpCall | None] | None,
    grads: tuple[Tensor, ...],
    tensors: tuple[Tensor, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor, ...]:
    """The gradients of the tensors, as of `WARP`."""
    image, mapping, fill = tensors
    source, call = kept or (to_source(options, mapping), None)
    size, rule, forward, relative, _ = options
    grad = grads[0].to(compute_dtype(image.dtype))
    inputs = grad, image, source, fill, size, rule, wanted
    to_image, to_map, to_fill = launch.backward(*inputs, relative=relative, made=call)
    if forward and wanted[1]:
        to_map = inverse_vjp(source, to_map, mapping.dtype)
    return to_image.to(image.dtype), to_map, to_fill


class GivenWarp(Given):
    """As `Given`; a warp's gradient needs the map that its kernel reads."""

    def forward(self, options: Warp, *tensors: Tensor) -> tuple[Tensor, Any]:
        """As `Given.forward`."""
        return self.values(), (to_source(options, tensors[1]), None)


class Planned:
    """The kernel of warps like one that was planned."""

    def __init__(self, call: WarpCall, fill: Tensor) -> None:
        self.call, self.fill = call, fill
        """fill: in the kernel's format."""

    def forward(
        self, options: Warp, image: Tensor, mapping: Tensor, fill: Tensor
    ) -> tuple[Tensor, Any]:
        """As `forward`."""
        source = invert(mapping) if options.forward else mapping.detach()
        found = launch.result(self.call, image, source, self.fill)
        if found.dtype != image.dtype:  # of halves, the kernel computes in float32
            found = found.to(image.dtype)
        return found, (source, self.call)


def planned(options: Warp, image: Tensor, mapping: Tensor, fill: Tensor) -> Planned:
    """The kernel of warps like this one, of a mapping that kernels read; tensors as of `WARP`."""
    size, rule, _, relative, wide = options
    call = launch.prepared(image, mapping, fill, size, rule, relative=relative, wide=wide)
    fill = launch.as_shown(fill, image.dtype) if call.taps == 1 else fill
    return Planned(call, launch.stored_fill(call, fill))


@lasting
def plan(
    options: Warp, image: Tensor, mapping: Tensor, fill: Tensor, made: Callable[..., Any]
) -> Callable[[Tensor, Tensor], Tensor] | None:
    """A function for calls like this one, if kernels can read the mapping directly.

    image (*I, C, H, W); mapping (*M, 2 or 3, 3) or (*P, h, w, 2); fill broadcasts to the result;
    made: `planned`, or what makes the kernels of another arithmetic.
    """
    if not (mapping.is_contiguous() or are_planes(mapping)):
        return None
    fill = fill.clone()  # it is kept, and may be of inference mode
    real = torch.float64 if mapping.shape[-1] == 3 else mapping.dtype
    source = torch.empty_like(mapping, dtype=real)  # with the strides of planar points
    kernels, rule, forward = made(options, image, source, fill), options.rule, options.forward
    exact = options._replace(rule=SamplingRule(rule.interpolation, rule.border))
    has_slope = rule.interpolation != "nearest" and image.is_floating_point()
    widens, moves = mapping.dtype != real and not forward, not image.is_contiguous()

    def again(image: Tensor, mapping: Tensor) -> Tensor:
        """Tensors as in `plan`."""
        mapping = mapping.to(real) if widens else mapping
        mapping = mapping if has_slope else mapping.detach()
        result = WARP.by(kernels, exact, image, mapping, fill)
        return restore_memory_format(result, image) if moves else result

    return again
