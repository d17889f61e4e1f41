"""The steps of the kernels that read pairs: where a tile looks, and what is missing of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add, and_, or_
from typing import Any

from warpkit.engine.backends.cpu.runtime.scratch import TILE
from warpkit.engine.backends.cpu.runtime.vector_code import Code, Parameters
from warpkit.engine.backends.cpu.runtime.vector_values import (
    BIT,
    DOUBLE,
    INDEX,
    INT,
    Memory,
    Value,
    Variable,
    vector,
)
from warpkit.engine.backends.cpu.warps.pair_tile import (
    NOWHERE,
    ROOM,
    SOME,
    Tile,
    fill_table,
    misses,
)
from warpkit.engine.backends.cpu.warps.positions import (
    AFFINE,
    ALL_TAPS_INSIDE,
    NO_TAP_INSIDE,
    POINTS,
    REPLICATE,
    ROUND,
)
from warpkit.engine.backends.cpu.warps.weights import (
    cubic_far,
    cubic_far_slope,
    cubic_near,
    cubic_near_slope,
)
from warpkit.engine.sampling.rules import LIMIT


def points_of(
    code: Code,
    kind: int,
    mapping: Memory,
    m: list[Value],
    tables: list[list[Value]],
    n: int,
    y: Value,
) -> tuple[Value, Value]:
    """The source points of SOME pixels of row y, in the order of operations of `map_point`."""
    rows = [tables[k][n] + y * m[3 * k + 1] + m[3 * k + 2] for k in range(len(tables))]
    if kind == AFFINE:
        return rows[0], rows[1]
    u, v, w = rows
    limit = code.magnitude(w) * float(LIMIT)
    good = (code.magnitude(u) < limit) & (code.magnitude(v) < limit)
    good = good & (code.magnitude(w) < float("inf"))
    w = code.select(good, w, float("nan"))
    return u / w, v / w


def given_points(
    code: Code, mapping: Memory, at: Value, left: Value, pixel: Sequence[Value]
) -> tuple[Value, Value]:
    """SOME points from memory, of which `left` are there; the first stands for the others.

    pixel: x and y of the first, which are added, all 0 where points are no offsets.
    """
    both = mapping.load_first(at, 2 * SOME, code.smaller(left, SOME) * 2)
    there = Value(code, code.first(left, SOME))
    found = []
    for k in range(2):
        values = code.to(DOUBLE, code.shuffle(both, both, range(k, 2 * SOME, 2))) + pixel[k]
        first = code.shuffle(values, values, [0] * SOME)
        found.append(code.select(there, values, first))
    return found[0], found[1]


def each_point(
    code: Code, kind: int, mapping: Memory, mapping_start: Value, p: Parameters, corner: Any,
    shape: Any, step: int, visit: Callable[[Value, tuple[Value, Value], Value], None],
) -> list[Value]:  # fmt: skip
    """Call visit(q, (x, y), near) for SOME pixels of a tile at a time; the matrix, if there is one.

    q: the first pixel; x, y: where they look; near: where that is a number below LIMIT. Pixels
    beyond the end of a row, up to a multiple of `step`, repeat one of it.
    """
    (x0, y0), (columns, rows) = corner, shape
    m, tables = [], []
    relative = code.to(DOUBLE, p.relative)
    if kind != POINTS:
        m = [mapping.load(mapping_start + k) for k in range(3 * kind)]
        for k in range(kind):
            tables.append([])
            for n in range(0, TILE, SOME):
                x = code.smaller(code.count_up(INDEX, SOME) + n, columns - 1) + x0
                tables[k].append(code.to(DOUBLE, x) * m[3 * k])
    with code.loop(0, rows) as r:
        y = code.to(DOUBLE, y0 + r)
        for n in range(0, TILE, SOME):
            with code.when(columns > n // step * step):
                if kind == POINTS:
                    c = code.smaller(columns - 1, n)
                    at = mapping_start + ((y0 + r) * p.out_width + x0 + c) * 2
                    x = code.to(DOUBLE, code.count_up(INDEX, SOME) + (x0 + c)) * relative
                    u, v = given_points(code, mapping, at, columns - c, (x, y * relative))
                else:
                    u, v = points_of(code, kind, mapping, m, tables, n // SOME, y)
                near = (code.magnitude(u) < float(LIMIT)) & (code.magnitude(v) < float(LIMIT))
                visit(r * TILE + n, (u, v), near)
    return m


def map_tile(
    tile: Tile,
    kind: int,
    mapping: Memory,
    mapping_start: Value,
    p: Parameters,
    corner: Any,
    shape: Any,
) -> list[Value]:
    """Fill columns, rows and weights, and the box of all taps; the matrix, if there is one."""
    code = tile.code
    whole = vector(INT, SOME)
    low_x, low_y = (code.variable(code.constant(whole, 2**31 - 1)) for _ in range(2))
    high_x, high_y = (code.variable(code.constant(whole, -(2**31))) for _ in range(2))

    def visit(q: Value, point: tuple[Value, Value], near: Value) -> None:
        along = tile.column, tile.wx, tile.dx, low_x, high_x
        across = tile.row, tile.wy, tile.dy, low_y, high_y
        for value, (numbers, weights, slopes, low, high) in zip(
            point, (along, across), strict=True
        ):
            value = code.select(near, value, 0.0)
            below = rounded(code, value) if tile.taps == 1 else code.floor(value)
            t = value - below
            index = code.to(INT, below)
            if numbers is tile.column:
                index = code.select(near, index, NOWHERE)
            low.set(code.smaller(low.get(), index))
            high.set(code.larger(high.get(), index))
            numbers.store(q, index)
            for memory, weight in zip(weights, axis_weights(t, tile.taps), strict=True):
                memory.store(q, code.to(tile.real, weight))
            if slopes:
                with code.when(p.needs_grad_mapping != 0):
                    for memory, slope in zip(slopes, cubic_slopes(t), strict=True):
                        memory.store(q, code.to(tile.real, slope))

    m = each_point(code, kind, mapping, mapping_start, p, corner, shape, tile.step, visit)
    set_box(tile, low_x, high_x, low_y, high_y)
    return m


def rounded(code: Code, value: Value) -> Value:
    """Numbers below LIMIT as nearest rounds them: half to even, and below LIMIT still."""
    whole = (value + ROUND) - ROUND
    highest = code.constant(whole.raw.type, LIMIT - 1)
    return code.select(whole < highest, whole, highest)


def axis_weights(t: Value, taps: int) -> list[Value]:
    """The weights of the taps around points with fractions t, as `rules.axis_weights`."""
    if taps == 1:
        return [t.code.constant(t.raw.type, 1.0)]
    if taps == 2:
        return [1.0 - t, t]
    return [
        cubic_far.py_func(1.0 + t),
        cubic_near.py_func(t),
        cubic_near.py_func(1.0 - t),
        cubic_far.py_func(2.0 - t),
    ]


def cubic_slopes(t: Value) -> list[Value]:
    """The derivatives of four weights."""
    return [
        cubic_far_slope.py_func(1.0 + t),
        cubic_near_slope.py_func(t),
        0.0 - cubic_near_slope.py_func(1.0 - t),
        0.0 - cubic_far_slope.py_func(2.0 - t),
    ]


def set_box(
    tile: Tile, low_x: Variable, high_x: Variable, low_y: Variable, high_y: Variable
) -> None:
    """The box of all taps, from the bounds of their first ones."""
    code = tile.code
    west, north = (code.to(INDEX, code.fold(v.get(), code.smaller)) for v in (low_x, low_y))
    east, south = (code.to(INDEX, code.fold(v.get(), code.larger)) for v in (high_x, high_y))
    tile.left.set(west - tile.before)
    tile.top.set(north - tile.before)
    tile.columns.set(east - west + tile.taps)
    tile.rows.set(south - north + tile.taps)


def place(tile: Tile, p: Parameters, shape: Any) -> Value:
    """Fill `offset`; whether all taps of the tile lie in the image."""
    code = tile.code
    columns, rows = shape
    full = (columns + (tile.step - 1)) // tile.step * tile.step
    whole = (tile.left.get() >= 0) & (tile.left.get() + tile.columns.get() <= p.width)
    whole = whole & (tile.top.get() >= 0) & (tile.top.get() + tile.rows.get() <= p.height)
    tile.empty.set(Value(code, BIT(0)))
    with code.when(~whole):
        cover(tile, p, shape)
    # each alone too: from -2^31 to 2^31 both ways the product is beyond 64 bits
    sides = tile.columns.get(), tile.rows.get()
    small = (sides[0] <= ROOM) & (sides[1] <= ROOM) & (sides[0] * sides[1] <= ROOM)
    boxed = whole | small
    tile.whole.set(whole)
    tile.boxed.set(boxed)
    tile.stride.set(code.select(whole, p.width, code.select(small, tile.columns.get(), tile.taps)))
    with code.either(boxed) as (one, each):
        with one:
            with code.when(~whole & ~misses(p)):
                fill_table(tile, p)
            with code.loop(0, rows) as r, code.loop(0, full, SOME) as c:
                q = r * TILE + c
                i, j = tile.column.load(q, SOME), tile.row.load(q, SOME)
                left, top, stride = (
                    code.to(INT, v.get()) for v in (tile.left, tile.top, tile.stride)
                )
                first = tile.before
                here = (j - (top + first)) * stride + (i - (left + first))
                tile.offset.store(q, code.select(i == NOWHERE, 0, here))
        with each, code.loop(0, rows) as r, code.loop(0, full, SOME) as c:
            q = r * TILE + c
            tile.offset.store(q, (code.count_up(INT, SOME) + code.to(INT, q)) * tile.taps**2)
    return whole


def cover(tile: Tile, p: Parameters, shape: Any) -> None:
    """Fill `missing`, mark pixels without a tap as NOWHERE, and set the box of the others."""
    code, taps = tile.code, tile.taps
    columns, rows = shape
    full = (columns + (tile.step - 1)) // tile.step * tile.step
    whole = vector(INT, SOME)
    low_x, low_y = (code.variable(code.constant(whole, 2**31 - 1)) for _ in range(2))
    high_x, high_y = (code.variable(code.constant(whole, -(2**31))) for _ in range(2))
    missing = misses(p)
    bits = code.constant(vector(BIT, SOME), missing)
    width, height = code.to(INT, p.width), code.to(INT, p.height)
    with code.loop(0, rows) as r, code.loop(0, full, SOME) as c:
        q = r * TILE + c
        i, j = tile.column.load(q, SOME), tile.row.load(q, SOME)
        near = i != NOWHERE
        replicated = p.border == REPLICATE  # farther out the same pixels are read
        i = code.select(replicated, code.smaller(code.larger(i, -taps), width + taps), i)
        j = code.select(replicated, code.smaller(code.larger(j, -taps), height + taps), j)
        sums = []
        all_in, some_in = code.constant(vector(BIT, SOME), 1), code.constant(vector(BIT, SOME), 1)
        for index, length, weights in ((i, width, tile.wx), (j, height, tile.wy)):
            at = [index + (k - tile.before) if k != tile.before else index for k in range(taps)]
            inside = [(here >= 0) & (here < length) for here in at]
            shares = [
                code.select(there, weight.load(q, SOME), 0.0)
                for there, weight in zip(inside, weights, strict=True)
            ]
            sums.append(reduce(add, shares))
            all_in, some_in = all_in & reduce(and_, inside), some_in & reduce(or_, inside)
        near = near & (some_in | ~bits)
        state = code.select(all_in | ~bits, ALL_TAPS_INSIDE, 1.0 - sums[0] * sums[1])
        tile.missing.store(q, code.select(near, state, NO_TAP_INSIDE))
        tile.column.store(q, code.select(near, i, NOWHERE))
        tile.row.store(q, j)
        low_x.set(code.select(near, code.smaller(low_x.get(), i), low_x.get()))
        high_x.set(code.select(near, code.larger(high_x.get(), i), high_x.get()))
        low_y.set(code.select(near, code.smaller(low_y.get(), j), low_y.get()))
        high_y.set(code.select(near, code.larger(high_y.get(), j), high_y.get()))
    set_box(tile, low_x, high_x, low_y, high_y)
    tile.empty.set(tile.columns.get() <= 0)
    with code.when(tile.empty.get()):  # no tap at all: a box of one pixel's, for what is read
        for v, n in ((tile.left, 0), (tile.top, 0), (tile.columns, taps), (tile.rows, taps)):
            v.set(code.constant(INDEX, n))


def weigh_missing(tile: Tile, q: Value, found: Value, fill: Value) -> Value:
    """The values from pixel `q` on with what the missing taps show."""
    code = tile.code
    state = tile.missing.load(q, tile.step)
    fills = code.constant(found.raw.type, fill)
    mixed = code.select(state == NO_TAP_INSIDE, fills, code.fma(state, fills, found))
    return code.select(state == ALL_TAPS_INSIDE, found, mixed)
