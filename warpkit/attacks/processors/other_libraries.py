"""Turns timm's `pretrained_cfg` and open_clip's `preprocess_cfg` into steps of the same
interpreter.

Both resize Pillow images. On tensors, floats in [0, 1], torchvision performs the same steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from warpkit.attacks.processors import sizes
from warpkit.attacks.processors.configuration import NAME
from warpkit.attacks.processors.operations import (
    Operation,
    crop_rounded,
    normalize,
    resize,
    trim,
    unit,
)
from warpkit.attacks.processors.sampling import FILTERS
from warpkit.attacks.processors.sizes import Options
from warpkit.core import checks

OF_TIMM = {"crop_pct", "crop_mode", "input_size", "test_input_size", "first_conv", "architecture"}
OF_OPEN_CLIP = {"resize_mode", "fill_color"}
OPEN_CLIP = {"size", "mode", "mean", "std", "interpolation", "resize_mode", "fill_color"}
IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CLIP = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)

Program = tuple[tuple[Operation, ...], Options]


def read(config: Mapping[str, Any]) -> Callable[[str], Program] | None:
    """The program of a configuration of timm or open_clip; None for other configurations."""
    kind = config.get("image_processor_type") or config.get("feature_extractor_type")
    if kind not in (None, "TimmWrapperImageProcessor"):
        return None
    if kind or OF_TIMM & set(config):
        return lambda library: timm(config, library)
    if OF_OPEN_CLIP & set(config) or (
        "mean" in config and set(config) <= OPEN_CLIP | {"model_cfg"}
    ):
        return lambda library: open_clip(config, library)
    return None


def timm(config: Mapping[str, Any], library: str) -> Program:
    """timm.data.create_transform for evaluation: resize, crop, divide by 255, normalise."""
    tall, wide = _pair("input_size", (config.get("input_size") or (224, 224))[-2:])
    part, mode = config.get("crop_pct") or 0.875, config.get("crop_mode") or "center"
    options = _common(config, library, IMAGENET, FILTERS)
    options["crop_size"] = {"height": tall, "width": wide}
    target = {"height": math.floor(tall / part), "width": math.floor(wide / part)}
    options.update(size=target, longest=mode == "border", border=config.get("crop_border_pixels"))
    options["rule"] = sizes.ratio_half_even
    if mode == "squash":
        options["rule"] = sizes.fixed
    elif mode == "border":
        if library == "torchvision":
            wanted = "None or 'pillow' with crop_mode='border', which timm has not for tensors"
            checks.fail(NAME, "library", wanted, repr(library))
        options["fill"] = [round(255 * value) for value in options["image_mean"]]
    elif target["height"] == target["width"]:
        options["rule"] = sizes.short_of_square
    return _ordered((trim, resize, crop_rounded), options)


def open_clip(config: Mapping[str, Any], library: str) -> Program:
    """open_clip.image_transform for evaluation."""
    size = config.get("size")
    if size is None:
        vision = (config.get("model_cfg") or {}).get("vision_cfg") or {}
        size = vision.get("image_size") or 224
    tall, wide = _pair("size", size)
    options = _common(config, library, CLIP, ("bilinear", "bicubic", "random"))
    options["crop_size"] = options["size"] = {"height": tall, "width": wide}
    modes = ("shortest", "longest", "squash")
    mode = checks.check_name(NAME, "resize_mode", config.get("resize_mode") or "shortest", modes)
    options["longest"] = mode == "longest"
    options["rule"] = sizes.ratio_half_even
    if mode == "squash":
        options["rule"] = sizes.fixed
    elif mode == "longest":
        options["fill"] = config.get("fill_color") or 0
    elif tall == wide:
        options["rule"] = sizes.short_of_square
    else:
        options["resample"] = FILTERS.index("bicubic")  # the file's value is ignored
    return _ordered((resize, crop_rounded), options)


def _common(
    config: Mapping[str, Any],
    library: str,
    statistics: tuple[Sequence[float], Sequence[float]],
    filters: Sequence[str],
) -> dict[str, Any]:
    option = config.get("interpolation") or "bicubic"
    name = checks.check_name(NAME, "interpolation", option, filters)
    mean, std = (
        config.get(key) or value for key, value in zip(("mean", "std"), statistics, strict=True)
    )
    return {
        "library": library,
        "resample": FILTERS.index("bicubic" if name == "random" else name),
        "do_normalize": True,
        "image_mean": mean if isinstance(mean, Sequence) else (mean,) * 3,
        "image_std": std if isinstance(std, Sequence) else (std,) * 3,
    }


def _ordered(geometry: tuple[Operation, ...], options: Options) -> Program:
    """Pillow images become floats at the end; tensors are floats from the start."""
    if options["library"] == "pillow":
        return (*geometry, unit, normalize), options
    return (unit, *geometry, normalize), options


def _pair(key: str, size: Any) -> tuple[int, int]:
    if isinstance(size, int):
        return size, size
    if isinstance(size, Sequence) and len(size) == 2 and all(isinstance(n, int) for n in size):
        return size[0], size[1]
    checks.fail(NAME, key, "whole numbers (height, width), or one", repr(size))
