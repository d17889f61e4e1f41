"""OpenCV's pixels by compiled kernels: what `arithmetic.opencv` computes, bit by bit, but faster.

Forward alone: gradients, tangents and tracing are served by `arithmetic.opencv` itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from warpkit.core.checks import LABELS
from warpkit.core.tracing import is_eager
from warpkit.engine.arithmetic import opencv
from warpkit.engine.backends import cpu
from warpkit.engine.sampling import maps
from warpkit.engine.sampling.rules import Rule


def why_not(image: Tensor, rule: Rule) -> list[str]:
    """The reasons why the kernels cannot do this."""
    reasons = cpu.why_not(image, rule)
    of = f"in arithmetic {rule.arithmetic!r}"
    wide = rule.interpolation in ("bicubic", "lanczos4")
    if image.dtype not in (torch.uint8, torch.float32, *LABELS):
        reasons.append(f"has no {image.dtype} {of}")
    elif wide and (image.dtype != torch.uint8 or opencv.is_float(image, rule)):
        # only sums in whole numbers: the others' depend on the order, near the border and inside
        reasons.append(f"has no {rule.interpolation} of {image.dtype} {of}")
    single = image.is_floating_point() and image.shape[-3] == 1
    if single and rule.interpolation == "bilinear" and rule.arithmetic == "opencv4":
        # OpenCV 4 sums it in registers, by runs of pixels
        reasons.append(f"has no bilinear of one float32 channel {of}")
    if rule.border == "transparent":
        reasons.append(f"has no border 'transparent' {of}")
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
    """As `opencv.warp`."""
    if _is_traced(image, inverse, outside):
        return opencv.warp(image, inverse, size, outside, rule, border_value=border_value)
    return _sample(image, inverse, size, outside, rule)


def sample(
    image: Tensor,
    points: Tensor,
    outside: Tensor,
    rule: Rule,
    *,
    border_value: Tensor | None = None,
    fixed_map: bool = False,
) -> Tensor:
    """As `opencv.sample`."""
    if fixed_map or _is_traced(image, points, outside):
        options = {"border_value": border_value, "fixed_map": fixed_map}
        return opencv.sample(image, points, outside, rule, **options)
    return _sample(image, points.float(), points.shape[-3:-1], outside, rule)


def inverse_map(matrix: Tensor) -> Tensor:
    """As `maps.inverse_map` with OpenCV's singular maps."""
    if _is_traced(matrix):
        return maps.inverse_map(matrix, singular=0.0)
    from warpkit.engine.backends.cpu.warps.inverse import invert

    return invert(matrix.detach().contiguous(), singular=0.0)


def _is_traced(*tensors: Tensor) -> bool:
    """Whether a derivative is asked for, or the tensors have no memory to be read."""
    if not is_eager(*tensors):
        return True
    if not tensors[0].is_floating_point() or not torch.is_grad_enabled():
        return False
    return any(tensor.requires_grad for tensor in tensors)


def _sample(
    image: Tensor, where: Tensor, size: Sequence[int], outside: Tensor, rule: Rule
) -> Tensor:
    from warpkit.engine.backends.cpu.opencv.launch import forward

    return forward(image, where, outside, size, rule, not opencv.is_float(image, rule))
