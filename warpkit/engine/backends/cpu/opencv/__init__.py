"""OpenCV's pixels by compiled kernels: what `arithmetic.opencv` computes, bit by bit, but faster.

Forward alone: gradients, tangents and tracing are served by `arithmetic.opencv` itself. `launch`
goes from tensors to kernel calls; `packed_uint8`, `planar` and `cubic` are the kernels, `positions`
and `tile` their steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from warpkit.core.checks import LABELS
from warpkit.core.tracing import is_eager, wants_gradient
from warpkit.engine.arithmetic import opencv
from warpkit.engine.backends import cpu
from warpkit.engine.sampling.rules import SamplingRule


def unsupported_reasons(image: Tensor, rule: SamplingRule) -> list[str]:
    """The reasons why the kernels cannot do this."""
    reasons = cpu.numba_reasons(image)
    of = f"in arithmetic {rule.arithmetic!r}"
    floats = opencv.takes_float_path(image, rule)
    columns = rule.interpolation == "lanczos4" or (rule.interpolation == "bicubic" and not floats)
    if image.dtype not in (torch.uint8, torch.float32, *LABELS):
        reasons.append(f"has no {image.dtype} {of}")
    elif columns and image.dtype != torch.uint8:
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
    to_source: Tensor,
    size: Sequence[int],
    fill: Tensor,
    rule: SamplingRule,
    *,
    border_value: Tensor | None = None,
) -> Tensor:
    """As `opencv.warp`."""
    if _is_traced(image, to_source, fill):
        return opencv.warp(image, to_source, size, fill, rule, border_value=border_value)
    return _sample(image, to_source, size, fill, rule)


def warp_forward(
    image: Tensor, matrix: Tensor, size: Sequence[int], fill: Tensor, rule: SamplingRule
) -> Tensor:
    """As `reference.warp_forward`."""
    return warp(image, inverse_map(matrix.double()), size, fill, rule)


def sample(
    image: Tensor,
    points: Tensor,
    fill: Tensor,
    rule: SamplingRule,
    *,
    border_value: Tensor | None = None,
    fixed_map: bool = False,
) -> Tensor:
    """As `opencv.sample`."""
    if fixed_map or _is_traced(image, points, fill):
        options = {"border_value": border_value, "fixed_map": fixed_map}
        return opencv.sample(image, points, fill, rule, **options)
    return _sample(image, points.float(), points.shape[-3:-1], fill, rule)


def inverse_map(matrix: Tensor) -> Tensor:
    """As `opencv.inverse_map`."""
    if _is_traced(matrix):
        return opencv.inverse_map(matrix)
    from warpkit.engine.backends.cpu.inverse import invert

    return invert(matrix.detach().contiguous(), singular=0.0)


def _is_traced(*tensors: Tensor) -> bool:
    """Whether a derivative is asked for, or the tensors have no memory to be read."""
    if not is_eager(*tensors):
        return True
    return tensors[0].is_floating_point() and wants_gradient(*tensors)


def _sample(
    image: Tensor, mapping: Tensor, size: Sequence[int], fill: Tensor, rule: SamplingRule
) -> Tensor:
    """mapping: a matrix (*M, 2 or 3, 3), destination -> source, or points (*P, h, w, 2),
    float32; the rest as of `Backend`.
    """
    from warpkit.engine.backends.cpu.opencv.launch import forward

    return forward(image, mapping, fill, size, rule, not opencv.takes_float_path(image, rule))
