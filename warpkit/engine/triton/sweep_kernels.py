"""Kernels of plane sweeps and their first gradients: `definitions/sweep.py`.

A program has some pixels, some channels and a plane, or several for the gradient. Places are made
in registers, view after view, and once more for the gradient of samples whose number or mean must
be known before. The gradient of places is written, and `depth_points` takes it further.
"""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false, reportOperatorIssue=false
# pyright: reportPossiblyUnboundVariable=false

from __future__ import annotations

import triton
import triton.language as tl

from warpkit.engine.definitions.sweep import MEASURES
from warpkit.engine.triton.depth_points import WHOLE, point_of
from warpkit.engine.triton.fixed_point import add_units, finite_of
from warpkit.engine.triton.kernels import kernel
from warpkit.engine.triton.positions import LIMIT, resolve, settle

PRODUCT, DIFFERENCE, ABSOLUTE, SQUARED, VARIANCE = (tl.constexpr(n) for n in range(len(MEASURES)))


@triton.jit
def depth_at(depths, plane, pixel, live, area, FLAT: tl.constexpr):
    """The depths of pixels; depths points to an item's (planes) or (planes, h w)."""
    at = depths + plane.to(tl.int64) * area + pixel
    if FLAT:
        at = depths + plane + pixel * 0
    return tl.load(at, mask=live, other=float("nan")).to(tl.float64)


@triton.jit
def cell_of(
    depth, rays, row, pixel, live, width, area, from_height, from_width,
    KIND: tl.constexpr, PINHOLE: tl.constexpr, COUNT: tl.constexpr,
    INSIDE: tl.constexpr, BORDER_Y: tl.constexpr, BORDER_X: tl.constexpr,
):  # fmt: skip
    """Where a view shows depths.

    Which pixels it sees, which take part, rows and columns of the four taps, which of these are
    inside, and the fractions.
    """
    u, v, there, _, _, _, _, _, _, _ = point_of(
        depth, rays, row, pixel, live, width, area, KIND, PINHOLE, COUNT
    )
    sees = live & there & (u >= -WHOLE) & (u <= from_width - 1 + WHOLE)
    sees = sees & (v >= -WHOLE) & (v <= from_height - 1 + WHOLE)
    if INSIDE:
        u, v = tl.where(sees, u, 0.0), tl.where(sees, v, 0.0)
        left = tl.minimum(tl.maximum(tl.floor(u).to(tl.int32), 0), tl.maximum(from_width - 2, 0))
        top = tl.minimum(tl.maximum(tl.floor(v).to(tl.int32), 0), tl.maximum(from_height - 2, 0))
        right = tl.minimum(left + 1, from_width - 1)
        bottom = tl.minimum(top + 1, from_height - 1)
        fx, fy = (u - left).to(tl.float32), (v - top).to(tl.float32)
        return sees, sees, top, bottom, left, right, sees, sees, sees, sees, fx, fy
    near = live & there & (tl.abs(u) < LIMIT) & (tl.abs(v) < LIMIT)
    u, v = tl.where(near, u, 0.0), tl.where(near, v, 0.0)
    low_x, low_y = tl.floor(u), tl.floor(v)
    first_x = settle(low_x, from_width, 2, BORDER_X)
    first_y = settle(low_y, from_height, 2, BORDER_Y)
    left, in_left = resolve(first_x, 0, from_width, BORDER_X)
    right, in_right = resolve(first_x, 1, from_width, BORDER_X)
    top, in_top = resolve(first_y, 0, from_height, BORDER_Y)
    bottom, in_bottom = resolve(first_y, 1, from_height, BORDER_Y)
    fx, fy = (u - low_x).to(tl.float32), (v - low_y).to(tl.float32)
    in_top, in_bottom = near & in_top, near & in_bottom
    return sees, live, top, bottom, left, right, in_top, in_bottom, in_left, in_right, fx, fy


@triton.jit
def taps_at(
    source, exists, top, bottom, left, right, in_top, in_bottom, in_left, in_right, width
):  # fmt: skip
    """The four taps (channels, pixels), 0 where there is none; source points to channels."""
    above, below = source + (top * width)[None, :], source + (bottom * width)[None, :]
    left, right = left[None, :], right[None, :]
    one = tl.load(above + left, mask=exists & (in_top & in_left)[None, :], other=0.0)
    two = tl.load(above + right, mask=exists & (in_top & in_right)[None, :], other=0.0)
    three = tl.load(below + left, mask=exists & (in_bottom & in_left)[None, :], other=0.0)
    four = tl.load(below + right, mask=exists & (in_bottom & in_right)[None, :], other=0.0)
    return one, two, three, four


