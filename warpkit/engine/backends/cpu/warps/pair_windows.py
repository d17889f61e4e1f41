"""What a tile reads: the image itself, or a window where the tile reaches over the border."""

from __future__ import annotations

from typing import Any

from warpkit.engine.backends.cpu.runtime.scratch import TILE
from warpkit.engine.backends.cpu.runtime.vector_code import Parameters
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
    """Copy the four taps of every pixel of one channel into the window; missing ones are `fill`."""
    code = tile.code
    with code.loop(0, shape[1]) as r, code.loop(0, shape[0]) as c:
        q = r * TILE + c
        i, j = code.to(INDEX, tile.column.load(q)), code.to(INDEX, tile.row.load(q))
        for n in range(4):
            x, y = resolve(code, i + n % 2, p.width, p), resolve(code, j + n // 2, p.height, p)
            there = (x >= 0) & (y >= 0)
            at = plane + code.select(there, y * p.width + x, 0)
            tile.window.store(q * 4 + n, code.select(there, image.load(at), fill))


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


def source_row(
    tile: Tile, pixels: Memory, at: Value, line: Value, q: Value, n: int
) -> tuple[Value, Value]:
    """Left and right neighbours of a vector of pixels from `q` on, in the n-th row of each."""
    code, step = tile.code, tile.step
    pairs = []
    for k in range(step):
        here = at + code.to(INDEX, tile.offset.load(q + k))
        pairs.append(pixels.load(here + line if n else here, 2))
    both = code.join(pairs)
    return tuple(code.shuffle(both, both, range(k, 2 * step, 2)) for k in range(2))  # pyright: ignore
