"""A tile as the kernels that read pairs see it: its memory, its box, and the border around."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from warpkit.engine.backends.cpu.runtime.scratch import PIXELS
from warpkit.engine.backends.cpu.runtime.vector_code import Code, Parameters
from warpkit.engine.backends.cpu.runtime.vector_values import (
    BIT,
    INDEX,
    INT,
    REGISTER,
    Memory,
    Value,
    Variable,
    size_of,
)
from warpkit.engine.backends.cpu.warps.positions import (
    CONSTANT,
    REFLECT,
    REPLICATE,
    TRANSPARENT,
    WRAP,
)

SOME = 8
"""Positions that are computed together, in float64."""

ROOM = 16 * PIXELS
"""Pixels of a window; a box larger than this is replaced by a small box for each pixel."""

NOWHERE = -(2**31)
"""The column of a pixel that is sampled nowhere."""


def memory_bytes(item_size: int) -> int:
    """What a thread needs, see `Tile`, for four taps an axis and their slopes."""
    return PIXELS * (3 * 4 + 17 * item_size) + (ROOM + REGISTER) * item_size + ROOM * 8


@dataclass
class Tile:
    """A tile's pixels, TILE * row + column, and the window that it reads where it is not whole."""

    code: Code
    real: Any
    taps: int
    """Along an axis: 1, 2, or 4."""
    step: int
    """Numbers of a vector."""
    column: Memory
    row: Memory
    offset: Memory
    """Where a pixel's first tap lies: in the image from `left`, `top` on, or in the window."""
    wx: list[Memory]
    """The weights of the taps along an axis, one memory for each."""
    wy: list[Memory]
    missing: Memory
    """The sum of the weights of missing taps, or ALL_TAPS_INSIDE, or NO_TAP_INSIDE."""
    window: Memory
    table: Memory
    """The column that each column of a window reads."""
    dx: list[Memory]
    """The derivatives of the weights; none where nobody asks, or where they are -1 and 1."""
    dy: list[Memory]
    left: Variable
    top: Variable
    columns: Variable
    rows: Variable
    stride: Variable
    """From a row to the next in the window."""
    whole: Variable
    """All its taps lie in the image."""
    boxed: Variable
    empty: Variable
    """No tap of the tile lies in the image."""
    last: tuple[Variable, Variable]
    """The corner of the box of the tile before."""

    @classmethod
    def made(
        cls, code: Code, real: Any, p: Parameters, taps: int = 2, sloped: bool = False
    ) -> Tile:
        """In the memory that the parameters name. sloped: with the slopes of four taps."""
        at, size = p.memory, size_of(real)
        parts, slopes = [], taps if sloped and taps == 4 else 0
        for element, count in (
            *[(INT, PIXELS)] * 3, *[(real, PIXELS)] * (2 * taps + 1), (real, ROOM + REGISTER),
            (INDEX, ROOM), *[(real, PIXELS)] * (2 * slopes),
        ):  # fmt: skip
            parts.append(code.memory(at, element, count))
            at = at + count * size_of(element)
        whole, weights, rest = parts[:3], parts[3 : 3 + 2 * taps], parts[3 + 2 * taps :]
        rest, slopes_x, slopes_y = rest[:3], rest[3 : 3 + slopes], rest[3 + slopes :]
        zero = code.constant(INDEX, 0)
        numbers = [code.variable(zero) for _ in range(5)]
        last = code.variable(zero), code.variable(zero)
        states = [code.variable(Value(code, BIT(0))) for _ in range(3)]
        parts = [*whole, weights[:taps], weights[taps:], *rest, slopes_x, slopes_y, *numbers]
        parts += states
        return cls(code, real, taps, REGISTER // size, *parts, last)  # pyright: ignore

    @property
    def before(self) -> int:
        """Taps before a point's whole pixel."""
        return max(self.taps // 2 - 1, 0)

    @property
    def box(self) -> tuple[Value, Value, Value, Value]:
        """(left, top, columns, rows)."""
        return self.left.get(), self.top.get(), self.columns.get(), self.rows.get()


def fetch_next(
    code: Code, box: Sequence[Value], last: tuple[Variable, Variable],
    images: Sequence[tuple[Memory, Value, Any]], p: Parameters,
) -> None:  # fmt: skip
    """Prefetch about what the next tile reads: this one's box, moved as it was moved.

    box (left, top, columns, rows); last: the corner of the box of the tile before, which is set;
    images: each with where the item's planes begin, and whether it is read.
    """
    left, top, columns, rows = box
    dx, dy = left - last[0].get(), top - last[1].get()
    last[0].set(left)
    last[1].set(top)
    far = p.width + p.height
    near = (dx < far) & (dx > 0 - far) & (dy < far) & (dy > 0 - far)
    first = code.larger(left + dx, 0)
    end = code.smaller(left + dx + columns, p.width)
    top_row, bottom = code.larger(top + dy, 0), code.smaller(top + dy + rows, p.height)
    near = near & (columns <= ROOM) & (rows <= ROOM) & (columns * rows <= ROOM)
    near = near & (first < end)
    for image, source, is_read in images:
        line = REGISTER // size_of(image.element)
        with code.when(near & is_read), code.loop(0, p.channels) as k:
            plane = source + k * p.height * p.width
            with code.loop(top_row, bottom) as y, code.loop(first, end + (line - 1), line) as x:
                image.prefetch(plane + y * p.width + code.smaller(x, end - 1))


def misses(p: Parameters) -> Value:
    """Whether taps outside the image are missing."""
    return (p.border == CONSTANT) | (p.border == TRANSPARENT)


def resolve(code: Code, index: Value, length: Value, p: Parameters) -> Value:
    """As `window.resolve`."""
    found = code.variable(index)
    with code.when((index < 0) | (index >= length)):
        found.set(code.constant(INDEX, -1))
        with code.when(~misses(p)):
            found.set(resolve_all(code, index, length, p))
    return found.get()


def resolve_all(code: Code, index: Value, length: Value, p: Parameters) -> Value:
    """The same of a number or a vector, under a border that has no missing pixels."""
    kind = index.raw.type
    lengths = code.constant(kind, length)
    reflected = p.border == REFLECT
    twice = code.select(reflected, length * 2, code.larger(length * 2 - 2, 1))
    found = code.variable(code.smaller(code.larger(index, 0), lengths - 1))
    with code.when(p.border != REPLICATE):
        wraps = p.border == WRAP
        period = code.constant(kind, code.select(wraps, length, twice))
        rest = index % period
        rest = code.select(rest < 0, rest + period, rest)
        last = code.constant(kind, code.select(reflected, twice - 1, twice))
        with code.either(wraps) as (wrapped, turned):
            with wrapped:
                found.set(rest)
            with turned:
                found.set(code.smaller(rest, last - rest))
    return found.get()


def inner_columns(tile: Tile, p: Parameters) -> tuple[Value, Value]:
    """The columns of the window, from the first to before the last, that lie in the image."""
    code, left, columns = tile.code, tile.left.get(), tile.columns.get()
    first = code.smaller(code.larger(0 - left, 0), columns)
    return first, code.larger(code.smaller(p.width - left, columns), first)


def fill_table(tile: Tile, p: Parameters) -> None:
    """Fill `table` for the columns of the window that lie outside."""
    code, (first, last) = tile.code, inner_columns(tile, p)
    for begin, end in ((0, first), (last, tile.columns.get())):
        with code.loop(begin, end) as c:
            tile.table.store(c, resolve(code, tile.left.get() + c, p.width, p))
