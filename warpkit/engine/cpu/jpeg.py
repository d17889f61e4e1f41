"""JPEG files of images, and their gradient, by the native library (native/jpeg*.cpp)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.cpu import calls
from warpkit.engine.cpu.memory import empty
from warpkit.engine.definitions import jpeg
from warpkit.engine.definitions.jpeg import BLOCK, SAMPLING

FILES = calls.Family("jpeg")
IMAGES, OUT, QUALITIES = (FILES.fields[name] for name in ("images", "out", "qualities"))
GRAD, GRAD_IMAGES = (FILES.fields[name] for name in ("grad", "grad_images"))
BAND = 256
"""The height of a band: two rows of blocks beside it are computed twice."""


def forward(subsampling: str, images: Tensor, quality: Tensor) -> tuple[Tensor, None]:
    """As `jpeg.through_file`: images (N, 1 or 3, H, W), quality (N,), int32."""
    if images.dtype == torch.float64:
        levels = images.mul(255).round_().clamp_(0, 255).to(torch.uint8)
        return forward(subsampling, levels, quality)[0].to(images.dtype).div_(255), None
    images, quality = images.contiguous(), quality.contiguous()
    result = _empty(images)
    numbers, units = _call("through_file", subsampling, images, quality)
    numbers[OUT] = calls.address(result)
    calls.launch(numbers, 0, units, images.numel())
    return result, None


def backward(
    subsampling: str,
    kept: None,
    grads: tuple[Tensor, ...],
    tensors: tuple[Tensor, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """The gradient of images (N, 1 or 3, H, W); that of float64 is the formula's."""
    images, quality = tensors
    if images.dtype == torch.float64:
        return jpeg.gradient(images, quality, subsampling, grads[0]), None
    images, grad, quality = images.contiguous(), grads[0].contiguous(), quality.contiguous()
    result = _empty(images)
    numbers, units = _call("file_backward", subsampling, images, quality)
    numbers[GRAD], numbers[GRAD_IMAGES] = calls.address(grad), calls.address(result)
    calls.launch(numbers, 0, units, 4 * images.numel())
    return result, None


def _empty(images: Tensor) -> Tensor:
    dtype = np.dtype(np.uint8 if images.dtype == torch.uint8 else np.float32)
    return torch.from_numpy(empty(images.shape, dtype))


def _call(task: str, subsampling: str, images: Tensor, quality: Tensor) -> tuple[np.ndarray, int]:
    """A block with images (N, C, H, W) and quality (N,), and the number of units."""
    count, channels, height, width = images.shape
    floats = images.dtype == torch.float32
    block, bands = _block(task, subsampling, (channels, height, width), floats)
    numbers = block.copy()
    numbers[IMAGES], numbers[QUALITIES] = calls.address(images), calls.address(quality)
    return numbers, count * bands


@lru_cache(maxsize=calls.KEPT)
def _block(
    task: str, subsampling: str, size: tuple[int, int, int], floats: bool
) -> tuple[np.ndarray, int]:
    """The block for images (channels, height, width), and the number of units of each."""
    rows, columns = SAMPLING[subsampling] if size[0] == 3 else (1, 1)
    bands = -(-size[1] // BAND)
    names = ("channels", "height", "width", "rows", "columns", "bands", "band_rows", "floats")
    given = (*size, rows, columns, bands, BAND // (BLOCK * rows), floats)
    return FILES.block(task, dict(zip(names, given, strict=True))), bands
