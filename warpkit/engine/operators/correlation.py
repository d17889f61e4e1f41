"""Local correlation of two pictures."""

from __future__ import annotations

import torch
from torch import Tensor

from warpkit.engine.binding.operator import Operator
from warpkit.engine.definitions import correlation as definition
from warpkit.engine.definitions.correlation import Square
from warpkit.engine.operators import native, triton

KERNELS = {
    "cpu": native("correlation"),
    "cuda": triton("correlation"),
    "triton": triton("correlation"),
}
CORRELATION = Operator(definition.correlation, KERNELS)
"""first (..., C, h, w) and second (..., C, H, W), float32, and perhaps flow (..., h, w, 2):
(..., offsets, h, w). The options: `Square`; its step is 1, or whole without a flow."""


REACH = 2**15
"""The pixels between a square's centre and its edges: kernels continue rows so far."""


def correlation(options: Square, *tensors: Tensor) -> Tensor:
    """As `definitions.correlation.correlation`: by kernels, if they have the case."""
    reach = options.step * max(options.radius)
    whole = float(options.step).is_integer() and max(reach, options.step) < REACH
    step = options.step == 1 or (whole and len(tensors) == 2)
    if tensors[0].dtype == torch.float32 and step:
        return CORRELATION(options, *tensors)
    return definition.correlation(options, *tensors)
