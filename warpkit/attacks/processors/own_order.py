"""Kinds whose tiles are resized, normalised, padded and cut in an order of their own."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from warpkit.attacks.processors import grids
from warpkit.attacks.processors.operations import as_floats, pad_to, resize, sides, values
from warpkit.attacks.processors.patch_sizes import lfm2_size
from warpkit.attacks.processors.sampling import resample
from warpkit.attacks.processors.sizes import Options, Size
from warpkit.attacks.processors.tiles import by_tile, cut, fill, join, squares, squeeze
from warpkit.core import checks


def rows_of_pixels(picture: Tensor, patch: int) -> Tensor:
    """(..., C, H, W) as (..., patches, p p c), row by row."""
    parts = picture.unflatten(-1, (-1, patch)).unflatten(-3, (-1, patch))
    return parts.movedim(-5, -1).transpose(-4, -3).flatten(-3).flatten(-3, -2)


# ------------------------------------------------------------------ Phi-4


def grid_of_phi4(height: int, width: int, options: Options) -> grids.Grid:
    """As many tiles as it takes to hold the picture; if too many, the nearest aspect."""
    side, most = options["size"]["height"], options["dynamic_hd"]
    grid = math.ceil(height / side), math.ceil(width / side)
    if math.prod(grid) <= most:
        return grid
    return grids.nearest_aspect(height, width, (side, side), 1, most)


def size_of_phi4(height: int, width: int, options: Options) -> Size:
    """The picture's size on its canvas: one side is full, the other truncated."""
    side, (rows, columns) = options["size"]["height"], grid_of_phi4(height, width, options)
    by_height, by_width = grids.fit(height, width, (rows * side, columns * side))
    if by_width < by_height:
        size = int(height * by_width), columns * side
    else:
        size = rows * side, int(width * by_height)
    if min(size) < 10:
        wanted = "of an aspect that leaves 10 pixels a side for Phi4Multimodal"
        checks.fail("from_processor", "images", wanted, f"{height} x {width}")
    return size


def phi4(picture: Tensor, options: Options) -> Tensor:
    """Bilinear on white, and normalised; the whole picture, first, is made from these floats."""
    side, grid = options["size"]["height"], grid_of_phi4(*sides(picture), options)
    inner = resample(picture, size_of_phi4(*sides(picture), options), options, number=2)
    canvas = values(pad_to(inner, (grid[0] * side, grid[1] * side), value=255), options)
    whole = resample(canvas, (side, side), {**options, "antialias": False})
    return join(whole, cut(canvas, grid))


# ------------------------------------------------------------------ MiniCPM-V


def multiple(side: float, divisor: int) -> int:
    return max(round(side / divisor) * divisor, divisor)


def size_of_view(height: float, width: float, options: Options, enlarge: bool) -> Size:
    """A view's size in whole blocks; a larger one, or one to enlarge, has the area of a slice."""
    side = options["scale_resolution"]
    block = options["patch_size"] * (2 if options["downsample_mode"] == "4x" else 4)
    if enlarge or height * width > side * side:
        ratio = width / height
        height = int(side / math.sqrt(ratio))
        width = int(height * ratio)
    return multiple(height, block), multiple(width, block)


def sizes_of_minicpm(
    height: int, width: int, options: Options
) -> tuple[Size, Size, grids.Grid | None]:
    """The sizes of the whole picture and of each slice, and the grid of slices."""
    grid = grids.grid_of_slices(height, width, options) if options["slice_mode"] else None
    enlarges = options.get("small_image_upsize", "always") == "always"
    whole = size_of_view(height, width, options, grid is None and enlarges)
    if grid is None:
        return whole, whole, None
    tall, wide = (
        multiple(n, count) / count for n, count in zip((height, width), grid, strict=True)
    )
    return whole, size_of_view(tall, wide, options, True), grid


