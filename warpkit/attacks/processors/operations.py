"""The operations of image processors: `operation(picture, options) -> picture`.

A picture is (N, C, H, W): uint8, levels as floats (for the gradient), or the results of `rescale`
and `normalize`. An operation treats all of them alike, so uint8 gives the processor's exact values
and floats give the gradient. `options` are the processor's complete configuration, the entries of
its kind, and "library".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from warpkit.attacks.processors.sampling import mirrored, resample
from warpkit.attacks.processors.sizes import (
    Options,
    Size,
    SizeRule,
    by_keys,
    fixed,
    inside,
    thumbnail,
    up_to,
)
from warpkit.core import checks
from warpkit.engine.definitions.reference import with_gradient_of

Operation = Callable[[Tensor, Options], Tensor]

WEIGHTS = (0.2989, 0.587, 0.114)
"""The weights of red, green and blue in gray, as torchvision rounds them."""


def sides(picture: Tensor) -> Size:
    """Height and width of (N, C, H, W)."""
    return picture.shape[-2], picture.shape[-1]


def resize(
    picture: Tensor,
    options: Options,
    rule: SizeRule | None = None,
    key: str = "do_resize",
    filter_number: int | None = None,
    gap: float | None = None,
) -> Tensor:
    """Resizes (N, C, H, W) to the size given by the kind's rule, or by `rule`."""
    if not options.get(key, True):
        return picture
    aimed_at = (rule or options.get("rule", by_keys))(*sides(picture), options)
    return resample(picture, aimed_at, options, filter_number, gap)


def resize_or_fit(picture: Tensor, options: Options) -> Tensor:
    """Sapiens 2: resized to `size`, or with do_pad fitted into it on black."""
    if not options.get("do_resize", True) or not options.get("do_pad"):
        return resize(picture, options)
    size = fixed(*sides(picture), options)
    return crop_to(resample(picture, inside(*sides(picture), size), options), size, options)


def resize_floats(picture: Tensor, options: Options) -> Tensor:
    """PP-OCR: resizes levels as floats, without rounding."""
    return resize(as_floats(picture), options)


def second_page(picture: Tensor, options: Options) -> Tensor:
    """Donut: never enlarges; its Pillow version uses bicubic for resample 0 here."""
    number = options["resample"]
    number = number or 3 if options["library"] == "pillow" else number
    return resize(picture, options, thumbnail, "do_thumbnail", number)


def turn(picture: Tensor, options: Options) -> Tensor:
    """Donut: a quarter turn if the picture is landscape and `size` is portrait, or vice versa."""
    height, width = picture.shape[-2:]
    tall, wide = options["size"]["height"], options["size"]["width"]
    across = (tall < wide and height > width) or (tall > wide and height < width)
    return picture.rot90(3, (-2, -1)) if options.get("do_align_long_axis") and across else picture


# ------------------------------------------------------------------ crops


