"""Grids of tiles, chosen by the sizes of pictures: `grid(height, width, ...) -> (rows, columns)`.

Each rule names its ties. A grid's area is the number of its tiles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import product

from warpkit.attacks.processors.sizes import Options, Size

Grid = tuple[int, int]
"""Rows and columns."""


@cache
def grids_within(most: int, side: int | None = None) -> tuple[Grid, ...]:
    """All grids of at most `most` tiles, and at most `side` along each axis; rows count slower."""
    longest = range(1, min(most, side or most) + 1)
    return tuple((r, c) for r, c in product(longest, repeat=2) if r * c <= most)


@cache
def by_area(most: int, side: int | None = None) -> tuple[Grid, ...]:
    """The same grids, by area; of equal ones those of fewer columns first."""
    return tuple(sorted(grids_within(most, side), key=lambda g: (g[0] * g[1], g[1])))


def fit(height: int, width: int, limits: Size) -> tuple[float, float]:
    """The factors that bring each side to its limit."""
    return limits[0] / height, limits[1] / width


def most_used(height: int, width: int, canvases: Sequence[Sequence[int]]) -> Size:
    """LLaVA: the canvas that shows most of the picture's own pixels, then the one with least waste.

    Enlarged pixels do not count. Of equal canvases the first in the list.
    """

    def rank(canvas: Sequence[int]) -> tuple[int, int]:
        tall, wide = canvas
        scale = min(wide / width, tall / height)
        pixels = min(int(width * scale) * int(height * scale), width * height)
        return pixels, pixels - tall * wide

    tall, wide = max(canvases, key=rank)
    return tall, wide


def inside_canvas(height: int, width: int, canvas: Size) -> Size:
    """LLaVA: one side fills the canvas, the other is rounded up."""
    by_height, by_width = fit(height, width, canvas)
    if by_width < by_height:
        return min(math.ceil(height * by_width), canvas[0]), canvas[1]
    return canvas[0], min(math.ceil(width * by_height), canvas[1])


# ------------------------------------------------------------------ Llama


def least_enlarging(
    scales: Sequence[float], grids: Sequence[Grid], to_largest: bool = False
) -> Grid:
    """The grid of the smallest scale >= 1, else of the largest; of equal ones the smallest area.

    to_largest: of the largest scale >= 1 instead.
    """
    growing = [scale for scale in scales if scale >= 1]
    chosen = (max if to_largest else min)(growing) if growing else max(scales)
    equal = [grid for grid, scale in zip(grids, scales, strict=True) if scale == chosen]
    return min(equal, key=math.prod)


def grid_of_llama4(height: int, width: int, options: Options) -> Grid:
    """In float32, in which the class compares."""
    side, grids = options["size"]["height"], grids_within(options["max_patches"])
    scales = single_scales(grids, side, (height, width))
    return least_enlarging(scales, grids, options["resize_to_max_canvas"])


def size_of_llama4(height: int, width: int, options: Options) -> Size:
    """The picture's size on its canvas; it is not enlarged beyond a tile, unless the option says.

    Where the canvas is the limit, the factor and its product are in float32, elsewhere in float64:
    the class has a tensor in one place, and a number in the other.
    """
    side, grid = options["size"]["height"], grid_of_llama4(height, width, options)
    limits, factors, singles = [], [], []
    for count, own in zip(grid, (height, width), strict=True):
        canvas, limit = count * side, max(own, side)
        singles.append(options["resize_to_max_canvas"] or canvas < limit)
        limits.append(canvas if singles[-1] else limit)
        factors.append(single(canvas / own) if singles[-1] else limit / own)
    by_height, by_width = map(single, factors) if any(singles) else factors
    if by_width < by_height:
        tall, wide = min(scaled(height, factors[1], singles[1]), limits[0]), limits[1]
    else:
        tall, wide = limits[0], min(scaled(width, factors[0], singles[0]), limits[1])
    return max(tall, 1), max(wide, 1)


def scaled(side: int, factor: float, is_single: bool) -> int:
    """A side times a factor, in float32 or float64, rounded down."""
    length = side * factor
    return math.floor(single(length) if is_single else length)


def single(number: float) -> float:
    """A float64 rounded to float32, half to even, by functions that torch.compile can follow.

    Quotients of whole numbers below 2^24, and products with one, are then those in float32.
    """
    fraction, exponent = math.frexp(number)
    return math.ldexp(round(math.ldexp(fraction, 24)), exponent - 24)


def single_scales(grids: Sequence[Grid], side: int, size: Size) -> list[float]:
    """The scale that fits a size into each grid of squares, in float32; sides may be 0 or less."""
    return [
        min(single(n * side / own) if own else math.inf for n, own in zip(grid, size, strict=True))
        for grid in grids
    ]


def grid_of_mllama(height: int, width: int, options: Options) -> Grid:
    """In float64."""
    side, grids = options["size"]["height"], grids_within(options["max_image_tiles"])
    scales = [min(r * side / height, c * side / width) for r, c in grids]
    return least_enlarging(scales, grids)


def size_of_mllama(height: int, width: int, options: Options) -> Size:
    """The picture's size on its canvas: a side stays within a tile and the canvas."""
    side, (rows, columns) = options["size"]["height"], grid_of_mllama(height, width, options)
    tall = min(max(height, side), rows * side)
    wide = min(max(width, side), columns * side)
    by_height, by_width = fit(height, width, (tall, wide))
    if by_width < by_height:
        return min(math.floor(height * by_width) or 1, tall), wide
    return tall, min(math.floor(width * by_height) or 1, wide)


