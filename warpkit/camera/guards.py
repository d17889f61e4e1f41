"""Keeps NaN out of the formulas: replaces points without a solution before, and marks them after.

A product has the other factor for its derivative, and 0 x NaN is NaN: one NaN on the way would
spoil the gradient of every lens, matrix and point that it meets. Each function therefore puts
finite numbers in the place of others at its entry, and writes NaN behind its last product.
"""

from __future__ import annotations

import torch
from torch import Tensor

from warpkit.camera.models import Lens
from warpkit.core.tracing import is_eager, is_readable

FARTHEST = 1e20
"""Of directions. The formulas reach their seventh powers, second derivatives the squares of those:
1e280 is finite still."""


def holds(mask: Tensor) -> bool:
    """Whether `mask` is known to hold everywhere, where looking costs nothing."""
    return is_readable(mask) and is_eager(mask) and bool(mask.all())


def within(*directions: Tensor) -> Tensor:
    """Where all of them, detached and of one shape (...), are below FARTHEST; NaN is not."""
    first, *others = directions
    near = first.abs() < FARTHEST
    for value in others:
        near = near & (value.abs() < FARTHEST)
    return near


def sound_lens(lens: Lens) -> tuple[Lens, Tensor]:
    """The lens, where a number is not finite the camera (1, 1, 0, 0) without one; and where not."""
    numbers = torch.stack(torch.broadcast_tensors(*lens.detach().tensors()), dim=-1)
    sound = numbers.isfinite().all(-1) & (numbers[..., :2] != 0).all(-1)
    if holds(sound):
        return lens, sound
    fx, fy = (torch.where(sound, value, 1.0) for value in (lens.fx, lens.fy))
    cx, cy, *k = (torch.where(sound, value, 0.0) for value in (lens.cx, lens.cy, *lens.k))
    return Lens(lens.model, fx, fy, cx, cy, tuple(k)), sound


def sound_matrix(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """The matrix (..., 3, 3), the identity where an entry is not finite; and where all are."""
    sound = matrix.detach().isfinite().flatten(-2).all(-1)
    if holds(sound):
        return matrix, sound
    identity = torch.eye(3, dtype=matrix.dtype, device=matrix.device)
    return torch.where(sound[..., None, None], matrix, identity), sound


def sound_points(lens: Lens, points: Tensor) -> tuple[Tensor, Tensor]:
    """Pixels (..., N, 2), the centre of the lens where they are no direction; and where they are.

    lens: sound, and beside the points.
    """
    fixed = lens.detach()
    focal = torch.stack(torch.broadcast_tensors(fixed.fx, fixed.fy), dim=-1)
    centre = torch.stack(torch.broadcast_tensors(fixed.cx, fixed.cy), dim=-1)
    near = within(*((points.detach() - centre) / focal).unbind(-1))
    return (points if holds(near) else torch.where(near[..., None], points, centre)), near
