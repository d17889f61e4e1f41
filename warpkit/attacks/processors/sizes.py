"""Target sizes of image processors: `rule(height, width, options) -> (height, width)`.

All rules use Python's arithmetic in the order of the processors' code: a division in another place
changes a side by one pixel. `round` rounds half to even, `int` truncates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from warpkit.core import checks

Options = Mapping[str, Any]
Size = tuple[int, int]
SizeRule = Callable[[int, int, Options], Size]

# ------------------------------------------------------------------ by the keys of `size`


def short_side(height: int, width: int, side: int) -> Size:
    """The shorter side becomes `side`, the longer one is truncated."""
    long = int(side * max(height, width) / min(height, width))
    return (side, long) if height < width else (long, side)


def short_and_long(height: int, width: int, options: Options) -> Size:
    """DETR: resizes by the shorter side, unless the longer one would exceed its limit."""
    side, limit = options["size"]["shortest_edge"], options["size"]["longest_edge"]
    ratio = side
    if max(height, width) / min(height, width) * side > limit:
        ratio = limit * float(min(height, width)) / float(max(height, width))
        side = round(ratio)
    if min(height, width) == side and not (options.get("always_by_ratio") and width < height):
        return height, width
    # the longer side uses the ratio before rounding
    if width < height:
        return int(ratio * height / width), side
    return side, int(ratio * width / height)


def inside(height: int, width: int, limits: Size) -> Size:
    """The largest size that fits, with truncated sides."""
    scale = min(limits[0] / height, limits[1] / width)
    return int(height * scale), int(width * scale)


def by_keys(height: int, width: int, options: Options) -> Size:
    """The rule that both libraries apply to `size`; the first keys that are present count."""
    size = options["size"]
    if size.get("shortest_edge") and size.get("longest_edge"):
        return short_and_long(height, width, options)
    if size.get("shortest_edge"):
        return short_side(height, width, size["shortest_edge"])
    if size.get("max_height") and size.get("max_width"):
        return inside(height, width, (size["max_height"], size["max_width"]))
    return size["height"], size["width"]


def fixed(height: int, width: int, options: Options) -> Size:
    """`size` itself."""
    return options["size"]["height"], options["size"]["width"]


# ------------------------------------------------------------------ crops and multiples


def larger_by_crop(height: int, width: int, options: Options) -> Size:
    """timm: the crop is `crop_pct` of the resized picture; from `squeeze_from` up there is no
    crop."""
    size, part, squeezed = options["size"], options["crop_pct"], options.get("squeeze_from")
    side = size.get("shortest_edge")
    if squeezed is not None and side is not None and side >= squeezed:
        return side, side
    if part is None and squeezed is None:
        return by_keys(height, width, options)
    if part is None:
        checks.fail("from_processor", "crop_pct", f"a number below {squeezed} pixels", "null")
    if side is None and size["height"] != size["width"]:
        return int(size["height"] / part), int(size["width"] / part)
    return short_side(height, width, int((side or size["height"]) / part))


def larger_by_256(height: int, width: int, options: Options) -> Size:
    """LeViT: 256 / 224 of the shorter side."""
    side = options["size"].get("shortest_edge")
    if side is None:
        return by_keys(height, width, options)
    return short_side(height, width, int(256 / 224 * side))


def up_to(size: Size, multiple: int) -> Size:
    height, width = size
    return math.ceil(height / multiple) * multiple, math.ceil(width / multiple) * multiple


def down_to(size: Size, multiple: int) -> Size:
    height, width = size
    return height // multiple * multiple, width // multiple * multiple


def keys_up(height: int, width: int, options: Options) -> Size:
    """MaskFormer and TextNet: rounded up to a multiple."""
    return up_to(by_keys(height, width, options), options.get("size_divisor") or 1)


def keys_down_to_16(height: int, width: int, options: Options) -> Size:
    """YOLOS: rounded down to 16, unless a size is given."""
    size = by_keys(height, width, options)
    return down_to(size, 16) if "shortest_edge" in options["size"] else size


def own_down(height: int, width: int, options: Options) -> Size:
    """GLPN: the picture's own size, rounded down to a multiple."""
    return down_to((height, width), options["size_divisor"])


def short_rounded_down(height: int, width: int, options: Options) -> Size:
    """ViLT: by the shorter side, the longer at most 1333 / 800 of it; half up, then down."""
    side, multiple = options["size"]["shortest_edge"], options["size_divisor"]
    limit, scale = int(1333 / 800 * side), side / min(height, width)
    tall, wide = (side, scale * width) if height < width else (scale * height, side)
    if max(tall, wide) > limit:
        scale = limit / max(tall, wide)
        tall, wide = scale * tall, scale * wide
    return down_to((int(tall + 0.5), int(wide + 0.5)), multiple)


def nearer_scale(height: int, width: int, options: Options) -> Size:
    """DPT: multiples; if the aspect is kept, the scale that is nearer to 1.

    ZoeDepth's multiple is 1 / 32, so any whole number is allowed.
    """
    size, multiple = options["size"], options["ensure_multiple_of"]
    tall, wide = size["height"] / height, size["width"] / width
    if options["keep_aspect_ratio"]:
        tall = wide = wide if abs(1 - wide) < abs(1 - tall) else tall
    tall, wide = (round(v / multiple) * multiple for v in (tall * height, wide * width))
    return int(tall), int(wide)


