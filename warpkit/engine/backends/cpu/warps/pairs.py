"""The forward kernel of bilinear and bicubic for planes of few channels: neighbours come together.

The two neighbours of a row, or four, lie side by side, and are one load from the image itself.
Those of sixteen pixels are brought together, parted into left and right neighbours, and blended.
Where a tile reaches over the border, its box is copied first, one channel at a time, and read in
the same way.
The sums are those of `forward.forward_kernel`, bit for bit.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from warpkit.engine.backends.cpu.runtime.compiler import DIGEST, Written, kernel
from warpkit.engine.backends.cpu.runtime.scratch import TILE
from warpkit.engine.backends.cpu.runtime.vector_code import Code, Parameters, written
from warpkit.engine.backends.cpu.runtime.vector_values import (
    DOUBLE,
    FLOAT,
    INDEX,
    Memory,
    Value,
    vector,
)
from warpkit.engine.backends.cpu.warps.pair_steps import map_tile, place, weigh_missing
from warpkit.engine.backends.cpu.warps.pair_tile import Tile, fetch_next
from warpkit.engine.backends.cpu.warps.pair_windows import (
    copy_source,
    source_row,
    weighted,
)

NAMES = (
    "image", "image_size", "mapping", "mapping_numbers", "fill", "fill_numbers", "out", "out_size",
    "image_of", "mapping_of", "memory", "items", "channels", "height", "width",
    "out_height", "out_width", "border", "mapping_size", "fill_item", "fill_channel", "streamed",
    "relative",
)  # fmt: skip
"""What the parameters are; arrays by their address and how many numbers they have. relative: 1
where points are offsets from their pixel, or 0."""


@written
def warp_pairs(code: Code, variant: int, numbers: Memory, begin: Value, end: Value) -> None:
    """See `pairs_kernel`."""
    kind, double, double_points = variant & 3, variant & 4, variant & 8
    taps = 4 if variant & 16 else 2
    real, point = (DOUBLE if double else FLOAT), (DOUBLE if double_points else FLOAT)
    p = Parameters(code, numbers, NAMES)
    p.read_all()
    image = code.memory(p.image, real, p.image_size)
    mapping = code.memory(p.mapping, point, p.mapping_numbers)
    fill = code.memory(p.fill, real, p.fill_numbers)
    out = code.memory(p.out, real, p.out_size)
    image_of = code.memory(p.image_of, INDEX, p.items)
    mapping_of = code.memory(p.mapping_of, INDEX, p.items)
    tile = Tile.made(code, real, p, taps)
    area, out_area = p.height * p.width, p.out_height * p.out_width
    tile_rows = (p.out_height + (TILE - 1)) // TILE
    with code.loop(begin, end) as unit:
        item = unit // tile_rows
        y0 = (unit - item * tile_rows) * TILE
        mapping_start = mapping_of.load(item) * p.mapping_size
        source = image_of.load(item) * p.channels * area
        rows = code.smaller(p.out_height - y0, TILE)
        with code.loop(0, p.out_width, TILE) as x0:
            columns = code.smaller(p.out_width - x0, TILE)
            map_tile(tile, kind, mapping, mapping_start, p, (x0, y0), (columns, rows))
            whole = place(tile, p, (columns, rows))
            fetch_next(code, tile.box, tile.last, [(image, source, p.channels > 0)], p)
            dst = item * p.channels * out_area + y0 * p.out_width + x0
            with code.loop(0, p.channels) as k:
                plane = source + k * area
                value = fill.load(item * p.fill_item + k * p.fill_channel)
                pixels, at, line = copy_source(tile, image, plane, p, (columns, rows), 0.0)
                fills = code.constant(vector(real, tile.step), value)
                with code.loop(0, rows) as r, code.loop(0, columns, tile.step) as c:
                    q = r * TILE + c
                    found = code.variable(fills)
                    with code.when(~tile.empty.get()):
                        found.set(blend(tile, pixels, at, line, q))
                        with code.when(~whole):
                            found.set(weigh_missing(tile, q, found.get(), value))
                    to = dst + k * out_area + r * p.out_width + c
                    code.write_row(out, to, found.get(), columns - c, p.streamed != 0)
    code.finish_streams()


def blend(tile: Tile, pixels: Memory, at: Value, line: Value, q: Value) -> Value:
    """The values of a vector of pixels from `q` on; rows of `pixels` are `line` apart."""
    code, step = tile.code, tile.step
    across, down = ([w.load(q, step) for w in weights] for weights in (tile.wx, tile.wy))
    lines = (
        weighted(code, across, source_row(tile, pixels, at, line, q, n)) for n in range(tile.taps)
    )
    return weighted(code, down, lines)


@cache
def pairs_kernel(kind: int, double: bool, double_points: bool, taps: int) -> Any:
    """The kernel for a kind of map, planes of float32 or (`double`) float64, and 2 or 4 taps.

    double_points: the map is in float64.
    """
    digest = DIGEST
    variant = kind + 4 * double + 8 * double_points + 16 * (taps == 4)

    def warp_planes(parameters, begin, end):
        """Tile rows begin .. end, exclusive, numbered across all items; see `NAMES`."""
        _ = digest
        warp_pairs(variant, parameters, begin, end)

    return kernel(warp_planes, Written)
