"""Pyramid levels of an alignment in the native library: statistics, and one level in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.cpu import calls, memory

LEVELS = calls.Family("level")
FIELDS = LEVELS.fields

STATISTICS = 2
"""Numbers of an item's statistics before the means of its channels."""


class Pictures(NamedTuple):
    """What `level` computes; None for what is not wanted."""

    smooth: Tensor | None
    """(N, C, h, w), or with the pixels' weights (N, C + 1, h, w)."""
    whole: Tensor | None
    """Standardised but not smoothed, of the same shape."""
    slopes: tuple[Tensor, Tensor] | None
    """The slopes of `smooth` along x and y, (N, C, h, w) each."""
    half: Tensor | None
    """The standardised pictures at half their size, (N, C, h // 2, w // 2)."""


@lru_cache(maxsize=64)
def _block(task: str, shape: tuple[int, ...], planes: int, reach: int, doubles: bool) -> np.ndarray:
    """The block for pictures (N, C, h, w), written to the first planes of each result with
    `planes`."""
    _, channels, height, width = shape
    numbers = {"channels": channels, "out_planes": planes, "height": height, "width": width}
    return LEVELS.block(task, numbers | {"reach": reach, "doubles": doubles})


def statistics(image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The variance (N,) over channels and pixels of (N, C, h, w), the largest magnitude (N,), which
    is NaN or infinite if a number is, and the mean of each channel (N, C); float64."""
    image, shape = image.contiguous(), tuple(image.shape)
    out = np.empty((shape[0], STATISTICS + shape[1]))
    numbers = _block("level_statistics", shape, 0, 0, image.dtype == torch.float64).copy()
    numbers[FIELDS["image"]], numbers[FIELDS["out"]] = map(calls.address, (image, out))
    calls.launch(numbers, 0, shape[0], image.numel())
    found = torch.from_numpy(out)
    return found[:, 0], found[:, 1], found[:, STATISTICS:]


def level(
    image: Tensor,
    weights: Sequence[float] = (),
    pixel_weights: Tensor | None = None,
    units: tuple[Tensor, Tensor] | None = None,
    *,
    slopes: bool = False,
    half: bool = False,
) -> Pictures:
    """A level of pictures (N, C, h, w).

    weights: of a pixel, and of its neighbours on each side, by which both axes are smoothed; none
    for no smooth pictures: then slopes are those of the pictures.
    pixel_weights (N or 1, 1, h, w): added as the last channel. units: means (N, C) and deviations
    (N,) of the pictures' type, by which they are standardised first.
    """
    image, kept = image.contiguous(), np.array(weights)
    count, channels, height, width = image.shape

    def empty(*shape: int) -> Tensor:
        if prod(shape) * image.itemsize < memory.LEAST:
            return torch.empty(shape, dtype=image.dtype, device="cpu")
        return torch.from_numpy(memory.empty(shape, np.dtype(f"f{image.itemsize}")))

    planes = channels + (pixel_weights is not None)
    shape = (count, planes, height, width)
    found = Pictures(
        empty(*shape) if len(weights) else None,
        None if units is None else empty(*shape),
        (empty(*image.shape), empty(*image.shape)) if slopes else None,
        empty(count, channels, height // 2, width // 2) if half else None,
    )
    doubles, reach = image.dtype == torch.float64, max(len(kept) - 1, 0)
    numbers = _block("smooth_level", tuple(image.shape), planes, reach, doubles).copy()
    arrays: dict[str, Tensor | None] = {"image": image, "out": found.smooth}
    arrays |= {"whole": found.whole, "half": found.half}
    if found.slopes is not None:
        arrays["out_x"], arrays["out_y"] = found.slopes
    if units is not None:
        arrays["means"], arrays["deviations"] = (unit.contiguous() for unit in units)
    if pixel_weights is not None:
        arrays["pixel_weights"] = pixel_weights = pixel_weights.contiguous()
        numbers[FIELDS["weights_size"]] = height * width * (len(pixel_weights) > 1)
    for name, tensor in arrays.items():
        if tensor is not None:
            numbers[FIELDS[name]] = calls.address(tensor)
    numbers[FIELDS["weights"]] = kept.ctypes.data
    calls.launch(numbers, 0, count, 4 * image.numel())
    return found
