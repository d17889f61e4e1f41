"""The similarity of lists of points by least squares."""

from __future__ import annotations

import torch
from torch import Tensor

from warpkit.engine.binding.operator import Operator
from warpkit.engine.definitions import fits
from warpkit.engine.operators import native


def similarity(
    src: Tensor, dst: Tensor, weights: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """As `fits.similarity`, and whether it exists, (...), up to the rounding of `dtype`."""
    return SIMILARITY(dtype, src, dst, weights)


def _formula(
    dtype: torch.dtype, src: Tensor, dst: Tensor, weights: Tensor
) -> tuple[Tensor, Tensor]:
    """src and dst (..., N, 2); weights (..., N)."""
    matrix, exists = fits.similarity(src, dst, weights), ~fits.at_one_place(src, weights, dtype)
    return matrix, exists.expand(matrix.shape[:-2])


SIMILARITY = Operator(_formula, {"cpu": native("similarity")})
"""src and dst (..., N, 2), weights (..., N), float64: matrices (..., 2, 3), and whether each
exists, (...)."""
