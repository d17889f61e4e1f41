"""Blocks for resizes, made once per shapes, types and options: native/resize/resize_call.h.

A band is some rows of the result, and a tile some columns of it, so a kernel's data stays in the
first caches. Both depend only on sizes, never on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np
import torch

from warpkit.engine.arithmetic import pillow, torch_resize
from warpkit.engine.arithmetic.resize_tables import table
from warpkit.engine.cpu.calls import Family
from warpkit.engine.cpu.resize.axes import (
    Axis,
    exact_axis,
    in_pairs,
    pillow_axis,
    shown_pixels,
    table_axis,
    torch_axis,
)
from warpkit.engine.cpu.resize.windows import Windows, windows_of_bands, windows_of_taps
from warpkit.engine.cpu.warp_calls import HALVES, TYPES
from warpkit.engine.definitions.resize import KEPT_TABLES, Edges, ResizeRule, axis_rule

RESIZES = Family("resize")
IMAGE, OUT, STARTS, STRIDE, PIXEL, CHANNEL = (
    RESIZES.fields[name] for name in ("image", "out", "starts", "stride", "pixel", "channel")
)

PLAIN, SHIFTED, SCALED, LINEAR, CUBIC, NESTED, HALF_UP, IPP_LINEAR, IPP_CUBIC, HALF_AWAY = range(10)
"""`Finish` of native/resize/resize_call.h: how a sum becomes a pixel."""

CODES = {
    torch.empty(0, dtype=dtype, device="cpu").numpy().dtype.str[1:]: n for dtype, n in TYPES.items()
}
CODES["i4"] = len(TYPES | HALVES)
"""The library's number of a type, by numpy's name."""

BAND = 48
"""Rows of a band if x comes first: the rows that two bands both read are then a small part."""

TILE = 1024
"""The approximate number of values in a tile's row: 16 rows of float32 are 64 KiB."""

TORCH_TILE = 2048
"""The same for bytes, of which 32 rows are transposed together."""

NEAREST_BAND = 16


class Given(NamedTuple):
    """The properties of tensors that a call depends on."""

    shape: tuple[int, ...]
    """The image's shape, (..., C, H, W)."""
    dtype: torch.dtype
    last: bool
    """Whether kernels get the channels of a pixel adjacent."""
    halves: torch.dtype | None = None
    """The image's type if it is converted to `dtype` as it is read."""
    windows: bool = False
    """Whether windows of the image are gathered for the kernels: see resize_windows.cpp."""

    @property
    def inner(self) -> int:
        """The number of adjacent values of a pixel."""
        return self.shape[-3] if self.last else 1

    @property
    def planes(self) -> int:
        return prod(self.shape[:-2]) // self.inner


def columns_of(across: Axis, given: Given) -> tuple[Axis, np.ndarray]:
    """The columns that kernels read, and the axis in terms of them: windows have no others."""
    if given.windows:
        return across.of_pixels_read()
    return across, np.arange(given.shape[-1])


class ResizeCall(NamedTuple):
    """A call without the addresses of its image and result, for a dense image."""

    numbers: np.ndarray
    """The block."""
    kept: tuple[np.ndarray, ...]
    """The arrays whose addresses are in the block."""
    units: int
    values: int
    """The cost of the call, as a number of result values."""
    memory: tuple[int, ...]
    """The shape of the result's memory: (..., C, h, w) or (N, h, w, C)."""


KERNELS = ("resize", "resize_linear", "resize_cells", "resize_torch")
"""The tasks that can read windows, by their numbers in native/resize/resize_windows.cpp."""


