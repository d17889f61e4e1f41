"""The weights of the taps along one axis and their slopes, as in `rules.axis_weights`.

In products the tensor comes before the constant: the interpreter supports no other order.
"""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false
# Triton's loops have no types

from __future__ import annotations

import math

import triton
import triton.language as tl

from warpkit.engine.definitions.rules import CODE, CUBIC_A
from warpkit.engine.triton.positions import MISSING, resolve

NEAREST = tl.constexpr(CODE["nearest"])
BILINEAR = tl.constexpr(CODE["bilinear"])
BICUBIC = tl.constexpr(CODE["bicubic"])
LANCZOS4 = tl.constexpr(CODE["lanczos4"])
SPLINE3 = tl.constexpr(CODE["spline3"])
SPLINE5 = tl.constexpr(CODE["spline5"])
A = tl.constexpr(CUBIC_A)
PI = tl.constexpr(math.pi)
QUARTER = tl.constexpr(math.pi / 4)
LOBES = tl.constexpr(4 / math.pi**2)
SECOND = tl.constexpr(17 / 96)
FOURTH = tl.constexpr(1 / 120 + 1 / 576 + 1 / 30720)


@triton.jit
def weigh(t, k, norm, WAY: tl.constexpr):
    """The weight of tap k at the fraction t, and its slope; `norm` comes from `normalize`.

    k is a number or a tensor; the compiler removes unused results.
    """
    if WAY == NEAREST:
        return t * 0 + 1, t * 0
    if WAY == BILINEAR:
        return k * t + (1 - k) * (1 - t), t * 0 + (2 * k - 1)
    if WAY == BICUBIC:
        return cubic(t + 1 - k)
    if WAY == SPLINE3:
        return spline3(t + 1 - k)
    if WAY == SPLINE5:
        return spline5(t + 2 - k)
    per, total_slope = norm
    value, slope = lobe(t, k)
    value = value * per
    return value, (slope - value * total_slope) * per


@triton.jit
def weight_apart(u, taps, TAPS: tl.constexpr, WAY: tl.constexpr):
    """The weight of a pixel at distance u to the left of a point, arbitrary if it is no tap."""
    if WAY == BILINEAR:
        return 1 - tl.abs(u)
    if WAY == BICUBIC:
        return cubic(u)[0]
    if WAY == SPLINE3:
        return spline3(u)[0]
    if WAY == SPLINE5:
        return spline5(u)[0]
    u = tl.where(taps, u, 0.0)
    before = tl.floor(u)
    t = u - before
    return weigh(t, TAPS // 2 - 1 - before.to(tl.int32), normalize(t, WAY), WAY)[0]


@triton.jit
def cubic(signed):
    """Keys' cubic and its slope at a signed distance."""
    d = tl.abs(signed)
    near = (d * (A + 2) - (A + 3)) * d * d + 1
    near_slope = (d * (3 * (A + 2)) - 2 * (A + 3)) * d
    # factored: the sum of powers cancels 24 to 0, which costs float32 a digit
    far = (d - 1) * (d - 2) * (d - 2) * A
    far_slope = (d - 2) * (d * 3 - 4) * A
    slope = tl.where(d <= 1, near_slope, far_slope)
    return tl.where(d <= 1, near, far), tl.where(signed < 0, -slope, slope)


@triton.jit
def spline3(signed):
    """The B-spline of degree 3 and its slope at a signed distance of up to 2."""
    d = tl.abs(signed)
    left = 2 - d
    near, near_slope = (d * 0.5 - 1) * d * d + 2 / 3, (d * 1.5 - 2) * d
    far, far_slope = left * left * left * (1 / 6), left * left * -0.5
    slope = tl.where(d <= 1, near_slope, far_slope)
    return tl.where(d <= 1, near, far), tl.where(signed < 0, -slope, slope)


@triton.jit
def spline5(signed):
    """The B-spline of degree 5 and its slope at a signed distance of up to 3."""
    d = tl.abs(signed)
    s = d * d
    near = s * (s * (d * (-1 / 12) + 0.25) - 0.5) + 11 / 20
    near_slope = d * (s * (d * (-5 / 12) + 1) - 1)
    y = 2 - d
    middle = ((((1 - y) * y + 2) * y + 2) * y + 1) * y * (1 / 24) + 1 / 120
    middle_slope = ((((y * -5 + 4) * y + 6) * y + 4) * y + 1) * (-1 / 24)
    left = 3 - d
    fourth = left * left * left * left
    far, far_slope = fourth * left * (1 / 120), fourth * (-1 / 24)
    value = tl.where(d <= 1, near, tl.where(d <= 2, middle, far))
    slope = tl.where(d <= 1, near_slope, tl.where(d <= 2, middle_slope, far_slope))
    return value, tl.where(signed < 0, -slope, slope)


@triton.jit
def lobe(t, k):
    """sinc(d) sinc(d / 4) at d = t + 3 - k, and its slope."""
    d = t + 3 - k
    small = tl.abs(d) < 1e-2
    z = d * d * (PI * PI)
    series = 1 - z * SECOND + z * z * FOURTH
    series_slope = d * (PI * PI) * (z * (4 * FOURTH) - 2 * SECOND)
    e = tl.where(small, 1.0, d)
    odd = 2 * (k % 2) - 1  # sin(pi d) = odd sin(pi t)
    sin4, cos4 = odd * tl.sin(t * PI), odd * tl.cos(t * PI)
    sin1, cos1 = tl.sin(e * QUARTER), tl.cos(e * QUARTER)
    scale = 1 / (e * e) * LOBES
    value = sin4 * sin1 * scale
    slope = (cos4 * sin1 * PI + sin4 * cos1 * QUARTER) * scale - 2 * value / e
    return tl.where(small, series, value), tl.where(small, series_slope, slope)


@triton.jit
def normalize(t, WAY: tl.constexpr):
    """The factor that makes lanczos4's weights sum to 1, 1 / total, and the total's slope."""
    total, total_slope = t * 0, t * 0
    if WAY == LANCZOS4:
        for k in tl.static_range(8):
            value, slope = lobe(t, k)
            total, total_slope = total + value, total_slope + slope
    return 1 / tl.where(total == 0, 1.0, total), total_slope


@triton.jit
def tap_coverage(
    first, t, norm, length, TAPS: tl.constexpr, WAY: tl.constexpr, BORDER: tl.constexpr
):
    """Along one axis: whether any tap is inside, whether all are, and the sum of their weights."""
    total = t * 0 + 1
    some, every = first == first, first == first
    if (MISSING >> BORDER) & 1:
        total, some = t * 0, first != first
        for k in tl.static_range(TAPS):
            inside = resolve(first, k, length, BORDER)[1]
            some, every = some | inside, every & inside
            total += tl.where(inside, weigh(t, k, norm, WAY)[0], 0.0)
    return some, every, total
