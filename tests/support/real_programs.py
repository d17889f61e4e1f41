"""Preprocessing programs as published packages ship them, by name: none of our own code in between.

`real_programs` yields those of the packages that are installed; a name says how to make one again.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
from collections.abc import Callable, Iterator
from typing import Any

Made = tuple[str, str, str, Callable[[Any], Any]]
"""Package, name, how it takes pictures, the program."""


def real_programs(packages: tuple[str, ...]) -> Iterator[Made]:
    """The programs of the packages that are there, one of each kind of settings."""
    for package in packages:
        module = {"cv2.dnn": "cv2"}.get(package, package)
        if importlib.util.find_spec(module) is not None:
            yield from PACKAGES[package]()


def _torchvision() -> Iterator[Made]:
    from torchvision import models

    seen = set()
    for name in models.list_models():
        with contextlib.suppress(Exception):
            weights = models.get_model_weights(name)
            for weight in weights:
                preset = weight.transforms()
                words = repr(preset)
                if words in seen or "video" in str(weight.transforms).lower():
                    continue
                seen.add(words)
                yield "torchvision", f"{weight}.transforms()", "pil", preset
                if len(seen) % 3 == 0:
                    yield "torchvision", f"{weight}.transforms(), uint8 tensor", "tensor", preset


def _timm() -> Iterator[Made]:
    import timm
    from timm.data import create_transform, resolve_data_config

    seen = set()
    for name in timm.list_pretrained():
        config = timm.get_pretrained_cfg(name)
        if config is None:
            continue
        data = resolve_data_config(pretrained_cfg=config.to_dict())
        key = repr(sorted(data.items()))
        if key in seen or max(data["input_size"]) > 400:
            continue
        seen.add(key)
        yield "timm", name, "pil", create_transform(**data, is_training=False)


def _transformers() -> Iterator[Made]:
    import transformers

    for name in sorted(dir(transformers)):
        if not name.endswith(("ImageProcessor", "ImageProcessorPil", "ImageProcessorFast")):
            continue
        with contextlib.suppress(Exception):
            kind = getattr(transformers, name)
            if not inspect.isclass(kind) or name.startswith(("Base", "AutoImage")):
                continue
            made = kind()
            yield "transformers", f"{name}()", "pil", _called(made)


def _called(processor: Any) -> Callable[[Any], Any]:
    return lambda image: processor(image, return_tensors="pt")


def _pillow() -> Iterator[Made]:
    from PIL import Image, ImageOps

    for name in ("NEAREST", "BILINEAR", "BICUBIC", "LANCZOS"):
        how = getattr(Image.Resampling, name)
        for code in ("fit", "pad", "contain"):
            function = getattr(ImageOps, code)
            yield (
                "Pillow",
                f"ImageOps.{code}(image, (128, 128), {name})",
                "pil",
                lambda image, f=function, h=how: f(image, (128, 128), h),
            )
        yield (
            "Pillow",
            f"ImageOps.scale(image, 0.5, {name})",
            "pil",
            lambda image, h=how: ImageOps.scale(image, 0.5, h),
        )


def _opencv() -> Iterator[Made]:
    import cv2

    for crop in (False, True):
        for swap in (False, True):
            for scale, mean in (
                (1 / 255, (0, 0, 0)),
                (1 / 127.5, (127.5,) * 3),
                (1, (104, 117, 123)),
            ):
                words = f"blobFromImage(x, {scale:.4g}, (224, 224), {mean}, {swap}, {crop})"
                yield (
                    "cv2.dnn",
                    words,
                    "array",
                    lambda x, s=scale, m=mean, w=swap, c=crop: cv2.dnn.blobFromImage(
                        x, s, (224, 224), m, w, c
                    ),
                )


def _albumentations() -> Iterator[Made]:
    import albumentations as A

    chains = {
        "Resize(224, 224), Normalize()": [A.Resize(224, 224), A.Normalize()],
        "SmallestMaxSize(256), CenterCrop(224, 224), Normalize()": [
            A.SmallestMaxSize(256),
            A.CenterCrop(224, 224),
            A.Normalize(),
        ],
        "LongestMaxSize(256), PadIfNeeded(256, 256), ToFloat()": [
            A.LongestMaxSize(256),
            A.PadIfNeeded(256, 256, border_mode=0),
            A.ToFloat(max_value=255),
        ],
    }
    for words, steps in chains.items():
        chain = A.Compose(steps)
        yield "albumentations", words, "array", lambda x, c=chain: c(image=x)["image"]


def _skimage() -> Iterator[Made]:
    from skimage.transform import resize

    for antialias in (True, False):
        for size in ((128, 128), (96, 160)):
            yield (
                "skimage",
                f"resize(x, {size}, anti_aliasing={antialias})",
                "array",
                lambda x, s=size, a=antialias: resize(x, s, anti_aliasing=a),
            )


def _kornia() -> Iterator[Made]:
    from kornia.geometry.transform import resize

    for corners in (False, True):
        for antialias in (False,):
            yield (
                "kornia",
                f"resize(x / 255, (128, 128), align_corners={corners})",
                "tensor",
                lambda x, c=corners, a=antialias: resize(
                    x.float() / 255, (128, 128), align_corners=c, antialias=a
                ),
            )


PACKAGES = {
    "torchvision": _torchvision,
    "timm": _timm,
    "transformers": _transformers,
    "PIL": _pillow,
    "cv2.dnn": _opencv,
    "albumentations": _albumentations,
    "skimage": _skimage,
    "kornia": _kornia,
}
