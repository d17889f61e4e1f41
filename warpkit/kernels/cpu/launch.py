"""From tensors to kernel calls: shapes, layouts, and how the work is dealt to threads.

Everything here depends on shapes alone, never on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from math import prod
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from warpkit.kernels.cpu.backward import Task, backward_kernel, spans_kernel
from warpkit.kernels.cpu.forward import forward_kernel
from warpkit.kernels.cpu.items import entries
from warpkit.kernels.cpu.locate import POINTS
from warpkit.kernels.cpu.memory import empty
from warpkit.kernels.cpu.scratch import SIDE, scratch
from warpkit.kernels.cpu.threads import run
from warpkit.kernels.cpu.tile import Plan
from warpkit.kernels.layout import batch_of, is_last, own_batch, read_in_place
from warpkit.kernels.rules import CODE, TAPS, Rule

BANDED = 250_000
"""Values of a gradient from which on an image is split, even though that is more work."""

UNITS = 8
"""Pieces of work when gradients meet in one image. Each costs something, see `_deal`."""


class Deal(NamedTuple):
    """Who works on which image's gradient: see `backward_kernel`."""

    slots: int
    groups: int
    """Slots an image has, to be added up."""
    parts: int
    order: np.ndarray
    starts: np.ndarray


@lru_cache(maxsize=256)
def _deal(own: tuple[int, ...], batch: tuple[int, ...], height: int, small: bool) -> Deal:
    """Deal the items of `batch` to slots, by the image (of `own`) that each has.

    With few images a slot's rows are split into bands, and tiles that straddle two are done twice
    (1.1 to 1.5 times the time); under many matrices for one image, the matrices into groups, each
    with an accumulator of its own (0.7 of the bands' time on 64 matrices).
    """
    images, items = prod(own), prod(batch)
    groups = parts = 1
    if images < UNITS and not small:
        if items >= 4 * images:
            groups = min(items // images, -(-UNITS // images), 4)
        parts = 1 if groups > 1 else min(-(-UNITS // images), height)
    return _shares(entries(own, batch), images, groups, parts)


def _deal_by(of: np.ndarray, images: int, height: int, small: bool) -> Deal:
    """The same where item n has image of[n]."""
    few = 0 < images < UNITS and not small
    return _shares(of, images, 1, min(-(-UNITS // images), height) if few else 1)


def _shares(of: np.ndarray, images: int, groups: int, parts: int) -> Deal:
    """The items by their image, each image's in `groups` of consecutive ones."""
    order = np.argsort(of, kind="stable")
    counts = np.bincount(of, minlength=images)
    edges = np.concatenate(([0], np.cumsum(counts)))
    starts = [edges[i] + counts[i] * g // groups for i in range(images) for g in range(groups)]
    return Deal(images * groups, groups, parts, order, np.array([*starts, len(of)]))


def _dense(image: Tensor, batch: tuple[int, ...]) -> Tensor:
    """The image as kernels read it; channels-last where the result can be too."""
    image = read_in_place(image)
    return image if len(batch) == 1 else image.contiguous()


def _flat(tensor: Tensor) -> np.ndarray:
    """A dense tensor's memory, in its order."""
    if is_last(tensor):
        tensor = tensor.permute(0, 2, 3, 1)
    return tensor.detach().numpy().reshape(-1)


def _plan(
    image: Tensor,
    where: Tensor,
    outside: Tensor,
    size: Sequence[int],
    rule: Rule,
    batch: tuple[int, ...],
    credited: bool,
) -> tuple[Plan, np.ndarray]:
    """The sizes of a call, and the memory of `outside`."""
    channels, height, width = image.shape[-3:]
    own = (1,) * (3 - outside.ndim) + tuple(outside.shape)
    if prod(own[:-3]) > 1:
        outside = outside.expand(*batch, *own[-3:])
    c, h, w = own[-3:]
    per_item = 0 if prod(own[:-3]) == 1 else c * h * w
    strides = (per_item, h * w if c > 1 else 0, w if h > 1 else 0, 1 if w > 1 else 0)
    numbers = 2 * size[0] * size[1] if where.shape[-1] == 2 else 3 * where.shape[-2]
    sizes = (prod(batch), channels, height, width, size[0], size[1])
    plan = Plan(*sizes, CODE[rule.border], numbers, *strides, h * w > 1, credited)
    return plan, outside.detach().contiguous().numpy().reshape(-1)


def _images(image: Tensor, batch: tuple[int, ...], image_of: np.ndarray | None) -> np.ndarray:
    """For every item of `batch` its image, in what `_dense` left of the images."""
    if image_of is None:
        return entries(tuple(image.shape[:-3]), batch)
    return image_of if len(image) > 1 else np.zeros_like(image_of)


def _kind(where: Tensor) -> int:
    return POINTS if where.shape[-1] == 2 else where.shape[-2]


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
    batch = batch_of(image, where) if image_of is None else own_batch(where)
    dense = _dense(image, batch)
    last = is_last(dense)
    shape = (*batch, image.shape[-3], *size)
    pixels, count = _flat(dense), prod(shape)
    memory = empty(count, pixels.dtype)
    out = torch.from_numpy(memory).reshape(shape)
    if last:
        out = out.reshape(shape[0], *size, shape[1]).permute(0, 3, 1, 2)
    if count == 0:
        return out
    plan, outside_flat = _plan(dense, where, outside, size, rule, batch, False)
    low, high = 0, 0
    if not image.is_floating_point():
        low, high = torch.iinfo(image.dtype).min, torch.iinfo(image.dtype).max
    taps = TAPS[rule.interpolation]
    kernel = forward_kernel(_kind(where), taps, last, low, high)
    arrays = (
        pixels,
        where.detach().contiguous().numpy().reshape(-1),
        outside_flat,
        memory,
        _images(dense, batch, image_of),
        entries(own_batch(where), batch),
        plan,
    )
    units = plan.items * -(-plan.out_height // SIDE)
    dtype = outside_flat.dtype
    run(lambda *span: kernel(*arrays, scratch(taps, dtype), *span), units, count)
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
    """The gradients to image, where and outside; an empty tensor for one that is not wanted."""
    batch = batch_of(image, where) if image_of is None else own_batch(where)
    kind, taps, tall = _kind(where), TAPS[rule.interpolation], -(-size[0] // SIDE)
    to_image, to_where, to_outside = wanted[0], wanted[1] and taps > 1, wanted[2]
    # the image's pixels serve the gradient to `where` alone
    source = _dense(image, batch) if to_where else image
    last = is_last(source) and len(batch) == 1 and source.shape[0] == image.shape[0]
    if to_where and not last:
        source = source.contiguous()
    grad = grad.contiguous(memory_format=torch.channels_last if last else torch.contiguous_format)
    plan, outside_flat = _plan(source, where, outside, size, rule, batch, to_outside)
    small = grad.numel() < BANDED
    if to_image and image_of is not None:
        deal = _deal_by(image_of, len(image), plan.height, small)
    elif to_image:
        deal = _deal(tuple(image.shape[:-3]), batch, plan.height, small)
    else:
        deal = _deal(batch, batch, tall, small)
    where_of = entries(own_batch(where), batch)
    points = where.detach().contiguous().numpy().reshape(-1)
    pixels = _flat(source) if to_where else np.empty(1, outside_flat.dtype)
    g_image = empty(deal.slots * image.shape[-3:].numel() if to_image else 0, pixels.dtype)
    g_where = np.zeros(to_where * plan.items * (plan.where if kind == POINTS else deal.parts * 9))
    g_outside = np.zeros(
        to_outside * (grad.numel() if plan.dense else plan.items * deal.parts * plan.channels)
    )
    if not grad.numel():
        g_image[:] = 0
    elif to_image or to_where or to_outside:
        spans = np.empty(0, np.int64)
        if to_image and deal.parts > 1:
            spans = _spans(kind, taps, points, where_of, plan, tall, grad.numel())
        arrays = (_flat(grad), pixels, points, outside_flat, g_image, g_where, g_outside)
        kernel = backward_kernel(Task(kind, taps, last, to_image, to_where))
        deals = (
            _images(source, batch, image_of),
            where_of,
            deal.order,
            deal.starts,
            spans,
            plan,
            deal.parts,
        )
        units = deal.slots * deal.parts
        dtype = pixels.dtype
        run(lambda *span: kernel(arrays, *deals, scratch(taps, dtype), *span), units, grad.numel())
    nothing = grad.new_empty(0)
    return (
        _image_gradient(g_image, image, deal, last) if wanted[0] else nothing,
        _where_gradient(g_where, where, batch, deal, to_where) if wanted[1] else nothing.clone(),
        _outside_gradient(g_outside, outside, batch, grad, deal, plan.dense)
        if wanted[2]
        else nothing.clone(),
    )


def _spans(
    kind: int,
    taps: int,
    points: np.ndarray,
    where_of: np.ndarray,
    plan: Plan,
    tall: int,
    values: int,
) -> np.ndarray:
    """The first and last image row that each tile reads."""
    spans = np.empty(2 * plan.items * tall * -(-plan.out_width // SIDE), np.int64)
    find = spans_kernel(kind, taps)
    units = plan.items * tall
    memory = partial(scratch, taps, points.dtype)
    run(lambda *span: find(points, where_of, spans, plan, memory()[0], *span), units, values)
    return spans


def _image_gradient(total: np.ndarray, image: Tensor, deal: Deal, last: bool) -> Tensor:
    """The groups added up in their order."""
    groups = torch.from_numpy(total).reshape(-1, deal.groups, image.shape[-3:].numel())
    result = groups[:, 0]
    for g in range(1, deal.groups):
        result = result + groups[:, g]
    if last:
        return result.reshape(-1, *image.shape[-2:], image.shape[-3]).permute(0, 3, 1, 2)
    return result.reshape(image.shape)


def _where_gradient(
    total: np.ndarray, where: Tensor, batch: tuple[int, ...], deal: Deal, any_: bool
) -> Tensor:
    if not any_:
        return torch.zeros_like(where, memory_format=torch.contiguous_format)
    if where.shape[-1] == 2:
        return _sum_to(total.reshape(*batch, *where.shape[-3:]), where)
    total = total.reshape(*batch, deal.parts, 3, 3).sum(-3)
    return _sum_to(total[..., : where.shape[-2], :], where)


def _outside_gradient(
    total: np.ndarray,
    outside: Tensor,
    batch: tuple[int, ...],
    grad: Tensor,
    deal: Deal,
    pixelwise: bool,
) -> Tensor:
    if pixelwise:
        return _sum_to(total.reshape(grad.shape), outside)
    total = total.reshape(*batch, deal.parts, grad.shape[-3]).sum(-2)
    return _sum_to(total[..., None, None], outside)


def _sum_to(total: np.ndarray, like: Tensor) -> Tensor:
    """Summed over what was broadcast. Not by torch, whose order depends on its threads."""
    extra = total.ndim - like.ndim
    total = total.sum(tuple(range(extra))) if extra else total
    ones = tuple(d for d in range(like.ndim) if like.shape[d] == 1 != total.shape[d])
    total = total.sum(ones, keepdims=True) if ones else total
    return torch.from_numpy(np.ascontiguousarray(total)).to(like.dtype).reshape(like.shape)
