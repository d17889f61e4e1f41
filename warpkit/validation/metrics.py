"""Measures how far two results differ."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Figures:
    """How many values (pixels times channels) differ, and by how much."""

    differing: int
    """Values that are not equal; NaN equals NaN."""
    total: int
    max_abs: float
    """The largest difference, in the image's units; infinite if only one of two values is
    finite."""
    mean_abs: float
    """The mean difference over all values, including equal ones."""
    psnr: float
    """Decibels: 10 log10(peak^2 / mean squared difference); infinite if nothing differs."""

    @property
    def fraction(self) -> float:
        """The share of the values that differ."""
        return self.differing / self.total if self.total else 0.0

    def row(self) -> str:
        """One line of a table whose heading is `HEADER`."""
        return (
            f"{self.differing:>12,} {self.total:>12,} {self.fraction:>9.3%} "
            f"{self.max_abs:>10.4g} {self.mean_abs:>10.4g} {self.psnr:>8.2f}"
        )


HEADER = "   differing        total  fraction    max abs   mean abs     psnr"


@dataclass(frozen=True, repr=False)
class Parity(Figures):
    """How far a warp is from OpenCV's: figures for all values, and for the interior and the
    border."""

    interior: Figures
    """Pixels for which the interpolation reads only inside the image."""
    border: Figures
    """The other pixels: they read outside the image, or would if the point moved by 1/64 pixel."""
    arithmetic: str
    opencv_version: str
    optimized: bool
    """Whether cv2 ran its vector code, `cv2.useOptimized()`."""

    def __repr__(self) -> str:
        code = "its vector code" if self.optimized else "its plain code"
        parts = {"all": self, "interior": self.interior, "border": self.border}
        lines = [
            f'Parity of arithmetic "{self.arithmetic}" with OpenCV {self.opencv_version}, {code}'
        ]
        lines.append(" " * 8 + HEADER)
        return "\n".join([*lines, *(f"{name:<8}{part.row()}" for name, part in parts.items())])


def figures(got: Tensor, expected: Tensor, peak: float, where: Tensor | None = None) -> Figures:
    """The figures of two tensors of one shape and type, over the values where `where` is true."""
    where = None if where is None else where.expand(got.shape)
    if torch.equal(got, expected):
        total = got.numel() if where is None else int(where.sum())
        return Figures(0, total, 0.0, 0.0, math.inf)
    if where is not None:
        got, expected = got[where], expected[where]
    got, expected = got.double(), expected.double()
    same = (got == expected) | (got.isnan() & expected.isnan())
    apart = torch.where(same, 0.0, (got - expected).abs()).nan_to_num(nan=math.inf)
    total = same.numel()
    differing = total - int(same.sum())
    if not differing:
        return Figures(0, total, 0.0, 0.0, math.inf)
    error = apart.square().mean().item()
    psnr = 10 * math.log10(peak**2 / error) if 0 < error < math.inf else -math.inf
    return Figures(differing, total, apart.max().item(), apart.mean().item(), psnr)


def peak_of(image: Tensor) -> float:
    """The value of white: the largest of an integer type; 1 for floats in [-1, 1].

    For floats outside [-1, 1] it is their largest finite magnitude.
    """
    if not image.is_floating_point():
        return float(torch.iinfo(image.dtype).max)
    magnitude = image.detach().double().abs().nan_to_num(nan=0.0, posinf=0.0)
    return max(1.0, magnitude.max().item()) if image.numel() else 1.0
