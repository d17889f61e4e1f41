"""Inverts a distortion by a Newton iteration that stays on the branch of the centre.

Distortion formulas fold: beyond some radius, barrel distortion turns back towards the centre, and a
distorted direction has a second, mirrored root far outside, or none at all. Steps start at the
centre; a step that would reach a fold or does not reduce the residual is halved. A root counts only
if the map's determinant is positive all the way from the centre to it.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.core.shapes import broadcast_shapes
from warpkit.core.tracing import is_eager, is_readable
from warpkit.engine.definitions import lens_models
from warpkit.engine.definitions.lens_models import Lens
from warpkit.engine.definitions.reference import with_gradient_of

STEPS, TRACED_STEPS = 100, 20
"""The most steps; if values cannot be read, exactly as many as the second number are made. A lens
takes 4 to 8, near its fold about 30."""

TIGHT, LOOSE = 4 * torch.finfo(torch.float64).eps, 1e-10
"""Residuals relative to 1 + |distorted|: no further step, and converged: 1e-7 pixels at a focal
length of 1000."""

AT_ONCE = 1 << 14
"""Points that are solved together: their intermediate arrays, 128 KB each, stay in the cache."""

SMALLEST_STEP = 2.0**-30
CHECKS = 16
"""Positions between the centre and a root where the determinant is checked."""

NEWTON_STEPS = 2
"""Newton steps from the constant solution: k steps have its derivatives up to order 2^k - 1."""


class State(NamedTuple):
    """The state of the iteration; everything has the points' shape."""

    x: Tensor
    y: Tensor
    error: tuple[Tensor, Tensor]
    slopes: tuple[Tensor, Tensor, Tensor, Tensor]
    share: Tensor
    """The part of the full step that is tried next."""
    done: Tensor


class Reach(NamedTuple):
    """How far a lens's inverse reaches, each of the lens's shape."""

    limit: Tensor
    """The largest q of a purely radial lens: at its fold; infinite for others."""
    radius: Tensor
    """The distorted radius there."""
    radial: Tensor
    """Whether the lens is purely radial."""


def reach_of(lens: Lens) -> Reach:
    """`Reach`, without a gradient."""
    fixed = lens.detach()
    radial = lens_models.is_radial(fixed)
    folds_at = radius = torch.full_like(fixed.k[0], torch.inf)
    readable = is_readable(radial) and is_eager(radial)
    if not readable or bool(radial.any()):  # eigenvalues take as long as thousands of points
        folds_at, radius = lens_models.fold(fixed)
    return Reach(torch.where(radial, folds_at, torch.inf), radius, radial)


def unbend(lens: Lens, u: Tensor, v: Tensor, reach: Reach) -> tuple[Tensor, Tensor, Tensor]:
    """The ideal directions that `lens_models.bend` maps to (u, v), and where they exist.

    u, v (..., N), lens and reach with point dimensions. Where there is no direction, the result is
    the centre's, (0, 0): a NaN would spread through the callers' products, so the callers write NaN
    after these. Gradients: up to the third order, by the implicit function theorem, to u, v and the
    coefficients.
    """
    with torch.no_grad():
        x, y, converged = _solve(lens.detach(), reach, u.detach(), v.detach())
    x, y = with_gradient(lens, u, v, x, y, converged)
    return torch.where(converged, x, 0.0), torch.where(converged, y, 0.0), converged


def with_gradient(
    lens: Lens, u: Tensor, v: Tensor, x: Tensor, y: Tensor, converged: Tensor
) -> tuple[Tensor, Tensor]:
    """x and y with the derivatives of Newton steps from them; at the centre where there is none.

    All (...), of one shape.
    """
    u, v, x, y = (torch.where(converged, value, 0.0) for value in (u, v, x, y))
    near_x, near_y = x, y
    for _ in range(NEWTON_STEPS):
        shown_u, shown_v = lens_models.bend(lens, near_x, near_y)
        dx, dy = _newton(lens_models.slopes(lens, near_x, near_y), shown_u - u, shown_v - v)
        near_x, near_y = near_x - dx, near_y - dy
    return with_gradient_of(x, near_x), with_gradient_of(y, near_y)


