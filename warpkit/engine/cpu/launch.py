"""Calls the native kernels with tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.cpu import calls
from warpkit.engine.cpu.backward_schedule import (
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
from warpkit.engine.cpu.gradient_sums import fill_gradient, mapping_gradient
from warpkit.engine.cpu.memory import LEAST, empty
from warpkit.engine.cpu.warp_calls import (
    FIELDS,
    REGISTER,
    WarpCall,
    WarpKey,
    warp_call,
)
from warpkit.engine.definitions.layout import (
    POINTS,
    are_planes,
    dense_mapping,
    is_channels_last,
)
from warpkit.engine.definitions.rules import TAPS, SamplingRule

IMAGE, MAPPING, FILL, OUT = (FIELDS[name] for name in ("image", "mapping", "fill", "out"))
IMAGE_OF, STREAMED = FIELDS["image_of"], FIELDS["streamed"]
GRAD, GRAD_IMAGE, GRAD_MAPPING, GRAD_FILL = (
    FIELDS[name] for name in ("grad", "grad_image", "grad_mapping", "grad_fill")
)
DEPTHS = FIELDS["depths"]
SINGLE, ROW_RANGES = FIELDS["single"], FIELDS["row_ranges"]
JOBS, STARTS = FIELDS["jobs"], FIELDS["starts"]


def prepared(
    image: Tensor,
    mapping: Tensor,
    fill: Tensor,
    size: Sequence[int],
    rule: SamplingRule,
    listed: bool = False,
    relative: bool = False,
    wide: bool = False,
) -> WarpCall:
    """The call for tensors as in `forward`: the image may have any strides.

    listed: whether the call has an `image_of`.
    """
    batch_dims = image.ndim - 3 if not listed else 1
    batch_dims = max(batch_dims, mapping.ndim - (3 if mapping.shape[-1] == 2 else 2))
    channels_last = batch_dims == 1 and is_channels_last(image)
    return _call_of(image, mapping, fill, size, rule, listed, relative, channels_last, wide)


def _call_of(
    image: Tensor,
    mapping: Tensor,
    fill: Tensor,
    size: Sequence[int],
    rule: SamplingRule,
    listed: bool,
    relative: bool,
    channels_last: bool,
    wide: bool = False,
) -> WarpCall:
    """As `prepared`, with tensors as there.

    channels_last: whether the result is, and the image's gradient.
    """
    return warp_call(
        WarpKey(
            image=image.shape,
            strides=image.stride(),
            dtype=image.dtype,
            channels_last=channels_last,
            mapping=mapping.shape,
            wide_points=mapping.dtype == torch.float64,
            planar=are_planes(mapping),
            fill=fill.shape,
            size=tuple(size),
            interpolation=rule.interpolation,
            border=rule.border,
            listed=listed,
            relative=relative,
            wide=wide,
        )
    )


def forward(
    image: Tensor,
    mapping: Tensor,
    fill: Tensor,
    size: Sequence[int],
    rule: SamplingRule,
    image_of: np.ndarray | None = None,
    relative: bool = False,
    wide: bool = False,
) -> Tensor:
    """The result, (*batch, C, h, w); of halves in float32, unless nearest moves them.

    image_of (N,), int64 and within the images (B, C, H, W): the image for each of (N,) matrices.
    None: images and `mapping` broadcast. relative: points are offsets from their pixel, added in
    float64. wide: integers are not rounded, and the result is float64.

    image (*I, C, H, W); mapping (*M, 2 or 3, 3), destination -> source, or (*P, h, w, 2), pixels;
    fill broadcasts to the result.
    """
    listed = image_of is not None
    # with a torch function, so that function modes can see where a gradient ends
    image = image.detach()
    call = prepared(image, mapping, fill, size, rule, listed, relative, wide)
    fill = stored_fill(call, as_shown(fill, image.dtype) if call.taps == 1 else fill)
    return result(call, image, dense_mapping(mapping), fill, image_of)


def result(
    call: WarpCall,
    image: Tensor,
    mapping: Tensor,
    fill: Tensor,
    images: np.ndarray | None = None,
    depths: np.ndarray | None = None,
) -> Tensor:
    """The result for arrays of the call's strides.

    depths: the block of a view whose points replace `mapping`, which is not read.

    image (*I, C, H, W); mapping (*M, 2 or 3, 3) or (*P, h, w, 2); fill from `stored_fill`.
    """
    shapes = call.shapes
    out = room(shapes.shape, call.dtype, call.key.channels_last)
    if shapes.values:
        numbers = call.numbers.copy() if depths is None else _with_depths(call.numbers, depths)
        # as `calls.address`, whose calls would take 0.2 us more
        ours = image.is_cpu and mapping.is_cpu and fill.is_cpu
        assert ours, "a kernel on the CPU got tensors of another device"
        numbers[IMAGE], numbers[MAPPING] = image.data_ptr(), mapping.data_ptr()
        numbers[FILL], numbers[OUT] = fill.data_ptr(), out.data_ptr()
        if call.streams:
            numbers[STREAMED] = out.data_ptr() % REGISTER == 0
        if images is not None:
            numbers[IMAGE_OF] = images.ctypes.data
        calls.launch(numbers, 0, call.units, shapes.values)
    return out


def _with_depths(numbers: np.ndarray, depths: np.ndarray) -> np.ndarray:
    """A warp's block as a `DepthWarpCall`."""
    joined = np.concatenate((numbers, depths))
    joined[DEPTHS] = 1
    return joined