def call_of(
    task: str,
    given: Given,
    size: Sequence[int],
    band: int,
    windows: Windows | None = None,
    **fields: object,
) -> ResizeCall:
    """A call with these fields; arrays are passed by their addresses.

    windows: of a call whose kernel reads them if the image's memory is not its own.
    """
    (*batch, channels, height, width), (rows, columns) = given.shape, size
    numbers = {"height": height, "width": width, "inner": given.inner, "band": band}
    numbers |= {"out_height": rows, "out_width": columns, "stride": width * given.inner}
    numbers |= {"pixel": given.inner, "channel": 1}
    if given.windows and windows is not None:
        line = odd_lines(windows.widest * given.inner)
        numbers |= {"kernel": KERNELS.index(task), "halves": HALVES.get(given.halves, 0)}  # pyright: ignore
        numbers |= {
            "type": TYPES[given.dtype],
            "window_line": line,
            "window": windows.highest * line,
        }
        fields |= {"window_rows": windows.rows, "window_starts": windows.starts}
        fields |= {"slots": windows.slots, "width": len(windows.columns)}
        if len(windows.columns) < width:
            fields["window_columns"] = windows.columns
        task = "resize_windows"
    fields["starts"] = np.arange(given.planes) * (height * width * given.inner)
    kept = tuple(field for field in fields.values() if isinstance(field, np.ndarray))
    for name, field in fields.items():
        numbers[name] = field.ctypes.data if isinstance(field, np.ndarray) else int(field)  # pyright: ignore
    shape = (*batch, rows, columns, channels) if given.last else (*batch, channels, rows, columns)
    values = max(prod(shape), prod(given.shape) // 2)
    units = given.planes * -(-rows // band) if prod(shape) else 0
    return ResizeCall(RESIZES.block(task, numbers), kept, units, values, shape)


def sums(
    given: Given,
    axes: tuple[Axis, Axis],
    middle: str,
    finish: int = PLAIN,
    *,
    down_first: bool,
    **fields: object,
) -> ResizeCall:
    """A call of two passes, with the taps along x and y; middle: the type between them."""
    across, down = axes
    kind = across.weight.dtype
    together = 64 // kind.itemsize  # transposed rows
    inner, size = given.inner, (down.size, across.size)
    across, columns = columns_of(across, given)
    tiles = _tiles(across, len(columns), inner)
    source = int((tiles[:, 3] - tiles[:, 2]).max()) * inner
    made = int((tiles[:, 1] - tiles[:, 0]).max()) * inner
    read = bands = np.zeros(0, np.int32)
    band = room = together
    if not down_first:
        band = min(BAND, down.size)
        down, read = down.of_pixels_read()
        bands = down.extents(_edges(down.size, band))
        room = -(-int((bands[:, 1] - bands[:, 0]).max()) // together) * together
    line = odd_lines(source if down_first else made)
    windows = None
    if given.windows:
        parts, widest = [read[first:end] for first, end in bands.tolist()], source // inner
        if down_first:
            windows = windows_of_taps(down, band, columns, widest)
        else:
            windows = windows_of_bands(parts, None, columns, widest)
    return call_of(
        "resize", given, size, band, windows,
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
    """(N, 4), int32: `Columns` of the library. A tile is longer than the overlap of two tiles."""
    scale = max(1.0, length / across.size)
    columns = max(numbers / (inner * scale), 4 * across.taps / scale, 1)
    count = max(1, round(across.size / columns))
    edges = np.array([across.size * n // count for n in range(count + 1)])
    found = np.stack((edges[:-1], edges[1:]), 1)
    return np.concatenate((found, across.extents(edges)), 1).astype(np.int32)


def odd_lines(count: int) -> int:
    """The stride of lines in numbers: an odd multiple of 16, so no two are whole pages apart."""
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
        return moves(given, size, *pixels)
    kind = np.dtype(np.float32 if given.dtype == torch.float32 else np.float64)
    across, down = (
        exact_axis(*(side[::-1] if adjoint else side), axis_rule(rule, d), edges, kind, adjoint)
        for d, side, edges in zip((-1, -2), sides, box or (None, None), strict=True)
    )
    finish = HALF_AWAY if rule.arithmetic == "scipy" else PLAIN
    return sums(given, (across, down), kind.str[1:], finish, down_first=True)


def moves(given: Given, size: Sequence[int], across: np.ndarray, down: np.ndarray) -> ResizeCall:
    """Moves pixels: columns `across` (w,) of rows `down` (h,)."""
    bytes_ = given.inner * given.dtype.itemsize
    band = min(NEAREST_BAND, size[0])
    found = call_of(
        "resize_nearest", given, size, band, pixel_bytes=bytes_, columns=across, rows=down
    )
    return found._replace(values=prod(found.memory))


@lru_cache(maxsize=KEPT_TABLES)
def pillow_call(
    given: Given,
    size: tuple[int, int],
    interpolation: str,
    across: pillow.Sides,
    down: pillow.Sides,
    down_first: bool,
) -> ResizeCall:
    """Pillow's resize of bytes, also rounded between the passes, and of float32."""
    if interpolation == "nearest":
        kind = "pillow_nearest_each" if given.dtype == torch.uint16 else "pillow_nearest"
        return moves(given, size, table_pixels(kind, across), table_pixels(kind, down))
    if given.dtype == torch.uint8:
        axes = pillow_axis(interpolation, *across), pillow_axis(interpolation, *down)
        return sums(given, axes, "u1", SHIFTED, down_first=down_first, bits=pillow.BITS)
    keys = (pillow.table_of(interpolation, axis) for axis in (across, down))
    x, y = (
        table_axis(key, axis[0], np.dtype(np.float64))
        for key, axis in zip(keys, (across, down), strict=True)
    )
    return sums(given, (x, y), "f4", down_first=down_first)


@lru_cache(maxsize=KEPT_TABLES)
def torch_call(given: Given, size: tuple[int, int], rule: ResizeRule) -> ResizeCall:
    """F.interpolate's resize of bytes."""
    kind, sides = torch_resize.kind_of(rule), torch_resize.sides(given.shape, size)
    across, down = (torch_axis(kind, *axis) for axis in sides)
    inner, together = given.inner, 16  # transposed rows
    across, columns = columns_of(across, given)
    tiles = _tiles(across, len(columns), inner, TORCH_TILE)
    source = int((tiles[:, 3] - tiles[:, 2]).max()) * inner
    made = int((tiles[:, 1] - tiles[:, 0]).max()) * inner
    band = min(BAND, down.size)
    down, read = down.of_pixels_read()
    bands = down.extents(_edges(down.size, band))
    rows = -(-int((bands[:, 1] - bands[:, 0]).max()) // together) * together
    line = odd_lines(made)
    (across, bits), (down, bits_down) = in_pairs(across), in_pairs(down)
    parts = [read[first:end] for first, end in bands.tolist()]
    windows = windows_of_bands(parts, None, columns, source // inner)
    return call_of(
        "resize_torch", given, size, band, windows, bits=bits, share=bits_down,
        x_pixel=across.pixel, x_weight=across.weight, x_begin=across.begin, x_end=across.end,
        y_pixel=down.pixel, y_weight=down.weight, y_begin=down.begin, y_end=down.end,
        read=read, bands=bands, tiles=tiles, tile_count=len(tiles),
        # one more row and column than are summed: the last pair reads them with weight 0
        lines=(rows + 1) * line, line=line, turned=(source + inner) * together,
        summed=made * together,
    )  # fmt: skip


@lru_cache(maxsize=KEPT_TABLES)
def torch_nearest_call(given: Given, size: tuple[int, int], kind: str) -> ResizeCall:
    """F.interpolate's nearest of a kind, for integer types."""
    sides = torch_resize.sides(given.shape, size)
    return moves(given, size, *(table_pixels(kind, axis) for axis in sides))


def table_pixels(kind: str, axis: Sequence[float]) -> np.ndarray:
    """The pixel of each output, from a table with single taps, int64."""
    return np.ascontiguousarray(table(kind, *axis)[0][:, 0])  # pyright: ignore