# ------------------------------------------------------------------ the nearest aspect


def nearest_aspect(
    height: int, width: int, tile: Size, least: int, most: int, side: int | None = None
) -> Grid:
    """InternVL: the smallest |width / height - columns / rows|, of grids from `least` tiles on.

    A later grid of the same distance wins if half its pixels are fewer than the picture's.
    """
    best, nearest = (1, 1), math.inf
    for rows, columns in by_area(most, side):
        if rows * columns < least:
            continue
        away = abs(width / height - columns / rows)
        grows = height * width > 0.5 * tile[0] * tile[1] * columns * rows
        if away < nearest or (away == nearest and grows):
            best, nearest = (rows, columns), away
    return best


def tile_of(options: Options) -> Size:
    return options["size"]["height"], options["size"]["width"]


def grid_of_got(height: int, width: int, options: Options) -> Grid:
    tile, least, most = tile_of(options), options["min_patches"], options["max_patches"]
    return nearest_aspect(height, width, tile, least, most)


def grid_of_ovis(height: int, width: int, options: Options) -> Grid:
    if options["use_covering_area_grid"]:
        return covering(height, width, options["size"]["height"], options["max_patches"])
    return grid_of_got(height, width, options)


def covering(height: int, width: int, side: int, most: int) -> Grid:
    """Ovis 2: the smallest grid that keeps more than 0.9 of the area in tiles shrunk to squares.

    Of equal areas the one that keeps most; if none keeps enough, the one that keeps most, then the
    smallest. The class counts a grid's first number as rows here, and as columns in its result.
    """
    shares = {grid: _kept(height, width, grid, side) for grid in grids_within(most)}
    enough = [grid for grid, share in shares.items() if share > 0.9]
    if enough:
        best = min(enough, key=lambda g: (math.prod(g), -shares[g]))
    else:
        best = min(shares, key=lambda g: (-shares[g], math.prod(g)))
    return best[1], best[0]


