"""Objects with a coverage, composited over images: the kernels of `composite`.

Images are flat, (B, C, H, W), and the maps (N, 2 or 3, 3) count from the corners of the objects'
boxes. The objects of image b are order[starts[b] : starts[b + 1]], the last one on top. With
alpha = opacity x (sum of weights x mask), an object makes of what is below it
colour + (1 - alpha) below. `composite_backward` has the way back.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from warpkit.engine.backends.cpu.objects.opaque_kernels import BAND, first_tap
from warpkit.engine.backends.cpu.runtime.compiler import DIGEST, inline, kernel
from warpkit.engine.backends.cpu.runtime.rules import inside
from warpkit.engine.backends.cpu.runtime.simd import max_signed, min_signed
from warpkit.engine.sampling.layout import AFFINE


class CompositePlan(NamedTuple):
    """The sizes of one call."""

    channels: int
    height: int
    width: int
    plane: int
    """From one channel of a source to the next."""
    line: int
    """From one row of a source to the next."""
    masked: bool
    opacities: int
    """1, or one for each object."""
    needs_grad_images: bool = False
    needs_grad_alpha: bool = False
    """Of what the coverage depends on: map, mask or opacity."""
    needs_grad_colour: bool = False
    needs_grad_mask: bool = False
    packed: bool = False
    """Whether the gradient to sources has four channels side by side, and not one after the other.

    Then a place of a source is four numbers, and `plane` leads from four channels to the next.
    """
    colour_step: int = 0
    """From one group's gradient to the next; 0 where all add to one."""
    mask_step: int = 0


class PaintedObject(NamedTuple):
    """One object: its box, exclusive at the right and the bottom, and its source."""

    number: int
    left: int
    top: int
    right: int
    bottom: int
    source_start: int
    """Of its source in `colour`."""
    height: int
    width: int
    cover: int
    """Of its source in `mask`."""
    first: int
    """Of its pixels among those of all boxes."""


RECORD = np.dtype([(name, np.int64) for name in PaintedObject._fields[1:]])
"""An object as `composite` writes it, for the kernels to read."""


@inline
def object_at(table, o):
    """Object number o of a table of records."""
    r = table[o]
    return PaintedObject(
        o, r.left, r.top, r.right, r.bottom, r.source_start, r.height, r.width, r.cover, r.first
    )


@inline
def row_range(kind, to_source, item, y):
    """The columns of row y outside which an affine map finds no tap; all of another map's."""
    low, high = np.float64(item.left), np.float64(item.right)
    if kind == AFFINE:
        for axis in range(2):
            at = 6 * item.number + 3 * axis
            slope, sides = to_source[at], (item.width, item.height)
            zero = to_source[at + 1] * (y - item.top) + to_source[at + 2]
            if slope != 0:  # a column more on both sides, for rounding; NaN is no limit
                one, other = (-1 - zero) / slope, (sides[axis] - zero) / slope
                low = max_signed(item.left + min_signed(one, other) - 1, low)
                high = min_signed(item.left + max_signed(one, other) + 2, high)
            elif not (-1 <= zero <= sides[axis]):
                high = low
    high = max_signed(high, low)
    return np.int64(min_signed(low, item.right)), np.int64(min_signed(high, item.right))


@inline
def taps_at(kind, to_source, mask, masked, item, x, y):
    """Where pixel (x, y) of the image looks.

    The first tap's column and row, the fractions, which of the four taps are there, and whether
    all are; the mask there, their weights times it, and the sum of these.
    """
    i, j, fx, fy = first_tap(kind, to_source, item.number, x - item.left, y - item.top)
    tx, ty, one = mask.dtype.type(fx), mask.dtype.type(fy), mask.dtype.type(1)
    x0, x1 = inside(i, item.width), inside(i + 1, item.width)
    y0, y1 = inside(j, item.height), inside(j + 1, item.height)
    zero, whole = mask.dtype.type(0), (x0 & x1) & (y0 & y1)
    seen = (x0 & y0, x1 & y0, x0 & y1, x1 & y1, whole)
    if masked:
        m = read(mask, np.uint64(item.cover + j * item.width + i), item.width, seen)
    else:
        m = (one if seen[0] else zero, one if seen[1] else zero,
             one if seen[2] else zero, one if seen[3] else zero)  # fmt: skip
    sx, sy = one - tx, one - ty
    weights = (sy * sx * m[0], sy * tx * m[1], ty * sx * m[2], ty * tx * m[3])
    # not their sum, which may be 1 but for its last bit: what is opaque hides 1e30, too
    above, below = m[0] + tx * (m[1] - m[0]), m[2] + tx * (m[3] - m[2])
    return i, j, tx, ty, seen, m, weights, above + ty * (below - above)


@inline
def read(values, q, line, seen):
    """The values of the four taps from place q on, 0 for one that is missing."""
    zero, r = values.dtype.type(0), q + np.uint64(line)
    if seen[4]:
        return values[q], values[q + np.uint64(1)], values[r], values[r + np.uint64(1)]
    return (
        values[q] if seen[0] else zero,
        values[q + np.uint64(1)] if seen[1] else zero,
        values[r] if seen[2] else zero,
        values[r + np.uint64(1)] if seen[3] else zero,
    )


@inline
def dot(w, v):
    """The weighted sum of four taps."""
    return (w[0] * v[0] + w[1] * v[1]) + (w[2] * v[2] + w[3] * v[3])


@inline
def any_of(seen):
    """Whether a tap is there."""
    return (seen[0] | seen[1]) | (seen[2] | seen[3])


@cache
def forward_kernel(kind: int) -> Any:
    """The kernel that composites."""
    digest = DIGEST

    def forward(
        images, to_source, colour, mask, opacity, result, table, order, starts, plan, begin, end
    ):  # fmt: skip
        """Bands begin .. end of BAND rows of all images, counted through."""
        _ = digest
        area, one = np.uint64(plan.height * plan.width), images.dtype.type(1)
        bands = (plan.height + BAND - 1) // BAND
        for unit in range(begin, end):
            b, low = unit // bands, unit % bands * BAND
            high = min_signed(low + BAND, plan.height)
            base = b * plan.channels * plan.height * plan.width
            for c in range(plan.channels):
                at = base + (c * plan.height + low) * plan.width
                for p in range(at, at + (high - low) * plan.width):
                    result[np.uint64(p)] = images[np.uint64(p)]
            for n in range(starts[b], starts[b + 1]):
                item = object_at(table, order[n])
                full = opacity[item.number if plan.opacities > 1 else 0]
                for y in range(max_signed(item.top, low), min_signed(item.bottom, high)):
                    first, last = row_range(kind, to_source, item, y)
                    for x in range(first, last):
                        i, j, _tx, _ty, seen, _m, w, cover = taps_at(
                            kind, to_source, mask, plan.masked, item, x, y
                        )
                        if not any_of(seen):
                            continue
                        alpha = full * cover
                        q = np.uint64(item.source_start + j * plan.line + i)
                        p = np.uint64(base + y * plan.width + x)
                        for _c in range(plan.channels):
                            value = full * dot(w, read(colour, q, plan.line, seen))
                            result[p] = value + (one - alpha) * result[p]
                            p, q = p + area, q + np.uint64(plan.plane)

    return kernel(forward)
