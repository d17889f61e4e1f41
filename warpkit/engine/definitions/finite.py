"""Keeps NaN out of the formulas: replaces points without a solution before, and marks them after.

The derivative of a product contains the other factor, and 0 x NaN is NaN: a single NaN would make
the gradient of every lens, matrix and point involved NaN. Each function therefore replaces
non-finite numbers at its entry, and writes NaN after its last product.
"""

from __future__ import annotations

import torch
from torch import Tensor

from warpkit.core.tracing import is_eager, is_readable
from warpkit.engine.definitions.lens_models import Lens

FARTHEST = 1e20
"""The limit of directions. The formulas contain their seventh powers, and second derivatives the
squares of those: 1e280 is still finite."""


def is_known_true(mask: Tensor) -> bool:
    """Whether `mask` is known to be true everywhere, if checking needs no synchronisation."""
    return is_readable(mask) and is_eager(mask) and bool(mask.all())


def within(*directions: Tensor) -> Tensor:
    """Where all directions, detached and of one shape (...), are below FARTHEST; false for NaN."""
    first, *others = directions
    near = first.abs() < FARTHEST
    for value in others:
        near = near & (value.abs() < FARTHEST)
    return near


def finite_lens(lens: Lens) -> tuple[Lens, Tensor]:
    """The lens, with a camera (1, 1, 0, 0) without distortion for invalid items; which are valid.

    An item is invalid if a number is not finite or a focal length is 0.
    """
    numbers = torch.stack(torch.broadcast_tensors(*lens.detach().tensors()), dim=-1)
    valid = numbers.isfinite().all(-1) & (numbers[..., :2] != 0).all(-1)
    if is_known_true(valid):
        return lens, valid
    fx, fy = (torch.where(valid, value, 1.0) for value in (lens.fx, lens.fy))
    cx, cy, *k = (torch.where(valid, value, 0.0) for value in (lens.cx, lens.cy, *lens.k))
    return Lens(lens.model, fx, fy, cx, cy, tuple(k)), valid


def finite_matrix(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """The matrix (..., 3, 3), with the identity for non-finite items; and which are finite."""
    valid = matrix.detach().isfinite().flatten(-2).all(-1)
    if is_known_true(valid):
        return matrix, valid
    identity = torch.eye(3, dtype=matrix.dtype, device=matrix.device)
    return torch.where(valid[..., None, None], matrix, identity), valid


def finite_points(lens: Lens, points: Tensor) -> tuple[Tensor, Tensor]:
    """Pixels (..., N, 2), with the lens's centre for those without a direction; which have one.

    lens: finite, with point dimensions.
    """
    fixed = lens.detach()
    focal = torch.stack(torch.broadcast_tensors(fixed.fx, fixed.fy), dim=-1)
    centre = torch.stack(torch.broadcast_tensors(fixed.cx, fixed.cy), dim=-1)
    near = within(*((points.detach() - centre) / focal).unbind(-1))
    return (points if is_known_true(near) else torch.where(near[..., None], points, centre)), near
