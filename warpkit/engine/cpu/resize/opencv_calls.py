"""Blocks for OpenCV's resizes, and the kernels that sum like `opencv_resize`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod

import numpy as np
import torch

from warpkit.engine.arithmetic import opencv_resize
from warpkit.engine.cpu.resize.axes import (
    Axis,
    ipp_apart,
    ipp_beyond,
    ipp_inside,
    ipp_orders,
    opencv_axis,
)
from warpkit.engine.cpu.resize.prepared import (
    BAND,
    CUBIC,
    HALF_UP,
    IPP_CUBIC,
    IPP_LINEAR,
    LINEAR,
    NESTED,
    PLAIN,
    SCALED,
    SHIFTED,
    Given,
    ResizeCall,
    call_of,
    columns_of,
    moves,
    odd_lines,
    sums,
    table_pixels,
)
from warpkit.engine.cpu.resize.windows import windows_of_cells, windows_of_taps
from warpkit.engine.cpu.warp_calls import TYPES
from warpkit.engine.definitions.resize import KEPT_TABLES, ResizeRule

QUADS = (2, 3, 4)
"""The numbers of channels that native/resize/resize_linear.cpp supports in channels-last layout."""

TOGETHER = 8
"""The largest number of pixels that are summed together."""


@lru_cache(maxsize=KEPT_TABLES)
def opencv_call(
    given: Given,
    size: tuple[int, int],
    rule: ResizeRule,
    factors: tuple[float, float] | None,
    avx512: bool,
) -> ResizeCall | None:
    """OpenCV's resize; None if no kernel sums like it; avx512: as in IPP's code for AVX-512."""
    way, across, down = opencv_resize.plan(given.shape, given.dtype, size, rule, factors)
    if not _has_kernel(given, way, across, down):
        return None
    if way == "move":
        return moves(given, size, *(table_pixels(axis.kind, axis[1:]) for axis in (across, down)))

    def axes(one: int, kind: type) -> tuple[Axis, Axis]:
        return tuple(opencv_axis(*axis, one, np.dtype(kind)) for axis in (across, down))  # pyright: ignore

    if way.startswith("ipp"):
        return _ipp(given, axes, way, across, down, avx512)
    if way in ("bilinear", "bicubic", "lanczos4") and given.dtype != torch.uint8:
        kind = np.float64 if given.dtype == torch.float64 else np.float32
        step = opencv_resize.VECTORS.get((way, given.dtype))
        finish = PLAIN if step is None else NESTED
        return sums(
            given, axes(0, kind), np.dtype(kind).str[1:], finish, down_first=False,
            at_once=step or 0,
        )  # fmt: skip
    if way == "area":
        kind = np.float64 if given.dtype == torch.float64 else np.float32
        return sums(given, axes(0, kind), np.dtype(kind).str[1:], down_first=False)
    if way == "cells":
        cell = round(across.scale), round(down.scale)
        half_up = cell == (2, 2) and given.shape[-3] in (1, 3, 4)
        if given.dtype != torch.uint8 or half_up:
            return _cells(given, size, cell)
        return sums(given, axes(1, np.int32), "i4", SCALED, down_first=False, share=_share(cell))
    if way == "exact" and given.dtype != torch.uint8:
        return sums(given, axes(0, np.float64), "f8", HALF_UP, down_first=False)
    if way == "exact":
        return sums(given, axes(1 << 8, np.int32), "i4", SHIFTED, down_first=False, bits=16)
    weights = axes(opencv_resize.UINT8_ONE, np.int32)
    if way == "bilinear":
        if given.inner in QUADS:
            both = weights[0].weight.reshape(-1, 2)
            return _linear(given, weights, both[:, 1] << 16 | both[:, 0])
        return sums(given, weights, "i2", LINEAR, down_first=False)
    finish = CUBIC if way == "bicubic" else SHIFTED
    step = opencv_resize.VECTORS.get((way, given.dtype), 0)
    return sums(given, weights, "i4", finish, down_first=False, bits=22, at_once=step)


def _cells(given: Given, size: tuple[int, int], cell: tuple[int, int]) -> ResizeCall:
    """Means over cells (w, h) of whole pixels, for 16 bits and floats."""
    channels, by_two = given.shape[-3], cell == (2, 2)
    half_up = by_two and not given.dtype.is_floating_point and channels in (1, 3, 4)
    pairs = by_two and given.dtype == torch.float32 and channels in (1, 4)
    windows = windows_of_cells(size[0], cell[1], given.shape[-1]) if given.windows else None
    return call_of(
        "resize_cells", given, size, 1, windows, type=TYPES[given.dtype], bits=2 * half_up,
        share=_share(cell), at_once=4 * pairs, cell_width=cell[0], cell_height=cell[1],
    )  # fmt: skip


def _share(cell: tuple[int, int]) -> int:
    """The float32 weight of a pixel in a cell, as its bits."""
    return int((np.float32(1) / np.float32(prod(cell))).view(np.int32))


def _ipp(
    given: Given,
    axes: Callable[[int, type], tuple[Axis, Axis]],
    way: str,
    across: opencv_resize.Axis,
    down: opencv_resize.Axis,
    avx512: bool,
) -> ResizeCall:
    """IPP's resize; `axes` makes the taps of both axes."""
    channels, fields = given.shape[-3], {}
    if way == "ipp_bicubic":
        alone = not avx512 or given.dtype != torch.uint8
        numbers = _last_numbers(across, channels, avx512 and given.dtype == torch.float32)
        return sums(
            given, axes(0, np.float32), "f4", IPP_CUBIC, down_first=False, alone=alone,
            orders=ipp_orders(across, channels, not alone), last_numbers=numbers,
            inside=ipp_inside(down).astype(np.int32),
        )  # fmt: skip
    kind = np.dtype(np.float64 if given.dtype == torch.float64 else np.float32)
    if way == "ipp_linear" and given.dtype in (torch.float32, torch.int16):
        found = ipp_apart(across, channels, given.dtype == torch.int16, given.last)
        fields = {"apart": found} if found.any() else {}
        if given.dtype == torch.int16:
            fields["inside"] = (~ipp_beyond(down)).astype(np.int32)
    weights = axes(0, kind.type)
    if given.inner in QUADS:
        return _linear(given, weights, weights[0].weight[1::2], **fields)
    return sums(given, weights, kind.str[1:], IPP_LINEAR, down_first=False, **fields)


