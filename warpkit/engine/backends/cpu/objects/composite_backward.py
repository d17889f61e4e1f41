"""Backward pass of `composite_forward`: what the objects above let through, then each object.

The objects above let a part of the gradient through: that is found first, band by band. Then each
object is gone through once, in groups that have sums of their own for what all objects share.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from warpkit.engine.backends.cpu.objects.composite_forward import (
    aim,
    any_of,
    dot,
    item_of,
    read,
    span,
)
from warpkit.engine.backends.cpu.objects.opaque_kernels import BAND
from warpkit.engine.backends.cpu.runtime.compiler import DIGEST, inline, kernel
from warpkit.engine.backends.cpu.runtime.simd import LANES, add4, least, load4, most, pack4, store4
from warpkit.engine.backends.cpu.warps.positions import PERSPECTIVE


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
                        i, j, _tx, _ty, seen, _m, w, cover = aim(
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

        `to_inverse` (N, 9) and `to_opacity` (N,), float64, are added to.
        """
        _ = digest
        area, zero = np.uint64(scene.height * scene.width), colour.dtype.type(0)
        one, sums = colour.dtype.type(1), np.empty(6)
        quads = (scene.channels + LANES - 1) // LANES
        k = begin
        for n in range(groups[begin], groups[end]):
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
                    i, j, tx, ty, seen, m, w, _cover = aim(
                        kind, inverse, mask, scene.masked, item, x, y
                    )
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
                        s = (full * s0, full * s1, full * s2, full * s3)
                        sx, sy = one - tx, one - ty
                        if scene.to_mask:
                            weights = (sy * sx * s[0], sy * tx * s[1], ty * sx * s[2],
                                       ty * tx * s[3])  # fmt: skip
                            at = item.cover + j * item.wide + i + k * scene.mask_step
                            add(to_mask, np.uint64(at), item.wide, seen, one, weights)
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
