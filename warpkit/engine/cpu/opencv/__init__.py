"""OpenCV's pixels in the native library: the same bits as `arithmetic.opencv`, faster.

Under tracing and transforms, `arithmetic.opencv` computes them. `launch` turns tensors into kernel
calls; the kernels are native/opencv/opencv.cpp and opencv_nearest.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from warpkit.core.tracing import is_eager
from warpkit.engine.arithmetic import opencv
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.engine.operators.warp import Warp


def warp(
    image: Tensor,
    to_source: Tensor,
    size: Sequence[int],
    fill: Tensor,
    rule: SamplingRule,
    border_value: Tensor | None = None,
) -> Tensor:
    """As `opencv.warp`."""
    if not is_eager(image, to_source, fill):
        return opencv.warp(image, to_source, size, fill, rule, border_value)
    return _sample(image, to_source.double(), size, fill, rule, border_value)


def sample(
    image: Tensor,
    points: Tensor,
    fill: Tensor,
    rule: SamplingRule,
    border_value: Tensor | None = None,
    fixed_map: bool = False,
) -> Tensor:
    """As `opencv.sample`."""
    if not is_eager(image, points, fill):
        return opencv.sample(image, points, fill, rule, border_value, fixed_map)
    points = points if points.dtype in (torch.float32, torch.float64) else points.float()
    return _sample(image, points, points.shape[-3:-1], fill, rule, border_value, fixed_map)


def sample_maps(
    image: Tensor,
    first: Tensor,
    second: Tensor | None,
    fill: Tensor,
    rule: SamplingRule,
    *,
    border_value: Tensor | None = None,
) -> Tensor:
    """`sample` for maps of cv2.remap, which are read directly; without gradients.

    first, second: two (h, w) of float32; or pixels (h, w, 2), int16, with or without their 1/32
    parts (h, w), int16 or uint16.
    """
    fixed_map = first.dtype == torch.int16 and second is not None
    return _sample(image, first, first.shape[:2], fill, rule, border_value, fixed_map, second)


def planned(options: Warp, image: Tensor, mapping: Tensor, fill: Tensor) -> Any:
    """The kernel of warps like one, tensors as of `WARP`: see `launch.Planned`."""
    from warpkit.engine.cpu.opencv.launch import Planned

    return Planned(options, image, mapping, fill)


def inverse_map(matrix: Tensor) -> Tensor:
    """As `opencv.inverse_map`."""
    if not is_eager(matrix):
        return opencv.inverse_map(matrix)
    from warpkit.engine.cpu.inverse import invert

    return invert(matrix, singular_to_zero=True)


def _sample(
    image: Tensor,
    mapping: Tensor,
    size: Sequence[int],
    fill: Tensor,
    rule: SamplingRule,
    border_value: Tensor | None,
    fixed_map: bool = False,
    second: Tensor | None = None,
) -> Tensor:
    """mapping: a matrix (*M, 2 or 3, 3), destination -> source, or points (*P, h, w, 2), with
    `second` as in `sample_maps`; the rest as in `Backend`.
    """
    from warpkit.engine.cpu.opencv.launch import forward

    floats = opencv.takes_float_path(image, rule)
    floats = floats and (not fixed_map or rule.interpolation == "bicubic")
    return forward(image, mapping, fill, size, rule, not floats, border_value, fixed_map, second)
