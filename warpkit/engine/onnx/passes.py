"""Passes along the rows of planes (P, n, k), by operations that ONNX has.

A pass along x runs along the rows of the planes transposed by `turned`: a Gather of whole rows
copies memory, while one of columns goes pixel by pixel, which is ten times slower in onnxruntime.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from warpkit.engine.onnx.blocks import Blocks


def constant(array: NDArray[Any], beside: Tensor) -> Tensor:
    """An array as a tensor on the device of `beside`."""
    return torch.from_numpy(np.ascontiguousarray(array)).to(beside.device)


def turned(planes: Tensor) -> Tensor:
    """Transposes (P, n, k) to (P, k, n)."""
    return planes.transpose(1, 2)


def as_planes(image: Tensor) -> Tensor:
    """(..., H, W) as (P, H, W)."""
    return image.reshape(-1, *image.shape[-2:])


def as_images(planes: Tensor, image: Tensor) -> Tensor:
    """Planes (P, h, w) with the leading dimensions of `image`; the first may be of any size."""
    return planes.reshape(-1, *image.shape[1:-2], *planes.shape[-2:])


def chosen(planes: Tensor, rows: NDArray[np.int64]) -> Tensor:
    """The given rows of planes (P, n, k); all of them in order cost nothing."""
    if np.array_equal(rows, np.arange(planes.shape[1])):
        return planes
    return planes.index_select(1, constant(rows, planes))


def moved(planes: Tensor, x: NDArray[np.int64], y: NDArray[np.int64]) -> Tensor:
    """The single pixel that each output pixel reads, by its column (w,) and row (h,)."""
    return turned(chosen(turned(chosen(planes, y)), x))


def sums(planes: Tensor, blocks: Blocks) -> Tensor:
    """The filter's sums (P, blocks, B, k), in units of 2^-bits; rounded down, float32."""
    last = blocks.digits[-1]
    shape = (-1, last.shape[0], last.shape[2], planes.shape[2])
    windows = chosen(planes, blocks.rows).to(torch.float32).reshape(shape)
    total = None
    for low in blocks.digits[:-1]:
        part = torch.matmul(constant(low, planes), windows)
        total = (part if total is None else part + total * 2.0**-blocks.step).floor()
    part = torch.matmul(constant(last, planes), windows)
    return part if total is None else part + total


def joined(made: Tensor, size: int) -> Tensor:
    """Blocks (P, blocks, B, k) as rows (P, size, k)."""
    rows = made.reshape(-1, made.shape[1] * made.shape[2], made.shape[3])
    return rows if rows.shape[1] == size else rows[:, :size]


def filtered(planes: Tensor, blocks: Blocks) -> Tensor:
    """One pass of bytes: rounded half up, saturated."""
    return joined(to_bytes(sums(planes, blocks) * 2.0**-blocks.bits + 0.5), blocks.size)


def to_bytes(values: Tensor) -> Tensor:
    """Truncates to bytes: a Cast rounds towards 0, and is undefined out of range."""
    return values.clamp(0, 255).to(torch.uint8)


def two_filters(planes: Tensor, order: Sequence[tuple[int, Blocks]]) -> Tensor:
    """Passes of bytes along dimensions -1 and -2, in this order."""
    for dim, blocks in order:
        planes = filtered(planes, blocks) if dim == -2 else turned(filtered(turned(planes), blocks))
    return planes
