"""Programs whose settings come with their package: presets and configurations of weights."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tests.support.shipped.made import Made

LARGEST = 600
"""Pixels of a result's side; larger ones take a minute each."""


def _torchvision() -> Iterator[Made]:
    """Every image preset that differs from those before; every third one also on tensors."""
    from torchvision import models

    names = set()
    for name in models.list_models():
        for weight in models.get_model_weights(name):
            with contextlib.suppress(ImportError):
                preset = weight.transforms()
                words = repr(preset)
                video = "Video" in type(preset).__name__
                if words in names or video or "OpticalFlow" in words:
                    continue
                names.add(words)
                yield Made(f"{weight}.transforms()", "pil", preset)
                if len(names) % 3 == 0:
                    yield Made(f"{weight}.transforms(), uint8 tensor", "tensor", preset)


def _timm() -> Iterator[Made]:
    """One model of each configuration."""
    import timm
    from timm.data import create_transform, resolve_data_config

    keys = set()
    for name in timm.list_pretrained():
        config = timm.get_pretrained_cfg(name)
        if config is None:
            continue
        data = resolve_data_config(pretrained_cfg=config.to_dict())
        key = repr(sorted(data.items()))
        if key in keys or max(data["input_size"]) > LARGEST or data["input_size"][0] != 3:
            continue
        keys.add(key)
        yield Made(name, "pil", create_transform(**data, is_training=False))


def _open_clip() -> Iterator[Made]:
    """One set of weights of each configuration, as `create_model_and_transforms` reads it."""
    import open_clip
    from open_clip.transform import PreprocessCfg, image_transform_v2

    names = set()
    for model, tag in open_clip.list_pretrained():
        size = open_clip.get_model_config(model)["vision_cfg"].get("image_size", 224)
        config_of = open_clip.get_pretrained_cfg(model, tag)
        options = {key: config_of[key] for key in ("mean", "std", "interpolation", "resize_mode")}
        config = PreprocessCfg(size=size, **{key: v for key, v in options.items() if v is not None})
        if repr(config) in names:
            continue
        names.add(repr(config))
        yield Made(f"{model}, {tag}", "pil", image_transform_v2(config, is_train=False))


def _ultralytics() -> Iterator[Made]:
    from ultralytics.data.augment import (
        CenterCrop,
        ClassifyLetterBox,
        LetterBox,
        classify_transforms,
    )

    for words, box in {
        "LetterBox(640)": LetterBox(640),
        "LetterBox((384, 640))": LetterBox((384, 640)),
        "LetterBox(320, auto=True)": LetterBox(320, auto=True),
        "LetterBox(320, scaleup=False)": LetterBox(320, scaleup=False),
        "LetterBox(320, center=False)": LetterBox(320, center=False),
        "LetterBox(320, scale_fill=True)": LetterBox(320, scale_fill=True),
    }.items():
        yield Made(words, "array", lambda image, box=box: box(image=image))
    for size in (224, 320):
        yield Made(f"classify_transforms({size})", "pil", classify_transforms(size))
        yield Made(f"CenterCrop({size})", "array", CenterCrop(size))
        yield Made(f"ClassifyLetterBox({size})", "array", ClassifyLetterBox(size))


def _cleanfid() -> Iterator[Made]:
    from cleanfid.resize import build_resizer, make_resizer

    for mode in ("clean", "legacy_pytorch"):
        yield Made(f'build_resizer("{mode}")', "array", build_resizer(mode))
    filters = {
        "PIL": ("bilinear", "bicubic", "lanczos", "box", "nearest"),
        "PyTorch": ("bilinear", "bicubic"),
        "OpenCV": ("bilinear", "bicubic", "lanczos", "area"),
        "TensorFlow": ("bilinear", "bicubic"),
    }
    for library, names in filters.items():
        for name in names:
            for rounds in (True, False):
                with contextlib.suppress(ImportError):
                    resizer = make_resizer(library, rounds, name, (128, 128))
                    words = f'make_resizer("{library}", {rounds}, "{name}", (128, 128))'
                    yield Made(words, "array", resizer)


SOURCES = {
    "torchvision": _torchvision,
    "timm": _timm,
    "open_clip": _open_clip,
    "ultralytics": _ultralytics,
    "cleanfid": _cleanfid,
}