def _linear(
    given: Given, axes: tuple[Axis, Axis], steps: np.ndarray, **fields: object
) -> ResizeCall:
    """OpenCV's channels-last bilinear for a few channels; steps (w,): the weights of sums along
    x."""
    (across, columns), down = columns_of(axes[0], given), axes[1]
    quads = np.zeros((-(-across.size // TOGETHER) * TOGETHER, 4), steps.dtype)
    quads[: across.size] = steps[:, None]
    line, band = odd_lines(quads.size), min(BAND, down.size)
    windows = windows_of_taps(down, band, columns, len(columns)) if given.windows else None
    return call_of(
        "resize_linear", given, (down.size, across.size), band, windows,
        type=TYPES[given.dtype], line=line, lines=2 * line, quads=quads,
        x_pixel=across.pixel, x_weight=across.weight, y_pixel=down.pixel, y_weight=down.weight,
        read=np.arange(given.shape[-2], dtype=np.int32), **fields,
    )  # fmt: skip


def _last_numbers(across: opencv_resize.Axis, channels: int, some: bool) -> int:
    """The first number of a row after those that IPP's code for AVX-512 sums in groups of four."""
    columns = ipp_inside(across)
    if not some or not columns.any():
        return across.size * channels
    return int(columns.argmax()) * channels + int(columns.sum()) * channels // 4 * 4


def _has_kernel(
    given: Given, way: str, across: opencv_resize.Axis, down: opencv_resize.Axis
) -> bool:
    """Whether a kernel sums like OpenCV in this algorithm.

    If a number's position in its row matters, rows must be OpenCV's: channels-last, or one channel.
    """
    if way == "move":
        return True
    in_rows = given.last or given.shape[-3] == 1
    if way.startswith("ipp"):
        return way != "ipp_affine_bicubic" and (in_rows or given.dtype == torch.uint8)
    if way in ("area", "bilinear"):
        return given.dtype in TYPES
    if way in ("bicubic", "lanczos4"):
        return in_rows or (way, given.dtype) not in opencv_resize.VECTORS
    if way == "exact":
        return given.dtype in TYPES  # float64 cannot hold 32-bit sums
    if opencv_resize.cuts_cells(across) or opencv_resize.cuts_cells(down):  # cells
        return False
    return given.dtype == torch.uint8 or (given.dtype in TYPES and in_rows)
