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

import torch
from torch import Tensor

from warpkit.core.tracing import NO_ONNX, exports_to_onnx, is_eager
from warpkit.engine.sampling.exact_gradient import Values
from warpkit.engine.sampling.maps import added_to_pixels
from warpkit.engine.sampling.reference import compute_dtype
from warpkit.engine.sampling.resize import ResizeRule
from warpkit.engine.sampling.rules import SamplingRule

HALVES = (torch.float16, torch.bfloat16)
"""Types in which the processor does not compute. Kernels read them; for torch's operators the image
is converted."""


def unsupported_reasons(image: Tensor, rule: SamplingRule | ResizeRule) -> list[str]:
    """The reasons why the native library does not support this call."""
    if image.device.type != "cpu":
        return [f"needs a CPU tensor, got {image.device}"]
    if exports_to_onnx():
        return [NO_ONNX]
    from warpkit.engine.backends.cpu.opened import REFUSAL

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
    return _warp(image, to_source.double(), size, fill, rule, values, forward=False, wide=wide)


def warp_forward(
    image: Tensor,
    matrix: Tensor,
    size: Sequence[int],
    fill: Tensor,
    rule: SamplingRule,
    values: Values | None = None,
) -> Tensor:
    """As `reference.warp_forward`."""
    return _warp(image, matrix, size, fill, rule, values, forward=True)


def _warp(
    image: Tensor,
    matrix: Tensor,
    size: Sequence[int],
    fill: Tensor,
    rule: SamplingRule,
    values: Values | None,
    *,
    forward: bool,
    wide: bool = False,
) -> Tensor:
    """forward: `matrix` (*M, 2 or 3, 3) maps source -> destination."""
    if is_eager(image, matrix, fill):
        from warpkit.engine.backends.cpu import autograd

        options = autograd.WarpOptions(size, rule, forward, relative=False, wide=wide)
        return autograd.call(image, matrix, fill, options, values)
    if image.dtype in HALVES:
        found = _warp(image.float(), matrix, size, fill, rule, values, forward=forward)
        return found.to(image.dtype)
    from warpkit.engine.backends.cpu.operators import OPERATORS

    to_source = inverse_map(matrix.double()) if forward else matrix
    return OPERATORS.warp(image, to_source, size, fill, rule)


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
    if is_eager(image, points, fill):
        from warpkit.engine.backends.cpu import autograd

        size = points.shape[-3:-1]
        options = autograd.WarpOptions(size, rule, forward=False, relative=False, wide=wide)
        return autograd.call(image, points, fill, options, values)
    if image.dtype in HALVES:
        return sample(image.float(), points, fill, rule, values).to(image.dtype)
    from warpkit.engine.backends.cpu.operators import OPERATORS

    return OPERATORS.sample(image, points, fill, rule)


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
    if is_eager(image, offsets, fill):
        from warpkit.engine.backends.cpu import autograd

        offsets = offsets.to(compute_dtype(offsets.dtype))
        options = autograd.WarpOptions(offsets.shape[-3:-1], rule, forward=False, relative=True)
        return autograd.call(image, offsets, fill, options, values)
    return sample(image, added_to_pixels(offsets), fill, rule)


def splat(image: Tensor, points: Tensor, size: Sequence[int], rule: SamplingRule) -> Tensor:
    """As `reference.splat`."""
    from warpkit.engine.backends.cpu.operators import OPERATORS

    return OPERATORS.splat(image, points, size, rule)


def splat_offsets(
    image: Tensor, offsets: Tensor, size: Sequence[int], rule: SamplingRule
) -> Tensor:
    """`splat` at every pixel's own position plus its offset, added in float64.

    image (*I, C, H, W); offsets (*P, H, W, 2), pixels. Plain offsets are added when they are read.
    """
    if is_eager(image, offsets):
        from warpkit.engine.backends.cpu import autograd

        offsets = offsets.to(compute_dtype(offsets.dtype))
        return autograd.EagerSplat.apply(image, offsets, tuple(size), rule)  # pyright: ignore
    return splat(image, added_to_pixels(offsets), size, rule)


def prepare(
    image: Tensor,
    mapping: Tensor,
    size: Sequence[int],
    fill: Tensor,
    rule: SamplingRule,
    *,
    forward: bool = False,
    relative: bool = False,
) -> Callable[[Tensor, Tensor], Tensor] | None:
    """A function for further calls with images and mappings like these, without checks; or None.

    image (*I, C, H, W); mapping (*M, 2 or 3, 3), source -> destination if `forward`, or
    (*P, h, w, 2), offsets if `relative`; fill broadcasts to the result.
    """
    from warpkit.engine.backends.cpu import autograd
    from warpkit.engine.backends.cpu.warp_calls import TYPES

    points = mapping.shape[-1] == 2
    if image.dtype not in (*TYPES, *HALVES) or (points and mapping.dtype in HALVES):
        return None  # computed in float32
    options = autograd.WarpOptions(tuple(size), rule, forward, relative)
    return autograd.prepare(image, mapping, fill, options)


def first_sums(fixed: Tensor, seen: Tensor, weight: Tensor) -> Tensor:
    """As `SumsBackend.first_sums`."""
    from warpkit.engine.backends.cpu import moments

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
    from warpkit.engine.backends.cpu import moments

    return moments.second_sums(fixed, seen, weight, gain, bias, half, degree)


def inverse_map(matrix: Tensor) -> Tensor:
    """As `maps.inverse_map`."""
    from warpkit.engine.operators.inverse import INVERT

    return INVERT(torch.nan, matrix)
