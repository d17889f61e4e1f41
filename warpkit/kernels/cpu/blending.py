"""Objects with a coverage, composited over images, there and back: the kernels of `blends_cpu`.

Images are flat, (B, C, H, W), and the maps (N, 2 or 3, 3) count from the corners of the objects'
boxes. The objects of image b are order[starts[b] : starts[b + 1]], the last one on top. With
alpha = opacity x (sum of weights x mask), an object makes of what is below it
colour + (1 - alpha) below. On the way back the objects above let a part of the gradient through:
that is found first, band by band; then each object is gone through once.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from warpkit.kernels.cpu.compiler import DIGEST, inline, kernel
from warpkit.kernels.cpu.lanes import LANES, add4, least, load4, most, pack4, store4
from warpkit.kernels.cpu.locate import AFFINE, PERSPECTIVE, inside
from warpkit.kernels.cpu.painting import BAND, locate


class Blend(NamedTuple):
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
    to_images: bool = False
    """Which gradients are wanted."""
    to_alpha: bool = False
    """To what the coverage depends on: map, mask or opacity."""
    to_colour: bool = False
    to_mask: bool = False
    packed: bool = False
    """Whether the gradient to sources has four channels side by side, and not one after the other.

    Then a place of a source is four numbers, and `plane` leads from four channels to the next.
    """
    colour_step: int = 0
    """From one group's gradient to the next; 0 where all add to one."""
    mask_step: int = 0


class Item(NamedTuple):
    """One object: its box, exclusive at the right and the bottom, and its source."""

    number: int
    left: int
    top: int
    right: int
    bottom: int
    start: int
    """Of its source in `colour`."""
    tall: int
    wide: int
    cover: int
    """Of its source in `mask`."""
    first: int
    """Of its pixels among those of all boxes."""


@inline
def item_of(table, o):
    """An object's row of the table."""
    r = table[o]
    return Item(o, r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8])


@inline
def span(kind, inverse, item, y):
    """The columns of row y outside which an affine map finds no tap; all of another map's."""
    low, high = np.float64(item.left), np.float64(item.right)
    if kind == AFFINE:
        for axis in range(2):
            at = 6 * item.number + 3 * axis
            slope, sides = inverse[at], (item.wide, item.tall)
            zero = inverse[at + 1] * (y - item.top) + inverse[at + 2]
            if slope != 0:  # a column more on both sides, for rounding; NaN is no limit
                one, other = (-1 - zero) / slope, (sides[axis] - zero) / slope
                low = most(item.left + least(one, other) - 1, low)
                high = least(item.left + most(one, other) + 2, high)
            elif not (-1 <= zero <= sides[axis]):
                high = low
    high = most(high, low)
    return np.int64(least(low, item.right)), np.int64(least(high, item.right))


@inline
def aim(kind, inverse, mask, masked, item, x, y):
    """Where pixel (x, y) of the image looks.

    The first tap's column and row, the fractions, which of the four taps are there, and whether
    all are; their weights times the mask, and the sum of these.
    """
    i, j, fx, fy = locate(kind, inverse, item.number, x - item.left, y - item.top)
    tx, ty, one = mask.dtype.type(fx), mask.dtype.type(fy), mask.dtype.type(1)
    x0, x1 = inside(i, item.wide), inside(i + 1, item.wide)
    y0, y1 = inside(j, item.tall), inside(j + 1, item.tall)
    zero, whole = mask.dtype.type(0), (x0 & x1) & (y0 & y1)
    seen = (x0 & y0, x1 & y0, x0 & y1, x1 & y1, whole)
    if masked:
        m = read(mask, np.uint64(item.cover + j * item.wide + i), item.wide, seen)
    else:
        m = (one if seen[0] else zero, one if seen[1] else zero,
             one if seen[2] else zero, one if seen[3] else zero)  # fmt: skip
    sx, sy = one - tx, one - ty
    weights = (sy * sx * m[0], sy * tx * m[1], ty * sx * m[2], ty * tx * m[3])
    # not their sum, which may be 1 but for its last bit: what is opaque hides 1e30, too
    above, below = m[0] + tx * (m[1] - m[0]), m[2] + tx * (m[3] - m[2])
    return i, j, tx, ty, seen, weights, above + ty * (below - above)


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
def add(total, q, line, seen, g, w):
    """g times the four weights, to the taps that are there."""
    r = q + np.uint64(line)
    if seen[4]:
        total[q] += g * w[0]
        total[q + np.uint64(1)] += g * w[1]
        total[r] += g * w[2]
        total[r + np.uint64(1)] += g * w[3]
        return
    if seen[0]:
        total[q] += g * w[0]
    if seen[1]:
        total[q + np.uint64(1)] += g * w[1]
    if seen[2]:
        total[r] += g * w[2]
    if seen[3]:
        total[r + np.uint64(1)] += g * w[3]


