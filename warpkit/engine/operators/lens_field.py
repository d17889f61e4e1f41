"""The point field of an undistorted image."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from warpkit.engine.binding.operator import Operator
from warpkit.engine.definitions import lens_fields, lens_models
from warpkit.engine.definitions.lens_models import Lens
from warpkit.engine.operators import native


class Field(NamedTuple):
    """The options of a field."""

    model: str
    size: tuple[int, int]
    opencv: bool


def lens_field(lens: Lens, to_ray: Tensor, size: tuple[int, int], opencv: bool) -> Tensor:
    """As `lens_fields.field`."""
    return FIELD(Field(lens.model, size, opencv), lens_models.packed(lens), to_ray)


def _formula(options: Field, numbers: Tensor, to_ray: Tensor) -> Tensor:
    """numbers (..., 4 + n); to_ray (..., 3, 3)."""
    lens = lens_models.unpacked(options.model, numbers)
    return lens_fields.field(lens, to_ray, options.size, options.opencv)


FIELD = Operator(_formula, {"cpu": native("lens_fields")})
"""numbers (..., 4 + n) of `lens_models.packed`, to_ray (..., 3, 3): (..., h, w, 2), float64."""
