"""The inverse of matrices: `maps.inverse_map` takes 30 operations, longer than a warp."""

from __future__ import annotations

import torch
from torch import Tensor

from warpkit.engine.binding.operator import Operator
from warpkit.engine.definitions import maps
from warpkit.engine.operators import native, triton


def inverse_map(matrix: Tensor) -> Tensor:
    """As `maps.inverse_map` of float64 matrices (..., 2 or 3, 3)."""
    return INVERT(torch.nan, matrix)


def _formula(singular: float, matrix: Tensor) -> Tensor:
    return maps.inverse_map(matrix, singular=singular)


INVERT = Operator(_formula, {"cpu": native("inverse"), "triton": triton("inverse")})
"""matrix (..., 2 or 3, 3), float64: its inverse. The option: the entries of a singular one's."""
