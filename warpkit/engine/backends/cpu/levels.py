"""Pyramid levels of an alignment in the native library: smoothed, with their slopes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.backends.cpu import calls

LEVELS = calls.Family("level")
FIELDS = LEVELS.fields


@lru_cache(maxsize=64)
def _block(shape: tuple[int, ...], planes: int, reach: int, doubles: bool) -> np.ndarray:
    """The block for pictures (N, C, h, w), written to the first planes of each result with
    `planes`."""
    _, channels, height, width = shape
    numbers = {"channels": channels, "out_planes": planes, "height": height, "width": width}
    return LEVELS.block("smooth_level", numbers | {"reach": reach, "doubles": doubles})


def smooth(image: Tensor, weights: Sequence[float], out: Tensor) -> None:
    """Write (N, C, h, w), smoothed along both axes, to the first C planes of out (N, D, h, w).

    weights: that of a pixel, and those of its neighbours on each side.
    """
    _run(image, weights, out, None)


def smooth_with_slopes(image: Tensor, weights: Sequence[float]) -> tuple[Tensor, Tensor, Tensor]:
    """(N, C, h, w) smoothed, and its slopes along x and y."""
    out = [torch.empty(image.shape, dtype=image.dtype, device="cpu") for _ in range(3)]
    _run(image, weights, out[0], (out[1], out[2]))
    return out[0], out[1], out[2]


def _run(
    image: Tensor, weights: Sequence[float], out: Tensor, slopes: tuple[Tensor, Tensor] | None
) -> None:
    """image (N, C, h, w), slopes of the same shape, out (N, D, h, w)."""
    image, kept = image.contiguous(), np.array(weights)
    shape, doubles = tuple(image.shape), image.dtype == torch.float64
    numbers = _block(shape, out.shape[1], len(kept) - 1, doubles).copy()
    numbers[FIELDS["image"]], numbers[FIELDS["out"]] = map(calls.address, (image, out))
    if slopes is not None:
        numbers[FIELDS["out_x"]], numbers[FIELDS["out_y"]] = map(calls.address, slopes)
    numbers[FIELDS["weights"]] = kept.ctypes.data
    calls.launch(numbers, 0, shape[0] * shape[1], 4 * image.numel())
