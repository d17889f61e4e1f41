"""What image processors that make tiles return for a call, as in `outputs`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from warpkit.attacks.processors import grids, own_order, tiles
from warpkit.attacks.processors.calls import Call
from warpkit.attacks.processors.operations import pad_to
from warpkit.attacks.processors.outputs import PIXELS, Pixels, batch, count_mask, largest, resized
from warpkit.attacks.processors.sizes import Options, Size, long_at_least


def tiles_of(part: Tensor) -> Tensor:
    """The tiles (tiles, C, h, w) of an image; a picture (C, h, w) is one."""
    return part[None] if part.ndim == 3 else part


def counts(pixels: Pixels) -> list[int]:
    """The number of tiles of each image."""
    return [len(tiles_of(part)) for part in pixels[PIXELS]]


def filled_batch(parts: Sequence[Tensor]) -> Tensor:
    """(tiles, ...) of each as (N, most tiles, ...), filled up with 0."""
    most = max(map(len, parts))
    return torch.stack([tiles.fill(part, most, 0) for part in parts])


def concatenated(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """The tiles of all images."""
    return {PIXELS: torch.cat([tiles_of(part) for part in pixels[PIXELS]])}


def num_patches(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    return {"num_patches": call.numbers(counts(pixels))}


def num_crops(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """Gemma 3: the crops beside the whole picture."""
    return {"num_crops": call.numbers([count - 1 for count in counts(pixels)])}


def most_crops(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """Aria: one number, and a mask of each tile's picture."""
    masks, side = [], options["max_image_size"]
    for (height, width), part in zip(call.sizes, pixels[PIXELS], strict=True):
        inner = [(height, width)]
        if options["split_image"]:
            tall, wide = grids.most_used(height, width, options["split_resolutions"])
            inner = [
                (min(side, tall - top), min(side, wide - left))
                for top in range(0, tall, side)
                for left in range(0, wide, side)
            ]
        assert len(inner) == len(tiles_of(part))
        for size in inner:
            ones = call.ones(1, 1, *long_at_least(*size, options))
            masks.append(pad_to(ones, (side, side))[0, 0].bool())
    return {"pixel_mask": torch.stack(masks), "num_crops": call.numbers(max(counts(pixels)))}


