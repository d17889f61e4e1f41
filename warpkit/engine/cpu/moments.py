"""Sums over the pixels of two images and their slopes, for the normal equations.

In torch operations, `warpkit.alignment.equations` needs some forty passes over the images;
native/align/moments.cpp needs two. Pixels of the outermost ring are left out: their weight is 0.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.cpu import calls

FIRST = 6
"""The number of sums in the first pass."""

SHARED, CHANNEL = 8, 4
"""The number of maps in the second pass: shared by all channels, and per channel."""

STRIPS = {"first_sums": 512, "second_sums": 64}
"""Columns of a unit, by task. Each unit has its own sums, which stay in the fastest cache for a
strip; wide strips read memory faster."""

MOMENTS = calls.Family("moments")


def first_sums(fixed: Tensor, seen: Tensor, weight: Tensor) -> Tensor:
    """As `SumsBackend.first_sums`."""
    arrays = {"fixed": fixed, "seen": seen, "weight": weight}
    return _sums("first_sums", arrays, 1)


def second_sums(
    fixed: tuple[Tensor, Tensor, Tensor],
    seen: Tensor,
    weight: Tensor,
    gain: Tensor,
    bias: Tensor,
    half: float,
    degree: int,
) -> Tensor:
    """As `SumsBackend.second_sums`."""
    arrays = dict(zip(("fixed", "fixed_x", "fixed_y"), fixed, strict=True))
    arrays |= {"seen": seen, "weight": weight, "gain": gain, "bias": bias}
    arrays["half"] = torch.tensor(half, dtype=torch.float64, device="cpu")
    return _sums("second_sums", arrays, degree + 1)


def _sums(task: str, arrays: dict[str, Tensor], powers: int) -> Tensor:
    """The sums of a task, (N, maps, D), from its arrays by name."""
    arrays = {name: tensor.contiguous() for name, tensor in arrays.items()}
    fixed = arrays["fixed"]
    shape, double = tuple(fixed.shape), fixed.dtype == torch.float64
    block, strips = block_of(task, shape, arrays["seen"].shape[1], powers, double)
    count, channels = shape[:2]
    maps = (channels, FIRST) if task == "first_sums" else (SHARED + CHANNEL * channels, powers**2)
    out = np.empty((count, strips, *maps))
    numbers = block.copy()
    for name, tensor in arrays.items():
        numbers[MOMENTS.fields[name]] = calls.address(tensor)
    numbers[MOMENTS.fields["out"]] = out.ctypes.data
    calls.launch(numbers, 0, count * strips, fixed.numel())
    return torch.from_numpy(out[:, 0] if strips == 1 else out.sum(1))


@lru_cache(maxsize=64)
def block_of(
    task: str, shape: tuple[int, ...], seen: int, powers: int, double: bool
) -> tuple[np.ndarray, int]:
    """The block for images (N, C, h, w), and the number of strips per image; `seen`: its
    channels."""
    items, channels, height, width = shape
    strips = -(-(width - 2) // STRIPS[task]) if min(height, width) > 2 else 0
    numbers = {
        "items": items,
        "channels": channels,
        "seen_channels": seen,
        "height": height,
        "width": width,
        "strips": strips,
        "strip_width": STRIPS[task],
        "powers": powers,
        "doubles": double,
    }
    return MOMENTS.block(task, numbers), strips
