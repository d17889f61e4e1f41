"""Channels-last copies of features in the native library: native/matching/channels.cpp."""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np
from torch import Tensor

from warpkit.engine.cpu import calls
from warpkit.engine.cpu.memory import empty
from warpkit.engine.definitions.layout import broadcast_index, read_in_place

COPIES = calls.Family("channels")
SINGLE = np.dtype(np.float32)
PIECE = 16
"""Channels of a register: a pixel has a multiple of it."""
PIXELS = 64
"""Pixels of a unit: `PIXELS_OF_COPY` of native/matching/matching_call.h."""


@lru_cache(maxsize=calls.KEPT)
def in_order(channels: int) -> np.ndarray:
    """The channel at each place of a pixel, -1 for the places behind the last."""
    found = np.full(-(-channels // PIECE) * PIECE, -1, np.int32)
    found[:channels] = np.arange(channels)
    return found


def dense(pictures: Tensor, *, whole: bool = False) -> Tensor:
    """Pictures (..., C, H, W), or others with three dimensions after the batch, as planes, without
    batch entries that only repeat memory.

    whole: with them, because each has a gradient of its own."""
    return (pictures if whole else read_in_place(pictures)).contiguous()


def entries(pictures: Tensor, batch: tuple[int, ...]) -> np.ndarray:
    """The entry of dense pictures that belongs to each item of a batch, in flat order."""
    return broadcast_index(tuple(pictures.shape[:-3]), batch).astype(np.int64)


def copies(pictures: Tensor, order: np.ndarray) -> np.ndarray:
    """Dense pictures (..., C, H, W) as (n, H W + 1, places of `order`); the last pixel is 0."""
    channels, height, width = pictures.shape[-3:]
    count, pixels = prod(pictures.shape[:-3]), height * width
    found = empty((count, pixels + 1, len(order)), SINGLE)
    codes = {
        "planes": calls.address(pictures),
        "copies": calls.address(found),
        "order": calls.address(order),
        "channels": channels,
        "padded": len(order),
        "pixels": pixels,
    }
    units = count * -(-pixels // PIXELS)
    calls.launch(COPIES.block("channels_last", codes), 0, units, found.size)
    return found
