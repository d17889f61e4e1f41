"""One table of inputs for the tests of every backend and arithmetic."""

from __future__ import annotations

import torch
from torch import Tensor

import warpkit as wk
from warpkit.engine import backends as kernels
from warpkit.engine.definitions.rules import BORDERS, INTERPOLATIONS

BACKENDS = tuple(name for name in kernels.BACKENDS if name != "cuda")
"""Those that take CPU tensors; the other's kernels have tests of their own."""

RULES = [(i, b) for i in INTERPOLATIONS for b in BORDERS]


def seeded(seed: int = 0) -> torch.Generator:
    """A generator that draws the same numbers at every run."""
    return torch.Generator().manual_seed(seed)


def noise(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    """White noise: in [0, 1) for floating types, over the whole range for integer types."""
    generator = seeded(seed)
    if dtype.is_floating_point:
        return torch.rand(*shape, generator=generator, dtype=torch.float64).to(dtype)
    limits = torch.iinfo(dtype)
    values = torch.randint(limits.min, limits.max + 1, shape, generator=generator)
    return values.to(dtype)


def bend(*shape: int, size: float = 1.0, seed: int = 0) -> Tensor:
    """A flow of noise (..., h, w, 2), float64, within `size` pixels."""
    return size * (2 * noise(*shape, 2, seed=seed) - 1)


def images(dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
    """Layouts and sizes that break careless code."""
    wide = noise(2, 3, 14, 18, dtype=dtype, seed=1)
    return {
        "odd": noise(2, 3, 7, 9, dtype=dtype, seed=2),
        "1x1": noise(1, 2, 1, 1, dtype=dtype, seed=3),
        "1xN": noise(1, 1, 1, 6, dtype=dtype, seed=4),
        "Nx1": noise(1, 4, 5, 1, dtype=dtype, seed=5),
        "strided": wide[..., ::2, ::3],
        # torch 2.7 cannot flip uint16
        "flipped": wide.double().flip(-1).to(dtype).transpose(-1, -2),
        "channels-last": noise(2, 5, 6, 8, dtype=dtype, seed=6).to(
            memory_format=torch.channels_last
        ),
        "one for all": noise(1, 3, 6, 7, dtype=dtype, seed=7),
        "expanded": noise(1, 3, 6, 7, dtype=dtype, seed=8).expand(2, 3, 6, 7),
        "no batch": noise(3, 6, 7, dtype=dtype, seed=9),
        "deep batch": noise(2, 1, 2, 5, 6, dtype=dtype, seed=10),
    }


def affine_matrices(dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
    """Source -> destination; every one is invertible."""
    turn = wk.rotation_matrix((3.0, 2.0), torch.tensor([33.0, -71.0], dtype=dtype), 1.1)
    far = torch.tensor([[1.0, 0, 1e5], [0, 1, -3e4]], dtype=dtype)
    return {
        "batch of turns": turn.to(dtype),
        "quarter turn": wk.rotation_matrix((3.0, 2.0), 90.0).to(dtype),
        "shrink": torch.tensor([[0.31, 0.05, 1.0], [-0.02, 0.27, 2.0]], dtype=dtype),
        "grow": torch.tensor([[3.0, 0.4, -5.0], [0.1, 2.5, -3.0]], dtype=dtype),
        "mirror": torch.tensor([[-1.0, 0, 5], [0, 1, 0]], dtype=dtype),
        "whole shift": torch.tensor([[1.0, 0, 2], [0, 1, -1]], dtype=dtype),
        "half shift": torch.tensor([[1.0, 0, 0.5], [0, 1, -1.5]], dtype=dtype),
        "far outside": far,
    }


def perspective_matrices(dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
    """Source -> destination, (..., 3, 3); "horizon" has output pixels at w <= 0."""
    mild = [[1.1, 0.2, -1.0], [-0.1, 0.9, 0.5], [0.01, -0.02, 1.0]]
    horizon = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-0.25, 0.05, 1.0]]
    return {
        "mild": torch.tensor([mild, mild], dtype=dtype),
        "horizon": torch.tensor(horizon, dtype=dtype),
    }
