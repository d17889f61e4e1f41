"""Steps of a definition whose values are computed again for the gradient, not kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.utils.checkpoint import checkpoint

from warpkit.core.tracing import is_eager, wants_gradient


def again(function: Callable[..., Any], *tensors: Tensor) -> Any:
    """function(*tensors); where torch traces or transforms the call, everything is kept."""
    if is_eager(*tensors) and wants_gradient(*tensors):
        return checkpoint(function, *tensors, use_reentrant=False, preserve_rng_state=False)
    return function(*tensors)
