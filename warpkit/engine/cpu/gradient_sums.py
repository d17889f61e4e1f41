"""The gradients of maps and fills from the sums that kernels write, in numpy's order.

torch's order of sums depends on the number of threads.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.cpu.warp_calls import WarpShapes
from warpkit.engine.definitions.layout import POINTS


def mapping_gradient(
    total: np.ndarray | None, mapping: Tensor, shapes: WarpShapes, bands: int
) -> Tensor:
    """The gradient to `mapping`, (*M, 2 or 3, 3) or (*P, h, w, 2), from the kernels' sums.

    It is 0 if nothing was summed: nearest has no slope.
    """
    if total is None:
        return torch.zeros_like(mapping, memory_format=torch.contiguous_format)
    if shapes.kind == POINTS:
        return sum_to(total.reshape(*shapes.batch, *mapping.shape[-3:]), mapping)
    total = total.reshape(*shapes.batch, bands, 3, 3)
    total = total[..., 0, :, :] if bands == 1 else _sum(total, -3)
    return sum_to(total[..., : mapping.shape[-2], :], mapping)


def fill_gradient(total: np.ndarray, fill: Tensor, shapes: WarpShapes, bands: int) -> Tensor:
    """The gradient to `fill`, which broadcasts to the result, from the kernels' sums."""
    if shapes.dense:
        return sum_to(total.reshape(shapes.shape), fill)
    total = _sum(total.reshape(*shapes.batch, bands, shapes.shape[-3]), -2)
    return sum_to(total[..., None, None], fill)


def sum_to(total: np.ndarray, tensor: Tensor) -> Tensor:
    """Sums over the dimensions in which a tensor (...) broadcasts, in its type."""
    if total.size != tensor.numel():
        extra = total.ndim - tensor.ndim
        total = _sum(total, tuple(range(extra))) if extra else total
        ones = tuple(d for d in range(tensor.ndim) if tensor.shape[d] == 1 != total.shape[d])
        total = _sum(total, ones, keepdims=True) if ones else total
    # ascontiguousarray turns a single number into a row
    return torch.from_numpy(np.ascontiguousarray(total).reshape(tensor.shape)).to(tensor.dtype)


@np.errstate(all="ignore")  # infinities may meet: NaN without a warning, as in torch
def _sum(total: np.ndarray, axes: int | tuple[int, ...], keepdims: bool = False) -> np.ndarray:
    """The sum of numbers (...)."""
    return total.sum(axes, keepdims=keepdims)
