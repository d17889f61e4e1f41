"""Second order as a whole: along random directions, not entry by entry.

Entry by entry a case takes as many passes as it has numbers, squared: a third of the suite's time.
First order is checked so, and the second order of the definition (`warp/test_gradient_orders`). A
slope that is 1 % off fails in a random direction as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor


def gradgradcheck(
    function: Callable[..., Any], inputs: Sequence[Tensor] | Tensor, **options: bool
) -> bool:
    """torch.autograd.gradgradcheck at its tolerances."""
    return torch.autograd.gradgradcheck(function, inputs, fast_mode=True, **options)


def assert_three_orders(function: Callable[[Tensor], Tensor], step: float) -> None:
    """The first three derivatives of a function of one number at 0, by differences of the lower."""

    def order(f: Callable[[Tensor], Tensor], k: int) -> Callable[[Tensor], Tensor]:
        return f if k == 0 else order(torch.func.grad(f), k - 1)

    zero = torch.zeros((), dtype=torch.float64)
    for k in (1, 2, 3):
        f = order(function, k - 1)
        near, far = f(zero + step) - f(zero - step), f(zero + 2 * step) - f(zero - 2 * step)
        slope = float((8 * near - far) / (12 * step))
        assert float(order(function, k)(zero)) == pytest.approx(slope, rel=1e-6, abs=1e-9), k
