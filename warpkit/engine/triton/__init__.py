"""The CUDA backend: kernels in Triton, the same results as the reference.

It is the counterpart of `cpu`. `operators` makes torch operators of `launch`, which turns tensors
into kernel launches with the sizes of `work`. The kernels are `forward`, `backward` (gradients to
the map and the fill), and for the gradient to the image `gather`, `gather_affine` and `scatter`, of
which `image_gradient` selects one. `positions` and `weights` are steps of the kernels; `inverse`
inverts matrices, `jpeg` makes JPEG files, `depth` points of depths, `front` z-buffers, and
`correlation` and `sweep` compare pictures. No kernel adds floats atomically, so every result is
repeatable to the last bit. Under TRITON_INTERPRET=1 the kernels take CPU tensors, for tests without
a device.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from warpkit.core.checks import LABELS
from warpkit.core.environment import TRITON_INTERPRETED as INTERPRETED
from warpkit.core.tracing import NO_ONNX, exports_to_onnx
from warpkit.engine.definitions.reference import compute_dtype
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.engine.operators.warp import WARP, Warp
from warpkit.engine.operators.warp import splat as warp_adjoint

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
DTYPES += (torch.uint8, torch.int16, torch.uint16, *LABELS)

try:
    import triton

    # since 3.3 tuples can be passed to functions, as the kernels do with a matrix
    HAS_TRITON = tuple(int(part) for part in triton.__version__.split(".")[:2]) >= (3, 3)
except ImportError:
    HAS_TRITON = False

LONGEST = 2**30
"""Positions beyond this are moved to it; memory cannot hold as many rows or columns."""


def unsupported_reasons(image: Tensor, rule: SamplingRule) -> list[str]:
    """The reasons why the kernels do not support a call."""
    reasons = []
    if not image.is_cuda and not (INTERPRETED and image.device.type == "cpu"):
        reasons.append(f"needs a CUDA tensor, got {image.device}")
    elif not HAS_TRITON:
        reasons.append("needs Triton 3.3 or newer: pip install triton")
    elif image.is_cuda:
        from warpkit.engine.triton.toolchain import missing

        reasons += missing(image.device)
    if exports_to_onnx():
        reasons.append(NO_ONNX)
    if image.dtype not in DTYPES:
        reasons.append(f"has no {image.dtype}")
    # a comparison would restrict a symbolic size, so that torch.export refuses a dynamic one
    if any(isinstance(side, int) and side >= LONGEST for side in image.shape[-2:]):
        reasons.append("needs fewer than 2^30 rows and columns")
    return reasons


def warp(
    image: Tensor, to_source: Tensor, size: Sequence[int], fill: Tensor, rule: SamplingRule
) -> Tensor:
    """As `reference.warp`."""
    if rule.interpolation == "nearest":  # it has no slope, and autograd should report that
        to_source = to_source.detach()
    options = Warp(size, rule)
    return WARP(options, image, to_source.double(), fill, device="triton")


def warp_forward(
    image: Tensor, matrix: Tensor, size: Sequence[int], fill: Tensor, rule: SamplingRule
) -> Tensor:
    """As `reference.warp_forward`."""
    return warp(image, inverse_map(matrix.double()), size, fill, rule)


def sample(image: Tensor, points: Tensor, fill: Tensor, rule: SamplingRule) -> Tensor:
    """As `reference.sample`."""
    points = points.to(compute_dtype(points.dtype))
    if rule.interpolation == "nearest":
        points = points.detach()
    options = Warp(points.shape[-3:-1], rule)
    return WARP(options, image, points, fill, device="triton")


def splat(image: Tensor, points: Tensor, size: Sequence[int], rule: SamplingRule) -> Tensor:
    """As `reference.splat`."""
    options = Warp(tuple(size), rule)
    return warp_adjoint(image, points, options, device="triton")


def inverse_map(matrix: Tensor) -> Tensor:
    """As `maps.inverse_map`."""
    from warpkit.engine.operators.inverse import INVERT

    return INVERT(torch.nan, matrix, device="triton")
