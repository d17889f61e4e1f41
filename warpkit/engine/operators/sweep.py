"""Pictures compared at the depths of a view."""

from __future__ import annotations

import torch
from torch import Tensor

from warpkit.engine.binding.operator import Operator
from warpkit.engine.definitions import sweep as definition
from warpkit.engine.definitions.sweep import Sweep
from warpkit.engine.operators import native, triton

MOST_PIXELS = 2**31 - 1
"""Of a picture that kernels read: they number pixels in 32 bits."""

KERNELS = {"cpu": native("sweep"), "cuda": triton("sweep"), "triton": triton("sweep")}
SWEEP = Operator(definition.cost, KERNELS)
"""sources (..., V, C, H, W), float32, depths (..., D, h or 1, w or 1), rays (..., 3, h, w) or
(..., 4), poses (..., V, 3, 4), numbers (..., V, 4 + n) and ends (..., V) of the sources' lenses,
and perhaps the view (..., C, h, w): see `definitions.sweep.cost`."""


def sweep(options: Sweep, sources: Tensor, *tensors: Tensor) -> tuple[Tensor, Tensor]:
    """As `definitions.sweep.cost`: by kernels, if they have the case."""
    pixels = sources.shape[-2] * sources.shape[-1]
    if sources.dtype == torch.float32 and pixels < MOST_PIXELS:
        return SWEEP(options, sources, *tensors)
    return definition.cost(options, sources, *tensors)
