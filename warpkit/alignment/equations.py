"""The normal equations of one step, at one level: what the solver and the gradient both use.

The fixed image F is compared with a W + b, where W is the moving image as the current matrix shows
it; gain a and bias b of each channel are solved for ("ssd": a = 1, b = 0). With residuals
r = F - a W - b, weights w, and the displacement (u_k, v_k) that parameter k gives a pixel,

    J_k = G_x u_k + G_y v_k,   G = (grad F + a grad W) / 2,   J^T w J step = J^T w r.

The mean of both images' gradients makes a step right to second order where F is a W + b moved
(Benhimane and Malis, 2004). J^T w r = 0 is what defines the answer, and so its derivative. Gain and
bias are eliminated (Schur complement): J^T w J is that of the gradients without what they absorb.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.alignment.models import Model, half_side
from warpkit.warp import warp_affine, warp_perspective

TUKEY = 4.685
"""Standard deviations at which Tukey's weight is 0: 95 % efficient under normal noise."""

DEVIATIONS = 1.4826
"""Median absolute deviations of normal noise that are a standard deviation."""

FIRST_LIMIT = 3.0
"""Deviations of an image beyond which its values make no first gain."""

LEAST_DEVIATION = 1e-3
"""Of images of deviation 1: below it all residuals would be outliers of each other."""

SAMPLES = 8192
"""Pixels that a median is taken of, about."""

SINGULAR = 1e-9
"""A share of variance that is rounding: such a picture is constant."""


class Level(NamedTuple):
    """Pairs of images at one level of their pyramids, standardised and smoothed."""

    moving: Tensor
    """(N, C + 1, H, W): the values, and as the last channel the weights of the pixels."""
    fixed: Tensor
    """(N, C, h, w)."""
    fixed_x: Tensor
    """(N, C, h, w): the slope of the fixed image along x, a pixel."""
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
    """(N,): what a step is to lower."""
    score: Tensor
    """(N,): the correlation, a mean over the channels by the fixed image's variances."""
    agreement: Tensor
    """(N,): the correlation of the slopes."""
    overlap: Tensor
    """(N,): the sum of the pixels' weights."""


def equations(level: Level, to_source: Tensor, model: Model, loss: str) -> Equations:
    """At to_source (N, 3, 3), fixed pixel -> moving pixel of this level."""
    options = {"size": level.size, "inverse": True}
    if model.is_projective:
        seen = warp_perspective(level.moving, to_source, **options)
    else:
        seen = warp_affine(level.moving, to_source[:, :2], **options)
    fixed, warped, weight = level.fixed, seen[:, :-1], seen[:, -1:] * level.weight
    overlap, cost = weight.sum((1, 2, 3)), None
    if loss == "robust":
        weight, cost = _robust_weights(fixed, warped, weight)
    gain, bias = _gain_and_bias(fixed, warped, weight, loss)
    residual = torch.addcmul(fixed - bias, gain, warped, value=-1)
    score = _score(fixed, warped, weight)
    if cost is None:
        count = _divisor(overlap) * fixed.shape[1]
        squares = (weight * residual.square()).sum((1, 2, 3)) / count
        cost = 1 - score if loss == "ecc" else squares
    wx, wy = slopes(warped)
    unit = half_side(level.size) / 2
    gx = torch.addcmul(level.fixed_x, gain, wx) * unit
    gy = torch.addcmul(level.fixed_y, gain, wy) * unit
    weighted_x, weighted_y = gx * weight, gy * weight
    products = [(weighted_x, gx), (weighted_x, gy), (weighted_y, gy)]
    products += [(weighted_x, residual), (weighted_y, residual)]
    maps = [(a * b).sum(1, keepdim=True) for a, b in products]
    if loss != "ssd":
        maps += [weighted_x, weighted_y, weighted_x * warped, weighted_y * warped]
    moments = _moments(torch.cat(maps, 1), model.degree)
    count = len(model.generators)
    hessian = (moments[:, :3].flatten(1) @ model.quadratic).unflatten(-1, (count, count))
    rhs = moments[:, 3:5].flatten(1) @ model.linear
    if loss != "ssd":
        hessian = hessian - _absorbed(moments[:, 5:], model, warped, weight)
    agreement = _agreement(level, wx, wy, weight)
    measures = (m.double() for m in (cost, score, agreement, overlap))
    return Equations(hessian, rhs, *measures)


