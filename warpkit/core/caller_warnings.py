"""Issues warnings that point at the caller's own line."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import torch
from torch import Tensor

from warpkit.core import tracing

INSIDE = ("warpkit", "torch", "torchvision")
"""Packages whose lines are not the caller's: layers, transforms, sharding and `warpkit.opencv` call
each other."""


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line outside the package; Python's filter shows it once per line."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in INSIDE:
        level, frame = level + 1, frame.f_back
        # Python does not count the frames of an import
        while frame.f_back and frame.f_globals.get("__name__", "").startswith("importlib._boot"):
            frame = frame.f_back
    warnings.warn(text, category, stacklevel=level)


def warn_of_lost_gradients(function: str, image: Tensor, interpolation: str, **places: Any) -> None:
    """Warn that no gradient reaches `places`, by name.

    Integers have none, and nearest has none. Labels, integers with nearest, cause no warning: they
    follow a trained matrix, and train nothing.
    """
    floating, nearest = image.is_floating_point(), interpolation == "nearest"
    if floating != nearest or torch.compiler.is_compiling():
        return
    wanting = [
        argument
        for argument, place in places.items()
        if isinstance(place, Tensor) and tracing.wants_gradient(place)
    ]
    if not wanting:
        return
    text = f"{function}: no gradient reaches {' and '.join(f'`{name}`' for name in wanting)} "
    if nearest:
        text += "under nearest interpolation: take bilinear, lend nearest's values its gradient by "
        warn(text + "warpkit.straight_through(nearest, bilinear), or detach what needs none")
    else:
        text += f"through an image of {image.dtype}: "
        warn(text + "pass a floating one (image.float()), or detach what needs none")
