"""The resizes that a program may use, as data, and their results.

`Resampling` names a resize in the words of `Preprocessing`. `resample` computes its levels, and
`smooth` the floats whose gradient it uses. `candidates` lists the usual resizes, and
`rare_candidates` the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from warpkit.choices import SCIPY_FILTERS, SPLINE_FILTERS
from warpkit.engine.arithmetic.guarantees import installed_arithmetic
from warpkit.engine.arithmetic.resize import ZOOMS, filters_of
from warpkit.engine.arithmetic.torch_resize import has_kernel
from warpkit.resizing import resize, resize_by
from warpkit.types import Filter, ResizeArithmetic
from warpkit.validation.programs import weights
from warpkit.validation.programs.geometry import Placement

Pair = tuple[int, int]


@dataclass(frozen=True)
class Resampling:
    """One resize: filter, library, and how its numbers are rounded."""

    interpolation: Filter
    antialias: bool
    arithmetic: str
    aligned: str = "centers"
    rounded: bool | str = True
    """True: rounded to 8 bits, half to even; "down": truncated; False: floats."""
    clamped: bool = False
    scale: str = "sizes"
    single: bool = False
    """The factor is a float32, as in OpenCV's dnn module."""

    def __str__(self) -> str:
        library = {"exact": "the exact", "pillow": "Pillow's"}
        name = library.get(self.arithmetic, f"{self.arithmetic}'s")
        words = [f"{name} {self.interpolation}"]
        words += ["antialiased"] if self.antialias else []
        words += [f"aligned by {self.aligned}"] if self.aligned != "centers" else []
        words += {True: [], False: ["in floats"], "down": ["cut to 8 bits"]}[self.rounded]
        words += ["clamped"] if self.clamped else []
        return ", ".join(words)

    @property
    def moves(self) -> bool:
        """Whether the resize only moves pixels, without computing anything."""
        return self.interpolation.startswith("nearest")


def resample(levels: Tensor, placement: Placement, how: Resampling) -> Tensor:
    """The result (C, h, w) of the program's resize for levels (C, H, W), uint8 or floats."""
    if how.rounded is True and levels.dtype == torch.uint8 and how.arithmetic not in FLOATS:
        return _integers(levels, placement, how)
    resized = smooth(levels.float(), placement, how)
    if how.moves:
        return resized
    if how.rounded is True:
        return resized.clamp(0, 255).round()
    if how.rounded == "down":
        return resized.clamp(0, 255).floor()
    return resized.clamp(0, 255) if how.clamped else resized


FLOATS = ("torch", "tensorflow", "skimage")
"""Arithmetics that compute in floats, even if they return 8 bits."""


def _integers(levels: Tensor, placement: Placement, how: Resampling) -> Tensor:
    """Resizes uint8 (C, H, W) in an arithmetic for integers."""
    size, name = placement.size, how.interpolation
    if how.arithmetic in ZOOMS:
        return resize(levels, size, **zoom_options(how))
    if how.scale == "factor":
        return _by_factor(levels, placement, how)
    return resize(
        levels,
        size,
        interpolation=name,
        antialias=_antialias(how),
        arithmetic=_library(how),
        box=placement.cut,
    )


def smooth(levels: Tensor, placement: Placement, how: Resampling) -> Tensor:
    """Resizes float levels (..., C, H, W) with the same filter, without rounding;
    differentiable."""
    size = placement.size
    if how.arithmetic in ZOOMS:
        return resize(levels, size, **zoom_options(how))
    if how.aligned == "corners":
        return _resize_by_corners(levels, size, how)
    if how.arithmetic == "tensorflow":
        kind = f"antialiased_{how.interpolation}" if how.antialias else how.interpolation
        return weights.resized(levels, size, kind, how.aligned)
    if how.scale == "factor":
        return _by_factor(levels, placement, how)
    return resize(
        levels,
        size,
        interpolation=how.interpolation,
        antialias=_antialias(how),
        arithmetic=_library(how),
        box=placement.cut,
    )


