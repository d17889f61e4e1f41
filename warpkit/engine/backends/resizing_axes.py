"""Resizes along any axes: one pass of a resize for each, or for two neighbours that end a shape.

Kernels resize images (..., C, H, W). A dense array is one whose sides are the axis and all that
follows it, or, if that is little, all that precedes it. Any other array is read where it is, with
two of its axes as the sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import torch
from torch import Tensor

from warpkit.core.tracing import is_eager, is_readable, wants_derivative
from warpkit.engine.definitions.labels import as_signed, from_signed
from warpkit.engine.definitions.reference import compute_dtype
from warpkit.engine.definitions.resize import ResizeRule, to_type

FEW = 16
"""The most numbers after an axis that are read as the channels of a pixel."""


def resize_axes(
    module: ModuleType, array: Tensor, sizes: Sequence[tuple[int, int]], rule: ResizeRule
) -> Tensor:
    """The array (...) resized along some axes by a backend's module; sizes: pairs (axis, size)."""
    last = array.ndim - 1
    # what shrinks most comes first, and leaves less to the others
    order = sorted(sizes, key=lambda pair: pair[1] / array.shape[pair[0]])
    steps = [{axis: size} for axis, size in order if array.shape[axis] != size]
    ends = [step for step in steps if last in step or last - 1 in step]
    if len(ends) == 2:
        steps = [step for step in steps if step not in ends]
        steps.append(ends[0] | ends[1])
    if rule.interpolation == "nearest":
        moved = as_signed(array)
        for step in steps:
            moved = _pass(module, moved, step, rule)
        return from_signed(moved.contiguous(), array.dtype)
    values = array if len(steps) == 1 else array.to(compute_dtype(array.dtype))
    for step in steps:
        values = _pass(module, values, step, rule)
    return to_type(values.contiguous(), array.dtype, rule)


def _pass(module: ModuleType, array: Tensor, step: dict[int, int], rule: ResizeRule) -> Tensor:
    """The array (...) with one axis resized, or the last two; step: sizes by axes."""
    if not array.is_contiguous() and is_eager(array):
        return _pass_in_place(module, array, step, rule)
    shape = [step.get(axis, length) for axis, length in enumerate(array.shape)]
    first, end = min(step), max(step) + 1
    before, after = _product(array.shape[:first]), _product(array.shape[end:])
    if len(step) == 2:
        image, size = array.reshape(before, 1, *array.shape[first:]), shape[first:]
    elif after > FEW:
        image, size = array.reshape(before, 1, array.shape[first], after), [shape[first], after]
    else:  # the numbers after the axis are channels of its pixels
        image = array.reshape(1, before, array.shape[first], after).movedim(-1, 1)
        size = [before, shape[first]]
        return module.resize(image, size, rule, None).movedim(1, -1).reshape(shape)
    return module.resize(image, size, rule, None).reshape(shape)


def _pass_in_place(
    module: ModuleType, array: Tensor, step: dict[int, int], rule: ResizeRule
) -> Tensor:
    """The same by the array's own strides; the result has the order of the sides in memory."""
    axes = sorted(step)
    if len(axes) == 1:
        others = [axis for axis in range(array.ndim) if axis not in axes]
        axes += sorted(others, key=lambda axis: (array.shape[axis] < 2, array.stride(axis)))[:1]
        axes.sort(key=lambda axis: -array.stride(axis))
    order = [axis for axis in range(array.ndim) if axis not in axes] + axes
    image = array.permute(order)
    size = [step.get(axis, array.shape[axis]) for axis in order[-2:]]
    for _ in range(3 - array.ndim):
        image = image[None]
    found = module.resize(image, [1] * (2 - len(size)) + size, rule, None)
    found = found.reshape([*found.shape[-array.ndim :]]) if array.ndim < 3 else found
    return found.permute([order.index(axis) for axis in range(array.ndim)])


def _product(lengths: Sequence[int]) -> int:
    """math.prod, which Dynamo refuses for some sequences."""
    total = 1
    for length in lengths:
        total = total * length
    return total


def within_range(values: Tensor, array: Tensor, axes: Sequence[int]) -> Tensor:
    """values (...) clamped to the range of the array over its axes, without NaN: what scikit-image
    does at last. The ends of the range have gradients, too."""
    numbers = array.to(torch.int32) if array.dtype == torch.uint16 else array
    dims = list(axes)
    low, high = numbers.amin(dims, keepdim=True), numbers.amax(dims, keepdim=True)
    sees = is_eager(array) and is_readable(low)
    clean = not array.is_floating_point() or (sees and not bool(low.isnan().any()))
    if not clean:
        low = torch.where(array.isnan(), torch.inf, array).amin(dims, keepdim=True)
        high = torch.where(array.isnan(), -torch.inf, array).amax(dims, keepdim=True)
    wide = values.to(low.dtype)
    if not wants_derivative(values):
        return wide.clamp(low, high).to(values.dtype)
    above = torch.where(wide < low, low, wide)
    return torch.where(above > high, high, above)
