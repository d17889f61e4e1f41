"""Second order as a whole: along random directions, not entry by entry.

Entry by entry a case takes as many passes as it has numbers, squared: a third of the suite's time.
First order is checked so, and the second order of the definition (`warp/test_gradient_orders`). A
slope that is 1 % off fails in a random direction as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor


def gradgradcheck(
    function: Callable[..., Any], inputs: Sequence[Tensor] | Tensor, **options: bool
) -> bool:
    """torch.autograd.gradgradcheck at its tolerances."""
    return torch.autograd.gradgradcheck(function, inputs, fast_mode=True, **options)
