"""Groups pairs by program: exactly, value by value, or by the nearest program after a codec."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from warpkit.validation.pairs.comparing import Candidate, Comparison, Mark
from warpkit.validation.pairs.numbers import shift_by
from warpkit.validation.pairs.pool import kinds
from warpkit.validation.pairs.rules import Arrangement
from warpkit.validation.programs.arithmetic import Resampling, opencv_names
from warpkit.validation.programs.geometry import Placement
from warpkit.validation.programs.search import makes_gray
from warpkit.validation.programs.values import Values

PROMISING = 0.03
"""If more of one channel's values differ, the other two channels are not compared."""

RANKED = 6
"""The number of a picture's placements that are tried with all resizes, the nearest first."""

FAILING = 4
"""The number of pairs without a fit after which no more are tried."""

NEARER = 1.5
"""By what factor another candidate must be nearer for a pair without a fit to leave its group."""

NEARER_ROOM = 0.05
"""Levels: smaller distances are rounding errors."""

NEAREST = 12
"""If nothing fits: the number of candidates that are compared with all pairs."""

ASKED = 8
"""If nothing fits: the number of pairs by which candidates are ranked."""


@dataclass
class Group:
    """The pairs of one program, and its candidates: those that fit, or the nearest, best first."""

    pairs: list[int]
    candidates: list[Candidate]
    exact: bool
    joined: list[int] = field(default_factory=list)
    """Pairs that fit no program, of which this group's is the nearest."""


class Fit(NamedTuple):
    """A placement, resize and values that give all values of a pair."""

    placement: Placement
    how: Resampling | None
    values: Values


