"""The similarity of lists of points by least squares in the native library, without gradients."""

from __future__ import annotations

import torch
from torch import Tensor

from warpkit.core.shapes import broadcast_shapes
from warpkit.engine.cpu.fits import fitted, flat


def forward(
    dtype: torch.dtype, src: Tensor, dst: Tensor, weights: Tensor
) -> tuple[tuple[Tensor, Tensor], None]:
    """As `fits.similarity` of points (..., N, 2), weights (..., N)."""
    batch = broadcast_shapes(src.shape[:-2], dst.shape[:-2], weights.shape[:-1])
    arrays = {"src": flat(src, batch, 2), "dst": flat(dst, batch, 2)}
    arrays["weights"] = flat(weights, batch, 1)
    return fitted("similarity", batch, (2, 3), src.shape[-2], arrays, dtype), None