def zoom_options(how: Resampling) -> dict[str, Any]:
    """The options of `resize` for SciPy's and scikit-image's numbers."""
    options: dict[str, Any] = {"interpolation": how.interpolation, "arithmetic": how.arithmetic}
    if how.arithmetic == "scipy":
        return options | {"aligned": how.aligned}
    return options | ({} if how.moves else {"antialias": how.antialias})


def _antialias(how: Resampling) -> bool | None:
    """The `antialias` argument of `resize`; None for filters and libraries without a choice."""
    has_both = _library(how) in ("exact", "torchvision")
    has_both = has_both and not (how.moves or how.interpolation == "area")
    return how.antialias if has_both else None


def _library(how: Resampling) -> ResizeArithmetic:
    """The name of the arithmetic in `resize`: torch's floats are called torchvision there."""
    name = "torchvision" if how.arithmetic == "torch" else how.arithmetic
    return cast(ResizeArithmetic, name)  # other libraries have functions of their own


def _by_factor(levels: Tensor, placement: Placement, how: Resampling) -> Tensor:
    """cv2.resize of (..., C, H, W), called with fx and fy."""
    fy, fx = placement.factors
    pairs = zip(placement.size, levels.shape[-2:], (fy, fx), strict=True)
    if any(abs(side - length * factor) > 1 for side, length, factor in pairs):
        raise ValueError("sides that are no multiples of the factor")
    if how.single:
        fy, fx = (
            float(torch.tensor(factor, dtype=torch.float32, device="cpu")) for factor in (fy, fx)
        )
    return resize_by(
        "identify",
        levels,
        placement.size,
        how.interpolation,
        None,
        None,
        how.arithmetic,
        "auto",
        (fy, fx),
    )


def _resize_by_corners(levels: Tensor, size: Pair, how: Resampling) -> Tensor:
    """F.interpolate of (..., C, H, W) with align_corners=True."""
    batch = levels if levels.ndim == 4 else levels[None]
    result = F.interpolate(batch, size, mode=how.interpolation, align_corners=True)
    return result if levels.ndim == 4 else result[0]


@cache
def opencv_names() -> tuple[str, str]:
    """The arithmetic of the installed OpenCV, and that of the other version."""
    installed = installed_arithmetic()
    return installed, "opencv4" if installed == "opencv5" else "opencv5"


@cache
def candidates() -> tuple[Resampling, ...]:
    """The usual resizes, including those that give equal numbers."""
    opencv, other = opencv_names()
    ways = [Resampling(name, name != "nearest", "pillow") for name in filters_of("pillow")]
    ways += [Resampling(name, False, opencv) for name in filters_of(opencv)]
    ways += [Resampling("bicubic", False, f"{opencv}_ipp")]
    ways += [Resampling("nearest_exact", False, other)]
    torches = []
    for name in ("bilinear", "bicubic"):
        for antialias in (True, False):
            how = Resampling(name, antialias, "torch", rounded=False)
            ways.append(replace(how, arithmetic="torchvision", rounded=True))
            torches.append(how)
            if not antialias:
                torches.append(replace(how, aligned="corners"))
    torches.append(Resampling("area", False, "torch", rounded=False))
    if has_kernel("lanczos", True, torch.float32, "cpu"):
        ways.append(Resampling("lanczos", True, "torchvision"))
        torches.append(Resampling("lanczos", True, "torch", rounded=False))
    ways += [replace(how, rounded=r) for how in torches for r in (True, "down", False)]
    ways += [replace(how, clamped=True) for how in torches if _overshoots(how)]
    ways += [Resampling(name, False, "torchvision") for name in ("nearest", "nearest_exact")]
    for name in filters_of("exact"):
        if name in SPLINE_FILTERS:
            continue
        for antialias in (True, False):
            if not _exact_has(name, antialias):
                continue
            how = Resampling(name, antialias and name != "area", "exact")
            ways.append(how)
            ways += [replace(how, rounded=False)] if name != "nearest" else []
    for name in filters_of("pillow")[1:]:
        floats = Resampling(name, True, "pillow", rounded=False)
        ways.append(floats)
        ways += [replace(floats, clamped=True)] if _overshoots(floats) else []
    for name in ("bilinear", "bicubic", "area", "lanczos4"):
        floats = Resampling(name, False, opencv, rounded=False)
        ways.append(floats)
        ways += [replace(floats, clamped=True)] if _overshoots(floats) else []
        if name in ("bilinear", "bicubic"):
            ways.append(replace(floats, arithmetic=f"{opencv}_ipp"))
    return tuple(ways)


