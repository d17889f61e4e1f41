"""Images as their JPEG files show them."""

from __future__ import annotations

import torch
from torch import Tensor

from warpkit.engine.binding.operator import Operator
from warpkit.engine.definitions import jpeg
from warpkit.engine.operators import native, triton


def through_file(images: Tensor, quality: Tensor, subsampling: str) -> Tensor:
    """As `jpeg.through_file`; halves are computed in float32."""
    if images.dtype in (torch.float16, torch.bfloat16):
        return FILE(subsampling, images.float(), quality).to(images.dtype)
    return FILE(subsampling, images, quality)


def _formula(subsampling: str, images: Tensor, quality: Tensor) -> Tensor:
    """images (N, 1 or 3, H, W); quality (N,)."""
    return jpeg.through_file(images, quality, subsampling)


FILE = Operator(_formula, {"cpu": native("jpeg"), "cuda": triton("jpeg"), "triton": triton("jpeg")})
"""images (N, 1 or 3, H, W), uint8, float32 or float64, and qualities (N,), int32: the images'
files, of their type. The option: the subsampling."""
