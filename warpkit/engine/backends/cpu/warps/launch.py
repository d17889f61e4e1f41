"""From tensors to kernel calls: shapes, layouts, and how the work is dealt to threads.

Everything here depends on shapes alone, never on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.backends.cpu.runtime.result_memory import empty
from warpkit.engine.backends.cpu.runtime.scratch import scratch
from warpkit.engine.backends.cpu.runtime.threads import run
from warpkit.engine.backends.cpu.warps import nearest_launch, pairs_launch
from warpkit.engine.backends.cpu.warps.backward import backward_kernel, row_range_kernel
from warpkit.engine.backends.cpu.warps.forward import forward_kernel
from warpkit.engine.backends.cpu.warps.pair_jobs import by_accumulator, by_strips
from warpkit.engine.backends.cpu.warps.positions import POINTS, SINGLE_POINTS
from warpkit.engine.backends.cpu.warps.work import (
    WarpShapes,
    WorkPartition,
    broadcast_index,
    partition,
    partition_by_image,
    warp_shapes,
)
from warpkit.engine.sampling.layout import is_channels_last, read_in_place
from warpkit.engine.sampling.maps import added_to_pixels
from warpkit.engine.sampling.rules import TAPS, SamplingRule


def _dense(image: Tensor, batch: tuple[int, ...]) -> Tensor:
    """The image as kernels read it; channels-last where the result can be too."""
    image = read_in_place(image)
    return image if len(batch) == 1 else image.contiguous()


def _flat(tensor: Tensor) -> np.ndarray:
    """A dense tensor's memory, in its order."""
    if is_channels_last(tensor):
        tensor = tensor.permute(0, 2, 3, 1)
    return tensor.numpy(force=True).ravel()


def _fill_memory(fill: Tensor, shapes: WarpShapes) -> np.ndarray:
    """The memory of `fill`."""
    if shapes.expand:
        fill = fill.expand(*shapes.batch, *fill.shape[-3:])
    return fill.contiguous().numpy(force=True).ravel()


def _maps(points: np.ndarray, kind: int) -> tuple[tuple[np.ndarray, np.ndarray], int]:
    """Matrices or points as `map_tile` takes them, and their kind."""
    if points.itemsize == 8:
        return (points, np.empty(0, np.float32)), kind
    return (np.empty(0), points), SINGLE_POINTS


