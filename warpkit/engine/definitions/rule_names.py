"""Parses the names of interpolations, borders (one or two) and arithmetics into rules."""

from __future__ import annotations

from torch import Tensor

from warpkit.choices import WARP_INTERPOLATIONS
from warpkit.core import checks
from warpkit.engine.definitions.rules import (
    ARITHMETICS,
    BORDERS,
    INTERPOLATIONS,
    SamplingRule,
    pair_of,
)
from warpkit.engine.definitions.splines import is_spline
from warpkit.types import BorderName

ALIASES: dict[BorderName, BorderName] = {"zeros": "constant", "border": "replicate"}
"""torch's names for borders."""


def parse_rule(
    name: str, interpolation: object, border: object, arithmetic: object, splines: bool = False
) -> SamplingRule:
    """The rule, with all names checked and the border in OpenCV's name or as a pair.

    splines: whether the function has them.
    """
    names = WARP_INTERPOLATIONS if splines else INTERPOLATIONS
    interpolation = checks.check_name(name, "interpolation", interpolation, names)
    if isinstance(border, checks.LISTS):
        if len(border) != 2:
            wanted = "a name, or two, (along y, along x)"
            checks.fail(name, "border", wanted, f"{border!r:.60}")
        if "transparent" in border:  # the background would belong to neither axis
            checks.fail(name, "border", "two names other than 'transparent'", repr(border))
        along_y, along_x = (_border(name, one) for one in border)
        chosen = pair_of(along_y, along_x)
    else:
        chosen = along_y = along_x = _border(name, border)
    arithmetic = checks.check_name(name, "arithmetic", arithmetic, ARITHMETICS)
    if along_y != along_x and arithmetic != "exact":
        wanted = f"one name with arithmetic={arithmetic!r}: OpenCV has one border for both axes"
        checks.fail(name, "border", wanted, repr(border))
    if is_spline(interpolation):
        if arithmetic != "exact":
            wanted = f"one that OpenCV has with arithmetic={arithmetic!r}"
            checks.fail(name, "interpolation", wanted, repr(interpolation))
        if chosen == "transparent":
            wanted = f"another than 'transparent' with interpolation={interpolation!r}: its filter "
            checks.fail(name, "border", wanted + "reads beyond the image", "'transparent'")
    return SamplingRule(interpolation, chosen, arithmetic)


def _border(name: str, border: object) -> BorderName:
    """A border's name, converted to OpenCV's."""
    if isinstance(border, str) and border == "reflection":
        wanted = "'reflect' (edge repeated: torch's reflection with align_corners=False) or "
        wanted += "'reflect_101' (edge once: with align_corners=True)"
        checks.fail(name, "border", wanted, "'reflection'")
    names: tuple[BorderName, ...] = (*BORDERS, *ALIASES)
    chosen = checks.check_name(name, "border", border, names)
    return ALIASES.get(chosen, chosen)


def check_nearest(name: str, rule: SamplingRule, image: Tensor) -> None:
    """Raise an error for labels under another interpolation."""
    value = rule.interpolation
    checks.check_labels(name, "interpolation", value, image.dtype, "'nearest'", value == "nearest")
