"""Blocks for warps and their gradients, made once per shapes, types and options."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch

from warpkit.engine.cpu.calls import KEPT, Family
from warpkit.engine.definitions.layout import (
    batch_of,
    broadcast_index,
    fill_strides,
    mapping_batch,
    mapping_kind,
    mapping_size,
)
from warpkit.engine.definitions.rules import CODE, TAPS, borders_of

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
"""The types of images that kernels compute or round to, as the library numbers them."""

HALVES = {torch.float16: 5, torch.bfloat16: 6}
"""Types of images that kernels only read, and compute in float32."""

TILE = 32
"""A tile has TILE x TILE pixels of the result."""

REGISTER = 64
"""The size of the widest vector, in bytes."""

STREAMED = 8 << 20
"""From this many bytes on, a result is written without the caches."""


class WarpKey(NamedTuple):
    """The key of a warp's calls: everything except the tensors' numbers."""

    image: Shape
    strides: Shape
    """The image's."""
    dtype: torch.dtype
    channels_last: bool
    """Whether the result is, and the image's gradient."""
    mapping: Shape
    wide_points: bool
    """Points are float64."""
    planar: bool
    """Points are separate planes of x and y."""
    fill: Shape
    size: Shape
    interpolation: str
    border: str
    listed: bool
    """A list determines the image of each matrix, and the batch is that of the matrices."""
    relative: bool
    """Points are offsets from their pixel, added in float64."""
    wide: bool = False
    """The result is not rounded to the image's type; that of halves never is."""


class WarpShapes(NamedTuple):
    """The sizes of a warp, as far as shapes determine them."""

    batch: Shape
    shape: Shape
    """The shape of the result: (*batch, C, h, w)."""
    values: int
    """The number of values in the result."""
    items: int
    """The number of images in the result."""
    kind: int
    """The kind of map."""
    mapping_size: int
    """The number of values in a matrix, or in a field of points."""
    mapping_of: np.ndarray
    """The index of each item's matrix or points, (items,)."""
    tile_rows: int
    """The number of tile rows of an item."""
    tile_columns: int
    dense: bool
    """The fill has a value for every pixel of the result."""
    expand: bool
    """The fill differs between items."""
    border: tuple[int, int]
    """The codes of the borders along y and x."""


class WarpCall(NamedTuple):
    """The common data of warps with one key."""

    key: WarpKey
    shapes: WarpShapes
    dtype: torch.dtype
    """The result's."""
    numbers: np.ndarray
    """The block, with 0 for every address that differs between calls."""
    images: np.ndarray
    """The start of each item's image, in numbers from the first one's, (items,)."""
    taps: int
    units: int
    streams: bool
    """Whether a result at a suitable address bypasses the caches: if large and in full
    registers."""
    backward: dict[tuple[bool, bool, bool], Any]
    """The calls of its gradients, by those that are needed: see `launch.BackwardCall`."""


@lru_cache(maxsize=KEPT)
def warp_shapes(
    image: Shape, mapping: Shape, fill: Shape, size: Shape, border: str, listed: bool = False
) -> WarpShapes:
    """The sizes of a warp for arguments of these shapes.

    image (*I, C, H, W); mapping (*M, 2 or 3, 3) or (*M, h, w, 2); size (h, w). listed: a list
    determines the image of each matrix, and the batch is that of the matrices.
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


@lru_cache(maxsize=KEPT)
def warp_call(key: WarpKey) -> WarpCall:
    """The call of a warp, and of its gradients."""
    shapes = warp_shapes(key.image, key.mapping, key.fill, key.size, key.border, key.listed)
    channels, height, width = key.image[-3:]
    *batch_strides, plane, line, pixel = key.strides
    if key.listed:
        images, step = np.empty(0, np.int64), batch_strides[0]
    else:
        images, step = broadcast_index(key.image[:-3], shapes.batch, tuple(batch_strides)), 1
    taps, dtype = TAPS[key.interpolation], _result_type(key)
    item, channel, row, column = fill_strides(key.fill)
    border_y, border_x = shapes.border
    numbers = {
        "image_of": images.ctypes.data,
        "step": step,
        "mapping_of": shapes.mapping_of.ctypes.data,
        "items": shapes.items,
        "channels": channels,
        "height": height,
        "width": width,
        "plane": plane,
        "line": line,
        "pixel": pixel,
        "out_height": key.size[0],
        "out_width": key.size[1],
        "border_y": border_y,
        "border_x": border_x,
        "kind": shapes.kind,
        "type": (TYPES | HALVES).get(key.dtype, -1),
        "wide": dtype != key.dtype,
        "interpolation": CODE[key.interpolation],
        "taps": taps,
        "number_bytes": dtype.itemsize,
        "mapping_size": shapes.mapping_size,
        "double_points": key.wide_points,
        "relative": key.relative,
        "planar": key.planar,
        "fill_item": item,
        "fill_channel": channel,
        "fill_row": row,
        "fill_column": column,
        "dense": shapes.dense,
        "channels_last": key.channels_last,
    }
    units = shapes.items * shapes.tile_rows
    block = WARPS.block("nearest" if taps == 1 else "warp", numbers)
    streams = shapes.values * dtype.itemsize >= STREAMED and not key.channels_last
    streams = streams and shapes.shape[-1] * dtype.itemsize % REGISTER == 0
    return WarpCall(key, shapes, dtype, block, images, taps, units, streams, {})


def _result_type(key: WarpKey) -> torch.dtype:
    if TAPS[key.interpolation] == 1:
        return key.dtype
    if key.dtype in HALVES:
        return torch.float32
    return torch.float64 if key.wide and not key.dtype.is_floating_point else key.dtype
