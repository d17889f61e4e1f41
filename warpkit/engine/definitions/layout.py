"""Batches and memory layouts."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import torch
from torch import Tensor

from warpkit.core.shapes import broadcast_shapes

POINTS, AFFINE, PERSPECTIVE = 0, 2, 3
"""Kinds of map in compiled kernels: given points, or a matrix by its rows."""


def is_channels_last(image: Tensor) -> bool:
    """Whether the image, and so the result, is channels-last."""
    if image.ndim != 4 or image.is_contiguous():
        return False
    return image.is_contiguous(memory_format=torch.channels_last)


def mapping_batch(mapping: Sequence[int]) -> tuple[int, ...]:
    """The batch of the shape of a matrix, (..., 2 or 3, 3), or of points, (..., h, w, 2)."""
    return tuple(mapping[: -3 if mapping[-1] == 2 else -2])


def batch_of(image: Sequence[int], mapping: Sequence[int]) -> tuple[int, ...]:
    """The batch of the result, by the shapes of image and map."""
    maps, batch = mapping_batch(mapping), tuple(image[:-3])
    return batch if maps in (batch, ()) else tuple(broadcast_shapes(batch, maps))


def mapping_kind(mapping: Sequence[int]) -> int:
    """The kind of a map by its shape: POINTS, AFFINE or PERSPECTIVE."""
    return POINTS if mapping[-1] == 2 else mapping[-2]


def are_planes(mapping: Tensor) -> bool:
    """Whether points (*P, h, w, 2) are stored as planes of x and of y, as in a network's flows."""
    if mapping.shape[-1] != 2 or mapping.is_contiguous():
        return False
    return mapping.movedim(-1, -3).is_contiguous()


def dense_mapping(mapping: Tensor) -> Tensor:
    """A dense map (*M, 2 or 3, 3) or (*P, h, w, 2); points in planes stay in planes."""
    return mapping if are_planes(mapping) else mapping.contiguous()


def broadcast_index(
    source: tuple[int, ...], batch: tuple[int, ...], strides: tuple[int, ...] | None = None
) -> np.ndarray:
    """For every item of `batch`, in flat order, the entry of `source` that broadcasts to it.

    The entry is given as an index, or, with the strides of `source`, as an offset in memory.
    """
    numbers = np.arange(prod(source)).reshape(source)
    if strides is not None:
        numbers = np.tensordot(np.array(strides, np.intp), np.indices(source), 1)
    # a copy, because kernels need adjacent numbers, which a broadcast view lacks
    return np.array(np.broadcast_to(numbers, batch)).reshape(-1)


def mapping_size(mapping: Sequence[int]) -> int:
    """The number of values in the matrix or the points of one item."""
    return prod(mapping[len(mapping_batch(mapping)) :])


def fill_strides(fill: Sequence[int]) -> tuple[int, int, int, int]:
    """The strides of a dense `fill` of this shape: per item, channel, row and column of the
    result."""
    *batch, c, h, w = (1,) * (3 - len(fill)) + tuple(fill)
    return (
        c * h * w if prod(batch) > 1 else 0,
        h * w if c > 1 else 0,
        w if h > 1 else 0,
        1 if w > 1 else 0,
    )


def read_in_place(image: Tensor) -> Tensor:
    """The image without batch entries that only repeat memory; dense, in its own layout."""
    last = is_channels_last(image)
    for d in range(image.ndim - 3):
        if image.stride(d) == 0 and image.shape[d] > 1:
            image = image.narrow(d, 0, 1)
    return image if last else image.contiguous()


def layout_of(image: Tensor) -> torch.memory_format:
    """The memory format of the image's gradient, and of a result with as many dimensions."""
    return torch.channels_last if is_channels_last(image) else torch.contiguous_format


def cycle(source: Sequence[int], batch: Sequence[int]) -> tuple[int, int] | None:
    """(div, mod) for which item n of `batch`, in flat order, has entry n // div % mod of `source`.

    None if the dimensions of `source` are not adjacent in `batch`.
    """
    source = (1,) * (len(batch) - len(source)) + tuple(source)
    axes = [d for d in range(len(batch)) if source[d] > 1]
    if not axes:
        return 1, 1
    first, last = axes[0], axes[-1]
    if any(batch[d] > 1 for d in range(first, last) if d not in axes):
        return None
    return prod(batch[last + 1 :]), prod(source)


def sum_to(total: Tensor, tensor: Tensor) -> Tensor:
    """Sums over broadcast dimensions, in the type of `tensor`."""
    total = total.sum_to_size(tensor.shape) if total.shape != tensor.shape else total
    return total.to(tensor.dtype)


def restore_memory_format(result: Tensor, image: Tensor) -> Tensor:
    """Makes `result` channels-last if `image` is, as convolutions before and after it expect.

    result (*batch, C, h, w); image (*I, C, H, W).
    """
    if image.ndim == result.ndim == 4 and not image.is_contiguous():
        one = image[:1]  # ignore the strides of the batch, which may be expanded
        # tested and made with movedim: under vmap torch supports no memory_format
        if not one.is_contiguous() and one.movedim(-3, -1).is_contiguous():
            return result.movedim(-3, -1).contiguous().movedim(-1, -3)
    return result.contiguous()
