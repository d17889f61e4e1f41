"""From tensors to kernel calls: tables as the kernel reads them, layouts, and shares of work.

Everything here depends on shapes alone, never on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.arithmetic import opencv_ipp_resize, opencv_resize, pillow
from warpkit.engine.arithmetic.resize_tables import TableKey
from warpkit.engine.backends.cpu.memory import empty
from warpkit.engine.backends.cpu.resize import two_taps
from warpkit.engine.backends.cpu.resize.axes import (
    exact_axis,
    ipp_inside,
    ipp_orders,
    ipp_taps,
    opencv_axis,
    pillow_axis,
    table_axis,
    taps_of_numbers,
    taps_of_rows,
)
from warpkit.engine.backends.cpu.resize.ipp_cubic import CubicPlan, ipp_cubic_kernel
from warpkit.engine.backends.cpu.resize.passes import (
    CELLS,
    CUBIC,
    FLOAT,
    LINEAR,
    PILLOW,
    ROUND,
    SHIFT,
    VECTOR,
    Axis,
    ResizePlan,
    resize_kernel,
)
from warpkit.engine.backends.cpu.runtime.scratch import of_this_thread
from warpkit.engine.backends.cpu.threads import run
from warpkit.engine.sampling.layout import is_channels_last
from warpkit.engine.sampling.resize import AxisTaps, Edges, ResizeRule

BAND = 48
"""Rows of a band where x comes first: what the next band reads again is then a small part."""

ROWS = np.arange(VECTOR)

NUMPY = {
    torch.uint8: np.dtype(np.uint8),
    torch.uint16: np.dtype(np.uint16),
    torch.int16: np.dtype(np.int16),
    torch.float32: np.dtype(np.float32),
    torch.float64: np.dtype(np.float64),
}


def exact(
    image: Tensor,
    size: Sequence[int],
    rule: ResizeRule,
    box: Sequence[Edges] | None,
    *,
    adjoint: bool = False,
) -> Tensor:
    """As the reference's `resize`; adjoint: its gradient, from (..., h, w) to `size` (H, W)."""
    sizes = [(image.shape[d], size[d]) for d in (-1, -2)]
    floats = image.dtype.is_floating_point
    kind = NUMPY[image.dtype] if floats else np.dtype(np.float64)
    edges = (None, None) if box is None else box
    axes = [
        exact_axis(*(pair[::-1] if adjoint else pair), rule, part, kind, adjoint)
        for pair, part in zip(sizes, edges, strict=True)
    ]
    return _launch(image, size, axes, kind, FLOAT if floats else ROUND, down_first=True)


def pillow_uint8(
    image: Tensor, size: Sequence[int], rule: ResizeRule, box: Sequence[Edges] | None
) -> Tensor:
    """As `pillow.resize` of 8-bit images."""
    across, down, down_first = pillow.sides(image, size, box)
    axes = [pillow_axis(rule.interpolation, *axis) for axis in (across, down)]
    kind, bits = np.dtype(np.int32), pillow.BITS
    return _launch(image, size, axes, kind, PILLOW, down_first=down_first, bits=bits)


def pillow_float32(
    image: Tensor, size: Sequence[int], rule: ResizeRule, box: Sequence[Edges] | None
) -> Tensor:
    """As `pillow.resize` of float32 images: a pass is summed in float64 and stored as float32."""
    *sides, down_first = pillow.sides(image, size, box)
    wanted = {-1: pillow.table_of(rule, sides[0]), -2: pillow.table_of(rule, sides[1])}
    for dim in (-2, -1) if down_first else (-1, -2):
        if wanted[dim] is not None:
            tables = (wanted[dim], None) if dim == -1 else (None, wanted[dim])
            image = by_tables(image, tables, np.dtype(np.float64))
    return image


def by_tables(
    image: Tensor,
    tables: Sequence[TableKey | None],
    kind: np.dtype,
    *,
    size: Sequence[int] | None = None,
    adjoint: bool = False,
) -> Tensor:
    """An image (..., C, H, W) by tables along x and y, None where it stays, summed in a type.

    adjoint: the gradient of that, to `size` (H, W).
    """
    height, width = image.shape[-2:] if size is None else size
    sides = (width, height)
    axes = [table_axis(k, n, kind, adjoint) for k, n in zip(tables, sides, strict=True)]
    return _launch(image, [len(a.end) for a in axes[::-1]], axes, kind, FLOAT, down_first=True)


