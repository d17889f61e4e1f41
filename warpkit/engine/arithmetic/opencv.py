"""OpenCV's pixels, bit for bit: arithmetic "opencv4" and "opencv5" of the reference backend.

The values come from `opencv4_sums` or `opencv5`, as in OpenCV. They have no gradient:
`engine.backends.opencv` adds that of "exact".
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from warpkit.core import exports
from warpkit.core.checks import LABELS
from warpkit.engine.arithmetic import opencv4_positions as fixed_point
from warpkit.engine.arithmetic import opencv4_sums as table_sums
from warpkit.engine.arithmetic import opencv5
from warpkit.engine.definitions import maps, reference
from warpkit.engine.definitions.labels import as_signed, from_signed
from warpkit.engine.definitions.rules import SamplingRule

TYPES = (torch.uint8, torch.uint16, torch.int16, torch.float32, torch.float64)
"""The types that OpenCV interpolates. OpenCV moves only int8 and int32 among the labels; warpkit
moves all of them."""


def unsupported_reasons(image: Tensor) -> list[str]:
    """The reasons why OpenCV has no such pixels."""
    if image.dtype in TYPES + LABELS:
        return []
    names = ", ".join(str(dtype).removeprefix("torch.") for dtype in TYPES)
    return [f"OpenCV warps {names} and no {str(image.dtype).removeprefix('torch.')}"]


def warp(
    image: Tensor,
    to_source: Tensor,
    size: Sequence[int],
    fill: Tensor,
    rule: SamplingRule,
    border_value: Tensor | None = None,
) -> Tensor:
    """The values of `reference.warp`.

    border_value: the border's value if `fill` is the background. Under every border, OpenCV's sums
    near the image's edge start from it, which affects the last bits.
    """
    matrix = to_source.detach()
    if takes_float_path(image, rule):
        grid = opencv5.warp_grid(matrix, size, image, rule)
    else:
        grid = fixed_point.warp_grid(matrix, size, rule)
    return _values(image, grid, fill, fill if border_value is None else border_value, rule)


def inverse_map(matrix: Tensor) -> Tensor:
    """As `maps.inverse_map`; if a finite matrix (..., 2 or 3, 3) is singular, OpenCV returns 0."""
    return maps.inverse_map(matrix, singular=0.0)


def sample(
    image: Tensor,
    points: Tensor,
    fill: Tensor,
    rule: SamplingRule,
    border_value: Tensor | None = None,
    fixed_map: bool = False,
) -> Tensor:
    """The values of `reference.sample`; border_value as in `warp`.

    fixed_map: the points are integers and 1/32 parts (CV_16SC2 and CV_16UC1). For these, OpenCV 5
    uses its fixed-point path, except for bicubic.
    """
    points = points.detach()
    by_floats = takes_float_path(image, rule) and (not fixed_map or rule.interpolation == "bicubic")
    if by_floats:
        grid = opencv5.sample_grid(points, image, rule)
    else:
        grid = fixed_point.sample_grid(points, rule, fixed_map=fixed_map)
    return _values(image, grid, fill, fill if border_value is None else border_value, rule)


def added_to_pixels(offsets: Tensor) -> Tensor:
    """The points (*P, h, w, 2) at offsets from each pixel, added in the offsets' own type."""
    at = offsets.detach().to(torch.promote_types(offsets.dtype, torch.float32))
    return at + maps.pixel_points(at.shape[-3:-1], at.dtype, at.device)


def takes_float_path(image: Tensor, rule: SamplingRule) -> bool:
    """Whether OpenCV computes in float32 rather than in fixed point."""
    return rule.arithmetic == "opencv5" and opencv5.supports(image, rule)


OpenCVGrid = fixed_point.FixedGrid | opencv5.FloatGrid


def _values(
    image: Tensor, grid: OpenCVGrid, fill: Tensor, sum_start: Tensor, rule: SamplingRule
) -> Tensor:
    """The values (*batch, C, h, w) of image (*I, C, H, W) at the grid; fill and sum_start
    broadcast to them.
    """
    image = image.detach()
    if image.dtype in LABELS:
        points = torch.where(grid.valid[..., None], grid.points(), torch.nan)
        return reference.sample(image, points, fill, SamplingRule(rule.interpolation, rule.border))
    fill, sum_start = (reference.convert(t.detach(), image.dtype) for t in (fill, sum_start))
    if isinstance(grid, opencv5.FloatGrid):
        value = opencv5.values(image, grid, fill, rule)
    else:
        value = table_sums.values(
            image, grid, fill, sum_start, rule, table_sums.OPENCV_VECTOR_FLOATS
        )
    valid = grid.valid[..., None, :, :]
    bits, missing = as_signed(value), as_signed(fill)  # torch 2.7 has no `where` for uint16
    chosen = torch.where(valid, exports.widen(bits), exports.widen(missing))
    return from_signed(chosen.to(bits.dtype), value.dtype)
