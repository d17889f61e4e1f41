"""The demonstration's work: one photograph warped, compared with OpenCV, and warped back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

import warpkit as wk
from warpkit.engine.arithmetic.guarantees import arithmetic_of

TURN, ZOOM = 30.0, 1.1
"""The warp to compare by: degrees, factor."""

HIDDEN = (24.0, -16.0, 5.0, -3.0)
"""The warp to find: degrees, hundredths of log scale (a scale of 0.85), hundredths of the longest
side to the right and down. One unit of each moves the edge of an image by about as much, so that
one step size fits all."""

STAGES = ((48, 60, 1.0), (96, 40, 0.5), (192, 30, 0.15), (384, 12, 0.02))
"""Coarse to fine: pixels a side of the images compared, Adam's steps, its step size in degrees.
What is left of a shape in the coarse images overlaps itself after a turn of 24 degrees; the details
of the full images do not, and descent stops in a wrong place."""

STEPS = sum(steps for _, steps, _ in STAGES)


@dataclass(frozen=True)
class Comparison:
    """One warp of an 8-bit image by both libraries."""

    warped: Tensor
    theirs: Tensor | None
    version: str
    """OpenCV's, or why there is none."""

    @property
    def apart(self) -> Tensor:
        """The absolute difference of every value, in levels of 255."""
        theirs = self.warped if self.theirs is None else self.theirs
        return (self.warped.double() - theirs.double()).abs()

    @property
    def differing(self) -> str:
        """How many values differ."""
        return f"{int(self.apart.count_nonzero()):,} of {self.warped.numel():,} values differ"


@dataclass(frozen=True)
class Reach:
    """Where the gradient of a loss arrives."""

    seen: Tensor
    """(H, W): whether a pixel of the photograph has a gradient."""
    to_matrix: Tensor
    """(2, 3)."""

    @property
    def fraction(self) -> float:
        """The part of the photograph's pixels that has a gradient."""
        return self.seen.double().mean().item()


@dataclass(frozen=True)
class Recovery:
    """A hidden warp found by gradient descent."""

    target: Tensor
    found: Tensor
    angles: list[float]
    """The estimate, at first and after every step."""
    shrinks: list[int]
    """How much smaller the images of every stage were."""

    @property
    def error(self) -> float:
        """Degrees between the hidden angle and the last estimate."""
        return abs(self.angles[-1] - HIDDEN[0])


def default_photograph() -> Path:
    """The picture of a demonstration: the installed package's, or a checkout's."""
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
    """Warp by `matrix` with warpkit and, where it is installed, with OpenCV, in 8 bits.

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


def recover(image: Tensor, advance: Callable[[float], None] = lambda angle: None) -> Recovery:
    """Hide a warp, then find it from the pixels alone by gradient descent on its four numbers.

    `advance` is called after every step with the angle reached.
    """
    size = (image.shape[-2], image.shape[-1])
    target = wk.warp_affine(image, similarity(torch.tensor(HIDDEN), size))
    guess = torch.zeros(4, requires_grad=True)
    angles, shrinks = [0.0], [max(max(size) // side, 1) for side, _, _ in STAGES]
    for shrink, (_, steps, step_size) in zip(shrinks, STAGES, strict=True):
        low, low_target = (F.avg_pool2d(pixels, shrink) for pixels in (image, target))
        to_low = wk.affine_matrix(scale=1 / shrink, center=(-0.5, -0.5))  # edges stay on edges
        optimizer = torch.optim.Adam([guess], lr=step_size)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        for _ in range(steps):
            optimizer.zero_grad()
            matrix = wk.compose(wk.invert(to_low), similarity(guess, size), to_low)
            (wk.warp_affine(low, matrix) - low_target).square().mean().backward()
            optimizer.step()
            schedule.step()
            angles.append(guess[0].item())
            advance(angles[-1])
    with torch.no_grad():
        found = wk.warp_affine(image, similarity(guess, size))
    return Recovery(target, found, angles, shrinks)


def similarity(numbers: Tensor, size: tuple[int, int]) -> Tensor:
    """The matrix of four numbers in the units of HIDDEN, for images of `size` (H, W)."""
    return wk.affine_matrix(
        angle=numbers[0],
        scale=(numbers[1] / 100).exp(),
        translation=numbers[2:] / 100 * max(size),
        center=wk.image_center(size),
    )
