"""From tensors to kernel calls: shapes, layouts, and how the work is dealt to threads.

Everything here depends on shapes alone, never on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from warpkit.core.checks import LABELS
from warpkit.engine.backends.cpu.runtime.result_memory import empty
from warpkit.engine.backends.cpu.runtime.scratch import scratch
from warpkit.engine.backends.cpu.runtime.threads import run
from warpkit.engine.backends.cpu.warps.backward import Task, backward_kernel, spans_kernel
from warpkit.engine.backends.cpu.warps.forward import forward_kernel
from warpkit.engine.backends.cpu.warps.items import entries
from warpkit.engine.backends.cpu.warps.labels import moving_kernel
from warpkit.engine.backends.cpu.warps.positions import POINTS
from warpkit.engine.backends.cpu.warps.work import Call, Deal, call, deal, deal_by
from warpkit.engine.sampling.layout import is_last, read_in_place
from warpkit.engine.sampling.rules import TAPS, Rule


def _dense(image: Tensor, batch: tuple[int, ...]) -> Tensor:
    """The image as kernels read it; channels-last where the result can be too."""
    image = read_in_place(image)
    return image if len(batch) == 1 else image.contiguous()


def _flat(tensor: Tensor) -> np.ndarray:
    """A dense tensor's memory, in its order."""
    if is_last(tensor):
        tensor = tensor.permute(0, 2, 3, 1)
    return tensor.numpy(force=True).ravel()


def _outside(outside: Tensor, made: Call) -> np.ndarray:
    """The memory of `outside`."""
    if made.expand:
        outside = outside.expand(*made.batch, *outside.shape[-3:])
    return outside.contiguous().numpy(force=True).ravel()


def _images(image: Tensor, batch: tuple[int, ...], image_of: np.ndarray | None) -> np.ndarray:
    """For every item of `batch` its image, in what `_dense` left of the images."""
    if image_of is None:
        return entries(image.shape[:-3], batch)
    return image_of if len(image) > 1 else np.zeros_like(image_of)


def forward(
    image: Tensor,
    where: Tensor,
    outside: Tensor,
    size: Sequence[int],
    rule: Rule,
    image_of: np.ndarray | None = None,
) -> Tensor:
    """The result, (*batch, C, h, w).

    image_of (N,), int64 and within the images (B, C, H, W): where one of (N,) matrices looks. None:
    images and `where` broadcast.
    """
    shapes = image.shape, where.shape, outside.shape, tuple(size)
    made = call(*shapes, rule.border, listed=image_of is not None)
    dense = _dense(image, made.batch)
    last = is_last(dense)
    pixels = _flat(dense)
    memory = empty(made.values, pixels.dtype)
    out = _tensor(memory, made.shape, last)
    if made.values == 0:
        return out
    taps, outside_flat = TAPS[rule.interpolation], _outside(outside, made)
    dtype = outside_flat.dtype
    if image.dtype in LABELS:
        kernel, dtype = moving_kernel(made.kind, last), np.dtype(np.float32)
    else:
        low, high = 0, 0
        if not image.is_floating_point():
            low, high = torch.iinfo(image.dtype).min, torch.iinfo(image.dtype).max
        kernel = forward_kernel(made.kind, taps, last, low, high)
    arrays = (
        pixels,
        _flat(where.contiguous()),
        outside_flat,
        memory,
        _images(dense, made.batch, image_of),
        made.where_of,
        made.sizes,
    )
    units = made.plan.items * made.tall
    run(lambda *span: kernel(*arrays, scratch(taps, dtype), *span), units, made.values)
    return out


