"""A view of the sphere: its picture at the directions of pixels."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.engine.binding.operator import Operator
from warpkit.engine.definitions import sphere
from warpkit.engine.definitions.reference import compute_dtype
from warpkit.engine.operators import native

HALVES = (torch.float16, torch.bfloat16)


class View(NamedTuple):
    """The options of a view."""

    size: tuple[int, int]
    interpolation: str
    wide: bool = False
    """The result is not rounded to the picture's type."""


def view(
    picture: Tensor,
    matrix: Tensor,
    size: tuple[int, int],
    interpolation: str,
    wide: bool = False,
) -> Tensor:
    """The values at pixels of `size` (h, w), with labels as their bits.

    picture (*I, C, H, W); matrix (*P, 3, 3), float64, maps (x, y, 1) to directions.
    """
    if interpolation == "nearest":  # it has no slope, and autograd should report that
        matrix = matrix.detach()
    return VIEW(View(size, interpolation, wide), picture, matrix)


def _formula(options: View, picture: Tensor, matrix: Tensor) -> Tensor:
    """As `sphere.sample`."""
    points = sphere.places_of_pixels(matrix, options.size, picture.shape[-2:])
    dtype = picture.dtype
    if dtype in HALVES or options.wide:  # rounded once
        picture = picture.to(compute_dtype(dtype))
    found = sphere.sample(picture, points, options.interpolation)
    return found if options.wide else found.to(dtype)


VIEW = Operator(_formula, {"cpu": native("sphere")})
"""picture (*I, C, H, W); matrix (*P, 3, 3), float64: (*batch, C, h, w)."""
