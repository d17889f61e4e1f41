"""Builds pyramids of image pairs: halved, smoothed and standardised, with pixel weights.

A level's pixel covers 2 x 2 pixels of the finer level, so that x becomes (x + 1/2) / 2 - 1/2
exactly, equally along both axes, also for odd sides (the last row is dropped): otherwise a rotation
of the images would not be a rotation of their levels.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from math import prod
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from warpkit.alignment.equations import Level
from warpkit.alignment.equations import slopes as differences
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


class Picture(NamedTuple):
    """A level of one image of each pair; None for what is not wanted."""

    smooth: Any
    """(N, C, h, w), or with the pixels' weights (N, C + 1, h, w)."""
    whole: Any
    """Standardised but not smoothed, of the same shape."""
    slopes: Any
    """The slopes of `smooth` along x and y, (N, C, h, w) each."""
    half: Any
    """The standardised images at half their size, (N, C, h // 2, w // 2)."""


class Pyramid(NamedTuple):
    """Levels of N pairs, the finest first."""

    levels: list[Level]
    bad: Tensor
    """(N,), bool: pairs with an image that has no contrast, no visible pixel, or a visible NaN."""
    fixed: Tensor
    """(N, C, h, w), standardised but not smoothed."""
    moving: Tensor
    """(N, C + 1, H, W), the same, with the weights of the finest level as the last channel."""
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
        parts = (self.fixed, self.moving, self.levels[0].weight)
        if len(index) < len(self.bad):  # the index has no pair twice
            parts = (part[index] for part in parts)
        fixed, moving, weight = parts
        return Level(moving, fixed, *_slopes(fixed), weight)

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
    fast = select_levels(pairs.moving, pairs.fixed)
    fixed, fixed_mask, fixed_units, fixed_bad = _statistics(fast, pairs.fixed, pairs.fixed_mask)
    moving, moving_mask, units, moving_bad = _statistics(fast, pairs.moving, pairs.moving_mask)
    if loss == "ssd":
        units = fixed_units
    own = _pictures(fast, fixed, fixed_mask, fixed_units, count, slopes=True)
    theirs = _pictures(fast, moving, moving_mask, units, count, slopes=False)
    levels = [
        Level(their.smooth, mine.smooth, mine.slopes[0], mine.slopes[1], weights)
        for their, mine, weights in zip(theirs.levels, own.levels, own.weights, strict=True)
    ]
    lines = (line.flatten(1).double() for line in (*fixed_units, *units))
    return Pyramid(levels, fixed_bad | moving_bad, own.whole, theirs.whole, Units(*lines))


class _Pictures(NamedTuple):
    """One image of each pair, at all levels; the images are (N, C, h, w)."""

    levels: list[Picture]
    weights: list[Tensor]
    """The weights of the pixels of each level, (N, 1, h, w)."""
    whole: Tensor
    """Standardised but not smoothed, of the shape of the finest level."""


def _pictures(
    fast: Any,
    image: Tensor,
    mask: Tensor | None,
    units: tuple[Tensor, Tensor],
    count: int,
    *,
    slopes: bool,
) -> _Pictures:
    """`count` levels of (N, C, h, w) without NaN, with slopes or with weights as their last
    channel.

    fast: `select_levels`. units: mean (N, C, 1, 1), deviation (N, 1, 1, 1).
    """
    first = units
    if mask is not None:
        image, first = _standardise(image, mask, *units), None
    levels, weights, whole = [], [], image
    for number in range(count):
        weights.append(_level_weights(image, mask))
        visible = None if slopes else weights[-1]
        last = number == count - 1
        if number == 0 and first is None and visible is not None:
            whole = torch.cat((image, visible), 1)
        levels.append(_level(fast, image, visible, first, slopes=slopes, half=not last))
        if first is not None:
            whole, first = levels[0].whole, None
        if not last:
            image, mask = levels[-1].half, None if mask is None else halve(mask)
    return _Pictures(levels, weights, whole)


def _level(
    fast: Any,
    image: Tensor,
    weights: Tensor | None,
    units: tuple[Tensor, Tensor] | None,
    *,
    slopes: bool,
    half: bool,
) -> Picture:
    """A level of (N, C, h, w): standardised by `units` if given, with the weights (N, 1, h, w) as
    the last channel if given, with slopes and at half its size if wanted."""
    if fast is not None:
        if units is not None:
            units = units[0].flatten(1), units[1].flatten()
        if weights is not None and weights.stride(0) == 0:
            weights = weights[:1]
        return fast.level(image, _gaussian(), weights, units, slopes=slopes, half=half)
    if units is not None:
        image = _standardise(image, None, *units)
    both = [smoothed(image), image]
    lines = differences(both[0]) if slopes else None
    if weights is not None:
        both = [torch.cat((part, weights), 1) for part in both]
    return Picture(both[0], both[1], lines, halve(image) if half else None)


