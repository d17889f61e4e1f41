"""Finds out, on patterns, whether a pipeline step takes 8 bits or floats, and in which range."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from warpkit.attacks.pictures import Picture, cuda_of, random_state, set_random_state, unit
from warpkit.core import exports
from warpkit.core.caller_warnings import warn

Function = Callable[..., Any]
Parts = tuple[Tensor, ...]

AGREES = 0.05
"""The allowed difference between a step's results for 8 bits and floats, relative to the spread.

Intermediate rounding to 8 bits is 1/500 of the full range; a factor of 255 is far larger."""
UNLIKE = 0.1
"""A mean difference of 25 levels between results for 8 bits and floats: more than rounding."""
FLAT = 1 / 50
"""The remaining share of the contrast if a step expects numbers 255 times as large."""
GREY = 0.8
"""204 / 255: a conversion leaves a picture of one colour as it is."""


class Takes(NamedTuple):
    """What a step takes."""

    kind: str
    """"uint8" or "floats"."""
    scale: float | None = None
    """The value of white, for a function that only converts 8 bits to floats."""
    in_levels: bool = False
    """Whether its floats are in [0, 255] where its 8 bits are: as 8 bits, x / 127.5 - 1."""


def find_out(place: str, function: Function, pictures: Sequence[Picture], *, warns: bool) -> Takes:
    """What a function takes of these pictures, at least one of which has 8 bits.

    warns: if its results for 8 bits and for floats leave doubt.
    """
    exports.refuse(
        "Pipeline",
        "since what its steps take is found out on values at the first call",
        "call it once before the export, on images of the example's size",
    )
    shapes = [picture.real.detach() for picture in pictures]
    with torch.no_grad(), torch.random.fork_rng(list(cuda_of(shapes[0]))):
        return _find_takes(place, _Trial(function, shapes), warns)


class _Trial:
    """A function, called on pictures that replace those with 8 bits; each time on equal draws."""

    def __init__(self, function: Function, shapes: list[Tensor]) -> None:
        self.function, self.shapes = function, shapes
        self.begun = random_state(shapes[0])
        self.dtype = torch.get_default_dtype()

    def inputs(self, make: Callable[[Tensor], Tensor]) -> list[Tensor]:
        """The arguments: `make` of the pattern of each picture with 8 bits, the others as is."""
        return [make(pattern(x)) if x.dtype == torch.uint8 else x for x in self.shapes]

    def of(self, make: Callable[[Tensor], Tensor]) -> Parts | None:
        """The results; None if it raises an error or returns something else than images."""
        set_random_state(self.shapes[0], self.begun)
        try:
            result = self.function(*self.inputs(make))
        except Exception:  # a function may raise any error for an unsupported type
            return None
        parts = result if isinstance(result, tuple) else (result,)
        return parts if parts and all(isinstance(part, Tensor) for part in parts) else None

    def of_unit(self) -> Parts | None:
        return self.of(lambda levels: unit(levels, self.dtype))

    def of_levels(self) -> Parts | None:
        return self.of(lambda levels: levels.to(self.dtype))

    def of_colour(self, colour: float) -> Parts | None:
        return self.of(lambda levels: torch.full_like(levels, colour, dtype=self.dtype))


def _find_takes(place: str, trial: _Trial, warns: bool) -> Takes:
    of_uint8, of_unit = trial.of(lambda levels: levels), trial.of_unit()
    if of_uint8 is None and of_unit is None:
        trial.function(*trial.inputs(lambda levels: levels))  # takes neither: raise its own error
    if of_uint8 is None or not all(
        x.dtype == torch.uint8 or x.is_floating_point() for x in of_uint8
    ):
        return Takes("floats")
    if of_unit is not None and [x.shape for x in of_unit] != [x.shape for x in of_uint8]:
        of_unit = None
    images = all(x.dtype == torch.uint8 for x in of_uint8)
    if of_unit is None:
        return Takes("uint8" if images else "floats")
    if _agree(of_uint8, of_unit):
        return Takes("uint8")  # of floats it checks the type and scales by itself
    (levels, *others) = trial.inputs(lambda levels: levels)
    if not images and len(of_uint8) == 1 and not others and of_uint8[0].shape == levels.shape:
        values = unit(levels, trial.dtype)
        for scale in (1.0, 255.0):  # x / 255, x.float()
            if torch.allclose(
                of_uint8[0], (values * scale).to(of_uint8[0].dtype), atol=1e-6 * scale
            ):
                return Takes("uint8", scale)
    of_levels = trial.of_levels()
    same = of_levels is not None and [x.shape for x in of_levels] == [x.shape for x in of_uint8]
    same = same and of_levels is not None and _agree(of_uint8, _in_types_of(of_uint8, of_levels))
    if images:
        if same and min(_spread(x.float()) for x in of_uint8) > FLAT * _spread(levels.float()):
            return Takes("uint8", in_levels=True)
        if warns:
            text = f"{place} returns different images for 8 bits and floats: values are "
            text += "in [0, 255] in one case and in [0, 1] in the other; it gets 8 bits, "
            warn(text + "`on_floats(step)` gives it floats")
        return Takes("uint8")
    flat = _is_flat(trial, of_unit)
    if same and (flat or _is_conversion(trial)):
        return Takes("uint8", in_levels=True)
    if flat and warns:
        text = f"{place} gets floats in [0, 1] and returns nearly constant values: if it "
        warn(text + "divides 8 bits by 255 itself, use `on_uint8(step, surrogate)`")
    return Takes("floats")


def _agree(of_uint8: Parts, of_floats: Parts) -> bool:
    """Whether results for 8 bits are those for floats, up to rounding, and constants of images."""
    for real, floats in zip(of_uint8, of_floats, strict=True):
        if real.dtype == torch.uint8:
            # an added constant (255 - x) does not affect the gradient
            difference = unit(real, floats.dtype) - floats
            if not float((difference - difference.mean()).abs().mean()) <= UNLIKE:
                return False
        else:
            spread = _spread(real) + float(real.abs().mean())
            if not float((real - floats).abs().mean()) <= AGREES * spread:
                return False
    return True


def _in_types_of(of_uint8: Parts, of_levels: Parts) -> Parts:
    """Results for floats in [0, 255], where images with 8 bits are in [0, 1]."""
    pairs = zip(of_uint8, of_levels, strict=True)
    return tuple(x / 255 if real.dtype == torch.uint8 else x for real, x in pairs)


def _is_flat(trial: _Trial, of_unit: Parts) -> bool:
    """Whether floats in [0, 1] hardly change the results: it expects numbers up to 255.

    Not their spread: (x - mean) / std has one of another mean for each channel.
    """
    black = trial.of_colour(0.0)
    if black is None or [x.shape for x in black] != [x.shape for x in of_unit]:
        return False
    for values, dark in zip(of_unit, black, strict=True):
        contrast, offset = (values - dark).abs().mean(), dark.abs().mean()
        if not float(contrast) < FLAT * max(float(offset), 0.5):  # 0.5 is the pattern's mean
            return False
    return True


def _is_conversion(trial: _Trial) -> bool:
    """Whether a picture of one colour keeps it, beside padding: x.float(), resized or not."""
    grey = trial.of_colour(GREY)
    return grey is not None and all(
        bool(((x - GREY).abs() < 1e-3).logical_or(x == 0).all()) and bool((x != 0).any())
        for x in grey
    )


def _spread(images: Tensor) -> float:
    """The standard deviation of images (N, ...)."""
    return float(images.std(correction=0))


def pattern(levels: Tensor) -> Tensor:
    """Ramps of all levels in the shape of images (N, C, H, W)."""
    height, width = levels.shape[-2:]
    rows, columns = (torch.arange(side, device=levels.device) for side in (height, width))
    channels = torch.arange(levels.shape[-3], device=levels.device)[:, None, None]
    ramps = (13 + 3 * rows[:, None] + 5 * columns + 61 * channels) % 256
    return ramps.to(torch.uint8).expand(levels.shape).contiguous()
