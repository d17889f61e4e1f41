"""The normal equations of one step at one level, for the solver and for the gradient.

The fixed image F is compared with a W + b, where W is the moving image warped by the current
matrix; gain a and bias b of each channel are estimated ("ssd": a = 1, b = 0). With residuals r = F
- a W - b, weights w, and the displacement (u_k, v_k) that parameter k gives a pixel,

    J_k = G_x u_k + G_y v_k,   G = (grad F + a grad W) / 2,   J^T w J step = J^T w r.

The mean of both images' gradients makes a step right to second order where F is a W + b moved
(Benhimane and Malis, 2004). J^T w r = 0 defines the solution, and so its derivative. Gain and bias
are eliminated (Schur complement) from J^T w J.

For unsmoothed images (the stage "sharp"), G = a grad W is the exact slope of the interpolated
image: central differences are no good approximation for noise.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.alignment.models import Model, half_side
from warpkit.alignment.robust import robust_weights
from warpkit.alignment.sums import SINGULAR, divisor, first_sums, fit, score, squares
from warpkit.engine.backends import select_sums
from warpkit.warp import warp_affine, warp_perspective

SHARED = 8
"""Maps of the second pass that all channels share."""


STAGES = ("search", "settled", "sharp")
"""Smoothed images, with robust weights of one iteration; the same with converged weights, which
define the solution; and unsmoothed ones."""

SHARP_STEP = 1 / 128
"""Half the step, in pixels, of the differences that give the slopes of the interpolated image. The
image is bilinear between pixel centres, so a short step is exact; rounding is 1e-5 of a float32
image."""


class Level(NamedTuple):
    """Pairs of images at one level of their pyramids: standardised, and smoothed unless "sharp"."""

    moving: Tensor
    """(N, C + 1, H, W): the values, and as the last channel the weights of the pixels."""
    fixed: Tensor
    """(N, C, h, w)."""
    fixed_x: Tensor
    """(N, C, h, w): the slope of the fixed image along x, per pixel."""
    fixed_y: Tensor
    """(N, C, h, w)."""
    weight: Tensor
    """(N, 1, h, w): the weights of the fixed image's pixels."""

    @property
    def size(self) -> tuple[int, int]:
        """(h, w) of the fixed images."""
        return self.fixed.shape[-2], self.fixed.shape[-1]

    def take(self, index: Tensor) -> Level:
        """The pairs of an index (M,)."""
        return Level(*(tensor[index] for tensor in self))


class Equations(NamedTuple):
    """The normal equations of N pairs in K parameters, float64, and how well the pairs agree."""

    hessian: Tensor
    """(N, K, K)."""
    rhs: Tensor
    """(N, K)."""
    cost: Tensor
    """(N,): the cost that a step reduces."""
    score: Tensor
    """(N,): the correlation, a mean over the channels by the fixed image's variances."""
    agreement: Tensor
    """(N,): the correlation of the slopes."""
    overlap: Tensor
    """(N,): the sum of the pixels' weights."""
    gain: Tensor
    """(N, C): by weighted least squares, for standardised images; computed for every loss."""
    bias: Tensor
    """(N, C)."""


def equations(
    level: Level, to_source: Tensor, model: Model, loss: str, stage: str = "search"
) -> Equations:
    """The equations at to_source (N, 3, 3), fixed pixel -> moving pixel of this level.

    stage: one of STAGES.
    """
    views = _warp(level, to_source, model)
    fixed, warped, weight = level.fixed, views[:, :-1], views[:, -1:] * level.weight
    overlap, cost = weight.sum((1, 2, 3)), None
    fast = None if torch.is_grad_enabled() else select_sums(fixed, warped, weight)

    def sums_of(weight: Tensor) -> Tensor:
        """The sums (N, C, 6) under weight (N, 1, h, w)."""
        if fast:
            return fast.first_sums(fixed, views, weight)
        return first_sums(fixed, warped, weight)

    if loss == "robust":
        weight, cost = robust_weights(fixed, warped, weight, sums_of, stage != STAGES[0])
    sums = sums_of(weight)
    gain, bias = fit(sums, loss)
    gain, bias = (line.to(fixed.dtype)[..., None, None] for line in (gain, bias))
    half = half_side(level.size)
    if fast and stage != "sharp":
        parts = (fixed, level.fixed_x, level.fixed_y)
        moments = fast.second_sums(parts, views, weight, gain, bias, half, model.degree)
    else:
        lines = _exact_slopes(level, to_source, model) if stage == "sharp" else None
        moments = _second_sums(level, warped, weight, gain, bias, model.degree, lines)
    count = len(model.generators)
    hessian = (moments[:, :3].flatten(1) @ model.quadratic).unflatten(-1, (count, count))
    rhs = moments[:, 3:5].flatten(1) @ model.linear
    if loss != "ssd":
        hessian = hessian - _eliminate(moments[:, SHARED:], model, sums)
    both, ff, ww = moments[:, 5:SHARED, 0].unbind(-1)
    agreement = both / divisor((ff * ww).sqrt())
    correlation = score(sums)
    if cost is None:
        cost = 1 - correlation if loss == "ecc" else squares(sums, loss)
    return Equations(
        hessian, rhs, cost.double(), correlation, agreement, overlap.double(), *fit(sums, "ecc")
    )


