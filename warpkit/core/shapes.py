"""Broadcast shapes without an import of torch's compiler."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch


def broadcast_shapes(*shapes: Sequence[int]) -> torch.Size:
    """`torch.broadcast_shapes`, whose first call of a process imports sympy: 0.4 s.

    NumPy does the same on plain numbers. Symbolic sizes, and shapes that do not broadcast, go to
    torch, which raises RuntimeError.
    """
    if not torch.compiler.is_compiling() and all(type(n) is int for s in shapes for n in s):
        try:
            return torch.Size(np.broadcast_shapes(*map(tuple, shapes)))
        except ValueError:
            pass
    return torch.broadcast_shapes(*shapes)
