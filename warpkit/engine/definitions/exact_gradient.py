"""The one gradient of every arithmetic, that of "exact": `arithmetic` chooses the values alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from warpkit.core.tracing import is_eager, wants_derivative
from warpkit.engine.definitions.reference import with_gradient_of

Values = Callable[[], Tensor]
"""Computes a result in another arithmetic, without gradients."""


class Given:
    """The kernels of an operator whose result is computed in another arithmetic."""

    def __init__(self, values: Values) -> None:
        self.values = values

    def forward(self, options: Any, *tensors: Tensor) -> tuple[Tensor, None]:
        """The other arithmetic's result."""
        return self.values(), None


def with_exact_gradient(
    values: Values, exact: Callable[..., Tensor], *inputs: Tensor, fused: bool
) -> Tensor:
    """The result of `values()`, with the gradient of `exact()` to its inputs.

    fused: `exact` of plain tensors takes `values=` and computes no result of its own. Otherwise,
    and under tracing, transforms and forward mode, both results are computed.

    inputs: the image (..., C, H, W), and the other tensors of the call, (...).
    """
    if not wants_derivative(*inputs):
        return values()
    if fused and is_eager(*inputs):
        return exact(values=values)
    return with_gradient_of(values(), exact())
