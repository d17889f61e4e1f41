"""A view of the sphere: its picture at the directions of pixels."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from warpkit.engine.binding.operator import Operator
from warpkit.engine.operators import native
from warpkit.engine.sampling import sphere
from warpkit.engine.sampling.reference import compute_dtype


class View(NamedTuple):
    """The options of a view."""

    size: tuple[int, int]
    interpolation: str


def view(picture: Tensor, matrix: Tensor, size: tuple[int, int], interpolation: str) -> Tensor:
    """The values at pixels of `size` (h, w), with labels as their bits.

    picture (*I, C, H, W); matrix (*P, 3, 3), float64, maps (x, y, 1) to directions.
    """
    if interpolation == "nearest":  # it has no slope, and autograd should report that
        matrix = matrix.detach()
    floating = picture.is_floating_point()
    inputs = picture.to(compute_dtype(picture.dtype)) if floating else picture
    return VIEW(View(size, interpolation), inputs, matrix).to(picture.dtype)


def _formula(options: View, picture: Tensor, matrix: Tensor) -> Tensor:
    """As `sphere.sample`."""
    points = sphere.places_of_pixels(matrix, options.size, picture.shape[-2:])
    return sphere.sample(picture, points, options.interpolation)


VIEW = Operator(_formula, {"cpu": native("sphere")})
"""picture (*I, C, H, W), no half; matrix (*P, 3, 3), float64: (*batch, C, h, w)."""
