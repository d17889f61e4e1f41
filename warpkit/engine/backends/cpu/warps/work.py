"""What follows from the shapes of a call: worked out once for each, in a tenth of the time.

Everything here depends on shapes alone, never on the number of threads.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from warpkit.engine.backends.cpu.runtime.scratch import SIDE
from warpkit.engine.backends.cpu.warps.items import entries
from warpkit.engine.backends.cpu.warps.positions import POINTS
from warpkit.engine.backends.cpu.warps.tile import Plan
from warpkit.engine.sampling.layout import batch_of, numbers_of, outside_strides, own_batch
from warpkit.engine.sampling.rules import CODE

BANDED = 250_000
"""Values of a gradient from which on an image is split, even though that is more work."""

UNITS = 8
"""Pieces of work when gradients meet in one image. Each costs something, see `deal`."""

Shape = tuple[int, ...]


class Call(NamedTuple):
    """A call of given shapes."""

    batch: Shape
    shape: Shape
    """Of the result: (*batch, C, h, w)."""
    values: int
    """How many it has."""
    kind: int
    """Of map, see `locate`."""
    where_of: np.ndarray
    """For every item of the batch its matrix or points."""
    expand: bool
    """`outside` differs by item."""
    tall: int
    """Rows of tiles that an item has."""
    wide: int
    """Tiles of a row."""
    plan: Plan
    sizes: np.ndarray
    """The plan as kernels take it."""


class Deal(NamedTuple):
    """Who works on which image's gradient: see `backward_kernel`."""

    slots: int
    groups: int
    """Slots an image has, to be added up."""
    parts: int
    order: np.ndarray
    starts: np.ndarray


@lru_cache(maxsize=256)
def call(
    image: Shape,
    where: Shape,
    outside: Shape,
    size: Shape,
    border: str,
    *,
    listed: bool = False,
    credited: bool = False,
) -> Call:
    """A call by the shapes of its arguments.

    listed: a list says where each matrix looks, and the batch is theirs. credited: see `Plan`.
    """
    own, (h, w) = own_batch(where), size
    batch = own if listed else batch_of(image, where)
    shape = (*batch, image[-3], h, w)
    kind = POINTS if where[-1] == 2 else where[-2]
    channels, height, width = image[-3:]
    sizes = (prod(batch), channels, height, width, h, w)
    dense = prod(outside[-2:]) > 1
    plan = Plan(*sizes, CODE[border], numbers_of(where), *outside_strides(outside), dense, credited)
    tall, wide = -(-h // SIDE), -(-w // SIDE)
    return Call(
        batch,
        shape,
        prod(shape),
        kind,
        entries(own, batch),
        prod(outside[:-3]) > 1,
        tall,
        wide,
        plan,
        np.array(plan),
    )


@lru_cache(maxsize=256)
def deal(own: Shape, batch: Shape, height: int, values: int) -> Deal:
    """Deal the items of `batch`, of so many values, to slots, by the image (of `own`) of each.

    With few images a slot's rows are split into bands, and tiles that straddle two are done twice
    (1.1 to 1.5 times the time); under many matrices for one image, the matrices into groups, each
    with an accumulator of its own (0.7 of the bands' time on 64 matrices).
    """
    images, items = prod(own), prod(batch)
    parts = _bands(images, height, values)
    groups = min(items // images, parts, 4) if parts > 1 and items >= 4 * images else 1
    return _shares(entries(own, batch), images, groups, 1 if groups > 1 else parts)


def deal_by(of: np.ndarray, images: int, height: int, values: int) -> Deal:
    """The same where item n has image of[n]."""
    return _shares(of, images, 1, _bands(images, height, values))


def _bands(images: int, height: int, values: int) -> int:
    """Bands for each image."""
    few = 0 < images < UNITS and values >= BANDED
    return min(-(-UNITS // images), height) if few else 1


def _shares(of: np.ndarray, images: int, groups: int, parts: int) -> Deal:
    """The items by their image, each image's in `groups` of consecutive ones."""
    order = np.argsort(of, kind="stable")
    counts = np.bincount(of, minlength=images)
    edges = np.concatenate(([0], np.cumsum(counts)))
    starts = [edges[i] + counts[i] * g // groups for i in range(images) for g in range(groups)]
    return Deal(images * groups, groups, parts, order, np.array([*starts, len(of)]))