class Parting:
    """The pairs, the rules, and the resizes to try."""

    def __init__(self, comparison: Comparison, rules: Sequence[Arrangement]) -> None:
        self.comparison, self.rules = comparison, rules
        self.whole = comparison.numbers.whole
        self.pool: list[Resampling | None] = list(kinds(whole=self.whole))
        if all(_idle(rule, comparison) for rule in rules):
            self.pool = [None]
        pairs = comparison.pairs
        self.order = sorted(range(len(pairs)), key=lambda k: pairs[k].cost)

    def groups(self) -> list[Group]:
        """All groups, the largest first."""
        self._settle_offset()
        exact, left = self._exact()
        if not exact and self.pool != [None]:
            self.pool = list(kinds(whole=self.whole, rare=True))
            exact, left = self._exact()
            usual: list[Resampling | None] = list(kinds(whole=self.whole))
            self.pool = [*usual, *self.pool] if exact else usual
        if not exact:
            return self._nearest_groups(list(range(len(self.comparison.pairs))))
        apart = [k for k in left if not self._joined(k, exact)]
        groups = sorted(exact, key=lambda group: -len(group.pairs))
        if apart:
            groups += self._nearest_groups(apart)
        for group in groups:
            group.pairs.sort()
        return sorted(groups, key=lambda group: -len(group.pairs))

    def placements(self, k: int) -> list[Placement]:
        """The possible placements of pair k; if there are many, only the nearest, in order."""
        window = self.comparison.pairs[k].result.numbers.shape[-2:]
        distinct = dict.fromkeys(rule.placements[k] for rule in self.rules)
        candidates = [placement for placement in distinct if placement.window == window]
        if len(candidates) <= 3 or self.pool == [None]:
            return candidates
        ranked = []
        for placement in candidates:
            marks = [
                self.comparison.mark_at(k, placement, how, self.comparison.numbers.variants[0])
                for how in _quick(self.whole)
            ]
            ranked.append(min(mark.distance for mark in marks))
        lowest = min(ranked)
        order = sorted(range(len(candidates)), key=lambda i: ranked[i])
        return [candidates[i] for i in order if ranked[i] <= 1.5 * lowest + 0.3][:RANKED]

    def fits(self, k: int) -> list[Fit]:
        """Everything that gives all values of pair k."""
        candidates = []
        for placement in self.placements(k):
            for how in self.pool:
                for values in self.comparison.numbers.variants:
                    if not _goes_with(how, values):
                        continue
                    quick = self.comparison.quick_share(k, placement, how, values)
                    if quick > PROMISING:
                        continue
                    if not self.comparison.mark_at(k, placement, how, values).differing:
                        candidates.append(Fit(placement, how, values))
        return candidates

    def _settle_offset(self) -> None:
        """For floats on a lattice: settle the offset by the median of the nearest candidate."""
        comparison = self.comparison
        numbers = comparison.numbers
        if not numbers.whole:
            return
        if np.allclose(numbers.gain, 1) and np.allclose(numbers.offset, 0):
            return
        best: tuple[float, NDArray[np.float64]] | None = None
        for k in self.order[:2]:
            for placement in self.placements(k):
                for how in self.pool:
                    values = numbers.variants[0]
                    expected = comparison.render(k, placement, how, values)
                    if expected is None:
                        continue
                    levels = comparison.pairs[k].result.numbers - numbers.offset[:, None, None]
                    top, left, bottom, right = placement.content()
                    apart = expected - levels / numbers.gain[:, None, None]
                    apart = apart[:, top:bottom, left:right]  # padding agrees anyway
                    shift = np.round(np.median(apart.reshape(len(apart), -1), 1))
                    rest = float(np.abs(apart - shift[:, None, None]).mean())
                    if best is None or rest < best[0]:
                        best = rest, shift
        if best is not None and best[1].any():
            shift = best[1]
            padding = [tuple(map(float, np.add(level, shift))) for level in comparison.padding]
            shifted_numbers = shift_by(numbers, shift)
            self.comparison = replace(
                comparison, numbers=shifted_numbers, padding=padding, _marks={}
            )

    def _exact(self) -> tuple[list[Group], list[int]]:
        """The groups of pairs that one program fits exactly, and the pairs that nothing fits."""
        left, failed, groups = list(self.order), [], []
        while left and len(failed) < FAILING * (1 + len(groups)):
            seed = left[0]
            fits = self.fits(seed)
            if not fits:
                failed.append(seed)
                left.remove(seed)
                continue
            members, candidates = self._largest(seed, fits, left)
            groups.append(Group(sorted(members), candidates, exact=True))
            left = [k for k in left if k not in members]
        return groups, failed + left

    def _largest(
        self, seed: int, fits: Sequence[Fit], left: Sequence[int]
    ) -> tuple[set[int], list[Candidate]]:
        """The pairs fitted by the best of `fits`, and all candidates that fit the same pairs."""
        hits_of: list[tuple[set[int], Candidate]] = []
        for fit in fits:
            for rule in self.rules:
                if rule.placements[seed] != fit.placement:
                    continue
                candidate = Candidate(rule, fit.how, fit.values)
                hits = {k for k in left if not self.comparison.mark(k, candidate).differing}
                hits_of.append((hits, candidate))
        members = max((hits for hits, _ in hits_of), key=len)
        return members, [candidate for hits, candidate in hits_of if hits >= members]

    def _joined(self, k: int, groups: Sequence[Group]) -> bool:
        """Add a pair without a fit to the nearest group, unless another program is nearer."""
        marks = [self.comparison.mark(k, group.candidates[0]).distance for group in groups]
        nearest = int(np.argmin(marks))
        best = min((mark.distance for mark, _ in self._all_marks(k)), default=marks[nearest])
        if marks[nearest] > NEARER * best + NEARER_ROOM:
            return False
        groups[nearest].pairs.append(k)
        groups[nearest].joined.append(k)
        return True

    def _all_marks(self, k: int) -> list[tuple[Mark, Fit]]:
        marks = []
        for placement in self.placements(k):
            for how in self.pool:
                for values in self.comparison.numbers.variants[:1]:
                    mark = self.comparison.mark_at(k, placement, how, values)
                    marks.append((mark, Fit(placement, how, values)))
        return marks

    def _nearest_groups(self, pairs: Sequence[int]) -> list[Group]:
        """Groups by distance, if nothing fits; two groups if many pairs prefer a second
        candidate."""
        sample = [k for k in self.order if k in set(pairs)][:ASKED]
        candidates = self._near_candidates(sample)
        table = np.array([[self.comparison.mark(k, c).distance for k in pairs] for c in candidates])
        members, others = _split(table)
        groups = []
        for part in (members, others):
            if part:
                order = np.argsort(table[:, part].mean(1), kind="stable")
                ranked = [candidates[int(i)] for i in order]
                groups.append(Group([pairs[k] for k in part], ranked, exact=False))
        return sorted(groups, key=lambda group: -len(group.pairs))

    def _near_candidates(self, sample: Sequence[int]) -> list[Candidate]:
        """The nearest candidates for a few pairs: on average, and for each pair."""
        rules = self._near_rules(sample)
        marks_of: list[tuple[list[float], Candidate]] = []
        for rule in rules:
            for how in self.pool:
                for values in self.comparison.numbers.variants:
                    if _goes_with(how, values):
                        candidate = Candidate(rule, how, values)
                        marks = [self.comparison.mark(k, candidate).distance for k in sample]
                        marks_of.append((marks, candidate))
        marks_of.sort(key=lambda item: float(np.mean(item[0])))
        chosen = [candidate for _, candidate in marks_of[:NEAREST]]
        for k in range(len(sample)):  # pairs of another program have another nearest candidate
            nearest = min(marks_of, key=lambda item: item[0][k])[1]
            chosen += [] if nearest in chosen else [nearest]
        return chosen

    def _near_rules(self, sample: Sequence[int]) -> list[Arrangement]:
        """The rules with the nearest placements; among equal ones, the plainest."""
        values = self.comparison.numbers.variants[0]
        hows = _quick(self.whole) if self.pool != [None] else [None]
        ranked = []
        for rule in self.rules:
            marks = [
                min(self.comparison.mark(k, Candidate(rule, how, values)).distance for how in hows)
                for k in sample[:4]
            ]
            ranked.append((float(np.mean(marks)), rule))
        ranked.sort(key=lambda item: item[0])
        return [rule for mark, rule in ranked if mark <= 1.3 * ranked[0][0] + 0.05][:4]


