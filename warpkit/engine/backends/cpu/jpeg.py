"""JPEG files of images, and their gradient, by the native library (native/jpeg*.cpp)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.backends.cpu import calls
from warpkit.engine.backends.cpu.memory import empty
from warpkit.engine.definitions import jpeg
from warpkit.engine.definitions.jpeg import BLOCK, SAMPLING

FILES = calls.Family("jpeg")
IMAGES, OUT, QUALITIES = (FILES.fields[name] for name in ("images", "out", "qualities"))
GRAD, GRAD_IMAGES = (FILES.fields[name] for name in ("grad", "grad_images"))
BAND = 256
"""The height of a band: two rows of blocks beside it are computed twice."""


def forward(subsampling: str, images: Tensor, quality: Tensor) -> tuple[Tensor, Tensor]:
    """As `jpeg.through_file`: images (N, 1 or 3, H, W), quality (N,), int32; also the levels."""
    levels = images if images.dtype == torch.uint8 else _levels(images)
    levels, quality = levels.contiguous(), quality.contiguous()
    result = torch.from_numpy(empty(levels.shape, np.dtype(np.uint8)))
    count, *size = levels.shape
    block, units = _block("through_file", subsampling, (size[0], size[1], size[2]))
    numbers = block.copy()
    numbers[IMAGES], numbers[OUT] = calls.address(levels), calls.address(result)
    numbers[QUALITIES] = calls.address(quality)
    calls.launch(numbers, 0, count * units, levels.numel())
    if images.dtype == torch.uint8:
        return result, levels
    return result.to(images.dtype).div_(255), levels


def backward(
    subsampling: str,
    levels: Tensor,
    grads: tuple[Tensor, ...],
    tensors: tuple[Tensor, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """The gradient of images (N, 1 or 3, H, W); that of float64 is the formula's."""
    images, quality = tensors
    if images.dtype == torch.float64:
        with torch.enable_grad():
            leaf = images.detach().requires_grad_()
            made = jpeg.through_file(leaf, quality, subsampling)
        return torch.autograd.grad(made, leaf, grads[0])[0], None
    grad, quality = grads[0].contiguous(), quality.contiguous()
    result = torch.from_numpy(empty(levels.shape, np.dtype(np.float32)))
    count, *size = levels.shape
    numbers = _block("file_backward", subsampling, (size[0], size[1], size[2]))[0].copy()
    numbers[IMAGES], numbers[QUALITIES] = calls.address(levels), calls.address(quality)
    numbers[GRAD], numbers[GRAD_IMAGES] = calls.address(grad), calls.address(result)
    calls.launch(numbers, 0, count, 4 * levels.numel())
    return result, None


def _levels(images: Tensor) -> Tensor:
    return images.mul(255).round_().clamp_(0, 255).to(torch.uint8)


@lru_cache(maxsize=calls.KEPT)
def _block(task: str, subsampling: str, size: tuple[int, int, int]) -> tuple[np.ndarray, int]:
    """The block for images (channels, height, width), and the number of units of each."""
    rows, columns = SAMPLING[subsampling] if size[0] == 3 else (1, 1)
    bands = -(-size[1] // BAND)
    names = ("channels", "height", "width", "rows", "columns", "bands", "band_rows")
    given = (*size, rows, columns, bands, BAND // (BLOCK * rows))
    return FILES.block(task, dict(zip(names, given, strict=True))), bands
