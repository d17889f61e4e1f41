"""The weights of the taps along one axis and their derivatives, as in `rules.axis_weights`.

In float64, each rounded once; without branches or calls, so that all of it is vectorised.
"""

from __future__ import annotations

import math

import numpy as np

from warpkit.engine.backends.cpu.runtime.compiler import inline
from warpkit.engine.backends.cpu.runtime.scratch import PIXELS, TILE
from warpkit.engine.sampling.rules import CUBIC_A

QUARTER = math.pi / 4

HALF = math.sqrt(0.5)
TURN_SIN = (HALF, 1.0, HALF, 0.0, -HALF, -1.0, -HALF, 0.0)
TURN_COS = (-HALF, 0.0, HALF, 1.0, HALF, 0.0, -HALF, -1.0)
"""Sine and cosine of pi (3 - k) / 4 for the taps k of lanczos4."""


# Each takes the fractions along one axis and fills the weights; if `sloped`, the derivatives too.
# A view for each plane: two stores into one array, as far apart as these, cost ten times more.


@inline
def weigh_one(shape, fraction, weight):
    """Nearest."""
    for p in range(TILE * shape[1]):
        weight[p] = 1.0


@inline
def weigh_two(shape, fraction, weight):
    """Bilinear; the derivatives are -1 and 1."""
    w0, w1 = weight[:PIXELS], weight[PIXELS:]
    for r in range(shape[1]):
        for c in range(shape[0]):
            p = np.uint64(TILE * r + c)
            t = fraction[p]
            w0[p], w1[p] = 1.0 - t, t


@inline
def weigh_four(shape, fraction, weight, slope, sloped):
    """Bicubic."""
    w0, w1 = weight[:PIXELS], weight[PIXELS:]
    w2, w3 = weight[2 * PIXELS :], weight[3 * PIXELS :]
    for r in range(shape[1]):
        for c in range(shape[0]):
            p = np.uint64(TILE * r + c)
            t = fraction[p]
            w0[p], w1[p] = cubic_far(1.0 + t), cubic_near(t)
            w2[p], w3[p] = cubic_near(1.0 - t), cubic_far(2.0 - t)
            if sloped:
                slope[p] = cubic_far_slope(1.0 + t)
                slope[p + np.uint64(PIXELS)] = cubic_near_slope(t)
                slope[p + np.uint64(2 * PIXELS)] = -cubic_near_slope(1.0 - t)
                slope[p + np.uint64(3 * PIXELS)] = -cubic_far_slope(2.0 - t)


@inline
def weigh_eight(shape, fraction, weight, slope, sloped):
    """Lanczos."""
    for r in range(shape[1]):
        for c in range(shape[0]):
            p = np.uint64(TILE * r + c)
            lanczos(weight, slope, p, fraction[p], sloped)


@inline
def cubic_near(d):
    """Keys' cubic within a pixel."""
    return ((CUBIC_A + 2) * d - (CUBIC_A + 3)) * d * d + 1


@inline
def cubic_far(d):
    """Keys' cubic from one pixel to two."""
    return ((CUBIC_A * d - 5 * CUBIC_A) * d + 8 * CUBIC_A) * d - 4 * CUBIC_A


@inline
def cubic_near_slope(d):
    """The derivative of cubic_near."""
    return (3 * (CUBIC_A + 2) * d - 2 * (CUBIC_A + 3)) * d


@inline
def cubic_far_slope(d):
    """The derivative of cubic_far."""
    return (3 * CUBIC_A * d - 10 * CUBIC_A) * d + 8 * CUBIC_A


@inline
def sine(x):
    """sin x for |x| <= pi / 4: the series to x^15, below 1e-16."""
    s = x * x
    r = 1 - s / 210 * (1 - s / 272)  # the last terms; each factor is one term over the one before
    r = 1 - s / 110 * (1 - s / 156 * r)
    return x * (1 - s / 6 * (1 - s / 20 * (1 - s / 42 * (1 - s / 72 * r))))


@inline
def cosine(x):
    """cos x for |x| <= pi / 4: the series to x^14, below 1e-15."""
    s = x * x
    r = 1 - s / 90 * (1 - s / 132 * (1 - s / 182))
    return 1 - s / 2 * (1 - s / 12 * (1 - s / 30 * (1 - s / 56 * r)))


@inline
def lanczos(weight, slope, p, t, sloped):
    """sinc(d) sinc(d / 4) at d = t + 3 - k over the sum of all eight.

    The sines of the distances follow from those of pi t / 4: sin(pi d) is +-sin(pi t), and
    sin(pi d / 4) turns by an eighth of a circle with each tap.
    """
    s, c = sine(QUARTER * t), cosine(QUARTER * t)
    sin2, cos2 = 2 * s * c, 1 - 2 * s * s
    sin4, cos4 = 2 * sin2 * cos2, 1 - 2 * sin2 * sin2
    total = total_slope = 0.0
    for k in range(8):
        m = 3 - k  # d = t + m
        sin_d = s * TURN_COS[k] + c * TURN_SIN[k]
        cos_d = c * TURN_COS[k] - s * TURN_SIN[k]
        odd = 1.0 if m % 2 == 0 else -1.0
        value, value_slope = lobe(t + m, odd * sin4, odd * cos4, sin_d, cos_d)
        q = p + np.uint64(k * PIXELS)
        weight[q] = value
        total += value
        if sloped:
            slope[q] = value_slope
            total_slope += value_slope
    for k in range(8):
        q = p + np.uint64(k * PIXELS)
        normal = weight[q] / total
        weight[q] = normal
        if sloped:
            slope[q] = (slope[q] - normal * total_slope) / total


@inline
def lobe(d, sin4, cos4, sin1, cos1):
    """sinc(d) sinc(d / 4) and its derivative, from sines and cosines of pi d and pi d / 4.

    With s4 = sin(pi d), c4 = cos(pi d), s1 = sin(pi d / 4), c1 = cos(pi d / 4):

        value = 4 s4 s1 / (pi d)^2
        slope = 4 (pi c4 s1 + (pi / 4) s4 c1) / (pi d)^2 - 2 value / d

    Both lose all digits as d goes to 0: below 1e-2 the series of the product stands for them,
    1 - (17 / 96) z + (1/120 + 1/576 + 1/30720) z^2 with z = (pi d)^2, whose first missing term is
    below 1e-12. The eight distances of a position differ by whole numbers, so that sin(pi d) is the
    same but for its sign and sin(pi d / 4) turns by an eighth of a circle: `lanczos` takes one sine
    and one cosine for all. The same as `rules._lanczos`, but for rounding.
    """
    small = abs(d) < 1e-2
    per = math.pi * math.pi
    z = per * d * d
    second, fourth = 17 / 96, 1 / 120 + 1 / 576 + 1 / 30720
    series = 1 - z * second + z * z * fourth
    series_slope = per * d * (-2 * second + 4 * z * fourth)
    e = 1.0 if small else d
    scale = 4 / (per * e * e)
    value = sin4 * sin1 * scale
    change = (math.pi * cos4 * sin1 + QUARTER * sin4 * cos1) * scale - 2 * value / e
    return (series if small else value), (series_slope if small else change)
