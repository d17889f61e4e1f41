"""Builds pyramids of image pairs: halved, smoothed and standardised, with pixel weights.

A level's pixel covers 2 x 2 pixels of the finer level, so that x becomes (x + 1/2) / 2 - 1/2
exactly, equally along both axes, also for odd sides (the last row is dropped): otherwise a rotation
of the images would not be a rotation of their levels.
"""

from __future__ import annotations

import math
from functools import lru_cache
from math import prod
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from warpkit.alignment.equations import Level, slopes
from warpkit.core.lasting import lasting
from warpkit.engine.backends import select_levels
from warpkit.resizing import resize

SIGMA = 0.8
"""Standard deviation in pixels of the smoothing before sampling. Bilinear interpolation damps high
frequencies depending on the position between pixels, which pulls the result towards integer shifts;
with the smoothing, shifts of noisy photographs are as exact as with Lanczos, at 4 taps instead of
64."""

COARSEST = 16
"""The least number of pixels of the shortest side at the coarsest level."""

CONSTANT = 1e-5
"""An image counts as constant if its deviation, relative to its largest magnitude, is smaller."""


class Pairs(NamedTuple):
    """Pairs of original images, in the type of the computation."""

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
    """The means (N, C) and deviations (N, 1) by which images are standardised."""

    fixed_mean: Tensor
    fixed_deviation: Tensor
    moving_mean: Tensor
    moving_deviation: Tensor


