"""Completes a configuration: class defaults, old names and old forms of sizes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from warpkit.attacks.processors.kinds import KINDS, QWEN_NAMES, REFUSED
from warpkit.attacks.processors.sampling import FILTERS
from warpkit.core import checks
from warpkit.core.caller_warnings import warn

NAME = "Pipeline.from_processor"
ENDINGS = ("Fast", "Pil", "ImageProcessor", "FeatureExtractor")

DETR = ("ConditionalDetr", "DeformableDetr", "Detr", "GroundingDino", "RfDetr", "Yolos")
OLD_NAMES = {
    "Idefics": {"image_size": "size"},
    "OwlViT": {"rescale": "do_rescale"},
    "Swin2SR": {"pad_size": "size_divisor"},
    **{name: {"pad_and_return_pixel_mask": "do_pad"} for name in DETR},
}
"""The names of options in older files, if the new name is missing."""
MASKS = ("Mask2Former", "MaskFormer")
COUNTS_PIXELS = (
    *QWEN_NAMES.split(),
    "GlmImage",
    "HYV4VL",
    "HunYuanVL",
    "PaddleOCRVL",
    "VideoLlama3",
)
"""Kinds whose min_pixels and max_pixels are the edges of `size`."""

SIZE_KEYS = (
    {"height", "width"},
    {"shortest_edge"},
    {"shortest_edge", "longest_edge"},
    {"longest_edge"},
    {"max_height", "max_width"},
    {"min_pixels", "max_pixels"},
    {"min_pixels"},
    {"max_pixels"},
)
ENTRIES = (
    "steps",
    "also",
    "outputs",
    "of_call",
    "prompts",
    "library",
    "off",
    "without",
    "needs",
    "square",
)
"""Entries of a kind that are no options."""
NEEDED = {
    "do_resize": ("size", "resample"),
    "do_center_crop": ("crop_size",),
    "do_rescale": ("rescale_factor",),
    "do_normalize": ("image_mean", "image_std"),
}
"""The options that a step needs if it is switched on."""


@cache
def defaults() -> dict[str, dict[str, Any]]:
    """The options of every kind, as in its class."""
    return json.loads(Path(__file__).with_name("defaults.json").read_text(encoding="utf-8"))


def kind_of(config: Mapping[str, Any]) -> str:
    """The kind that a configuration names; it must be a supported one."""
    value = config.get("image_processor_type") or config.get("feature_extractor_type")
    if not value:
        wanted = "a configuration that names its class (image_processor_type), a timm "
        wanted += "pretrained_cfg or an open_clip preprocess_cfg"
        got = f"one with {', '.join(map(str, list(config)[:8])) or 'nothing'}"
        if config.get("model_type"):
            got += " (the model's configuration; the processor's is in preprocessor_config.json)"
        checks.fail(NAME, "source", wanted, got)
    name = str(value)
    for ending in ENDINGS:
        name = name.removesuffix(ending)
    if name in REFUSED:
        raise ValueError(f"{NAME}: {value} is not served: {REFUSED[name]}")
    if name not in KINDS:
        got = repr(value)
        if "auto_map" in config:
            got += ", which is code of its own repository (auto_map)"
        checks.fail(NAME, "source", "of a kind that is known (docs/processors.md)", got)
    return name


def complete(name: str, config: Mapping[str, Any], library: str) -> dict[str, Any]:
    """All options of a kind: the defaults of its class, the configuration's, and the kind's own."""
    recorded = defaults()[name]
    values = {key: value for key, value in config.items() if key != "default_to_square"}
    for old, new in OLD_NAMES.get(name, {}).items():
        if old in values and (old == "image_size" or new not in values):
            values[new] = values.pop(old)
    values = _sizes(name, values, recorded)
    options: dict[str, Any] = {**recorded, **values}
    if name == "Emu3":
        options["size"] = {key: options[key] for key in ("min_pixels", "max_pixels")}
    entry = KINDS[name]
    for key, what in entry.get("off", {}).items():
        if options.get(key):
            text = f"{NAME}: {name} with {key} is not served: it makes {what}; {key}=False is"
            raise ValueError(text)
    for key, (value, why) in entry.get("without", {}).items():
        if options.get(key) == value:
            raise ValueError(f"{NAME}: {name} with {key}={value!r} is not served: {why}")
    for key in entry.get("needs", ()):
        if not options.get(key):
            raise ValueError(f"{NAME}: {name} fails without {key}, which is off")
    size = options.get("size") or {}
    if entry.get("square") and size.get("height") != size.get("width"):
        raise ValueError(f"{NAME}: {name} needs a square `size`, got {size}")
    options.update({k: v for k, v in entry.items() if k not in ENTRIES})
    options["library"] = library
    if "resample" in options:
        options["resample"] = _filter(options)
    _check(name, options, recorded)
    return options


def _sizes(name: str, values: dict[str, Any], recorded: Mapping[str, Any]) -> dict[str, Any]:
    """The given options with sizes converted from any form to dicts."""
    values, is_square, limit = dict(values), recorded["default_to_square"], None
    if name == "CLIP" and values.pop("use_square_size", False):
        side = recorded["size"]["shortest_edge"]
        values["size"] = {"height": side, "width": side}
    if name == "Donut" and isinstance(values.get("size"), list | tuple):
        values["size"] = list(values["size"])[::-1]
    if name in DETR:
        is_square, limit = False, values.pop("max_size", 1333)
    elif name in MASKS:
        is_square, limit = False, values.pop("max_size", None)
        if values.get("size") is None and limit is not None:
            values["size"] = {**recorded["size"], "longest_edge": limit}
    elif name in COUNTS_PIXELS:
        if name == "MiniMaxM3VL" and values.get("size") == [672, 672]:
            del values["size"]  # the class ignores the size in the published file, too
        size = values.get("size")
        size = dict(recorded["size"] if size is None else as_size("size", size, is_square))
        for old, edge in (("min_pixels", "shortest_edge"), ("max_pixels", "longest_edge")):
            if values.get(old) is not None:
                size[edge] = values.pop(old)
                size.pop(old, None)
        values["size"] = size
    if name in (*DETR, *MASKS) and values.get("size", 0) is None:
        del values["size"]
    for key, square in (("size", is_square), ("crop_size", True), ("pad_size", True)):
        if values.get(key) is not None and not (name == "Swin2SR" and key == "pad_size"):
            values[key] = as_size(key, values[key], square, limit if key == "size" else None)
    if values.get("high_res_size") is not None:
        values["high_res_size"] = as_size("high_res_size", values["high_res_size"], is_square)
    return values


def as_size(key: str, size: Any, is_square: bool, limit: int | None = None) -> dict[str, int]:
    """A size as a dict, from one side or from (height, width)."""
    if isinstance(size, int) and not isinstance(size, bool):
        if is_square:
            return {"height": size, "width": size}
        return {"shortest_edge": size, **({} if limit is None else {"longest_edge": limit})}
    if isinstance(size, list | tuple) and len(size) == 2:
        size = {"height": size[0], "width": size[1]}
    if isinstance(size, Mapping):
        size = {k: v for k, v in size.items() if v is not None}
        whole = all(isinstance(v, int) and not isinstance(v, bool) and v > 0 for v in size.values())
        if set(size) in SIZE_KEYS and whole:
            return size
    wanted = "a whole number, (height, width), or a dict with height and width, shortest_edge "
    wanted += "(and longest_edge), longest_edge, or max_height and max_width"
    checks.fail(NAME, key, wanted, repr(size))


def _filter(options: dict[str, Any]) -> int | None:
    """The filter as Pillow's number; names are read as in transformers."""
    value = options.get("resample")
    if isinstance(value, str):
        if options["library"] == "pillow":
            warn(f"{NAME}: `resample` is {value!r}, no number: Pillow's processors take bilinear")
            return 2
        if value == "nearest":
            options["nearest"] = "nearest"  # torch's own nearest, which differs from Pillow's
        if value == "nearest-exact" or value in FILTERS:
            return 0 if value.startswith("nearest") else FILTERS.index(value)
    elif value is None or (isinstance(value, int) and 0 <= value < len(FILTERS)):
        return value
    wanted = "a number from 0 to 5 (Pillow's) or the name of a filter"
    checks.fail(NAME, "resample", wanted, repr(value))


def _check(name: str, options: Mapping[str, Any], recorded: Mapping[str, Any]) -> None:
    """Check that no option that a step needs is null; options that the class lacks are not
    needed."""
    for flag, keys in NEEDED.items():
        for key in keys:
            if options.get(flag, flag == "do_resize") and key in recorded and options[key] is None:
                raise ValueError(f"{NAME}: {name} with {flag} needs `{key}`, which is null")
            if flag == "do_center_crop" and options.get(flag) and options.get(key) is None:
                raise ValueError(f"{NAME}: {name} with {flag} needs `{key}`, which it has not")
