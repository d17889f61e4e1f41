"""Tukey's weights, which exclude what is visible in one image only.

Gain, bias and the residuals' deviation are estimated together for the current matrix. Gain and bias
are weighted least squares; the deviation s is an M-estimate of scale (Huber and Ronchetti, 2009,
section 5.2), for which Tukey's function has a mean of one half:

    sum w rho(r / (1.548 s)) = sum w / 2,   rho(u) = 1 - (1 - u^2)^3, at most 1.

Like the median of |r| it tolerates outliers in half of the pixels, but it is smooth in all of them:
a median depends on one pixel, and so does its gradient. Derivatives are those of the solution.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.alignment.sums import divisor, fit

TUKEY = 4.685
"""Standard deviations at which Tukey's weight is 0: 95 % efficient under normal noise."""

HALF = 1.54764
"""The limit of Tukey's function, in standard deviations, at which normal noise has a mean of 1/2.
"""

DEVIATIONS = 1.4826
"""The ratio of standard deviation to median absolute deviation under normal noise."""

FIRST_LIMIT = 3.0
"""Values farther from an image's mean, in standard deviations, do not count for the first gain."""

LEAST_DEVIATION = 1e-3
"""The least deviation of residuals, for images of deviation 1: with a smaller one, all residuals
would be outliers of each other."""

SAMPLES = 8192
"""The approximate number of pixels from which the first medians are computed."""

ROUNDS = 5
"""Iterations of gain, bias and deviation. Only at the end: far from the solution, more than one
iteration lets the gain adapt to independently moving objects."""

LONGEST = 0.7
"""The largest step of the deviation's logarithm: a longer one would leave the range in which the
curve is nearly a line."""

SumsOf = Callable[[Tensor], Tensor]
"""The sums (N, C, 6) of both images under weights (N, 1, h, w)."""


class Fit(NamedTuple):
    """Gain, bias and deviation of N pairs, in the type of the images."""

    gain: Tensor
    """(N, C)."""
    bias: Tensor
    """(N, C)."""
    deviation: Tensor
    """(N,)."""


class Images(NamedTuple):
    """Both images, and the weight of each pixel."""

    fixed: Tensor
    """(N, C, h, w), standardised."""
    warped: Tensor
    """(N, C, h, w)."""
    weight: Tensor
    """(N, 1, h, w)."""

    def residual(self, gain: Tensor, bias: Tensor) -> Tensor:
        """The residuals (N, C, h, w) for gain and bias (N, C)."""
        gain, bias = (line[..., None, None] for line in (gain, bias))
        return torch.addcmul(self.fixed - bias, gain, self.warped, value=-1)


def robust_weights(
    fixed: Tensor, warped: Tensor, weight: Tensor, sums_of: SumsOf, settled: bool
) -> tuple[Tensor, Tensor]:
    """Tukey's weights of the residuals, times weight (N, 1, h, w), and the cost (N,).

    fixed and warped (N, C, h, w), standardised. settled: iterate to the solution, and add its
    derivatives if gradients are recorded; otherwise use the first estimate. The cost is the tau
    estimate: the squared deviation times the mean of Tukey's function, which bounds the effect of
    one outlier.
    """
    images = Images(fixed, warped, weight)
    with torch.no_grad():
        detached = Images(*(tensor.detach() for tensor in images))
        fit = _start(detached, sums_of)
        if settled:
            for _ in range(ROUNDS):
                fit = _round(detached, fit, sums_of)
    if settled and torch.is_grad_enabled():
        fit = _with_derivatives(images, fit, sums_of)
    shares, cost = _judge(images, fit)
    return weight * shares.square(), cost


def _judge(images: Images, fit: Fit) -> tuple[Tensor, Tensor]:
    """1 - (residual / limit)^2 of each pixel, (N, 1, h, w), and the tau estimate (N,)."""
    weight, limit = images.weight, TUKEY * fit.deviation
    shares = _near(images.residual(fit.gain, fit.bias), limit[:, None, None, None])
    mean = (weight * (1 - shares**3)).sum((1, 2, 3)) / divisor(weight.sum((1, 2, 3)))
    return shares, mean * limit.square()


def _start(images: Images, sums_of: SumsOf) -> Fit:
    """Gain and bias of one round, and the deviation by the median of the residuals.

    The iteration starts with the pixels near the mean of both images, or near the medians of both,
    whichever costs less: least squares over all pixels would adapt to what only the moving image
    shows, whose residuals are then small.
    """
    fixed, warped, weight = images
    stride = max(int((weight.shape[-2] * weight.shape[-1] / SAMPLES) ** 0.5), 1)
    some = (slice(None), slice(None), slice(None, None, stride), slice(None, None, stride))
    visible = weight[some] > 0.5
    near = _near(fixed, FIRST_LIMIT) * _near(warped, FIRST_LIMIT)
    middle_f, spread_f = _medians(fixed[some], visible)
    middle_w, spread_w = _medians(warped[some], visible)
    ratio = spread_f / spread_w.clamp(min=LEAST_DEVIATION)

    def with_deviation(gain: Tensor, bias: Tensor) -> Fit:
        """Gain and bias (N, C), with the deviation of their residuals."""
        size = images.residual(gain, bias)[some].abs().mean(1, keepdim=True)
        median = torch.where(visible, size, torch.nan).flatten(1).nanmedian(-1).values
        deviation = DEVIATIONS * torch.where(median.isnan(), 1.0, median)
        return Fit(gain, bias, deviation.clamp(min=LEAST_DEVIATION))

    first = with_deviation(*_fit(sums_of(weight * near.square()), fixed))
    second = with_deviation(ratio, middle_f - ratio * middle_w)
    (shares, cost), (other, other_cost) = _judge(images, first), _judge(images, second)
    shares = torch.where((cost <= other_cost)[:, None, None, None], shares, other)
    return with_deviation(*_fit(sums_of(weight * shares.square()), fixed))


