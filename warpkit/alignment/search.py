"""Searches for starting points: rotations and scales at a coarse level, each at its best shift.

For every rotation and scale, Fourier transforms with the pixels' weights compute the correlation of
the overlap at all shifts at once (Padfield, 2012).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.alignment.equations import Level
from warpkit.engine.definitions.maps import to_3x3
from warpkit.warp import warp_affine

LEAST_SHARE, FULL_SHARE = 0.2, 0.6
"""Overlaps, as parts of the smaller image: shifts with less than the first are skipped; those with
less than the second get a lower score, because a small overlap may correlate by chance."""

ROOM = 1.5
"""The side of the frame for the rotated moving image, relative to the longest side of both images.
"""

TINY = 1e-6
"""Smaller variances, of images of variance 1, count as 0: there is no correlation."""

AT_ONCE = 1 << 22
"""Numbers of a Fourier transform computed in one call."""


class Sweep(NamedTuple):
    """Rotations and scales to try, in all combinations."""

    turns: tuple[float, ...]
    """Degrees."""
    scales: tuple[float, ...]


def sweep_for(model: str, far: bool) -> Sweep:
    """All rotations and scales from 0.5 to 2, or with far=False those near the identity."""
    if model == "translation":
        return Sweep((0.0,), (1.0,))
    turns = tuple(range(0, 360, 15)) if far else (0.0, -15.0, 15.0)
    exponents = range(-4, 5) if far else range(-1, 2)
    scales = (1.0,) if model == "euclidean" else tuple(1.19**k for k in exponents)
    return Sweep(turns, scales)


def starts(level: Level, sweep: Sweep, count: int) -> tuple[Tensor, Tensor]:
    """The `count` best starts of N pairs: to_source (N, count, 3, 3) and scores (N, count)."""
    turns, scales = sweep
    device = level.fixed.device
    linear = torch.stack([_linear(turn, scale, device) for turn in turns for scale in scales])
    size = level.size
    source = level.moving.shape[-2:]
    side = math.ceil(ROOM * max(*size, *source))
    frame = (side, side)
    center = torch.tensor([(side - 1) / 2] * 2, dtype=torch.float64, device=device)
    middle = torch.tensor(
        [(source[1] - 1) / 2, (source[0] - 1) / 2], dtype=torch.float64, device=device
    )
    offsets = middle.to(device) - linear @ center
    to_moving = torch.cat((linear, offsets[..., None]), -1)  # frame pixel -> moving pixel
    fft = (_fast_length(size[0] + side), _fast_length(size[1] + side))
    fixed = _spectra(level.fixed, level.weight, fft)
    smaller = torch.minimum(level.weight.sum((1, 2, 3)), level.moving[:, -1].sum((1, 2)))
    values, shifts = [], []
    channels = level.fixed.shape[1]
    at_once = max(AT_ONCE // (len(smaller) * (channels + 1) * fft[0] * fft[1]), 1)
    for some in to_moving.split(at_once):
        views = warp_affine(level.moving[:, None], some, size=frame, inverse=True)
        scores = _correlations(fixed, views, fft, smaller)
        best = scores.flatten(2).max(-1)
        values.append(best.values)
        shifts.append(best.indices)
    value, place = torch.cat(values, 1), torch.cat(shifts, 1)
    value, which = value.topk(min(count, value.shape[1]), dim=1)
    place = place.gather(1, which)
    dy, dx = place // fft[1], place % fft[1]
    # a shift is from a fixed pixel to one of the frame, and cyclic
    dy, dx = (torch.where(d >= side, d - n, d) for d, n in ((dy, fft[0]), (dx, fft[1])))
    chosen = to_moving[which]
    shift = torch.stack((dx, dy), -1).double()
    translation = chosen[..., :2] @ shift[..., None] + chosen[..., 2:]
    return to_3x3(torch.cat((chosen[..., :2], translation), -1)), value


def _fast_length(count: int) -> int:
    """The next product of powers of 2, 3 and 5, for which Fourier transforms are fast."""
    rest = count
    for prime in (2, 3, 5):
        while rest % prime == 0:
            rest //= prime
    return count if rest == 1 else _fast_length(count + 1)


def _linear(turn: float, scale: float, device: torch.device) -> Tensor:
    """The matrix from offsets in the rotated and scaled image to offsets in the moving image."""
    c, s = math.cos(math.radians(turn)) / scale, math.sin(math.radians(turn)) / scale
    return torch.tensor([[c, -s], [s, c]], dtype=torch.float64, device=device)


def _spectra(image: Tensor, weight: Tensor, fft: tuple[int, int]) -> tuple[Tensor, ...]:
    """Spectra of the weight (..., 1, h, w), and of it times image (..., C, h, w) and its square.

    Squares are summed over the channels, because only their sum is needed.
    """
    weighted = image * weight
    squares = (weighted * image).sum(-3, keepdim=True)
    return tuple(torch.fft.rfft2(x, fft) for x in (weight, weighted, squares))


def _correlations(
    fixed: tuple[Tensor, ...], views: Tensor, fft: tuple[int, int], smaller: Tensor
) -> Tensor:
    """The correlation at every shift, (N, K, *fft); -inf where the overlap is too small.

    fixed: spectra (N, C or 1, ...); views (N, K, C + 1, side, side), the weights last; smaller
    (N,), the weights of the smaller image.
    """
    by_weight, by_image, by_square = (spectrum.conj()[:, None] for spectrum in fixed)
    weight, image, square = _spectra(views[..., :-1, :, :], views[..., -1:, :, :], fft)

    def at_all_shifts(a: Tensor, b: Tensor) -> Tensor:
        """The sums of products at every shift of two spectra (N, K or 1, C or 1, ...)."""
        return torch.fft.irfft2(a * b, fft)

    total = at_all_shifts(by_weight, weight)
    n = total.clamp(min=1e-3)
    f, w = at_all_shifts(by_image, weight), at_all_shifts(by_weight, image)
    both = torch.fft.irfft2((by_image * image).sum(-3, keepdim=True), fft)
    covariance = both - (f * w / n).sum(-3, keepdim=True)
    var_f = at_all_shifts(by_square, weight) - (f * f / n).sum(-3, keepdim=True)
    var_w = at_all_shifts(by_weight, square) - (w * w / n).sum(-3, keepdim=True)
    varies = (var_f > TINY * n) & (var_w > TINY * n)
    value = covariance / torch.where(varies, var_f * var_w, 1.0).sqrt()
    share = total / smaller[:, None, None, None, None].clamp(min=1.0)
    value = value.clamp(-1, 1) * (share / FULL_SHARE).clamp(0, 1).sqrt()
    return torch.where(varies & (share > LEAST_SHARE), value, -torch.inf)[:, :, 0]
