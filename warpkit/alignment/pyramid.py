"""Pyramids of pairs: halved pixel by pixel, smoothed, standardised, each pixel with its weight.

A level's pixel covers 2 x 2 pixels of the one below, so that x becomes (x + 1/2) / 2 - 1/2 exactly
and along both axes alike, also for odd sides (the last row is left out): else a turn of the images
would be no turn of their levels.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from warpkit.alignment.equations import Level, slopes
from warpkit.resizing import resize

SIGMA = 0.8
"""Pixels of the smoothing before anything is sampled. Bilinear interpolation damps what is near
the pixels' own frequency by where between pixels it looks, which draws the answer to whole pixels;
of noisy photographs, shifts are then as exact as by Lanczos, at 4 taps for 64."""

COARSEST = 16
"""Pixels of the shortest side at the coarsest level, at least."""

CONSTANT = 1e-5
"""Of the largest magnitude: deviations below it are rounding, and the picture constant."""


class Pairs(NamedTuple):
    """Images one above the other, as they came, in the type of the computation."""

    moving: Tensor
    """(N, C, H, W)."""
    fixed: Tensor
    """(N, C, h, w)."""
    moving_mask: Tensor | None
    """(N, 1, H, W), in [0, 1]."""
    fixed_mask: Tensor | None
    """(N, 1, h, w), in [0, 1]."""

    def take(self, index: Tensor) -> Pairs:
        """The pairs of an index (M,)."""
        masks = (self.moving_mask, self.fixed_mask)
        some = [None if mask is None else mask[index] for mask in masks]
        return Pairs(self.moving[index], self.fixed[index], some[0], some[1])


class Units(NamedTuple):
    """Means (N, C) and deviations (N, 1) that images are standardised by."""

    fixed_mean: Tensor
    fixed_deviation: Tensor
    moving_mean: Tensor
    moving_deviation: Tensor


class Pyramid(NamedTuple):
    """Levels of N pairs, the finest first."""

    levels: list[Level]
    bad: Tensor
    """(N,), bool: pairs of which an image has no contrast, no pixel, or a visible NaN."""
    fixed: Tensor
    """(N, C, h, w), standardised but not smoothed."""
    moving: Tensor
    """(N, C, H, W), the same."""
    units: Units

    def take(self, index: Tensor) -> Pyramid:
        """The pairs of an index (M,)."""
        return Pyramid(
            [level.take(index) for level in self.levels],
            self.bad[index],
            self.fixed[index],
            self.moving[index],
            Units(*(values[index] for values in self.units)),
        )

    def sharp(self, index: Tensor) -> Level:
        """The images themselves of an index (M,), with the weights of the finest level."""
        finest, fixed = self.levels[0], self.fixed[index]
        weighed = torch.cat((self.moving[index], finest.moving[index, -1:]), 1)
        return Level(weighed, fixed, *slopes(fixed), finest.weight[index])

    def in_units(self, gain: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """Gain and bias (N, C) of the images as they came, from those of standardised ones."""
        units = self.units
        gain = gain * units.fixed_deviation / units.moving_deviation
        return gain, units.fixed_mean + bias * units.fixed_deviation - gain * units.moving_mean


def most_levels(*sizes: tuple[int, int], smallest: int = COARSEST) -> int:
    """How often images of these sizes can be halved, plus one, `smallest` pixels a side left."""
    return max((min(map(min, sizes)) // smallest).bit_length(), 1)


def build(pairs: Pairs, loss: str, count: int) -> Pyramid:
    """The pyramid of `count` levels."""
    fixed, fixed_mask, fixed_units, fixed_bad = _standard(pairs.fixed, pairs.fixed_mask)
    moving, moving_mask, units, moving_bad = _standard(pairs.moving, pairs.moving_mask)
    if loss == "ssd":
        units = fixed_units
    fixed, moving = (
        torch.where(mask > 0, (image - mean) / deviation, 0.0)
        for image, mask, (mean, deviation) in (
            (fixed, fixed_mask, fixed_units),
            (moving, moving_mask, units),
        )
    )
    levels, whole = [], (fixed, moving)
    for number in range(count):
        if number:
            fixed, fixed_mask = halved(fixed), halved(fixed_mask)
            moving, moving_mask = halved(moving), halved(moving_mask)
        smooth = smoothed(fixed)
        weighed = torch.cat((smoothed(moving), _weights(moving_mask).expand_as(moving[:, :1])), 1)
        weight = _weights(fixed_mask).expand_as(fixed[:, :1]).contiguous()
        levels.append(Level(weighed, smooth, *slopes(smooth), weight))
    lines = (line.flatten(1).double() for line in (*fixed_units, *units))
    return Pyramid(levels, fixed_bad | moving_bad, *whole, Units(*lines))


def to_level(number: int, device: torch.device) -> Tensor:
    """The matrix (3, 3) from pixels of the images to those of a level."""
    scale = 0.5**number
    rows = ((scale, 0.0, scale / 2 - 0.5), (0.0, scale, scale / 2 - 0.5), (0.0, 0.0, 1.0))
    return torch.tensor(rows, dtype=torch.float64, device=device)


def halved(image: Tensor) -> Tensor:
    """(..., H, W) at half its size, by triangles two pixels to each side."""
    height, width = image.shape[-2] // 2, image.shape[-1] // 2
    whole = image[..., : 2 * height, : 2 * width]
    return resize(whole, (height, width), interpolation="bilinear")


def smoothed(image: Tensor) -> Tensor:
    """(N, C, h, w) under a Gaussian of SIGMA, its edges repeated."""
    reach = round(3 * SIGMA)
    weights = [math.exp(-0.5 * (k / SIGMA) ** 2) for k in range(reach + 1)]
    total = weights[0] + 2 * sum(weights[1:])
    for axis, edges in ((-1, (reach, reach, 0, 0)), (-2, (0, 0, reach, reach))):
        length = image.shape[axis]
        wide = F.pad(image, edges, "replicate")
        # by sums of shifted images: torch's convolution takes twice as long for one channel
        parts = [wide.narrow(axis, reach + k, length) for k in range(-reach, reach + 1)]
        image = parts[reach] * (weights[0] / total)
        for k in range(1, reach + 1):
            pair = parts[reach - k] + parts[reach + k]
            image = torch.add(image, pair, alpha=weights[k] / total)
    return image


def _standard(
    image: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor], Tensor]:
    """Image (N, C, H, W) without NaN, its mask, its mean and deviation, and which are bad (N,).

    mask (N or 1, 1, H, W) afterwards, 0 where a value is no number; mean (N, C, 1, 1); deviation
    (N, 1, 1, 1), 1 for a constant image.
    """
    good = image.detach().isfinite().all(1, keepdim=True)
    broken = ~good.flatten(1).all(-1)
    if mask is None:
        mask = torch.ones_like(good[:1, :1], dtype=image.dtype)
    if bool(broken.any()):
        broken = ((mask > 0) & ~good).flatten(1).any(-1)
        mask = torch.where(good, mask, 0.0)
        image = torch.where(good, image, 0.0)
    seen = image * mask
    total = mask.sum((-2, -1), keepdim=True)
    divisor = torch.where(total > 0, total, 1.0)
    mean = seen.sum((-2, -1), keepdim=True) / divisor
    apart = (image - mean) * mask.sqrt()
    variance = apart.square().sum((-2, -1), keepdim=True).mean(1, keepdim=True) / divisor
    largest = seen.abs().amax((-3, -2, -1), keepdim=True)
    flat = ~(variance > (CONSTANT * largest).square())
    deviation = torch.where(flat, 1.0, variance).sqrt()
    bad = broken | flat.flatten() | (total.flatten() == 0)
    return image, mask, (mean, deviation), bad


def _weights(mask: Tensor) -> Tensor:
    """Weights (N, 1, h, w) that fall to 0 towards the edges of the image and of mask (N, 1, h, w).

    They are continuous when they are sampled between pixels, so that what counts does not jump as
    the matrix moves, and no slope is read across an edge.
    """
    lowest = -F.max_pool2d(F.pad(-mask, (2, 2, 2, 2)), 5, 1)
    return lowest * F.avg_pool2d(lowest, 3, 1, 1)
