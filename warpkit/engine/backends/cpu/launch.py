"""From tensors to calls of the native kernels, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.backends.cpu import calls, warp_calls
from warpkit.engine.backends.cpu.jobs import (
    Image,
    Jobs,
    WorkPartition,
    by_accumulator,
    by_bands,
    by_strips,
    by_tile_rows,
    partition,
    partition_by_image,
)
from warpkit.engine.backends.cpu.memory import empty
from warpkit.engine.backends.cpu.warp_calls import FIELDS, WarpCall, WarpShapes
from warpkit.engine.sampling.layout import POINTS, is_channels_last, read_in_place
from warpkit.engine.sampling.rules import TAPS, SamplingRule


def _dense(image: Tensor, batch_dims: int) -> Tensor:
    """The image as kernels read it; channels-last where the result can be too."""
    image = read_in_place(image)
    return image if batch_dims == 1 else image.contiguous()


def _fill_memory(fill: Tensor, shapes: WarpShapes) -> np.ndarray:
    """The memory of `fill`."""
    if shapes.expand:
        fill = fill.expand(*shapes.batch, *fill.shape[-3:])
    return fill.contiguous().numpy(force=True).ravel()


def _call(
    image: Tensor,
    stored: Tensor,
    mapping: Tensor,
    fill: Tensor,
    size: Sequence[int],
    rule: SamplingRule,
    listed: bool,
    relative: bool,
    channels_last: bool,
) -> WarpCall:
    """The prepared call of tensors as of `forward`, of an image that is stored as another."""
    return warp_calls.warp_call(
        tuple(image.shape),
        tuple(stored.shape[:-3]),
        image.dtype,
        channels_last,
        tuple(mapping.shape),
        mapping.dtype == torch.float64,
        tuple(fill.shape),
        tuple(size),
        rule.interpolation,
        rule.border,
        listed,
        relative,
    )


def forward(
    image: Tensor,
    mapping: Tensor,
    fill: Tensor,
    size: Sequence[int],
    rule: SamplingRule,
    image_of: np.ndarray | None = None,
    relative: bool = False,
) -> Tensor:
    """The result, (*batch, C, h, w).

    image_of (N,), int64 and within the images (B, C, H, W): where one of (N,) matrices looks. None:
    images and `mapping` broadcast. relative: points are offsets from their pixel, added in float64.

    image (*I, C, H, W); mapping (*M, 2 or 3, 3), destination -> source, or (*P, h, w, 2), pixels;
    fill broadcasts to the result.
    """
    batch_dims = image.ndim - 3 if image_of is None else 1
    batch_dims = max(batch_dims, mapping.ndim - (3 if mapping.shape[-1] == 2 else 2))
    # by a function of torch's, so that who watches these sees where a gradient ends
    dense = _dense(image.detach(), batch_dims)
    channels_last = is_channels_last(dense)
    call = _call(
        image, dense, mapping, fill, size, rule, image_of is not None, relative, channels_last
    )
    shapes = call.shapes
    memory = empty(shapes.values, _numpy(image.dtype))
    out = _tensor(memory, shapes.shape, channels_last)
    if shapes.values == 0:
        return out
    fill_memory = _fill_memory(fill, shapes)
    if call.taps == 1:
        fill_memory = as_shown(fill_memory, memory.dtype)
    points, to = mapping.contiguous(), memory.ctypes.data
    at = dense.data_ptr(), points.data_ptr(), fill_memory.ctypes.data, to
    numbers = warp_calls.fill_result(call, *at)
    numbers[warp_calls.STREAM] = warp_calls.streams(call, to) and not channels_last
    if image_of is not None:
        images = image_of if len(dense) > 1 else np.zeros_like(image_of)
        numbers[warp_calls.IMAGE_OF] = images.ctypes.data
    calls.launch(numbers, 0, call.units, shapes.values)
    return out


@np.errstate(invalid="ignore")
def as_shown(fill: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """What the border shows, in an image's type: rounded half to even and saturated, NaN lowest."""
    if fill.dtype == dtype:
        return fill
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return np.nan_to_num(np.rint(fill).clip(low, high), nan=low).astype(dtype)


