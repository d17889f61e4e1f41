"""OpenCV's 8-bit bilinear resize and mean of 2 x 2: sums of two neighbours, then of two rows.

A pixel's neighbours lie within four bytes, which are one load; so no row is turned on its side, as
`passes` must for sums of any taps. A row that is summed stays for the next row of the result.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from warpkit.engine.backends.cpu.runtime.compiler import DIGEST, Written, kernel
from warpkit.engine.backends.cpu.runtime.vector_code import Code, Parameters, written
from warpkit.engine.backends.cpu.runtime.vector_values import (
    BYTE,
    INDEX,
    INT,
    Memory,
    Value,
)

STEP = 16
"""Numbers of a vector."""

WORD = 4
"""Bytes of a load: the two neighbours of one channel of three, at most."""

NAMES = (
    "image", "image_bytes", "out", "out_bytes", "place", "left", "right", "upper", "lower", "above",
    "below", "memory", "height", "line", "out_height", "out_line", "rows", "apart",
)  # fmt: skip
"""What the parameters are. For every number of a row of the result: the `place` of its left
neighbour in a row of the image, and both weights, `left` and `right` (int32; as many as vectors of
STEP hold). For every row of the result: the rows `above` and `below`, the same or neighbours, and
their weights, `upper` and `lower` (int64). rows: of the result, in a unit of work; apart: bytes
from a pixel to the next."""


def memory_bytes(line: int, out_line: int) -> int:
    """What a thread needs: two rows of sums, and a row of the image with what is read after it."""
    return 2 * room_of(out_line) * 4 + line + WORD


def room_of(out_line: Any) -> Any:
    """Numbers of a row, as many as vectors hold."""
    return (out_line + (STEP - 1)) // STEP * STEP


@written
def sum_pairs(code: Code, variant: int, numbers: Memory, begin: Value, end: Value) -> None:
    """See `two_taps_kernel`."""
    p = Parameters(code, numbers, NAMES)
    p.read_all()
    image, out = (
        code.memory(a, BYTE, n) for a, n in ((p.image, p.image_bytes), (p.out, p.out_bytes))
    )
    room = room_of(p.out_line)
    x_tables = [code.memory(a, INT, room) for a in (p.place, p.left, p.right)]
    above, below, upper, lower = (
        code.memory(a, INDEX, p.out_height) for a in (p.above, p.below, p.upper, p.lower)
    )
    sums = code.memory(p.memory, INT, room * 2)
    row_copy = code.memory(p.memory + room * 8, BYTE, p.line + WORD)
    units = (p.out_height + (p.rows - 1)) // p.rows
    held = [code.variable(code.constant(INDEX, -1)) for _ in range(2)]
    with code.loop(begin, end) as unit:
        plane = unit // units
        first = (unit - plane * units) * p.rows
        for number in held:
            number.set(code.constant(INDEX, -1))
        with code.loop(first, code.smaller(first + p.rows, p.out_height)) as y:
            pair = above.load(y), below.load(y)
            for slot in range(2):  # even rows have the first memory, odd ones the second
                mine = code.select(pair[0] % 2 == slot, *pair)
                with code.when((mine % 2 == slot) & (mine != held[slot].get())):
                    held[slot].set(mine)
                    base = (plane * p.height + mine) * p.line
                    sum_row(code, image, row_copy, base, x_tables, sums, room * slot, p)
            a, b = (code.select(row % 2 != 0, room, 0) for row in pair)
            to = (plane * p.out_height + y) * p.out_line
            mix_rows(code, variant, sums, (a, b), (upper.load(y), lower.load(y)), out, to, p)


def sum_row(
    code: Code, image: Memory, row_copy: Memory, base: Value, x_tables: list[Memory], sums: Memory,
    to: Value, p: Parameters,
) -> None:  # fmt: skip
    """The sums of neighbours in the row of the image from `base` on."""
    place, left, right = x_tables
    ends = base + p.line + WORD > p.image_bytes  # a load reaches up to WORD bytes over the row
    with code.when(ends), code.loop(0, p.line, STEP) as e:
        some = p.line - e
        row_copy.store_first(e, image.load_first(base + e, STEP, some), some)
    pixels = code.pick(ends, row_copy, image)
    pixels = pixels.since(code.select(ends, 0, base))
    shift = code.to(INT, p.apart * 8)
    with code.loop(0, p.out_line, STEP) as e:
        words = code.collect([pixels.load_word(place.load(e + n)) for n in range(STEP)])
        a, b = words & 255, (words >> shift) & 255
        sums.store(to + e, a * left.load(e, STEP) + b * right.load(e, STEP))


def mix_rows(
    code: Code, means: int, sums: Memory, starts: tuple[Value, Value],
    weights: tuple[Value, Value], out: Memory, to: Value, p: Parameters,
) -> None:  # fmt: skip
    """A quarter of both rows, half up; of a product with a weight 20 bits are cut off before."""
    weights = code.to(INT, weights[0]), code.to(INT, weights[1])
    with code.loop(0, p.out_line, STEP) as e:
        upper, lower = (sums.load(base + e, STEP) for base in starts)
        if not means:
            upper, lower = (
                (row >> 4) * weight >> 16
                for row, weight in zip((upper, lower), weights, strict=True)
            )
        found = (upper + lower + 2) >> 2
        found = code.smaller(code.larger(found, 0), 255)
        code.write_row(out, to + e, code.to(BYTE, found), p.out_line - e)


@cache
def two_taps_kernel(means: bool) -> Any:
    """The kernel; sizes, layouts and weights are among the parameters.

    means: of 2 x 2 pixels, all of weight 1.
    """
    digest, variant = DIGEST, int(means)

    def resize_bytes(parameters, begin, end):
        """Units begin .. end, exclusive, `rows` rows of the result each, of all planes; `NAMES`."""
        _ = digest
        sum_pairs(variant, parameters, begin, end)

    return kernel(resize_bytes, Written)
