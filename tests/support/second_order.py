"""Second derivatives along random directions instead of entry by entry.

Entry by entry, the number of passes is the square of the number of inputs, which took a third of
the suite's time. First derivatives, and the reference's second ones (`warp/test_gradient_orders`),
are still checked so. A slope that is 1 % off also fails in a random direction.
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
    """torch.autograd.gradgradcheck with its own tolerances."""
    return torch.autograd.gradgradcheck(function, inputs, fast_mode=True, **options)


def assert_three_orders(function: Callable[[Tensor], Tensor], step: float) -> None:
    """Check the first three derivatives of a function of one number at 0 by differences."""

    def order(f: Callable[[Tensor], Tensor], k: int) -> Callable[[Tensor], Tensor]:
        return f if k == 0 else order(torch.func.grad(f), k - 1)

    zero = torch.zeros((), dtype=torch.float64)
    for k in (1, 2, 3):
        f = order(function, k - 1)
        near, far = f(zero + step) - f(zero - step), f(zero + 2 * step) - f(zero - 2 * step)
        slope = float((8 * near - far) / (12 * step))
        assert float(order(function, k)(zero)) == pytest.approx(slope, rel=1e-6, abs=1e-9), k
