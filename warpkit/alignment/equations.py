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

from typing import Any, NamedTuple

import torch
from torch import Tensor

from warpkit.alignment.models import Model, half_side
from warpkit.core.tracing import is_eager
from warpkit.engine.backends.cpu import HAS_NUMBA
from warpkit.warp import warp_affine, warp_perspective

TUKEY = 4.685
"""Standard deviations at which Tukey's weight is 0: 95 % efficient under normal noise."""

DEVIATIONS = 1.4826
"""Median absolute deviations of normal noise that are a standard deviation."""

FIRST_LIMIT = 3.0
"""Deviations of an image beyond which its values make no first gain."""

LEAST_DEVIATION = 1e-3
"""Of images of deviation 1: below it all residuals would be outliers of each other."""

SHARED = 8
"""Maps of the second pass that all channels share."""

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
    fast = _compiled(fixed, warped, weight)
    sums = fast.first_sums(fixed, seen, weight) if fast else _first_sums(fixed, warped, weight)
    gain, bias = _fit(sums, loss)
    gain, bias = (line.to(fixed.dtype)[..., None, None] for line in (gain, bias))
    half = half_side(level.size)
    if fast:
        parts = (fixed, level.fixed_x, level.fixed_y)
        moments = fast.second_sums(parts, seen, weight, gain, bias, half, model.degree)
    else:
        moments = _second_sums(level, warped, weight, gain, bias, model.degree)
    count = len(model.generators)
    hessian = (moments[:, :3].flatten(1) @ model.quadratic).unflatten(-1, (count, count))
    rhs = moments[:, 3:5].flatten(1) @ model.linear
    if loss != "ssd":
        hessian = hessian - _absorbed(moments[:, SHARED:], model, sums)
    both, ff, ww = moments[:, 5:SHARED, 0].unbind(-1)
    agreement = both / _divisor((ff * ww).sqrt())
    score = _score(sums)
    if cost is None:
        cost = 1 - score if loss == "ecc" else _squares(sums, loss)
    return Equations(hessian, rhs, cost.double(), score, agreement, overlap.double())


def _compiled(*tensors: Tensor) -> Any:
    """The module that has the sums by compiled kernels, where it may read the tensors."""
    if tensors[0].device.type != "cpu" or not HAS_NUMBA or torch.is_grad_enabled():
        return None
    if not is_eager(*tensors):
        return None
    from warpkit.engine.backends.cpu import moments

    return moments


def slopes(image: Tensor) -> tuple[Tensor, Tensor]:
    """Central differences along x and y of (..., h, w), one-sided ones at the edges."""
    x = torch.cat((image[..., :1], image, image[..., -1:]), -1)
    y = torch.cat((image[..., :1, :], image, image[..., -1:, :]), -2)
    return (x[..., 2:] - x[..., :-2]) / 2, (y[..., 2:, :] - y[..., :-2, :]) / 2


def _sums(*maps: Tensor) -> list[Tensor]:
    """Of (N, C, h, w), over the pixels: (N, C, 1, 1) each."""
    return [values.sum((-2, -1), keepdim=True) for values in maps]


def _first_sums(fixed: Tensor, warped: Tensor, weight: Tensor) -> Tensor:
    """Of fixed and warped (N, C, h, w), times weight (N, 1, h, w): (N, C, 6), float64.

    1, W, F, W W, F F, W F.
    """
    by_w, by_f = weight * warped, weight * fixed
    maps = (weight.expand_as(fixed), by_w, by_f, by_w * warped, by_f * fixed, by_w * fixed)
    return torch.stack([values.sum((-2, -1)) for values in maps], -1).double()