def _solve(lens: Lens, reach: Reach, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The ideal directions of distorted ones, u and v (...), and where these converged."""
    if u.shape[-1] <= AT_ONCE or not (is_readable(u) and is_eager(u)):
        return _solve_piece(lens, reach, u, v)
    pieces = zip(u.split(AT_ONCE, -1), v.split(AT_ONCE, -1), strict=True)
    solved = [_solve_piece(lens, reach, *piece) for piece in pieces]
    x, y, converged = (torch.cat(parts, dim=-1) for parts in zip(*solved, strict=True))
    return x, y, converged


def _solve_piece(lens: Lens, reach: Reach, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The roots for distorted directions u and v (..., N)."""
    limit, radius, radial = reach
    finite = u.isfinite() & v.isfinite()
    shape = broadcast_shapes(u.shape, limit.shape)
    u, v = (torch.where(finite, value, 0.0).expand(shape) for value in (u, v))
    scale = 1 + torch.hypot(u, v)
    # a purely radial lens maps no direction beyond its fold
    hopeless = (radial & (torch.hypot(u, v) > radius * (1 + 1e-12))) | ~finite
    x, y = torch.zeros_like(u), torch.zeros_like(v)
    state = State(
        x, y, (-u, -v), lens_models.slopes(lens, x, y), torch.ones_like(u), hopeless.expand(shape)
    )
    readable = is_readable(u) and is_eager(u)
    for _ in range(STEPS if readable else TRACED_STEPS):
        if readable and bool(state.done.all()):
            break
        state = _step(lens, state, u, v, scale, limit)
    x, y = state.x, state.y
    converged = torch.hypot(*state.error) <= LOOSE * scale
    converged = converged & ~hopeless & (x * x + y * y < limit) & (_determinant(state.slopes) > 0)
    if readable and bool(radial.all()):
        return x, y, converged
    for i in range(1, CHECKS):
        part = i / CHECKS
        converged = converged & (_determinant(lens_models.slopes(lens, x * part, y * part)) > 0)
    return x, y, converged


def _step(lens: Lens, state: State, u: Tensor, v: Tensor, scale: Tensor, limit: Tensor) -> State:
    """One step: taken if it reduces the residual on the centre's branch, otherwise halved.

    All (...), of one shape; directions.
    """
    dx, dy = _newton(state.slopes, *state.error)
    x, y = state.x - state.share * dx, state.y - state.share * dy
    shown_u, shown_v = lens_models.bend(lens, x, y)
    slopes, error = lens_models.slopes(lens, x, y), (shown_u - u, shown_v - v)
    before, after = torch.hypot(*state.error), torch.hypot(*error)
    good = (after < before) & (_determinant(slopes) > 0) & (x * x + y * y < limit)
    good = good & ~state.done
    share = torch.where(good, (2 * state.share).clamp(max=1), state.share / 2)
    size = torch.where(good, after, before)
    ends = (size <= TIGHT * scale) | (~good & (size <= LOOSE * scale)) | (share < SMALLEST_STEP)
    return State(
        torch.where(good, x, state.x),
        torch.where(good, y, state.y),
        (torch.where(good, error[0], state.error[0]), torch.where(good, error[1], state.error[1])),
        tuple(torch.where(good, a, b) for a, b in zip(slopes, state.slopes, strict=True)),  # pyright: ignore
        share,
        state.done | ends,
    )


def _newton(
    slopes: tuple[Tensor, Tensor, Tensor, Tensor], u: Tensor, v: Tensor
) -> tuple[Tensor, Tensor]:
    """The derivative's inverse, applied to (u, v).

    All (...), of one shape; directions.
    """
    ux, uy, vx, vy = slopes
    det = ux * vy - uy * vx
    return (vy * u - uy * v) / det, (ux * v - vx * u) / det


def _determinant(slopes: tuple[Tensor, Tensor, Tensor, Tensor]) -> Tensor:
    ux, uy, vx, vy = slopes
    return ux * vy - uy * vx
