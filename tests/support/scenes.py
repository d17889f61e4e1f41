"""Images given by a formula, so that pairs under a known matrix need no interpolation."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

import warpkit as wk


class Scene:
    """A sum of cosines in random directions, with periods from `finest` pixels."""

    def __init__(self, seed: int, waves: int = 60, finest: float = 6.0, channels: int = 1) -> None:
        generator = torch.Generator().manual_seed(seed)

        def draw(*shape: int) -> Tensor:
            return torch.rand(shape, generator=generator, dtype=torch.float64)

        length = finest * 12 ** draw(channels, waves)
        angle = 2 * torch.pi * draw(channels, waves)
        self.frequency = (
            torch.stack((angle.cos(), angle.sin()), -1) * 2 * torch.pi / length[..., None]
        )
        self.phase = 2 * torch.pi * draw(channels, waves)
        self.strength = length.sqrt() / length.sqrt().sum(-1, keepdim=True)

    def at(self, points: Tensor) -> Tensor:
        """The values (C, h, w) at points (h, w, 2), from about 0 to 1."""
        waves = torch.einsum("hwd,ckd->ckhw", points, self.frequency) + self.phase[..., None, None]
        return 0.5 + 1.5 * torch.einsum("ck,ckhw->chw", self.strength, waves.cos())

    def seen(self, matrix: Tensor, size: Sequence[int]) -> Tensor:
        """The image (C, h, w) under matrix (2 or 3, 3), scene -> image."""
        points = wk.pixel_grid(size).double()
        return self.at(wk.transform_points(wk.invert(matrix), points))


def corner_error(matrix: Tensor, true: Tensor, size: Sequence[int]) -> float:
    """The largest distance, in pixels, of corners of `size` under two matrices (2 or 3, 3)."""
    height, width = size
    corners = torch.tensor(
        ((0, 0), (width - 1, 0), (width - 1, height - 1), (0, height - 1)), dtype=torch.float64
    )
    apart = wk.transform_points(matrix, corners) - wk.transform_points(true, corners)
    return apart.norm(dim=-1).max().item()
