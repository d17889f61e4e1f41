"""Splits the backward pass into jobs.

If every image has its own gradient, a unit of work is an image. With few images, a unit is a strip
of the result's tiles, provided that strips running at the same time cannot meet in the image;
otherwise it is a band of the image's rows. All this follows from shapes and the map, never from the
number of threads, so neither does the order of sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil, prod, sqrt
from typing import NamedTuple

import numpy as np

from warpkit.engine.cpu.warp_calls import TILE, WarpShapes
from warpkit.engine.definitions.layout import POINTS, broadcast_index
from warpkit.engine.definitions.rules import CODE

BANDED = 250_000
"""From this many gradient values on, an image is split, although that is more work."""

UNITS = 8
"""The number of units if gradients are added to one image. Each has a cost, see `partition`."""

STRIPS = 32
"""The largest number of strips of tiles into which an image is split."""

ALL_ROWS = 2**62
"""The end of a band that covers the whole image."""

Shape = tuple[int, ...]


class Image(NamedTuple):
    """The sizes of an image."""

    channels: int
    height: int
    width: int

    @property
    def size(self) -> int:
        return prod(self)


class WorkPartition(NamedTuple):
    """Assigns work on images' gradients: unit u is one band of one accumulator."""

    accumulators: int
    """Gradients to which items are added: one per image, or several that are summed later."""
    splits: int
    """Accumulators per image."""
    bands: int
    """Ranges of rows into which an accumulator is divided."""
    order: np.ndarray
    """The items, sorted by accumulator."""
    starts: np.ndarray
    """The start of each accumulator's items in `order`, and the end."""