@triton.jit
def mean_of(one, two, three, four, fx, fy):
    """Bilinear samples of taps (channels, pixels)."""
    fx, fy = fx[None, :], fy[None, :]
    above = (1 - fy) * (1 - fx) * one + (1 - fy) * fx * two
    return above + (fy * (1 - fx) * three + fy * fx * four)


@kernel
def sweep_kernel(
    views, sources, depths, rays, rows, out, seen, count, planes, channels, groups, each,
    width, area, from_height, from_width, tiles, blocks,
    view_div, view_mod, source_div, source_mod, depth_div, depth_mod, ray_div, ray_mod,
    KIND: tl.constexpr, PINHOLE: tl.constexpr, COUNT: tl.constexpr, NUMBERS: tl.constexpr,
    FLAT: tl.constexpr, INSIDE: tl.constexpr, BORDER_Y: tl.constexpr, BORDER_X: tl.constexpr,
    MEASURE: tl.constexpr, HAS_VIEW: tl.constexpr,
    GROUPS: tl.constexpr, EACH: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    """Costs (items, groups, planes, h w), and how many of `count` views see (items, planes, h w).

    A program has GROUPS groups of `each` channels, EACH at a time.
    """
    program = tl.program_id(0)
    tile, block = program % tiles, program // tiles % blocks
    plane = program // tiles // blocks % planes
    item = program // tiles // blocks // planes
    pixel = tile * PIXELS + tl.arange(0, PIXELS)
    live, from_area = pixel < area, from_height * from_width
    depths += (item // depth_div % depth_mod).to(tl.int64) * planes * (1 if FLAT else area)
    rays += (item // ray_div % ray_mod).to(tl.int64) * (3 * area)
    depth = depth_at(depths, plane, pixel, live, area, FLAT)
    n = tl.arange(0, GROUPS * EACH)
    group = block * GROUPS + n // EACH
    cost = tl.zeros((GROUPS, PIXELS), tl.float32)
    who = tl.zeros((PIXELS,), tl.int32)
    for first in range(0, each, EACH):
        number = first + n % EACH
        exists = ((group < groups) & (number < each))[:, None]
        channel = (group * each + number).to(tl.int64)[:, None]
        own = tl.zeros((GROUPS * EACH, PIXELS), tl.float32)
        total, squares, start = own, own, own
        if HAS_VIEW:
            at = views + ((item // view_div % view_mod).to(tl.int64) * channels + channel) * area
            own = tl.load(at + pixel[None, :], mask=exists & live[None, :], other=0.0)
        used = tl.zeros((PIXELS,), tl.int32)
        who = used
        for v in range(count):
            shown = item * count + v  # of 32 bits: divisions of 64 are calls
            row = rows + shown.to(tl.int64) * NUMBERS
            sees, part, top, bottom, left, right, in_top, in_bottom, in_left, in_right, fx, fy = (
                cell_of(
                    depth, rays, row, pixel, live, width, area, from_height, from_width,
                    KIND, PINHOLE, COUNT, INSIDE, BORDER_Y, BORDER_X,
                )
            )  # fmt: skip
            entry = (shown // source_div % source_mod).to(tl.int64)
            source = sources + (entry * channels + channel) * from_area
            one, two, three, four = taps_at(
                source, exists, top, bottom, left, right, in_top, in_bottom, in_left, in_right,
                from_width,
            )  # fmt: skip
            sample = mean_of(one, two, three, four, fx, fy)
            if MEASURE == PRODUCT:
                value = own * sample
            elif MEASURE == VARIANCE:
                if HAS_VIEW:
                    value = sample - own
                else:  # about the first sample that takes part
                    start = tl.where((part & (used == 0))[None, :], sample, start)
                    value = sample - start
                squares += tl.where(part[None, :], value * value, 0.0)
            else:
                value = own - sample
                if MEASURE == ABSOLUTE:
                    value = tl.abs(value)
                if MEASURE == SQUARED:
                    value = value * value
            total += tl.where(part[None, :], value, 0.0)
            used += part.to(tl.int32)
            who += sees.to(tl.int32)
        per = 1.0 / tl.maximum(used + (1 if MEASURE == VARIANCE and HAS_VIEW else 0), 1)
        value = total * per[None, :]
        if MEASURE == VARIANCE:
            value = squares * per[None, :] - value * value
            value = tl.where(value < 0, 0.0, value)  # rounded
        value = tl.where((used > 0)[None, :] & exists, value, 0.0)
        cost += tl.sum(tl.reshape(value, (GROUPS, EACH, PIXELS)), 1)
    group = block * GROUPS + tl.arange(0, GROUPS)
    at = (
        out
        + ((item.to(tl.int64) * groups + group)[:, None] * planes + plane) * area
        + pixel[None, :]
    )
    tl.store(at, cost / each, mask=(group < groups)[:, None] & live[None, :])
    if block == 0:
        tl.store(seen + (item.to(tl.int64) * planes + plane) * area + pixel, who, mask=live)


@kernel
def sweep_backward_kernel(
    grads, views, sources, depths, rays, rows, scale, units, spoiled, to_views, to_places,
    items, count, planes, channels, groups, each,
    width, area, from_height, from_width, tiles, first_block, blocks, chunks, splits,
    view_div, view_mod, source_div, source_mod, depth_div, depth_mod, ray_div, ray_mod,
    KIND: tl.constexpr, PINHOLE: tl.constexpr, COUNT: tl.constexpr, NUMBERS: tl.constexpr,
    FLAT: tl.constexpr, INSIDE: tl.constexpr, BORDER_Y: tl.constexpr, BORDER_X: tl.constexpr,
    MEASURE: tl.constexpr, HAS_VIEW: tl.constexpr,
    NEEDS_VIEW: tl.constexpr, NEEDS_SOURCES: tl.constexpr, NEEDS_PLACES: tl.constexpr,
    GROUPS: tl.constexpr, EACH: tl.constexpr, PLANES: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    """The gradients of a program's channels, at PLANES planes, from that of costs.

    to_views (splits, items, C, h w), a sum over planes. That of sources as integers, see
    `fixed_point`. To to_places (views, items, planes, h w, 2) a launch of one block adds its own.
    """
    program = tl.program_id(0)
    tile, block = program % tiles, first_block + program // tiles % blocks
    split = program // tiles // blocks % splits
    item = program // tiles // blocks // splits
    pixel = tile * PIXELS + tl.arange(0, PIXELS)
    live, from_area = pixel < area, from_height * from_width
    depths += (item // depth_div % depth_mod).to(tl.int64) * planes * (1 if FLAT else area)
    rays += (item // ray_div % ray_mod).to(tl.int64) * (3 * area)
    n = tl.arange(0, GROUPS * EACH)
    group, number = block // chunks * GROUPS + n // EACH, block % chunks * EACH + n % EACH
    exists = ((group < groups) & (number < each))[:, None]
    channel = (group * each + number).to(tl.int64)[:, None]
    own = tl.zeros((GROUPS * EACH, PIXELS), tl.float32)
    to_own = own
    if HAS_VIEW:
        views += (item // view_div % view_mod).to(tl.int64) * channels * area
        own_at = views + channel * area + pixel[None, :]
        own = tl.load(own_at, mask=exists & live[None, :], other=0.0)
    for plane in range(split * PLANES, tl.minimum(split * PLANES + PLANES, planes)):
        depth = depth_at(depths, plane + program * 0, pixel, live, area, FLAT)
        given = grads + ((item.to(tl.int64) * groups + group)[:, None] * planes + plane) * area
        push = tl.load(given + pixel[None, :], mask=exists & live[None, :], other=0.0) / each
        total = tl.zeros((GROUPS * EACH, PIXELS), tl.float32)
        start, used = total, tl.zeros((PIXELS,), tl.int32) + count
        if INSIDE or MEASURE == VARIANCE:
            used = tl.zeros((PIXELS,), tl.int32)
            for v in range(count):
                shown = item * count + v
                row = rows + shown.to(tl.int64) * NUMBERS
                _, part, top, bottom, left, right, in_top, in_bottom, in_left, in_right, fx, fy = (
                    cell_of(
                        depth, rays, row, pixel, live, width, area, from_height, from_width,
                        KIND, PINHOLE, COUNT, INSIDE, BORDER_Y, BORDER_X,
                    )
                )  # fmt: skip
                if MEASURE == VARIANCE:
                    entry = (shown // source_div % source_mod).to(tl.int64)
                    source = sources + (entry * channels + channel) * from_area
                    one, two, three, four = taps_at(
                        source, exists, top, bottom, left, right, in_top, in_bottom, in_left,
                        in_right, from_width,
                    )  # fmt: skip
                    sample = mean_of(one, two, three, four, fx, fy)
                    start = tl.where((part & (used == 0))[None, :], sample, start)
                    value = sample - (own if HAS_VIEW else start)
                    total += tl.where(part[None, :], value, 0.0)
                used += part.to(tl.int32)
        extra = 1 if MEASURE == VARIANCE and HAS_VIEW else 0  # the view is one more
        per = (1.0 / tl.maximum(used + extra, 1))[None, :]
        push = push * per
        mean = total * per
        for v in range(count):
            shown = item * count + v
            row = rows + shown.to(tl.int64) * NUMBERS
            _, part, top, bottom, left, right, in_top, in_bottom, in_left, in_right, fx, fy = (
                cell_of(
                    depth, rays, row, pixel, live, width, area, from_height, from_width,
                    KIND, PINHOLE, COUNT, INSIDE, BORDER_Y, BORDER_X,
                )
            )  # fmt: skip
            entry = (shown // source_div % source_mod).to(tl.int64)
            one, two, three, four = taps_at(
                sources + (entry * channels + channel) * from_area, exists, top, bottom, left,
                right, in_top, in_bottom, in_left, in_right, from_width,
            )  # fmt: skip
            sample = mean_of(one, two, three, four, fx, fy)
            if MEASURE == PRODUCT:
                slope, back = push * own, push * sample
            else:
                if MEASURE == DIFFERENCE:
                    slope = -push
                elif MEASURE == ABSOLUTE:
                    value = sample - own
                    slope = push * tl.where(value > 0, 1.0, tl.where(value < 0, -1.0, value * 0))
                elif MEASURE == SQUARED:
                    slope = 2 * push * (sample - own)
                else:
                    slope = 2 * push * ((sample - (own if HAS_VIEW else start)) - mean)
                back = -slope
            some = exists & part[None, :]
            slope = tl.where(some, slope, 0.0)
            if NEEDS_VIEW:
                to_own += tl.where(some, back, 0.0)
            if NEEDS_PLACES:
                a, b = tl.sum(slope * one, 0), tl.sum(slope * two, 0)
                c, d = tl.sum(slope * three, 0), tl.sum(slope * four, 0)
                to = (v + item * 0).to(tl.int64) * items + item
                at = to_places + ((to * planes + plane) * area + pixel) * 2
                along_x = tl.load(at, mask=live, other=0.0) + (1 - fy) * (b - a) + fy * (d - c)
                along_y = tl.load(at + 1, mask=live, other=0.0) + (1 - fx) * (c - a) + fx * (d - b)
                tl.store(at, along_x, mask=live)
                tl.store(at + 1, along_y, mask=live)
            if NEEDS_SOURCES:
                per_unit = tl.load(scale + entry * channels + channel, mask=exists, other=0.0)
                whole = slope.to(tl.float64) * per_unit
                finite = finite_of(whole)
                for k in tl.static_range(4):
                    at_y, in_y, weight = top, in_top, 1 - fy
                    if k >= 2:
                        at_y, in_y, weight = bottom, in_bottom, fy
                    at_x, in_x, along = left, in_left, 1 - fx
                    if k % 2 == 1:
                        at_x, in_x, along = right, in_right, fx
                    to = (entry * channels + channel) * from_area
                    to += (at_y * from_width + at_x)[None, :]
                    term = whole * (weight * along).to(tl.float64)[None, :]
                    add_units(units, spoiled, to, term, finite, some & (in_y & in_x)[None, :])
    if NEEDS_VIEW:
        to = (
            to_views
            + ((split * items + item).to(tl.int64) * channels + channel) * area
            + pixel[None, :]
        )
        tl.store(to, to_own, mask=exists & live[None, :])
