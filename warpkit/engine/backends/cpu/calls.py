"""Calls prepared by what they have in common: shapes, types and options, worked out once.

A call is a block of numbers that the native library reads, see native/call.h. Shapes, types and
options determine all of it but the tensors' addresses: `warp_call` keeps the last 256 blocks. To
make a call is to copy its block, write the addresses into the copy, and pass the copy's address on.
Nothing here depends on the number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.backends.cpu.opened import LIBRARY
from warpkit.engine.backends.cpu.threads import INLINE, run, run_on_team
from warpkit.engine.sampling.layout import (
    batch_of,
    broadcast_index,
    fill_strides,
    mapping_batch,
    mapping_kind,
    mapping_size,
)
from warpkit.engine.sampling.rules import CODE, TAPS, borders_of

assert LIBRARY is not None  # nobody imports this without it

Shape = tuple[int, ...]

FIELDS = {name: place for place, name in enumerate(LIBRARY.fields)}
"""Where each number of a call stands."""

WARP, BACKWARD, ROW_RANGES, NEAREST = range(4)
"""Tasks of the library."""

TYPES = {
    torch.float32: 0,
    torch.float64: 1,
    torch.uint8: 2,
    torch.int16: 3,
    torch.uint16: 4,
}
"""The types of images that are computed with, as the library numbers them."""

TILE = 32
"""A tile is TILE x TILE pixels of the result."""

REGISTER = 64
"""Bytes of the widest vector."""

STREAMED = 8 << 20
"""Bytes of a result from which on it is written past the caches."""


class WarpShapes(NamedTuple):
    """A warp's sizes, as far as shapes say them."""

    batch: Shape
    shape: Shape
    """Of the result: (*batch, C, h, w)."""
    values: int
    """Numbers of the result."""
    items: int
    """Images of the result."""
    kind: int
    """Of map."""
    mapping_size: int
    """Numbers of a matrix, or of a field of points."""
    mapping_of: np.ndarray
    """For every item its matrix or points, (items,)."""
    tile_rows: int
    """Rows of tiles of an item."""
    tile_columns: int
    dense: bool
    """The fill has a value for every pixel of the result."""
    expand: bool
    """The fill differs by item."""
    border: tuple[int, int]
    """The codes of the borders along y and x."""


class WarpCall(NamedTuple):
    """What warps of the same shapes, types and options have in common."""

    shapes: WarpShapes
    numbers: np.ndarray
    """The block, with 0 for every address that differs from call to call."""
    images: np.ndarray
    """For every item its image, (items,)."""
    taps: int
    units: int
    item_size: int
    """Bytes of a number of the result."""