def _kept(height: int, width: int, grid: Grid, side: int) -> float:
    """The share of a picture's area that tiles keep if each is shrunk into a square."""
    total = 0.0
    for i, j in product(*map(range, grid)):
        tall = height - i * (height // grid[0]) if i == grid[0] - 1 else height // grid[0]
        wide = width - j * (width // grid[1]) if j == grid[1] - 1 else width // grid[1]
        long, short = max(tall, wide), min(tall, wide)
        total += side * (short / long * side) if long > side else long * short
    return total / (width * height)


def grid_of_granite(height: int, width: int, options: Options) -> Grid:
    """GraniteDocling: InternVL's rule, with more tiles for dense pages."""
    tile, least, most = tile_of(options), options["min_patches"], options["max_patches"]
    side, lowest = 16, options["dense_min_aspect"]  # no more tiles along one axis
    if not options["crop_to_patches"] or most <= 1:
        return nearest_aspect(height, width, tile, min(least, 1), 1, side)
    if options["dense_max_patches"] and (options["dense_max_scale"] > 0 or lowest > 0):
        aspect, columns = width / height, nearest_aspect(height, width, tile, least, most, side)[1]
        conditions = (
            (lowest, aspect > lowest),
            (options["dense_max_aspect"], aspect <= options["dense_max_aspect"]),
            (options["dense_max_scale"], columns * tile[1] / width < options["dense_max_scale"]),
        )
        if all(holds for bound, holds in conditions if bound > 0):
            most = options["dense_max_patches"]
    return nearest_aspect(height, width, tile, min(least, most), most, side)


# ------------------------------------------------------------------ others


def grid_of_cohere(height: int, width: int, options: Options) -> Grid:
    """Cohere 2 Vision: as Llama; of equal scales the first by area, then columns.

    Both sides are measured in tiles' heights.
    """
    side, grids = options["size"]["height"], by_area(options["max_patches"])
    scales = [min(c * side / width, r * side / height) for r, c in grids]
    growing = [scale for scale in scales if scale >= 1]
    return grids[scales.index(min(growing) if growing else max(scales))]


def grid_of_perception(height: int, width: int, options: Options) -> Grid:
    """PerceptionLM: of canvases that hold the picture, the one that enlarges it most.

    Of equal ones the last, by aspects in the order of their first, largest grid. If none holds it,
    the next aspect towards a square, with as many tiles as possible.
    """
    side, most = options["tile_size"], options["max_num_tiles"]
    if most <= 1:
        return 1, 1
    by_aspect: dict[float, list[Grid]] = {}
    for area in range(most, 0, -1):
        for columns in (n for n in range(1, area + 1) if area % n == 0):
            rows = area // columns
            by_aspect.setdefault(columns / rows, []).append((rows, columns))
    ratio = width / height
    best, longest = None, -math.inf
    for rows, columns in (grid for grids in by_aspect.values() for grid in grids):
        if columns * side < width or rows * side < height:
            continue
        scale = min(columns * side / width, rows * side / height)
        if ratio > 1:
            short = math.floor(scale * width / ratio)
        else:
            short = math.floor(scale * height * ratio) if ratio < 1 else scale * height
        if short >= longest:
            best, longest = (rows, columns), short
    if best is not None:
        return best
    if ratio >= 1:
        aspect = max(a for a in by_aspect if a <= ratio)
        return max(by_aspect[aspect], key=lambda grid: grid[1])
    aspect = min((a for a in by_aspect if a > ratio), key=lambda a: abs(1 / a - 1 / ratio))
    return max(by_aspect[aspect], key=lambda grid: grid[0])


def grid_of_molmo(height: int, width: int, window: int, most: int) -> Grid:
    """Molmo 2: in float32; of equal scales the first by area, then rows.

    height, width: those of the picture without margins, which may be negative.
    """
    grids = sorted(grids_within(most), key=lambda g: (g[0] * g[1], g[0]))
    scales = single_scales(grids, window, (height, width))
    growing = [scale for scale in scales if scale >= 1]
    return grids[scales.index(min(growing) if growing else max(scales))]


def grid_of_idefics(height: int, width: int, side: int) -> Grid:
    """Idefics3: the longer side up to whole tiles; the other one by the aspect, cut, then up."""
    ratio = width / height
    if width >= height:
        columns = math.ceil(width / side)
        return math.ceil(int(columns * side / ratio) / side), columns
    rows = math.ceil(height / side)
    return rows, math.ceil(int(rows * side * ratio) / side)


def grid_of_slices(height: int, width: int, options: Options) -> Grid | None:
    """MiniCPM-V: the nearest logarithm of the aspect, among one slice fewer and one slice more than
    the area needs; of equal ones more rows. None: no slices."""
    side, most = options["scale_resolution"], options["max_slice_nums"]
    count = min(math.ceil(height * width / (side * side)), most)
    if count <= 1:
        return None
    best, nearest = (1, 1), math.inf
    for area in (n for n in (count - 1, count, count + 1) if 1 < n <= most):
        for rows in (n for n in range(1, area + 1) if area % n == 0):
            away = abs(math.log(width / height) - math.log(area // rows / rows))
            if away < nearest or (away == nearest and rows > best[0]):
                best, nearest = (rows, area // rows), away
    return best
