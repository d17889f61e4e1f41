"""The steps back: what a tile adds to the gradients of image, map and fill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from warpkit.engine.backends.cpu.runtime.scratch import PIXELS, TILE
from warpkit.engine.backends.cpu.runtime.simd import CHANNELS_PER_VECTOR
from warpkit.engine.backends.cpu.runtime.vector_code import Code, Parameters
from warpkit.engine.backends.cpu.runtime.vector_values import (
    DOUBLE,
    INDEX,
    INT,
    REGISTER,
    Memory,
    Value,
    Variable,
    size_of,
    vector,
)
from warpkit.engine.backends.cpu.warps.pair_tile import (
    NOWHERE,
    ROOM,
    SOME,
    Tile,
    inner_columns,
    misses,
    resolve,
)
from warpkit.engine.backends.cpu.warps.pair_windows import source_row, weighted
from warpkit.engine.backends.cpu.warps.positions import (
    AFFINE,
    ALL_TAPS_INSIDE,
    NO_TAP_INSIDE,
)

FOUR = CHANNELS_PER_VECTOR


def gradient_bytes(item_size: int) -> int:
    """What a thread needs besides the bytes of `pair_tile.memory_bytes`."""
    return PIXELS * (4 + (FOUR + 2) * item_size) + (FOUR * ROOM + 2 * REGISTER) * item_size


@dataclass
class Gradients:
    """A tile's incoming gradient and what it becomes."""

    tile: Tile
    offset: Memory
    """Where a pixel's first tap lies in the window."""
    pushed: Memory
    """The incoming gradient, four channels side by side."""
    slope_x: Memory
    slope_y: Memory
    """The incoming gradient times the value's derivatives, added up over channels."""
    window: Memory
    """The image's gradient, four channels side by side."""

    @classmethod
    def made(cls, tile: Tile, at: Value) -> Gradients:
        """In the memory at an address."""
        parts, real = [], tile.real
        for element, count in (
            (INT, PIXELS), (real, FOUR * PIXELS), (real, PIXELS), (real, PIXELS),
            (real, FOUR * ROOM + 2 * REGISTER),
        ):  # fmt: skip
            parts.append(tile.code.memory(at, element, count))
            at = at + count * size_of(element)
        return cls(tile, *parts)


def splat(code: Code, value: Value) -> Value:
    """One number four times."""
    return code.constant(vector(value.raw.type, FOUR), value)


def add_image(
    back: Gradients, grad: Memory, at: Value, to: Memory, dst: Value, p: Parameters, shape: Any,
    lanes: Value, whole: Value,
) -> None:  # fmt: skip
    """Add up to four channels of a tile, from `at` on in `grad`, to the planes from `dst` on."""
    tile, code = back.tile, back.tile.code
    columns, rows = tile.columns.get(), tile.rows.get()
    boxed = (columns <= ROOM) & (rows <= ROOM) & (columns * rows <= ROOM)
    collect(back, grad, at, p, shape, lanes, whole)
    zeros = code.constant(vector(tile.real, tile.step), 0.0)
    taps, first = tile.taps, tile.before
    entries = code.select(boxed, columns * rows, code.constant(INDEX, taps**2 * PIXELS)) * FOUR
    with code.loop(0, entries, tile.step) as e:
        back.window.store(e, zeros)
    stride = code.select(boxed, columns, taps) * FOUR
    left, top = (code.to(INT, v.get() + first) for v in (tile.left, tile.top))
    with code.loop(0, shape[1]) as r, code.loop(0, shape[0], SOME) as c:
        q = r * TILE + c
        i, j = tile.column.load(q, SOME), tile.row.load(q, SOME)
        here = ((j - top) * code.to(INT, columns) + (i - left)) * FOUR
        each = (code.count_up(INT, SOME) + code.to(INT, q)) * (taps**2 * FOUR)
        here = code.select(code.constant(vector(boxed.raw.type, SOME), boxed), here, each)
        back.offset.store(q, code.select(i == NOWHERE, 0, here))
    with code.loop(0, shape[1]) as r, code.loop(0, shape[0]) as c:
        q = r * TILE + c
        place = code.to(INDEX, back.offset.load(q))
        push = back.pushed.load(q * FOUR, FOUR)
        if taps == 1:
            back.window.store(place, back.window.load(place, FOUR) + push)
        else:
            add_taps(back, q, place, stride, push)
    with code.either(boxed) as (one, single):
        with one:
            flush_box(back, to, dst, p, lanes)
        with single:
            flush_taps(back, to, dst, p, shape, lanes)