@lru_cache(maxsize=256)
def warp_shapes(
    image: Shape, mapping: Shape, fill: Shape, size: Shape, border: str, listed: bool = False
) -> WarpShapes:
    """A warp by the shapes of its arguments.

    image (*I, C, H, W); mapping (*M, 2 or 3, 3) or (*M, h, w, 2); size (h, w). listed: a list says
    where each matrix looks, and the batch is the matrices'.
    """
    maps, (h, w) = mapping_batch(mapping), size
    batch = maps if listed else batch_of(image, mapping)
    shape = (*batch, image[-3], h, w)
    return WarpShapes(
        batch,
        shape,
        prod(shape),
        prod(batch),
        mapping_kind(mapping),
        mapping_size(mapping),
        broadcast_index(maps, batch),
        -(-h // TILE),
        -(-w // TILE),
        prod(fill[-2:]) > 1,
        prod(fill[:-3]) > 1,
        border_codes(border),
    )


def border_codes(border: str) -> tuple[int, int]:
    """A border's codes along y and x."""
    along_y, along_x = borders_of(border)
    return CODE[along_y], CODE[along_x]


@lru_cache(maxsize=256)
def warp_call(
    image: Shape,
    stored: Shape,
    dtype: torch.dtype,
    channels_last: bool,
    mapping: Shape,
    double_points: bool,
    fill: Shape,
    size: Shape,
    interpolation: str,
    border: str,
    listed: bool,
    relative: bool,
) -> WarpCall:
    """The call of a warp, and of its gradients, by shapes as of `warp_shapes`.

    stored: the images' batch in memory, 1 where one image stands for many.
    """
    shapes = warp_shapes(image, mapping, fill, size, border, listed)
    images = np.empty(0, np.int64) if listed else broadcast_index(stored, shapes.batch)
    taps, item_size = TAPS[interpolation], dtype.itemsize
    item, channel, row, column = fill_strides(fill)
    border_y, border_x = shapes.border
    numbers = {
        "image_of": images.ctypes.data,
        "mapping_of": shapes.mapping_of.ctypes.data,
        "items": shapes.items,
        "channels": image[-3],
        "height": image[-2],
        "width": image[-1],
        "out_height": size[0],
        "out_width": size[1],
        "border_y": border_y,
        "border_x": border_x,
        "kind": shapes.kind,
        "type": TYPES.get(dtype, -1),
        "taps": taps,
        "number_bytes": item_size,
        "mapping_size": shapes.mapping_size,
        "double_points": double_points,
        "relative": relative,
        "fill_item": item,
        "fill_channel": channel,
        "fill_row": row,
        "fill_column": column,
        "dense": shapes.dense,
        "channels_last": channels_last,
        "task": NEAREST if taps == 1 else WARP,
    }
    units = shapes.items * shapes.tile_rows
    return WarpCall(shapes, block(numbers), images, taps, units, item_size)


def block(numbers: Mapping[str, int]) -> np.ndarray:
    """A call's numbers in their order, 0 where none is given."""
    found = np.zeros(len(FIELDS), np.int64)
    for name, number in numbers.items():
        found[FIELDS[name]] = number
    return found


IMAGE, FILL, MAPPING, OUT = (FIELDS[name] for name in ("image", "fill", "mapping", "out"))
IMAGE_OF, STREAM, TASK = (FIELDS[name] for name in ("image_of", "streamed", "task"))
FIRST, END, RUN, THREADS, TEAM = (
    FIELDS[name] for name in ("first_unit", "end_unit", "run", "threads", "team")
)


def fill_result(call: WarpCall, image: int, mapping: int, fill: int, out: int) -> np.ndarray:
    """The block of a call by the addresses of its arrays."""
    numbers = call.numbers.copy()
    numbers[IMAGE], numbers[MAPPING], numbers[FILL], numbers[OUT] = image, mapping, fill, out
    return numbers


def streams(call: WarpCall, out: int) -> bool:
    """Whether a result at an address is written past the caches: large, and in whole registers."""
    bytes_ = call.shapes.values * call.item_size
    return bytes_ >= STREAMED and (out | call.shapes.shape[-1] * call.item_size) % REGISTER == 0


def launch(numbers: np.ndarray, first: int, end: int, values: int) -> None:
    """Do units first .. end of a block, which is this call's own; they make so many values."""
    if values < INLINE:
        numbers[FIRST], numbers[END], numbers[RUN], numbers[THREADS] = first, end, end - first, 1
        LIBRARY.run(numbers.ctypes.data)  # pyright: ignore[reportOptionalMemberAccess]
        return

    def part(begin: int, stop: int, each: int = 0, threads: int = 1, team: int = 0) -> None:
        mine = numbers.copy()
        mine[FIRST], mine[END] = first + begin, first + stop
        mine[RUN], mine[THREADS], mine[TEAM] = each or stop - begin, threads, team
        LIBRARY.run(mine.ctypes.data)  # pyright: ignore[reportOptionalMemberAccess]

    if not run_on_team(part, end - first, values):
        run(part, end - first, values)


def address(tensor: Tensor | np.ndarray) -> int:
    """Where the first number is."""
    return tensor.data_ptr() if isinstance(tensor, Tensor) else tensor.ctypes.data
