"""Cuts pictures into tiles: `operation(picture, options) -> tiles`.

(N, C, H, W) becomes (N, tiles, C, h, w); without the option that makes tiles, a picture. Tiles are
in the order of rows; the whole picture is before or after them, as its kind has it.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from warpkit.attacks.processors import grids
from warpkit.attacks.processors.operations import (
    Operation,
    columns,
    crop,
    normalize,
    pad_edges,
    pad_square,
    pad_to,
    resize,
    sides,
    values,
)
from warpkit.attacks.processors.sampling import resample
from warpkit.attacks.processors.sizes import Options, Size, long_at_least, long_even


def cut(picture: Tensor, grid: grids.Grid) -> Tensor:
    """(N, C, rows h, columns w) as (N, rows columns, C, h, w)."""
    parts = picture.unflatten(-1, (grid[1], -1)).unflatten(-3, (grid[0], -1))
    return parts.permute(0, 2, 4, 1, 3, 5).flatten(1, 2)


def by_tile(operation: Operation, tiles: Tensor, options: Options) -> Tensor:
    """An operation on pictures, on each of (N, tiles, C, h, w); also on pictures themselves."""
    if tiles.ndim == 4:
        return operation(tiles, options)
    return operation(tiles.flatten(0, 1), options).unflatten(0, tiles.shape[:2])


def join(*parts: Tensor) -> Tensor:
    """Pictures (N, C, h, w) and tiles (N, tiles, C, h, w), one after the other."""
    return torch.cat([part[:, None] if part.ndim == 4 else part for part in parts], dim=1)


def squares(canvas: Tensor, side: int) -> list[Tensor]:
    """(N, C, H, W) cut by a side: all tiles at once, or one by one if the last ones are smaller.

    The gradient of each slice would fill a canvas with 0, so slices are the exception.
    """
    tall, wide = sides(canvas)
    if tall % side == wide % side == 0:
        return [cut(canvas, (tall // side, wide // side))]
    return [
        canvas[..., top : top + side, left : left + side]
        for top in range(0, tall, side)
        for left in range(0, wide, side)
    ]


# ------------------------------------------------------------------ LLaVA


def on_canvas(picture: Tensor, size: Size, options: Options) -> Tensor:
    """Resized into a canvas, and padded around the centre with black."""
    inner = grids.inside_canvas(*sides(picture), size)
    return pad_to(resample(picture, inner, options), size, "center")


def llava(picture: Tensor, options: Options) -> Tensor:
    """LLaVA-NeXT: the whole picture squeezed, then the tiles; each is resized and cropped again.

    Of prompts of several images LLaVA-OneVision makes one view each, padded to a square.
    """
    if options.get("neighbours", 1) != 1 and options.get("squares_several"):
        picture = pad_square(picture, {**options, "do_pad": True})
        return join(resized_and_cropped(picture, options))
    size, inner = options["size"], options.get("crop_size") or {}
    edge = size.get("shortest_edge")
    whole = resample(picture, (size.get("height") or edge, size.get("width") or edge), options)
    best = grids.most_used(*sides(picture), options["image_grid_pinpoints"])
    side = inner.get("height") or size.get("height") or edge
    tiles = squares(on_canvas(picture, best, options), side)
    return join(*(by_tile(resized_and_cropped, part, options) for part in (whole, *tiles)))


def resized_and_cropped(picture: Tensor, options: Options) -> Tensor:
    return crop(resize(picture, options), options)


def aria(picture: Tensor, options: Options) -> Tensor:
    """Aria: LLaVA's tiles, without the whole picture; each is padded below and on the right."""
    side, parts = options["max_image_size"], [picture]
    if options["split_image"]:
        best = grids.most_used(*sides(picture), options["split_resolutions"])
        parts = squares(on_canvas(picture, best, options), side)
    pictures = [by_tile(on_square, part, options) for part in parts]
    return join(*pictures) if options["split_image"] else pictures[0]


def on_square(picture: Tensor, options: Options) -> Tensor:
    """Aria: resized by the longer side, on a black square, below and on the right."""
    side, size = options["max_image_size"], long_at_least(*sides(picture), options)
    return pad_to(resample(picture, size, options), (side, side))


# ------------------------------------------------------------------ Llama


