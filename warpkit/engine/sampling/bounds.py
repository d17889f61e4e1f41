"""Clamps values, with one-sided gradients that do not depend on torch's version.

torch.clamp gives a value that is the bound itself a gradient of 1 up to some torch and of 0 from
another on (2.14 has 0). An index 0, a white pixel, a box on whole pixels are no corner cases here.
"""

from __future__ import annotations

import torch
from torch import Tensor


def held(x: Tensor, low: float, high: float) -> Tensor:
    """x (...) within [low, high], as clamp; the gradient of both bounds passes. NaN stays."""
    above = torch.where(x < low, torch.full_like(x, low), x)
    return torch.where(above > high, torch.full_like(x, high), above)


def at_least_zero(x: Tensor) -> Tensor:
    """x (...) or 0, as relu; the gradient of 0 passes."""
    return torch.where(x < 0, torch.zeros_like(x), x)
