"""The demonstration: warps a photograph, compares it with OpenCV, and recovers the warp."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

import warpkit as wk
from warpkit.engine.arithmetic.guarantees import arithmetic_of

TURN, ZOOM = 30.0, 1.1
"""The warp for the comparison: angle in degrees, and scale."""

HIDDEN = (24.0, 0.85, (0.05, -0.03))
"""The warp to find: angle in degrees, scale, and shift relative to the longest side."""

EXPOSURE = (0.6, 0.1)
"""Gain and bias of the hidden picture, which do not affect the correlation."""

TILES = 6
"""The number of tiles along the shorter side of the chessboard picture."""


@dataclass(frozen=True)
class Comparison:
    """One warp of an 8-bit image by both libraries."""

    warped: Tensor
    theirs: Tensor | None
    version: str
    """OpenCV's version, or why it is missing."""

    @property
    def apart(self) -> Tensor:
        """The absolute difference of every value, in levels of 255."""
        theirs = self.warped if self.theirs is None else self.theirs
        return (self.warped.double() - theirs.double()).abs()

    @property
    def differing(self) -> str:
        """The number of differing values, in words."""
        return f"{int(self.apart.count_nonzero()):,} of {self.warped.numel():,} values differ"


@dataclass(frozen=True)
class Reach:
    """The pixels that the gradient of a loss reaches."""

    mask: Tensor
    """(H, W): whether a pixel of the photograph has a gradient."""
    to_matrix: Tensor
    """The matrix's gradient, (2, 3)."""

    @property
    def fraction(self) -> float:
        """The share of the photograph's pixels that get a gradient."""
        return self.mask.double().mean().item()


@dataclass(frozen=True)
class Recovery:
    """A hidden warp found by `align`."""

    target: Tensor
    """(C, H, W): the photograph under the hidden warp, and darker."""
    picture: Tensor
    """(C, H, W): the photograph under the warp that was found."""
    angle: float
    """The angle found, in degrees."""
    corners: float
    """Root mean square distance of the corners under both warps, in pixels."""
    steps: int

    @property
    def error(self) -> float:
        """The difference between the hidden angle and the one found, in degrees."""
        return abs(self.angle - HIDDEN[0])

    @property
    def tiles(self) -> Tensor:
        """(C, H, W): a chessboard of tiles from the hidden picture and the one found."""
        height, width = self.target.shape[-2:]
        side = max(min(height, width) // TILES, 1)
        y, x = torch.arange(height)[:, None] // side, torch.arange(width) // side
        return self.target.where((x + y) % 2 == 0, self.picture)


def default_photograph() -> Path:
    """The photograph of the installed package, or of a checkout."""
    installed = Path(__file__).with_name("coffee.png")
    root = Path(__file__).parents[3]
    return installed if installed.exists() else root / "data" / "images" / "coffee.png"


def small(photograph: Tensor, side: int) -> Tensor:
    """A photograph (C, H, W) of any kind as RGB in [0, 1], its longest side at most `side`."""
    channels = photograph.shape[0]
    limit = 1.0 if photograph.is_floating_point() else torch.iinfo(photograph.dtype).max
    image = photograph.to(torch.float32) / limit
    image = image[:3] if channels >= 3 else image[:1].expand(3, -1, -1)
    factor = side / max(image.shape[-2:])
    if factor < 1:
        image = F.interpolate(image[None], scale_factor=factor, mode="area")[0]
    return image.contiguous()


def compare(image: Tensor, matrix: Tensor) -> Comparison:
    """Warp by `matrix` with warpkit and, if it is installed, OpenCV, in 8 bits.

    image (C, H, W) in [0, 1]; matrix (2, 3), pixels.
    """
    pixels = (image * 255).round().to(torch.uint8)
    try:
        import cv2
    except ImportError:
        return Comparison(wk.warp_affine(pixels, matrix), None, "not installed")
    height, width = image.shape[-2:]
    array = pixels.permute(1, 2, 0).contiguous().numpy()
    theirs = torch.from_numpy(cv2.warpAffine(array, matrix.numpy(), (width, height)))
    warped = wk.warp_affine(pixels, matrix, arithmetic=arithmetic_of(cv2.__version__))
    return Comparison(warped, theirs.permute(2, 0, 1), cv2.__version__)


def reach(image: Tensor, matrix: Tensor) -> Reach:
    """Back-propagate the mean of the warped image to the photograph and to the matrix.

    image (C, H, W) in [0, 1]; matrix (2, 3), pixels.
    """
    image, matrix = image.clone().requires_grad_(), matrix.clone().requires_grad_()
    loss = wk.warp_affine(image, matrix).mean()
    to_image, to_matrix = torch.autograd.grad(loss, (image, matrix))
    return Reach((to_image != 0).any(0), to_matrix)


def recover(image: Tensor) -> Recovery:
    """Hide a warp of the photograph (C, H, W), then find it from the pixels alone."""
    size = (image.shape[-2], image.shape[-1])
    angle, scale, shift = HIDDEN
    translation = [part * max(size) for part in shift]
    center = wk.image_center(size)
    hidden = wk.affine_matrix(angle=angle, scale=scale, translation=translation, center=center)
    gain, bias = EXPOSURE
    target = gain * wk.warp_affine(image, hidden) + bias
    alignment = wk.align(image, target, model="similarity", init="search")
    matrix = alignment.matrix
    ends = torch.tensor([0, size[1] - 1]), torch.tensor([0, size[0] - 1])
    corners = torch.cartesian_prod(*ends).double()
    apart = wk.transform_points(matrix, corners) - wk.transform_points(hidden.double(), corners)
    return Recovery(
        target,
        wk.warp_affine(image, matrix),
        math.degrees(math.atan2(float(matrix[0, 1]), float(matrix[0, 0]))),
        float(apart.square().sum(-1).mean().sqrt()),
        int(alignment.steps),
    )
