"""The way back of `pairs`: the gradients to image, map and fill in one pass over the tiles.

A unit of work is a list of jobs, done one after the other by one thread: a range of an item's rows
of tiles, and the accumulator that it adds to. What lists there are follows from shapes and the
matrix alone, so that the order of every sum does too.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from warpkit.engine.backends.cpu.runtime.compiler import DIGEST, Written, kernel
from warpkit.engine.backends.cpu.runtime.scratch import TILE
from warpkit.engine.backends.cpu.runtime.simd import CHANNELS_PER_VECTOR
from warpkit.engine.backends.cpu.runtime.vector_code import Code, Parameters, written
from warpkit.engine.backends.cpu.runtime.vector_values import (
    DOUBLE,
    FLOAT,
    INDEX,
    REGISTER,
    Memory,
    Value,
    size_of,
    vector,
)
from warpkit.engine.backends.cpu.warps.pair_gradients import (
    Gradients,
    add_fill,
    add_image,
    add_mapping,
    add_slopes,
    write_points,
)
from warpkit.engine.backends.cpu.warps.pair_steps import map_tile, place
from warpkit.engine.backends.cpu.warps.pair_tile import Tile, fetch_next
from warpkit.engine.backends.cpu.warps.pair_windows import copy_source
from warpkit.engine.backends.cpu.warps.positions import POINTS

NAMES = (
    "grad", "grad_numbers", "image", "image_numbers", "mapping", "mapping_numbers", "fill",
    "fill_numbers", "grad_image", "grad_image_numbers", "grad_mapping", "grad_mapping_numbers",
    "grad_fill", "grad_fill_numbers", "image_of", "mapping_of", "jobs", "jobs_numbers", "starts",
    "starts_numbers", "memory", "gradient_memory", "items", "channels", "height", "width",
    "out_height", "out_width", "border", "mapping_size", "fill_item", "fill_channel",
    "relative", "single", "needs_grad_image", "needs_grad_mapping", "needs_grad_fill",
)  # fmt: skip
"""What the parameters are; arrays by their address and how many numbers they have. relative: 1
where points are offsets from their pixel, or 0; single: 1 where their gradient is float32."""

FIELDS = ("item", "first_row", "end_row", "accumulator", "slot", "clear", "clear_end")
"""Of a job: its item and rows of tiles, the accumulator it adds to, where its sums for the matrix
and the fill go, and the numbers of the image's gradient that are set to 0 before."""


@written
def spread_pairs(code: Code, variant: int, numbers: Memory, begin: Value, end: Value) -> None:
    """See `pairs_backward_kernel`."""
    kind, real = variant & 3, DOUBLE if variant & 4 else FLOAT
    p = Parameters(code, numbers, NAMES)
    p.read_all()
    point, taps = DOUBLE if variant & 8 else FLOAT, 1 << (variant >> 4)
    jobs = code.memory(p.jobs, INDEX, p.jobs_numbers)
    starts = code.memory(p.starts, INDEX, p.starts_numbers)
    arrays = {
        name: code.memory(getattr(p, name), element, getattr(p, f"{name}_numbers"))
        for name, element in (
            ("grad", real), ("image", real), ("mapping", point), ("fill", real),
            ("grad_image", real), ("grad_mapping", DOUBLE), ("grad_fill", DOUBLE),
        )
    }  # fmt: skip
    tile = Tile.made(code, real, p, taps, sloped=True)
    single = code.memory(p.grad_mapping, FLOAT, p.grad_mapping_numbers)
    arrays["grad_mapping_single"] = single
    back = Gradients.made(tile, p.gradient_memory)
    zeros = code.constant(vector(real, tile.step), 0.0)
    with code.loop(begin, end) as unit:
        last = starts.load(unit + 1)
        with code.loop(starts.load(unit), last) as n:
            job = {name: jobs.load(n * len(FIELDS) + k) for k, name in enumerate(FIELDS)}
            end_of_clear = code.select(p.needs_grad_image != 0, job["clear_end"], job["clear"])
            with code.loop(job["clear"], end_of_clear, tile.step) as e:
                left = end_of_clear - e
                with code.either(left >= tile.step) as (full, part):
                    with full:
                        arrays["grad_image"].store(e, zeros)
                    with part:
                        arrays["grad_image"].store_first(e, zeros, left)
            rows = code.loop(job["first_row"], job["end_row"])
            with rows as row, code.loop(0, p.out_width, TILE) as x0:
                add_tile(back, kind, arrays, p, job, (x0, row * TILE))