def slopes(image: Tensor) -> tuple[Tensor, Tensor]:
    """Central differences along x and y of (..., h, w), one-sided ones at the edges."""
    x = torch.cat((image[..., :1], image, image[..., -1:]), -1)
    y = torch.cat((image[..., :1, :], image, image[..., -1:, :]), -2)
    return (x[..., 2:] - x[..., :-2]) / 2, (y[..., 2:, :] - y[..., :-2, :]) / 2


def _sums(*maps: Tensor) -> list[Tensor]:
    """Of (N, C, h, w), over the pixels: (N, C, 1, 1) each."""
    return [values.sum((-2, -1), keepdim=True) for values in maps]


def _divisor(value: Tensor) -> Tensor:
    """What may be divided by: 1 for anything that is not positive."""
    return torch.where(value > 0, value, 1.0)


def _gain_and_bias(
    fixed: Tensor, warped: Tensor, weight: Tensor, loss: str
) -> tuple[Tensor, Tensor]:
    """Gain and bias (N, C, 1, 1) that bring warped nearest to fixed, both (N, C, h, w).

    weight (N, 1, h, w). A constant image has gain 0.
    """
    if loss == "ssd":
        one = torch.ones_like(fixed[..., :1, :1])
        return one, torch.zeros_like(one)
    weighted = weight * warped
    total, w, f, ww, wf = _sums(
        weight, weighted, weight * fixed, weighted * warped, weighted * fixed
    )
    variance = total * ww - w * w
    varies = variance > SINGULAR * total * total
    gain = torch.where(varies, (total * wf - w * f) / torch.where(varies, variance, 1.0), 0.0)
    return gain, (f - gain * w) / _divisor(total)


def _score(fixed: Tensor, warped: Tensor, weight: Tensor) -> Tensor:
    """The correlations of fixed and warped (N, C, h, w), weight (N, 1, h, w), as one mean (N,)."""
    by_w, by_f = weight * warped, weight * fixed
    total, w, f, ww, ff, wf = _sums(weight, by_w, by_f, by_w * warped, by_f * fixed, by_w * fixed)
    total = _divisor(total)
    w, f = w / total, f / total
    var_w, var_f = (ww / total - w * w).clamp(min=0), (ff / total - f * f).clamp(min=0)
    varies = (var_w > SINGULAR) & (var_f > SINGULAR)
    both = torch.where(varies, var_w * var_f, 1.0).sqrt()
    correlation = torch.where(varies, (wf / total - w * f) / both, 0.0)
    share = var_f / _divisor(var_f.sum(1, keepdim=True))
    return (correlation * share).sum((1, 2, 3)).clamp(-1, 1)


def _agreement(level: Level, wx: Tensor, wy: Tensor, weight: Tensor) -> Tensor:
    """The correlation (N,) of the slopes of both images; wx, wy (N, C, h, w), weight (N, 1, h, w).

    Without a gain's sign it is between -1 and 1, and 0 where a picture has no slopes.
    """
    fx, fy = level.fixed_x, level.fixed_y
    pairs = ((fx * wx + fy * wy), (fx * fx + fy * fy), (wx * wx + wy * wy))
    both, fixed, moving = ((weight * values).sum((1, 2, 3)) for values in pairs)
    return both / _divisor((fixed * moving).sqrt())


