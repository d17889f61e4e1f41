"""Where each item of a batch begins in a tensor that is broadcast to it and not copied."""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor


def starts(tensor: Tensor, batch: tuple[int, ...], core: int) -> Tensor:
    """The first number of each item of `batch`, int64; tensor: contiguous, `core` dims an item."""
    mine, each = tensor.shape[: tensor.ndim - core], prod(tensor.shape[tensor.ndim - core :])
    found = torch.arange(prod(mine), dtype=torch.int64, device="cpu").reshape(mine) * each
    return found.expand(batch).contiguous()
