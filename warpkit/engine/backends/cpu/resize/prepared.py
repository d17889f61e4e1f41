"""Blocks for resizes, made once per shapes, types and options: native/resize_call.h.

A band is some rows of the result, and a tile some columns of it, so that what a kernel holds stays
in the first caches. Both follow from sizes alone, never from the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np
import torch

from warpkit.engine.arithmetic import opencv_resize, pillow, torch_resize
from warpkit.engine.arithmetic.resize_tables import TableKey, table
from warpkit.engine.backends.cpu.calls import Family
from warpkit.engine.backends.cpu.resize.axes import (
    Axis,
    exact_axis,
    in_pairs,
    ipp_apart,
    ipp_beyond,
    ipp_inside,
    ipp_orders,
    opencv_axis,
    pillow_axis,
    shown_pixels,
    table_axis,
    torch_axis,
)
from warpkit.engine.backends.cpu.warp_calls import TYPES
from warpkit.engine.sampling.resize import KEPT_TABLES, Edges, ResizeRule

RESIZES = Family("resize")
IMAGE, OUT = (RESIZES.fields[name] for name in ("image", "out"))

PLAIN, SHIFTED, SCALED, LINEAR, CUBIC, NESTED, HALF_UP, IPP_LINEAR, IPP_CUBIC = range(9)
"""`Finish` of native/resize_call.h: how a sum becomes a pixel."""

CODES = {torch.empty(0, dtype=dtype).numpy().dtype.str[1:]: n for dtype, n in TYPES.items()}
CODES["i4"] = len(TYPES)
"""The library's number of a type, by numpy's name."""

BAND = 48
"""Rows of a band where x comes first: what the next band reads again is then a small part."""

TILE = 1024
"""Numbers of a row of a tile, about: 64 KiB of 16 rows of float32."""

TORCH_TILE = 2048
"""The same of bytes, of which 32 rows are turned together."""

NEAREST_BAND = 16


class Given(NamedTuple):
    """What tensors a call is for."""

    shape: tuple[int, ...]
    """Of the image, (..., C, H, W)."""
    dtype: torch.dtype
    last: bool
    """Channels side by side."""

    @property
    def inner(self) -> int:
        """Numbers of a pixel that lie side by side."""
        return self.shape[-3] if self.last else 1

    @property
    def planes(self) -> int:
        return prod(self.shape[:-2]) // self.inner


class ResizeCall(NamedTuple):
    """A call, but for the addresses of its image and its result."""

    numbers: np.ndarray
    """The block."""
    kept: tuple[np.ndarray, ...]
    """What the block has the addresses of."""
    units: int
    values: int
    """What the call is worth in numbers of a result."""
    memory: tuple[int, ...]
    """Of the result, in the order of its memory: (..., C, h, w) or (N, h, w, C)."""


def _call(task: str, given: Given, size: Sequence[int], band: int, **fields: object) -> ResizeCall:
    """A call with these fields, of which arrays are handed over by their addresses."""
    kept = tuple(field for field in fields.values() if isinstance(field, np.ndarray))
    (*batch, channels, height, width), (rows, columns) = given.shape, size
    numbers = {"height": height, "width": width, "inner": given.inner, "band": band}
    numbers |= {"out_height": rows, "out_width": columns}
    for name, field in fields.items():
        numbers[name] = field.ctypes.data if isinstance(field, np.ndarray) else int(field)  # pyright: ignore
    shape = (*batch, rows, columns, channels) if given.last else (*batch, channels, rows, columns)
    values = max(prod(shape), prod(given.shape) // 2)
    units = given.planes * -(-rows // band) if prod(shape) else 0
    return ResizeCall(RESIZES.block(task, numbers), kept, units, values, shape)


def _sums(
    given: Given,
    axes: tuple[Axis, Axis],
    middle: str,
    finish: int = PLAIN,
    *,
    down_first: bool,
    **fields: object,
) -> ResizeCall:
    """A call of two passes, by the taps along x and y; middle: what the first one leaves."""
    across, down = axes
    kind = across.weight.dtype
    together = 64 // kind.itemsize  # rows on their side
    inner, size = given.inner, (down.size, across.size)
    tiles = _tiles(across, given.shape[-1], inner)
    source = int((tiles[:, 3] - tiles[:, 2]).max()) * inner
    made = int((tiles[:, 1] - tiles[:, 0]).max()) * inner
    read = bands = np.zeros(0, np.int32)
    band = room = together
    if not down_first:
        band = min(BAND, down.size)
        down, read = down.of_rows_read()
        bands = down.extents(_edges(down.size, band))
        room = -(-int((bands[:, 1] - bands[:, 0]).max()) // together) * together
    line = _odd_lines(source if down_first else made)
    return _call(
        "resize", given, size, band,
        type=TYPES[given.dtype], sum=CODES[kind.str[1:]], middle=CODES[middle],
        down_first=down_first, finish=finish,
        x_pixel=across.pixel, x_weight=across.weight, x_begin=across.begin, x_end=across.end,
        y_pixel=down.pixel, y_weight=down.weight, y_begin=down.begin, y_end=down.end,
        read=read, bands=bands, tiles=tiles, tile_count=len(tiles),
        lines=room * line, line=line, turned=source * together, summed=made * together, **fields,
    )  # fmt: skip


def _edges(size: int, step: int) -> np.ndarray:
    return np.array([*range(0, size, step), size])


def _tiles(across: Axis, length: int, inner: int, numbers: int = TILE) -> np.ndarray:
    """(N, 4), int32: `Columns` of the library. A tile is longer than what two of them both read."""
    scale = max(1.0, length / across.size)
    columns = max(numbers / (inner * scale), 4 * across.taps / scale, 1)
    count = max(1, round(across.size / columns))
    edges = np.array([across.size * n // count for n in range(count + 1)])
    found = np.stack((edges[:-1], edges[1:]), 1)
    return np.concatenate((found, across.extents(edges)), 1).astype(np.int32)


def _odd_lines(count: int) -> int:
    """Numbers from a line to the next: an odd multiple of 16, so that none lie pages apart."""
    return (-(-count // 16) | 1) * 16


@lru_cache(maxsize=KEPT_TABLES)
def exact_call(
    given: Given,
    size: tuple[int, int],
    rule: ResizeRule,
    box: tuple[Edges, Edges] | None,
    adjoint: bool,
) -> ResizeCall:
    """The reference's resize; adjoint: its gradient, from `given` to `size` (H, W)."""
    sides = [(given.shape[d], size[d]) for d in (-1, -2)]
    if rule.interpolation == "nearest":
        edges = box or (None, None)
        pixels = [shown_pixels(*s, rule, e) for s, e in zip(sides, edges, strict=True)]
        return _moves(given, size, *pixels)
    kind = np.dtype(np.float32 if given.dtype == torch.float32 else np.float64)
    across, down = (
        exact_axis(*(side[::-1] if adjoint else side), rule, edges, kind, adjoint)
        for side, edges in zip(sides, box or (None, None), strict=True)
    )
    return _sums(given, (across, down), kind.str[1:], down_first=True)