@inline
def add_packed(total, q, line, seen, lanes, w):
    """The same for four channels side by side."""
    at = np.uint64(LANES) * q
    right, down = at + np.uint64(LANES), at + np.uint64(LANES * line)
    if seen[0]:
        store4(total, at, add4(w[0], lanes, load4(total, at)))
    if seen[1]:
        store4(total, right, add4(w[1], lanes, load4(total, right)))
    if seen[2]:
        store4(total, down, add4(w[2], lanes, load4(total, down)))
    if seen[3]:
        right = down + np.uint64(LANES)
        store4(total, right, add4(w[3], lanes, load4(total, right)))


@inline
def four_of(gradient, p, area, left):
    """Four channels of a pixel, 0 for those beyond the `left` ones."""
    zero = gradient.dtype.type(0)
    return pack4(
        gradient[p],
        gradient[p + area] if left > 1 else zero,
        gradient[p + np.uint64(2) * area] if left > 2 else zero,
        gradient[p + np.uint64(3) * area] if left > 3 else zero,
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
        images, inverse, colour, mask, opacity, result, table, order, starts, scene, begin, end
    ):  # fmt: skip
        """Bands begin .. end of BAND rows of all images, counted through."""
        _ = digest
        area, one = np.uint64(scene.height * scene.width), images.dtype.type(1)
        bands = (scene.height + BAND - 1) // BAND
        for unit in range(begin, end):
            b, low = unit // bands, unit % bands * BAND
            high = least(low + BAND, scene.height)
            base = b * scene.channels * scene.height * scene.width
            for c in range(scene.channels):
                at = base + (c * scene.height + low) * scene.width
                for p in range(at, at + (high - low) * scene.width):
                    result[np.uint64(p)] = images[np.uint64(p)]
            for n in range(starts[b], starts[b + 1]):
                item = item_of(table, order[n])
                full = opacity[item.number if scene.opacities > 1 else 0]
                for y in range(most(item.top, low), least(item.bottom, high)):
                    first, last = span(kind, inverse, item, y)
                    for x in range(first, last):
                        i, j, _tx, _ty, seen, w, cover = aim(
                            kind, inverse, mask, scene.masked, item, x, y
                        )
                        if not any_of(seen):
                            continue
                        alpha = full * cover
                        q = np.uint64(item.start + j * scene.line + i)
                        p = np.uint64(base + y * scene.width + x)
                        for _c in range(scene.channels):
                            value = full * dot(w, read(colour, q, scene.line, seen))
                            result[p] = value + (one - alpha) * result[p]
                            p, q = p + area, q + np.uint64(scene.plane)

    return kernel(forward)


