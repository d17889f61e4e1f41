"""The distortion formulas: from an ideal direction (x, y, 1) to the distorted one.

Everything is float64 and broadcasts; a lens's numbers have the shape of its batch with dimensions
of 1 for the points. Both models scale a direction by a function of q = x^2 + y^2; brown adds terms
that are not symmetric about the centre, and then the sensor's tilt.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.core import exports
from warpkit.engine.definitions.maps import adjugate, determinant, matrix_of, rows_at

TILTED = 14
"""The number of coefficients of a lens whose sensor may be tilted."""

COUNTS = {"brown": (4, 5, 8, 12, 14), "fisheye": (4,)}
"""Models, and how many coefficients each may have."""

SERIES_BELOW = 1e-2
"""Below this q, the series of atan(r) / r to q^8 is used, which is exact to 1e-17 there. The
formula is 0 / 0 at 0."""

POLE = 1e-100
"""Replaces a denominator of 0, whose neighbours are 1e-16: the distorted point is beyond every
image, and its second derivatives stay finite, so that 0 times them is 0."""

LARGEST = 1e30
"""LAPACK finds no eigenvalues of some larger numbers; the fold of such a lens is at its centre."""


class Lens(NamedTuple):
    """A camera's numbers, each of the batch's shape (...), float64."""

    model: str
    fx: Tensor
    fy: Tensor
    cx: Tensor
    cy: Tensor
    k: tuple[Tensor, ...]
    """The coefficients given, in OpenCV's order."""

    def beside(self, ndim: int) -> Lens:
        """The same with `ndim` dimensions of 1 more at the end, to broadcast with points."""
        at = (..., *(None,) * ndim)
        fx, fy, cx, cy, *k = (value[at] for value in self.tensors())
        return Lens(self.model, fx, fy, cx, cy, tuple(k))

    def detach(self) -> Lens:
        """The same without gradients."""
        fx, fy, cx, cy, *k = (value.detach() for value in self.tensors())
        return Lens(self.model, fx, fy, cx, cy, tuple(k))

    # not a property: Dynamo of torch 2.7 does not support properties of a NamedTuple
    def tensors(self) -> tuple[Tensor, ...]:
        """All of its numbers."""
        return (self.fx, self.fy, self.cx, self.cy, *self.k)


def packed(lens: Lens) -> Tensor:
    """All of a lens's numbers in one tensor (..., 4 + n): fx, fy, cx, cy, coefficients."""
    return torch.stack(torch.broadcast_tensors(*lens.tensors()), dim=-1)


def unpacked(model: str, numbers: Tensor) -> Lens:
    """The lens of `packed` numbers (..., 4 + n)."""
    fx, fy, cx, cy, *k = numbers.unbind(-1)
    return Lens(model, fx, fy, cx, cy, tuple(k))


