"""The forward kernel of nearest: for every tile, locate, then move each pixel's bits.

No sum and no window, and one kernel for every type of as many bytes: nothing is rounded on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from llvmlite import ir

from warpkit.engine.backends.cpu.runtime.compiler import DIGEST, Written, kernel
from warpkit.engine.backends.cpu.runtime.scratch import PIXELS, TILE
from warpkit.engine.backends.cpu.runtime.vector_code import Code, Parameters, written
from warpkit.engine.backends.cpu.runtime.vector_values import (
    BIT,
    DOUBLE,
    FLOAT,
    INDEX,
    INT,
    REGISTER,
    Memory,
    Value,
    Variable,
    vector,
)
from warpkit.engine.backends.cpu.warps.pair_steps import each_point, rounded
from warpkit.engine.backends.cpu.warps.pair_tile import SOME, fetch_next, misses, resolve_all

NAMES = (
    "image", "image_size", "mapping", "mapping_numbers", "fill", "fill_numbers", "out", "out_size",
    "image_of", "mapping_of", "memory", "items", "channels", "height", "width",
    "out_height", "out_width", "border", "mapping_size", "fill_item", "fill_channel", "fill_row",
    "fill_column", "dense", "channels_last", "streamed", "relative",
)  # fmt: skip
"""What the parameters are, see `pairs.NAMES`."""

MEMORY = PIXELS * (8 + 4)
"""Bytes that a thread needs."""

PLACES = 16
"""Numbers of a vector, unless a register holds fewer."""


@written
def move_pixels(code: Code, variant: int, numbers: Memory, begin: Value, end: Value) -> None:
    """See `nearest_kernel`."""
    kind, size = variant & 3, 1 << (variant >> 2 & 3)
    element, point = ir.IntType(8 * size), (DOUBLE if variant & 16 else FLOAT)
    p = Parameters(code, numbers, NAMES)
    p.read_all()
    image = code.memory(p.image, element, p.image_size)
    mapping = code.memory(p.mapping, point, p.mapping_numbers)
    fill = code.memory(p.fill, element, p.fill_numbers)
    out = code.memory(p.out, element, p.out_size)
    image_of = code.memory(p.image_of, INDEX, p.items)
    mapping_of = code.memory(p.mapping_of, INDEX, p.items)
    places = code.memory(p.memory, INDEX, PIXELS)
    missing = code.memory(p.memory + 8 * PIXELS, INT, PIXELS)
    whole = code.variable(Value(code, BIT(0)))
    zero = code.constant(INDEX, 0)
    box, last = [[code.variable(zero) for _ in range(count)] for count in (4, 2)]
    step = min(PLACES, REGISTER // size)
    tile_rows = (p.out_height + (TILE - 1)) // TILE
    planar = (p.channels_last == 0) & (p.dense == 0)
    with code.loop(begin, end) as unit:
        item = unit // tile_rows
        y0 = (unit - item * tile_rows) * TILE
        mapping_start = mapping_of.load(item) * p.mapping_size
        source = image_of.load(item) * p.channels * p.height * p.width
        rows = code.smaller(p.out_height - y0, TILE)
        with code.loop(0, p.out_width, TILE) as x0:
            shape = code.smaller(p.out_width - x0, TILE), rows
            find_places(
                code,
                kind,
                mapping,
                mapping_start,
                p,
                (x0, y0),
                shape,
                step,
                places,
                missing,
                whole,
                box,
            )
            ahead = [(image, source, planar)]
            fetch_next(code, [v.get() for v in box], (last[0], last[1]), ahead, p)
            arrays = (image, fill, out, places, missing)
            with code.either(planar) as (by_rows, by_pixels):
                with by_rows:
                    move_rows(code, arrays, p, (item, source), (x0, y0), shape, whole.get(), step)
                with by_pixels:
                    move_each(code, arrays, p, (item, source), (x0, y0), shape)
    code.finish_streams()


def find_places(
    code: Code, kind: int, mapping: Memory, mapping_start: Value, p: Parameters, corner: Any,
    shape: Any, step: int, places: Memory, missing: Memory, whole: Variable,
    box: Sequence[Variable],
) -> None:  # fmt: skip
    """Fill `places` with the pixel of the image that each pixel of a tile shows.

    missing: -1 where it shows none, or 0; whole: it shows one everywhere; box: left, top, columns
    and rows of where it looks.
    """
    whole.set(Value(code, BIT(1)))
    every = code.constant(vector(BIT, SOME), 1)
    inside_so_far = code.variable(every)
    sides = p.width, p.height
    some = vector(INDEX, SOME)
    low = [code.variable(code.constant(some, 2**31)) for _ in range(2)]
    high = [code.variable(code.constant(some, -(2**31))) for _ in range(2)]

    def visit(q: Value, point: tuple[Value, Value], near: Value) -> None:
        index = []
        for value in point:
            whole_number = rounded(code, code.select(near, value, 0.0))
            index.append(code.to(INDEX, code.to(INT, whole_number)))
        inside = near
        for at, lowest, highest in zip(index, low, high, strict=True):
            lowest.set(code.smaller(lowest.get(), at))
            highest.set(code.larger(highest.get(), at))
        for at, length in zip(index, sides, strict=True):
            inside = inside & (at >= 0) & (at < length)
        found = code.variable(code.select(inside, index[1] * p.width + index[0], -1))
        with code.when(~code.every(inside)):
            with code.when(~misses(p)):
                x, y = (resolve_all(code, at, n, p) for at, n in zip(index, sides, strict=True))
                found.set(code.select(near, y * p.width + x, -1))
            inside_so_far.set(inside_so_far.get() & (found.get() >= 0))
        there = found.get() >= 0
        places.store(q, code.select(there, found.get(), 0))
        missing.store(q, code.to(INT, there) - 1)

    each_point(code, kind, mapping, mapping_start, p, corner, shape, step, visit)
    whole.set(code.every(inside_so_far.get()))
    for n in range(2):
        first, end = code.fold(low[n].get(), code.smaller), code.fold(high[n].get(), code.larger)
        box[n].set(first)
        box[n + 2].set(end - first + 1)


def move_rows(
    code: Code, arrays: Any, p: Parameters, place: Any, corner: Any, shape: Any, whole: Value,
    step: int,
) -> None:  # fmt: skip
    """Planes, and one value of the border for each channel: a vector of a row at a time."""
    (image, fill, out, places, missing), (item, source), (x0, y0) = arrays, place, corner
    columns, rows = shape
    with code.loop(0, p.channels) as k:
        plane = image.since(source + k * p.height * p.width)
        value = fill.load(item * p.fill_item + k * p.fill_channel)
        dst = ((item * p.channels + k) * p.out_height + y0) * p.out_width + x0
        with code.loop(0, rows) as r, code.loop(0, columns, step) as c:
            q = r * TILE + c
            numbers = [plane.load(places.load(q + n)) for n in range(step)]
            found = code.variable(code.collect(numbers))
            with code.when(~whole):
                found.set(
                    code.select(
                        missing.load(q, step) != 0,
                        code.constant(found.get().raw.type, value),
                        found.get(),
                    )
                )
            code.write_row(out, dst + r * p.out_width + c, found.get(), columns - c,
                      p.streamed != 0)  # fmt: skip


def move_each(code: Code, arrays: Any, p: Parameters, place: Any, corner: Any, shape: Any) -> None:
    """Pixels with their channels side by side, or a background: a number at a time."""
    (image, fill, out, places, missing), (item, source), (x0, y0) = arrays, place, corner
    last = p.channels_last != 0
    area, out_area = p.height * p.width, p.out_height * p.out_width
    plane, pixel = code.select(last, 1, area), code.select(last, p.channels, 1)
    out_plane, out_pixel = code.select(last, 1, out_area), code.select(last, p.channels, 1)
    with code.loop(0, shape[1]) as r, code.loop(0, shape[0]) as c:
        q = r * TILE + c
        at = places.load(q)
        x, y = x0 + c, y0 + r
        to = item * p.channels * out_area + (y * p.out_width + x) * out_pixel
        with code.either(missing.load(q) == 0) as (there, nothing):
            with there, code.loop(0, p.channels) as k:
                out.store(to + k * out_plane, image.load(source + at * pixel + k * plane))
            with nothing, code.loop(0, p.channels) as k:
                from_ = item * p.fill_item + k * p.fill_channel
                from_ = from_ + y * p.fill_row + x * p.fill_column
                out.store(to + k * out_plane, fill.load(from_))


@cache
def nearest_kernel(kind: int, item_size: int, double_points: bool) -> Any:
    """The kernel for a kind of map and images of so many bytes a number.

    double_points: the map is in float64. Layout, border and background are among the parameters.
    """
    digest = DIGEST
    variant = kind + 4 * (item_size.bit_length() - 1) + 16 * double_points

    def move(parameters, begin, end):
        """Tile rows begin .. end, exclusive, numbered across all items; see `NAMES`."""
        _ = digest
        move_pixels(variant, parameters, begin, end)

    return kernel(move, Written)
