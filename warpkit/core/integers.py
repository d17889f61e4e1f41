"""Whole numbers: the types that count as one, and any of them as Python's own."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import torch

WHOLE_NUMBERS = (Integral, torch.SymInt)


def plain_integer(number: Any) -> int:
    """A whole number as Python's own: torch takes none of numpy's. Symbolic ones stay."""
    if type(number) is int or isinstance(number, torch.SymInt):
        return number  # pyright: ignore
    return int(number)
