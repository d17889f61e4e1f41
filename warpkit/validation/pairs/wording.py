"""Sentences about what pairs do not determine."""

from __future__ import annotations

from collections.abc import Sequence

from warpkit.validation.pairs.comparing import Comparison
from warpkit.validation.pairs.naming import PLACED
from warpkit.validation.pairs.parting import Group
from warpkit.validation.pairs.placing import Place
from warpkit.validation.programs.report import Preprocessing

LISTED = 5
"""The number of names and numbers that a sentence lists."""

OPEN = ("rule", "size", "interpolation", "antialias", "arithmetic", "aligned", "channels")


def turned_words(odd: Sequence[tuple[int, Place]]) -> list[str]:
    """Sentences about pairs in which the picture was not found upright."""
    turned = [f"{index} ({at.turned})" for index, at in odd if at.turned]
    lost = [str(index) for index, at in odd if not at.turned]
    said = []
    if turned:
        said.append(f"Not known: pairs are mirrored or turned, {len(turned)}: {_some(turned)}.")
    if lost:
        said.append(f"Not known: results do not show their pictures, {len(lost)}: {_some(lost)}.")
    return said


def open_words(found: Preprocessing, groups: Sequence[Group], comparison: Comparison) -> list[str]:
    """Sentences about what is still unknown in the first group."""
    group = groups[0]
    if not group.exact and found.candidates[0][2] > PLACED:
        text = "what is known lies nowhere near: crops may be random, or not centred"
        return [f"Not known: {text}, or more was done than a resize."]
    if comparison.numbers.changed:
        return ["Not known: the results' levels are not the pictures': contrast or brightness."]
    if not group.exact or group.joined:
        said = "Not known: no program that is known gives every value."
        if group.joined:
            odd = [str(comparison.pairs[k].index) for k in sorted(group.joined)]
            said += f" Without {len(odd)} of the pairs ({_some(odd)}) the first candidate does."
        return [said]
    if len(found.candidates) == 1 and found.rule is not None and found.channels is not None:
        return []
    left = [name for name in OPEN if getattr(found, name) is None]
    if found.rule == "keep" or (found.interpolation is None and len(found.candidates) == 1):
        left = [name for name in left if name not in OPEN[2:6]]
    if found.rule == "keep":
        left = [name for name in left if name != "size"]
    return [f"These pairs do not tell: {', '.join(left)}."] if left else []


def _some(items: Sequence[str]) -> str:
    shown = ", ".join(items[:LISTED])
    return shown + (f" and {len(items) - LISTED} more" if len(items) > LISTED else "")
