"""What follows from the shapes of a call, worked out once for each set of shapes.

Everything here depends on shapes alone, never on the number of threads.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from warpkit.engine.backends.cpu.runtime.scratch import TILE
from warpkit.engine.backends.cpu.warps.positions import POINTS
from warpkit.engine.backends.cpu.warps.tile import WarpPlan
from warpkit.engine.sampling.layout import batch_of, fill_strides, mapping_batch, mapping_size
from warpkit.engine.sampling.rules import CODE

BANDED = 250_000
"""Values of a gradient from which on an image is split, even though that is more work."""

UNITS = 8
"""Pieces of work when gradients meet in one image. Each costs something, see `partition`."""

Shape = tuple[int, ...]


class WarpShapes(NamedTuple):
    """A call of given shapes."""

    batch: Shape
    shape: Shape
    """Of the result: (*batch, C, h, w)."""
    values: int
    """How many it has."""
    kind: int
    """Of map, see `positions.map_tile`."""
    mapping_of: np.ndarray
    """For every item of the batch its matrix or points."""
    expand: bool
    """`fill` differs by item."""
    tile_rows: int
    """Rows of tiles that an item has."""
    tile_columns: int
    """Tiles of a row."""
    plan: WarpPlan
    sizes: np.ndarray
    """The plan as kernels take it."""


class WorkPartition(NamedTuple):
    """Who works on which image's gradient: unit u of work is one band of one accumulator."""

    accumulators: int
    """Gradients that items are added to: one an image, or several to be added up."""
    splits: int
    """Accumulators that an image has."""
    bands: int
    """Ranges of rows that an accumulator is cut into."""
    order: np.ndarray
    """The items, by accumulator."""
    starts: np.ndarray
    """Where in `order` the items of each accumulator begin, and the end."""


@lru_cache(maxsize=256)
def warp_shapes(
    image: Shape,
    mapping: Shape,
    fill: Shape,
    size: Shape,
    border: str,
    *,
    listed: bool = False,
    needs_grad: tuple[bool, bool, bool] = (False, False, False),
) -> WarpShapes:
    """A call by the shapes of its arguments.

    listed: a list says where each matrix looks, and the batch is theirs. needs_grad: image,
    mapping and fill.
    """
    maps, (h, w) = mapping_batch(mapping), size
    batch = maps if listed else batch_of(image, mapping)
    shape = (*batch, image[-3], h, w)
    kind = POINTS if mapping[-1] == 2 else mapping[-2]
    channels, height, width = image[-3:]
    sizes = (prod(batch), channels, height, width, h, w)
    dense = prod(fill[-2:]) > 1
    plan = WarpPlan(
        *sizes, CODE[border], mapping_size(mapping), *fill_strides(fill), dense, *needs_grad
    )
    tile_rows, tile_columns = -(-h // TILE), -(-w // TILE)
    return WarpShapes(
        batch,
        shape,
        prod(shape),
        kind,
        broadcast_index(maps, batch),
        prod(fill[:-3]) > 1,
        tile_rows,
        tile_columns,
        plan,
        np.array(plan),
    )


@lru_cache(maxsize=256)
def partition(image_batch: Shape, batch: Shape, height: int, values: int) -> WorkPartition:
    """Share the items of `batch`, of so many values, by the image (of `image_batch`) of each.

    With few images an image's rows are split into bands, and tiles that straddle two are done twice
    (1.1 to 1.5 times the time); under many matrices for one image, the matrices into splits, each
    with an accumulator of its own (0.7 of the bands' time on 64 matrices).
    """
    images, items = prod(image_batch), prod(batch)
    bands = _bands(images, height, values)
    splits = min(items // images, bands, 4) if bands > 1 and items >= 4 * images else 1
    return _shares(broadcast_index(image_batch, batch), images, splits, 1 if splits > 1 else bands)


def partition_by_image(of: np.ndarray, images: int, height: int, values: int) -> WorkPartition:
    """The same where item n has image of[n]."""
    return _shares(of, images, 1, _bands(images, height, values))


def _bands(images: int, height: int, values: int) -> int:
    """Bands for each image."""
    few = 0 < images < UNITS and values >= BANDED
    return min(-(-UNITS // images), height) if few else 1


def _shares(of: np.ndarray, images: int, splits: int, bands: int) -> WorkPartition:
    """The items by their image, each image's in `splits` of consecutive ones."""
    order = np.argsort(of, kind="stable")
    counts = np.bincount(of, minlength=images)
    edges = np.concatenate(([0], np.cumsum(counts)))
    starts = [edges[i] + counts[i] * g // splits for i in range(images) for g in range(splits)]
    return WorkPartition(images * splits, splits, bands, order, np.array([*starts, len(of)]))


@lru_cache(maxsize=256)
def broadcast_index(source: Shape, batch: Shape, strides: Shape | None = None) -> np.ndarray:
    """For every item of `batch`, counted through, the entry of `source` that broadcasts to it.

    Its number; with the strides of `source`, where it begins in memory.
    """
    numbers = np.arange(prod(source)).reshape(source)
    if strides is not None:
        numbers = np.tensordot(np.array(strides, np.intp), np.indices(source), 1)
    # a copy: a view that cannot be written to is another type to Numba, and compiled for again
    return np.array(np.broadcast_to(numbers, batch)).reshape(-1)
