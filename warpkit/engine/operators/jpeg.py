"""Images as their JPEG files show them."""

from __future__ import annotations

from torch import Tensor

from warpkit.engine.binding.operator import Operator
from warpkit.engine.definitions import jpeg
from warpkit.engine.operators import native, triton
from warpkit.engine.sampling.reference import compute_dtype


def through_file(images: Tensor, quality: Tensor, subsampling: str) -> Tensor:
    """As `jpeg.through_file`; halves are computed in float32."""
    computed = images.to(compute_dtype(images.dtype)) if images.is_floating_point() else images
    return FILE(subsampling, computed, quality).to(images.dtype)


def _formula(subsampling: str, images: Tensor, quality: Tensor) -> Tensor:
    """images (N, 1 or 3, H, W); quality (N,)."""
    return jpeg.through_file(images, quality, subsampling)


FILE = Operator(_formula, {"cpu": native("jpeg"), "cuda": triton("jpeg"), "triton": triton("jpeg")})
"""images (N, 1 or 3, H, W), uint8, float32 or float64, and qualities (N,), int32: the images'
files, of their type. The option: the subsampling."""