def _warp(level: Level, to_source: Tensor, model: Model) -> Tensor:
    """The moving images and their weights, (N, C + 1, h, w), warped by to_source (N, 3, 3)."""
    options = {"size": level.size, "inverse": True}
    if model.is_projective:
        return warp_perspective(level.moving, to_source, **options)
    return warp_affine(level.moving, to_source[:, :2], **options)


def _exact_slopes(level: Level, to_source: Tensor, model: Model) -> tuple[Tensor, Tensor]:
    """The slopes (N, C, h, w) of the warped moving images along x and y."""
    slopes = []
    for axis in (0, 1):
        step = torch.zeros(3, 3, dtype=to_source.dtype, device=to_source.device)
        step[axis, 2] = SHARP_STEP
        ahead, behind = (
            _warp(level, to_source + sign * to_source @ step, model)[:, :-1] for sign in (1, -1)
        )
        slopes.append((ahead - behind) / (2 * SHARP_STEP))
    return slopes[0], slopes[1]


def slopes(image: Tensor) -> tuple[Tensor, Tensor]:
    """Central differences along x and y of (..., h, w), one-sided ones at the edges."""
    x = torch.cat((image[..., :1], image, image[..., -1:]), -1)
    y = torch.cat((image[..., :1, :], image, image[..., -1:, :]), -2)
    return (x[..., 2:] - x[..., :-2]) / 2, (y[..., 2:, :] - y[..., :-2, :]) / 2


def _sums(*maps: Tensor) -> list[Tensor]:
    """The sums of maps (N, C, h, w) over the pixels, (N, C, 1, 1) each."""
    return [values.sum((-2, -1), keepdim=True) for values in maps]


def _second_sums(
    level: Level,
    warped: Tensor,
    weight: Tensor,
    gain: Tensor,
    bias: Tensor,
    degree: int,
    lines: tuple[Tensor, Tensor] | None,
) -> Tensor:
    """The moments (N, 8 + 4 C, D) of the second pass, float64.

    warped (N, C, h, w), weight (N, 1, h, w), gain and bias (N, C, 1, 1). lines: the exact slopes of
    `warped`, from which G is then made, or None. For all channels together: gx gx, gx gy, gy gy,
    gx r, gy r, and the products of slopes, F's with W's, F's with F's and W's with W's. For each
    channel: gx, gy, gx W, gy W.
    """
    residual = level.fixed - bias - gain * warped
    wx, wy = slopes(warped)
    fx, fy = level.fixed_x, level.fixed_y
    unit = half_side(level.size) / 2
    gx, gy = fx + gain * wx, fy + gain * wy
    if lines is not None:
        gx, gy = (2 * gain * line for line in lines)
    gx, gy = gx * unit, gy * unit
    weighted_x, weighted_y = gx * weight, gy * weight
    products = [(weighted_x, gx), (weighted_x, gy), (weighted_y, gy)]
    products += [(weighted_x, residual), (weighted_y, residual)]
    maps = [(a * b).sum(1) for a, b in products]
    pairs = (fx * wx + fy * wy, fx * fx + fy * fy, wx * wx + wy * wy)
    maps += [(weight * values).sum(1) for values in pairs]
    for x, y, w in zip(weighted_x.unbind(1), weighted_y.unbind(1), warped.unbind(1), strict=True):
        maps += [x, y, x * w, y * w]
    return _moments(torch.stack(maps, 1), degree)


def _moments(maps: Tensor, degree: int) -> Tensor:
    """Sums of maps (N, Q, h, w) times x^i y^j, i and j up to `degree`: (N, Q, D), float64."""
    height, width = maps.shape[-2:]
    half = half_side((height, width))
    powers = []
    for count in (width, height):
        place = torch.arange(count, dtype=torch.float64, device=maps.device) - (count - 1) / 2
        rows = [(place / half) ** k for k in range(degree + 1)]
        powers.append(torch.stack(rows, -1).to(maps.dtype))
    along = maps.flatten(0, 2) @ powers[0]
    along = along.unflatten(0, maps.shape[:3]).transpose(-1, -2)
    return (along.double() @ powers[1].double()).flatten(-2)


def _eliminate(moments: Tensor, model: Model, sums: Tensor) -> Tensor:
    """The part of J^T w J that eliminating each channel's gain and bias removes: (N, K, K).

    moments (N, 4 C, D): gx, gy, gx W and gy W of each channel; sums (N, C, 6).
    """
    x, y, xw, yw = moments.unflatten(1, (-1, 4)).unbind(2)
    to_bias, to_gain = (torch.cat(pair, -1) @ model.linear for pair in ((x, y), (xw, yw)))
    total, w, _, ww = sums.unbind(-1)[:4]
    mean = w / divisor(total)
    variance = ww - mean * w
    varies = variance > SINGULAR * total
    apart = to_gain - mean[..., None] * to_bias  # made independent of the bias
    by_bias = to_bias / divisor(total)[..., None]
    by_gain = torch.where(varies[..., None], apart, 0.0)
    by_gain = by_gain / torch.where(varies, variance, 1.0)[..., None]
    return by_bias.mT @ to_bias + by_gain.mT @ apart