def add_tile(
    back: Gradients, kind: int, arrays: dict[str, Memory], p: Parameters, job: Any, corner: Any
) -> None:
    """All gradients of one tile."""
    tile, code = back.tile, back.tile.code
    (x0, y0), item = corner, job["item"]
    shape = code.smaller(p.out_width - x0, TILE), code.smaller(p.out_height - y0, TILE)
    area, out_area = p.height * p.width, p.out_height * p.out_width
    mapping, grad = arrays["mapping"], arrays["grad"]
    mapping_start = code.memory(p.mapping_of, INDEX, p.items).load(item) * p.mapping_size
    m = map_tile(tile, kind, mapping, mapping_start, p, corner, shape)
    whole = place(tile, p, shape)
    src = item * p.channels * out_area + y0 * p.out_width + x0
    needs_mapping, needs_image = p.needs_grad_mapping != 0, p.needs_grad_image != 0
    target = job["accumulator"] * p.channels * area
    source = code.memory(p.image_of, INDEX, p.items).load(item) * p.channels * area
    ahead = [(arrays["grad_image"], target, needs_image), (arrays["image"], source, needs_mapping)]
    fetch_next(code, tile.box, tile.last, ahead, p)
    fetch_pushed(code, grad, src, p, shape)
    groups = code.loop(0, p.channels, CHANNELS_PER_VECTOR)
    with code.when(needs_image & ~tile.empty.get()), groups as k:
        lanes = code.smaller(p.channels - k, CHANNELS_PER_VECTOR)
        planes = (grad, src + k * out_area, arrays["grad_image"], target + k * area)
        add_image(back, *planes, p, shape, lanes, whole)
    if tile.taps > 1:  # nearest has no slope
        with code.when(needs_mapping):
            add_map(back, kind, m, arrays, p, job, (source, src), corner, shape, whole)
    with code.when((p.needs_grad_fill != 0) & ~whole), code.loop(0, p.channels) as k:
        at = job["slot"] * p.channels + k
        add_fill(back, grad, src + k * out_area, p, shape, arrays["grad_fill"], at)


def add_map(
    back: Gradients, kind: int, m: list[Value], arrays: dict[str, Memory], p: Parameters, job: Any,
    planes: tuple[Value, Value], corner: Any, shape: Any, whole: Value,
) -> None:  # fmt: skip
    """The gradient of one tile to its map; planes: where those of image and `grad` begin."""
    tile, code, item, (source, src) = back.tile, back.tile.code, job["item"], planes
    area, out_area = p.height * p.width, p.out_height * p.out_width
    fill, grad, to = (arrays[name] for name in ("fill", "grad", "grad_mapping"))
    with code.loop(0, p.channels) as k:
        value = fill.load(item * p.fill_item + k * p.fill_channel)
        taken = copy_source(tile, arrays["image"], source + k * area, p, shape, value)
        add_slopes(back, *taken, grad, src + k * out_area, p, shape, whole, k == 0)
    if kind != POINTS:
        add_mapping(back, kind, m, to, job["slot"] * 9, corner, shape)
        return
    at = item * out_area * 2
    with code.either(p.single != 0) as (single, double):
        with single:
            write_points(back, arrays["grad_mapping_single"], at, p, corner, shape)
        with double:
            write_points(back, to, at, p, corner, shape)


def fetch_pushed(code: Code, grad: Memory, src: Value, p: Parameters, shape: Any) -> None:
    """Prefetch the incoming gradient of the tile to the right of the one at `src`."""
    line = REGISTER // size_of(grad.element)
    with code.loop(0, p.channels) as k, code.loop(0, shape[1]) as r:
        for n in range(TILE, 2 * TILE, line):
            grad.prefetch(src + k * p.out_height * p.out_width + r * p.out_width + n)


@cache
def pairs_backward_kernel(kind: int, double: bool, double_points: bool, taps: int) -> Any:
    """The kernel for a kind of map, planes of float32 or (`double`) float64, and 1, 2 or 4 taps.

    double_points: the map is in float64. Which gradients are wanted is among the parameters.
    """
    digest = DIGEST
    variant = kind + 4 * double + 8 * double_points + 16 * (taps.bit_length() - 1)

    def spread_planes(parameters, begin, end):
        """Units begin .. end, exclusive: jobs starts[u] .. starts[u + 1]; see `NAMES`."""
        _ = digest
        spread_pairs(variant, parameters, begin, end)

    return kernel(spread_planes, Written)
