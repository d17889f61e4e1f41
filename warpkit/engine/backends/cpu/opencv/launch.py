"""From tensors to the kernels of OpenCV's arithmetics: strides, border values, units of work."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.arithmetic.opencv4_tables import integer_table
from warpkit.engine.arithmetic.opencv5 import has_vector_kernel
from warpkit.engine.backends.cpu.memory import empty
from warpkit.engine.backends.cpu.opencv.cubic import cubic_kernel
from warpkit.engine.backends.cpu.opencv.packed_uint8 import bytes_kernel
from warpkit.engine.backends.cpu.opencv.planar import TABLE_TAPS, planes_kernel
from warpkit.engine.backends.cpu.opencv.positions import ROW
from warpkit.engine.backends.cpu.opencv.tile import TILE_ROWS, OpenCVPlan
from warpkit.engine.backends.cpu.runtime.scratch import of_this_thread
from warpkit.engine.backends.cpu.threads import run
from warpkit.engine.sampling.layout import (
    batch_of,
    broadcast_index,
    mapping_batch,
    mapping_kind,
    mapping_size,
)
from warpkit.engine.sampling.rules import CODE, TAPS, SamplingRule

BAND = 4
"""Rows of tiles dealt at once: to call a kernel takes 5 us, and a row of small tiles not 20."""


class PreparedCall(NamedTuple):
    """All of a call but the numbers of its image and mapping."""

    kernel: Any
    image_of: np.ndarray
    """Where each item's image begins."""
    mapping_of: np.ndarray
    fill: np.ndarray
    table: np.ndarray
    plan: OpenCVPlan
    units: int
    shape: tuple[int, ...]
    """Of the result's memory."""
    dtype: np.dtype


def forward(
    image: Tensor,
    mapping: Tensor,
    fill: Tensor,
    size: Sequence[int],
    rule: SamplingRule,
    fixed: bool,
) -> Tensor:
    """The result (*batch, C, h, w), channels side by side where the image's are.

    mapping: a matrix, float64, or points, float32. fixed: in fixed point, as
    OpenCV 4 does all and OpenCV 5 some.

    image (*I, C, H, W); mapping (*M, 2 or 3, 3) or (*P, h, w, 2); fill (), or (*F, C, 1, 1).
    """
    image = image.detach()
    call = prepare(image, mapping, fill, size, rule, fixed)
    numbers = mapping.detach().contiguous().numpy().reshape(-1)
    pixels = _memory(image) if 0 not in call.shape else numbers  # of nothing, nothing is read
    memory = torch.from_numpy(result(call, pixels, numbers))
    return memory.movedim(-1, -3) if _is_packed(image) else memory


def _is_packed(image: Tensor) -> bool:
    """Whether the channels of an image (*I, C, H, W) lie side by side."""
    return image.stride(-3) == 1 and image.stride(-1) == image.shape[-3]


