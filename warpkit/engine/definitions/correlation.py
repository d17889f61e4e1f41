"""Local correlation: each pixel of one picture with a square of places around it in another."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.core.shapes import broadcast_shapes
from warpkit.engine.definitions import reference
from warpkit.engine.definitions.again import again
from warpkit.engine.definitions.maps import pixel_points
from warpkit.engine.definitions.rules import LIMIT, SamplingRule


class Square(NamedTuple):
    """The options of a correlation."""

    radius: tuple[int, int]
    """Rows and columns on each side of the centre."""
    step: float
    border: str
    """As a `SamplingRule` has it."""


def offsets_of(options: Square) -> list[tuple[float, float]]:
    """All (dx, dy) in pixels, by rows. Dynamo of torch 2.7 reads no property of a named tuple."""
    rows, columns = (range(-r, r + 1) for r in options.radius)
    return [(options.step * column, options.step * row) for row in rows for column in columns]


def correlation(
    options: Square, first: Tensor, second: Tensor, flow: Tensor | None = None
) -> Tensor:
    """The means over channels of first(p) second(p + flow(p) + offset): (..., offsets, h, w).

    first (..., C, h, w) and second (..., C, H, W) of one type, float32 or float64; flow
    (..., h, w, 2). Places are float64. A place that is not finite, or 2^31 and more away, is none:
    its result is 0, and `first` is not read there.
    """
    size = (first.shape[-2], first.shape[-1])
    places = pixel_points(size, torch.float64, first.device)
    if flow is not None:
        places = places + flow.double()
    # whole places have no other taps, so a pixel that is not finite spoils no neighbour's result
    whole = flow is None and float(options.step).is_integer()
    rule = SamplingRule("nearest" if whole else "bilinear", options.border)
    fill = torch.zeros((), dtype=first.dtype, device=first.device)

    def product(first: Tensor, second: Tensor, points: Tensor) -> Tensor:
        """The mean (..., h, w) at points (..., h, w, 2)."""
        near = (points.detach().abs() < LIMIT).all(-1)[..., None, :, :]  # false for NaN
        read = torch.where(near, first, 0.0)
        return (read * reference.sample(second, points, fill, rule)).mean(-3)

    products = [
        again(product, first, second, places + places.new_tensor(offset))
        for offset in offsets_of(options)
    ]
    shapes = [first.shape[:-3], second.shape[:-3], places.shape[:-3]]
    return torch.stack(products, -3).expand(*broadcast_shapes(*shapes), len(products), *size)
