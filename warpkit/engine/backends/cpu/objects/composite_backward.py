"""Backward pass of `composite_forward`: what the objects above let through, then each object.

The objects above let a part of the gradient through: that is found first, band by band. Then each
object is gone through once, in groups that have sums of their own for what all objects share.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from warpkit.engine.backends.cpu.objects.composite_forward import (
    any_of,
    dot,
    object_at,
    read,
    row_range,
    taps_at,
)
from warpkit.engine.backends.cpu.objects.opaque_kernels import BAND
from warpkit.engine.backends.cpu.runtime.compiler import DIGEST, inline, kernel
from warpkit.engine.backends.cpu.runtime.simd import (
    CHANNELS_PER_VECTOR,
    add4,
    load4,
    max_signed,
    min_signed,
    pack4,
    store4,
)
from warpkit.engine.sampling.layout import PERSPECTIVE


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
    at = np.uint64(CHANNELS_PER_VECTOR) * q
    right, down = at + np.uint64(CHANNELS_PER_VECTOR), at + np.uint64(CHANNELS_PER_VECTOR * line)
    if seen[0]:
        store4(total, at, add4(w[0], lanes, load4(total, at)))
    if seen[1]:
        store4(total, right, add4(w[1], lanes, load4(total, right)))
    if seen[2]:
        store4(total, down, add4(w[2], lanes, load4(total, down)))
    if seen[3]:
        right = down + np.uint64(CHANNELS_PER_VECTOR)
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

    def through(arrays, grad_images, passed, alpha_grad, objects, plan, begin, end):
        """Bands begin .. end of BAND rows of all images, counted through.

        An object with alpha a makes of what is below it, b, the value c + (1 - a) b. With g the
        incoming gradient of a pixel, and t the product of (1 - a) over the objects above it there:

            an object's colour c gets   t g
            its alpha a gets            -t sum over channels of g b
            the image gets              t g, with t over all objects

        The first loop composites once more, object by object from below, for the b of each, and
        notes a (in `passed`) and the sum of g b (in `alpha_grad`) at each pixel of each box. The
        second goes from the top down with the product t so far, and leaves t in `passed`. Pixels
        are independent of each other and the objects of a pixel come in their order: the bits do
        not depend on threads. The same as the vjp of `over.over`.

        arrays: incoming gradient, images, maps, colours, masks, opacities. objects: records, order,
        starts.
        """
        _ = digest
        gradient, images, to_source, colour, mask, opacity = arrays
        table, order, starts = objects
        width, area, one = plan.width, plan.height * plan.width, images.dtype.type(1)
        bands, step = (plan.height + BAND - 1) // BAND, np.uint64(BAND * width)
        below = np.empty(plan.channels * BAND * width if plan.needs_grad_alpha else 0, images.dtype)
        rest = np.empty(BAND * width, images.dtype)
        for unit in range(begin, end):
            b, low = unit // bands, unit % bands * BAND
            high = min_signed(low + BAND, plan.height)
            base = b * plan.channels * area
            rest[:] = one
            if plan.needs_grad_alpha:
                for c in range(plan.channels):
                    at, to = base + c * area + low * width, c * BAND * width
                    for p in range((high - low) * width):
                        below[np.uint64(to + p)] = images[np.uint64(at + p)]
            for n in range(starts[b], starts[b + 1]):  # as forward, for what is below each
                item = object_at(table, order[n])
                full = opacity[item.number if plan.opacities > 1 else 0]
                for y in range(max_signed(item.top, low), min_signed(item.bottom, high)):
                    entry = item.first + (y - item.top) * (item.right - item.left) - item.left
                    first, last = row_range(kind, to_source, item, y)
                    for x in range(first, last):
                        i, j, _tx, _ty, seen, _m, w, cover = taps_at(
                            kind, to_source, mask, plan.masked, item, x, y
                        )
                        alpha = full * cover
                        passed[np.uint64(entry + x)] = alpha
                        if any_of(seen) & plan.needs_grad_alpha:
                            q = np.uint64(item.source_start + j * plan.line + i)
                            p, g = np.uint64((y - low) * width + x), np.uint64(base + y * width + x)
                            under = images.dtype.type(0)
                            for _c in range(plan.channels):
                                value = full * dot(w, read(colour, q, plan.line, seen))
                                under += gradient[g] * below[p]
                                below[p] = value + (one - alpha) * below[p]
                                p, q, g = p + step, q + np.uint64(plan.plane), g + np.uint64(area)
                            alpha_grad[np.uint64(entry + x)] = -under
            for n in range(starts[b + 1] - 1, starts[b] - 1, -1):
                item = object_at(table, order[n])
                for y in range(max_signed(item.top, low), min_signed(item.bottom, high)):
                    entry = item.first + (y - item.top) * (item.right - item.left) - item.left
                    place = (y - low) * width
                    first, last = row_range(kind, to_source, item, y)
                    for x in range(first, last):
                        e, p = np.uint64(entry + x), np.uint64(place + x)
                        alpha = passed[e]
                        passed[e] = rest[p]
                        if plan.needs_grad_alpha:
                            alpha_grad[e] *= rest[p]
                        rest[p] *= one - alpha
            if plan.needs_grad_images:
                for c in range(plan.channels):
                    at = base + c * area + low * width
                    for p in range((high - low) * width):
                        grad_images[np.uint64(at + p)] = (
                            gradient[np.uint64(at + p)] * rest[np.uint64(p)]
                        )

    return kernel(through, makes_arrays=True)


@inline
def slopes(kind, to_source, item, x, y, u, v, parts, n, sums):
    """Add the gradient of a pixel's point (u, v): by column, row and depth, alone and times its x.

    parts: the weights along x, then along y. n: the taps' masks times the gradients to the weights.
    """
    sx, tx, sy, ty = parts
    to_u = np.float64(sy * (n[1] - n[0]) + ty * (n[3] - n[2]))
    to_v = np.float64(sx * (n[2] - n[0]) + tx * (n[3] - n[1]))
    across = x - item.left
    if kind == PERSPECTIVE:
        at = 9 * item.number
        depth = to_source[at + 6] * across + to_source[at + 7] * (y - item.top) + to_source[at + 8]
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

    def backward(arrays, passed, alpha_grad, grads, objects, plan, begin, end):
        """Groups begin .. end of objects; group k is order[groups[k] : groups[k + 1]].

        Each object is gone through once, row by row. With t of `through`, f its opacity, w the
        weights of the four taps, m their masks, v their colours, and g the incoming gradient:

            s           = sum over channels of t g v, plus alpha_grad, for each tap
            colour[tap] += t f g w m        opacity += sum of w m s
            mask[tap]   += f w s            point   += f (the weights' derivatives) m s

        The point's gradient goes through the map: see `slopes`. Sums that all objects share have an
        accumulator for each group; the groups follow from the boxes, never from threads.

        arrays: incoming gradient, maps, colours, masks, opacities. grads: to maps (N, 9), colours,
        masks and opacities (N,), added to. objects: records, each one's image, order, groups.
        """
        _ = digest
        gradient, to_source, colour, mask, opacity = arrays
        grad_to_source, grad_colour, grad_mask, grad_opacity = grads
        table, image_of, order, groups = objects
        area, zero = np.uint64(plan.height * plan.width), colour.dtype.type(0)
        one, sums = colour.dtype.type(1), np.empty(6)
        quads = (plan.channels + CHANNELS_PER_VECTOR - 1) // CHANNELS_PER_VECTOR
        k = begin
        for n in range(groups[begin], groups[end]):
            while groups[k + 1] <= n:
                k += 1
            item = object_at(table, order[n])
            o = item.number
            full = opacity[o if plan.opacities > 1 else 0]
            base = image_of[o] * plan.channels * plan.height * plan.width
            for y in range(item.top, item.bottom):
                entry = item.first + (y - item.top) * (item.right - item.left) - item.left
                sums[:] = 0
                first, last = row_range(kind, to_source, item, y)
                for x in range(first, last):
                    i, j, tx, ty, seen, m, w, _cover = taps_at(
                        kind, to_source, mask, plan.masked, item, x, y
                    )
                    if not any_of(seen):
                        continue
                    part = passed[np.uint64(entry + x)]
                    source_start = item.source_start + j * plan.line + i
                    q, p = np.uint64(source_start), np.uint64(base + y * plan.width + x)
                    at = source_start
                    if plan.packed:
                        at += item.source_start // plan.channels * (quads - plan.channels)
                    at = np.uint64(at + k * plan.colour_step)
                    s0 = s1 = s2 = s3 = (
                        alpha_grad[np.uint64(entry + x)] if plan.needs_grad_alpha else zero
                    )
                    if plan.needs_grad_colour & plan.packed:
                        f = part * full
                        parts = (f * w[0], f * w[1], f * w[2], f * w[3])
                        for quad in range(quads):
                            channel = CHANNELS_PER_VECTOR * quad
                            g = four_of(gradient, p + np.uint64(channel) * area, area,
                                        plan.channels - channel)  # fmt: skip
                            to = at + np.uint64(quad * plan.plane)
                            add_packed(grad_colour, to, plan.line, seen, g, parts)
                    for _c in range(
                        plan.channels if plan.needs_grad_alpha | (not plan.packed) else 0
                    ):
                        g = gradient[p] * part
                        if plan.needs_grad_alpha:
                            v = read(colour, q, plan.line, seen)
                            s0, s1 = s0 + g * v[0], s1 + g * v[1]
                            s2, s3 = s2 + g * v[2], s3 + g * v[3]
                        if plan.needs_grad_colour & (not plan.packed):
                            add(grad_colour, at, plan.line, seen, g * full, w)
                        step = np.uint64(plan.plane)
                        p, q, at = p + area, q + step, at + step
                    if plan.needs_grad_alpha:
                        grad_opacity[o] += dot(w, (s0, s1, s2, s3))
                        s = (full * s0, full * s1, full * s2, full * s3)
                        sx, sy = one - tx, one - ty
                        if plan.needs_grad_mask:
                            weights = (sy * sx * s[0], sy * tx * s[1], ty * sx * s[2],
                                       ty * tx * s[3])  # fmt: skip
                            at = item.cover + j * item.width + i + k * plan.mask_step
                            add(grad_mask, np.uint64(at), item.width, seen, one, weights)
                        n0 = m[0] * s[0] if seen[0] else zero
                        n1 = m[1] * s[1] if seen[1] else zero
                        n2 = m[2] * s[2] if seen[2] else zero
                        n3 = m[3] * s[3] if seen[3] else zero
                        slopes(kind, to_source, item, x, y, i + tx, j + ty, (sx, tx, sy, ty),
                               (n0, n1, n2, n3), sums)  # fmt: skip
                for row in range(3):
                    grad_to_source[o, 3 * row] += sums[3 + row]
                    grad_to_source[o, 3 * row + 1] += sums[row] * (y - item.top)
                    grad_to_source[o, 3 * row + 2] += sums[row]

    return kernel(backward, makes_arrays=True)
