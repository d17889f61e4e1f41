"""The inverse of a lens: from distorted directions to ideal ones."""

from __future__ import annotations

import torch
from torch import Tensor

from warpkit.engine.binding.operator import Operator
from warpkit.engine.definitions import lens_inverse
from warpkit.engine.definitions.lens_inverse import Reach
from warpkit.engine.definitions.lens_models import Lens
from warpkit.engine.operators import native


def unbend(
    lens: Lens, u: Tensor, v: Tensor, reach: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """As `lens_inverse.unbend`; the lens with a point dimension.

    reach: of `reach_of`, if it is known.
    """
    reach = reach_of(lens) if reach is None else reach
    return UNBEND(lens.model, torch.stack(lens.k, dim=-1), u, v, reach)


def reach_of(lens: Lens) -> Tensor:
    """`lens_inverse.Reach` as a tensor (..., 1, 3); the lens with a point dimension."""
    return torch.stack([value.double() for value in lens_inverse.reach_of(lens)], dim=-1)


def _lens(model: str, k: Tensor) -> Lens:
    one, zero = torch.ones_like(k[..., 0]), torch.zeros_like(k[..., 0])
    return Lens(model, one, one, zero, zero, k.unbind(-1))


def _formula(
    model: str, k: Tensor, u: Tensor, v: Tensor, reach: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """k (..., 1, n); u and v (..., N); reach (..., 1, 3)."""
    limit, radius, radial = reach.unbind(-1)
    return lens_inverse.unbend(_lens(model, k), u, v, Reach(limit, radius, radial != 0))


def _known(
    model: str, roots: tuple[Tensor, ...], k: Tensor, u: Tensor, v: Tensor, reach: Tensor
) -> tuple[Tensor, Tensor]:
    """The roots x, y and found, (..., N), with the solution's derivatives."""
    return lens_inverse.with_gradient(_lens(model, k), u, v, *roots)


UNBEND = Operator(_formula, {"cpu": native("lens_inverses")}, _known)
"""k (..., 1, n), u and v (..., N), reach (..., 1, 3) of `lens_inverse.Reach`: x, y and found,
(..., N)."""
