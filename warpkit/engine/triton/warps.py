"""Warps and their gradients: see `operators.warp`."""

from __future__ import annotations

from torch import Tensor

from warpkit.engine.operators.warp import Warp
from warpkit.engine.triton import launch


def forward(options: Warp, image: Tensor, mapping: Tensor, fill: Tensor) -> tuple[Tensor, None]:
    """The result of `WARP`."""
    return launch.forward(image, mapping, fill, options.size, options.rule), None


def backward(
    options: Warp,
    kept: None,
    grads: tuple[Tensor, ...],
    tensors: tuple[Tensor, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor, ...]:
    """The gradients of the tensors, as of `WARP`."""
    image, mapping, fill = tensors
    return launch.backward(grads[0], image, mapping, fill, options.size, options.rule, wanted)
