"""Sampling rules: the neighbours of a point, their weights, and the border.

All backends follow this definition. A rule is an interpolation and a border. Along one axis of n
pixels, a position p becomes taps: an index in range, a weight, and whether the tap is inside the
image. The 2-D rule is the product of two axes.

    border       continuation of the row  a b c d       index i, taken modulo
    constant     v v v | a b c d | v v v                missing: `border_value`
    replicate    a a a | a b c d | d d d                clamped
    reflect      c b a | a b c d | d c b                2n
    reflect_101  d c b | a b c d | c b a                2n - 2
    wrap         b c d | a b c d | a b c                n
    transparent  missing: the background's pixel at the output position

A rule may name two borders, one along y and one along x: each axis's border gives the tap's index
along that axis, and a tap that is missing along one axis is missing. Such a pair is one string,
"replicate,wrap", so it can be passed wherever a border's name can.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.choices import ARITHMETICS as ARITHMETICS
from warpkit.choices import INTERPOLATIONS as INTERPOLATIONS
from warpkit.choices import WARP_INTERPOLATIONS, BorderName
from warpkit.engine.definitions.splines import ORDERS, is_spline, weights

TAPS = {"nearest": 1, "bilinear": 2, "bicubic": 4, "lanczos4": 8, "spline3": 4, "spline5": 6}
"""Interpolations, and the number of neighbours that each reads along an axis; splines read
coefficients, not pixels: see `splines`."""

BORDERS: tuple[BorderName, ...] = (
    "constant",
    "replicate",
    "reflect",
    "reflect_101",
    "wrap",
    "transparent",
)
CODE = {name: code for names in (WARP_INTERPOLATIONS, BORDERS) for code, name in enumerate(names)}
"""The numbers of interpolations and borders in compiled kernels."""

MISSING_BORDERS = ("constant", "transparent")
"""The borders under which taps outside the image are missing; others assign them a pixel."""

LIMIT = 2.0**31
"""Coordinates of at least this magnitude are not sampled: the result is the border's value."""

CUBIC_A = -0.75
"""Keys' parameter: OpenCV's and torch's choice (-0.5 in Pillow and scipy)."""


class SamplingRule(NamedTuple):
    """How a point's value is computed."""

    interpolation: str
    border: str
    """One name for both axes, or a pair: see `pair_of`."""
    arithmetic: str = "exact"


def pair_of(along_y: str, along_x: str) -> str:
    """The border of a rule with one of `BORDERS` along each axis; one name if they are equal."""
    return along_y if along_y == along_x else f"{along_y},{along_x}"


def borders_of(border: str) -> tuple[str, str]:
    """The borders along y and x of a rule's border."""
    along_y, _, along_x = border.partition(",")
    return along_y, along_x or along_y


def is_pair(border: str) -> bool:
    """Whether a rule's border differs between the axes."""
    return "," in border


def axis_rules(rule: SamplingRule) -> tuple[SamplingRule, SamplingRule]:
    """The rules along y and along x, each with one border."""
    along_y, along_x = borders_of(rule.border)
    interpolation, _, arithmetic = rule
    return (
        SamplingRule(interpolation, along_y, arithmetic),
        SamplingRule(interpolation, along_x, arithmetic),
    )


def missing_axes(border: str) -> tuple[bool, bool]:
    """Whether a tap outside the image is missing along y, and along x."""
    along_y, along_x = borders_of(border)
    return along_y in MISSING_BORDERS, along_x in MISSING_BORDERS


@dataclass(frozen=True)
class AxisTap:
    """One neighbour along one axis, for all points."""

    index: Tensor
    """int64, always within the axis."""
    weight: Tensor | None
    """None for nearest, which copies the pixel."""
    inside: Tensor | None
    """False if the tap is missing; None if the border has no missing taps."""


def any_inside(insides: Iterable[Tensor | None]) -> Tensor | None:
    """Whether any tap along an axis is inside; None if none can be missing."""
    masks = [inside for inside in insides if inside is not None]
    return reduce(torch.logical_or, masks) if masks else None


