"""Resizes in the native library: the bits of the reference and of its arithmetics, faster.

`axes` has the taps, and `prepared` the library's calls, made once for shapes and options. `launch`
turns tensors into calls, and `operators` has the torch operator for tracing and transforms. If no
kernel sums like an arithmetic, the arithmetic itself is used, in plain torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from warpkit.core.tracing import has_tangents, is_eager, wants_gradient
from warpkit.engine.arithmetic import opencv_resize, pillow, torch_resize
from warpkit.engine.backends import cpu
from warpkit.engine.sampling import resize as reference
from warpkit.engine.sampling.reference import with_gradient_of
from warpkit.engine.sampling.resize import Edges, ResizeRule


def unsupported_reasons(image: Tensor, rule: ResizeRule) -> list[str]:
    """The reasons why the kernels do not support a call."""
    return cpu.unsupported_reasons(image, rule)


def resize(
    image: Tensor,
    size: Sequence[int],
    rule: ResizeRule,
    box: Sequence[Edges] | None,
    factors: tuple[float, float] | None = None,
) -> Tensor:
    """As `resize` of the reference and of the arithmetics."""
    if rule.arithmetic == "exact":
        return _exact(image, size, rule, box)
    if rule.arithmetic == "pillow":
        return _pillow(image, size, rule, box)
    if rule.arithmetic == "torchvision":
        return _torch(image, size, rule)
    if not is_eager(image):
        return opencv_resize.resize(image, size, rule, None, factors)
    if wants_gradient(image):
        return _opencv_followed(image, size, rule, factors)
    from warpkit.engine.backends.cpu.resize import launch

    found = launch.opencv(image, size, rule, factors)
    return opencv_resize.resize(image, size, rule, None, factors) if found is None else found


def _opencv_followed(
    image: Tensor, size: Sequence[int], rule: ResizeRule, factors: tuple[float, float] | None
) -> Tensor:
    if image.dtype in cpu.HALVES:
        return opencv_resize.resize(image, size, rule, None, factors)
    way, across, down = opencv_resize.plan(image.shape, image.dtype, size, rule, factors)
    value = opencv_resize.values(image.detach(), way, across, down, rule)
    return _followed(value, image, size, (across, down), image.dtype)


def _pillow(
    image: Tensor, size: Sequence[int], rule: ResizeRule, box: Sequence[Edges] | None
) -> Tensor:
    nearest = rule.interpolation == "nearest"
    has_kernel = image.dtype in (torch.uint8, torch.float32) or nearest
    if not is_eager(image) or not has_kernel or (nearest and wants_gradient(image)):
        return pillow.resize(image, size, rule, box)
    from warpkit.engine.backends.cpu.resize import launch

    value = launch.pillow(image.detach(), size, rule, box)
    if nearest or not wants_gradient(image):
        return value
    across, down, _ = pillow.sides(image.shape, size, box)
    tables = tuple(pillow.table_of(rule.interpolation, axis) for axis in (across, down))
    return _followed(value, image, size, tables, torch.float64)


def _torch(image: Tensor, size: Sequence[int], rule: ResizeRule) -> Tensor:
    computes_floats = image.is_floating_point() or rule.interpolation == "area"
    if not is_eager(image) or computes_floats:
        return torch_resize.resize(image, size, rule)
    from warpkit.engine.backends.cpu.resize import launch

    return launch.torch_bytes(image, size, rule)


def _followed(
    value: Tensor, image: Tensor, size: Sequence[int], tables: Any, dtype: torch.dtype
) -> Tensor:
    """The value (..., C, h, w) with the gradient of the same taps, summed in the given type.

    image (..., C, H, W); tables along x and y.
    """
    from warpkit.engine.backends.cpu.resize.operators import ByTables

    kind = torch.empty(0, dtype=dtype, device="cpu").numpy().dtype
    found: Any = ByTables.apply(image, tables, kind, tuple(size), False)
    return with_gradient_of(value, found)


def _exact(
    image: Tensor, size: Sequence[int], rule: ResizeRule, box: Sequence[Edges] | None
) -> Tensor:
    by_tensor = box is not None and isinstance(box[0].low, Tensor)
    if by_tensor or has_tangents():
        return reference.resize(image, size, rule, box)
    is_simple = is_eager(image) and not wants_gradient(image)
    if rule.interpolation == "nearest" and not is_simple:
        return reference.resize(image, size, rule, box)
    if image.dtype in cpu.HALVES and rule.interpolation != "nearest":
        return _exact(image.float(), size, rule, box).to(image.dtype)
    if is_simple:
        from warpkit.engine.backends.cpu.resize import launch

        return launch.exact(image, size, rule, box)
    from warpkit.engine.backends.cpu.resize import operators

    return operators.call(image, size, rule, box)