def crop_to(picture: Tensor, size: Size, options: Options) -> Tensor:
    """Crops (N, C, H, W) centrally, rounding the offset down; a smaller picture is padded with 0.

    If the padding is odd, the Pillow version puts the extra pixel first, torchvision last.
    """
    more = options["library"] == "pillow"
    rests = [max(n - v, 0) for v, n in zip(picture.shape[-2:], size, strict=True)]
    firsts = [(rest + more) // 2 for rest in rests]
    if any(rests):
        (top, left), (tall, wide) = firsts, rests
        picture = F.pad(picture, (left, wide - left, top, tall - top))
    top, left = ((v - n) // 2 for v, n in zip(picture.shape[-2:], size, strict=True))
    return picture[..., top : top + size[0], left : left + size[1]]


def crop(picture: Tensor, options: Options) -> Tensor:
    if not options.get("do_center_crop"):
        return picture
    sides = options["crop_size"]
    edge = sides.get("shortest_edge")
    return crop_to(picture, (sides.get("height") or edge, sides.get("width") or edge), options)


def crop_square(picture: Tensor, options: Options) -> Tensor:
    """ConvNeXt: crops the enlarged picture."""
    side = options["size"].get("shortest_edge")
    if not options.get("do_resize", True) or side is None or side >= options["squeeze_from"]:
        return picture
    return crop_to(picture, (side, side), options)


def crop_part(picture: Tensor, options: Options) -> Tensor:
    """Perceiver: crops a share of the shorter side, before the resize."""
    if not options.get("do_center_crop"):
        return picture
    size, part, short = options["size"], options["crop_size"], min(picture.shape[-2:])
    tall, wide = (int(size[key] / part[key] * short) for key in ("height", "width"))
    return crop_to(picture, (tall, wide), options)


def crop_rounded(picture: Tensor, options: Options) -> Tensor:
    """torchvision's CenterCrop: the offset is rounded half to even; smaller pictures get `fill`."""
    size, fill = options["crop_size"], options.get("fill", 0)
    tall, wide = size["height"], size["width"]
    height, width = picture.shape[-2:]
    picture = pad_to(picture, (max(height, tall), max(width, wide)), "center", fill)
    top, left = (round(max(v - n, 0) / 2) for v, n in ((height, tall), (width, wide)))
    return picture[..., top : top + tall, left : left + wide]


def trim(picture: Tensor, options: Options) -> Tensor:
    """timm: removes a border first."""
    n = options["border"]
    return picture[..., n : picture.shape[-2] - n, n : picture.shape[-1] - n] if n else picture


# ------------------------------------------------------------------ pads


def pad_to(picture: Tensor, size: Size, place: str = "end", value: Any = 0) -> Tensor:
    """(N, C, H, W) padded to `size` at the "end", or around the "center" (offset rounded down).

    value: a number, or one per channel.
    """
    (height, width), (tall, wide) = picture.shape[-2:], size
    if tall < height or wide < width:
        got = f"a picture that is resized to {height} x {width}"
        checks.fail("from_processor", "pad_size", f"at least as large as the picture, {size}", got)
    top, left = ((tall - height) // 2, (wide - width) // 2) if place == "center" else (0, 0)
    rests = (left, wide - width - left, top, tall - height - top)
    if not any(rests):
        return picture
    if not isinstance(value, Sequence):
        return F.pad(picture, rests, value=value)
    channels = zip(picture.split(1, dim=1), value, strict=True)
    return torch.cat([F.pad(channel, rests, value=v) for channel, v in channels], dim=1)


def pad(
    picture: Tensor,
    options: Options,
    rule: SizeRule | None = None,
    place: str = "end",
    value: Any = 0,
) -> Tensor:
    """Pads to `pad_size`, or to the size that `rule` computes."""
    if not options.get("do_pad"):
        return picture
    size = options.get("pad_size")
    if rule is not None:
        return pad_to(picture, rule(*sides(picture), options), place, value)
    return pad_to(picture, (size["height"], size["width"]), place, value) if size else picture


def pad_page(picture: Tensor, options: Options) -> Tensor:
    """Donut: pads around the centre of `size`; torchvision crops larger pictures."""
    (height, width), (tall, wide) = sides(picture), fixed(0, 0, options)
    if options.get("do_pad") and options["library"] == "torchvision":
        top, left = (tall - height) // 2, (wide - width) // 2
        return F.pad(picture, (left, wide - width - left, top, tall - height - top))
    return pad(picture, options, fixed, "center")


def pad_multiple(picture: Tensor, options: Options) -> Tensor:
    """DPT: pads both sides to a multiple, around the centre."""
    multiple = options.get("size_divisor") or 1
    return pad(picture, options, lambda h, w, _: up_to((h, w), multiple), "center")


def pad_edges(picture: Tensor, options: Options) -> Tensor:
    """EoMT: pads each side to at least an edge of `size`."""
    return pad(picture, options, at_least_edges)


def at_least_edges(height: int, width: int, options: Options) -> Size:
    size = options["size"]
    return max(height, size["shortest_edge"]), max(width, size["longest_edge"])


def square(height: int, width: int, options: Options) -> Size:
    return max(height, width), max(height, width)


def background(mean: Sequence[float]) -> list[int]:
    """The mean's colour in 8 bits, truncated."""
    return [int(part * 255) for part in mean]


def pad_square(picture: Tensor, options: Options) -> Tensor:
    """Pads around the centre to a square, with the mean's colour."""
    return pad(picture, options, square, "center", background(options["image_mean"]))


def pad_with_value(picture: Tensor, options: Options) -> Tensor:
    """Fuyu: pads to `size` with a constant level."""
    return pad(picture, options, fixed, value=options["padding_value"])


def pad_frame(picture: Tensor, options: Options) -> Tensor:
    """TVP: pads with a number of its own, after normalising."""
    if options["pad_mode"] != "constant":
        checks.fail("from_processor", "pad_mode", "'constant'", repr(options["pad_mode"]))
    return pad(picture, options, value=options["constant_values"])


def pad_line(picture: Tensor, options: Options) -> Tensor:
    """PP-OCR's reader: pads a line, unless it is long enough."""
    return pad(picture, options) if picture.shape[-1] < options["pad_size"]["width"] else picture


def pad_symmetric(picture: Tensor, options: Options) -> Tensor:
    """Swin2SR: pads by reflection with the edge, by a whole multiple if no padding is needed."""
    if not options.get("do_pad"):
        return picture
    multiple = options["size_divisor"]
    ends = [v // multiple * multiple + multiple - v for v in picture.shape[-2:]]
    return mirrored(picture, (0, 0), (ends[0], ends[1]), twice=True)


def pad_reflected(picture: Tensor, options: Options) -> Tensor:
    """ZoeDepth: pads by reflection about the edge's own pixels."""
    if not options.get("do_pad"):
        return picture
    tall, wide = (int((v / 2) ** 0.5 * 3) for v in picture.shape[-2:])
    return mirrored(picture, (tall, wide), (tall, wide), twice=False)


# ------------------------------------------------------------------ numbers


def as_floats(picture: Tensor) -> Tensor:
    return picture if picture.is_floating_point() else picture.float()


def columns(values: Any, picture: Tensor) -> Tensor:
    """One number per channel of (..., C, H, W), or one for all, rounded to float32: (C, 1, 1)."""
    numbers = torch.as_tensor(values, dtype=torch.float32, device=picture.device).flatten()
    if len(numbers) not in (1, picture.shape[-3]):
        got = f"{len(numbers)} of them, and a picture of {picture.shape[-3]} channels"
        checks.fail("from_processor", "image_mean and image_std", "one number a channel", got)
    return numbers[:, None, None]


def rescale(picture: Tensor, options: Options, key: str = "do_rescale") -> Tensor:
    """Multiplies levels by a factor: in float64 and then rounded (Pillow), or in float32."""
    if not options.get(key):
        return picture
    factor = options["rescale_factor"]
    if options["library"] != "pillow":
        values = as_floats(picture) * factor
    elif picture.is_floating_point():
        values = (picture.double() * factor).to(picture.dtype)
    else:
        values = picture.double().mul_(factor).float()
    return values - 1 if options.get("offset") or options.get("rescale_offset") else values


def normalize(picture: Tensor, options: Options, own: bool = False) -> Tensor:
    """own: as in `_standardized`."""
    if not options.get("do_normalize"):
        return picture
    floats = as_floats(picture)
    mean, std = (columns(options[key], floats).to(floats) for key in ("image_mean", "image_std"))
    return _standardized(floats, mean, std, own or floats is not picture)


def _standardized(floats: Tensor, mean: Tensor, std: Tensor, own: bool) -> Tensor:
    """floats (N, C, H, W), mean and std (C, 1, 1). own: nobody else has the floats, which are
    overwritten: of 64 pictures of 224 x 224, each new tensor costs 16 ms, for its pages are new."""
    return floats.sub_(mean).div_(std) if own else (floats - mean) / std


def values(picture: Tensor, options: Options) -> Tensor:
    """Rescales and normalises: in two steps in the Pillow version, in one step in torchvision."""
    at_once = options["library"] == "torchvision" and not options.get("rescale_offset")
    own = not picture.is_floating_point()
    if not (at_once and options.get("do_rescale") and options.get("do_normalize")):
        return normalize(rescale(picture, options), options, own)
    floats, by = as_floats(picture), 1.0 / options["rescale_factor"]
    mean, std = (columns(options[key], floats) * by for key in ("image_mean", "image_std"))
    return _standardized(floats, mean.to(floats), std.to(floats), own)


def divide_again(picture: Tensor, options: Options) -> Tensor:
    """EfficientNet: divides by the standard deviation a second time."""
    if not options["include_top"]:
        return picture
    floats = as_floats(picture)
    return floats / columns(options["image_std"], floats).to(floats)


def unit(picture: Tensor, options: Options) -> Tensor:
    """torchvision's to_tensor: levels / 255 in float32."""
    return as_floats(picture) / 255


def levels(picture: Tensor, options: Options) -> Tensor:
    """8-bit levels without rescaling, as numbers from 0 to 255."""
    return as_floats(picture)


def clamp(picture: Tensor, options: Options) -> Tensor:
    """Clamps values above white or below black, which a resize of floats can make."""
    return picture.clamp(0, 255 * options["rescale_factor"] if options["do_rescale"] else 255)


def reverse(picture: Tensor, options: Options) -> Tensor:
    return picture.flip(-3) if options.get("do_flip_channel_order", True) else picture


def gray(picture: Tensor, options: Options) -> Tensor:
    """Three equal channels; (N, C, H, W) with equal channels is unchanged, with its own
    gradient."""
    if not options.get("do_grayscale"):
        return picture
    red, green, blue = as_floats(picture).split(1, dim=1)
    if options["library"] == "pillow":
        total = red * WEIGHTS[0] + green * WEIGHTS[1] + blue * WEIGHTS[2]
    else:
        total = (red * WEIGHTS[0]).add(green, alpha=WEIGHTS[1]).add(blue, alpha=WEIGHTS[2])
    total = total.to(picture.dtype).expand_as(picture)  # 8 bits stay 8 bits
    equal = (picture == picture[:, :1]).flatten(1).all(1)[:, None, None, None]
    value = torch.where(equal, picture.detach(), total.detach())
    return with_gradient_of(value, total) if picture.is_floating_point() else value


# ------------------------------------------------------------------ several of them


def larger_size(picture: Tensor, options: Options) -> Tensor:
    """DeepSeek-VL hybrid: the large picture."""
    return values(_squared(picture, options, "high_res_"), _of_size(options, "high_res_"))


def both_sizes(picture: Tensor, options: Options) -> Tensor:
    """DeepSeek-VL hybrid: the small picture is made from the large one, resized and padded."""
    for key in ("high_res_", ""):
        picture = _squared(picture, options, key)
    return values(picture, options)


def _of_size(options: Options, key: str) -> Options:
    names = ("size", "resample", "image_mean", "image_std")
    return {**options, **{name: options[key + name] for name in names}}


def _squared(picture: Tensor, options: Options, key: str) -> Tensor:
    part = _of_size(options, key)
    return pad_square(resize(picture, part), part) if part.get("do_resize") else picture