def taps_by_tables(
    tables: Sequence[TableKey | None], size: Sequence[int], kind: np.dtype, adjoint: bool
) -> list[AxisTaps]:
    """The taps of `by_tables` along x and y for the plain passes of the reference."""
    found = []
    for key, side in zip(tables, size[::-1], strict=True):
        axis = table_axis(key, side, kind, adjoint)
        pixel, weight = (torch.from_numpy(a).view(len(axis.end), -1) for a in axis[:2])
        place = torch.arange(pixel.shape[1])
        begin, end = (torch.from_numpy(a)[:, None] for a in axis[2:])
        found.append(AxisTaps(pixel, weight, (place >= begin) & (place < end)))
    return found


WAYS = {"bilinear": (LINEAR, 2), "exact": (SHIFT, 16), "lanczos4": (SHIFT, 22)}
WAYS["bicubic"] = CUBIC, 22
"""The ways of OpenCV that sum whole numbers of 8-bit images: the mode, and the bits cut off."""


def opencv(
    image: Tensor,
    size: Sequence[int],
    way: str,
    across: opencv_resize.Axis,
    down: opencv_resize.Axis,
) -> Tensor:
    """As `opencv_resize.values`, of the ways in WAYS, "cells" and IPP's (8 bits), and "area"."""
    if way == "ipp_bicubic":
        return _ipp_cubic(image, size, across, down)
    if way == "area":
        mode = FLOAT if image.is_floating_point() else ROUND
        double = image.dtype == torch.float64
        kind = np.dtype(np.float64 if double else np.float32)
        axes = [opencv_axis(*axis, 0, kind) for axis in (across, down)]
        return _launch(image, size, axes, kind, mode, down_first=False)
    kind, near = np.dtype(np.int32), _inner(image) < two_taps.WORD
    if way == "cells":
        axes = [opencv_axis(*axis, 1, kind) for axis in (across, down)]
        cell = round(across.scale) * round(down.scale)
        by_two = round(across.scale) == round(down.scale) == 2
        half_up = by_two and image.shape[-3] in (1, 3, 4)
        if half_up and near:
            return _two_taps(image, size, across, down, means=True)
        if half_up:
            return _launch(image, size, axes, kind, SHIFT, down_first=False, bits=2)
        share = np.float32(1) / np.float32(cell)
        return _launch(image, size, axes, kind, CELLS, down_first=False, scale=share)
    if way == "bilinear" and near:
        return _two_taps(image, size, across, down)
    one = 1 << 8 if way == "exact" else opencv_resize.UINT8_ONE
    axes = [opencv_axis(*axis, one, kind) for axis in (across, down)]
    mode, bits = WAYS[way]
    return _launch(image, size, axes, kind, mode, down_first=False, bits=bits)