def _round(images: Images, fit: Fit, sums_of: SumsOf) -> Fit:
    """A Newton step for the deviation's logarithm, then gain and bias under its weights."""
    reach = (HALF * fit.deviation)[:, None, None, None]
    inside = (1 - (images.residual(fit.gain, fit.bias) / reach).square()).clamp(min=0)
    total = divisor(images.weight.sum((1, 2, 3)) * inside.shape[1])
    excess = 0.5 - (images.weight * inside**3).sum((1, 2, 3)) / total
    slope = 6 * (images.weight * (1 - inside) * inside.square()).sum((1, 2, 3)) / total
    step = (excess / slope.clamp(min=1e-6)).clamp(-LONGEST, LONGEST)
    deviation = (fit.deviation * step.exp()).clamp(min=LEAST_DEVIATION)
    fit = fit._replace(deviation=deviation)
    gain, bias = _fit(sums_of(images.weight * _judge(images, fit)[0].square()), images.fixed)
    return Fit(gain, bias, deviation)


def _with_derivatives(images: Images, solution: Fit, sums_of: SumsOf) -> Fit:
    """The same values, with the derivatives of the solution with respect to both images.

    A Newton step from the solution is 0, but its derivatives are those of the solution.
    """
    channels = solution.gain.shape[1]
    flat = torch.cat((solution.gain, solution.bias, solution.deviation[:, None]), 1).double()
    place = flat.detach().requires_grad_()

    def left(numbers: Tensor) -> Tensor:
        """The function that is zero at the solution, (N, 2 C + 1)."""
        gain, bias = numbers[:, :channels], numbers[:, channels:-1]
        here = Fit(*(v.to(images.fixed.dtype) for v in (gain, bias, numbers[:, -1])))
        reach = (HALF * here.deviation)[:, None, None, None]
        inside = (1 - (images.residual(here.gain, here.bias) / reach).square()).clamp(min=0)
        total = divisor(images.weight.sum((1, 2, 3)) * channels)
        excess = 0.5 - (images.weight * inside**3).sum((1, 2, 3)) / total
        is_least = solution.deviation <= LEAST_DEVIATION
        excess = torch.where(is_least, here.deviation - solution.deviation, excess)
        to_gain, to_bias = fit(sums_of(images.weight * _judge(images, here)[0].square()), "robust")
        return torch.cat((gain - to_gain, bias - to_bias, excess[:, None].double()), 1)

    values = left(place)
    rows = [
        torch.autograd.grad(column.sum(), place, retain_graph=True)[0]
        for column in values.unbind(-1)
    ]
    slope = torch.stack(rows, 1).detach()  # (N, 2 C + 1, 2 C + 1)
    values = left(flat.detach())
    change, failed = torch.linalg.solve_ex(slope, values - values.detach())
    usable = ((failed == 0) & slope.flatten(1).isfinite().all(-1))[:, None]
    flat = flat.detach() - torch.where(usable, change, 0.0)
    flat = flat.to(images.fixed.dtype)
    return Fit(flat[:, :channels], flat[:, channels:-1], flat[:, -1])


def _fit(sums: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
    """Gain and bias (N, C) from sums (N, C, 6), in the type of `like`."""
    gain, bias = fit(sums, "robust")
    return gain.to(like.dtype), bias.to(like.dtype)


def _medians(values: Tensor, visible: Tensor) -> tuple[Tensor, Tensor]:
    """The median of values (N, C, h, w) where visible (N, 1, h, w), and of the distances from it.

    (N, C) each; 0 where nothing is visible.
    """
    visible_values = torch.where(visible, values, torch.nan).flatten(2)
    middle = visible_values.nanmedian(-1, keepdim=True).values
    spread = (visible_values - middle).abs().nanmedian(-1, keepdim=True).values
    middle, spread = (torch.where(m.isnan(), 0.0, m)[..., 0] for m in (middle, spread))
    return middle, spread


def _near(values: Tensor, limit: Tensor | float) -> Tensor:
    """1 at 0, 0 from the limit on: (N, 1, h, w) of values (N, C, h, w), limit (N, 1, 1, 1).

    A pixel is an outlier as a whole: its channels share one weight.
    """
    return (1 - (values / limit).square().mean(1, keepdim=True)).clamp(min=0)