@cache
def rare_candidates() -> tuple[Resampling, ...]:
    """Resizes to try if no usual one fits, or only torch's floats, which are nearly equal."""
    opencv, _ = opencv_names()
    names = filters_of(opencv)
    ways = [Resampling(name, False, opencv, scale="factor") for name in names]
    ways += [Resampling("bicubic", False, f"{opencv}_ipp", scale="factor")]
    ways += [replace(how, single=True) for how in ways]
    floats = [Resampling("bilinear", False, "tensorflow", rounded=False)]
    floats.append(Resampling("bicubic", False, "tensorflow", rounded=False))
    floats.append(Resampling("bilinear", False, "tensorflow", "start", rounded=False))
    floats.append(Resampling("bilinear", True, "tensorflow", rounded=False))
    floats.append(Resampling("bicubic", True, "tensorflow", rounded=False))
    for name in SCIPY_FILTERS[1:]:
        floats += [Resampling(name, a, "skimage", rounded=False) for a in (True, False)]
    ways += [replace(how, rounded=r) for how in floats for r in (False, "down", True)]
    for name, aligned in product(SCIPY_FILTERS, ("corners", "centers")):
        how = Resampling(name, False, "scipy", aligned)
        ways += [how] if how.moves else [how, replace(how, rounded=False)]
    for name in SPLINE_FILTERS:
        how = Resampling(name, False, "exact")
        ways += [how, replace(how, rounded=False)]
    ways += [replace(how, clamped=True) for how in floats if _overshoots(how)]
    return tuple(ways)


def _overshoots(how: Resampling) -> bool:
    """Whether its float results leave the range 0..255."""
    return how.interpolation in ("bicubic", "lanczos", "lanczos4")


def _exact_has(name: Filter, antialias: bool) -> bool:
    try:
        resize(torch.zeros(1, 9, 9, device="cpu"), (5, 5), interpolation=name, antialias=antialias)
    except ValueError:
        return False
    return True


USUAL = (
    *("bilinear", "bicubic", "area", "lanczos", "lanczos4", "nearest", "box", "hamming"),
    *("nearest_exact", "bilinear_exact", "spline3", "spline2", "spline4", "spline5"),
)


def preference(how: Resampling, takes: str) -> tuple[object, ...]:
    """Sorts resizes with equal numbers: the library whose kind of picture `takes` is comes
    first."""
    opencv, other = opencv_names()
    opencvs = (opencv, f"{opencv}_ipp", other, f"{other}_ipp")
    torches = ("torchvision", "torch")
    takes = "pil" if takes in ("file", "bytes") else takes
    first = {
        "pil": ("pillow", *torches, *opencvs),
        "array": (*opencvs, "pillow", *torches),
        "tensor": (*torches, "pillow", *opencvs),
    }[takes]
    order = (*first, "exact", "tensorflow", "skimage", "scipy")  # one calls the other
    if how.rounded is False:  # torch's floats come before Pillow's for every kind of picture
        order = ("torch", *(name for name in order if name != "torch"))
    return (
        order.index(how.arithmetic),
        how.rounded is False,
        how.rounded == "down",
        how.aligned != "centers",
        how.clamped,
        how.scale != "sizes",
        USUAL.index(how.interpolation),
    )