def llama(picture: Tensor, options: Options) -> Tensor:
    """Llama 4 and Mllama: on black, below and on the right; Llama 4's whole picture is last."""
    side, of_llama4 = options["size"]["height"], "max_patches" in options
    grid = (grids.grid_of_llama4 if of_llama4 else grids.grid_of_mllama)(*sides(picture), options)
    inner = (grids.size_of_llama4 if of_llama4 else grids.size_of_mllama)(*sides(picture), options)
    canvas = pad_to(resample(picture, inner, options), (grid[0] * side, grid[1] * side))
    tiles = cut(canvas, grid)
    if of_llama4 and math.prod(grid) > 1:
        return join(tiles, resample(picture, (side, side), options))
    return tiles


def brain_floats(picture: Tensor, options: Options) -> Tensor:
    """Llama 4: rescaled and normalised in bfloat16; of floats, the gradient, in their type."""
    if not (options.get("do_rescale") and options.get("do_normalize")):
        return values(picture, options)
    factor = options["rescale_factor"]
    if picture.is_floating_point():
        return normalize(picture * factor, options)
    mean, std = (_round(columns(options[key], picture)) for key in ("image_mean", "image_std"))
    return _round(_round(_round(picture.float() * factor) - mean) / std)


def _round(floats: Tensor) -> Tensor:
    """float32 rounded to bfloat16, (...): onnxruntime has no product or quotient of bfloat16."""
    return floats.bfloat16().float()


def fill_tiles(tiles: Tensor, options: Options) -> Tensor:
    """Mllama: zeros up to its number of tiles, after normalising."""
    return fill(tiles, options["max_image_tiles"])


def fill(tiles: Tensor, count: int, dim: int = 1) -> Tensor:
    """Zeros after the tiles, up to `count` of them; never fewer than there are."""
    rest = max(count - tiles.shape[dim], 0)
    return F.pad(tiles, (0, 0) * (tiles.ndim - dim - 1) + (0, rest)) if rest else tiles


# ------------------------------------------------------------------ the nearest aspect


def squeeze(picture: Tensor, grid: grids.Grid, tile: Size, options: Options) -> Tensor:
    """The picture squeezed into a grid of tiles, and cut."""
    return cut(resample(picture, (grid[0] * tile[0], grid[1] * tile[1]), options), grid)


def and_whole(tiles: Tensor, picture: Tensor, tile: Size, options: Options) -> Tensor:
    """After several tiles (N, tiles, C, h, w), the picture (N, C, H, W) squeezed into one."""
    return join(tiles, resample(picture, tile, options)) if tiles.shape[1] > 1 else tiles


def by_rule(picture: Tensor, options: Options) -> Tensor:
    """GotOcr2, Cohere 2 Vision, GraniteDocling: the tiles of the kind's grid, the whole last."""
    if not options["crop_to_patches"] and not options.get("always_tiles"):
        return resize(picture, options)
    tile, grid = grids.tile_of(options), options["grid"](*sides(picture), options)
    return and_whole(squeeze(picture, grid, tile, options), picture, tile, options)


def got(picture: Tensor, options: Options) -> Tensor:
    """GotOcr2: its Pillow version makes no tiles if at most one is allowed."""
    if options["library"] == "pillow" and options["max_patches"] <= 1:
        pictures = resize(picture, options)
        return join(pictures) if options["crop_to_patches"] else pictures
    return by_rule(picture, options)


def ovis(picture: Tensor, options: Options) -> Tensor:
    """Ovis 2: the whole picture is first."""
    if not options["crop_to_patches"]:
        return resize(picture, options)
    parts = join(picture)
    if options["max_patches"] > 1:
        tile, grid = grids.tile_of(options), grids.grid_of_ovis(*sides(picture), options)
        parts = squeeze(picture, grid, tile, options)
        if math.prod(grid) > 1:
            parts = join(resample(picture, tile, options), parts)
    return by_tile(resize, parts, options)


def deepseek_whole(picture: Tensor, options: Options) -> Tensor:
    """DeepSeek-OCR 2 and UnlimitedOcr: the whole picture on grey, or squeezed if it is small."""
    side = max(options["size"].values())
    if not options["crop_to_patches"]:
        if "maximum_pad_value" not in options:
            side = options["tile_size"]
        elif side <= options["maximum_pad_value"]:
            return resample(picture, (side, side), options)
    height, width = sides(picture)
    scale = side / max(height, width)
    inner = resample(picture, (round(height * scale), round(width * scale)), options)
    size = max(sides(inner))
    return pad_to(inner, (size, size), "center", options["background_color"])


def deepseek_local(picture: Tensor, options: Options) -> Tensor:
    """Their tiles, if a picture is larger than one: none for others."""
    side, (height, width) = options["tile_size"], sides(picture)
    if not has_local_tiles(height, width, options):
        return picture.new_zeros((picture.shape[0], 0, picture.shape[1], side, side))
    grid = grid_of_deepseek(height, width, options)
    return squeeze(picture, grid, (side, side), options)


