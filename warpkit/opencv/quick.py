"""Warps plain arrays from their memory, by plans of kernels.

OpenCV takes 0.2 ms for a warp of 224 x 224; validating its arguments took as long.
`engine.binding.plan` keeps the plans that are made here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit.core.slips import look_at_points
from warpkit.engine.arithmetic.opencv import TYPES, takes_float_path
from warpkit.engine.backends import opencv_backend, select_backend
from warpkit.engine.binding.plan import Plan
from warpkit.engine.sampling.fill import border_value
from warpkit.engine.sampling.rules import SamplingRule
from warpkit.opencv.constants import WARP_INVERSE_MAP
from warpkit.opencv.layout import planes

DOUBLE, SINGLE, PIXEL = np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.int16)
PARTS = {PIXEL, np.dtype(np.uint16)}


def call_of(
    image: Tensor,
    mapping: Tensor,
    second: Tensor | None,
    size: tuple[int, int],
    rule: SamplingRule,
    value: Any,
) -> Any:
    """A call of OpenCV's kernels that fits all calls like this; None if unsupported.

    value: the border value. image (1, C, H, W); mapping (2 or 3, 3), float64, (h, w, 2) or (h, w);
    second (h, w).
    """
    if rule.arithmetic == "exact" or rule.border == "transparent" or image.dtype not in TYPES:
        return None
    if select_backend("warpkit.opencv", "auto", image, rule) is not opencv_backend("cpu"):
        return None
    from warpkit.engine.backends.cpu.opencv import launch

    fixed_map = mapping.dtype == torch.int16 and second is not None
    floats = takes_float_path(image, rule)
    if fixed_map:
        floats &= rule.interpolation == "bicubic"
    fill = border_value("warpkit.opencv", image, (*image.shape[:2], *size), rule, value)
    return launch.prepare(image, mapping, fill, size, rule, not floats, None, fixed_map, second)


def warp_plan(
    src: np.ndarray,
    matrix: np.ndarray,
    size: tuple[int, int],
    flags: int,
    options: dict[str, Any],
) -> Plan | None:
    """The plan of a kernel, if one supports the call; arguments are valid.

    src (H, W) or (H, W, C); matrix (2 or 3, 3); options: the core's.
    """
    if not _are_dense(src) or type(matrix) is not np.ndarray:
        return None
    rule = SamplingRule(options["interpolation"], options["border"], options["arithmetic"])
    numbers = torch.from_numpy(np.array(matrix, np.float64))
    made = call_of(planes(src), numbers, None, size, rule, options["border_value"])
    if made is None:
        return None
    from warpkit.engine.backends.cpu.inverse import invert_numbers
    from warpkit.engine.backends.cpu.opencv import launch

    shape = _shape_of(src, size)
    turned = bool(flags & WARP_INVERSE_MAP)

    def run(src: np.ndarray, matrix: np.ndarray) -> np.ndarray:
        """src (H, W) or (H, W, C); matrix (2 or 3, 3)."""
        if matrix.dtype != DOUBLE or not matrix.flags.c_contiguous:
            matrix = np.ascontiguousarray(matrix, DOUBLE)
        if not turned:
            matrix = invert_numbers(matrix, singular_to_zero=True)  # may be read-only
        return launch.result(made, src, matrix).reshape(shape)

    return run


def _are_dense(*arrays: Any) -> bool:
    """Whether all are dense arrays of numpy."""
    return all(type(array) is np.ndarray and array.flags.c_contiguous for array in arrays)


def maps_plan(
    src: np.ndarray,
    first: np.ndarray,
    second: np.ndarray | None,
    rule: SamplingRule,
    value: Any,
) -> Plan | None:
    """The same for remap: two float maps, or integer maps with or without fractions.

    src (H, W) or (H, W, C); first and second (h, w), or (h, w, 2) and (h, w) or None.
    """
    arrays = (src, first) if second is None else (src, first, second)
    if not _are_dense(*arrays) or 0 in first.shape:
        return None
    kinds = first.dtype, first.ndim
    if second is None:
        known = kinds == (PIXEL, 3)
    else:
        known = kinds == (SINGLE, 2) and second.dtype == SINGLE
        known |= kinds == (PIXEL, 3) and second.dtype in PARTS
    if not known or (second is not None and second.shape != first.shape[:2]):
        return None
    size = (first.shape[0], first.shape[1])
    maps = [torch.from_numpy(np.empty(array.shape, array.dtype)) for array in arrays[1:]]
    more = None if second is None else maps[1]
    made = call_of(planes(src), maps[0], more, size, rule, value)
    if made is None:
        return None
    from warpkit.engine.backends.cpu.opencv import launch

    shape, planes_of_floats = _shape_of(src, size), first.dtype == SINGLE

    def run(src: np.ndarray, first: np.ndarray, second: np.ndarray | None) -> np.ndarray:
        """src (H, W) or (H, W, C); first and second (h, w), or (h, w, 2) and (h, w) or None."""
        if planes_of_floats and -1 <= first[-1, -1] <= 1 and -1 <= second[-1, -1] <= 1:  # pyright: ignore
            points = torch.from_numpy(np.stack((first, second), -1))  # pyright: ignore
            look_at_points("remap", points, src.shape[:2])
        return launch.result(made, src, first, second).reshape(shape)

    return run


def _shape_of(src: np.ndarray, size: tuple[int, int]) -> tuple[int, ...]:
    """The shape of a result, (h, w) or (h, w, C)."""
    return (*size, *src.shape[2:]) if src.shape[2:] != (1,) else size