def _images(image: Tensor, batch: tuple[int, ...], image_of: np.ndarray | None) -> np.ndarray:
    """For every item of `batch` its image, in what `_dense` left of the images."""
    if image_of is None:
        return broadcast_index(image.shape[:-3], batch)
    return image_of if len(image) > 1 else np.zeros_like(image_of)


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
    given_shapes = image.shape, mapping.shape, fill.shape, tuple(size)
    shapes = warp_shapes(*given_shapes, rule.border, listed=image_of is not None)
    dense, taps = _dense(image, shapes.batch), TAPS[rule.interpolation]
    channels_last = is_channels_last(dense)
    by_pairs = bool(shapes.values) and taps > 1
    by_pairs = by_pairs and pairs_launch.takes_pairs(image.dtype, shapes, taps)
    dense = dense.contiguous() if by_pairs else dense  # and back, which is faster than windows
    pixels = _flat(dense)
    memory = empty(shapes.values, pixels.dtype)
    out = _tensor(memory, shapes.shape, channels_last and not by_pairs)
    if shapes.values == 0:
        return out
    fill_flat = _fill_memory(fill, shapes)
    if taps == 1:
        points = _flat(mapping.contiguous())
        images = _images(dense, shapes.batch, image_of)
        given = pixels.size, points.size, points.itemsize == 8
        border_bits = nearest_launch.as_shown(fill_flat, pixels.dtype)
        layout = {"channels_last": channels_last, "relative": relative}
        call = nearest_launch.prepare(shapes, *given, border_bits, images, **layout)
        nearest_launch.launch(call, *(array.ctypes.data for array in (pixels, points, memory)))
        return out
    if by_pairs:
        points = _flat(mapping.contiguous())
        images = _images(dense, shapes.batch, image_of)
        double_points = points.itemsize == 8
        call = pairs_launch.prepare(
            shapes, pixels.size, points.size, double_points, fill_flat, images, relative, taps
        )
        pairs_launch.launch(call, *(array.ctypes.data for array in (pixels, points, memory)))
        return _pixel_by_pixel(out) if channels_last else out
    mapping = added_to_pixels(mapping) if relative else mapping
    low, high = 0, 0
    if not image.is_floating_point():
        low, high = torch.iinfo(image.dtype).min, torch.iinfo(image.dtype).max
    kernel = forward_kernel(taps, channels_last, low, high)
    arrays = (
        pixels,
        *_maps(_flat(mapping.contiguous()), shapes.kind),
        fill_flat,
        memory,
        _images(dense, shapes.batch, image_of),
        shapes.mapping_of,
        shapes.sizes,
    )
    units = shapes.plan.items * shapes.tile_rows
    run(
        lambda *unit_range: kernel(*arrays, scratch(taps, fill_flat.dtype), *unit_range),
        units,
        shapes.values,
    )
    return out


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
    needs = needs_grad_image, needs_grad_mapping, needs_grad_fill = (
        wanted[0],
        wanted[1] and taps > 1,
        wanted[2],
    )
    given_shapes = image.shape, mapping.shape, fill.shape, tuple(size)
    shapes = warp_shapes(*given_shapes, rule.border, listed=image_of is not None, needs_grad=needs)
    plan, batch, values = shapes.plan, shapes.batch, shapes.values
    # the image's pixels serve the gradient to `mapping` alone
    source = _dense(image, batch) if needs_grad_mapping else image
    by_pairs = bool(values) and pairs_launch.takes_pairs(image.dtype, shapes, taps)
    as_given = is_channels_last(source) and len(batch) == 1 and source.shape[0] == image.shape[0]
    channels_last = as_given and not by_pairs
    if needs_grad_mapping and not channels_last:
        source = source.contiguous()
    grad = grad.contiguous(
        memory_format=torch.channels_last if channels_last else torch.contiguous_format
    )
    if needs_grad_image and image_of is not None:
        shares = partition_by_image(image_of, len(image), plan.height, values)
    elif needs_grad_image:
        shares = partition(image.shape[:-3], batch, plan.height, values)
    else:
        shares = partition(batch, batch, shapes.tile_rows, values)
    points, fill_flat = _flat(mapping.contiguous()), _fill_memory(fill, shapes)
    jobs = None
    if by_pairs:
        if shares.bands == 1 or not needs_grad_image:
            jobs = by_accumulator(shares, plan, shapes.tile_rows)
        elif image_of is None and shares.accumulators == plan.items:
            maps = shapes.kind, points, shapes.mapping_of
            jobs = by_strips(plan, *maps, shapes.tile_rows, relative, taps)
    if relative and not jobs:
        points = _flat(added_to_pixels(mapping))
    bands = jobs.bands if jobs else shares.bands
    pixels = _flat(source) if needs_grad_mapping else np.empty(1, fill_flat.dtype)
    grad_image = empty(
        shares.accumulators * image.shape[-3:].numel() if needs_grad_image else 0, pixels.dtype
    )
    single = False
    if jobs and shapes.kind == POINTS:  # whose tiles write every number
        # no sum follows where each point has an item of its own
        single = points.itemsize == 4 and plan.items * plan.mapping_size == points.size
        numbers = needs_grad_mapping * plan.items * plan.mapping_size
        grad_mapping = empty(numbers, np.dtype(np.float32 if single else np.float64))
    else:
        each = plan.mapping_size if shapes.kind == POINTS else bands * 9
        grad_mapping = np.zeros(needs_grad_mapping * plan.items * each)
    grad_fill = np.zeros(
        needs_grad_fill * (values if plan.dense else plan.items * bands * plan.channels)
    )
    if not values:
        grad_image[:] = 0
    elif jobs and any(needs):
        arrays = (_flat(grad), pixels, points, grad_image, grad_mapping, grad_fill)
        sizes = dict(zip(pairs_launch.CHANGING, (a.size for a in arrays), strict=True))
        images = _images(source, batch, image_of)
        call = pairs_launch.prepare_backward(
            shapes, jobs, sizes, points.itemsize == 8, fill_flat, images, relative, single, taps
        )
        pairs_launch.launch_backward(call, [a.ctypes.data for a in arrays], needs)
    elif any(needs):
        row_ranges = np.empty(0, np.int64)
        if needs_grad_image and bands > 1:
            row_ranges = _row_ranges(taps, points, shapes)
        maps, kind = _maps(points, shapes.kind)
        arrays = (_flat(grad), pixels, maps, fill_flat, grad_image, grad_mapping, grad_fill)
        kernel = backward_kernel(taps, channels_last)
        work_lists = (
            kind,
            _images(source, batch, image_of),
            shapes.mapping_of,
            shares.order,
            shares.starts,
            row_ranges,
            shapes.sizes,
            bands,
        )
        dtype = pixels.dtype
        units = shares.accumulators * bands
        run(
            lambda *unit_range: kernel(arrays, *work_lists, scratch(taps, dtype), *unit_range),
            units,
            values,
        )
    image_gradient = grad
    if wanted[0]:
        image_gradient = _image_gradient(grad_image, image, shares, channels_last)
        if as_given and by_pairs:
            image_gradient = _pixel_by_pixel(image_gradient)
    return (
        image_gradient,
        _mapping_gradient(grad_mapping, mapping, shapes, bands, needs_grad_mapping)
        if wanted[1]
        else grad,
        _fill_gradient(grad_fill, fill, shapes, bands) if wanted[2] else grad,
    )


def _row_ranges(taps: int, points: np.ndarray, shapes: WarpShapes) -> np.ndarray:
    """The first and last image row that each tile reads."""
    units = shapes.plan.items * shapes.tile_rows
    row_ranges = np.empty(2 * units * shapes.tile_columns, np.int64)
    find = row_range_kernel(taps)
    maps = _maps(points, shapes.kind)
    memory = partial(scratch, taps, np.dtype(np.float32))
    run(
        lambda *unit_range: find(
            *maps, shapes.mapping_of, row_ranges, shapes.sizes, memory(), *unit_range
        ),
        units,
        shapes.values,
    )
    return row_ranges


def _tensor(memory: np.ndarray, shape: Sequence[int], channels_last: bool) -> Tensor:
    """Memory as a tensor, and not as a view of one: its user may write to it."""
    if channels_last:
        n, c, h, w = shape
        return torch.from_numpy(memory.reshape(n, h, w, c).transpose(0, 3, 1, 2))
    return torch.from_numpy(memory.reshape(shape))


def _pixel_by_pixel(planes: Tensor) -> Tensor:
    """The same numbers, the channels of a pixel side by side."""
    return _tensor(empty(planes.numel(), planes.numpy().dtype), planes.shape, True).copy_(planes)


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
    if shapes.plan.dense:
        return _sum_to(total.reshape(shapes.shape), fill)
    total = total.reshape(*shapes.batch, bands, shapes.plan.channels).sum(-2)
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