def has_local_tiles(height: int, width: int, options: Options) -> bool:
    return options["crop_to_patches"] and max(height, width) > options["tile_size"]


def grid_of_deepseek(height: int, width: int, options: Options) -> grids.Grid:
    tile, least, most = options["tile_size"], options["min_patches"], options["max_patches"]
    return grids.nearest_aspect(height, width, (tile, tile), least, most)


def perception(picture: Tensor, options: Options) -> Tensor:
    """PerceptionLM: the whole picture is first, then the tiles, if there are several."""
    if not options["do_resize"]:
        return join(picture)
    tile = options["tile_size"], options["tile_size"]
    whole = resample(picture, tile, options)
    if options["vision_input_type"] != "thumb+tile":
        return join(whole)
    grid = grids.grid_of_perception(*sides(picture), options)
    return join(whole, squeeze(picture, grid, tile, options))


# ------------------------------------------------------------------ Idefics, Gemma, EoMT


def idefics3(picture: Tensor, options: Options) -> Tensor:
    """Idefics3: the long side to `size`, up to whole tiles, cut; the whole picture is last."""
    side = options["max_image_size"]["longest_edge"]
    size = idefics_size(*sides(picture), options)
    picture = resample(picture, size, options)
    if not options["do_image_splitting"]:
        return resample(picture, (side, side), options)
    grid = grids.grid_of_idefics(*size, side)
    enlarged = resample(picture, (grid[0] * side, grid[1] * side), options)
    if max(grid) == 1:
        return join(enlarged)
    return join(cut(enlarged, grid), resample(enlarged, (side, side), options))


def idefics_size(height: int, width: int, options: Options) -> Size:
    """The first size: the long side to `size`; with `max_image_tiles`, as many tiles less as it
    takes to be within them."""
    if not options.get("do_resize", True):
        return height, width
    long, side = options["size"]["longest_edge"], options["max_image_size"]["longest_edge"]
    most = options.get("max_image_tiles")

    def sized(long: int) -> Size:
        return long_even(height, width, {"size": {"longest_edge": long}})

    while most and options["do_image_splitting"] and long > side:
        if math.prod(grids.grid_of_idefics(*sized(long), side)) <= most:
            break
        long -= side
    return sized(long)


def gemma3(picture: Tensor, options: Options) -> Tensor:
    """Gemma 3: the whole picture, then crops along the longer side, each squeezed."""
    if not options.get("do_pan_and_scan"):
        return resize(picture, options)
    spans, (height, width) = pan_and_scan(*sides(picture), options), sides(picture)
    if width >= height:
        crops = [picture[..., first:last] for first, last in spans]
    else:
        crops = [picture[..., first:last, :] for first, last in spans]
    always = options["library"] == "torchvision"  # whatever do_resize says
    sized = {**options, "do_resize": always or options["do_resize"]}
    return join(*(resize(part, sized) for part in (picture, *crops)))


def pan_and_scan(height: int, width: int, options: Options) -> list[tuple[int, int]]:
    """Where Gemma 3's crops begin and end along the longer side; the last one is smaller."""
    lowest, long, short = (
        options["pan_and_scan_min_crop_size"],
        max(height, width),
        min(height, width),
    )
    if long / short < options["pan_and_scan_min_ratio_to_activate"]:
        return []
    count = min(math.floor(long / lowest), math.floor(long / short + 0.5))
    count = min(options["pan_and_scan_max_num_crops"], max(2, count))
    length = math.ceil(long / count)
    if min(length, short) < lowest:
        return []
    return [(k * length, (k + 1) * length) for k in range(count)]


def eomt(picture: Tensor, options: Options) -> Tensor:
    """EoMT: overlapping squares along the longer side of the resized picture."""
    picture = resize(picture, options)
    if not options["do_split_image"]:
        return pad_edges(picture, options)
    (height, width), side = sides(picture), options["size"]["shortest_edge"]
    starts = split_starts(height, width, options)
    if height > width:
        parts = [picture[..., start : start + side, :] for start in starts]
    else:
        parts = [picture[..., start : start + side] for start in starts]
    return join(*(pad_edges(part, options) for part in parts))


def split_starts(height: int, width: int, options: Options) -> list[int]:
    """Where EoMT's squares begin, truncated."""
    side, long = options["size"]["shortest_edge"], max(height, width)
    count = math.ceil(long / side)
    overlap = (count * side - long) / (count - 1) if count > 1 else 0
    return [int(k * (side - overlap)) for k in range(count)]