def _idle(rule: Arrangement, comparison: Comparison) -> bool:
    """Whether a rule resizes nothing."""
    return all(
        placement.size == pair.shape and placement.cut is None and placement.padded is None
        for placement, pair in zip(rule.placements, comparison.pairs, strict=True)
    )


def _goes_with(how: Resampling | None, values: Values) -> bool:
    """Whether a resize can be combined with the values; not all gray sums can."""
    return how is None or not values.is_gray or makes_gray(how, values)


def _quick(whole: bool) -> list[Resampling | None]:
    """One resize of each kind, to rank places by."""
    opencv, _ = opencv_names()
    return [
        Resampling("bilinear", True, "exact", rounded=whole),
        Resampling("bilinear", False, opencv, rounded=whole),
        Resampling("nearest", False, "pillow"),
        Resampling("nearest", False, opencv),
    ]


def _split(table: NDArray[np.float64]) -> tuple[list[int], list[int]]:
    """Splits the columns (pairs) in two if some strongly prefer another row (candidate)."""
    best = int(table.mean(1).argmin())
    nearest = table.argmin(0)
    count = table.shape[1]
    away = [k for k in range(count) if table[best, k] > NEARER * table[nearest[k], k] + NEARER_ROOM]
    home = [k for k in range(count) if k not in away]
    if len(away) < 2 or not home:
        return list(range(count)), []
    first = int(table[:, home].mean(1).argmin())
    second = int(table[:, away].mean(1).argmin())
    if first == second:
        return list(range(count)), []
    members = [k for k in range(count) if table[first, k] <= table[second, k]]
    return members, [k for k in range(count) if k not in members]