def stored_fill(call: WarpCall, fill: Tensor) -> Tensor:
    """The fill in the kernels' format; fill broadcasts to the result."""
    if call.shapes.expand:
        fill = fill.expand(*call.shapes.batch, *fill.shape[-3:])
    return fill.contiguous()


def as_shown(fill: Tensor, dtype: torch.dtype) -> Tensor:
    """The border's value in an image's type: rounded half to even and saturated; NaN becomes the
    lowest.

    fill broadcasts to the result.
    """
    if fill.dtype == dtype or dtype.is_floating_point:
        return fill.to(dtype)
    low, high, kind = torch.iinfo(dtype).min, torch.iinfo(dtype).max, _numpy(dtype)
    with np.errstate(invalid="ignore"):
        numbers = np.rint(fill.numpy(force=True)).clip(low, high)
        return torch.from_numpy(np.array(np.nan_to_num(numbers, nan=low).astype(kind)))


class BackwardCall(NamedTuple):
    """The common data of the gradients of a `WarpCall`, which holds it: its block has the addresses
    of that call's arrays."""

    numbers: np.ndarray
    """The block, with 0 for every address that differs between calls; it has the jobs'
    addresses."""
    shares: WorkPartition | None
    """None if it depends on a list of images."""
    jobs: Jobs | None
    """None if they depend on a list, or on the map's numbers."""


def _backward_call(call: WarpCall, needs: tuple[bool, bool, bool]) -> BackwardCall:
    """needs: the gradients that the kernel computes, of image, mapping and fill."""
    if needs not in call.backward:
        call.backward[needs] = _plan_backward(call, needs)
    return call.backward[needs]


def _plan_backward(call: WarpCall, needs: tuple[bool, bool, bool]) -> BackwardCall:
    key, shapes, numbers = call.key, call.shapes, call.numbers.copy()
    sizes = Image(*key.image[-3:])
    numbers[calls.TASK] = calls.TASKS["backward"]
    for name, need in zip(("image", "mapping", "fill"), needs, strict=True):
        numbers[FIELDS[f"needs_{name}"]] = need
    if needs[0] and key.listed:
        return BackwardCall(numbers, None, None)
    rows, batch = sizes.height if needs[0] else shapes.tile_rows, shapes.batch
    shares = partition(key.image[:-3] if needs[0] else batch, batch, rows, shapes.values)
    if shares.bands == 1:
        jobs = by_accumulator(shares, sizes, shapes.tile_rows)
    elif not needs[0]:
        jobs = by_tile_rows(shares, shapes.items, shapes.tile_rows)
    else:
        strips = shares.accumulators == shapes.items  # possible, if the map allows it
        jobs = None if strips else by_bands(shares, sizes, shapes.tile_rows)
    if jobs is not None:
        _name_jobs(numbers, jobs)
    return BackwardCall(numbers, shares, jobs)


def _name_jobs(numbers: np.ndarray, jobs: Jobs) -> None:
    numbers[JOBS], numbers[STARTS] = jobs.jobs.ctypes.data, jobs.starts.ctypes.data