def prepare(
    image: Tensor,
    mapping: Tensor,
    fill: Tensor,
    size: Sequence[int],
    rule: SamplingRule,
    fixed: bool,
) -> PreparedCall:
    """For all images and mappings of these types, shapes and layouts: see `forward`.

    image (*I, C, H, W); mapping (*M, 2 or 3, 3) or (*P, h, w, 2); fill (), or (*F, C, 1, 1).
    """
    batch = batch_of(image.shape, mapping.shape)
    channels = image.shape[-3]
    taps, whole_numbers = TAPS[rule.interpolation], not image.is_floating_point()
    channels_last = _is_packed(image)
    packed = channels_last and channels in (3, 4)
    by_bytes = image.dtype == torch.uint8 and taps <= 2 and (packed or image.stride(-1) == 1)
    shape = (*batch, *size, channels) if channels_last else (*batch, channels, *size)
    fill_values = _fill_values(fill, image, batch)
    plan = _plan(image, mapping, size, channels_last, fill_values, rule, 1 if packed else channels)
    kind = mapping_kind(mapping.shape)
    units = prod(batch) * -(-size[0] // TILE_ROWS)
    if by_bytes:
        kernel = bytes_kernel(kind, fixed, channels if packed else 1, taps == 1)
        units *= plan.planes
    elif taps == 4 and not fixed:
        kernel = cubic_kernel(kind, has_vector_kernel(image), whole_numbers)
    else:
        kernel = planes_kernel(kind, fixed, min(taps, TABLE_TAPS), whole_numbers)
    return PreparedCall(
        kernel,
        broadcast_index(tuple(image.shape[:-3]), batch, image.stride()[:-3]),
        broadcast_index(mapping_batch(mapping.shape), batch),
        fill_values,
        _table(rule.interpolation),
        plan,
        units,
        shape,
        image[..., :0].numpy().dtype,
    )


def result(call: PreparedCall, image: np.ndarray, mapping: np.ndarray) -> np.ndarray:
    """The result's memory; image and mapping are the numbers of theirs, flat."""
    memory = empty(call.shape, call.dtype)
    if memory.size == 0:
        return memory
    arrays = (image, call.image_of, mapping, call.mapping_of, call.fill, memory.reshape(-1))
    kernel, units = call.kernel, call.units

    def work(begin: int, end: int) -> None:
        rows = begin * BAND, min(end * BAND, units)
        kernel(*arrays, call.table, call.plan, of_this_thread(_row), *rows)

    run(work, -(-units // BAND), memory.size)
    return memory


def _plan(
    image: Tensor,
    mapping: Tensor,
    size: Sequence[int],
    channels_last: bool,
    fill: np.ndarray,
    rule: SamplingRule,
    planes: int,
) -> OpenCVPlan:
    """image (*I, C, H, W); mapping (*M, 2 or 3, 3) or (*P, h, w, 2)."""
    channels, height, width = image.shape[-3:]
    plane, line, pixel = image.stride()[-3:]
    out_height, out_width = size
    out_pixel, out_plane = (channels, 1) if channels_last else (1, out_height * out_width)
    out_line = out_width * out_pixel
    return OpenCVPlan(
        channels=channels,
        planes=planes,
        height=height,
        width=width,
        line=line,
        pixel=pixel,
        plane=plane,
        out_height=out_height,
        out_width=out_width,
        out_item=channels * out_height * out_width,
        out_line=out_line,
        out_pixel=out_pixel,
        out_plane=out_plane,
        mapping_size=mapping_size(mapping.shape),
        fill=0 if len(fill) == channels else channels,
        border=CODE[rule.border],
        taps=TAPS[rule.interpolation],
    )


def _memory(tensor: Tensor) -> np.ndarray:
    """The numbers of a tensor from its first to its last, with whatever lies between."""
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    return tensor.as_strided((1 + sum((n - 1) * s for n, s in pairs),), (1,)).numpy()


def _fill_values(fill: Tensor, image: Tensor, batch: Sequence[int]) -> np.ndarray:
    """The border's value for every channel, of one item or of all.

    fill (), or (*F, C or 1, 1, 1); image (*I, C, H, W).
    """
    channels = image.shape[-3]
    value = fill.detach().numpy()
    if image.dtype == torch.uint8:
        value = np.rint(value).clip(0, 255).astype(np.uint8)
    value = value[..., 0, 0] if value.ndim > 2 else value
    items = batch if value.ndim and value.size > value.shape[-1] else ()
    if value.shape != (channels,) or items:
        value = np.broadcast_to(value, (*items, channels))
    return np.array(value).reshape(-1)  # a copy, as in `broadcast_index`


@lru_cache
def _table(interpolation: str) -> np.ndarray:
    """The integer weights of bicubic and lanczos4, see `opencv4_tables`; nothing for others."""
    if TAPS[interpolation] <= 2:
        return np.empty(0, np.int32)
    return integer_table(interpolation, torch.device("cpu")).numpy().reshape(-1)


def _row() -> tuple[np.ndarray, ...]:
    """What kernels work in: one entry a pixel of a row."""
    kinds = (np.int32, np.int32, np.float32, np.float32, np.uint64, np.uint64, np.uint32)
    reads = [np.empty(max(TAPS.values()) * ROW, np.int64) for _ in range(2)]
    weights = [np.empty(4 * ROW, np.float32) for _ in range(2)]
    return *(np.empty(ROW, kind) for kind in kinds), *reads, *weights
