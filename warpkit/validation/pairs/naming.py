"""Describes a group of pairs, attribute by attribute, and what remains open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from warpkit.validation.pairs.comparing import Candidate, Comparison
from warpkit.validation.pairs.numbers import fitted_line
from warpkit.validation.pairs.parting import Group
from warpkit.validation.pairs.rules import plainness
from warpkit.validation.programs.describe import say_geometry, say_resampling, say_values
from warpkit.validation.programs.geometry import Geometry
from warpkit.validation.programs.report import Preprocessing
from warpkit.validation.programs.twin import Twin

OPEN = (
    *("before", "rule", "size", "limit", "multiple", "enlarge", "scale", "interpolation"),
    *("antialias", "arithmetic", "aligned", "clamped", "rounded", "crop", "pad", "canvas"),
    *("channels", "weights"),
)
"""Attributes that become None if several candidates disagree on them."""

RESIZE = ("interpolation", "antialias", "arithmetic", "aligned", "scale", "clamped")
"""Attributes that are not named if no program gives every value."""

WINDOW = ("before", "rule", "size", "limit", "multiple", "enlarge", "crop", "pad", "canvas")

PLACED = 6.0
"""Levels: a codec moves values by less; if the distance is larger, no rule is named."""

TIGHTER = 4.0
"""For floats: by what factor a candidate's worst value must be better to rule out others."""

TIGHT = 2e-4
"""Levels: below this distance floats count as equal."""

ALIKE_RULES = 1.05
"""If nothing fits: by what factor other rules must be worse for the nearest one to be named."""

LISTED = 12
"""The number of candidates of one group that are described."""


def name_group(answer: Preprocessing, comparison: Comparison, group: Group) -> None:
    """Describe the program that made these pairs, as far as it is known."""
    exact = group.exact and not group.joined
    candidates = _remaining(comparison, group) if exact else group.candidates
    described = []
    for candidate in candidates[:LISTED]:
        one = _describe(comparison, group, candidate)
        marks = [comparison.mark(k, candidate) for k in group.pairs]
        total = sum(mark.compared for mark in marks)
        share = sum(mark.differing for mark in marks) / max(1, total)
        described.append((one, share, float(np.mean([mark.distance for mark in marks]))))
    best = candidates[0]
    marks = [comparison.mark(k, best) for k in group.pairs]
    answer.differing = sum(mark.differing for mark in marks)
    answer.compared = sum(mark.compared for mark in marks)
    answer.largest = max(mark.largest for mark in marks) if answer.differing else 0.0
    if not exact:
        described.sort(key=lambda item: item[2])
    answer.candidates = _once(described)
    likely = described if exact else _near_rules(described)
    answers = [item[0] for item in likely]
    for name in OPEN:
        values = [getattr(one, name) for one in answers]
        setattr(answer, name, values[0] if all(v == values[0] for v in values) else None)
    first = answers[0]
    answer.gain, answer.offset = first.gain, first.offset
    if answer.rule is None:
        answer.size = None
    if answer.channels is None or not any(comparison.pairs[k].coloured for k in group.pairs):
        answer.channels = answer.weights = None
    if not exact:
        unnamed = RESIZE if answer.candidates[0][2] <= PLACED else (*RESIZE, *WINDOW)
        for name in unnamed:
            setattr(answer, name, None)
        return
    if comparison.numbers.changed:
        return
    twin = _twin(comparison, group, best)
    answer.twin, answer.pipeline = twin, twin.pipeline()


def _remaining(comparison: Comparison, group: Group) -> list[Candidate]:
    """Candidates that fit every value; a library goes before "exact", floats only if they are
    tightest."""
    candidates = group.candidates
    with_arithmetic = [c for c in candidates if c.how is not None and c.how.arithmetic != "exact"]
    candidates = with_arithmetic or candidates
    worst = [max(comparison.mark(k, c).largest for k in group.pairs) for c in candidates]
    lowest = min(worst)
    if not comparison.numbers.whole:
        limit = max(TIGHT, TIGHTER * lowest)
        candidates = [c for c, largest in zip(candidates, worst, strict=True) if largest <= limit]
    return candidates


def _describe(comparison: Comparison, group: Group, candidate: Candidate) -> Preprocessing:
    """Describes a candidate; attributes on which its geometries disagree are None."""
    rule, how, _ = candidate
    level = _padding(comparison, group)
    shapes = [comparison.pairs[k].shape for k in group.pairs]
    placements = [rule.placements[k] for k in group.pairs]
    padded = any(w > n for p in placements for w, n in zip(p.window, p.size, strict=True))
    answers = []
    for geometry in _plainest(rule.geometries):
        one = Preprocessing()
        say_geometry(one, geometry, level, shapes, padded=padded)
        answers.append(one)
    answer = answers[0]
    for name in OPEN:
        values = [getattr(one, name) for one in answers]
        if any(v != values[0] for v in values):
            setattr(answer, name, None)
    if answer.rule is None:
        answer.size = None
        windows = {comparison.pairs[k].result.numbers.shape[-2:] for k in group.pairs}
        answer.canvas = tuple(windows.pop()) if len(windows) == 1 else None
    say_values(answer, _values(comparison, group, candidate))
    say_resampling(answer, how)
    return answer


def _plainest(geometries: Sequence[Geometry]) -> list[Geometry]:
    """The geometries that need the fewest words."""
    lowest = min(plainness(geometry)[0] for geometry in geometries)  # type: ignore[type-var]
    return [geometry for geometry in geometries if plainness(geometry)[0] == lowest]


def _near_rules(
    described: Sequence[tuple[Preprocessing, float, float]],
) -> list[tuple[Preprocessing, float, float]]:
    """If nothing fits: the candidates whose rules are as near as the nearest one's."""
    lowest = described[0][2]
    return [item for item in described if item[2] <= ALIKE_RULES * lowest + 1e-9]


def _padding(comparison: Comparison, group: Group) -> tuple[float, ...]:
    """The levels around the pictures of a group."""
    levels = np.array([comparison.padding[k] for k in group.pairs])
    return tuple(map(float, np.median(levels, 0)))


def _values(comparison: Comparison, group: Group, candidate: Candidate) -> Any:
    """Gain and offset; if they are fitted, they are fitted again to all pairs of the group."""
    values = candidate.values
    if not comparison.numbers.fitted:
        return values
    expected, measured = [], []
    for k in group.pairs:
        levels = comparison.render(k, candidate.rule.placements[k], candidate.how, values)
        if levels is not None:
            expected.append(levels.reshape(len(levels), -1))
            measured.append(comparison.pairs[k].result.numbers.reshape(len(levels), -1))
    if not expected:
        return values
    x, y = np.concatenate(expected, 1), np.concatenate(measured, 1)
    lines = [fitted_line(a, b) for a, b in zip(x, y, strict=True)]
    gain, offset = (tuple(float(line[k]) for line in lines) for k in (0, 1))
    return replace(values, gain=gain, offset=offset)


def _twin(comparison: Comparison, group: Group, candidate: Candidate) -> Twin:
    geometry = _plainest(candidate.rule.geometries)[0]
    values = _values(comparison, group, candidate)
    return Twin(geometry, candidate.how, values, _padding(comparison, group))


def _once(
    described: Sequence[tuple[Preprocessing, float, float]],
) -> list[tuple[Preprocessing, float, float]]:
    """Removes candidates with equal descriptions."""
    distinct: dict[str, tuple[Preprocessing, float, float]] = {}
    for item in described:
        distinct.setdefault(repr(item[0].as_dict()), item)
    return list(distinct.values())
