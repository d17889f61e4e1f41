"""Plans of OpenCV's kernels for images that are sampled by matrices and maps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit.core.mistakes import warn_if_no_pixels
from warpkit.engine.arithmetic.opencv import TYPES, takes_float_path
from warpkit.engine.backends import opencv_backend, select_backend
from warpkit.engine.binding.plan import Plan
from warpkit.engine.definitions.fill import border_value
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.opencv.layout import shape_like

Sampler = Callable[..., np.ndarray]
"""Samples an image (H, W) or (H, W, C) by a matrix or maps of one kind: (h, w) or (h, w, C)."""


def has_kernel(image: Tensor, rule: SamplingRule) -> bool:
    """Whether OpenCV's kernels sample such images (1, C, H, W)."""
    if rule.arithmetic == "exact" or rule.border == "transparent" or image.dtype not in TYPES:
        return False
    return select_backend("warpkit.opencv", "auto", image, rule) is opencv_backend("cpu")


def sampler(
    arrays: tuple[Any, Any, Any],
    image: Tensor,
    mapping: Tensor,
    second: Tensor | None,
    size: tuple[int, int],
    rule: SamplingRule,
    value: Any,
) -> Sampler:
    """Samples images at addresses, if `has_kernel` says so.

    arrays: the image, mapping and second as they will come; image: the first as (1, C, H, W);
    mapping (2 or 3, 3), float64, (h, w, 2) or (h, w); second (h, w) or None; value: the border's.
    """
    from warpkit.engine.cpu.calls import reader
    from warpkit.engine.cpu.opencv import launch

    fixed_map = mapping.dtype == torch.int16 and second is not None
    floats = takes_float_path(image, rule)
    if fixed_map:
        floats &= rule.interpolation == "bicubic"
    fill = border_value("warpkit.opencv", image, (*image.shape[:2], *size), rule, value)
    call = launch.prepare(image, mapping, fill, size, rule, not floats, None, fixed_map, second)
    shape, (of_image, of_mapping, of_second) = shape_like(arrays[0], size), map(reader, arrays)
    moves = image.shape[1] > 1 and not call.call.channels_last

    def sample(src: Any, mapping: Any, second: Any = None) -> np.ndarray:
        memory = launch.run(call, of_image(src), of_mapping(mapping), of_second(second))
        return np.moveaxis(memory[0], 0, -1) if moves else memory.reshape(shape)

    return sample


def warp_plan(
    arrays: tuple[Any, Any],
    image: Tensor,
    matrix: Tensor,
    size: tuple[int, int],
    rule: SamplingRule,
    value: Any,
    inverse: bool,
) -> Plan:
    """The plan of a warp by matrices (2 or 3, 3) of any type; arguments as in `sampler`."""
    from warpkit.engine.cpu.inverse import invert_numbers

    read, is_tensor = (arrays[0], matrix.numpy(), None), isinstance(arrays[1], Tensor)
    sample = sampler(read, image, matrix.double(), None, size, rule, value)

    def run(src: Any, matrix: Any, dst: Any) -> np.ndarray:
        matrix = matrix.numpy() if is_tensor else matrix
        if matrix.dtype != np.float64 or not matrix.flags.c_contiguous:
            matrix = np.ascontiguousarray(matrix, np.float64)
        return sample(src, matrix if inverse else invert_numbers(matrix, singular_to_zero=True))

    return run


def maps_plan(
    arrays: tuple[Any, Any, Any],
    image: Tensor,
    first: Tensor,
    second: Tensor | None,
    rule: SamplingRule,
    value: Any,
) -> Plan:
    """The plan of a remap by maps in float32 or integers; arguments as in `sampler`.

    first (h, w, 2) or (h, w); second (h, w) or None; image (1, C, H, W).
    """
    size = first.shape[0], first.shape[1]
    are_tensors = isinstance(arrays[1], Tensor)
    read = (arrays[0], first.numpy(), None if second is None else second.numpy())
    sample = sampler(read, image, first, second, size, rule, value)
    looks, sides = first.dtype.is_floating_point, arrays[0].shape[:2]

    def run(src: Any, first: Any, second: Any, dst: Any) -> np.ndarray:
        if are_tensors:
            first, second = first.numpy(), None if second is None else second.numpy()
        if looks:
            x, y = first[-1, -1] if second is None else (first[-1, -1], second[-1, -1])
            if -1 <= x <= 1 and -1 <= y <= 1:
                points = np.array(first) if second is None else np.stack((first, second), -1)
                warn_if_no_pixels("remap", torch.from_numpy(points), sides)
        return sample(src, first, second)

    return run