def backward(
    grad: Tensor,
    image: Tensor,
    where: Tensor,
    outside: Tensor,
    size: Sequence[int],
    rule: Rule,
    wanted: Sequence[bool],
    image_of: np.ndarray | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients to image, where and outside; anything for one that is not wanted."""
    taps = TAPS[rule.interpolation]
    to_image, to_where, to_outside = wanted[0], wanted[1] and taps > 1, wanted[2]
    shapes = image.shape, where.shape, outside.shape, tuple(size)
    made = call(*shapes, rule.border, listed=image_of is not None, credited=to_outside)
    plan, batch, values = made.plan, made.batch, made.values
    # the image's pixels serve the gradient to `where` alone
    source = _dense(image, batch) if to_where else image
    last = is_last(source) and len(batch) == 1 and source.shape[0] == image.shape[0]
    if to_where and not last:
        source = source.contiguous()
    grad = grad.contiguous(memory_format=torch.channels_last if last else torch.contiguous_format)
    if to_image and image_of is not None:
        dealt = deal_by(image_of, len(image), plan.height, values)
    elif to_image:
        dealt = deal(image.shape[:-3], batch, plan.height, values)
    else:
        dealt = deal(batch, batch, made.tall, values)
    parts = dealt.parts
    points, outside_flat = _flat(where.contiguous()), _outside(outside, made)
    pixels = _flat(source) if to_where else np.empty(1, outside_flat.dtype)
    g_image = empty(dealt.slots * image.shape[-3:].numel() if to_image else 0, pixels.dtype)
    g_where = np.zeros(to_where * plan.items * (plan.where if made.kind == POINTS else parts * 9))
    g_outside = np.zeros(
        to_outside * (values if plan.dense else plan.items * parts * plan.channels)
    )
    if not values:
        g_image[:] = 0
    elif to_image or to_where or to_outside:
        spans = np.empty(0, np.int64)
        if to_image and parts > 1:
            spans = _spans(taps, points, made)
        arrays = (_flat(grad), pixels, points, outside_flat, g_image, g_where, g_outside)
        kernel = backward_kernel(Task(made.kind, taps, last, to_image, to_where))
        deals = (
            _images(source, batch, image_of),
            made.where_of,
            dealt.order,
            dealt.starts,
            spans,
            made.sizes,
            parts,
        )
        dtype = pixels.dtype
        units = dealt.slots * parts
        run(lambda *span: kernel(arrays, *deals, scratch(taps, dtype), *span), units, values)
    return (
        _image_gradient(g_image, image, dealt, last) if wanted[0] else grad,
        _where_gradient(g_where, where, made, parts, to_where) if wanted[1] else grad,
        _outside_gradient(g_outside, outside, made, parts) if wanted[2] else grad,
    )


def _spans(taps: int, points: np.ndarray, made: Call) -> np.ndarray:
    """The first and last image row that each tile reads."""
    units = made.plan.items * made.tall
    spans = np.empty(2 * units * made.wide, np.int64)
    find = spans_kernel(made.kind, taps)
    memory = partial(scratch, taps, points.dtype)
    run(
        lambda *span: find(points, made.where_of, spans, made.sizes, memory(), *span),
        units,
        made.values,
    )
    return spans


def _tensor(memory: np.ndarray, shape: Sequence[int], last: bool) -> Tensor:
    """Memory as a tensor, and not as a view of one: its user may write to it."""
    if last:
        n, c, h, w = shape
        return torch.from_numpy(memory.reshape(n, h, w, c).transpose(0, 3, 1, 2))
    return torch.from_numpy(memory.reshape(shape))


def _image_gradient(total: np.ndarray, image: Tensor, dealt: Deal, last: bool) -> Tensor:
    """The groups added up in their order."""
    if dealt.groups > 1:
        groups = torch.from_numpy(total).reshape(-1, dealt.groups, image.shape[-3:].numel())
        first, *others = groups.unbind(1)
        total = sum(others, first).numpy()
    return _tensor(total, image.shape, last)


@np.errstate(all="ignore")  # infinities may meet: NaN without a warning, as in torch
def _where_gradient(total: np.ndarray, where: Tensor, made: Call, parts: int, any_: bool) -> Tensor:
    if not any_:
        return torch.zeros_like(where, memory_format=torch.contiguous_format)
    if made.kind == POINTS:
        return _sum_to(total.reshape(*made.batch, *where.shape[-3:]), where)
    total = total.reshape(*made.batch, parts, 3, 3)
    total = total[..., 0, :, :] if parts == 1 else total.sum(-3)
    return _sum_to(total[..., : where.shape[-2], :], where)


@np.errstate(all="ignore")
def _outside_gradient(total: np.ndarray, outside: Tensor, made: Call, parts: int) -> Tensor:
    if made.plan.dense:
        return _sum_to(total.reshape(made.shape), outside)
    total = total.reshape(*made.batch, parts, made.plan.channels).sum(-2)
    return _sum_to(total[..., None, None], outside)


def _sum_to(total: np.ndarray, like: Tensor) -> Tensor:
    """Summed over what was broadcast. Not by torch, whose order depends on its threads."""
    extra = total.ndim - like.ndim
    total = total.sum(tuple(range(extra))) if extra else total
    if total.shape != tuple(like.shape):
        ones = tuple(d for d in range(like.ndim) if like.shape[d] == 1 != total.shape[d])
        total = total.sum(ones, keepdims=True)
    # numpy makes a row of a single number
    return torch.from_numpy(np.ascontiguousarray(total).reshape(like.shape)).to(like.dtype)