def _jobs(
    call: WarpCall,
    shares: WorkPartition | None,
    points: Tensor,
    image_of: np.ndarray | None,
    ends: np.ndarray | None,
) -> tuple[WorkPartition, Jobs]:
    """The jobs of an image gradient that depends on points, matrices or a list."""
    key, shapes, sizes = call.key, call.shapes, Image(*call.key.image[-3:])
    if shares is None:
        assert image_of is not None
        shares = partition_by_image(image_of, key.image[0], sizes.height, shapes.values)
        if shares.bands == 1:
            return shares, by_accumulator(shares, sizes, shapes.tile_rows)
    else:
        numbers = points.numpy(force=True)
        jobs = by_strips(shapes, sizes, numbers, key.relative, call.taps, ends)
        if jobs is not None:
            return shares, jobs
    return shares, by_bands(shares, sizes, shapes.tile_rows)


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
    ends: np.ndarray | None = None,
    made: WarpCall | None = None,
    depths: Callable[[int], np.ndarray] | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients to image, mapping and fill; `grad` stands for those that are not needed.

    made: the call of the forward pass, if known. ends: see `by_strips`. depths: the block of a view
    whose points replace `mapping`, which is not read, with room for a number of sums of each item;
    these and the view's gradients are the mapping's.

    grad (*batch, C, h, w), of halves in float32, as the gradients are; the other tensors as in
    `forward`.
    """
    taps = TAPS[rule.interpolation]
    needs = needs_image, needs_mapping, needs_fill = wanted[0], wanted[1] and taps > 1, wanted[2]
    channels_last = is_channels_last(image) and grad.ndim == 4
    layout = torch.channels_last if channels_last else torch.contiguous_format
    grad = grad.contiguous(memory_format=layout)
    call, listed = made, image_of is not None
    # only the gradient of `mapping` needs the image's pixels
    if (
        call is None
        or call.key.channels_last != channels_last
        or (needs_mapping and call.key.strides != image.stride())
    ):
        call = _call_of(image, mapping, fill, size, rule, listed, relative, channels_last)
    shapes, values = call.shapes, call.shapes.values
    points = mapping if depths is not None else dense_mapping(mapping)
    fill_memory = stored_fill(call, fill)
    block, shares, jobs = _backward_call(call, needs)
    numbers = block.copy()
    if shares is None or jobs is None:
        if depths is not None and shares is not None:
            jobs = by_bands(shares, Image(*image.shape[-3:]), shapes.tile_rows)
        else:
            shares, jobs = _jobs(call, shares, points, image_of, ends)
        _name_jobs(numbers, jobs)
    splits, grad_image = shares.splits if needs_image else 1, None
    if splits > 1:
        shape = -1, splits, image.shape[-3:].numel()
        grad_image = room((shares.accumulators * shape[-1],), grad.dtype, False).reshape(shape)
    elif needs_image:
        grad_image = room(image.shape, grad.dtype, channels_last)
    grad_mapping = grad_fill = None
    if depths is not None:
        numbers = _with_depths(numbers, depths(jobs.bands))
    elif needs_mapping and shapes.kind == POINTS:  # tiles of points write every number
        # no sum is needed if each item has its own points
        numbers_each = shapes.items * shapes.mapping_size
        single = points.dtype == torch.float32 and numbers_each == points.numel()
        grad_mapping = empty(numbers_each, np.dtype("f4" if single else "f8"))
        numbers[SINGLE] = single
    elif needs_mapping:
        grad_mapping = np.zeros(shapes.items * jobs.bands * 9)
    if needs_fill:
        each = values if shapes.dense else shapes.items * jobs.bands * image.shape[-3]
        grad_fill = np.zeros(each)
    if not values and grad_image is not None:
        grad_image.zero_()
    elif values and any(needs):
        read = ((GRAD, grad), (IMAGE, image), (MAPPING, points), (FILL, fill_memory))
        made_here = ((GRAD_IMAGE, grad_image), (GRAD_MAPPING, grad_mapping), (GRAD_FILL, grad_fill))
        for field, array in (*read, *made_here):
            if array is not None:
                numbers[field] = calls.address(array)
        if image_of is not None:
            numbers[IMAGE_OF] = image_of.ctypes.data
        if jobs.banded:
            row_ranges = np.empty(2 * call.units * shapes.tile_columns, np.int64)
            numbers[ROW_RANGES] = row_ranges.ctypes.data
            numbers[calls.TASK] = calls.TASKS["row_ranges"]
            calls.launch(numbers, 0, call.units, values)
        numbers[calls.TASK] = calls.TASKS["backward"]
        for first, end in jobs.phases:
            calls.launch(numbers, first, end, values)
    if splits > 1 and grad_image is not None:  # added in their order
        first, *others = grad_image.unbind(1)
        grad_image = _tensor(sum(others, first).numpy(), image.shape, channels_last)
    return (
        grad if grad_image is None else grad_image,
        mapping_gradient(grad_mapping, mapping, shapes, jobs.bands)
        if wanted[1] and depths is None
        else grad,
        grad if grad_fill is None else fill_gradient(grad_fill, fill, shapes, jobs.bands),
    )


def _numpy(dtype: torch.dtype) -> np.dtype:
    return np.dtype(str(dtype).removeprefix("torch."))


def room(shape: Sequence[int], dtype: torch.dtype, channels_last: bool) -> Tensor:
    """Memory for an image or a result, from our pool if it is large enough to be worthwhile."""
    if prod(shape) * dtype.itemsize < LEAST or dtype == torch.bfloat16:  # which numpy lacks
        layout = torch.channels_last if channels_last else torch.contiguous_format
        return torch.empty(shape, dtype=dtype, device="cpu", memory_format=layout)
    return _tensor(empty(prod(shape), _numpy(dtype)), shape, channels_last)


def _tensor(memory: np.ndarray, shape: Sequence[int], channels_last: bool) -> Tensor:
    """Memory as a tensor that is no view, because its user may write to it."""
    if channels_last:
        n, c, h, w = shape
        return torch.from_numpy(memory.reshape(n, h, w, c).transpose(0, 3, 1, 2))
    return torch.from_numpy(memory.reshape(tuple(shape)))