def add_taps(back: Gradients, q: Value, place: Value, stride: Value, push: Value) -> None:
    """Add a pixel's four channels to its taps in the window, the first of which is at `place`."""
    tile, code = back.tile, back.tile.code
    # before the stores, which might have changed them for all that LLVM knows
    across, down = ([splat(code, w.load(q)) for w in axis] for axis in (tile.wx, tile.wy))
    for n, wy in enumerate(down):
        share = wy * push
        for k, wx in enumerate(across):
            tap = place + stride * n + k * FOUR
            back.window.store(tap, code.fma(wx, share, back.window.load(tap, FOUR)))


def collect(
    back: Gradients, grad: Memory, at: Value, p: Parameters, shape: Any, lanes: Value, whole: Value
) -> None:
    """Fill `pushed`; 0 for absent channels, and for pixels that are sampled nowhere."""
    tile, code, step = back.tile, back.tile.code, back.tile.step
    out_area = p.out_height * p.out_width
    with code.loop(0, shape[1]) as r, code.loop(0, shape[0], step) as c:
        q, parts = r * TILE + c, []
        for k in range(FOUR):
            plane = code.smaller(lanes - 1, k) * out_area
            value = row_part(code, grad, at + plane + r * p.out_width + c, step, shape[0] - c)
            there = code.constant(vector(whole.raw.type, step), lanes > k)
            parts.append(code.variable(code.select(there, value, 0.0)))
        with code.when(~whole):
            some = tile.missing.load(q, step) != NO_TAP_INSIDE
            for part in parts:
                part.set(code.select(some, part.get(), 0.0))
        values = [part.get() for part in parts]
        both = [code.shuffle(a, b, mixed(step, 1)) for a, b in (values[:2], values[2:])]
        together = code.shuffle(both[0], both[1], mixed(2 * step, 2))
        for n in range(FOUR):
            piece = code.shuffle(together, together, range(n * step, (n + 1) * step))
            back.pushed.store(q * FOUR + n * step, piece)


def mixed(count: int, together: int) -> list[int]:
    """The order that takes so many of one vector, then as many of another, of `count` each."""
    pieces = range(0, count, together)
    return [v + n + k for n in pieces for v in (0, count) for k in range(together)]


def row_part(code: Code, memory: Memory, at: Value, step: int, left: Value) -> Value:
    """A vector of a row of which `left` numbers are left; 0 beyond."""
    found = code.variable(code.constant(vector(memory.element, step), 0.0))
    with code.either(left >= step) as (full, part):
        with full:
            found.set(memory.load(at, step))
        with part:
            found.set(memory.load_first(at, step, left))
    return found.get()


def flush_box(back: Gradients, to: Memory, dst: Value, p: Parameters, lanes: Value) -> None:
    """Add the window to the image's gradient."""
    tile, code, step = back.tile, back.tile.code, back.tile.step
    columns, area = tile.columns.get(), p.height * p.width
    first, last = inner_columns(tile, p)
    with code.loop(0, tile.rows.get()) as r:
        y = resolve(code, tile.top.get() + r, p.height, p)
        with code.when(y >= 0):
            row = dst + y * p.width
            with code.loop(first, last, step) as c:
                from_ = (r * columns + c) * FOUR
                parts = [back.window.load(from_ + n * step, step) for n in range(FOUR)]
                together = code.join(parts)
                for k in range(FOUR):
                    value = code.shuffle(together, together, range(k, FOUR * step, FOUR))
                    with code.when(lanes > k):
                        add_row(code, to, row + area * k + tile.left.get() + c, value, last - c)
            with code.when(~misses(p)):
                for begin, end in ((0, first), (last, columns)):
                    with code.loop(begin, end) as c, code.loop(0, lanes) as k:
                        at = row + area * k + tile.table.load(c)
                        value = back.window.load((r * columns + c) * FOUR + k)
                        to.store(at, to.load(at) + value)


