"""What follows from the shapes of a call: worked out once for each, in a tenth of the time.

Everything here depends on shapes alone, never on the number of threads.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from warpkit.kernels.cpu.items import entries
from warpkit.kernels.cpu.locate import POINTS
from warpkit.kernels.cpu.scratch import SIDE
from warpkit.kernels.cpu.tile import Plan
from warpkit.kernels.layout import batch_of, own_batch
from warpkit.kernels.rules import CODE

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
    shown = (1,) * (3 - len(outside)) + tuple(outside)
    rows, columns = shown[-2:]
    area, expand = rows * columns, prod(shown[:-3]) > 1
    strides = (
        shown[-3] * area if expand else 0,
        area if shown[-3] > 1 else 0,
        columns if rows > 1 else 0,
        1 if columns > 1 else 0,
    )
    numbers = 2 * h * w if kind == POINTS else 3 * kind
    channels, height, width = image[-3:]
    sizes = (prod(batch), channels, height, width, h, w)
    plan = Plan(*sizes, CODE[border], numbers, *strides, area > 1, credited)
    tall, wide = -(-h // SIDE), -(-w // SIDE)
    return Call(
        batch,
        shape,
        prod(shape),
        kind,
        entries(own, batch),
        expand,
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
    groups = parts = 1
    if images < UNITS and values >= BANDED:
        if items >= 4 * images:
            groups = min(items // images, -(-UNITS // images), 4)
        parts = 1 if groups > 1 else min(-(-UNITS // images), height)
    return _shares(entries(own, batch), images, groups, parts)


def deal_by(of: np.ndarray, images: int, height: int, values: int) -> Deal:
    """The same where item n has image of[n]."""
    few = 0 < images < UNITS and values >= BANDED
    return _shares(of, images, 1, min(-(-UNITS // images), height) if few else 1)


def _shares(of: np.ndarray, images: int, groups: int, parts: int) -> Deal:
    """The items by their image, each image's in `groups` of consecutive ones."""
    order = np.argsort(of, kind="stable")
    counts = np.bincount(of, minlength=images)
    edges = np.concatenate(([0], np.cumsum(counts)))
    starts = [edges[i] + counts[i] * g // groups for i in range(images) for g in range(groups)]
    return Deal(images * groups, groups, parts, order, np.array([*starts, len(of)]))
