"""Lenses in kernels, in float64: where they show directions, and the derivatives of that.

The formulas are those of `definitions/lens_models.py` and `definitions/lens_rays.py`. A lens is a
row of numbers: fx, fy, cx, cy, the coefficients, from `TILT` on the perspective of its sensor, and
at `END` how far it shows directions once.
"""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false, reportOperatorIssue=false

from __future__ import annotations

import triton
import triton.language as tl

from warpkit.engine.definitions import finite, lens_models, lens_rays

K, TILT, POSE, OWN, END, SOUND = (tl.constexpr(n) for n in (4, 18, 27, 39, 43, 44))
"""The first positions of an item's coefficients and tilt, of a pose and the view's camera, of the
lens's end, and of whether all are finite."""
FISHEYE = tl.constexpr(-1)
"""In place of a number of coefficients."""

FARTHEST = tl.constexpr(finite.FARTHEST)
POLE = tl.constexpr(lens_models.POLE)
SMALL = tl.constexpr(lens_rays.SMALL)
HALF_TURN = tl.constexpr(3.141592653589793)


@triton.jit
def near(x):
    """Whether directions are not too far out; false for NaN."""
    return tl.abs(x) < FARTHEST


@triton.jit
def bent(k, x, y, COUNT: tl.constexpr):
    """`lens_models.bend` and its slopes ux, uy, vx, vy; the radial factor and its denominator.

    x, y: ideal directions of a brown lens of COUNT coefficients, of which k points to the first.
    """
    k1, k2, p1, p2 = tl.load(k), tl.load(k + 1), tl.load(k + 2), tl.load(k + 3)
    xx, yy = x * x, y * y
    q = xx + yy
    factor, slope, bottom = 1 + (k2 * q + k1) * q, 2 * k2 * q + k1, q * 0 + 1
    if COUNT >= 5:
        k3 = tl.load(k + 4)
        factor = 1 + ((k3 * q + k2) * q + k1) * q
        slope = (3 * k3 * q + 2 * k2) * q + k1
    if COUNT >= 8:
        k4, k5, k6 = tl.load(k + 5), tl.load(k + 6), tl.load(k + 7)
        bottom = 1 + ((k6 * q + k5) * q + k4) * q
        bottom = tl.where(bottom == 0, POLE, bottom)
        factor = factor / bottom
        slope = (slope - factor * ((3 * k6 * q + 2 * k5) * q + k4)) / bottom
    xy, cross, both = 2 * x * y, 2 * x * y * slope, 2 * p1 * x + 2 * p2 * y
    u = x * factor + p1 * xy + p2 * (q + 2 * xx)
    v = y * factor + p1 * (q + 2 * yy) + p2 * xy
    ux = factor + 2 * xx * slope + 2 * p1 * y + 6 * p2 * x
    vy = factor + 2 * yy * slope + 6 * p1 * y + 2 * p2 * x
    uy, vx = cross + both, cross + both
    if COUNT >= 12:
        s1, s2, s3, s4 = tl.load(k + 8), tl.load(k + 9), tl.load(k + 10), tl.load(k + 11)
        u, v = u + s1 * q + s2 * q * q, v + s3 * q + s4 * q * q
        s, t = 2 * (s1 + 2 * s2 * q), 2 * (s3 + 2 * s4 * q)
        ux, uy, vx, vy = ux + x * s, uy + y * s, vx + x * t, vy + y * t
    return u, v, ux, uy, vx, vy, factor, bottom


@triton.jit
def tilted(m, u, v):
    """u and v behind the perspective of a sensor, and 1 / its third number, 0 for 0."""
    a = tl.load(m) * u + tl.load(m + 1) * v + tl.load(m + 2)
    b = tl.load(m + 3) * u + tl.load(m + 4) * v + tl.load(m + 5)
    w = tl.load(m + 6) * u + tl.load(m + 7) * v + tl.load(m + 8)
    per = 1 / tl.where(w == 0, 1.0, w)  # as in OpenCV
    return per * a, per * b, tl.where(w == 0, 0.0, per), tl.where(w == 0, 1.0, per)


