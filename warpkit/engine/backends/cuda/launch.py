"""From tensors to kernel launches. Nothing here waits for the device or looks at a value.

Launches go to the current stream of the image's device and depend on shapes alone, so that a call
can be captured in a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from warpkit.engine.backends.cuda.backward import backward_kernel
from warpkit.engine.backends.cuda.forward import forward_kernel
from warpkit.engine.backends.cuda.image_gradient import gather, scatter
from warpkit.engine.backends.cuda.work import MOVED, REALS, Call, block, launch, prepare, tiles_of
from warpkit.engine.sampling.layout import sum_to
from warpkit.engine.sampling.rules import MISSING, Rule


def forward(
    image: Tensor, where: Tensor, outside: Tensor, size: Sequence[int], rule: Rule
) -> Tensor:
    """The result, (*batch, C, h, w)."""
    call = prepare(image, where, outside, size, rule)
    shape = (*call.batch, image.shape[-3], *size)
    layout = torch.channels_last if call.last else torch.contiguous_format
    out = torch.empty(shape, dtype=image.dtype, device=image.device, memory_format=layout)
    if out.numel() == 0:
        return out
    low, high, moved = 0, 0, MOVED.get(image.dtype)
    if not moved and not image.is_floating_point():
        low, high = torch.iinfo(image.dtype).min, torch.iinfo(image.dtype).max
    shape = block(call)
    tiles = tiles_of(size, shape["PIXELS"])
    launch(
        forward_kernel, call.items * tiles, call.image, call.where, call.outside, out,
        **call.sizes, **call.maps, **call.strides, **call.switches, **shape,
        tiles=tiles, DENSE=call.dense, LOW=low, HIGH=high,
        MOVED=moved is not None, VALUE=moved or REALS[call.real],
    )  # fmt: skip
    return out


def backward(
    grad: Tensor,
    image: Tensor,
    where: Tensor,
    outside: Tensor,
    size: Sequence[int],
    rule: Rule,
    wanted: Sequence[bool],
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients to image, where and outside; anything for one that is not wanted."""
    call = prepare(image, where, outside, size, rule)
    grad = grad.contiguous(
        memory_format=torch.channels_last if call.last else torch.contiguous_format
    )
    to_image = to_where = to_outside = grad.new_empty(0)
    if wanted[0] and grad.numel() and image.numel():
        matrix = where.shape[-1] == 3 and rule.border in MISSING
        to_image = (gather if matrix else scatter)(call, grad, image)
    elif wanted[0]:
        to_image = image.new_zeros(image.shape)
    if wanted[1] or wanted[2]:
        to_where, to_outside = _to_map(call, grad, where, outside, wanted)
    return to_image, to_where, to_outside


def _to_map(
    call: Call, grad: Tensor, where: Tensor, outside: Tensor, wanted: Sequence[bool]
) -> tuple[Tensor, Tensor]:
    """The gradients to where and outside by `backward_kernel`, parts added up in order."""
    points, channels, none = where.shape[-1] == 2, grad.shape[-3], grad.new_empty(0)
    steep = wanted[1] and call.switches["TAPS"] > 1  # nearest has no slope
    shape = block(call)
    tiles = tiles_of(grad.shape[-2:], shape["PIXELS"])
    of_where = (*call.batch, *where.shape[-3:]) if points else (call.items, tiles, 9)
    of_outside = grad.shape if call.dense else (call.items, tiles, channels)
    to_where = grad.new_empty(
        of_where if steep else 0, dtype=where.dtype if points else torch.float64
    )
    to_outside = torch.empty(
        of_outside if wanted[2] else 0,
        dtype=call.real if call.dense else torch.float64,
        device=grad.device,
    )
    if grad.numel() and (steep or wanted[2]):
        launch(
            backward_kernel, call.items * tiles,
            grad, call.image, call.where, call.outside, to_where, to_outside,
            **call.sizes, **call.maps, **call.strides, **call.switches, **shape,
            tiles=tiles, DENSE=call.dense, TO_WHERE=steep, TO_OUTSIDE=wanted[2],
        )  # fmt: skip
    if not steep:
        to_where = where.new_zeros(where.shape) if wanted[1] else none
    elif points:
        to_where = sum_to(to_where, where)
    else:
        to_where = to_where.sum(1).reshape(*call.batch, 3, 3)[..., : where.shape[-2], :]
        to_where = sum_to(to_where, where)
    if not wanted[2]:
        return to_where, none
    if not call.dense:
        to_outside = to_outside.sum(1).reshape(*call.batch, channels, 1, 1)
    return to_where, sum_to(to_outside, outside)
