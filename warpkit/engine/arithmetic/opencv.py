"""OpenCV's pixels, bit for bit: arithmetic "opencv4" and "opencv5" of the reference backend.

The value comes from `opencv4_sums` or `opencv5`, as OpenCV would choose. The gradient is that of
the interpolation at OpenCV's rounded position, passed straight through to the unrounded one.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.autograd import forward_ad

from warpkit.core.checks import LABELS
from warpkit.engine.arithmetic import opencv4_positions as fixed_point
from warpkit.engine.arithmetic import opencv4_sums as table_sums
from warpkit.engine.arithmetic import opencv5
from warpkit.engine.sampling import reference
from warpkit.engine.sampling.maps import output_points
from warpkit.engine.sampling.rules import Rule

TYPES = (torch.uint8, torch.uint16, torch.int16, torch.float32, torch.float64)
"""The types that OpenCV interpolates. It moves int8 and int32 too, and no other labels: those are
moved likewise."""


def why_not(image: Tensor, rule: Rule) -> list[str]:
    """The reasons why OpenCV's pixels cannot be had."""
    reasons = reference.why_not(image, rule)
    if image.dtype not in TYPES + LABELS:
        names = ", ".join(str(dtype).removeprefix("torch.") for dtype in TYPES)
        reasons.append(f"OpenCV warps {names} and no {str(image.dtype).removeprefix('torch.')}")
    return reasons


def warp(
    image: Tensor,
    inverse: Tensor,
    size: Sequence[int],
    outside: Tensor,
    rule: Rule,
    *,
    border_value: Tensor | None = None,
) -> Tensor:
    """As `reference.warp`.

    border_value: the border's value where `outside` is the background. OpenCV starts sums near the
    border from it under every border, which shows in the last bits.
    """
    start = outside if border_value is None else border_value
    matrix = inverse.detach()
    if is_float(image, rule):
        grid = opencv5.warp_grid(matrix, size, image, rule)
    else:
        grid = fixed_point.warp_grid(matrix, size, rule)
    value = _values(image, grid, outside, start, rule)
    if not _wants_gradient(image, inverse, outside):
        return value
    return _with_gradient(value, image, grid, output_points(inverse, size), outside, rule)


def sample(
    image: Tensor,
    points: Tensor,
    outside: Tensor,
    rule: Rule,
    *,
    border_value: Tensor | None = None,
    fixed_map: bool = False,
) -> Tensor:
    """As `reference.sample`; border_value as in `warp`.

    fixed_map: the points were integers and 1/32 parts (CV_16SC2 and CV_16UC1), for which OpenCV 5
    keeps the fixed-point path of everything but bicubic.
    """
    start = outside if border_value is None else border_value
    detached = points.detach()
    by_floats = is_float(image, rule) and (not fixed_map or rule.interpolation == "bicubic")
    if by_floats:
        grid = opencv5.sample_grid(detached, image, rule)
    else:
        grid = fixed_point.sample_grid(detached, rule, fixed_map=fixed_map)
    value = _values(image, grid, outside, start, rule)
    if not _wants_gradient(image, points, outside):
        return value
    return _with_gradient(value, image, grid, points.double(), outside, rule)


def is_float(image: Tensor, rule: Rule) -> bool:
    """Whether OpenCV computes in float32, not in fixed point."""
    return rule.arithmetic == "opencv5" and opencv5.serves(image, rule)


Grid = fixed_point.Grid | opencv5.Grid


def _values(image: Tensor, grid: Grid, outside: Tensor, start: Tensor, rule: Rule) -> Tensor:
    image = image.detach()
    if image.dtype in LABELS:
        points = torch.where(grid.valid[..., None], grid.points(), torch.nan)
        return reference.sample(image, points, outside, Rule(rule.interpolation, rule.border))
    outside, start = (reference.convert(t.detach(), image.dtype) for t in (outside, start))
    if isinstance(grid, opencv5.Grid):
        value = opencv5.values(image, grid, outside, rule)
    else:
        value = table_sums.values(image, grid, outside, start, rule, table_sums.LANES)
    return torch.where(grid.valid[..., None, :, :], value, outside)


def _with_gradient(
    value: Tensor, image: Tensor, grid: Grid, points: Tensor, outside: Tensor, rule: Rule
) -> Tensor:
    """`value` with the gradient of the interpolation at the grid, as if the points lay there."""
    rounded = grid.points()
    # a position that saturation or a clamp holds does not follow its point
    free = (rounded - points.detach()).abs() <= 1
    moving = torch.where(free, points, 0.0)
    moving = rounded + (moving - moving.detach())
    moving = torch.where(grid.valid[..., None], moving, torch.nan)
    kept = rule.border == "transparent" and isinstance(grid, fixed_point.Grid)
    interpolate = _keep_background if kept else reference.sample
    # rules are made anew: Dynamo could not trace _replace before torch 2.8
    surrogate = interpolate(image, moving, outside, Rule(rule.interpolation, rule.border))
    return value - reference.minus_nothing(surrogate)


def _keep_background(image: Tensor, points: Tensor, outside: Tensor, rule: Rule) -> Tensor:
    """OpenCV 4's transparent border: a pixel is the background's or the image's, never a blend.

    It is the image's where the point, rounded down, is on it. Missing neighbours are left out of
    the bilinear mean; the wider rules reflect.
    """
    if rule.interpolation == "nearest":
        return reference.sample(image, points, outside, rule)
    height, width = image.shape[-2:]
    limit = torch.tensor([width, height], device=points.device)
    on_image = ((points >= 0) & (points < limit)).all(-1)[..., None, :, :]
    zero = outside.new_zeros(())
    if rule.interpolation == "bilinear":
        constant = Rule(rule.interpolation, "constant")
        total = reference.sample(image, points, zero, constant)
        ones = image.new_ones((1, height, width))
        cover = reference.sample(ones, points, zero, constant)
        inner = total / torch.where(on_image, cover, 1.0)
    else:
        inner = reference.sample(image, points, zero, Rule(rule.interpolation, "reflect_101"))
    return torch.where(on_image, inner, outside.to(inner.dtype))


def _wants_gradient(image: Tensor, *others: Tensor) -> bool:
    """Whether any derivative is asked for; an integer image has none."""
    if not image.is_floating_point():
        return False
    tensors = (image, *others)
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return True
    return any(forward_ad.unpack_dual(tensor).tangent is not None for tensor in tensors)
