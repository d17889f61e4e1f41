"""Target sizes of image processors that return patches: a number of whole patches."""

from __future__ import annotations

import math
from collections.abc import Mapping

from warpkit.attacks.processors.sizes import Options, Size
from warpkit.core import checks


def whole_patches(height: int, width: int, options: Options) -> Size:
    """Pixtral: never larger than `size`, truncated, then rounded up to whole patches."""
    size, patch = options["size"], options["patch_size"]
    side = size.get("longest_edge")
    limits = (side, side) if side else (size["height"], size["width"])
    if not isinstance(patch, Mapping):
        patch = {"height": patch, "width": patch}
    ratio = max(height / limits[0], width / limits[1])
    if ratio > 1:
        height, width = math.floor(height / ratio), math.floor(width / ratio)
    rows, columns = math.ceil(height / patch["height"]), math.ceil(width / patch["width"])
    return rows * patch["height"], columns * patch["width"]


def pixel_count(height: int, width: int, options: Options) -> Size:
    """Qwen2-VL: multiples of patch x merge, with the number of pixels between two bounds."""
    size, frames = options["size"], 1
    factor = options.get("spatial_factor") or options["patch_size"] * options["merge_size"]
    lowest, highest = (size.get(key) for key in ("min_pixels", "max_pixels"))
    if lowest is None:
        lowest, highest = size["shortest_edge"], size["longest_edge"]
    if options.get("counts_frames"):  # GLM-4V: bounds on pixels x frames; small pictures grow first
        frames = options["temporal_patch_size"]
        if height < factor or width < factor:
            scale = max(factor / height, factor / width)
            height, width = int(height * scale), int(width * scale)
    if options.get("grows_first"):  # PaddleOCR-VL
        if height < factor:
            height, width = factor, round(width * factor / height)
        if width < factor:
            height, width = round(height * factor / width), factor
    _check_aspect(height, width, options)
    tall, wide = round(height / factor) * factor, round(width / factor) * factor
    if frames * tall * wide > highest:
        beta = math.sqrt(frames * height * width / highest)
        tall, wide = (math.floor(v / beta / factor) * factor for v in (height, width))
        return max(factor, tall), max(factor, wide)
    if frames * tall * wide < lowest:
        beta = math.sqrt(lowest / (frames * height * width))
        return math.ceil(height * beta / factor) * factor, math.ceil(width * beta / factor) * factor
    return tall, wide


def _check_aspect(height: int, width: int, options: Options) -> None:
    """Some kinds refuse long pictures."""
    highest = options["highest_aspect"]
    if max(height, width) / min(height, width) > highest:
        wanted = f"of an aspect of at most {highest}, as {options['name']} demands"
        checks.fail("from_processor", "images", wanted, f"{height} x {width}")


def within_square_roots(height: int, width: int, options: Options) -> Size:
    """GLM-Image: half the size, sides between the roots of the two numbers of pixels."""
    factor = options["patch_size"] * options["merge_size"]
    if min(height, width) < factor:
        wanted = f"at least {factor} pixels high and wide for {options['name']}"
        checks.fail("from_processor", "images", wanted, f"{height} x {width}")
    _check_aspect(height, width, options)
    lowest, highest = (
        round(math.sqrt(options["size"][k])) for k in ("shortest_edge", "longest_edge")
    )
    scale = lowest / min(height, width) if min(height, width) < lowest else 1.0
    if max(height, width) * scale > highest:
        scale = highest / max(height, width)
    tall, wide = (max(factor, round(v // 2 * scale / factor) * factor) for v in (height, width))
    if max(tall, wide) > highest:
        beta = max(tall, wide) / highest
        tall, wide = (max(factor, math.floor(v / beta / factor) * factor) for v in (tall, wide))
    return tall, wide


def nearest_grid(height: int, width: int, options: Options) -> Size:
    """Muse: the floor or ceiling of the ideal grid, whichever is nearest to the aspect."""
    step, highest = options["patch_size"] * options["merge_size"], options["max_image_tokens"]
    rows, columns = height / step, width / step
    if rows * columns > highest:
        ratio = columns / rows
        rows = (highest / ratio) ** 0.5
        columns = rows * ratio
    whole = (math.floor, math.ceil)
    grids = {(a(rows), b(columns)) for a in whole for b in whole}
    fitting = [g for g in grids if min(g) >= 1 and g[0] * g[1] <= highest]
    fitting = fitting or [(max(1, round(rows)), max(1, round(columns)))]
    tall, wide = min(fitting, key=lambda g: abs(g[0] / g[1] - height / width))
    return tall * step, wide * step


def patch_count_cut(height: int, width: int, options: Options) -> Size:
    """Kimi: never larger, truncated; padding completes the multiple later."""
    patch = options["patch_size"]
    highest = options["size"]["max_height"] * patch
    patches = max(1.0, height // patch) * max(1.0, width // patch)
    scale = min(1.0, math.sqrt(options["max_patches"] / patches), highest / height, highest / width)
    return min(max(1, int(height * scale)), highest), min(max(1, int(width * scale)), highest)


def patch_count_halving(height: int, width: int, options: Options) -> Size:
    """Siglip 2: the largest scale, found by bisection, that does not make too many patches."""
    patch, highest = options["patch_size"], options["max_num_patches"]

    def scaled(scale: float) -> Size:
        tall, wide = (math.ceil(v * scale / patch) * patch for v in (height, width))
        return max(patch, tall), max(patch, wide)

    low, high = 1e-5 / 10, 100.0
    while high - low >= 1e-5:
        middle = (low + high) / 2
        tall, wide = scaled(middle)
        if tall / patch * (wide / patch) <= highest:
            low = middle
        else:
            high = middle
    return scaled(low)


def patch_count_floor(height: int, width: int, options: Options) -> Size:
    """Gemma 4: the ideal sides rounded down, never with more tokens than the limit."""
    step = options["patch_size"] * options["pooling_kernel_size"]
    highest = options["max_soft_tokens"]
    scale = math.sqrt(highest * step**2 / (height * width))
    tall, wide = math.floor(scale * height / step) * step, math.floor(scale * width / step) * step
    if tall == 0:
        return step, min(width // height * step, highest * step)
    if wide == 0:
        return min(height // width * step, highest * step), step
    return tall, wide


def lfm2_size(height: int, width: int, options: Options) -> Size:
    """LFM2-VL: as Qwen2-VL, with at least one block a side, and numbers of tokens as bounds."""
    block = options["encoder_patch_size"] * options["downsample_factor"]
    lowest, highest = (options[f"{k}_image_tokens"] * block**2 for k in ("min", "max"))
    tall, wide = (max(block, round(n / block) * block) for n in (height, width))
    if tall * wide > highest:
        beta = math.sqrt(height * width / highest)
        tall, wide = (max(block, math.floor(n / beta / block) * block) for n in (height, width))
    elif tall * wide < lowest:
        beta = math.sqrt(lowest / (height * width))
        tall, wide = (math.ceil(n * beta / block) * block for n in (height, width))
    return tall, wide
