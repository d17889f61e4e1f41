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
from warpkit.engine.definitions.layout import are_planes
from warpkit.engine.definitions.reference import compute_dtype
from warpkit.engine.operators.warp import WARP, Warp


def forward(options: Warp, image: Tensor, mapping: Tensor, fill: Tensor) -> tuple[Tensor, Any]:
    """The result; also the map destination -> source that the kernel read, and no call.

    Tensors as of `WARP`, here and below.
    """
    size, rule, _, relative, wide = options
    source = _to_source(options, mapping)
    found = launch.forward(image, source, fill, size, rule, None, relative, wide)
    return _rounded(found, image, wide), (source, None)


def _rounded(result: Tensor, image: Tensor, wide: bool) -> Tensor:
    """The kernel's result (*batch, C, h, w), which it computes in float32 for an image
    (*I, C, H, W) of halves."""
    kind = compute_dtype(image.dtype) if wide else image.dtype
    return result if result.dtype == kind else result.to(kind)


def _to_source(options: Warp, mapping: Tensor) -> Tensor:
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
    source, call = kept or (_to_source(options, mapping), None)
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
        return self.values(), (_to_source(options, tensors[1]), None)


class Planned:
    """The kernel of warps like one that was planned."""

    def __init__(self, call: WarpCall, fill: Tensor) -> None:
        self.call, self.fill = call, fill
        """fill: in the kernel's format."""

    def forward(
        self, options: Warp, image: Tensor, mapping: Tensor, fill: Tensor
    ) -> tuple[Tensor, Any]:
        """As `forward`."""
        source = _to_source(options, mapping)
        found = launch.result(self.call, image, source, self.fill)
        return _rounded(found, image, options.wide), (source, self.call)


@lasting
def plan(
    options: Warp, image: Tensor, mapping: Tensor, fill: Tensor
) -> Callable[[Tensor, Tensor], Tensor] | None:
    """A function for calls like this one, if kernels can read the mapping directly.

    image (*I, C, H, W); mapping (*M, 2 or 3, 3) or (*P, h, w, 2); fill broadcasts to the result.
    """
    fill = fill.clone()  # it is kept, and may be of inference mode
    real = torch.float64 if mapping.shape[-1] == 3 else mapping.dtype
    source = torch.empty_like(mapping, dtype=real)  # with the strides of planar points
    size, rule, _, relative, wide = options
    call = launch.prepared(image, source, fill, size, rule, relative=relative, wide=wide)
    if not (mapping.is_contiguous() or are_planes(mapping)):
        return None
    fill_read = launch.as_shown(fill, image.dtype) if call.taps == 1 else fill
    kernels = Planned(call, launch.stored_fill(call, fill_read))
    widens = mapping.dtype != real and not options.forward

    has_slope = call.taps > 1 and image.is_floating_point()

    def again(image: Tensor, mapping: Tensor) -> Tensor:
        """Tensors as in `plan`."""
        mapping = mapping.to(real) if widens else mapping
        mapping = mapping if has_slope else mapping.detach()
        return WARP.by(kernels, options, image, mapping, fill)

    return again
