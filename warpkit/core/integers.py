"""Integers: which types count as one, and their conversion to Python's int."""

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
