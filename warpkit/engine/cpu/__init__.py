"""The CPU backend: computes the reference's results in the native library.

The library's C++ is in native/. `library` finds and opens it, and `opened` holds the one of this
process. `launch` turns tensors into calls, and `image_lists` lists of images. `calls` prepares
calls by shapes, types and options, and `jobs` splits a backward pass. `autograd` calls the library
without an operator, and `operators` through torch operators. `inverse` inverts matrices, `resize`
resizes, `opencv` has OpenCV's arithmetics, `objects` paints and crops objects, `moments` has the
sums of an alignment, and `sphere` samples spherical images. `maps` and `pictures` have other
functions of cv2.

`threads` distributes work, and `memory` keeps pages of results. If the library is missing, the
reference is used instead, after one warning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from warpkit.core.tracing import NO_ONNX, exports_to_onnx
from warpkit.engine.definitions.exact_gradient import Values
from warpkit.engine.definitions.reference import compute_dtype
from warpkit.engine.definitions.resize import ResizeRule
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.engine.operators.warp import WARP, Warp
from warpkit.engine.operators.warp import splat as warp_adjoint

HALVES = (torch.float16, torch.bfloat16)
"""Types in which the processor does not compute."""


def unsupported_reasons(image: Tensor, rule: SamplingRule | ResizeRule) -> list[str]:
    """The reasons why the native library does not support this call."""
    if image.device.type != "cpu":
        return [f"needs a CPU tensor, got {image.device}"]
    if exports_to_onnx():
        return [NO_ONNX]
    from warpkit.engine.cpu.native_library import REFUSAL

    return [REFUSAL] if REFUSAL else []


def warp(
    image: Tensor,
    to_source: Tensor,
    size: Sequence[int],
    fill: Tensor,
    rule: SamplingRule,
    values: Values | None = None,
    *,
    wide: bool = False,
) -> Tensor:
    """As `reference.warp`; values: as in `with_exact_gradient`, here and below.

    wide: the result is not rounded to the image's type, here and below. Only for what
    `backends.takes_wide` says.
    """
    return _run(Warp(size, rule, wide=wide), image, to_source.double(), fill, values)


def warp_forward(
    image: Tensor,
    matrix: Tensor,
    size: Sequence[int],
    fill: Tensor,
    rule: SamplingRule,
    values: Values | None = None,
) -> Tensor:
    """As `reference.warp_forward`."""
    return _run(Warp(size, rule, forward=True), image, matrix, fill, values)


def sample(
    image: Tensor,
    points: Tensor,
    fill: Tensor,
    rule: SamplingRule,
    values: Values | None = None,
    *,
    wide: bool = False,
) -> Tensor:
    """As `reference.sample`."""
    points = points.to(compute_dtype(points.dtype))
    options = Warp(points.shape[-3:-1], rule, wide=wide)
    return _run(options, image, points, fill, values)


def sample_offsets(
    image: Tensor,
    offsets: Tensor,
    fill: Tensor,
    rule: SamplingRule,
    values: Values | None = None,
) -> Tensor:
    """`sample` at every pixel's own position plus its offset, added in float64.

    Tensors as in `reference.sample`. Plain offsets are added when they are read.
    """
    offsets = offsets.to(compute_dtype(offsets.dtype))
    options = Warp(offsets.shape[-3:-1], rule, relative=True)
    return _run(options, image, offsets, fill, values)


def _run(
    options: Warp, image: Tensor, mapping: Tensor, fill: Tensor, values: Values | None
) -> Tensor:
    """Tensors as in `WARP`."""
    if options.rule.interpolation == "nearest" or not image.is_floating_point():
        mapping = mapping.detach()  # it has no slope, and autograd should report that
    if values is None:
        return WARP(options, image, mapping, fill)
    from warpkit.engine.cpu.warps import GivenWarp

    return WARP.by(GivenWarp(values), options, image, mapping, fill)


def splat(image: Tensor, points: Tensor, size: Sequence[int], rule: SamplingRule) -> Tensor:
    """As `reference.splat`."""
    return warp_adjoint(image, points, Warp(tuple(size), rule))


def splat_offsets(
    image: Tensor, offsets: Tensor, size: Sequence[int], rule: SamplingRule
) -> Tensor:
    """`splat` at every pixel's own position plus its offset, added in float64.

    image (*I, C, H, W); offsets (*P, H, W, 2), pixels. Plain offsets are added when they are read.
    """
    offsets = offsets.to(compute_dtype(offsets.dtype))
    options = Warp(tuple(size), rule, relative=True)
    return warp_adjoint(image, offsets, options)


def prepare(
    image: Tensor,
    mapping: Tensor,
    size: Sequence[int],
    fill: Tensor,
    rule: SamplingRule,
    *,
    forward: bool = False,
    relative: bool = False,
    kernels: Callable[..., Any] | None = None,
) -> Callable[[Tensor, Tensor], Tensor] | None:
    """A function for further calls with images and mappings like these, without checks; or None.

    image (*I, C, H, W); mapping (*M, 2 or 3, 3), source -> destination if `forward`, or
    (*P, h, w, 2), offsets if `relative`; fill broadcasts to the result. kernels: makes those of
    another arithmetic of the operator's options and tensors.
    """
    from warpkit.engine.cpu import warps
    from warpkit.engine.cpu.warp_calls import TYPES

    points = mapping.shape[-1] == 2
    if image.dtype not in (*TYPES, *HALVES) or (points and mapping.dtype in HALVES):
        return None  # computed in float32
    options = Warp(tuple(size), rule, forward, relative)
    return warps.plan(options, image, mapping, fill, kernels or warps.planned)


def first_sums(fixed: Tensor, seen: Tensor, weight: Tensor) -> Tensor:
    """As `SumsBackend.first_sums`."""
    from warpkit.engine.cpu import moments

    return moments.first_sums(fixed, seen, weight)


def second_sums(
    fixed: tuple[Tensor, Tensor, Tensor],
    seen: Tensor,
    weight: Tensor,
    gain: Tensor,
    bias: Tensor,
    half: float,
    degree: int,
) -> Tensor:
    """As `SumsBackend.second_sums`."""
    from warpkit.engine.cpu import moments

    return moments.second_sums(fixed, seen, weight, gain, bias, half, degree)


def inverse_map(matrix: Tensor) -> Tensor:
    """As `maps.inverse_map`."""
    from warpkit.engine.operators.inverse import INVERT

    return INVERT(torch.nan, matrix)