def backward(
    grad: Tensor,
    image: Tensor,
    mapping: Tensor,
    fill: Tensor,
    size: Sequence[int],
    rule: SamplingRule,
    wanted: Sequence[bool],
    image_of: np.ndarray | None = None,
    relative: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients to image, mapping and fill; `grad` stands for one that is not wanted.

    grad (*batch, C, h, w); the other tensors as of `forward`.
    """
    taps = TAPS[rule.interpolation]
    needs = needs_image, needs_mapping, needs_fill = wanted[0], wanted[1] and taps > 1, wanted[2]
    batch_dims = grad.ndim - 3
    # the image's pixels serve the gradient to `mapping` alone
    source = _dense(image, batch_dims) if needs_mapping else image
    channels_last = is_channels_last(source) and batch_dims == 1
    channels_last = channels_last and source.shape[0] == image.shape[0]
    layout = torch.channels_last if channels_last else torch.contiguous_format
    grad = grad.contiguous(memory_format=layout)
    if needs_mapping:
        source = source.contiguous(memory_format=layout)
    call = _call(
        image, source, mapping, fill, size, rule, image_of is not None, relative, channels_last
    )
    shapes, values = call.shapes, call.shapes.values
    points, fill_memory = mapping.contiguous(), _fill_memory(fill, shapes)
    sizes = Image(*image.shape[-3:])
    shares, jobs = _jobs(call, sizes, image, points, image_of, needs_image, relative)
    dtype = _numpy(grad.dtype)
    grad_image = empty(shares.accumulators * sizes.size if needs_image else 0, dtype)
    single = False
    if shapes.kind == POINTS:  # whose tiles write every number
        # no sum follows where each point has an item of its own
        numbers_each = shapes.items * shapes.mapping_size
        single = points.dtype == torch.float32 and numbers_each == points.numel()
        grad_mapping = empty(numbers_each * needs_mapping, np.dtype("f4" if single else "f8"))
    else:
        grad_mapping = np.zeros(needs_mapping * shapes.items * jobs.bands * 9)
    grad_fill = np.zeros(
        needs_fill * (values if shapes.dense else shapes.items * jobs.bands * sizes.channels)
    )
    if not values:
        grad_image[:] = 0
    elif any(needs):
        arrays = {
            "grad": grad, "image": source, "mapping": points, "fill": fill_memory,
            "grad_image": grad_image, "grad_mapping": grad_mapping, "grad_fill": grad_fill,
            "jobs": jobs.jobs, "starts": jobs.starts,
        }  # fmt: skip
        numbers = call.numbers.copy()
        for name, array in arrays.items():
            numbers[FIELDS[name]] = calls.address(array)
        for name, need in zip(("image", "mapping", "fill"), needs, strict=True):
            numbers[FIELDS[f"needs_{name}"]] = need
        numbers[FIELDS["single"]] = single
        if image_of is not None:
            images = image_of if len(source) > 1 else np.zeros_like(image_of)
            numbers[warp_calls.IMAGE_OF] = images.ctypes.data
        if jobs.banded:
            row_ranges = np.empty(2 * call.units * shapes.tile_columns, np.int64)
            numbers[FIELDS["row_ranges"]] = row_ranges.ctypes.data
            numbers[calls.TASK] = calls.TASKS["row_ranges"]
            calls.launch(numbers, 0, call.units, values)
        numbers[calls.TASK] = calls.TASKS["backward"]
        for first, end in jobs.phases:
            calls.launch(numbers, first, end, values)
    image_gradient = grad
    if wanted[0]:
        image_gradient = _image_gradient(grad_image, image, shares, channels_last)
    return (
        image_gradient,
        _mapping_gradient(grad_mapping, mapping, shapes, jobs.bands, needs_mapping)
        if wanted[1]
        else grad,
        _fill_gradient(grad_fill, fill, shapes, jobs.bands) if wanted[2] else grad,
    )


def _jobs(
    call: WarpCall, sizes: Image, image: Tensor, points: Tensor, image_of: np.ndarray | None,
    needs_image: bool, relative: bool,
) -> tuple[WorkPartition, Jobs]:  # fmt: skip
    """Who does what in a backward pass over images (*I, C, H, W) under points or matrices."""
    shapes = call.shapes
    if not needs_image:
        shares = partition(shapes.batch, shapes.batch, shapes.tile_rows, shapes.values)
        if shares.bands == 1:
            return shares, by_accumulator(shares, sizes, shapes.tile_rows)
        return shares, by_tile_rows(shares, shapes.items, shapes.tile_rows)
    if image_of is not None:
        shares = partition_by_image(image_of, len(image), sizes.height, shapes.values)
    else:
        batch = tuple(image.shape[:-3])
        shares = partition(batch, shapes.batch, sizes.height, shapes.values)
    if shares.bands == 1:
        return shares, by_accumulator(shares, sizes, shapes.tile_rows)
    if image_of is None and shares.accumulators == shapes.items:
        strips = by_strips(shapes, sizes, points.numpy(force=True), relative, call.taps)
        if strips is not None:
            return shares, strips
    return shares, by_bands(shares, sizes, shapes.tile_rows)


def _numpy(dtype: torch.dtype) -> np.dtype:
    return np.dtype(str(dtype).removeprefix("torch."))


def _tensor(memory: np.ndarray, shape: Sequence[int], channels_last: bool) -> Tensor:
    """Memory as a tensor, and not as a view of one: its user may write to it."""
    if channels_last:
        n, c, h, w = shape
        return torch.from_numpy(memory.reshape(n, h, w, c).transpose(0, 3, 1, 2))
    return torch.from_numpy(memory.reshape(shape))


def _image_gradient(
    total: np.ndarray, image: Tensor, shares: WorkPartition, channels_last: bool
) -> Tensor:
    """The accumulators of each image added up, in their order."""
    if shares.splits > 1:
        splits = torch.from_numpy(total).reshape(-1, shares.splits, image.shape[-3:].numel())
        first, *others = splits.unbind(1)
        total = sum(others, first).numpy()
    return _tensor(total, image.shape, channels_last)


@np.errstate(all="ignore")  # infinities may meet: NaN without a warning, as in torch
def _mapping_gradient(
    total: np.ndarray, mapping: Tensor, shapes: WarpShapes, bands: int, needs_grad_mapping: bool
) -> Tensor:
    if not needs_grad_mapping:
        return torch.zeros_like(mapping, memory_format=torch.contiguous_format)
    if shapes.kind == POINTS:
        return _sum_to(total.reshape(*shapes.batch, *mapping.shape[-3:]), mapping)
    total = total.reshape(*shapes.batch, bands, 3, 3)
    total = total[..., 0, :, :] if bands == 1 else total.sum(-3)
    return _sum_to(total[..., : mapping.shape[-2], :], mapping)


@np.errstate(all="ignore")
def _fill_gradient(total: np.ndarray, fill: Tensor, shapes: WarpShapes, bands: int) -> Tensor:
    if shapes.dense:
        return _sum_to(total.reshape(shapes.shape), fill)
    total = total.reshape(*shapes.batch, bands, shapes.shape[-3]).sum(-2)
    return _sum_to(total[..., None, None], fill)


def _sum_to(total: np.ndarray, tensor: Tensor) -> Tensor:
    """Summed over what was broadcast. Not by torch, whose order depends on its threads."""
    extra = total.ndim - tensor.ndim
    total = total.sum(tuple(range(extra))) if extra else total
    if total.shape != tuple(tensor.shape):
        ones = tuple(d for d in range(tensor.ndim) if tensor.shape[d] == 1 != total.shape[d])
        total = total.sum(ones, keepdims=True)
    # numpy makes a row of a single number
    return torch.from_numpy(np.ascontiguousarray(total).reshape(tensor.shape)).to(tensor.dtype)