def _moves(given: Given, size: Sequence[int], across: np.ndarray, down: np.ndarray) -> ResizeCall:
    """The pixels across (w,) of the rows down (h,)."""
    bytes_ = given.inner * given.dtype.itemsize
    band = min(NEAREST_BAND, size[0])
    found = _call(
        "resize_nearest", given, size, band, pixel_bytes=bytes_, columns=across, rows=down
    )
    return found._replace(values=prod(found.memory))


Tables = tuple[TableKey | None, TableKey | None]


@lru_cache(maxsize=KEPT_TABLES)
def table_call(
    given: Given, tables: Tables, size: tuple[int, int], kind: np.dtype, adjoint: bool
) -> ResizeCall:
    """Sums in a type by tables along x and y; adjoint: their gradient, to `size` (H, W)."""
    across, down = (
        table_axis(key, side, kind, adjoint) for key, side in zip(tables, size[::-1], strict=True)
    )
    return _sums(given, (across, down), kind.str[1:], down_first=True)


@lru_cache(maxsize=KEPT_TABLES)
def pillow_call(
    given: Given,
    size: tuple[int, int],
    interpolation: str,
    across: pillow.Sides,
    down: pillow.Sides,
    down_first: bool,
) -> ResizeCall:
    """Pillow's resize of bytes, rounded between the passes too, and of float32."""
    if interpolation == "nearest":
        kind = "pillow_nearest_each" if given.dtype == torch.uint16 else "pillow_nearest"
        return _moves(given, size, _shown(kind, across), _shown(kind, down))
    if given.dtype == torch.uint8:
        axes = pillow_axis(interpolation, *across), pillow_axis(interpolation, *down)
        return _sums(given, axes, "u1", SHIFTED, down_first=down_first, bits=pillow.BITS)
    keys = (pillow.table_of(interpolation, axis) for axis in (across, down))
    x, y = (
        table_axis(key, axis[0], np.dtype(np.float64), False)
        for key, axis in zip(keys, (across, down), strict=True)
    )
    return _sums(given, (x, y), "f4", down_first=down_first)


