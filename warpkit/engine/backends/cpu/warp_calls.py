"""Calls of warps, and of their gradients, prepared by shapes, types and options."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np
import torch

from warpkit.engine.backends.cpu.calls import Family
from warpkit.engine.sampling.layout import (
    batch_of,
    broadcast_index,
    fill_strides,
    mapping_batch,
    mapping_kind,
    mapping_size,
)
from warpkit.engine.sampling.rules import CODE, TAPS, borders_of

Shape = tuple[int, ...]

WARPS = Family("warp")
FIELDS = WARPS.fields

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
    }
    units = shapes.items * shapes.tile_rows
    task = "nearest" if taps == 1 else "warp"
    return WarpCall(shapes, WARPS.block(task, numbers), images, taps, units, item_size)


IMAGE, FILL, MAPPING, OUT = (FIELDS[name] for name in ("image", "fill", "mapping", "out"))
IMAGE_OF, STREAM = FIELDS["image_of"], FIELDS["streamed"]


def fill_result(call: WarpCall, image: int, mapping: int, fill: int, out: int) -> np.ndarray:
    """The block of a call by the addresses of its arrays."""
    numbers = call.numbers.copy()
    numbers[IMAGE], numbers[MAPPING], numbers[FILL], numbers[OUT] = image, mapping, fill, out
    return numbers


def streams(call: WarpCall, out: int) -> bool:
    """Whether a result at an address is written past the caches: large, and in whole registers."""
    bytes_ = call.shapes.values * call.item_size
    return bytes_ >= STREAMED and (out | call.shapes.shape[-1] * call.item_size) % REGISTER == 0
