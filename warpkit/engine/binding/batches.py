"""A batch of calls as one call of a larger batch: the rule of torch.func.vmap."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from warpkit.core.shapes import broadcast_shapes

Cores = Callable[[Sequence[Tensor]], Sequence[int]]
"""The number of dimensions of each tensor, by all of them, that follow its batch."""

Dims = Sequence[int | None]
"""The dimension of the calls in each tensor, or None."""


def fold(count: int, dims: Dims, tensors: Sequence[Tensor], cores: Cores) -> list[Tensor]:
    """Tensors with the dimension of `count` calls first in each batch.

    A tensor without that dimension repeats its memory, which kernels read directly.
    """
    first = [
        t.expand(count, *t.shape) if d is None else t.movedim(d, 0)
        for t, d in zip(tensors, dims, strict=True)
    ]
    sizes = cores(first)
    batch = max(t.ndim - 1 - n for t, n in zip(first, sizes, strict=True))
    return [
        t.reshape(count, *(1,) * (batch + n - t.ndim + 1), *t.shape[1:])
        for t, n in zip(first, sizes, strict=True)
    ]


def unfold(
    count: int, dims: Dims, tensors: Sequence[Tensor], cores: Cores, core: int
) -> tuple[list[Tensor], list[torch.Size]]:
    """The same for the gradient of a result and the tensors, and the shapes of each call's tensors.

    core: the result's dimensions after its batch.
    """
    grad, *inputs = tensors
    grad = grad.expand(count, *grad.shape) if dims[0] is None else grad.movedim(dims[0], 0)
    folded = fold(count, dims[1:], inputs, cores)
    pairs = zip(folded, cores(folded), strict=True)
    batch = broadcast_shapes(*(t.shape[: t.ndim - n] for t, n in pairs))
    shapes = [
        t.shape if d is None else t.movedim(d, 0).shape[1:]
        for t, d in zip(inputs, dims[1:], strict=True)
    ]
    return [grad.reshape(*batch, *grad.shape[grad.ndim - core :]), *folded], shapes
