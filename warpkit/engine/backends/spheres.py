"""Samples spherical images with a backend, faster than `definitions.sphere`."""

from __future__ import annotations

import torch
from torch import Tensor

from warpkit.core.tracing import is_eager
from warpkit.engine.backends import backend_module, select_backend
from warpkit.engine.definitions import sphere
from warpkit.engine.definitions.labels import as_bits, as_labels, as_signed, from_signed
from warpkit.engine.definitions.layout import restore_memory_format
from warpkit.engine.definitions.reference import compute_dtype
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.engine.operators import sphere as operators


def view(
    function: str,
    picture: Tensor,
    matrix: Tensor,
    size: tuple[int, int],
    interpolation: str,
    wide: bool = False,
) -> Tensor:
    """The values at pixels of `size` (h, w), for a public function; labels are copied.

    picture (*I, C, H, W); matrix (*P, 3, 3), float64, maps (x, y, 1) to directions. wide: the
    result is not rounded to the picture's type.
    """
    backend = select_backend(function, "auto", picture, SamplingRule(interpolation, "wrap"))
    if backend is backend_module("cpu") and is_eager(picture, matrix):
        result = operators.view(as_bits(picture), matrix, size, interpolation, wide)
        if wide:
            return restore_memory_format(result, picture)
        return as_labels(restore_memory_format(result, picture), picture.dtype)
    points = sphere.places_of_pixels(matrix, size, picture.shape[-2:])
    picture = picture.to(compute_dtype(picture.dtype)) if wide else picture
    return sample(function, picture, points, interpolation)


def sample(function: str, picture: Tensor, points: Tensor, interpolation: str) -> Tensor:
    """As `sphere.sample`, for a public function; labels are copied.

    picture (*I, C, H, W); points (*P, h, w, 2).
    """
    rule = SamplingRule(interpolation, "wrap")
    backend = select_backend(function, "auto", picture, rule)
    bits = as_bits(picture)
    if backend is backend_module("reference") or picture.shape[-1] % 2:
        result = sphere.sample(bits, points, interpolation)
    else:  # a full turn is a whole number of columns
        points = sphere.on_grid(points) if interpolation == "nearest" else points
        whole = from_signed(sphere.both_sides(as_signed(bits)), bits.dtype)
        nothing = torch.zeros((), dtype=compute_dtype(bits.dtype), device=bits.device)
        result = backend.sample(whole, points, nothing, rule)
    return as_labels(restore_memory_format(result, picture), picture.dtype)