@cache
def through_kernel(kind: int) -> Any:
    """The kernel of the first half back: what the objects above let through, and to each alpha."""
    digest = DIGEST

    def through(
        gradient, images, inverse, colour, mask, opacity, to_images, passed, pull, table, order,
        starts, scene, begin, end,
    ):  # fmt: skip
        """Bands begin .. end of BAND rows of all images, counted through."""
        _ = digest
        width, area, one = scene.width, scene.height * scene.width, images.dtype.type(1)
        bands, step = (scene.height + BAND - 1) // BAND, np.uint64(BAND * width)
        below = np.empty(scene.channels * BAND * width if scene.to_alpha else 0, images.dtype)
        rest = np.empty(BAND * width, images.dtype)
        for unit in range(begin, end):
            b, low = unit // bands, unit % bands * BAND
            high = least(low + BAND, scene.height)
            base = b * scene.channels * area
            rest[:] = one
            if scene.to_alpha:
                for c in range(scene.channels):
                    at, to = base + c * area + low * width, c * BAND * width
                    for p in range((high - low) * width):
                        below[np.uint64(to + p)] = images[np.uint64(at + p)]
            for n in range(starts[b], starts[b + 1]):  # as forward, for what is below each
                item = item_of(table, order[n])
                full = opacity[item.number if scene.opacities > 1 else 0]
                for y in range(most(item.top, low), least(item.bottom, high)):
                    entry = item.first + (y - item.top) * (item.right - item.left) - item.left
                    first, last = span(kind, inverse, item, y)
                    for x in range(first, last):
                        i, j, _tx, _ty, seen, w, cover = aim(
                            kind, inverse, mask, scene.masked, item, x, y
                        )
                        alpha = full * cover
                        passed[np.uint64(entry + x)] = alpha
                        if any_of(seen) & scene.to_alpha:
                            q = np.uint64(item.start + j * scene.line + i)
                            p, g = np.uint64((y - low) * width + x), np.uint64(base + y * width + x)
                            under = images.dtype.type(0)
                            for _c in range(scene.channels):
                                value = full * dot(w, read(colour, q, scene.line, seen))
                                under += gradient[g] * below[p]
                                below[p] = value + (one - alpha) * below[p]
                                p, q, g = p + step, q + np.uint64(scene.plane), g + np.uint64(area)
                            pull[np.uint64(entry + x)] = -under
            for n in range(starts[b + 1] - 1, starts[b] - 1, -1):
                item = item_of(table, order[n])
                for y in range(most(item.top, low), least(item.bottom, high)):
                    entry = item.first + (y - item.top) * (item.right - item.left) - item.left
                    place = (y - low) * width
                    first, last = span(kind, inverse, item, y)
                    for x in range(first, last):
                        e, p = np.uint64(entry + x), np.uint64(place + x)
                        alpha = passed[e]
                        passed[e] = rest[p]
                        if scene.to_alpha:
                            pull[e] *= rest[p]
                        rest[p] *= one - alpha
            if scene.to_images:
                for c in range(scene.channels):
                    at = base + c * area + low * width
                    for p in range((high - low) * width):
                        to_images[np.uint64(at + p)] = (
                            gradient[np.uint64(at + p)] * rest[np.uint64(p)]
                        )

    return kernel(through)


@inline
def slopes(kind, inverse, item, x, y, u, v, parts, n, sums):
    """Add the gradient of a pixel's point (u, v): by column, row and depth, alone and times its x.

    parts: the weights along x, then along y. n: the taps' masks times the gradients to the weights.
    """
    sx, tx, sy, ty = parts
    to_u = np.float64(sy * (n[1] - n[0]) + ty * (n[3] - n[2]))
    to_v = np.float64(sx * (n[2] - n[0]) + tx * (n[3] - n[1]))
    across = x - item.left
    if kind == PERSPECTIVE:
        at = 9 * item.number
        depth = inverse[at + 6] * across + inverse[at + 7] * (y - item.top) + inverse[at + 8]
        to_depth = -(to_u * u + to_v * v) / depth
        to_u, to_v = to_u / depth, to_v / depth
        sums[2] += to_depth
        sums[5] += to_depth * across
    sums[0] += to_u
    sums[1] += to_v
    sums[3] += to_u * across
    sums[4] += to_v * across