@lru_cache(maxsize=256)
def partition(image_batch: Shape, batch: Shape, height: int, values: int) -> WorkPartition:
    """Distribute the items of `batch`, with `values` numbers, by the image (of `image_batch`) of
    each.

    With few images, an image's rows are split into bands, and tiles on the edge of two bands are
    computed twice (1.1 to 1.5 times the time). If one image has many matrices, these are split
    instead, with an accumulator per split (0.7 of the bands' time for 64 matrices).
    """
    images, items = prod(image_batch), prod(batch)
    bands = _bands(images, height, values)
    splits = min(items // images, bands, 4) if bands > 1 and items >= 4 * images else 1
    return _shares(broadcast_index(image_batch, batch), images, splits, 1 if splits > 1 else bands)


def partition_by_image(of: np.ndarray, images: int, height: int, values: int) -> WorkPartition:
    """The same if item n has image of[n]."""
    return _shares(of, images, 1, _bands(images, height, values))


def _bands(images: int, height: int, values: int) -> int:
    """The number of bands per image."""
    few = 0 < images < UNITS and values >= BANDED
    return min(-(-UNITS // images), height) if few else 1


def _shares(of: np.ndarray, images: int, splits: int, bands: int) -> WorkPartition:
    """Distributes items by their image; those of an image form `splits` consecutive groups."""
    order = np.argsort(of, kind="stable")
    counts = np.bincount(of, minlength=images)
    edges = np.concatenate(([0], np.cumsum(counts)))
    starts = [edges[i] + counts[i] * g // splits for i in range(images) for g in range(splits)]
    return WorkPartition(images * splits, splits, bands, order, np.array([*starts, len(of)]))


class Jobs(NamedTuple):
    """The jobs of all units."""

    jobs: np.ndarray
    """(N, 9), int64: `Job` in native/warp/warp_call.h."""
    starts: np.ndarray
    """The first job of every unit, and the end."""
    phases: tuple[tuple[int, int], ...]
    """Ranges of units that run one after the other."""
    bands: int
    """The number of partial sums of a matrix or fill for each item."""
    banded: bool = False
    """Units own bands of the image's rows, and several compute the tiles on an edge."""


def made(jobs: list[list[tuple[int, ...]]], phases: list[int], bands: int) -> Jobs:
    """Makes `Jobs` from the jobs of every unit, and the number of units in each phase."""
    flat = [job for unit in jobs for job in unit]
    starts = np.cumsum([0, *map(len, jobs)])
    ends = np.cumsum(phases).tolist()
    ranges = tuple((end - count, end) for end, count in zip(ends, phases, strict=True))
    return Jobs(np.array(flat, np.int64).reshape(-1, 9), starts, ranges, bands)


def by_accumulator(shares: WorkPartition, image: Image, tile_rows: int) -> Jobs:
    """One unit for each accumulator of the image's gradient."""
    size, units = image.size, []
    for a in range(shares.accumulators):
        items = shares.order[shares.starts[a] : shares.starts[a + 1]].tolist()
        unit = [(0, 0, 0, a, 0, a * size, (a + 1) * size, 0, ALL_ROWS)]
        units.append(unit + [(item, 0, tile_rows, a, item, 0, 0, 0, ALL_ROWS) for item in items])
    return made(units, [len(units)], 1)


def by_list(of: np.ndarray, sizes: Sequence[int], tile_rows: int) -> Jobs:
    """One unit per image of a list with these sizes; item n has image of[n]."""
    shares = _shares(of, len(sizes), 1, 1)
    ends = np.cumsum(sizes).tolist()
    units = []
    for a, (end, size) in enumerate(zip(ends, sizes, strict=True)):
        items = shares.order[shares.starts[a] : shares.starts[a + 1]].tolist()
        unit = [(0, 0, 0, a, 0, end - size, end, 0, ALL_ROWS)]
        units.append(unit + [(item, 0, tile_rows, a, item, 0, 0, 0, ALL_ROWS) for item in items])
    return made(units, [len(units)], 1)


def by_tile_rows(shares: WorkPartition, items: int, tile_rows: int) -> Jobs:
    """Bands of tile rows, if no image needs a gradient."""
    bands = shares.bands
    edges = [tile_rows * part // bands for part in range(bands + 1)]
    units = [
        [(item, edges[k], edges[k + 1], 0, item * bands + k, 0, 0, 0, ALL_ROWS)]
        for item in range(items)
        for k in range(bands)
    ]
    return made(units, [len(units)], bands)


def by_bands(shares: WorkPartition, image: Image, tile_rows: int) -> Jobs:
    """Bands of the image's rows: each computes the tiles that read it."""
    bands, units = shares.bands, []
    for a in range(shares.accumulators):
        items = shares.order[shares.starts[a] : shares.starts[a + 1]].tolist()
        for k in range(bands):
            rows = image.height * k // bands, image.height * (k + 1) // bands
            units.append([
                (item, 0, tile_rows, a, item * bands + k, 0, 0, *rows) for item in items
            ])  # fmt: skip
    clears = _clears(shares.accumulators, image, bands)
    return made([*clears, *units], [len(clears), len(units)], bands)._replace(banded=True)


def _clears(accumulators: int, image: Image, parts: int) -> list[list[tuple[int, ...]]]:
    """Units that set the image's gradients to 0, each accumulator in `parts` parts."""
    size = image.size
    return [
        [(0, 0, 0, 0, 0, a * size + size * k // parts, a * size + size * (k + 1) // parts, 0, 0)]
        for a in range(accumulators)
        for k in range(parts)
    ]


def by_strips(
    shapes: WarpShapes,
    image: Image,
    mapping: np.ndarray,
    relative: bool,
    taps: int,
    ends: np.ndarray | None = None,
) -> Jobs | None:
    """Strips of tile rows, every other one first; None if strips of a phase may meet.

    For one map per image: item n has the shapes.mapping_of[n]-th of (M, 2 or 3, 3), or of (M, h, w,
    2) points or offsets (`relative`), flat. ends (M, h, 2): the smallest and the largest y of each
    row of points, if known.
    """
    edges = None
    # strips are rows: what the border along x does is no matter, save that a matrix's bound is both
    keeps_rows = shapes.border[0] in (CODE["constant"], CODE["replicate"])
    if shapes.kind == POINTS and keeps_rows:
        edges = _edges_of_points(shapes, image, mapping, relative, taps, ends)
    elif shapes.kind != POINTS and shapes.border == (CODE["constant"],) * 2:
        rows = mapping.reshape(-1, shapes.kind, 3)[shapes.mapping_of]
        edges = _edges_of_matrices(shapes, image, rows, ceil(taps * sqrt(2)))
    if edges is None:
        return None
    strips = len(edges) - 1
    clears = _clears(shapes.items, image, strips)
    phases = [
        [
            [(item, edges[k], edges[k + 1], item, item * strips + k, 0, 0, 0, ALL_ROWS)]
            for item in range(shapes.items)
            for k in range(first, strips, 2)
        ]
        for first in range(2)
    ]
    units = [clears, *phases]
    return made([unit for phase in units for unit in phase], [*map(len, units)], strips)


def _edges_of_matrices(
    shapes: WarpShapes, image: Image, matrices: np.ndarray, far: int
) -> list[int] | None:
    """The edges of strips, in rows of tiles; matrices (N, 2 or 3, 3).

    Two strips have no tap in common if the strip between them is `far` source pixels wide, unless a
    border leads them back into the image. `far` is the number of taps along a diagonal.
    """
    tile_rows = shapes.tile_rows
    apart = _rows_apart(shapes.shape[-2], image, matrices, far)
    if not apart * TILE * tile_rows > 4 * far:  # also true for NaN
        return None
    rows = max(-(-tile_rows // STRIPS), int(far / (apart * TILE)) + 1)
    edges = [*range(0, tile_rows, rows), tile_rows]
    return edges if len(edges) > 4 else None


@np.errstate(all="ignore")  # a NaN distance gives None above
def _rows_apart(out_height: int, image: Image, matrices: np.ndarray, far: int) -> float:
    """The smallest number of source pixels between two rows of the output, inside the image and
    `far` around it; 0 or NaN if a map has no such bound.

    With f the inverse of a map, source point p is in row f1(p) / f2(p), a quotient of linear
    functions. Per pixel, the row changes by at most |grad f1 - row grad f2| / |f2(p)|. Its maximum
    is at the first or the last row, and at a corner, unless f2 is 0 between them. For an affine
    map, it is |first column| / |det| everywhere.
    """
    whole = np.zeros((len(matrices), 3, 3))
    whole[:, 2, 2] = 1
    whole[:, : matrices.shape[1]] = matrices
    try:
        to_output = np.linalg.inv(whole)
    except np.linalg.LinAlgError:
        return 0.0
    # an inverse with fewer than four correct digits bounds nothing
    if not (np.abs(whole).max((1, 2)) * np.abs(to_output).max((1, 2)) < 1e12).all():
        return 0.0
    above, below = to_output[:, 1, :2], to_output[:, 2, :2]
    steep = max(np.hypot(*(above - row * below).T).max() for row in (0, out_height))
    x, y = np.meshgrid((-far, image.width + far), (-far, image.height + far))
    corners = np.stack((x, y, np.ones_like(x))).reshape(3, 4)
    ends = to_output[:, 2] @ corners
    if not ((ends > 0).all(1) | (ends < 0).all(1)).all():
        return 0.0
    return float(np.abs(ends).min() / steep)


def _edges_of_points(
    shapes: WarpShapes,
    image: Image,
    points: np.ndarray,
    relative: bool,
    taps: int,
    ends: np.ndarray | None,
) -> list[int] | None:
    """The same for fields of points: strips as thin as their rows of the image allow.

    The rows are found by reading the points, which takes a tenth of the time that two bands lose by
    computing tiles on their edge twice.
    """
    tile_rows, (h, w) = shapes.tile_rows, shapes.shape[-2:]
    if ends is None:
        y = points.reshape(-1, h, w, 2)[..., 1]
        low, high = (reduce(y, -1).astype(np.float64) for reduce in (np.min, np.max))
    else:
        low, high = np.moveaxis(ends.reshape(-1, h, 2), -1, 0)
    if relative:
        row = np.arange(h)
        low, high = low + row, high + row
    if not np.isfinite(low + high).all():
        return None
    # from the first and the last tap
    if taps == 1:
        low, high = np.rint(low), np.rint(high)
    else:
        low, high = np.floor(low) - (taps // 2 - 1), np.floor(high) + taps // 2
    if shapes.border[0] == CODE["replicate"]:
        low, high = (np.clip(rows, 0, image.height - 1) for rows in (low, high))
    rows = -(-tile_rows // STRIPS)
    while 3 * rows < tile_rows:
        edges = [*range(0, tile_rows, rows), tile_rows]
        begins = np.array(edges[:-1]) * TILE
        first, last = np.minimum.reduceat(low, begins, 1), np.maximum.reduceat(high, begins, 1)
        # positions outside the image read nothing
        first, last = np.maximum(first, -1), np.minimum(last, image.height)
        if all(_apart(first[:, k::2], last[:, k::2]) for k in (0, 1)):
            return edges
        rows *= 2
    return None


def _apart(first: np.ndarray, last: np.ndarray) -> bool:
    """Whether no two ranges first ... last of a row (M, N) share a number."""
    empty = first > last
    first, last = np.where(empty, np.inf, first), np.where(empty, -np.inf, last)
    order = np.argsort(first, axis=1)
    first, last = (np.take_along_axis(a, order, 1) for a in (first, last))
    return bool((first[:, 1:] > last[:, :-1]).all())
