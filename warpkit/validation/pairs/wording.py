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
    sentences = []
    if turned:
        sentences.append(
            f"Not known: pairs are mirrored or turned, {len(turned)}: {_some(turned)}."
        )
    if lost:
        sentences.append(
            f"Not known: results do not show their pictures, {len(lost)}: {_some(lost)}."
        )
    return sentences


def open_words(answer: Preprocessing, groups: Sequence[Group], comparison: Comparison) -> list[str]:
    """Sentences about what is still unknown in the first group."""
    group = groups[0]
    if not group.exact and answer.candidates[0][2] > PLACED:
        text = "what is known lies nowhere near: crops may be random, or not centred"
        return [f"Not known: {text}, or more was done than a resize."]
    if comparison.numbers.changed:
        return ["Not known: the results' levels are not the pictures': contrast or brightness."]
    if not group.exact or group.joined:
        sentence = "Not known: no program that is known gives every value."
        if group.joined:
            odd = [str(comparison.pairs[k].index) for k in sorted(group.joined)]
            sentence += f" Without {len(odd)} of the pairs ({_some(odd)}) the first candidate does."
        return [sentence]
    if len(answer.candidates) == 1 and answer.rule is not None and answer.channels is not None:
        return []
    left = [name for name in OPEN if getattr(answer, name) is None]
    if answer.rule == "keep" or (answer.interpolation is None and len(answer.candidates) == 1):
        left = [name for name in left if name not in OPEN[2:6]]
    if answer.rule == "keep":
        left = [name for name in left if name != "size"]
    return [f"These pairs do not tell: {', '.join(left)}."] if left else []


def _some(items: Sequence[str]) -> str:
    names = ", ".join(items[:LISTED])
    return names + (f" and {len(items) - LISTED} more" if len(items) > LISTED else "")
