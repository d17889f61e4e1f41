"""The image of another camera at the points of a view's depths."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from warpkit.engine.definitions import depth, reference
from warpkit.engine.definitions.depth import Depths
from warpkit.engine.definitions.rules import SamplingRule


class DepthWarp(NamedTuple):
    """The options of a warp."""

    view: Depths
    """Without own depths, and with a mask."""
    rule: SamplingRule


def shown(options: DepthWarp, image: Tensor, fill: Tensor, *scene: Tensor) -> tuple[Tensor, Tensor]:
    """The image (..., C, h, w), and where all taps are inside (..., h, w).

    image (..., C, H, W), float32 or float64; fill broadcasts to the result; scene: the tensors of
    `depth.points`.
    """
    points, inside = depth.points(options.view, *scene)
    return reference.sample(image, points, fill, options.rule), inside