@lru_cache(maxsize=KEPT_TABLES)
def torch_call(given: Given, size: tuple[int, int], rule: ResizeRule) -> ResizeCall:
    """F.interpolate's resize of bytes."""
    kind, sides = torch_resize.kind_of(rule), torch_resize.sides(given.shape, size)
    across, down = (torch_axis(kind, *axis) for axis in sides)
    inner, together = given.inner, 16  # rows on their side
    tiles = _tiles(across, given.shape[-1], inner, TORCH_TILE)
    source = int((tiles[:, 3] - tiles[:, 2]).max()) * inner
    made = int((tiles[:, 1] - tiles[:, 0]).max()) * inner
    band = min(BAND, down.size)
    down, read = down.of_rows_read()
    bands = down.extents(_edges(down.size, band))
    rows = -(-int((bands[:, 1] - bands[:, 0]).max()) // together) * together
    line = _odd_lines(made)
    (across, bits), (down, bits_down) = in_pairs(across), in_pairs(down)
    return _call(
        "resize_torch", given, size, band, bits=bits, share=bits_down,
        x_pixel=across.pixel, x_weight=across.weight, x_begin=across.begin, x_end=across.end,
        y_pixel=down.pixel, y_weight=down.weight, y_begin=down.begin, y_end=down.end,
        read=read, bands=bands, tiles=tiles, tile_count=len(tiles),
        # a row and a column more than are summed: what the last pair reads and weighs with 0
        lines=(rows + 1) * line, line=line, turned=(source + inner) * together,
        summed=made * together,
    )  # fmt: skip


@lru_cache(maxsize=KEPT_TABLES)
def torch_nearest_call(given: Given, size: tuple[int, int], kind: str) -> ResizeCall:
    """F.interpolate's nearest of a kind, of whole types."""
    sides = torch_resize.sides(given.shape, size)
    return _moves(given, size, *(_shown(kind, axis) for axis in sides))


def _shown(kind: str, axis: Sequence[float]) -> np.ndarray:
    """The pixel that each output shows by a table of single taps, int64."""
    return np.ascontiguousarray(table(kind, *axis)[0][:, 0])  # pyright: ignore


@lru_cache(maxsize=KEPT_TABLES)
def opencv_call(
    given: Given,
    size: tuple[int, int],
    rule: ResizeRule,
    factors: tuple[float, float] | None,
    avx512: bool,
) -> ResizeCall | None:
    """OpenCV's resize; None where no kernel sums as it does; avx512: as IPP's code for it."""
    way, across, down = opencv_resize.plan(given.shape, given.dtype, size, rule, factors)
    if not _has_kernel(given, way, across, down):
        return None
    if way == "move":
        return _moves(given, size, *(_shown(axis.kind, axis[1:]) for axis in (across, down)))

    def axes(one: int, kind: type) -> tuple[Axis, Axis]:
        return tuple(opencv_axis(*axis, one, np.dtype(kind)) for axis in (across, down))  # pyright: ignore

    if way.startswith("ipp"):
        return _ipp(given, axes, way, across, down, avx512)
    if way in ("bilinear", "bicubic", "lanczos4") and given.dtype != torch.uint8:
        kind = np.float64 if given.dtype == torch.float64 else np.float32
        step = opencv_resize.VECTORS.get((way, given.dtype))
        finish = PLAIN if step is None else NESTED
        return _sums(
            given, axes(0, kind), np.dtype(kind).str[1:], finish, down_first=False,
            at_once=step or 0,
        )  # fmt: skip
    if way == "area":
        kind = np.float64 if given.dtype == torch.float64 else np.float32
        return _sums(given, axes(0, kind), np.dtype(kind).str[1:], down_first=False)
    if way == "cells":
        cell = round(across.scale), round(down.scale)
        if given.dtype != torch.uint8:
            return _cells(given, size, cell)
        if cell == (2, 2) and given.shape[-3] in (1, 3, 4):  # half up
            return _sums(given, axes(1, np.int32), "i4", SHIFTED, down_first=False, bits=2)
        return _sums(given, axes(1, np.int32), "i4", SCALED, down_first=False, share=_share(cell))
    if way == "exact" and given.dtype != torch.uint8:
        return _sums(given, axes(0, np.float64), "f8", HALF_UP, down_first=False)
    if way == "exact":
        return _sums(given, axes(1 << 8, np.int32), "i4", SHIFTED, down_first=False, bits=16)
    weights = axes(opencv_resize.UINT8_ONE, np.int32)
    if way == "bilinear":
        return _sums(given, weights, "i2", LINEAR, down_first=False)
    finish = CUBIC if way == "bicubic" else SHIFTED
    step = opencv_resize.VECTORS.get((way, given.dtype), 0)
    return _sums(given, weights, "i4", finish, down_first=False, bits=22, at_once=step)


def _cells(given: Given, size: tuple[int, int], cell: tuple[int, int]) -> ResizeCall:
    """Means over cells (w, h) of whole pixels, of 16 bits and floats."""
    channels, by_two = given.shape[-3], cell == (2, 2)
    half_up = by_two and not given.dtype.is_floating_point and channels in (1, 3, 4)
    pairs = by_two and given.dtype == torch.float32 and channels in (1, 4)
    return _call(
        "resize_cells", given, size, 1, type=TYPES[given.dtype], bits=2 * half_up,
        share=_share(cell), at_once=4 * pairs, cell_width=cell[0], cell_height=cell[1],
    )  # fmt: skip


def _share(cell: tuple[int, int]) -> int:
    """A pixel's share of a cell, float32, as its bits."""
    return int((np.float32(1) / np.float32(prod(cell))).view(np.int32))


def _ipp(
    given: Given,
    axes: Callable[[int, type], tuple[Axis, Axis]],
    way: str,
    across: opencv_resize.Axis,
    down: opencv_resize.Axis,
    avx512: bool,
) -> ResizeCall:
    """IPP's resize; `axes` makes both of the taps."""
    channels, fields = given.shape[-3], {}
    if way == "ipp_bicubic":
        alone = not avx512 or given.dtype != torch.uint8
        numbers = _last_numbers(across, channels, avx512 and given.dtype == torch.float32)
        return _sums(
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
    return _sums(given, axes(0, kind.type), kind.str[1:], IPP_LINEAR, down_first=False, **fields)


def _last_numbers(across: opencv_resize.Axis, channels: int, some: bool) -> int:
    """The first number of a row behind those that IPP's code for AVX-512 sums four at a time."""
    columns = ipp_inside(across)
    if not some or not columns.any():
        return across.size * channels
    return int(columns.argmax()) * channels + int(columns.sum()) * channels // 4 * 4


def _has_kernel(
    given: Given, way: str, across: opencv_resize.Axis, down: opencv_resize.Axis
) -> bool:
    """Whether a kernel sums as OpenCV does on this way.

    Where the place of a number in its row counts, rows must be OpenCV's: channels side by side, or
    one alone.
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
        return given.dtype in TYPES  # of 32 bits, float64 does not hold the sums
    if opencv_resize.cuts_cells(across) or opencv_resize.cuts_cells(down):  # cells
        return False
    return given.dtype == torch.uint8 or (given.dtype in TYPES and in_rows)
