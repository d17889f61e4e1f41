"""Sums over the overlap, and what follows from them: gain and bias, correlation, mean square."""

from __future__ import annotations

import torch
from torch import Tensor

SINGULAR = 1e-9
"""A smaller variance, of images of variance 1, is rounding: the image is constant."""


def first_sums(fixed: Tensor, warped: Tensor, weight: Tensor) -> Tensor:
    """The sums of 1, W, F, W W, F F and W F, times the weight: (N, C, 6), float64.

    F and W are fixed and warped (N, C, h, w); weight (N, 1, h, w).
    """
    by_w, by_f = weight * warped, weight * fixed
    maps = (weight.expand_as(fixed), by_w, by_f, by_w * warped, by_f * fixed, by_w * fixed)
    return torch.stack([values.sum((-2, -1)) for values in maps], -1).double()


def divisor(value: Tensor) -> Tensor:
    """The value as a divisor: 1 if it is not positive."""
    return torch.where(value > 0, value, 1.0)


def fit(sums: Tensor, loss: str) -> tuple[Tensor, Tensor]:
    """The gain and bias (N, C) that fit W to F, from sums (N, C, 6); gain 0 if W is constant."""
    total, w, f, ww, _, wf = sums.unbind(-1)
    if loss == "ssd":
        return torch.ones_like(w), torch.zeros_like(w)
    variance = total * ww - w * w
    varies = variance > SINGULAR * total * total
    gain = torch.where(varies, (total * wf - w * f) / torch.where(varies, variance, 1.0), 0.0)
    return gain, (f - gain * w) / divisor(total)


def score(sums: Tensor) -> Tensor:
    """The mean correlation of the channels, (N,), from sums (N, C, 6)."""
    total, w, f, ww, ff, wf = sums.unbind(-1)
    total = divisor(total)
    w, f = w / total, f / total
    var_w, var_f = (ww / total - w * w).clamp(min=0), (ff / total - f * f).clamp(min=0)
    varies = (var_w > SINGULAR) & (var_f > SINGULAR)
    both = torch.where(varies, var_w * var_f, 1.0).sqrt()
    correlation = torch.where(varies, (wf / total - w * f) / both, 0.0)
    share = var_f / divisor(var_f.sum(1, keepdim=True))
    return (correlation * share).sum(1).clamp(-1, 1)


def squares(sums: Tensor, loss: str) -> Tensor:
    """The mean square of the residuals, (N,), from sums (N, C, 6)."""
    gain, bias = fit(sums, loss)
    total, w, f, ww, ff, wf = sums.unbind(-1)
    square = ff - 2 * bias * f - 2 * gain * wf + gain * gain * ww + 2 * gain * bias * w
    return (square + bias * bias * total).sum(1) / divisor(total.sum(1))