# ------------------------------------------------------------------ the longer side


def _longest(options: Options) -> int:
    return options["size"].get("longest_edge") or options["size"]["height"]


def long_half_up(height: int, width: int, options: Options) -> Size:
    """SAM: by the longer side, rounded half up."""
    scale = _longest(options) / max(height, width)
    return int(height * scale + 0.5), int(width * scale + 0.5)


def long_half_even(height: int, width: int, options: Options) -> Size:
    """Janus: by the longer side, rounded half to even; each side is at least `min_size`."""
    scale, lowest = _longest(options) / max(height, width), options["min_size"]
    return max(round(height * scale), lowest), max(round(width * scale), lowest)


def long_cut(height: int, width: int, options: Options) -> Size:
    """TVP: by the longer side, truncated."""
    side = _longest(options)
    if height >= width:
        return side, int(side * (width / height))
    return int(side * (height / width)), side


def long_at_least(height: int, width: int, options: Options) -> Size:
    """Aria: by the longer side; the shorter one is at least `min_image_size`."""
    side, lowest = options["max_image_size"], options["min_image_size"]
    scale = side / max(height, width)
    if width >= height:
        return max(int(height * scale), lowest), side
    return side, max(int(width * scale), lowest)


def long_even(height: int, width: int, options: Options) -> Size:
    """Idefics3: the shorter side is truncated, and increased by one if it is odd."""
    side, ratio = options["size"]["longest_edge"], width / height
    short = int(side / ratio) if width >= height else int(side * ratio)
    short = max(short + short % 2, 1)
    return (short, side) if width >= height else (side, short)


def within_edges(height: int, width: int, options: Options) -> Size:
    """Idefics2: limits the longer side, then raises sides to the smaller limit."""
    lowest, highest = (options["size"].get(key) for key in ("shortest_edge", "longest_edge"))
    if not (lowest and highest):
        return by_keys(height, width, options)
    ratio = width / height
    if width >= height and width > highest:
        height, width = int(highest / ratio), highest
    elif height > width and height > highest:
        height, width = highest, int(highest * ratio)
    return max(height, lowest), max(width, lowest)


def only_smaller(height: int, width: int, options: Options) -> Size:
    """Fuyu: never enlarges."""
    limits = options["size"]["height"], options["size"]["width"]
    if height <= limits[0] and width <= limits[1]:
        return height, width
    return inside(height, width, limits)


def page(height: int, width: int, options: Options) -> Size:
    """Donut, first resize: the shorter side becomes the shorter one of `size`."""
    return short_side(height, width, min(options["size"]["height"], options["size"]["width"]))


def thumbnail(height: int, width: int, options: Options) -> Size:
    """Donut, second resize: never larger than `size`."""
    tall, wide = min(height, options["size"]["height"]), min(width, options["size"]["width"])
    if (tall, wide) == (height, width) or height == width:
        return tall, wide
    if height > width:
        return tall, int(width * tall / height)
    return int(height * wide / width), wide


# ------------------------------------------------------------------ PaddlePaddle's


def short_half_even(height: int, width: int, options: Options) -> Size:
    """PP-LCNet: rounded half to even, then up to a multiple."""
    scale = options["resize_short"] / min(height, width)
    size = round(height * scale), round(width * scale)
    return up_to(size, options["size_divisor"] or 1)


def text_lines(height: int, width: int, options: Options) -> Size:
    """PP-OCR's detector: one side is limited, truncated, then the nearest multiple of 32."""
    side, kind, ratio = options["limit_side_len"], options["limit_type"], 1.0
    if kind == "resize_long" or (kind == "max" and max(height, width) > side):
        ratio = side / max(height, width)
    elif kind == "min" and min(height, width) < side:
        ratio = side / min(height, width)
    height, width = int(height * ratio), int(width * ratio)
    highest = options["max_side_limit"]
    if highest is not None and max(height, width) > highest:
        ratio = float(highest) / max(height, width)
        height, width = int(height * ratio), int(width * ratio)
    return max(round(height / 32) * 32, 32), max(round(width / 32) * 32, 32)


def widest(sizes: Sequence[Size]) -> Options:
    """PP-OCR's reader: the first of the widest images decides the size of all."""
    return {"widest": max(sizes, key=lambda size: size[1])}


def text_line(height: int, width: int, options: Options) -> Size:
    """PP-OCR's reader: a fixed height, with the width by the aspect."""
    height, width = options.get("widest", (height, width))
    tall, wide = options["size"]["height"], options["size"]["width"]
    highest = options["max_image_width"]
    widest = int(tall * max(width / height, wide / tall))
    if widest > highest:
        return tall, highest
    return tall, min(widest, math.ceil(tall * (width / float(height))))


# ------------------------------------------------------------------ timm's and open_clip's


def ratio_half_even(height: int, width: int, options: Options) -> Size:
    """Both sides by one ratio: the shorter one reaches the target, or the longer one `longest`."""
    target = options["size"]
    ratios = height / target["height"], width / target["width"]
    ratio = max(ratios) if options["longest"] else min(ratios)
    return round(height / ratio), round(width / ratio)


def short_of_square(height: int, width: int, options: Options) -> Size:
    """torchvision's Resize(side): by the shorter side."""
    return short_side(height, width, options["size"]["height"])
