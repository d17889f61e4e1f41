"""Launches kernels with tensors, without synchronising with the device.

Launches use the current stream of the image's device and depend only on shapes, so a call can be
captured in a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from warpkit.engine.definitions.layout import sum_to
from warpkit.engine.definitions.rules import MISSING_BORDERS, SamplingRule
from warpkit.engine.triton.backward import backward_kernel
from warpkit.engine.triton.forward import forward_kernel
from warpkit.engine.triton.image_gradient import gather, scatter
from warpkit.engine.triton.work import (
    MOVED,
    REALS,
    CudaLaunch,
    block,
    launch,
    prepare,
    tiles_of,
)


def forward(
    image: Tensor, mapping: Tensor, fill: Tensor, size: Sequence[int], rule: SamplingRule
) -> Tensor:
    """The result, (*batch, C, h, w).

    image (*I, C, H, W); mapping (*M, 2 or 3, 3), destination -> source, or (*P, h, w, 2), pixels;
    fill broadcasts to the result.
    """
    call = prepare(image, mapping, fill, size, rule)
    shape = (*call.batch, image.shape[-3], *size)
    layout = torch.channels_last if call.channels_last else torch.contiguous_format
    out = torch.empty(shape, dtype=image.dtype, device=image.device, memory_format=layout)
    if out.numel() == 0:
        return out
    low, high, moved = 0, 0, MOVED.get(image.dtype)
    if not moved and not image.is_floating_point():
        low, high = torch.iinfo(image.dtype).min, torch.iinfo(image.dtype).max
    shape = block(call)
    tiles = tiles_of(size, shape["PIXELS"])
    launch(
        forward_kernel, call.items * tiles, call.image, call.mapping, call.fill, out,
        **call.sizes, **call.maps, **call.strides, **call.switches, **shape,
        tiles=tiles, DENSE=call.dense, LOW=low, HIGH=high,
        MOVED=moved is not None, VALUE=moved or REALS[call.real],
    )  # fmt: skip
    return out


def backward(
    grad: Tensor,
    image: Tensor,
    mapping: Tensor,
    fill: Tensor,
    size: Sequence[int],
    rule: SamplingRule,
    wanted: Sequence[bool],
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients to image, mapping and fill; empty tensors for those not needed.

    grad (*batch, C, h, w); the other tensors as in `forward`.
    """
    call = prepare(image, mapping, fill, size, rule)
    grad = grad.contiguous(
        memory_format=torch.channels_last if call.channels_last else torch.contiguous_format
    )
    grad_image = grad_mapping = grad_fill = grad.new_empty(0)
    if wanted[0] and grad.numel() and image.numel():
        matrix = mapping.shape[-1] == 3 and rule.border in MISSING_BORDERS
        grad_image = (gather if matrix else scatter)(call, grad, image)
    elif wanted[0]:
        grad_image = image.new_zeros(image.shape)
    if wanted[1] or wanted[2]:
        grad_mapping, grad_fill = _to_map(call, grad, mapping, fill, wanted)
    return grad_image, grad_mapping, grad_fill


def _to_map(
    call: CudaLaunch, grad: Tensor, mapping: Tensor, fill: Tensor, wanted: Sequence[bool]
) -> tuple[Tensor, Tensor]:
    """The gradients to mapping and fill from `backward_kernel`, with parts added in order.

    Tensors as in `backward`.
    """
    points, channels, none = mapping.shape[-1] == 2, grad.shape[-3], grad.new_empty(0)
    steep = wanted[1] and call.switches["TAPS"] > 1  # nearest has no slope
    shape = block(call)
    tiles = tiles_of(grad.shape[-2:], shape["PIXELS"])
    mapping_shape = (*call.batch, *mapping.shape[-3:]) if points else (call.items, tiles, 9)
    fill_shape = grad.shape if call.dense else (call.items, tiles, channels)
    grad_mapping = grad.new_empty(
        mapping_shape if steep else 0, dtype=mapping.dtype if points else torch.float64
    )
    grad_fill = torch.empty(
        fill_shape if wanted[2] else 0,
        dtype=call.real if call.dense else torch.float64,
        device=grad.device,
    )
    if grad.numel() and (steep or wanted[2]):
        launch(
            backward_kernel, call.items * tiles,
            grad, call.image, call.mapping, call.fill, grad_mapping, grad_fill,
            **call.sizes, **call.maps, **call.strides, **call.switches, **shape,
            tiles=tiles, DENSE=call.dense, NEEDS_GRAD_MAPPING=steep, NEEDS_GRAD_FILL=wanted[2],
        )  # fmt: skip
    if not steep:
        grad_mapping = mapping.new_zeros(mapping.shape) if wanted[1] else none
    elif points:
        grad_mapping = sum_to(grad_mapping, mapping)
    else:
        grad_mapping = grad_mapping.sum(1).reshape(*call.batch, 3, 3)[..., : mapping.shape[-2], :]
        grad_mapping = sum_to(grad_mapping, mapping)
    if not wanted[2]:
        return grad_mapping, none
    if not call.dense:
        grad_fill = grad_fill.sum(1).reshape(*call.batch, channels, 1, 1)
    return grad_mapping, sum_to(grad_fill, fill)
