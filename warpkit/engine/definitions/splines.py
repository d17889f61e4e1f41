"""Splines through the pixels: the filter that makes coefficients of pixels, and their weights.

The B-spline of order n has pieces of degree n, and n - 1 continuous derivatives. A picture is a sum
of them, one at each pixel, times coefficients, which are such that the sum passes through the
pixels. Pixels become coefficients by a recursive filter, whose impulse response is a sum of a z^|j|
over the poles z of its order. The border continues the row of pixels without end; then the
coefficients are continued in the same way, but for one case. Under replicate and constant the row
is continued by 12 pixels, which the filter folds, as in SciPy, so that the coefficients are n + 24.

    border                       before the filter      filter         taps beyond
    reflect, reflect_101, wrap   nothing                of the border  folded
    replicate                    12 pixels of the end   reflect        the last coefficient
    constant                     12 pixels of value 0   reflect_101    0: the value is subtracted
"""

from __future__ import annotations

import math
from functools import cache, reduce

import torch
from torch import Tensor

from warpkit.engine.definitions.bounds import at_least_zero

ORDERS = {"bilinear": 1, "spline2": 2, "spline3": 3, "spline4": 4, "spline5": 5}
"""The interpolations by B-splines, and their orders."""

CONTINUED = 12
"""The pixels by which replicate and constant continue a row before the filter: SciPy's number."""

FILTER_BORDERS = {"replicate": "reflect", "constant": "reflect_101"}
"""What folds a row that was continued before."""

NEGLIGIBLE = {torch.float32: 1e-8, torch.float64: 1e-17}
"""The weight of a pixel, as a part of the largest, that sums of a type do not notice."""

_ROOT = math.sqrt
POLES = {
    1: (),
    2: (_ROOT(8) - 3,),
    3: (_ROOT(3) - 2,),
    4: (
        _ROOT(664 - _ROOT(438976)) + _ROOT(304) - 19,
        _ROOT(664 + _ROOT(438976)) - _ROOT(304) - 19,
    ),
    5: (
        _ROOT(67.5 - _ROOT(4436.25)) + _ROOT(26.25) - 6.5,
        _ROOT(67.5 + _ROOT(4436.25)) - _ROOT(26.25) - 6.5,
    ),
}
"""The poles of each order's filter, the slowest first."""


def is_spline(interpolation: str) -> bool:
    """Whether the interpolation needs the filter."""
    return ORDERS.get(interpolation, 0) > 1


def continued(border: str) -> int:
    """The pixels by which a border continues a row before the filter."""
    return CONTINUED if border in FILTER_BORDERS else 0


def reach(order: int, dtype: torch.dtype) -> int:
    """The number of pixels on each side that have weights in sums of a type."""
    if order < 2:
        return 1
    return math.ceil(math.log(NEGLIGIBLE[dtype]) / math.log(-POLES[order][0]))


@cache
def residues(order: int) -> tuple[tuple[float, float], ...]:
    """Pairs (a, z): the filter's impulse response at j is the sum of a z^|j|."""
    poles = POLES[order]
    gain = math.prod([(1 - z) ** 2 for z in poles])
    terms = []
    for z in poles:
        others = [(1 + u * u) - u * (1 + z * z) / z for u in poles if u != z]
        terms.append((gain / ((1 - z * z) * math.prod(others)), z))
    return tuple(terms)


def impulse(order: int, distance: Tensor) -> Tensor:
    """The filter's response at whole distances (...), of either sign."""
    if order < 2:
        return (distance == 0).to(distance.dtype)
    away = distance.abs()
    # a power of a negative number, by its sign: torch's power of tensors has no other
    signs = 1 - 2 * away.remainder(2)
    return sum((a * signs * (-z) ** away for a, z in residues(order)), torch.zeros_like(away))


def bspline(order: int, distance: Tensor) -> Tensor:
    """The B-spline at distances (...) of at least 0, by truncated powers; NaN at NaN."""
    half = (order + 1) / 2
    total = torch.zeros_like(distance)
    for k in range(math.ceil(half)):
        above = at_least_zero(half - k - distance)
        power = reduce(torch.mul, [above] * order)
        total = total + (-1) ** k * math.comb(order + 1, k) * power
    return total / math.factorial(order)


def weights(t: Tensor, order: int) -> list[Tensor]:
    """The weights of the 2, 4 or 6 coefficients around a position with fraction 0 <= t <= 1.

    t (...). Of even orders, whose pieces meet halfway between pixels, one of the outer two is 0.
    The coefficient at or before the position has what the others leave of 1: see
    `rules.axis_weights`.
    """
    half = order // 2 + 1
    before = [bspline(order, half - 1 - k + t) for k in range(half - 1)]
    after = [bspline(order, k + 1 - t) for k in range(half)]
    others = [*before, *after]
    return [*before, 1 - sum(others[1:], others[0]), *after]
