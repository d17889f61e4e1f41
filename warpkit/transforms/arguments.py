"""Validates the arguments of transforms: interpolations, fills and borders."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import PIL.Image
from torchvision.transforms import InterpolationMode

from warpkit.core import checks
from warpkit.core.checks import Name
from warpkit.engine.definitions.rule_names import parse_rule
from warpkit.types import Border, BorderName, Filter, Interpolation

AnyInterpolation: TypeAlias = Interpolation | InterpolationMode | int
"""warpkit's name of an interpolation, torchvision's or Pillow's."""
AnyFilter: TypeAlias = Filter | Literal["nearest-exact"] | InterpolationMode | int
"""The same of a filter of `resize`."""
Fill: TypeAlias = float | Sequence[float] | dict[Any, Any] | None
"""torchvision's fills: a number, one for each channel, or these by input type."""

SHOWN: tuple[BorderName, ...] = tuple(
    border for border in get_args(BorderName) if border != "transparent"
)

PIL_NUMBERS = {mode.value: mode.name.lower() for mode in PIL.Image.Resampling}


def mode_name(function: str, interpolation: Any, names: Sequence[Name]) -> Name:
    """warpkit's name, one of `names`, of an interpolation that may be torchvision's or Pillow's."""
    value = interpolation.value if isinstance(interpolation, Enum) else interpolation
    if isinstance(value, int) and not isinstance(value, bool) and value in PIL_NUMBERS:
        value = PIL_NUMBERS[value]
    if isinstance(value, str) and value == "nearest-exact":
        value = "nearest_exact" if "nearest_exact" in names else "nearest"
    return checks.check_name(function, "interpolation", value, names)


def check_border(function: str, border: Any) -> Border:
    """Check a border other than "transparent", or two, (along y, along x)."""
    if isinstance(border, checks.LISTS):
        parse_rule(function, "bilinear", border, "exact")  # rejects what is no pair
        return tuple(border)
    return checks.check_name(function, "border", border, SHOWN)


def check_center(function: str, center: Any) -> list[float] | None:
    """A center is (x, y), or None."""
    if center is None:
        return None
    wanted = "(x, y), two numbers"
    try:
        pair = [float(number) for number in center]
    except (TypeError, ValueError, OverflowError):
        checks.fail(function, "center", wanted, f"{center!r:.60}", TypeError)
    if isinstance(center, checks.TEXT) or len(pair) != 2:
        checks.fail(function, "center", wanted, f"{center!r:.60}")
    return pair


def check_fill(function: str, fill: Any) -> Any:
    """Check a fill in torchvision's form: None, a number, several, or a dictionary of these."""
    if isinstance(fill, dict):
        return {kind: check_fill(function, value) for kind, value in fill.items()}
    if isinstance(fill, Real):
        return fill if isinstance(fill, int | float) else float(fill)
    several = isinstance(fill, checks.LISTS) and len(fill) > 0
    if fill is not None and not (several and all(isinstance(n, Real) for n in fill)):
        wanted = "a number, one for each channel, None, or a dictionary of these by type"
        checks.fail(function, "fill", wanted, f"{fill!r:.60}", TypeError)
    for number in fill or ():
        checks.float64_of(function, "fill", number)
    return fill


def check_ranges(function: str, **ranges: Any) -> None:
    """Ranges, given by two numbers or two pairs, must be in order."""
    for argument, ends in ranges.items():
        if ends is None:
            continue
        if not all(low <= high for low, high in zip(ends[::2], ends[1::2], strict=False)):
            wanted = "(low, high), numbers with low <= high"
            checks.fail(function, argument, wanted, f"{tuple(ends)!r:.60}")


def plain_lengths(size: Any) -> Any:
    """numpy's integers in a size as Python's own, since torchvision takes no others."""
    if isinstance(size, np.ndarray) and size.ndim == 1:
        size = tuple(size)
    if isinstance(size, list | tuple):
        return (list if isinstance(size, list) else tuple)(map(plain_lengths, size))
    is_whole = isinstance(size, Integral) and not isinstance(size, bool)
    return int(size) if is_whole else size


def check_lengths(function: str, size: Any) -> Any:
    """A size is one or two integers of at least 1; torchvision decides how many.

    Returned as `plain_lengths`.
    """
    size = plain_lengths(size)
    several = isinstance(size, Sequence) and not isinstance(size, checks.TEXT)
    sides: list[Any] = [*size] if several else [size]
    whole = all(isinstance(n, int) and not isinstance(n, bool) for n in sides)
    if not whole or min(sides, default=1) < 1:
        wanted = "a whole number of at least 1, or two"
        checks.fail(function, "size", wanted, f"{size!r:.60}", ValueError if whole else TypeError)
    return size
