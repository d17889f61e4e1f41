"""Validates the arguments of flow functions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.geometry.arguments import floats


def as_field(name: str, argument: str, value: Any, device: torch.device | None) -> Tensor:
    """A field (..., h, w, 2) of floats, of at least one pixel; numbers in float64."""
    field = floats(name, argument, value, device)
    if field.ndim < 3 or field.shape[-1] != 2 or 0 in field.shape[-3:]:
        got: object = checks.shape_of(field)
        if field.ndim >= 3 and field.shape[-3] == 2:
            got = f"{got}: (..., 2, h, w) is {argument}.movedim(-3, -1)"
        checks.fail(name, argument, "of shape (..., h, w, 2)", got)
    return field
