"""Recipes of small warps: all that is not in the kernel is worked out once, see `recipes`."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from warpkit.core.tracing import wants_gradient
from warpkit.engine.backends.cpu.warps import eager, pairs_launch
from warpkit.engine.backends.cpu.warps.inverse import invert
from warpkit.engine.backends.cpu.warps.work import broadcast_index, warp_shapes
from warpkit.engine.backends.recipes import Recipe
from warpkit.engine.sampling.rules import TAPS, SamplingRule

SMALL = 1 << 20
"""Bytes of a result below which torch's memory is as good as ours."""


def recipe(
    image: Tensor,
    matrix: Tensor,
    size: tuple[int, int],
    fill: Tensor,
    rule: SamplingRule,
    forward: bool,
) -> Recipe | None:
    """How calls like this one are made, or None.

    image (*I, C, H, W); matrix (*M, 2, 3), source -> destination if `forward`; fill of one number.
    """
    shapes = warp_shapes(image.shape, matrix.shape, fill.shape, size, rule.border)
    taps = TAPS[rule.interpolation]
    if not pairs_launch.takes_pairs(image.dtype, shapes, taps, False) or shapes.values == 0:
        return None
    if shapes.values * image.element_size() >= SMALL:
        return None
    images = broadcast_index(image.shape[:-3], shapes.batch)
    sizes, value = (image.numel(), matrix.numel()), np.array([fill.numpy()])
    prepared = pairs_launch.prepare(shapes, *sizes, True, value, images)
    shape, dtype, is_double = shapes.shape, image.dtype, matrix.dtype == torch.float64

    def call(image: Tensor, matrix: Tensor) -> Tensor:
        if wants_gradient(image, matrix):
            return eager.call(
                image, matrix if forward else matrix.double(), size, fill, rule, forward
            )
        source = invert(matrix) if forward else matrix if is_double else matrix.double()
        out = torch.empty(shape, dtype=dtype)
        pairs_launch.launch(prepared, image.data_ptr(), source.data_ptr(), out.data_ptr())
        return out

    return call