def add_row(code: Code, to: Memory, at: Value, value: Value, left: Value) -> None:
    """Add a vector's first `left` numbers to a row."""
    step = value.raw.type.count
    with code.either(left >= step) as (full, part):
        with full:
            to.store(at, to.load(at, step) + value)
        with part:
            to.store_first(at, to.load_first(at, step, left) + value, left)


def flush_taps(
    back: Gradients, to: Memory, dst: Value, p: Parameters, shape: Any, lanes: Value
) -> None:
    """The same where the window is one box a pixel."""
    tile, code, taps, before = back.tile, back.tile.code, back.tile.taps, back.tile.before
    with code.loop(0, shape[1]) as r, code.loop(0, shape[0]) as c:
        q = r * TILE + c
        with code.when(tile.column.load(q) != NOWHERE):
            i, j = code.to(INDEX, tile.column.load(q)), code.to(INDEX, tile.row.load(q))
            for n in range(taps**2):
                x = resolve(code, i + (n % taps - before), p.width, p)
                y = resolve(code, j + (n // taps - before), p.height, p)
                with code.when((x >= 0) & (y >= 0)), code.loop(0, lanes) as k:
                    at = dst + k * p.height * p.width + y * p.width + x
                    value = back.window.load((q * taps**2 + n) * FOUR + k)
                    to.store(at, to.load(at) + value)


def add_slopes(
    back: Gradients, pixels: Memory, at: Value, line: Value, grad: Memory, src: Value,
    p: Parameters, shape: Any, whole: Value, first: Value,
) -> None:  # fmt: skip
    """Add a channel's gradient, from `src` on, times its derivatives by x and y to the slopes.

    along = sum_j wy[j] sum_i dx[i] v[j, i] and across = sum_j dy[j] sum_i wx[i] v[j, i], where a
    missing tap's value v is the fill.
    """
    tile, code, step = back.tile, back.tile.code, back.tile.step
    with code.loop(0, shape[1]) as r, code.loop(0, shape[0], step) as c:
        q = r * TILE + c
        push = row_part(code, grad, src + r * p.out_width + c, step, shape[0] - c)
        lines = [source_row(tile, pixels, at, line, q, n) for n in range(tile.taps)]
        along, across = slopes_of(tile, q, lines)
        there = Value(code, code.first(shape[0] - c, step))
        some = code.variable(there)
        with code.when(~whole):
            some.set(there & (tile.missing.load(q, step) != NO_TAP_INSIDE))
        for memory, slope in ((back.slope_x, along), (back.slope_y, across)):
            before = code.variable(code.constant(slope.raw.type, 0.0))
            with code.when(~first):
                before.set(memory.load(q, step))
            found = code.fma(push, slope, before.get())
            memory.store(q, code.select(some.get(), found, 0.0))


def slopes_of(tile: Tile, q: Value, lines: list[list[Value]]) -> tuple[Value, Value]:
    """The derivatives by x and y of a vector of values from `q` on, from the rows of their taps."""
    code, step = tile.code, tile.step
    wx, wy, dx, dy = ([m.load(q, step) for m in of] for of in (tile.wx, tile.wy, tile.dx, tile.dy))
    if tile.taps == 2:
        (a, b), (d, e) = lines
        along = code.fma(wy[1], e - d, wy[0] * (b - a))
        return along, code.fma(wx[1], e - b, wx[0] * (d - a))
    along = weighted(code, wy, (weighted(code, dx, line) for line in lines))
    return along, weighted(code, dy, (weighted(code, wx, line) for line in lines))


def add_fill(
    back: Gradients, grad: Memory, src: Value, p: Parameters, shape: Any, to: Memory, at: Value
) -> None:
    """Add what a channel's missing taps give the fill."""
    tile, code, step = back.tile, back.tile.code, back.tile.step
    total = code.variable(code.constant(vector(DOUBLE, step), 0.0))
    with code.loop(0, shape[1]) as r, code.loop(0, shape[0], step) as c:
        push = row_part(code, grad, src + r * p.out_width + c, step, shape[0] - c)
        share = tile.missing.load(r * TILE + c, step)
        share = code.select(share == ALL_TAPS_INSIDE, 0.0, share)
        share = code.select(share == NO_TAP_INSIDE, 1.0, share)
        there = (share != 0.0) & Value(code, code.first(shape[0] - c, step))
        total.set(total.get() + code.to(DOUBLE, code.select(there, share * push, 0.0)))
    to.store(at, to.load(at) + code.fold(total.get(), Value.__add__))


def write_points(
    back: Gradients, to: Memory, at: Value, p: Parameters, corner: Any, shape: Any
) -> None:
    """Write the slopes to the points' gradient."""
    code = back.tile.code
    (x0, y0), (columns, rows) = corner, shape
    with code.loop(0, rows) as r, code.loop(0, columns, SOME) as c:
        slopes = (s.load(r * TILE + c, SOME) for s in (back.slope_x, back.slope_y))
        gx, gy = (code.to(to.element, slope) for slope in slopes)
        place = at + ((y0 + r) * p.out_width + x0 + c) * 2
        to.store_first(place, code.shuffle(gx, gy, mixed(SOME, 1)), (columns - c) * 2)


def add_mapping(
    back: Gradients, kind: int, m: list[Value], to: Memory, at: Value, corner: Any, shape: Any
) -> None:
    """Add the slopes to a matrix's nine sums."""
    code = back.tile.code
    (x0, y0), (columns, rows) = corner, shape
    zero = code.constant(vector(DOUBLE, SOME), 0.0)
    sums = [code.variable(zero) for _ in range(3 * kind)]
    with code.loop(0, rows) as r, code.loop(0, columns, SOME) as c:
        q = r * TILE + c
        gx, gy = (code.to(DOUBLE, s.load(q, SOME)) for s in (back.slope_x, back.slope_y))
        add_up(back, kind, m, sums, q, (gx, gy), (x0, y0, r, c), columns)
    add_sums(code, [code.fold(s.get(), Value.__add__) for s in sums], kind, to, at, corner)


def add_up(
    back: Gradients, kind: int, m: list[Value], sums: list[Variable], q: Value, slopes: Any,
    place: Any, columns: Value,
) -> None:  # fmt: skip
    """Add the slopes of SOME pixels, alone and times column and row, to the sums of a matrix."""
    tile, code, (gx, gy), (x0, y0, r, c) = back.tile, back.tile.code, slopes, place
    # columns and rows count from the corner under an affine map, where that is added later
    x, y = code.count_up(INDEX, SOME) + c, r
    if kind != AFFINE:
        x, y = x + x0, y + y0
    x = code.to(DOUBLE, x)
    y, zero = (code.constant(x.raw.type, v) for v in (code.to(DOUBLE, y), 0.0))
    slopes = [gx, gy]
    if kind != AFFINE:
        u, v, w = (x * m[3 * k] + y * m[3 * k + 1] + m[3 * k + 2] for k in range(3))
        near = tile.column.load(q, SOME) != NOWHERE
        gx, gy = gx / w, gy / w
        gw = zero - (gx * (u / w) + gy * (v / w))
        slopes = [code.select(near, g, 0.0) for g in (gx, gy, gw)]
    for k, g in enumerate(slopes):
        there = Value(code, code.first(columns - c, SOME))
        g = code.select(there, g, 0.0)
        for n, factor in enumerate((x, y, None)):
            total = sums[3 * k + n]
            total.set(total.get() + (g if factor is None else g * factor))


def add_sums(code: Code, sums: list[Value], kind: int, to: Memory, at: Value, corner: Any) -> None:
    """Add a tile's sums to a matrix's gradient."""
    x0, y0 = (code.to(DOUBLE, n) for n in corner)
    for k in range(kind):
        by_x, by_y, by_one = sums[3 * k : 3 * k + 3]
        if kind == AFFINE:
            by_x, by_y = by_x + x0 * by_one, by_y + y0 * by_one
        for n, value in enumerate((by_x, by_y, by_one)):
            to.store(at + (3 * k + n), to.load(at + (3 * k + n)) + value)