def filled_up(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """LLaVA-NeXT: zeros up to the most tiles of the call, after normalising."""
    parts = pixels[PIXELS]
    return {PIXELS: filled_batch(parts) if options.get("do_pad", True) else batch(parts)}


def images_of_prompts(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """LLaVA-OneVision: how many images each prompt has."""
    return {"batch_num_images": call.numbers(call.prompts or [1] * len(call.sizes))}


def aspect_ratios(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """Llama 4: rows and columns of tiles."""
    ratios = [grids.grid_of_llama4(height, width, options) for height, width in call.sizes]
    return {"aspect_ratios": call.numbers(ratios)}


def of_mllama(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """Mllama: (prompts, most images, tiles, C, t, t), the number of each grid, a mask of tiles."""
    most = options["max_image_tiles"]
    arrangements = grids.grids_within(most)
    aspects = [grids.grid_of_mllama(height, width, options) for height, width in call.sizes]
    groups = call.by_prompt(aspects)
    longest = max(map(len, groups))
    ids = call.numbers([[0] * longest] * len(groups))
    mask = call.numbers([[[1] + [0] * (most - 1)] * longest] * len(groups))  # 1 of no image, too
    for i, group in enumerate(groups):
        for j, (rows, columns) in enumerate(group):
            ids[i, j] = arrangements.index((rows, columns)) + 1
            mask[i, j, : rows * columns] = 1
    parts = [torch.stack(group) for group in call.by_prompt(list(pixels[PIXELS]))]
    return {
        PIXELS: filled_batch(parts),
        "aspect_ratio_ids": ids,
        "aspect_ratio_mask": mask,
        "num_tiles": [[rows * columns for rows, columns in group] for group in groups],
    }


def grids_of_ovis(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """Ovis 2: rows and columns of tiles."""
    if not options["crop_to_patches"] or options["max_patches"] <= 1:
        return {"grids": call.numbers([(1, 1)] * len(call.sizes))}
    tile_grids = [grids.grid_of_ovis(height, width, options) for height, width in call.sizes]
    return {"grids": call.numbers(tile_grids)}


def by_prompt(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """Idefics3 and GraniteDocling: the tiles of each prompt, filled up with 0."""
    return {PIXELS: filled_batch(_tiles_by_prompt(pixels, call))}


def _tiles_by_prompt(pixels: Pixels, call: Call) -> list[Tensor]:
    groups = call.by_prompt([tiles_of(part) for part in pixels[PIXELS]])
    return [torch.cat(group) for group in groups]


def of_idefics3(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """Idefics3: a mask of each tile's pixels, all or none; and the grids, if they are asked for."""
    result: dict[str, Any] = {}
    if options.get("do_pad"):
        parts = _tiles_by_prompt(pixels, call)
        masks = count_mask([len(part) for part in parts], max(map(len, parts)), call, torch.int64)
        size = parts[0].shape[-2:]
        result["pixel_attention_mask"] = masks[:, :, None, None].expand(-1, -1, *size).contiguous()
    if options.get("return_row_col_info"):
        tile_grids = [_grid_of_idefics(height, width, options) for height, width in call.sizes]
        result |= _rows_and_columns(tile_grids, call)
    return result


def _grid_of_idefics(height: int, width: int, options: Options) -> grids.Grid:
    """(0, 0) of a picture that is not split."""
    if not options["do_image_splitting"]:
        return 0, 0
    size = tiles.idefics_size(height, width, options)
    grid = grids.grid_of_idefics(*size, options["max_image_size"]["longest_edge"])
    return grid if max(grid) > 1 else (0, 0)


def _rows_and_columns(tile_grids: list[grids.Grid], call: Call) -> dict[str, Any]:
    """The grids as two lists of a list for each prompt."""
    groups = call.by_prompt(tile_grids)
    rows, columns = ([[grid[k] for grid in group] for group in groups] for k in (0, 1))
    return {"rows": rows, "cols": columns}


def of_granite(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """GraniteDocling: a mask of tiles, and the grids."""
    parts = _tiles_by_prompt(pixels, call)
    result: dict[str, Any] = {}
    lengths = [len(part) for part in parts]
    result["pixel_attention_mask"] = count_mask(lengths, max(lengths), call, torch.bool)
    if options["fine_route"]:
        ones = torch.ones(len(parts), dtype=torch.bool, device=call.device)
        result["tile_fine_mask"] = ones
    tile_grids = [grids.grid_of_granite(height, width, options) for height, width in call.sizes]
    return result | _rows_and_columns(tile_grids, call)


def of_idefics2(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """Idefics2: the parts of each prompt, padded to the call's largest, and where they are."""
    groups = call.by_prompt(list(zip(call.sizes, pixels[PIXELS], strict=True)))
    parts, sizes = [], []
    for group in groups:
        parts.append([tile for _, part in group for tile in tiles_of(part)])
        inner = (own_order.parts_of_idefics2(h, w, options) for (h, w), _ in group)
        sizes.append(list(chain.from_iterable(inner)))
    if not options.get("do_pad"):
        cropped = [
            [tile[..., : size[0], : size[1]] for tile, size in zip(*pair, strict=True)]
            for pair in zip(parts, sizes, strict=True)
        ]
        prompts = [batch(group) for group in cropped]
        whole = all(isinstance(part, Tensor) for part in prompts)
        return {PIXELS: batch(prompts) if whole else prompts}  # pyright: ignore
    size = largest(list(chain.from_iterable(sizes)))
    pictures = [torch.cat([pad_to(tile[None], size) for tile in group]) for group in parts]
    masks = [torch.cat([_ones(inner, size, call) for inner in group]) for group in sizes]
    return {PIXELS: filled_batch(pictures), "pixel_attention_mask": filled_batch(masks)}


def _ones(inner: Size, size: Size, call: Call) -> Tensor:
    """(1, h, w): 1 where a padded picture is."""
    ones = torch.ones(1, 1, *inner, dtype=torch.int64, device=call.device)
    return pad_to(ones, size)[0]


def of_eomt(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """EoMT: all squares, and the image, beginning and end of each."""
    parts = list(chain.from_iterable(tiles_of(part) for part in pixels[PIXELS]))
    offsets = []
    if options["do_split_image"]:
        side = options["size"]["shortest_edge"]
        for number, size in enumerate(call.sizes):
            height, width = resized(*size, options)
            starts = tiles.split_starts(height, width, options)
            offsets += [call.numbers([number, start, start + side]) for start in starts]
    return {PIXELS: batch(parts), "patch_offsets": offsets}


def of_deepseek(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """DeepSeek-OCR 2: the local tiles of all images, if there are any, and their numbers."""
    result: dict[str, Any] = {PIXELS: batch(pixels[PIXELS])}
    lengths = [len(part) for part in pixels["pixel_values_local"]]
    if any(lengths):
        result["pixel_values_local"] = torch.cat(list(pixels["pixel_values_local"]))
    return {**result, "num_local_patches": call.numbers(lengths)}


def of_unlimited(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """UnlimitedOcr: the same with lists, and columns and rows."""
    patch_grids = []
    for height, width in call.sizes:
        rows, columns = 1, 1
        if tiles.has_local_tiles(height, width, options):
            rows, columns = tiles.grid_of_deepseek(height, width, options)
        patch_grids.append([columns, rows])
    lengths = [len(part) for part in pixels["pixel_values_local"]]
    result = of_deepseek(pixels, call, options)
    return {**result, "num_local_patches": lengths, "patches_grid": patch_grids}


def of_phi4(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """Phi-4: which patches show the picture, whole canvases' sizes, and the number of tokens."""
    side, patch, sizes, masks, tokens = options["size"]["height"], options["patch_size"], [], [], []
    count = side // patch
    for height, width in call.sizes:
        rows, columns = own_order.grid_of_phi4(height, width, options)
        inner = own_order.size_of_phi4(height, width, options)
        below, right = (
            (n * side - v) // patch for n, v in zip((rows, columns), inner, strict=True)
        )
        visible = call.ones(rows * count - below, columns * count - right)
        mask = F.pad(visible, (0, right, 0, below))
        parts = tiles.cut(mask[None, None], (rows, columns))[0, :, 0]
        masks.append(torch.cat([call.ones(1, count, count), parts]))
        sizes.append((rows * side, columns * side))
        halved = parts[:, ::2, ::2].unflatten(0, (rows, columns)).transpose(1, 2).flatten(2)
        lines = halved.flatten(0, 1)
        tokens.append(256 + 1 + int(lines.sum()) + int(lines[:, 0].sum()) + 16)
    most = max(map(len, masks))
    missing = [F.pad(mask, (0, 0, 0, 0, 0, most - len(mask)), value=1) for mask in masks]
    return {
        "image_pixel_values": filled_batch(pixels[PIXELS]),
        "image_sizes": call.numbers(sizes),
        "image_attention_mask": torch.stack(missing),
        "num_img_tokens": call.numbers(tokens),
    }


def of_minicpm(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """MiniCPM-V: rows and columns of patches of each view, and the grids of slices."""
    shapes, tile_grids, lengths, patch = [], [], [], options["patch_size"]
    for height, width in call.sizes:
        whole, part, grid = own_order.sizes_of_minicpm(height, width, options)
        views = [whole] + [part] * (grid[0] * grid[1] if grid else 0)
        shapes += [(tall // patch, wide // patch) for tall, wide in views]
        lengths.append(len(views))
        tile_grids.append(list(grid or (0, 0)))
    return {
        PIXELS: torch.cat(list(pixels[PIXELS]), -1)[None],
        "target_sizes": call.numbers(shapes, torch.int32),
        "grids": tile_grids,
        "num_patches_per_image": lengths,
    }


def of_molmo2(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """Molmo 2: which patches are pooled to a token, of the whole picture, then of the canvas."""
    side = options["size"]["height"] // options["patch_size"]
    pool, pools, image_grids, start = options["pooling_size"], [], [], 0
    for size, part in zip(call.sizes, pixels[PIXELS], strict=True):
        whole = torch.arange(side * side, device=call.device).unflatten(0, (side, side))
        crops = _without_overlaps(own_order.tiling_of_molmo(*size, options), side, options, call)
        low, high = _pooled(whole, pool), _pooled(crops, pool)
        indices = torch.cat([low[0], torch.where(high[0] >= 0, high[0] + side * side, -1)])
        pools.append(torch.where(indices >= 0, indices + start, -1))
        image_grids.append(low[1] + high[1])
        start += len(part) * side * side
    return {
        PIXELS: torch.cat(list(pixels[PIXELS])),
        "image_token_pooling": torch.cat(pools).int(),
        "image_grids": call.numbers(image_grids),
        "image_num_crops": call.numbers([len(part) for part in pixels[PIXELS]]),
    }


def _without_overlaps(grid: grids.Grid, side: int, options: Options, call: Call) -> Tensor:
    """The indices of a canvas's patches (rows, columns): each from one of the crops it is in."""
    (rows, columns), (first, last) = grid, options["overlap_margins"]
    count = rows * columns * side * side
    at = torch.arange(count, device=call.device).reshape(rows, columns, side, side)
    at[1:, :, :first] = -1
    at[:, 1:, :, :first] = -1
    at[:-1, :, side - last :] = -1
    at[:, :-1, :, side - last :] = -1
    at = at.transpose(1, 2)
    positions = at[at >= 0]
    tall = rows * (side - first - last) + first + last
    return positions.unflatten(0, (tall, -1))


def _pooled(indices: Tensor, pool: Size) -> tuple[Tensor, grids.Grid]:
    """Windows of (rows, columns) of patches, -1 where there is none; an odd one is last."""
    rows, columns = (-n % step for n, step in zip(indices.shape, pool, strict=True))
    around = (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2)
    blocks = F.pad(indices, around, value=-1).unflatten(1, (-1, pool[1]))
    blocks = blocks.unflatten(0, (-1, pool[0])).transpose(1, 2)
    return blocks.flatten(2).flatten(0, 1), (blocks.shape[0], blocks.shape[1])


def of_lfm2(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """LFM2-VL: the rows of all views, which of them are there, and the grids."""
    patch, side = options["encoder_patch_size"], options["tile_size"]
    views: list[Tensor] = []
    shapes, tile_grids, wholes = [], [], []
    for size, part in zip(call.sizes, pixels[PIXELS], strict=True):
        here = list(part) if part.ndim == 3 else [part]
        grid = own_order.tiling_of_lfm2(*size, options)
        whole = own_order.lfm2_size(*size, options)
        tiles_here = [(side // patch, side // patch)] * (grid[0] * grid[1] if grid else 0)
        rest = [(whole[0] // patch, whole[1] // patch)] * (len(here) - len(tiles_here))
        views += here
        shapes += [*tiles_here, *rest]
        tile_grids.append(grid or (1, 1))
        wholes.append(list(whole))
    result: dict[str, Any] = {PIXELS: batch(views)}
    if options["do_pad"]:
        lengths, longest = [r * c for r, c in shapes], own_order.longest_of_lfm2(options)
        result["pixel_attention_mask"] = count_mask(lengths, longest, call, torch.int32)
        result["spatial_shapes"] = call.numbers(shapes)
    if options.get("return_row_col_info"):
        result["image_rows"] = call.numbers([grid[0] for grid in tile_grids])
        result["image_cols"] = call.numbers([grid[1] for grid in tile_grids])
        result["image_sizes"] = call.numbers(wholes)
    return result


def of_step3(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """Step 3: the local crops, if there are any, and which of them end a line."""
    local = list(pixels["pixel_values_local"])
    result: dict[str, Any] = {PIXELS: batch(pixels[PIXELS])}
    result["num_local_patches"] = call.numbers([len(part) for part in local])
    if not any(map(len, local)):
        return result
    most, lines = max(map(len, local)), []
    for size in call.sizes:
        rows, columns = own_order.step3_grid(*size, options)
        ends = [c == columns - 1 and r < rows - 1 for r in range(rows) for c in range(columns)]
        lines.append(ends + [False] * (most - len(ends)))
    return {**result, "pixel_values_local": torch.cat(local), "patch_newline_masks": lines}