@cache
def backward_kernel(kind: int) -> Any:
    """The kernel of the other half: for each object, to its source, mask, opacity and map."""
    digest = DIGEST

    def backward(
        gradient, inverse, colour, mask, opacity, passed, pull, to_inverse, to_colour, to_mask,
        to_opacity, table, image_of, order, groups, scene, begin, end,
    ):  # fmt: skip
        """Groups begin .. end of objects; group k is order[groups[k] : groups[k + 1]].

        `to_inverse` (N, 9) and `to_opacity` (N,) are added to.
        """
        _ = digest
        area, zero = np.uint64(scene.height * scene.width), colour.dtype.type(0)
        one, sums = colour.dtype.type(1), np.empty(6)
        quads = (scene.channels + LANES - 1) // LANES
        for n in range(groups[begin], groups[end]):
            k = begin
            while groups[k + 1] <= n:
                k += 1
            item = item_of(table, order[n])
            o = item.number
            full = opacity[o if scene.opacities > 1 else 0]
            base = image_of[o] * scene.channels * scene.height * scene.width
            for y in range(item.top, item.bottom):
                entry = item.first + (y - item.top) * (item.right - item.left) - item.left
                sums[:] = 0
                first, last = span(kind, inverse, item, y)
                for x in range(first, last):
                    i, j, tx, ty, seen, w, _cover = aim(kind, inverse, mask, scene.masked, item,
                                                x, y)  # fmt: skip
                    if not any_of(seen):
                        continue
                    part = passed[np.uint64(entry + x)]
                    start = item.start + j * scene.line + i
                    q, p = np.uint64(start), np.uint64(base + y * scene.width + x)
                    at = start
                    if scene.packed:
                        at += item.start // scene.channels * (quads - scene.channels)
                    at = np.uint64(at + k * scene.colour_step)
                    s0 = s1 = s2 = s3 = pull[np.uint64(entry + x)] if scene.to_alpha else zero
                    if scene.to_colour & scene.packed:
                        f = part * full
                        parts = (f * w[0], f * w[1], f * w[2], f * w[3])
                        for quad in range(quads):
                            g = four_of(gradient, p + np.uint64(LANES * quad) * area, area,
                                        scene.channels - LANES * quad)  # fmt: skip
                            to = at + np.uint64(quad * scene.plane)
                            add_packed(to_colour, to, scene.line, seen, g, parts)
                    for _c in range(scene.channels if scene.to_alpha | (not scene.packed) else 0):
                        g = gradient[p] * part
                        if scene.to_alpha:
                            v = read(colour, q, scene.line, seen)
                            s0, s1 = s0 + g * v[0], s1 + g * v[1]
                            s2, s3 = s2 + g * v[2], s3 + g * v[3]
                        if scene.to_colour & (not scene.packed):
                            add(to_colour, at, scene.line, seen, g * full, w)
                        step = np.uint64(scene.plane)
                        p, q, at = p + area, q + step, at + step
                    if scene.to_alpha:
                        to_opacity[o] += dot(w, (s0, s1, s2, s3))
                        s, m = (full * s0, full * s1, full * s2, full * s3), (one, one, one, one)
                        start = item.cover + j * item.wide + i
                        if scene.masked:
                            m = read(mask, np.uint64(start), item.wide, seen)
                        sx, sy = one - tx, one - ty
                        if scene.to_mask:
                            weights = (sy * sx * s[0], sy * tx * s[1], ty * sx * s[2],
                                       ty * tx * s[3])  # fmt: skip
                            at = np.uint64(start + k * scene.mask_step)
                            add(to_mask, at, item.wide, seen, one, weights)
                        n0 = m[0] * s[0] if seen[0] else zero
                        n1 = m[1] * s[1] if seen[1] else zero
                        n2 = m[2] * s[2] if seen[2] else zero
                        n3 = m[3] * s[3] if seen[3] else zero
                        slopes(kind, inverse, item, x, y, i + tx, j + ty, (sx, tx, sy, ty),
                               (n0, n1, n2, n3), sums)  # fmt: skip
                for row in range(3):
                    to_inverse[o, 3 * row] += sums[3 + row]
                    to_inverse[o, 3 * row + 1] += sums[row] * (y - item.top)
                    to_inverse[o, 3 * row + 2] += sums[row]

    return kernel(backward)
