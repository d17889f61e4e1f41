"""What image processors return for a call: `output(pixels, call, options) -> dict`.

A kind's outputs are a tuple of these functions. `pixels` has the pixels of each image, without a
batch axis, by the name of its program. Everything else is computed from sizes alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from warpkit.attacks.processors.calls import Call
from warpkit.attacks.processors.operations import pad_to
from warpkit.attacks.processors.patches import grid_of_squares
from warpkit.attacks.processors.searched_sizes import canvas_of_glm5, part_of_long_edge
from warpkit.attacks.processors.sizes import Options, Size, by_keys, up_to

PIXELS = "pixel_values"

Pixels = Mapping[str, Sequence[Tensor]]
Output = Callable[[Pixels, Call, Options], dict[str, Any]]

# ------------------------------------------------------------------ pixels


def batch(parts: Sequence[Tensor]) -> Tensor | list[Tensor]:
    """(...) of each image as (N, ...); a list if their shapes differ."""
    parts = list(parts)
    return torch.stack(parts) if len({part.shape for part in parts}) == 1 else parts


def stacked(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """Every program's pixels, with a batch axis."""
    return {name: batch(parts) for name, parts in pixels.items()}


def concatenated(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """The rows of patches, or the tiles, of all images."""
    return {PIXELS: torch.cat(list(pixels[PIXELS]))}


def padded(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """With do_pad, each picture is padded to the largest of the call, below and on the right."""
    parts = pixels[PIXELS]
    return {PIXELS: batch(fitted(parts) if options.get("do_pad") else parts)}


def fitted(parts: Sequence[Tensor]) -> list[Tensor]:
    """(C, h, w) each, padded with 0 to the largest height and width."""
    size = largest([(part.shape[-2], part.shape[-1]) for part in parts])
    return [pad_to(part[None], size)[0] for part in parts]


def frames(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """Kinds that take a video: a list of images is one video (1, frames, C, h, w)."""
    images = batch(pixels[PIXELS])
    return {PIXELS: images[None] if isinstance(images, Tensor) else [images]}


def of_fuyu(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """Fuyu: each image is a list of one, and so is what is known of it."""
    inner = resized_sizes(call, options)
    scales = [[new[0] / old[0]] for new, old in zip(inner, call.sizes, strict=True)]
    return {
        "images": batch([part[None] for part in pixels[PIXELS]]),
        "image_unpadded_heights": call.numbers([[height] for height, _ in inner]),
        "image_unpadded_widths": call.numbers([[width] for _, width in inner]),
        "image_scale_factors": call.numbers(scales, torch.float32),
        "image_sizes": call.numbers(call.sizes),
    }


def of_video_llava(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    return {"pixel_values_images": batch(pixels[PIXELS])}


def of_uvdoc(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """UVDoc: the pictures at their own sizes remain a list."""
    return {PIXELS: batch(pixels[PIXELS]), "original_images": list(pixels["original_images"])}


# ------------------------------------------------------------------ sizes


def largest(sizes: Sequence[Size]) -> Size:
    heights, widths = zip(*sizes, strict=True)
    return max(heights), max(widths)


def resized(height: int, width: int, options: Options) -> Size:
    """The size of a picture after the resize of its kind."""
    if not options.get("do_resize", True):
        return height, width
    return options.get("rule", by_keys)(height, width, options)


def resized_sizes(call: Call, options: Options) -> list[Size]:
    return [resized(height, width, options) for height, width in call.sizes]


def original_sizes(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    return {"original_sizes": call.numbers(call.sizes)}


def reshaped_sizes(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """SAM: the sizes before padding."""
    return {"reshaped_input_sizes": call.numbers(resized_sizes(call, options))}


def image_sizes(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """The images' own sizes."""
    return {"image_sizes": call.numbers(call.sizes)}


def resized_image_sizes(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """Pixtral and Emu3: the sizes before padding."""
    return {"image_sizes": call.numbers(resized_sizes(call, options))}


def target_sizes(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """PP-OCR's detector: the images' own sizes as floats, if it resizes; a list if pixels are."""
    if not options.get("do_resize", True):
        return {"target_sizes": []}
    sizes = call.numbers(call.sizes, torch.float32)
    one = len({part.shape for part in pixels[PIXELS]}) == 1
    return {"target_sizes": sizes if one else list(sizes)}


def pixel_mask(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """DETR: 1 where a padded picture is, 0 beside it; only with do_pad."""
    if not options.get("do_pad"):
        return {}
    inner = [_framed(size, options) for size in resized_sizes(call, options)]
    limits = options.get("pad_size")
    size = (limits["height"], limits["width"]) if limits else largest(inner)
    ones = [torch.ones(1, 1, *part, dtype=torch.int64, device=call.device) for part in inner]
    return {"pixel_mask": torch.cat([pad_to(one, size)[0] for one in ones])}


def _framed(size: Size, options: Options) -> Size:
    """BridgeTower crops before it pads."""
    if not (options.get("crops") and options.get("do_center_crop")):
        return size
    side = options["crop_size"]["shortest_edge"]
    return side, side


# ------------------------------------------------------------------ grids of patches


def grid_sizes(call: Call, options: Options) -> list[Size]:
    """Rows and columns of patches of each image."""
    patch, rounds_up = options["patch_size"], options.get("rounds_up")
    sizes = resized_sizes(call, options)
    if rounds_up:
        sizes = [up_to(size, patch * options.get("merge_size", 1)) for size in sizes]
    return [(height // patch, width // patch) for height, width in sizes]


def grid_thw(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """Qwen2-VL: frames, rows and columns of each image."""
    return {"image_grid_thw": call.numbers([(1, *grid) for grid in grid_sizes(call, options)])}


def grid_hw(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """NeoMME and Nemotron-H: rows and columns of each image."""
    return {"image_grid_hw": call.numbers(grid_sizes(call, options))}


def grid_of_glm5(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """GLM-5: the grid of its canvas."""
    sizes = call.sizes
    if options["do_resize"]:
        sizes = [canvas_of_glm5(height, width, options) for height, width in sizes]
    patch = options["patch_size"]
    grids = [(1, height // patch, width // patch) for height, width in sizes]
    return {"image_grid_thw": call.numbers(grids)}


def squares(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """Inkling: the number of squares, or, without frames, their grid."""
    result = concatenated(pixels, call, options)
    if options.get("frames"):
        return {**result, "num_patches": call.numbers([len(part) for part in pixels[PIXELS]])}
    sizes = [part_of_long_edge(height, width, options) for height, width in call.sizes]
    grids = [(1, *grid_of_squares(height, width, options)) for height, width in sizes]
    return {**result, "image_grid_thw": call.numbers(grids)}


def merge_sizes(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    return {"image_merge_sizes": call.numbers([options["merge_size"]] * len(call.sizes))}


def spatial_shapes(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """Siglip 2: rows and columns, and a mask of the patches that are there."""
    grids = grid_sizes(call, options)
    most = pixels[PIXELS][0].shape[0]
    masks = count_mask([rows * columns for rows, columns in grids], most, call, torch.int32)
    return {"pixel_attention_mask": masks, "spatial_shapes": call.numbers(grids)}


def count_mask(counts: Sequence[int], most: int, call: Call, dtype: torch.dtype) -> Tensor:
    """(N, most): 1 for the first of them, as many as there are, 0 for the rest."""
    places = torch.arange(most, device=call.device)
    return (places < call.numbers(counts)[:, None]).to(dtype)


def positions(pixels: Pixels, call: Call, options: Options) -> dict[str, Any]:
    """Gemma 4: column and row of each patch, -1 for those that fill up; and the tokens."""
    pool, is_merged = options["pooling_kernel_size"], options.get("merges_pixels")
    patch = options["patch_size"] * (pool if is_merged else 1)
    ids, counts = [], []
    for size, part in zip(resized_sizes(call, options), pixels[PIXELS], strict=True):
        rows, columns = (side // patch for side in size)
        at = torch.arange(rows * columns, device=call.device)
        places = torch.stack([at % columns, at // columns], -1)
        ids.append(F.pad(places, (0, 0, 0, part.shape[0] - len(at)), value=-1))
        counts.append(len(at) if is_merged else len(at) // pool**2)
    return {
        "image_position_ids": torch.stack(ids),
        "num_soft_tokens_per_image": call.numbers(counts),
    }
