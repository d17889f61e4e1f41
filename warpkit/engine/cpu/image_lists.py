"""Warps images of different sizes in one launch, without copying them.

A table has a row for each image, `ListedImage` in native/warp/warp_call.h: its address, size and
strides, and the position of its gradient.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from warpkit.engine.cpu import calls
from warpkit.engine.cpu.backward_schedule import by_list
from warpkit.engine.cpu.gradient_sums import fill_gradient, mapping_gradient
from warpkit.engine.cpu.launch import (
    FIELDS,
    as_shown,
    prepared,
    result,
    room,
    stored_fill,
)
from warpkit.engine.cpu.warp_calls import WarpCall
from warpkit.engine.definitions.layout import POINTS, dense_mapping
from warpkit.engine.definitions.rules import TAPS, SamplingRule

LISTED = FIELDS["listed"]


def forward(
    images: Sequence[Tensor],
    mapping: Tensor,
    fill: Tensor,
    size: Sequence[int],
    rule: SamplingRule,
    image_of: np.ndarray,
) -> Tensor:
    """The result, (N, C, h, w).

    images (C, H_i, W_i) each, of one type, with any strides; mapping (N, 2 or 3, 3), destination ->
    source, or points (N, h, w, 2); fill broadcasts to the result; image_of (N,), int64, within
    the images.
    """
    call = _call(images, mapping, fill, size, rule)
    fill = stored_fill(call, as_shown(fill, images[0].dtype) if call.taps == 1 else fill)
    table = _table(images, None)
    call.numbers[LISTED] = table.ctypes.data
    return result(call, images[0], dense_mapping(mapping), fill, image_of)


def backward(
    grad: Tensor,
    images: Sequence[Tensor],
    mapping: Tensor,
    fill: Tensor,
    size: Sequence[int],
    rule: SamplingRule,
    wanted: Sequence[bool],
    image_of: np.ndarray,
) -> tuple[Sequence[Tensor], Tensor, Tensor]:
    """The gradients to images, mapping and fill; arbitrary values for those not needed.

    grad (N, C, h, w); the other tensors as in `forward`. The images' gradients are views of one
    buffer, with 0 for pixels that were not read.
    """
    needs = needs_images, needs_mapping, needs_fill = (
        wanted[0],
        wanted[1] and TAPS[rule.interpolation] > 1,
        wanted[2],
    )
    call = _call(images, mapping, fill, size, rule)
    shapes, numbers, sizes = call.shapes, call.numbers, [image.numel() for image in images]
    buffer = room((sum(sizes) * needs_images,), grad.dtype, False)
    table = _table(images, buffer if needs_images else None)
    jobs = by_list(image_of, sizes if needs_images else [0] * len(sizes), shapes.tile_rows)
    points, fill_memory, grad = dense_mapping(mapping), stored_fill(call, fill), grad.contiguous()
    each = shapes.mapping_size if shapes.kind == POINTS else 9
    grad_mapping = np.zeros(needs_mapping * shapes.items * each)
    each = shapes.values if shapes.dense else shapes.items * images[0].shape[0]
    grad_fill = np.zeros(needs_fill * each)
    if any(needs):
        arrays = {
            "grad": grad, "image": images[0], "mapping": points, "fill": fill_memory,
            "grad_image": buffer, "grad_mapping": grad_mapping, "grad_fill": grad_fill,
            "jobs": jobs.jobs, "starts": jobs.starts, "listed": table, "image_of": image_of,
        }  # fmt: skip
        for name, array in arrays.items():
            numbers[FIELDS[name]] = calls.address(array)
        for name, need in zip(("image", "mapping", "fill"), needs, strict=True):
            numbers[FIELDS[f"needs_{name}"]] = need
        numbers[calls.TASK] = calls.TASKS["backward"]
        calls.launch(numbers, 0, len(images), max(shapes.values, sum(sizes) * needs_images))
    parts = buffer.split(sizes) if needs_images else ()
    return (
        [part.view(image.shape) for part, image in zip(parts, images, strict=False)],
        mapping_gradient(grad_mapping if needs_mapping else None, mapping, shapes, 1)
        if wanted[1]
        else grad,
        fill_gradient(grad_fill, fill, shapes, 1) if wanted[2] else grad,
    )


def _call(
    images: Sequence[Tensor],
    mapping: Tensor,
    fill: Tensor,
    size: Sequence[int],
    rule: SamplingRule,
) -> WarpCall:
    """The call for tensors as in `forward`, with its own block; heights and widths are 1."""
    like = images[0].new_empty(()).expand(len(images), len(images[0]), 1, 1)
    call = prepared(like, mapping, fill, size, rule, listed=True)
    return call._replace(numbers=call.numbers.copy())


def _table(images: Sequence[Tensor], buffer: Tensor | None) -> np.ndarray:
    """The rows of images (C, H_i, W_i), int64; buffer: holds their gradients one after the
    other."""
    rows, grad = [], 0 if buffer is None else calls.address(buffer)
    each = 0 if buffer is None else buffer.element_size()
    for image in images:
        _, height, width = image.shape
        rows.append((calls.address(image), height, width, *image.stride(), grad))
        grad += image.numel() * each
    return np.array(rows, np.int64)