@triton.jit
def ideal_of(row, x, y, z, good, COUNT: tl.constexpr):
    """The ideal directions of (x, y, z), 1 / z, and which of them a brown lens shows."""
    ahead = good & (z > 0)
    per = 1 / tl.where(ahead, z, 1.0)
    a, b = x * per, y * per
    good = ahead & near(a) & near(b)
    a, b, per = tl.where(good, a, 0.0), tl.where(good, b, 0.0), tl.where(good, per, 1.0)
    if COUNT > 0:
        good = good & (a * a + b * b < tl.load(row + END))
        for part in tl.static_range(1, 5):  # the part that is not radial may fold earlier
            _, _, ux, uy, vx, vy, _, _ = bent(row + K, a * (part / 4), b * (part / 4), COUNT)
            good = good & (ux * vy - uy * vx > 0)
        a, b = tl.where(good, a, 0.0), tl.where(good, b, 0.0)
    return a, b, per, good


@triton.jit
def arctangent(x):
    """atan(x) for x >= 0, and 90 degrees for infinity, to two units in the last place (Cephes)."""
    far, middle = x > 2.414213562373095, x > 0.66
    low = tl.where(middle, (x - 1) / (x + 1), x)
    t = tl.where(far, -1 / tl.where(far, x, 1.0), low)
    z = t * t
    top = (-0.8750608600031904 * z - 16.157537187333652) * z - 75.00855792314705
    top = (top * z - 122.88666844901361) * z - 64.85021904942025
    bottom = (z + 24.858464901423062) * z + 165.02700983169885
    bottom = ((bottom * z + 432.88106049129027) * z + 485.3903996359137) * z + 194.5506571482614
    start = tl.where(middle, HALF_TURN / 4, z * 0)  # of two numbers it would be float32
    start = tl.where(far, HALF_TURN / 2, start)
    return start + (t + t * (z * top / bottom))


@triton.jit
def fisheye_at(row, x, y, z, good):
    """A fisheye at directions (x, y, z).

    The factor of (x, y), half its derivative by x^2 + y^2, that by z, the angle over the radius,
    the squared angle, and which directions it shows.
    """
    k = row + K
    k1, k2, k3, k4 = tl.load(k), tl.load(k + 1), tl.load(k + 2), tl.load(k + 3)
    square = x * x + y * y
    ahead = z > 0
    none = (square == 0) & (z <= 0)  # straight back, or no direction
    small = ahead & (square < SMALL * (z * z))
    depth = tl.where(small, z, 1.0)
    t = tl.where(small, square, 0.0) / (depth * depth)
    series, series_slope = t * 0 + 1 / 17, t * 0 + 8 / 17
    for i in tl.static_range(7, 0, -1):
        series = series * t + (1 - 2 * (i % 2)) / (2 * i + 1)
        series_slope = series_slope * t + i * (1 - 2 * (i % 2)) / (2 * i + 1)
    series = series * t + 1
    whole = tl.where(small | none, 1.0, square)
    r, forward = tl.sqrt(whole), tl.where(small, 1.0, z)
    angle = arctangent(r / tl.abs(forward))
    angle = tl.where(forward < 0, HALF_TURN - angle, angle)
    ratio = tl.where(small, series / depth, angle / r)
    p = tl.where(small, t * series * series, angle * angle)
    good = good & (p < tl.load(row + END)) & ((square != 0) | (z > 0))
    b = 1 + (((k4 * p + k3) * p + k2) * p + k1) * p
    slope = ((4 * k4 * p + 3 * k3) * p + 2 * k2) * p + k1
    factor = tl.where(good, ratio * b, 0.0)
    close = series_slope * b + series * slope * (series * series + 2 * t * series * series_slope)
    turn = (b + 2 * p * slope) / (square + tl.where(none, 1.0, z * z))
    along = tl.where(small, 2 * close / (depth * depth * depth), (z * turn - factor) / whole)
    return factor, tl.where(good, along, 0.0), tl.where(good, -turn, 0.0), ratio, p, good