def _ipp_cubic(
    image: Tensor, size: Sequence[int], across: opencv_resize.Axis, down: opencv_resize.Axis
) -> Tensor:
    """IPP's bicubic of bytes (..., C, H, W)."""
    (*batch, channels, height, width), (rows, columns) = image.shape, size
    last, pixels = is_channels_last(image), _numbers(image)
    avx512 = opencv_ipp_resize.AVX512
    items, band, inner = prod(batch), min(BAND, rows), _inner(image)
    memory = empty(items * channels * rows * columns, pixels.dtype)
    plan = CubicPlan(
        channels, height, 1 if last else height * width, inner, width * inner,
        rows, columns, 1 if last else rows * columns, inner, columns * inner, band, not avx512,
    )  # fmt: skip
    pixel, weight = ipp_taps(*across)
    x = pixel * inner, weight, ipp_orders(across, channels, avx512)
    each = np.arange(items)
    starts = np.stack((each * channels * height * width, each * channels * rows * columns))
    kernel, y = ipp_cubic_kernel(), (*ipp_taps(*down), ipp_inside(down))
    room = _rounded(4 * channels * columns)

    def work(begin: int, end: int) -> None:
        kernel(pixels, memory, starts, x, y, plan, of_this_thread(_lines, room), begin, end)

    if memory.size:
        run(work, items * -(-rows // band), max(memory.size, pixels.size // 2))
    return _like(image, memory, size)


def _lines(count: int) -> tuple[np.ndarray, ...]:
    return np.empty(count, np.float32), np.empty(4, np.int64), np.empty(count, np.int32)


def _inner(image: Tensor) -> int:
    """Numbers of a pixel of an image (..., C, H, W) that lie side by side."""
    return image.shape[-3] if is_channels_last(image) else 1


def _numbers(image: Tensor) -> np.ndarray:
    """An image (..., C, H, W), flat, in the order of its layout."""
    image = image.permute(0, 2, 3, 1) if is_channels_last(image) else image
    return image.contiguous().numpy(force=True).ravel()


def _like(image: Tensor, memory: np.ndarray, size: Sequence[int]) -> Tensor:
    """The result of `size` (h, w) in the layout of an image (..., C, H, W)."""
    batch = image.shape[:-2]
    if is_channels_last(image):
        return torch.from_numpy(memory.reshape(batch[0], *size, batch[1]).transpose(0, 3, 1, 2))
    return torch.from_numpy(memory.reshape(*batch, *size))


def _two_taps(
    image: Tensor,
    size: Sequence[int],
    across: opencv_resize.Axis,
    down: opencv_resize.Axis,
    *,
    means: bool = False,
) -> Tensor:
    """OpenCV's bilinear of bytes (..., C, H, W), or means of 2 x 2."""
    (*batch, height, width), (rows, columns) = image.shape, size
    apart, pixels = _inner(image), _numbers(image)
    memory = empty(prod(batch) * rows * columns, pixels.dtype)
    line, out_line, band = width * apart, columns * apart, min(BAND, rows)
    one = 1 if means else opencv_resize.UINT8_ONE
    tables = taps_of_numbers(*across, one, apart) | taps_of_rows(*down, one)
    values = {name: array.ctypes.data for name, array in tables.items()}
    values |= {"image": pixels.ctypes.data, "image_bytes": pixels.size}
    values |= {"out": memory.ctypes.data, "out_bytes": memory.size}
    values |= {"height": height, "line": line, "out_height": rows, "out_line": out_line}
    values |= {"rows": band, "apart": apart}
    numbers = np.array([values.get(name, 0) for name in two_taps.NAMES], np.int64)
    kernel, place = two_taps.two_taps_kernel(means), two_taps.NAMES.index("memory")
    needed = _rounded(two_taps.memory_bytes(line, out_line))

    def work(begin: int, end: int) -> None:
        mine = numbers.copy()
        mine[place] = of_this_thread(_bytes, needed).ctypes.data
        kernel(mine, begin, end)

    if memory.size:
        planes = prod(batch) // apart
        run(work, planes * -(-rows // band), max(memory.size, pixels.size // 2))
    return _like(image, memory, size)


def _bytes(count: int) -> np.ndarray:
    return np.empty(count, np.uint8)


def _launch(
    image: Tensor,
    size: Sequence[int],
    axes: Sequence[Axis],
    kind: np.dtype,
    mode: int,
    *,
    down_first: bool,
    scale: np.float32 | None = None,
    bits: int = 1,
) -> Tensor:
    """The image (..., C, H, W) by its taps along x and y; kind: what is summed in;
    scale, bits: see the modes."""
    (*batch, height, width), (rows, columns) = image.shape, size
    pixels, inner = _numbers(image), _inner(image)
    planes = prod(batch) // inner
    memory = empty(prod(batch) * rows * columns, pixels.dtype)
    across, down = axes
    read = ROWS
    if not down_first:
        down, read = _of_rows_read(down)
    band = VECTOR if down_first else min(BAND, rows)
    room = VECTOR if down_first else _most_rows(down, rows, band)
    plan = ResizePlan(height, width, rows, columns, inner, band, room)
    low, high = 0, 0
    if pixels.dtype.kind in "iu":
        low, high = np.iinfo(pixels.dtype).min, np.iinfo(pixels.dtype).max
    number = kind.type if kind.kind == "f" else np.float32
    limits = number(1 if scale is None else scale), number(low), number(high), bits
    lengths = (
        room * (width if down_first else columns) * inner,
        width * inner * VECTOR,
        columns * inner * VECTOR,
    )
    kernel = resize_kernel(mode, down_first)
    arrays = pixels, memory, (across, down), read, plan, limits

    def work(begin: int, end: int) -> None:
        kernel(*arrays, of_this_thread(_scratch, *map(_rounded, lengths), kind), begin, end)

    if memory.size:
        run(work, planes * -(-rows // band), max(memory.size, pixels.size // 2))
    return _like(image, memory, size)


def _of_rows_read(axis: Axis) -> tuple[Axis, np.ndarray]:
    """The axis by the place of each row among those that are read at all, and those rows.

    Two pixels of four, where bilinear shrinks by as much: the others are not turned.
    """
    rows, places = np.unique(axis.pixel, return_inverse=True)
    return axis._replace(pixel=places.reshape(-1)), rows


def _most_rows(axis: Axis, rows: int, band: int) -> int:
    """Rows of the image that a band reads, at most."""
    pixel = axis.pixel.reshape(rows, -1)
    starts = range(0, rows, band)
    return max(int(np.ptp(pixel[first : first + band])) + 1 for first in starts)


def _rounded(count: int) -> int:
    """A power of two: few sizes of scratch memory are ever made."""
    return 1 << max(count - 1, 1).bit_length()


def _scratch(lines: int, turned: int, summed: int, kind: np.dtype) -> tuple[np.ndarray, ...]:
    return np.empty(lines, kind), np.empty(turned, kind), np.empty(summed, kind)
