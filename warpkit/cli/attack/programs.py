"""Parses a pipeline of `--pipeline`: resize:224:pillow,jpeg:75,normalize."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor

import warpkit as wk
from warpkit.attacks import Pipeline, jpeg, normalize, on_floats, reverse_channels, to_uint8
from warpkit.cli.errors import CommandError
from warpkit.cli.sizes import check_size
from warpkit.engine.arithmetic.resize import parse_rule

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
"""The mean and standard deviation with which most published models were trained."""

GRAMMAR = {
    "resize": "resize:SIZE[:ARITHMETIC[:INTERPOLATION]], SIZE as 224 or 224x160 (height x width)",
    "crop": "crop:SIZE, the middle",
    "jpeg": "jpeg:QUALITY, from 1 to 100",
    "normalize": "normalize (ImageNet's), normalize:MEAN:STD, or normalize:R:G:B:R:G:B",
    "scale": "scale:FACTOR, of floats in [0, 1]",
    "bgr": "bgr",
    "round": "round, to 8 bits",
}
Step = Callable[[Tensor], Tensor]


def read_pipeline(text: str | None) -> Pipeline:
    """The pipeline of --pipeline; without the option it only rounds to 8 bits."""
    return Pipeline(*map(read_step, text.split(","))) if text else Pipeline()


def read_step(text: str) -> Step:
    """One step of a pipeline."""
    name, *parts = text.strip().split(":")
    if name not in MAKERS:
        steps = "; ".join(GRAMMAR.values())
        raise CommandError(f"--pipeline has no step {text!r}: the steps are {steps}")
    try:
        return MAKERS[name](*parts)
    except (TypeError, ValueError) as error:
        reason = str(error).partition(": ")[2]
        why = f": {reason}" if reason.startswith("`") else ""
        raise CommandError(f"--pipeline: {text!r} is not {GRAMMAR[name]}{why}") from None


def sides(text: str) -> tuple[int, int]:
    """(H, W) of "224" or "224x160"."""
    height, _, width = text.partition("x")
    size = (int(height), int(width or height))
    if min(size) < 1:
        raise ValueError(text)
    check_size("--pipeline", *size)
    return size


def resized(size: str, arithmetic: str = "exact", interpolation: str = "bilinear") -> Step:
    """Resizes with any library's arithmetic."""
    parse_rule("resize", interpolation, None, arithmetic)
    options: dict[str, Any] = {"arithmetic": arithmetic, "interpolation": interpolation}
    return partial(wk.resize, size=sides(size), **options)


def middle(images: Tensor, size: tuple[int, int]) -> Tensor:
    """The centre of images (N, C, H, W), as torchvision's CenterCrop if they are large enough."""
    y, x = (round((have - want) / 2) for have, want in zip(images.shape[-2:], size, strict=True))
    if min(x, y) < 0:
        have = " x ".join(map(str, images.shape[-2:]))
        raise CommandError(f"--pipeline: crop:{size[0]}x{size[1]} is larger than images of {have}")
    return images[..., y : y + size[0], x : x + size[1]]


def cropped(size: str) -> Step:
    return partial(middle, size=sides(size))


def normalized(*numbers: str) -> Step:
    """Normalises by ImageNet's numbers, by one mean and deviation, or by one of each per
    channel."""
    if not numbers:
        return normalize(*IMAGENET)
    values = [float(number) for number in numbers]
    if len(values) not in (2, 6):
        raise ValueError(numbers)
    half = len(values) // 2
    return normalize(values[:half], values[half:])


def scaled(factor: str) -> Step:
    number = float(factor)
    return on_floats(lambda images: images * number)


MAKERS: dict[str, Callable[..., Step]] = {
    "resize": resized,
    "crop": cropped,
    "jpeg": lambda quality: jpeg(int(quality)),
    "normalize": normalized,
    "scale": scaled,
    "bgr": lambda: reverse_channels,
    "round": lambda: to_uint8,
}
