"""Batches and memory layouts."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor


def is_last(image: Tensor) -> bool:
    """Whether the image, and so the result, is channels-last."""
    if image.ndim != 4 or image.is_contiguous():
        return False
    return image.is_contiguous(memory_format=torch.channels_last)


def own_batch(where: Sequence[int]) -> tuple[int, ...]:
    """The batch of the shape of a matrix, (..., 2 or 3, 3), or of points, (..., h, w, 2)."""
    return tuple(where[: -3 if where[-1] == 2 else -2])


def batch_of(image: Sequence[int], where: Sequence[int]) -> tuple[int, ...]:
    """The batch of the result, by the shapes of image and map."""
    own, batch = own_batch(where), tuple(image[:-3])
    return batch if own in (batch, ()) else tuple(torch.broadcast_shapes(batch, own))


def numbers_of(where: Sequence[int]) -> int:
    """How many numbers the matrix or the points of one item are."""
    return prod(where[len(own_batch(where)) :])


def outside_strides(outside: Sequence[int]) -> tuple[int, int, int, int]:
    """By what a dense `outside` of this shape is read: item, channel, row, column of the result."""
    *own, c, h, w = (1,) * (3 - len(outside)) + tuple(outside)
    return (
        c * h * w if prod(own) > 1 else 0,
        h * w if c > 1 else 0,
        w if h > 1 else 0,
        1 if w > 1 else 0,
    )


def read_in_place(image: Tensor) -> Tensor:
    """The image without the batch entries that only repeat memory; dense, in its own layout."""
    last = is_last(image)
    for d in range(image.ndim - 3):
        if image.stride(d) == 0 and image.shape[d] > 1:
            image = image.narrow(d, 0, 1)
    return image if last else image.contiguous()


def layout_of(image: Tensor) -> torch.memory_format:
    """The layout of the image's gradient, and of a result of as many dimensions."""
    return torch.channels_last if is_last(image) else torch.contiguous_format


def cycle(own: Sequence[int], batch: Sequence[int]) -> tuple[int, int] | None:
    """(div, mod), so that item n of `batch`, counted through, has entry n // div % mod of `own`.

    None where the dimensions that `own` has are not neighbours in `batch`.
    """
    own = (1,) * (len(batch) - len(own)) + tuple(own)
    kept = [d for d in range(len(batch)) if own[d] > 1]
    if not kept:
        return 1, 1
    first, last = kept[0], kept[-1]
    if any(batch[d] > 1 for d in range(first, last) if d not in kept):
        return None
    return prod(batch[last + 1 :]), prod(own)


def sum_to(total: Tensor, like: Tensor) -> Tensor:
    """Summed over what was broadcast, in the type of `like`."""
    total = total.sum_to_size(like.shape) if total.shape != like.shape else total
    return total.to(like.dtype)


def like(image: Tensor, result: Tensor) -> Tensor:
    """Keep channels-last: what a convolution before and after it expects."""
    if image.ndim == result.ndim == 4 and not image.is_contiguous():
        one = image[:1]  # whatever the strides of the batch, which may be expanded
        # asked and made by movedim: under vmap torch knows no memory_format
        if not one.is_contiguous() and one.movedim(-3, -1).is_contiguous():
            return result.movedim(-3, -1).contiguous().movedim(-1, -3)
    return result.contiguous()
