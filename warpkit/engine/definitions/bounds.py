"""Clamps values, with one-sided gradients that do not depend on torch's version.

torch.clamp gives a value equal to the bound a gradient of 1 in old versions of torch and of 0 in
new ones (2.14 has 0). Here an index 0, a white pixel or a box on whole pixels are common cases.
"""

from __future__ import annotations

import torch
from torch import Tensor


def clamped(x: Tensor, low: float, high: float) -> Tensor:
    """x (...) within [low, high], as clamp; the gradient passes at both bounds. NaN stays NaN."""
    above = torch.where(x < low, torch.full_like(x, low), x)
    return torch.where(above > high, torch.full_like(x, high), above)


def at_least_zero(x: Tensor) -> Tensor:
    """x (...) or 0, as relu; the gradient passes at 0."""
    return torch.where(x < 0, torch.zeros_like(x), x)