@cache
@lasting
def to_level(number: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The matrix (3, 3) from pixels of the images to those of a level, and back."""
    matrices = []
    for scale in (0.5**number, 2.0**number):
        rows = ((scale, 0.0, scale / 2 - 0.5), (0.0, scale, scale / 2 - 0.5), (0.0, 0.0, 1.0))
        matrices.append(torch.tensor(rows, dtype=torch.float64, device=device))
    return matrices[0], matrices[1]


def halve(image: Tensor) -> Tensor:
    """Images (..., H, W) at half their size, by triangular weights two pixels to each side."""
    height, width = image.shape[-2] // 2, image.shape[-1] // 2
    whole = image[..., : 2 * height, : 2 * width]
    return resize(whole, (height, width), interpolation="bilinear")


def _gaussian() -> list[float]:
    """The weights of a pixel and of its neighbours to each side."""
    weights = [math.exp(-0.5 * (k / SIGMA) ** 2) for k in range(round(3 * SIGMA) + 1)]
    total = weights[0] + 2 * sum(weights[1:])
    return [weight / total for weight in weights]


def _slopes(image: Tensor) -> tuple[Tensor, Tensor]:
    """The slopes of (N, C, h, w) along x and y."""
    fast = select_levels(image)
    return differences(image) if fast is None else fast.level(image, slopes=True).slopes


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


def _standardise(image: Tensor, mask: Tensor | None, mean: Tensor, deviation: Tensor) -> Tensor:
    """Images (N, C, H, W) minus their mean, over their deviation; 0 where the mask is 0."""
    values = (image - mean) / deviation
    return values if mask is None else torch.where(mask > 0, values, 0.0)


def _statistics(
    fast: Any, image: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor | None, tuple[Tensor, Tensor], Tensor]:
    """Image (N, C, H, W) without NaN, its mask, its mean and deviation, and which are bad (N,).

    The returned mask (N or 1, 1, H, W) is 0 where a value is NaN, or None if all pixels count; mean
    (N, C, 1, 1); deviation (N, 1, 1, 1), 1 for a constant image.
    """
    if fast is not None and mask is None:
        variance, largest, means = fast.statistics(image)
        if bool(largest.isfinite().all()):
            return _from_statistics(image, variance, largest, means)
    good = image.detach().isfinite().all(1, keepdim=True)
    broken = ~good.flatten(1).all(-1)
    if bool(broken.any()):
        mask = torch.ones_like(good[:1, :1], dtype=image.dtype) if mask is None else mask
        broken = ((mask > 0) & ~good).flatten(1).any(-1)
        mask = torch.where(good, mask, 0.0)
        image = torch.where(good, image, 0.0)
    if mask is None:
        masked, total = image, image.new_full((1, 1, 1, 1), prod(image.shape[-2:]))
    else:
        masked, total = image * mask, mask.sum((-2, -1), keepdim=True)
    divisor = torch.where(total > 0, total, 1.0)
    mean = masked.sum((-2, -1), keepdim=True) / divisor
    apart = image - mean if mask is None else (image - mean) * mask.sqrt()
    variance = apart.square().sum((-2, -1), keepdim=True).mean(1, keepdim=True) / divisor
    largest = masked.abs().amax((-3, -2, -1), keepdim=True)
    deviation, flat = _deviation(variance, largest)
    bad = broken | flat.flatten() | (total.flatten() == 0)
    return image, mask, (mean, deviation), bad


def _deviation(variance: Tensor, largest: Tensor) -> tuple[Tensor, Tensor]:
    """The deviations, 1 for constant images, and which images are constant; all (N, ...)."""
    flat = ~(variance > (CONSTANT * largest).square())
    return torch.where(flat, 1.0, variance).sqrt(), flat


def _from_statistics(
    image: Tensor, variance: Tensor, largest: Tensor, means: Tensor
) -> tuple[Tensor, None, tuple[Tensor, Tensor], Tensor]:
    """`_statistics` of a whole image, from the kernel's numbers (N,) and (N, C)."""
    deviation, flat = _deviation(variance, largest)
    units = (means[..., None, None], deviation[:, None, None, None])
    return image, None, (units[0].to(image.dtype), units[1].to(image.dtype)), flat


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