def distort(lens: Lens, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Distorted directions of ideal ones (x, y), of the same shape, including the tilt.

    x and y (...), directions: the pixel minus the centre, divided by the focal length.
    """
    u, v = bend(lens, x, y)
    if len(lens.k) < TILTED:
        return u, v
    a, b, w = rows_at(tilt(lens), u, v)
    per = 1 / torch.where(w == 0, 1.0, w)  # as in OpenCV
    return per * a, per * b


def untilt(lens: Lens, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Distorted directions without the sensor's tilt; NaN beyond its horizon.

    u and v (...), directions. The solver handles the NaN.
    """
    if len(lens.k) < TILTED:
        return u, v
    matrix = tilt(lens)
    a, b, w = rows_at(adjugate(matrix) / determinant(matrix)[..., None, None], u, v)
    ahead = w > 0
    per = 1 / torch.where(ahead, w, 1.0)
    return torch.where(ahead, per * a, torch.nan), torch.where(ahead, per * b, torch.nan)


def to_pixels(lens: Lens, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Convert directions to pixels of the camera.

    u and v (...), directions.
    """
    return lens.fx * u + lens.cx, lens.fy * v + lens.cy


def from_pixels(lens: Lens, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Convert pixels of the camera to directions.

    x and y (...), pixels.
    """
    return (x - lens.cx) / lens.fx, (y - lens.cy) / lens.fy


def bend(lens: Lens, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """`distort` without the tilt, in OpenCV's order of operations.

    x and y (...), directions.
    """
    xx, yy = x * x, y * y
    q = xx + yy
    factor = _radial(lens, q)[0]
    u, v = x * factor, y * factor
    if lens.model == "fisheye":
        return u, v
    p1, p2 = lens.k[2:4]
    xy = 2 * x * y
    u, v = u + p1 * xy + p2 * (q + 2 * xx), v + p1 * (q + 2 * yy) + p2 * xy
    if len(lens.k) >= 12:
        s1, s2, s3, s4 = lens.k[8:12]
        u, v = u + s1 * q + s2 * q * q, v + s3 * q + s4 * q * q
    return u, v


def slopes(lens: Lens, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The derivative of `bend`: du/dx, du/dy, dv/dx, dv/dy."""
    q = x * x + y * y
    factor, slope = _radial(lens, q)
    cross = 2 * x * y * slope
    ux, uy = factor + 2 * x * x * slope, cross
    vx, vy = cross, factor + 2 * y * y * slope
    if lens.model == "fisheye":
        return ux, uy, vx, vy
    p1, p2 = lens.k[2:4]
    both = 2 * p1 * x + 2 * p2 * y
    ux, uy = ux + 2 * p1 * y + 6 * p2 * x, uy + both
    vx, vy = vx + both, vy + 6 * p1 * y + 2 * p2 * x
    if len(lens.k) >= 12:
        s1, s2, s3, s4 = lens.k[8:12]
        s, t = 2 * (s1 + 2 * s2 * q), 2 * (s3 + 2 * s4 * q)
        ux, uy, vx, vy = ux + x * s, uy + y * s, vx + x * t, vy + y * t
    return ux, uy, vx, vy


def is_radial(lens: Lens) -> Tensor:
    """Whether the distortion is purely radial, of the lens's shape."""
    others = () if lens.model == "fisheye" else (*lens.k[2:4], *lens.k[8:12])
    result = torch.ones_like(lens.k[0], dtype=torch.bool)
    for value in others:
        result = result & (value == 0)
    return result


def fold(lens: Lens) -> tuple[Tensor, Tensor]:
    """Where the radial part first folds or becomes infinite: q there, and the distorted radius.

    Both are infinite if it never does; a fisheye ends at 90 degrees, where q is infinite.
    """
    one, zero = torch.ones_like(lens.k[0]), torch.zeros_like(lens.k[0])
    if lens.model == "fisheye":
        odd = [(2 * i + 3) * k for i, k in enumerate(lens.k)]
        square = first_root([one, *odd])  # the squared angle
        ends = square < (math.pi / 2) ** 2
        angle = torch.where(ends, square, (math.pi / 2) ** 2).sqrt()
        q = torch.where(ends, angle.tan().square(), torch.inf)
        return q, angle * _polynomial([one, *lens.k], angle * angle)
    k1, k2, _, _, k3, k4, k5, k6 = (*lens.k, *(zero,) * 8)[:8]
    top, bottom = [one, k1, k2, k3], [one, k4, k5, k6]
    # the sign of the derivative of r f(r^2), f = top / bottom, is that of a polynomial in q
    slope = _product(top, bottom)
    for sign, pair in ((2, (_times_slope(top), bottom)), (-2, (top, _times_slope(bottom)))):
        slope = [a + sign * b for a, b in zip(slope, _product(*pair), strict=True)]
    folds, pole = first_root(slope), first_root(bottom)
    finite = folds < pole
    safe = torch.where(finite, folds, 0.0)
    shown_radius = safe.sqrt() * _polynomial(top, safe) / _polynomial(bottom, safe)
    return torch.minimum(folds, pole), torch.where(finite, shown_radius, torch.inf)


def _radial(lens: Lens, q: Tensor) -> tuple[Tensor, Tensor]:
    """The factor f(q) of both models, and its derivative."""
    if lens.model == "fisheye":
        return _fisheye(lens.k, q)
    k1, k2 = lens.k[:2]
    top, slope = 1 + (k2 * q + k1) * q, 2 * k2 * q + k1
    if len(lens.k) >= 5:
        k3 = lens.k[4]
        top, slope = 1 + ((k3 * q + k2) * q + k1) * q, (3 * k3 * q + 2 * k2) * q + k1
    if len(lens.k) < 8:
        return top, slope
    k4, k5, k6 = lens.k[5:8]
    bottom = 1 + ((k6 * q + k5) * q + k4) * q
    bottom = torch.where(bottom == 0, POLE, bottom)
    factor = top / bottom
    return factor, (slope - factor * ((3 * k6 * q + 2 * k5) * q + k4)) / bottom


def _fisheye(k: tuple[Tensor, ...], q: Tensor) -> tuple[Tensor, Tensor]:
    """(1 + k1 t^2 + ... + k4 t^8) t / r, t = atan(r), r^2 = q; its derivative with respect to q.

    q (...) and each of k, which broadcast.
    """
    small = q < SERIES_BELOW
    series, series_slope = torch.zeros_like(q), torch.zeros_like(q)
    near = torch.where(small, q, 0.0)  # both sides of torch.where get a gradient
    for i in reversed(range(9)):
        sign = (-1) ** i / (2 * i + 1)
        series = series * near + sign
        if i > 0:
            series_slope = series_slope * near + i * sign
    far = torch.where(small, 1.0, q)
    root = far.sqrt()
    part = exports.atan(root) / root
    ratio = torch.where(small, series, part)
    ratio_slope = torch.where(small, series_slope, (1 / (1 + far) - part) / (2 * far))
    square = q * ratio * ratio  # the squared angle
    square_slope = ratio * ratio + 2 * q * ratio * ratio_slope
    k1, k2, k3, k4 = k
    bent = 1 + (((k4 * square + k3) * square + k2) * square + k1) * square
    bent_slope = ((4 * k4 * square + 3 * k3) * square + 2 * k2) * square + k1
    return ratio * bent, ratio_slope * bent + ratio * bent_slope * square_slope


def tilt(lens: Lens) -> Tensor:
    """The perspective of a lens's tilted sensor: (..., 3, 3)."""
    return tilt_by(*lens.k[12:14])


def tilt_by(tx: Tensor, ty: Tensor) -> Tensor:
    """The perspective of a sensor tilted by tx about x, then by ty about y: (..., 3, 3)."""
    one, zero = torch.ones_like(tx), torch.zeros_like(tx)
    (cx, sx), (cy, sy) = ((t.cos(), t.sin()) for t in (tx, ty))
    about_x = matrix_of(((one, zero, zero), (zero, cx, sx), (zero, -sx, cx)))
    about_y = matrix_of(((cy, zero, -sy), (zero, one, zero), (sy, zero, cy)))
    turn = about_y @ about_x
    a, b, c = turn[..., 2, 2], turn[..., 0, 2], turn[..., 1, 2]
    return matrix_of(((a, zero, -b), (zero, a, -c), (zero, zero, one))) @ turn


def through_tilt(angles: Tensor, grad: Tensor) -> Tensor:
    """The gradient of a sensor's angles, (..., 2), from that of their perspectives, (..., 3, 3)."""
    angles = angles.nan_to_num(0, 0, 0)  # the field of others is NaN, and has no gradient
    angles = angles.expand(*grad.shape[:-2], 2).requires_grad_()
    with torch.enable_grad():
        tilted = tilt_by(*angles.unbind(-1))
    return torch.autograd.grad(tilted, angles, grad)[0]


def _polynomial(coefficients: list[Tensor], at: Tensor) -> Tensor:
    """Evaluate a polynomial, lowest power first.

    coefficients and `at` (...), which broadcast.
    """
    total = torch.zeros_like(at)
    for coefficient in reversed(coefficients):
        total = total * at + coefficient
    return total


def _product(a: list[Tensor], b: list[Tensor]) -> list[Tensor]:
    """The product of two polynomials of equal coefficients (...), lowest power first."""
    result = [torch.zeros_like(a[0])] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            result[i + j] = result[i + j] + x * y
    return result


def _times_slope(coefficients: list[Tensor]) -> list[Tensor]:
    """q times the derivative with respect to q."""
    return [i * c for i, c in enumerate(coefficients)]


def first_root(coefficients: list[Tensor]) -> Tensor:
    """The smallest positive root of 1 + c1 q + c2 q^2 + ..., infinite if there is none.

    1 / q is an eigenvalue of the companion matrix, which needs no highest power.
    """
    exports.refuse(
        "warpkit.camera",
        "because inverting a lens takes an unknown number of iterations",
        "make the points before the export, by distort_map or undistort_points, and pass them to "
        "remap or to the model",
    )
    one, *others = torch.broadcast_tensors(*coefficients)
    n = len(others)
    first = -torch.stack(others, dim=-1)
    first = torch.where(first.isfinite(), first, 0.0).clamp(-LARGEST, LARGEST)
    below = torch.eye(n, dtype=first.dtype, device=first.device)[:-1]
    companion = torch.cat((first[..., None, :], below.expand(*one.shape, n - 1, n)), dim=-2)
    roots = torch.linalg.eigvals(companion)
    real = roots.imag.abs() <= 1e-7 * roots.abs()
    largest = torch.where(real & (roots.real > 0), roots.real, 0.0).amax(-1)
    return torch.where(largest > 0, 1 / largest, torch.inf)