def _second_sums(
    level: Level, warped: Tensor, weight: Tensor, gain: Tensor, bias: Tensor, degree: int
) -> Tensor:
    """The moments (N, 8 + 4 C, D) of the second pass, float64.

    warped (N, C, h, w), weight (N, 1, h, w), gain and bias (N, C, 1, 1). Of all channels: gx gx,
    gx gy, gy gy, gx r, gy r, and products of the slopes of F and W, of F alone, and of W alone; of
    each channel: gx, gy, gx W, gy W.
    """
    residual = level.fixed - bias - gain * warped
    wx, wy = slopes(warped)
    fx, fy = level.fixed_x, level.fixed_y
    unit = half_side(level.size) / 2
    gx, gy = (fx + gain * wx) * unit, (fy + gain * wy) * unit
    weighted_x, weighted_y = gx * weight, gy * weight
    products = [(weighted_x, gx), (weighted_x, gy), (weighted_y, gy)]
    products += [(weighted_x, residual), (weighted_y, residual)]
    maps = [(a * b).sum(1) for a, b in products]
    pairs = (fx * wx + fy * wy, fx * fx + fy * fy, wx * wx + wy * wy)
    maps += [(weight * values).sum(1) for values in pairs]
    for x, y, w in zip(weighted_x.unbind(1), weighted_y.unbind(1), warped.unbind(1), strict=True):
        maps += [x, y, x * w, y * w]
    return _moments(torch.stack(maps, 1), degree)


def _divisor(value: Tensor) -> Tensor:
    """What may be divided by: 1 for anything that is not positive."""
    return torch.where(value > 0, value, 1.0)


def _fit(sums: Tensor, loss: str) -> tuple[Tensor, Tensor]:
    """Gain and bias (N, C) that bring W nearest to F, by sums (N, C, 6); 0 if W is constant."""
    total, w, f, ww, _, wf = sums.unbind(-1)
    if loss == "ssd":
        return torch.ones_like(w), torch.zeros_like(w)
    variance = total * ww - w * w
    varies = variance > SINGULAR * total * total
    gain = torch.where(varies, (total * wf - w * f) / torch.where(varies, variance, 1.0), 0.0)
    return gain, (f - gain * w) / _divisor(total)


def _gain_and_bias(fixed: Tensor, warped: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """As `_fit`, (N, C, 1, 1), of fixed and warped (N, C, h, w) under weight (N, 1, h, w)."""
    sums = _first_sums(fixed, warped, weight)
    gain, bias = (line.to(fixed.dtype)[..., None, None] for line in _fit(sums, "robust"))
    return gain, bias


def _score(sums: Tensor) -> Tensor:
    """The correlation of each channel, by sums (N, C, 6), as one mean (N,)."""
    total, w, f, ww, ff, wf = sums.unbind(-1)
    total = _divisor(total)
    w, f = w / total, f / total
    var_w, var_f = (ww / total - w * w).clamp(min=0), (ff / total - f * f).clamp(min=0)
    varies = (var_w > SINGULAR) & (var_f > SINGULAR)
    both = torch.where(varies, var_w * var_f, 1.0).sqrt()
    correlation = torch.where(varies, (wf / total - w * f) / both, 0.0)
    share = var_f / _divisor(var_f.sum(1, keepdim=True))
    return (correlation * share).sum(1).clamp(-1, 1)


def _squares(sums: Tensor, loss: str) -> Tensor:
    """The mean square of the residuals (N,), by sums (N, C, 6)."""
    gain, bias = _fit(sums, loss)
    total, w, f, ww, ff, wf = sums.unbind(-1)
    square = ff - 2 * bias * f - 2 * gain * wf + gain * gain * ww + 2 * gain * bias * w
    return (square + bias * bias * total).sum(1) / _divisor(total.sum(1))


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
    first = _gain_and_bias(fixed, warped, weight * near.square())
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
    kept, cost = judged(*_gain_and_bias(fixed, warped, weight * kept.square()))
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


def _absorbed(moments: Tensor, model: Model, sums: Tensor) -> Tensor:
    """What gain and bias of each channel take of J^T w J: (N, K, K).

    moments (N, 4 C, D): gx, gy, gx W and gy W of each channel; sums (N, C, 6).
    """
    x, y, xw, yw = moments.unflatten(1, (-1, 4)).unbind(2)
    to_bias, to_gain = (torch.cat(pair, -1) @ model.linear for pair in ((x, y), (xw, yw)))
    total, w, _, ww = sums.unbind(-1)[:4]
    mean = w / _divisor(total)
    variance = ww - mean * w
    varies = variance > SINGULAR * total
    apart = to_gain - mean[..., None] * to_bias  # from the bias: the two are then independent
    by_bias = to_bias / _divisor(total)[..., None]
    by_gain = torch.where(varies[..., None], apart, 0.0)
    by_gain = by_gain / torch.where(varies, variance, 1.0)[..., None]
    return by_bias.mT @ to_bias + by_gain.mT @ apart
