"""The perspective of four pairs of points."""

from __future__ import annotations

import torch
from torch import Tensor

from warpkit.engine.binding.operator import Operator
from warpkit.engine.definitions import quads
from warpkit.engine.operators import native


def four_points(src: Tensor, dst: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """As `quads.perspective`."""
    return FOUR_POINTS(dtype, src, dst)


def _formula(dtype: torch.dtype, src: Tensor, dst: Tensor) -> tuple[Tensor, Tensor]:
    """src and dst (..., 4, 2)."""
    return quads.perspective(src, dst, dtype)


FOUR_POINTS = Operator(_formula, {"cpu": native("four_points")})
"""src and dst (..., 4, 2), float64: matrices (..., 3, 3), and whether each is the only one, (...).
The option: the type that the matrix must fit."""