class Pyramid(NamedTuple):
    """Levels of N pairs, the finest first."""

    levels: list[Level]
    bad: Tensor
    """(N,), bool: pairs with an image that has no contrast, no visible pixel, or a visible NaN."""
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
        finest, weight = self.levels[0].moving[:, -1:], self.levels[0].weight
        fixed, moving = self.fixed, self.moving
        if len(index) < len(self.bad):  # the index has no pair twice
            fixed, moving, finest, weight = (
                part[index] for part in (fixed, moving, finest, weight)
            )
        return Level(torch.cat((moving, finest), 1), fixed, *_slopes(fixed), weight)

    def in_units(self, gain: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """Gain and bias (N, C) of the original images, from those of standardised ones."""
        units = self.units
        gain = gain * units.fixed_deviation / units.moving_deviation
        return gain, units.fixed_mean + bias * units.fixed_deviation - gain * units.moving_mean


def most_levels(*sizes: tuple[int, int], smallest: int = COARSEST) -> int:
    """The most levels for images of these sizes, of at least `smallest` pixels a side."""
    return max((min(map(min, sizes)) // smallest).bit_length(), 1)


def build(pairs: Pairs, loss: str, count: int) -> Pyramid:
    """The pyramid of `count` levels."""
    fixed, fixed_mask, fixed_units, fixed_bad = _statistics(pairs.fixed, pairs.fixed_mask)
    moving, moving_mask, units, moving_bad = _statistics(pairs.moving, pairs.moving_mask)
    if loss == "ssd":
        units = fixed_units
    fixed, moving = (
        _standardised(image, mask, mean, deviation)
        for image, mask, (mean, deviation) in (
            (fixed, fixed_mask, fixed_units),
            (moving, moving_mask, units),
        )
    )
    levels, whole = [], (fixed, moving)
    for number in range(count):
        if number:
            fixed, moving = halved(fixed), halved(moving)
            fixed_mask, moving_mask = (
                None if mask is None else halved(mask) for mask in (fixed_mask, moving_mask)
            )
        weights = _level_weights(moving, moving_mask)
        weight = _level_weights(fixed, fixed_mask).contiguous()
        levels.append(Level(_with_weights(moving, weights), *_with_slopes(fixed), weight))
    lines = (line.flatten(1).double() for line in (*fixed_units, *units))
    return Pyramid(levels, fixed_bad | moving_bad, *whole, Units(*lines))


def to_level(number: int, device: torch.device) -> Tensor:
    """The matrix (3, 3) from pixels of the images to those of a level."""
    scale = 0.5**number
    rows = ((scale, 0.0, scale / 2 - 0.5), (0.0, scale, scale / 2 - 0.5), (0.0, 0.0, 1.0))
    return torch.tensor(rows, dtype=torch.float64, device=device)


def halved(image: Tensor) -> Tensor:
    """Images (..., H, W) at half their size, by triangular weights two pixels to each side."""
    height, width = image.shape[-2] // 2, image.shape[-1] // 2
    whole = image[..., : 2 * height, : 2 * width]
    return resize(whole, (height, width), interpolation="bilinear")


def _gaussian() -> list[float]:
    """The weights of a pixel and of its neighbours to each side."""
    weights = [math.exp(-0.5 * (k / SIGMA) ** 2) for k in range(round(3 * SIGMA) + 1)]
    total = weights[0] + 2 * sum(weights[1:])
    return [weight / total for weight in weights]


def _with_weights(image: Tensor, weights: Tensor) -> Tensor:
    """Images (N, C, H, W), smoothed, with weights (N, 1, H, W) as their last channel."""
    fast = select_levels(image)
    if fast is None:
        return torch.cat((smoothed(image), weights), 1)
    whole = image.new_empty(len(image), image.shape[1] + 1, *image.shape[2:])
    fast.smooth(image, _gaussian(), whole)
    whole[:, -1:] = weights
    return whole


def _with_slopes(image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Images (N, C, h, w), smoothed, and their slopes along x and y."""
    fast = select_levels(image)
    if fast is not None:
        return fast.smooth_with_slopes(image, _gaussian())
    smooth = smoothed(image)
    return (smooth, *slopes(smooth))


def _slopes(image: Tensor) -> tuple[Tensor, Tensor]:
    """The slopes of (N, C, h, w) along x and y."""
    fast = select_levels(image)
    return slopes(image) if fast is None else fast.smooth_with_slopes(image, [1.0])[1:]


def smoothed(image: Tensor) -> Tensor:
    """Images (N, C, h, w), smoothed by a Gaussian of SIGMA, with repeated edges."""
    weights = _gaussian()
    reach = len(weights) - 1
    for axis, edges in ((-1, (reach, reach, 0, 0)), (-2, (0, 0, reach, reach))):
        length = image.shape[axis]
        wide = F.pad(image, edges, "replicate")
        # by sums of shifted images: torch's convolution takes twice as long for one channel
        parts = [wide.narrow(axis, reach + k, length) for k in range(-reach, reach + 1)]
        image = parts[reach] * weights[0]
        for k in range(1, reach + 1):
            pair = parts[reach - k] + parts[reach + k]
            image = torch.add(image, pair, alpha=weights[k])
    return image


def _level_weights(image: Tensor, mask: Tensor | None) -> Tensor:
    """`_weights` of images (N, C, h, w) with a mask or without one, (N, 1, h, w)."""
    if mask is None:
        weights = _weights_of_size((image.shape[-2], image.shape[-1]), image.dtype, image.device)
    else:
        weights = _weights(mask)
    return weights.expand_as(image[:, :1])


def _standardised(image: Tensor, mask: Tensor | None, mean: Tensor, deviation: Tensor) -> Tensor:
    """Images (N, C, H, W) minus their mean, over their deviation; 0 where the mask is 0."""
    found = (image - mean) / deviation
    return found if mask is None else torch.where(mask > 0, found, 0.0)


def _statistics(
    image: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor | None, tuple[Tensor, Tensor], Tensor]:
    """Image (N, C, H, W) without NaN, its mask, its mean and deviation, and which are bad (N,).

    The returned mask (N or 1, 1, H, W) is 0 where a value is NaN, or None if all pixels count; mean
    (N, C, 1, 1); deviation (N, 1, 1, 1), 1 for a constant image.
    """
    good = image.detach().isfinite().all(1, keepdim=True)
    broken = ~good.flatten(1).all(-1)
    if bool(broken.any()):
        mask = torch.ones_like(good[:1, :1], dtype=image.dtype) if mask is None else mask
        broken = ((mask > 0) & ~good).flatten(1).any(-1)
        mask = torch.where(good, mask, 0.0)
        image = torch.where(good, image, 0.0)
    if mask is None:
        seen, total = image, image.new_full((1, 1, 1, 1), prod(image.shape[-2:]))
    else:
        seen, total = image * mask, mask.sum((-2, -1), keepdim=True)
    divisor = torch.where(total > 0, total, 1.0)
    mean = seen.sum((-2, -1), keepdim=True) / divisor
    apart = image - mean if mask is None else (image - mean) * mask.sqrt()
    variance = apart.square().sum((-2, -1), keepdim=True).mean(1, keepdim=True) / divisor
    largest = seen.abs().amax((-3, -2, -1), keepdim=True)
    flat = ~(variance > (CONSTANT * largest).square())
    deviation = torch.where(flat, 1.0, variance).sqrt()
    bad = broken | flat.flatten() | (total.flatten() == 0)
    return image, mask, (mean, deviation), bad


@lru_cache(maxsize=64)
@lasting
def _weights_of_size(size: tuple[int, int], dtype: torch.dtype, device: torch.device) -> Tensor:
    """`_weights` of a whole image, (1, 1, h, w)."""
    return _weights(torch.ones(1, 1, *size, dtype=dtype, device=device))


def _weights(mask: Tensor) -> Tensor:
    """Weights (N, 1, h, w) that fall to 0 towards the edges of the image and of mask (N, 1, h, w).

    They are continuous when sampled between pixels, so that the overlap does not jump as the matrix
    changes, and no slope is read across an edge.
    """
    lowest = -F.max_pool2d(F.pad(-mask, (2, 2, 2, 2)), 5, 1)
    return lowest * F.avg_pool2d(lowest, 3, 1, 1)