def minicpm(picture: Tensor, options: Options) -> Tensor:
    """The whole picture, then its slices; rows of a patch side by side: (N, C, p, patches p)."""
    whole, part, grid = sizes_of_minicpm(*sides(picture), options)
    views = [resample(picture, whole, options)]
    if grid is not None:
        slices = resample(picture, (part[0] * grid[0], part[1] * grid[1]), options)
        views += cut(slices, grid).unbind(1)
    patch, rows = options["patch_size"], []
    for view in views:
        bands = values(view, options).unflatten(-2, (-1, patch)).unflatten(-1, (-1, patch))
        # (N, C, rows, p, columns, p)
        rows.append(bands.transpose(-4, -3).flatten(-3))
    return torch.cat(rows, dim=-1)


# ------------------------------------------------------------------ Molmo 2


def window_of_molmo(options: Options) -> Size:
    """The step from crop to crop, and the margin that a canvas has in addition."""
    patch, margins = options["patch_size"], sum(options["overlap_margins"])
    side = options["size"]["height"]
    return (side // patch - margins) * patch, margins * patch


def tiling_of_molmo(height: int, width: int, options: Options) -> grids.Grid:
    step, margin = window_of_molmo(options)
    return grids.grid_of_molmo(height - margin, width - margin, step, options["max_crops"])


def molmo2(picture: Tensor, options: Options) -> Tensor:
    """The whole picture, then overlapping crops, as rows of patches: (N, crops, patches, D)."""
    side, (step, margin) = options["size"]["height"], window_of_molmo(options)
    rows, columns = tiling_of_molmo(*sides(picture), options)
    canvas = not_antialiased(picture, (rows * step + margin, columns * step + margin), options)
    crops = canvas.unfold(-2, side, step).unfold(-2, side, step)
    crops = crops.permute(0, 2, 3, 1, 4, 5).flatten(1, 2)
    whole = not_antialiased(picture, (side, side), options)
    pixels = values(join(whole, crops), options)
    return rows_of_pixels(pixels, options["patch_size"])


def not_antialiased(picture: Tensor, size: Size, options: Options) -> Tensor:
    """Resized as floats without antialiasing, then rounded to 8 bits."""
    values = resample(as_floats(picture), size, {**options, "antialias": False})
    if picture.is_floating_point():
        return values
    return values.round().clamp(0, 255).to(torch.uint8)


# ------------------------------------------------------------------ LFM2-VL


def tiling_of_lfm2(height: int, width: int, options: Options) -> grids.Grid | None:
    """The grid of tiles of a picture that has more tokens than the budget tolerates; or None."""
    least, most = options["min_tiles"], options["max_tiles"]
    if not options["do_image_splitting"] or least == most == 1:
        return None
    patch, factor = options["encoder_patch_size"], options["downsample_factor"]
    block, side = patch * factor, options["tile_size"]
    tall, wide = (max(patch, round(n / block) * block) for n in (height, width))
    limit = options["max_image_tokens"] * block**2 * options["max_pixels_tolerance"]
    if tall * wide <= limit:
        return None
    return grids.nearest_aspect(height, width, (side, side), least, most)


def lfm2(picture: Tensor, options: Options) -> Tensor:
    """Tiles and the whole picture last, or this alone; rows filled up to the longest possible."""
    patch, side = options["encoder_patch_size"], options["tile_size"]
    whole = resample(picture, lfm2_size(*sides(picture), options), options)
    grid, parts = tiling_of_lfm2(*sides(picture), options), [whole]
    if grid is not None:
        tiles = squeeze(picture, grid, (side, side), options)
        shows_whole = options["use_thumbnail"] and math.prod(grid) > 1
        parts = [tiles, whole] if shows_whole else [tiles]
    rows = [rows_of_pixels(values(part, options), patch) for part in parts]
    if options["do_pad"]:
        rows = [fill(part, longest_of_lfm2(options), part.ndim - 2) for part in rows]
    if not options["do_image_splitting"]:
        return rows[0]
    return torch.cat([part if part.ndim == 4 else part[:, None] for part in rows], dim=1)


def longest_of_lfm2(options: Options) -> int:
    """The largest number of patches of a view."""
    most = options["max_image_tokens"] * options["downsample_factor"] ** 2
    tile = (options["tile_size"] // options["encoder_patch_size"]) ** 2
    return max(most, tile) if options["do_image_splitting"] else most


# ------------------------------------------------------------------ Step 3


def size_of_step3(height: int, width: int, options: Options) -> tuple[Size, Size]:
    """The size of the black square that holds a long thin picture, and the size limited by the
    class, of others the same."""
    if min(height, width) < 32 and max(width / height, height / width) > 4:
        height = width = max(height, width)
    highest, own = options["max_image_size"], (height, width)
    if max(height, width) <= highest:
        return own, own
    scale = highest / max(height, width)
    return own, (int(height * scale), int(width * scale))


def step3_whole(picture: Tensor, options: Options) -> Tensor:
    """The whole picture squeezed: resized twice if it was too large."""
    own, size = size_of_step3(*sides(picture), options)
    return resize(resample(pad_to(picture, own), size, options), options)


def window_of_step3(height: int, width: int, options: Options) -> int:
    """The side of the local crops of a picture; 0: none."""
    side, patch = options["size"]["height"], options["patch_size"]
    short, long = min(height, width), max(height, width)
    if long <= side:
        return short if long / short > 1.5 else 0
    return min(short, patch) if long / short > 4 else patch


def canvas_of_step3(height: int, width: int, window: int) -> Size:
    """Whole windows; another one if the rest is more than a fifth. A smaller side stays."""
    tall, wide = (
        window * (n // window + (n % window > 0.2 * window)) if n >= window else n
        for n in (height, width)
    )
    return tall, wide


def step3_local(picture: Tensor, options: Options) -> Tensor:
    """The local crops, each resized to a patch: (N, crops, C, p, p)."""
    own, size = size_of_step3(*sides(picture), options)
    window, patch = window_of_step3(*size, options), options["patch_size"]
    if not window:
        return picture.new_zeros((picture.shape[0], 0, picture.shape[1], patch, patch))
    canvas = resample(pad_to(picture, own), canvas_of_step3(*size, window), options)
    parts = squares(canvas, window)
    return join(*(by_tile(to_patch, part, options) for part in parts))


def to_patch(picture: Tensor, options: Options) -> Tensor:
    return resample(picture, (options["patch_size"],) * 2, options)


def step3_grid(height: int, width: int, options: Options) -> grids.Grid:
    """Rows and columns of the local crops; (0, 0): none."""
    _, size = size_of_step3(height, width, options)
    window = window_of_step3(*size, options)
    if not window:
        return 0, 0
    tall, wide = canvas_of_step3(*size, window)
    return max(1, tall // window), max(1, wide // window)


# ------------------------------------------------------------------ Idefics2


def idefics2(picture: Tensor, options: Options) -> Tensor:
    """The quarters of the picture, then the whole, each resized and padded to the largest."""
    if not options["do_image_splitting"]:
        return values(resize(picture, options), options)
    top, left = (n // 2 for n in sides(picture))
    if top == 0 or (left == 0 and options["library"] == "torchvision"):  # Pillow makes black
        wanted = "at least 2 pixels high and wide for Idefics2, which quarters them"
        checks.fail("from_processor", "images", wanted, f"{sides(picture)}")
    parts = (
        picture[..., :top, :left],
        picture[..., :top, left:],
        picture[..., top:, :left],
        picture[..., top:, left:],
        picture,
    )
    pictures = [values(resize(part, options), options) for part in parts]
    heights, widths = zip(*map(sides, pictures), strict=True)
    return join(*(pad_to(part, (max(heights), max(widths))) for part in pictures))


def parts_of_idefics2(height: int, width: int, options: Options) -> list[Size]:
    """The sizes of the same parts, before they are padded."""
    sizes = [(height, width)]
    if options["do_image_splitting"]:
        top, left = height // 2, width // 2
        quarters = ((t, n) for t in (top, height - top) for n in (left, width - left))
        sizes = [*quarters, *sizes]
    if not options.get("do_resize", True):
        return sizes
    return [options["rule"](*size, options) for size in sizes]