def _robust_weights(fixed: Tensor, warped: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Tukey's weights of the residuals, times weight (N, 1, h, w), and the cost (N,).

    fixed and warped (N, C, h, w), standardised. A first gain comes from what is near the mean of
    both images, or from the medians of both, whichever costs less: least squares of all follow what
    is seen in the moving image alone, whose residuals are then small. One more round follows.
    """
    stride = max(int((weight.shape[-2] * weight.shape[-1] / SAMPLES) ** 0.5), 1)
    some = (slice(None), slice(None), slice(None, None, stride), slice(None, None, stride))
    visible = weight[some] > 0.5
    near = _near(fixed, FIRST_LIMIT) * _near(warped, FIRST_LIMIT)
    first = _gain_and_bias(fixed, warped, weight * near.square(), "robust")
    middle_f, spread_f = _medians(fixed[some], visible)
    middle_w, spread_w = _medians(warped[some], visible)
    ratio = spread_f / spread_w.clamp(min=LEAST_DEVIATION)
    second = (ratio, middle_f - ratio * middle_w)

    def judged(gain: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """1 - (residual / limit)^2 of each pixel, (N, 1, h, w), and the tau estimate (N,).

        gain and bias (N, C, 1, 1). The estimate is the squared deviation times the mean of Tukey's
        function, which bounds what one outlier adds.
        """
        residual = torch.addcmul(fixed - bias, gain, warped, value=-1)
        size = residual[some].abs().mean(1, keepdim=True)
        median = torch.where(visible, size, torch.nan).flatten(1).nanmedian(-1).values
        deviation = DEVIATIONS * torch.where(median.isnan(), 1.0, median)
        limit = TUKEY * deviation.clamp(min=LEAST_DEVIATION)
        kept = _near(residual, limit[:, None, None, None])
        mean = (weight * (1 - kept**3)).sum((1, 2, 3)) / _divisor(weight.sum((1, 2, 3)))
        return kept, mean * limit.square()

    (kept, cost), (other, other_cost) = judged(*first), judged(*second)
    kept = torch.where((cost <= other_cost)[:, None, None, None], kept, other)
    kept, cost = judged(*_gain_and_bias(fixed, warped, weight * kept.square(), "robust"))
    return weight * kept.square(), cost


def _medians(values: Tensor, visible: Tensor) -> tuple[Tensor, Tensor]:
    """The median of values (N, C, h, w) where visible (N, 1, h, w), and of the distances from it.

    (N, C, 1, 1) each; 0 where nothing is visible.
    """
    shown = torch.where(visible, values, torch.nan).flatten(2)
    middle = shown.nanmedian(-1, keepdim=True).values
    spread = (shown - middle).abs().nanmedian(-1, keepdim=True).values
    middle, spread = (torch.where(m.isnan(), 0.0, m)[..., None] for m in (middle, spread))
    return middle, spread


def _near(values: Tensor, limit: Tensor | float) -> Tensor:
    """1 at 0, 0 from the limit on: (N, 1, h, w) of values (N, C, h, w), limit (N, 1, 1, 1).

    A pixel is an outlier as a whole: its channels share one weight.
    """
    return (1 - (values / limit).square().mean(1, keepdim=True)).clamp(min=0)


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


def _absorbed(moments: Tensor, model: Model, warped: Tensor, weight: Tensor) -> Tensor:
    """What gain and bias of each channel take of J^T w J: (N, K, K).

    moments (N, 4 C, D) of weighted slopes along x and y, and of the same times warped (N, C, h, w);
    weight (N, 1, h, w).
    """
    x, y, xw, yw = moments.unflatten(1, (4, -1)).unbind(1)
    to_bias, to_gain = (torch.cat(pair, -1) @ model.linear for pair in ((x, y), (xw, yw)))
    weighted = weight * warped
    total, w, ww = (s.double()[..., 0, 0] for s in _sums(weight, weighted, weighted * warped))
    mean = (w / _divisor(total))[..., None]
    variance = ww - mean[..., 0] * w
    varies = variance > SINGULAR * total
    apart = to_gain - mean * to_bias  # from the bias: the two are then independent
    by_bias = to_bias / _divisor(total)[..., None]
    by_gain = torch.where(varies[..., None], apart, 0.0)
    by_gain = by_gain / torch.where(varies, variance, 1.0)[..., None]
    both = torch.einsum("nck,ncm->nkm", by_bias, to_bias.expand_as(by_bias))
    return both + torch.einsum("nck,ncm->nkm", by_gain, apart)
