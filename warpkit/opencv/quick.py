"""Warps plain arrays from their memory, with cached validation.

OpenCV takes 0.2 ms for a warp of 224 x 224; validating its arguments took as long.
`engine.backends.prepared` caches the calls.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.arithmetic.guarantees import installed_arithmetic
from warpkit.engine.arithmetic.opencv import TYPES, takes_float_path
from warpkit.engine.backends import opencv_backend, prepared, select_backend
from warpkit.engine.sampling.fill import border_value
from warpkit.engine.sampling.rules import SamplingRule
from warpkit.opencv.constants import WARP_INVERSE_MAP
from warpkit.opencv.layout import planes

DOUBLE, SINGLE, PIXEL = np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.int16)
PARTS = {PIXEL, np.dtype(np.uint16)}


def key_of(name: str, arrays: tuple[Any, ...], *options: Any) -> prepared.Key:
    """The cache key of a call with plain arrays; None for others.

    options: dst, flags, borderMode, borderValue, arithmetic, and those before them.
    """
    for array in arrays:
        if type(array) is not np.ndarray:
            return None
    if options[-1] == "auto":
        options += (installed_arithmetic(),)
    return prepared.key_of(name, arrays, options)


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


def cache_warp(
    key: prepared.Key,
    src: np.ndarray,
    matrix: np.ndarray,
    size: tuple[int, int],
    flags: int,
    options: dict[str, Any],
) -> None:
    """Cache the kernel call for the next call with this key, if supported; arguments are valid.

    src (H, W) or (H, W, C); matrix (2 or 3, 3); options: the core's.
    """
    if key is None or not src.flags.c_contiguous:
        return
    rule = SamplingRule(options["interpolation"], options["border"], options["arithmetic"])
    numbers = torch.from_numpy(np.array(matrix, np.float64))
    made = call_of(planes(src), numbers, None, size, rule, options["border_value"])
    if made is None:
        return
    from warpkit.engine.backends.cpu.inverse import invert_numbers
    from warpkit.engine.backends.cpu.opencv import launch

    shape = _shape_of(src, size)
    turned = bool(flags & WARP_INVERSE_MAP)

    def again(src: np.ndarray, matrix: np.ndarray) -> np.ndarray:
        """src (H, W) or (H, W, C); matrix (2 or 3, 3)."""
        if matrix.dtype != DOUBLE or not matrix.flags.c_contiguous:
            matrix = np.ascontiguousarray(matrix, DOUBLE)
        if not turned:
            matrix = invert_numbers(matrix, singular_to_zero=True)  # may be read-only
        return launch.result(made, src, matrix).reshape(shape)

    prepared.keep(key, again)


def cache_maps(
    key: prepared.Key,
    src: np.ndarray,
    first: np.ndarray,
    second: np.ndarray | None,
    rule: SamplingRule,
    value: Any,
) -> None:
    """The same for remap: two float maps, or integer maps with or without fractions.

    src (H, W) or (H, W, C); first and second (h, w), or (h, w, 2) and (h, w) or None.
    """
    arrays = (src, first) if second is None else (src, first, second)
    if key is None or not all(array.flags.c_contiguous for array in arrays):
        return
    kinds = first.dtype, first.ndim
    if second is None:
        known = kinds == (PIXEL, 3)
    else:
        known = kinds == (SINGLE, 2) and second.dtype == SINGLE
        known |= kinds == (PIXEL, 3) and second.dtype in PARTS
    if not known or (second is not None and second.shape != first.shape[:2]):
        return
    size = (first.shape[0], first.shape[1])
    maps = [torch.from_numpy(np.empty(array.shape, array.dtype)) for array in arrays[1:]]
    more = None if second is None else maps[1]
    made = call_of(planes(src), maps[0], more, size, rule, value)
    if made is None:
        return
    from warpkit.engine.backends.cpu.opencv import launch

    shape, planes_of_floats = _shape_of(src, size), first.dtype == SINGLE

    def again(
        src: np.ndarray, first: np.ndarray, second: np.ndarray | None = None
    ) -> np.ndarray | None:
        """None for planes that may lie within [-1, 1], about which the core warns.

        src (H, W) or (H, W, C); first and second (h, w), or (h, w, 2) and (h, w) or None.
        """
        if planes_of_floats and -1 <= first[-1, -1] <= 1 and -1 <= second[-1, -1] <= 1:  # pyright: ignore
            return None
        return launch.result(made, src, first, second).reshape(shape)

    prepared.keep(key, again)


def _shape_of(src: np.ndarray, size: tuple[int, int]) -> tuple[int, ...]:
    """The shape of a result, (h, w) or (h, w, C)."""
    return (*size, *src.shape[2:]) if src.shape[2:] != (1,) else size