def both_inside(along_y: Tensor | None, along_x: Tensor | None) -> Tensor | None:
    """Whether a tap is inside along both axes, (...) each; None if it cannot be missing."""
    if along_y is None or along_x is None:
        return along_x if along_y is None else along_y
    return along_y & along_x


def taps(position: Tensor, length: int | Tensor, rule: SamplingRule) -> list[AxisTap]:
    """The taps of finite positions below LIMIT along an axis of `length` pixels.

    The rule is that of the axis, see `axis_rules`. `length` may be an int64 tensor that broadcasts
    with `position`: a length for each.
    """
    interpolation, border = rule.interpolation, rule.border
    if interpolation == "nearest":
        index, inside = resolve(position.detach().round().long(), length, border)  # ties to even
        return [AxisTap(index, None, inside)]
    base = position.detach().floor()
    weights = axis_weights(position - base, interpolation)
    first = base.long() - (len(weights) // 2 - 1)
    return [
        AxisTap(index, weight, inside)
        for k, weight in enumerate(weights)
        for index, inside in [resolve(first + k, length, border)]
    ]


def axis_weights(t: Tensor, interpolation: str) -> list[Tensor]:
    """The weights of the 2, 4, 6 or 8 taps around a position with fraction 0 <= t <= 1.

    That of the tap at or before the position is what the others leave of 1. So the gradient to a
    position is a sum of differences of taps, which are exactly 0 where a border repeats one pixel:
    up to 2^31 pixels away, towards a horizon, matrices multiply any rounding error.
    """
    if interpolation == "bilinear":
        return [1 - t, t]
    if interpolation == "bicubic":
        near, far = _cubic_near, _cubic_far
        first, third, fourth = far(1 + t), near(1 - t), far(2 - t)
        return [first, 1 - (first + third + fourth), third, fourth]
    if is_spline(interpolation):
        return weights(t, ORDERS[interpolation])
    raw = [_lanczos(t + 3 - k) for k in range(8)]
    total = sum(raw)
    others = [raw[k] / total for k in range(8) if k != 3]
    return [*others[:3], 1 - sum(others[1:], others[0]), *others[3:]]


def _cubic_near(d: Tensor) -> Tensor:
    return ((CUBIC_A + 2) * d - (CUBIC_A + 3)) * d * d + 1


def _cubic_far(d: Tensor) -> Tensor:
    return ((CUBIC_A * d - 5 * CUBIC_A) * d + 8 * CUBIC_A) * d - 4 * CUBIC_A


def _lanczos(d: Tensor) -> Tensor:
    """sinc(d) sinc(d / 4), with derivatives of every order also at d = 0."""
    small = d.abs() < 1e-2  # the first omitted term of the series, of order d^6, is below 1e-12
    p = (math.pi * d) ** 2
    series = 1 - p * (17 / 96) + p * p * (1 / 120 + 1 / 576 + 1 / 30720)
    safe = torch.where(small, 1.0, d)
    exact = (
        torch.sin(math.pi * safe) * torch.sin(math.pi / 4 * safe) / (math.pi**2 / 4 * safe * safe)
    )
    return torch.where(small, series, exact)


def resolve(index: Tensor, length: int | Tensor, border: str) -> tuple[Tensor, Tensor | None]:
    """Applies a border to int64 indices: indices in range, and whether they were inside (or None).

    index (...), and length if it is a tensor, pixels.
    """
    if border in MISSING_BORDERS:
        inside = (index >= 0) & (index < length)
        return _clip(index, length), inside
    if border == "replicate":
        return _clip(index, length), None
    if border == "wrap":
        return index.remainder(length), None
    period = 2 * length
    if border == "reflect_101":
        period = 2 * length - 2
        period = period.clamp(min=1) if isinstance(period, Tensor) else max(period, 1)
    last = period - 1 if border == "reflect" else period
    index = index.remainder(period)
    return torch.minimum(index, last - index), None


def _clip(index: Tensor, length: int | Tensor) -> Tensor:
    """index and length (...): the index between 0 and length - 1."""
    if isinstance(length, Tensor):
        return torch.minimum(index.clamp(min=0), length - 1)
    return index.clamp(0, length - 1)
