"""Directions that lenses show: those of a fisheye's pixels, and the pixels of directions.

x is right, y down and z forward. A fisheye's equations are solved for the angle from its axis,
which may exceed 90 degrees, not for its tangent, the ideal pixel.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from warpkit.core.shapes import broadcast_shapes
from warpkit.core.tracing import is_eager, is_readable, wants_gradient
from warpkit.engine.definitions import finite, lens_inverse, lens_models
from warpkit.engine.definitions.lens_models import Lens
from warpkit.engine.definitions.reference import with_gradient_of

SMALL = 1e-2
"""Below this squared angle, the series of sine and cosine to its eighth power are exact."""

STEPS = 30
"""The most Newton steps, from the largest angle that a lens can show; 3 to 6 are typical."""


def end_of(lens: Lens) -> Tensor:
    """How far a lens shows directions once, of its shape, without a gradient.

    Of a brown lens the squared tangent from the axis; of a fisheye the squared angle.
    """
    fixed = lens.detach()
    if lens.model == "fisheye":
        return last_angle(fixed)
    return lens_models.fold(fixed)[0] if lens.k else torch.full_like(fixed.fx, torch.inf)


def shown(lens: Lens, a: Tensor, b: Tensor, c: Tensor, end: Tensor) -> tuple[Tensor, Tensor]:
    """The pixels (..., 2) of directions (a, b, c), (...) each, and which of them the lens shows.

    Pixels of the others are finite, and have no gradient. end: of `end_of`, with the directions'
    dimensions, as the lens.
    """
    if lens.model == "fisheye":
        u, v, is_shown = shown_by_fisheye(lens, a, b, c, end)
    else:
        is_shown = (c.detach() > 0) & finite.within(
            a.detach() / c.detach(), b.detach() / c.detach()
        )
        c = torch.where(is_shown, c, 1.0)
        u, v = (torch.where(is_shown, value, 0.0) / c for value in (a, b))
        if lens.k:
            is_shown = is_shown & _before_fold(lens, u.detach(), v.detach(), end)
            u, v = (torch.where(is_shown, value, 0.0) for value in (u, v))
            u, v = lens_models.distort(lens, u, v)
    return torch.stack(torch.broadcast_tensors(*lens_models.to_pixels(lens, u, v)), -1), is_shown


def _before_fold(lens: Lens, x: Tensor, y: Tensor, end: Tensor) -> Tensor:
    """Whether a brown lens shows directions x and y (...) on the branch of its centre."""
    good = x * x + y * y < end
    for part in (1.0, 0.75, 0.5, 0.25):  # the non-radial part may fold earlier
        ux, uy, vx, vy = lens_models.slopes(lens.detach(), x * part, y * part)
        good = good & (ux * vy - uy * vx > 0)
    return good


# -- fisheyes: p is the squared angle from the axis, q the squared distorted radius,
# p b(p)^2 with b = 1 + k1 p + k2 p^2 + ..., so that no square root occurs, and all is smooth at 0


def _bend(lens: Lens, p: Tensor) -> tuple[Tensor, Tensor]:
    """b(p), and its derivative."""
    k1, k2, k3, k4 = lens.k
    b = 1 + (((k4 * p + k3) * p + k2) * p + k1) * p
    return b, ((4 * k4 * p + 3 * k3) * p + 2 * k2) * p + k1


def last_angle(lens: Lens) -> Tensor:
    """The squared angle up to which a fisheye shows each direction once: its fold, or 180 degrees.

    At 180 degrees all points of the circle are the same direction, straight back.
    """
    k = [(2 * i + 3) * value for i, value in enumerate(lens.k)]
    fold = lens_models.first_root([torch.ones_like(k[0]), *k])
    return fold.clamp(max=math.pi**2)


def rays_of_fisheye(lens: Lens, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The directions of a fisheye at distorted u and v (..., N), and where they exist.

    Gradients up to the third order, by the implicit function theorem: see `lens_inverse`.
    """
    near = finite.within(u.detach(), v.detach())
    u, v = (torch.where(near, value, 0.0) for value in (u, v))
    q = u * u + v * v
    with torch.no_grad():
        p, solved = _solve(lens.detach(), q.detach())
    solved = solved & near
    if not is_eager(q, *lens.k) or wants_gradient(q, *lens.k):
        q = torch.where(solved, q, 0.0)
        smooth = torch.where(solved, p, 0.0)
        for _ in range(lens_inverse.NEWTON_STEPS):
            b, slope = _bend(lens, smooth)
            smooth = smooth - (smooth * b * b - q) / (b * (b + 2 * smooth * slope))
        p = with_gradient_of(torch.where(solved, p, 0.0), smooth)
    p = torch.where(solved, p, 0.0)
    small = p < SMALL
    low, angle = torch.where(small, p, 0.0), torch.where(small, 1.0, p).sqrt()
    cosine = torch.where(small, _series(low, 0), angle.cos())
    ratio = torch.where(small, _series(low, 1), angle.sin() / angle) / _bend(lens, p)[0]
    return u * ratio, v * ratio, cosine, solved


def _series(p: Tensor, first: int) -> Tensor:
    """The cosine of the root of p, or with first = 1 its sine over the root, for p < SMALL."""
    total = torch.zeros_like(p)
    for n in reversed(range(9)):
        total = total * p + (-1) ** n / math.factorial(2 * n + first)
    return total


def _solve(lens: Lens, q: Tensor) -> tuple[Tensor, Tensor]:
    """The squared angles of squared radii q (..., N), and where they exist."""
    end = last_angle(lens).expand(broadcast_shapes(q.shape, lens.k[0].shape))
    b, _ = _bend(lens, end)
    reached = end.sqrt() * b
    radius = q.sqrt()
    reachable = radius <= reached * (1 + 1e-12)
    low, high = torch.zeros_like(end), end.sqrt()
    angle = torch.minimum(radius.expand(end.shape), high)
    readable = is_readable(q) and is_eager(q)
    for _ in range(STEPS):
        b, slope = _bend(lens, angle * angle)
        error = angle * b - radius
        low, high = torch.where(error < 0, angle, low), torch.where(error < 0, high, angle)
        step = angle - error / (b + 2 * angle * angle * slope)
        inside = (step >= low) & (step <= high)
        step = torch.where(inside, step, (low + high) / 2)
        settled = (step - angle).abs() <= 1e-15 * (1 + angle)
        angle = step
        if readable and bool((settled | ~reachable).all()):
            break
    return angle * angle, reachable


def shown_by_fisheye(
    lens: Lens, x: Tensor, y: Tensor, z: Tensor, end: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Distorted directions (...) of a fisheye, without focal length; and which of them it shows."""
    square, ahead = x * x + y * y, z.detach() > 0
    none = (square.detach() == 0) & ~ahead  # straight back, or no direction
    small = ahead & (square.detach() < SMALL * z.detach().square())
    depth = torch.where(small, z, 1.0)
    near = torch.where(small, square, 0.0) / (depth * depth)  # the tangent, squared
    series = torch.zeros_like(near)
    for i in reversed(range(9)):
        series = series * near + (-1) ** i / (2 * i + 1)
    far = torch.where(small | none, 1.0, square).sqrt()
    angle = torch.atan2(far, torch.where(small, 1.0, z))
    ratio = torch.where(small, series / depth, angle / far)
    p = torch.where(small, square * ratio * ratio, angle * angle)
    is_shown = ~none & (p.detach() < end)
    ratio = torch.where(is_shown, ratio, 0.0) * _bend(lens, p)[0]
    return x * ratio, y * ratio, is_shown
