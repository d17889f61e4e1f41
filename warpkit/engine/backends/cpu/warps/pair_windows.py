"""What a tile reads: the image itself, or a window where the tile reaches over the border."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from warpkit.engine.backends.cpu.runtime.scratch import TILE
from warpkit.engine.backends.cpu.runtime.vector_code import Code, Parameters
from warpkit.engine.backends.cpu.runtime.vector_values import INDEX, Memory, Value, vector
from warpkit.engine.backends.cpu.warps.pair_tile import Tile, inner_columns, misses, resolve


def copy_plane(tile: Tile, image: Memory, plane: Value, p: Parameters, fill: Any) -> None:
    """Copy the box of one channel into the window; missing pixels are `fill`.

    Vectors reach over the end of what they fill, which is written after them.
    """
    code, step = tile.code, tile.step
    left, top, columns, rows = (v.get() for v in (tile.left, tile.top, tile.columns, tile.rows))
    first, last = inner_columns(tile, p)
    fills = code.constant(vector(tile.real, step), fill)
    missing = misses(p)
    with code.loop(0, rows) as r:
        y = resolve(code, top + r, p.height, p)
        to = r * columns
        row = plane + y * p.width
        none = y < 0
        for begin, end in ((0, code.select(none, columns, first)), (last, columns)):
            if begin is last:
                with code.loop(code.select(none, last, first), last, step) as c:
                    tile.window.store(to + c, image.load_first(row + left + c, step, last - c))
            with code.either(missing) as (zero, some):
                with zero, code.loop(begin, end, step) as c:
                    tile.window.store(to + c, fills)
                with some, code.loop(begin, end) as c:
                    tile.window.store(to + c, image.load(row + tile.table.load(c)))


def copy_taps(
    tile: Tile, image: Memory, plane: Value, p: Parameters, shape: Any, fill: Any
) -> None:
    """Copy the taps of every pixel of one channel into the window; missing ones are `fill`."""
    code, taps, before = tile.code, tile.taps, tile.before
    with code.loop(0, shape[1]) as r, code.loop(0, shape[0]) as c:
        q = r * TILE + c
        i, j = code.to(INDEX, tile.column.load(q)), code.to(INDEX, tile.row.load(q))
        for n in range(taps * taps):
            x = resolve(code, i + (n % taps - before), p.width, p)
            y = resolve(code, j + (n // taps - before), p.height, p)
            there = (x >= 0) & (y >= 0)
            at = plane + code.select(there, y * p.width + x, 0)
            tile.window.store(q * (taps * taps) + n, code.select(there, image.load(at), fill))


def copy_source(
    tile: Tile, image: Memory, plane: Value, p: Parameters, shape: Any, fill: Any
) -> tuple[Memory, Value, Value]:
    """Where the taps of one channel are read, from where on, and how far rows are apart."""
    code, whole = tile.code, tile.whole.get()
    with code.when(~whole):
        boxed = tile.boxed.get()
        with code.when(boxed):
            copy_plane(tile, image, plane, p, fill)
        with code.when(~boxed):
            copy_taps(tile, image, plane, p, shape, fill)
    at = code.select(whole, plane + tile.top.get() * p.width + tile.left.get(), 0)
    line = code.select(whole, p.width, tile.stride.get())
    return code.pick(whole, image, tile.window), at, line


def source_row(tile: Tile, pixels: Memory, at: Value, line: Value, q: Value, n: int) -> list[Value]:
    """The taps of a vector of pixels from `q` on, in the n-th row of each, from left to right."""
    code, step, taps = tile.code, tile.step, tile.taps
    runs = []
    for k in range(step):
        here = at + code.to(INDEX, tile.offset.load(q + k))
        runs.append(pixels.load(here + line * n if n else here, taps))
    if taps == 4:
        return parted(code, runs)
    both = code.join(runs)
    return [code.shuffle(both, both, range(k, 2 * step, 2)) for k in range(2)]


def parted(code: Code, runs: list[Value]) -> list[Value]:
    """Four numbers of each pixel, as four vectors of one number of each.

    Every register takes the runs of four pixels as far apart as it has runs; two rounds of
    exchanges of neighbours then leave the pixels in their order. Parted by one shuffle of all,
    it would be twelve exchanges for eight.
    """
    lines = [code.join(runs[k::4]) for k in range(4)]
    size = len(runs)

    def exchange(a: Value, b: Value, places: Sequence[int]) -> Value:
        """The same places of every four numbers; those of `b` count from 4 on."""
        order = [n + k % 4 + k // 4 * size for n in range(0, size, 4) for k in places]
        return code.shuffle(a, b, order)

    found = []
    for low in (0, 2):
        left, right = (
            exchange(a, b, (low, low + 4, low + 1, low + 5)) for a, b in (lines[:2], lines[2:])
        )
        found += [exchange(left, right, (k, k + 1, k + 4, k + 5)) for k in (0, 2)]
    return found


def weighted(code: Code, weights: Sequence[Value], values: Iterable[Value]) -> Value:
    """The sum of weights times values, in their order."""
    total = None
    for weight, value in zip(weights, values, strict=True):
        total = weight * value if total is None else code.fma(weight, value, total)
    assert total is not None
    return total
