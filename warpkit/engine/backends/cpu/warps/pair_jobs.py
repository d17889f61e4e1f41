"""What the units of a backward pass by pairs are: jobs, see `pairs_backward`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpkit.engine.backends.cpu.runtime.scratch import TILE
from warpkit.engine.backends.cpu.warps.positions import POINTS
from warpkit.engine.backends.cpu.warps.tile import WarpPlan
from warpkit.engine.backends.cpu.warps.work import WorkPartition
from warpkit.engine.sampling.rules import CODE

STRIPS = 32
"""Strips of tiles that an image is cut into, at most."""

APART = {1: 2, 2: 3, 4: 6}
"""Pixels between two points of which no tap is the same, by taps an axis: that many times the root
of 2, and a little."""


class Jobs(NamedTuple):
    """The jobs of all units."""

    jobs: np.ndarray
    """(N, 7), int64, as of `pairs_backward.FIELDS`."""
    starts: np.ndarray
    """The first job of every unit, and the end."""
    phases: tuple[tuple[int, int], ...]
    """Ranges of units, one after the other."""
    bands: int
    """Sums of a matrix, or of a fill, for each item."""


def made(jobs: list[list[tuple[int, ...]]], phases: list[int], bands: int) -> Jobs:
    """From the jobs of every unit, and how many units each phase has."""
    flat = [job for unit in jobs for job in unit]
    starts = np.cumsum([0, *map(len, jobs)])
    ends = np.cumsum(phases).tolist()
    ranges = tuple((end - count, end) for end, count in zip(ends, phases, strict=True))
    return Jobs(np.array(flat, np.int64).reshape(-1, 7), starts, ranges, bands)


def by_accumulator(shares: WorkPartition, plan: WarpPlan, tile_rows: int) -> Jobs:
    """One unit an accumulator of the image's gradient, or one a band of tile rows without it."""
    if shares.bands > 1:
        edges = [tile_rows * part // shares.bands for part in range(shares.bands + 1)]
        units = [
            [(item, edges[k], edges[k + 1], 0, item * shares.bands + k, 0, 0)]
            for item in range(plan.items)
            for k in range(shares.bands)
        ]
        return made(units, [len(units)], shares.bands)
    size, units = plan.channels * plan.height * plan.width, []
    for a in range(shares.accumulators):
        items = shares.order[shares.starts[a] : shares.starts[a + 1]].tolist()
        unit = [(0, 0, 0, a, 0, a * size, (a + 1) * size)]
        units.append(unit + [(item, 0, tile_rows, a, item, 0, 0) for item in items])
    return made(units, [len(units)], 1)


def by_strips(
    plan: WarpPlan,
    kind: int,
    mapping: np.ndarray,
    mapping_of: np.ndarray,
    tile_rows: int,
    relative: bool = False,
    taps: int = 2,
) -> Jobs | None:
    """Strips of tile rows, every other one first; None where strips of a phase may meet.

    For one map an image: item n has the mapping_of[n]-th of (M, 2 or 3, 3), or of (M, h, w, 2)
    points or offsets (`relative`), flat.
    """
    edges = None
    if kind == POINTS and plan.border in (CODE["constant"], CODE["replicate"]):
        edges = _edges_of_points(plan, mapping, tile_rows, relative, taps)
    elif kind != POINTS and plan.border == CODE["constant"]:
        rows = mapping.reshape(-1, kind, 3)[mapping_of]
        edges = _edges_of_matrices(plan, rows, tile_rows, APART[taps])
    if edges is None:
        return None
    strips = len(edges) - 1
    size = plan.channels * plan.height * plan.width
    clears = [
        [(0, 0, 0, 0, 0, item * size + size * k // strips, item * size + size * (k + 1) // strips)]
        for item in range(plan.items)
        for k in range(strips)
    ]
    phases = [
        [
            [(item, edges[k], edges[k + 1], item, item * strips + k, 0, 0)]
            for item in range(plan.items)
            for k in range(first, strips, 2)
        ]
        for first in range(2)
    ]
    units = [clears, *phases]
    return made([unit for phase in units for unit in phase], [*map(len, units)], strips)


def _edges_of_matrices(
    plan: WarpPlan, matrices: np.ndarray, tile_rows: int, far: int
) -> list[int] | None:
    """Where strips begin and end, in rows of tiles; matrices (N, 2 or 3, 3).

    Strips with one between them that is `far` source pixels across have no tap in common, unless a
    border leads them back into the image.
    """
    apart = _rows_apart(plan, matrices, far)
    if not apart * TILE * tile_rows > 4 * far:  # NaN too
        return None
    rows = max(-(-tile_rows // STRIPS), int(far / (apart * TILE)) + 1)
    edges = [*range(0, tile_rows, rows), tile_rows]
    return edges if len(edges) > 4 else None


@np.errstate(all="ignore")  # what is no number is no distance: None above
def _rows_apart(plan: WarpPlan, matrices: np.ndarray, far: int) -> float:
    """Source pixels between the images of two rows of the output, at least, in and `far` around
    the image; 0 or NaN where a map has no such bound.

    With f the inverse of a map, the row that shows source point p is f1(p) / f2(p), linear
    functions of p. It grows by |grad f1 - row grad f2| / |f2(p)| a pixel: no more than at the first
    or the last row, and at one of the corners, unless f2 is 0 somewhere between them. Under an
    affine map that is |first column| / |det| everywhere.
    """
    whole = np.zeros((len(matrices), 3, 3))
    whole[:, 2, 2] = 1
    whole[:, : matrices.shape[1]] = matrices
    try:
        to_output = np.linalg.inv(whole)
    except np.linalg.LinAlgError:
        return 0.0
    # an inverse of fewer than four good digits bounds nothing
    if not (np.abs(whole).max((1, 2)) * np.abs(to_output).max((1, 2)) < 1e12).all():
        return 0.0
    above, below = to_output[:, 1, :2], to_output[:, 2, :2]
    steep = max(np.hypot(*(above - row * below).T).max() for row in (0, plan.out_height))
    x, y = np.meshgrid((-far, plan.width + far), (-far, plan.height + far))
    corners = np.stack((x, y, np.ones_like(x))).reshape(3, 4)
    ends = to_output[:, 2] @ corners
    if not ((ends > 0).all(1) | (ends < 0).all(1)).all():
        return 0.0
    return float(np.abs(ends).min() / steep)


def _edges_of_points(
    plan: WarpPlan, points: np.ndarray, tile_rows: int, relative: bool, taps: int
) -> list[int] | None:
    """The same for fields of points: strips as thin as their rows of the image allow.

    The rows are found by looking at the points, a tenth of the time that two bands lose by doing
    the tiles on their edge twice.
    """
    y = points.reshape(-1, plan.out_height, plan.out_width, 2)[..., 1]
    low, high = (reduce(y, -1).astype(np.float64) for reduce in (np.min, np.max))
    if relative:
        row = np.arange(plan.out_height)
        low, high = low + row, high + row
    if not np.isfinite(low + high).all():
        return None
    # of the first and the last tap
    if taps == 1:
        low, high = np.rint(low), np.rint(high)
    else:
        low, high = np.floor(low) - (taps // 2 - 1), np.floor(high) + taps // 2
    if plan.border == CODE["replicate"]:
        low, high = (np.clip(rows, 0, plan.height - 1) for rows in (low, high))
    rows = -(-tile_rows // STRIPS)
    while 3 * rows < tile_rows:
        edges = [*range(0, tile_rows, rows), tile_rows]
        begins = np.array(edges[:-1]) * TILE
        first, last = np.minimum.reduceat(low, begins, 1), np.maximum.reduceat(high, begins, 1)
        # what lies beside the image is read by nobody
        first, last = np.maximum(first, -1), np.minimum(last, plan.height)
        if all(_apart(first[:, k::2], last[:, k::2]) for k in (0, 1)):
            return edges
        rows *= 2
    return None


def _apart(first: np.ndarray, last: np.ndarray) -> bool:
    """Whether no two ranges first ... last of a row (M, N) have a number in common."""
    empty = first > last
    first, last = np.where(empty, np.inf, first), np.where(empty, -np.inf, last)
    order = np.argsort(first, axis=1)
    first, last = (np.take_along_axis(a, order, 1) for a in (first, last))
    return bool((first[:, 1:] > last[:, :-1]).all())
