"""Target sizes of image processors that search for a number of whole patches."""

from __future__ import annotations

import math
from collections.abc import Sequence

from warpkit.attacks.processors.sizes import Options, Size, up_to


def patch_grid_of_nemotron(height: int, width: int, options: Options) -> Size:
    """Nemotron-H: the rounded grid, scaled to the budget of the call, in whole blocks of merging.

    Half of an even number is rounded down, so 3 patches count as 4, and 4 as 4.
    """
    patch, least = options["patch_size"], options["min_num_patches"]
    merge = round(1 / options["downsample_ratio"])
    most = max((options["max_model_len"] - 4) * merge**2, least * options.get("count", 1))
    most = max(min(most, options["max_num_patches"] or most), least)
    rows, columns = round(height / patch + 0.5), round(width / patch + 0.5)
    scale = min(math.sqrt(most / (rows * columns)), 1.0)
    rows, columns = math.floor(scale * rows), math.floor(scale * columns)
    if most > least and rows * columns < least:
        scale = math.sqrt(least / (rows * columns))
        rows, columns = math.ceil(scale * rows), math.ceil(scale * columns)
    rows = _whole_blocks(rows, columns, merge, most)
    columns = _whole_blocks(columns, rows, merge, most)
    return rows * patch, columns * patch


def _whole_blocks(count: int, other: int, merge: int, most: int) -> int:
    """Up to whole blocks where the budget allows it, otherwise down."""
    rest = count % merge
    if not rest:
        return count
    up = count + merge - rest
    return up if up * other <= most else max(merge, count - rest)


def number_of_images(sizes: Sequence[Size]) -> Options:
    """Nemotron-H's budget depends on the number of images of a call."""
    return {"count": len(sizes)}


def within_side_and_area(height: int, width: int, options: Options) -> Size:
    """NeoMME: limits of the longer side and of the area, which are optional."""
    side, size = options.get("max_side"), options.get("size") or {}
    least, most = size.get("min_pixels"), size.get("max_pixels")
    small, scale = least is not None and height * width < least, 1.0
    if least is not None and small:
        scale = (least / (height * width)) ** 0.5
    if side is not None:
        scale = min(scale, side / max(height, width))
    if most is not None:
        scale = min(scale, (most / (height * width)) ** 0.5)
    if scale == 1.0:
        return height, width

    def exceeds(tall: int, wide: int) -> bool:
        too_long = side is not None and max(tall, wide) > side
        return too_long or (most is not None and tall * wide > most)

    tall, wide = (max(1, round(n * scale)) for n in (height, width))
    if exceeds(tall, wide):
        tall, wide = (max(1, math.floor(n * scale)) for n in (height, width))
        if most is not None and tall * wide > most:
            if tall >= wide:
                return max(1, most // wide), wide
            return tall, max(1, most // tall)
        return tall, wide
    if least is not None and small and tall * wide < least:
        up = [max(1, math.ceil(n * scale)) for n in (height, width)]
        if not exceeds(*up):
            return up[0], up[1]
    return tall, wide


def canvas_of_glm5(height: int, width: int, options: Options) -> Size:
    """GLM-5: whole blocks, at least and at most a number of tokens.

    Above it, a bisection finds the largest height whose canvas is within.
    """
    frames, block, least, most = _limits_of_glm5(options)
    tall, wide = up_to((height, width), block)
    if frames * tall * wide < least:
        scale = math.sqrt(least / (frames * height * width))
        grown = max(1, math.ceil(height * scale)), max(1, math.ceil(width * scale))
        tall, wide = up_to(grown, block)
    if frames * tall * wide <= most:
        return tall, wide
    low, high, best = 1, height, (block, block)
    while low <= high:
        middle = (low + high) // 2
        size = up_to((middle, max(1, math.floor(width * middle / height))), block)
        if frames * size[0] * size[1] <= most:
            best, low = size, middle + 1
        else:
            high = middle - 1
    return best


def inside_glm5(height: int, width: int, options: Options) -> Size:
    """The picture's size on its canvas; enlarged only if it has too few pixels."""
    frames, _, least, _ = _limits_of_glm5(options)
    canvas = canvas_of_glm5(height, width, options)
    scale = min(canvas[0] / height, canvas[1] / width)
    if frames * height * width >= least:
        scale = min(1.0, scale)
    tall, wide = (
        max(1, min(limit, math.floor(n * scale)))
        for n, limit in zip((height, width), canvas, strict=True)
    )
    return tall, wide


def _limits_of_glm5(options: Options) -> tuple[int, int, int, int]:
    """Frames, the side of a block, and the least and largest number of pixels x frames.

    The Pillow version ignores `patch_expand_factor` in the size.
    """
    frames, block = options["temporal_patch_size"], options["patch_size"] * options["merge_size"]
    if options["library"] == "torchvision":
        block *= options["patch_expand_factor"]
    unit = frames * block**2
    return frames, block, options["min_image_tokens"] * unit, options["max_image_tokens"] * unit


def part_of_long_edge(height: int, width: int, options: Options) -> Size:
    """Inkling: both sides by a factor, half up; the longer one never beyond a limit by it."""
    part = options.get("rescale_image_frac")
    limit = options.get("rescale_image_max_upscaled_long_edge")
    if part is None:
        return height, width
    long = max(height, width)
    target = long * part
    if limit is not None:
        target = min(target, max(limit, long))
    ratio = target / long
    if ratio == 1.0:
        return height, width
    return math.floor(height * ratio + 0.5), math.floor(width * ratio + 0.5)
