"""OpenCV's pixels, bit for bit: arithmetic "opencv4" and "opencv5" of the reference backend.

The value comes from `opencv4_sums` or `opencv5`, as in OpenCV. The gradient is that of the
interpolation at OpenCV's rounded position, passed straight through to the unrounded one.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from warpkit.core import exports
from warpkit.core.checks import LABELS
from warpkit.core.tracing import wants_derivative
from warpkit.engine.arithmetic import opencv4_positions as fixed_point
from warpkit.engine.arithmetic import opencv4_sums as table_sums
from warpkit.engine.arithmetic import opencv5
from warpkit.engine.sampling import maps, reference
from warpkit.engine.sampling.labels import as_signed, from_signed
from warpkit.engine.sampling.maps import output_points
from warpkit.engine.sampling.rules import SamplingRule

TYPES = (torch.uint8, torch.uint16, torch.int16, torch.float32, torch.float64)
"""The types that OpenCV interpolates. OpenCV moves only int8 and int32 among the labels; warpkit
moves all of them."""


def unsupported_reasons(image: Tensor, rule: SamplingRule) -> list[str]:
    """The reasons why OpenCV's pixels are not available."""
    reasons = reference.unsupported_reasons(image, rule)
    if image.dtype not in TYPES + LABELS:
        names = ", ".join(str(dtype).removeprefix("torch.") for dtype in TYPES)
        reasons.append(f"OpenCV warps {names} and no {str(image.dtype).removeprefix('torch.')}")
    return reasons


def warp(
    image: Tensor,
    to_source: Tensor,
    size: Sequence[int],
    fill: Tensor,
    rule: SamplingRule,
    *,
    border_value: Tensor | None = None,
) -> Tensor:
    """As `reference.warp`.

    border_value: the border's value if `fill` is the background. Under every border, OpenCV's sums
    near the image's edge start from it, which affects the last bits.
    """
    sum_start = fill if border_value is None else border_value
    matrix = to_source.detach()
    if takes_float_path(image, rule):
        grid = opencv5.warp_grid(matrix, size, image, rule)
    else:
        grid = fixed_point.warp_grid(matrix, size, rule)
    value = _values(image, grid, fill, sum_start, rule)
    if not wants_derivative(image, to_source, fill):
        return value
    return _with_gradient(value, image, grid, output_points(to_source, size), fill, rule)


def warp_forward(
    image: Tensor, matrix: Tensor, size: Sequence[int], fill: Tensor, rule: SamplingRule
) -> Tensor:
    """As `reference.warp_forward`."""
    return warp(image, inverse_map(matrix.double()), size, fill, rule)


def inverse_map(matrix: Tensor) -> Tensor:
    """As `maps.inverse_map`; if a finite matrix (..., 2 or 3, 3) is singular, OpenCV returns 0."""
    return maps.inverse_map(matrix, singular=0.0)


def sample(
    image: Tensor,
    points: Tensor,
    fill: Tensor,
    rule: SamplingRule,
    *,
    border_value: Tensor | None = None,
    fixed_map: bool = False,
) -> Tensor:
    """As `reference.sample`; border_value as in `warp`.

    fixed_map: the points are integers and 1/32 parts (CV_16SC2 and CV_16UC1). For these, OpenCV 5
    uses its fixed-point path, except for bicubic.
    """
    sum_start = fill if border_value is None else border_value
    detached = points.detach()
    by_floats = takes_float_path(image, rule) and (not fixed_map or rule.interpolation == "bicubic")
    if by_floats:
        grid = opencv5.sample_grid(detached, image, rule)
    else:
        grid = fixed_point.sample_grid(detached, rule, fixed_map=fixed_map)
    value = _values(image, grid, fill, sum_start, rule)
    if not wants_derivative(image, points, fill):
        return value
    return _with_gradient(value, image, grid, points.double(), fill, rule)


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
    chosen = torch.where(valid, exports.widened(bits), exports.widened(missing))
    return from_signed(chosen.to(bits.dtype), value.dtype)


def _with_gradient(
    value: Tensor, image: Tensor, grid: OpenCVGrid, points: Tensor, fill: Tensor, rule: SamplingRule
) -> Tensor:
    """`value` with the gradient of the interpolation at the grid's positions.

    value (*batch, C, h, w); image (*I, C, H, W); points (*P, h, w, 2), pixels; fill broadcasts to
    value.
    """
    rounded = grid.points()
    # a saturated or clamped position does not depend on its point
    free = (rounded - points.detach()).abs() <= 1
    moving = torch.where(free, points, 0.0)
    moving = rounded + (moving - moving.detach())
    moving = torch.where(grid.valid[..., None], moving, torch.nan)
    kept = rule.border == "transparent" and isinstance(grid, fixed_point.FixedGrid)
    interpolate = _keep_background if kept else reference.sample
    # rules are made anew because Dynamo could not trace _replace before torch 2.8
    surrogate = interpolate(image, moving, fill, SamplingRule(rule.interpolation, rule.border))
    return reference.with_gradient_of(value, surrogate)


def _keep_background(image: Tensor, points: Tensor, fill: Tensor, rule: SamplingRule) -> Tensor:
    """OpenCV 4's transparent border: a pixel is the background's or the image's, never blended.

    It is the image's if the point, rounded down, is inside the image. Missing neighbours are left
    out of the bilinear mean; the wider interpolations reflect.

    image (*I, C, H, W); points (*P, h, w, 2), pixels; fill broadcasts to the result.
    """
    if rule.interpolation == "nearest":
        return reference.sample(image, points, fill, rule)
    height, width = image.shape[-2:]
    limit = torch.tensor([width, height], device=points.device)
    on_image = ((points >= 0) & (points < limit)).all(-1)[..., None, :, :]
    zero = fill.new_zeros(())
    if rule.interpolation == "bilinear":
        constant = SamplingRule(rule.interpolation, "constant")
        total = reference.sample(image, points, zero, constant)
        ones = image.new_ones((1, height, width))
        cover = reference.sample(ones, points, zero, constant)
        inner = total / torch.where(on_image, cover, 1.0)
    else:
        inner = reference.sample(
            image, points, zero, SamplingRule(rule.interpolation, "reflect_101")
        )
    return torch.where(on_image, inner, fill.to(inner.dtype))
