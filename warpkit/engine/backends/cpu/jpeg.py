"""JPEG files of images by the native library (native/jpeg.cpp); the gradient is the formula's."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.backends.cpu import calls
from warpkit.engine.backends.cpu.memory import empty
from warpkit.engine.definitions.jpeg import BLOCK, SAMPLING

FILES = calls.Family("jpeg")
IMAGES, OUT, QUALITIES = (FILES.fields[name] for name in ("images", "out", "qualities"))
BAND = 256
"""The height of a band: two rows of blocks beside it are computed twice."""


def forward(subsampling: str, images: Tensor, quality: Tensor) -> tuple[Tensor, None]:
    """As `jpeg.through_file`: images (N, 1 or 3, H, W), quality (N,), int32."""
    levels = images if images.dtype == torch.uint8 else _levels(images)
    levels, quality = levels.contiguous(), quality.contiguous()
    result = torch.from_numpy(empty(levels.shape, np.dtype(np.uint8)))
    count, *size = levels.shape
    block, units = _block(subsampling, (size[0], size[1], size[2]))
    numbers = block.copy()
    numbers[IMAGES], numbers[OUT] = calls.address(levels), calls.address(result)
    numbers[QUALITIES] = calls.address(quality)
    calls.launch(numbers, 0, count * units, levels.numel())
    if images.dtype == torch.uint8:
        return result, None
    return result.to(images.dtype).div_(255), None


def _levels(images: Tensor) -> Tensor:
    return images.mul(255).round_().clamp_(0, 255).to(torch.uint8)


@lru_cache(maxsize=calls.KEPT)
def _block(subsampling: str, size: tuple[int, int, int]) -> tuple[np.ndarray, int]:
    """The block for images (channels, height, width), and the number of units of each."""
    rows, columns = SAMPLING[subsampling] if size[0] == 3 else (1, 1)
    bands = -(-size[1] // BAND)
    names = ("channels", "height", "width", "rows", "columns", "bands", "band_rows")
    given = (*size, rows, columns, bands, BAND // (BLOCK * rows))
    return FILES.block("through_file", dict(zip(names, given, strict=True))), bands
