"""Finds rules for sizes, crops and padding that agree with the positions in the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from warpkit.validation.pairs.placing import Place
from warpkit.validation.pairs.reading import PicturePair
from warpkit.validation.programs.geometry import Geometry, Placement
from warpkit.validation.programs.hypotheses import agrees, geometries
from warpkit.validation.programs.observe import Look

LOOKED = 8
"""The number of pairs from which rules are made; the others only test them."""

SEEDS = 5
"""If no rule fits all pairs: the number of pairs from each of which rules are made."""


NEARLY = 0.7
"""A rule is tried if it agrees with this share of the places that the best rule agrees with."""


@dataclass(frozen=True)
class Arrangement:
    """Geometries that put every picture of these pairs in the same place."""

    geometries: tuple[Geometry, ...]
    placements: tuple[Placement, ...]
    """The placements of all pairs, in their order."""

    @property
    def first(self) -> Geometry:
        return self.geometries[0]


def rules_for(pairs: Sequence[PicturePair], places: Sequence[Place]) -> list[Arrangement]:
    """Every rule that agrees with the places of most pairs, one for each set of placements.

    places: those of pairs in which the picture was found. If two programs made the pairs, the rules
    of both are returned."""
    proposals: list[Geometry] = []
    left = list(range(len(pairs)))
    while left:
        best = _best_geometries([places[k] for k in left])
        if not best:
            break
        proposals += best[0]
        explained = {left[k] for k in best[1]}
        left = [k for k in left if k not in explained]
    return _by_placements(dict.fromkeys(proposals), pairs)


def _best_geometries(places: Sequence[Place]) -> tuple[list[Geometry], set[int]] | None:
    """The geometries that agree with the most places, or nearly, and the places of the best."""
    looks = [
        [place.whole for place in places if place.whole is not None],
        [look for place in places if (look := place.cropped or place.whole) is not None],
    ]
    proposed = dict.fromkeys(g for views in looks if views for g in _propose(views))
    sure = sorted(places, key=lambda place: -place.correlation)[:SEEDS]
    for place in sure:
        for look in (place.whole, place.cropped):
            if look is not None:
                proposed |= dict.fromkeys(map(_simplest, geometries([], look)))
    hits = {
        geometry: frozenset(k for k, place in enumerate(places) if _fits(geometry, place))
        for geometry in proposed
    }
    largest = max(map(len, hits.values()), default=0)
    if not largest:
        return None
    chosen = [geometry for geometry, fits in hits.items() if len(fits) >= NEARLY * largest]
    return chosen, set().union(*(fits for fits in hits.values() if len(fits) == largest))


def _fits(geometry: Geometry, place: Place) -> bool:
    looks = (place.whole, place.cropped, *place.others)
    return any(look is not None and agrees(geometry, look) for look in looks)


def _propose(looks: Sequence[Look]) -> list[Geometry]:
    """Geometries from all looks together; if nothing fits them all, from pairs of looks."""
    spread = _spread(looks)
    proposals = geometries(spread[1:], spread[0])
    if not proposals and len(looks) > 1:
        for k, seed in enumerate(spread[:SEEDS]):
            for other in islice((look for j, look in enumerate(spread) if j != k), SEEDS):
                proposals += geometries([other], seed)
    return [_simplest(geometry) for geometry in proposals]


def _spread(looks: Sequence[Look]) -> list[Look]:
    """The looks with the most different aspects, to tell roundings and sides apart."""
    order = sorted(looks, key=lambda look: look.height / look.width)
    if len(order) <= LOOKED:
        return order
    steps = [round(k * (len(order) - 1) / (LOOKED - 1)) for k in range(LOOKED)]
    return [order[k] for k in dict.fromkeys(steps)]


def _simplest(geometry: Geometry) -> Geometry:
    """Removes a window that has the size of a fixed resize."""
    if geometry.rule == "fixed" and geometry.window == geometry.size:
        return replace(geometry, window=None)
    return geometry


def _by_placements(
    geometries_: dict[Geometry, None], pairs: Sequence[PicturePair]
) -> list[Arrangement]:
    """One rule for each set of placements, the plainest first."""
    rules: dict[tuple[Placement, ...], list[Geometry]] = {}
    for geometry in sorted(geometries_, key=plainness):
        placements = tuple(geometry.placement(*pair.shape) for pair in pairs)
        key = tuple(p._replace(factors=(0.0, 0.0)) for p in placements)
        rules.setdefault(key, []).append(geometry)
    return [
        Arrangement(tuple(same), tuple(same[0].placement(*pair.shape) for pair in pairs))
        for same in rules.values()
    ]


def plainness(geometry: Geometry) -> tuple[object, ...]:
    """Sorts rules with equal placements: the shortest description first."""
    extras = (
        geometry.before is not None,
        geometry.limit is not None,
        geometry.multiple is not None,
        geometry.stride is not None,
        not geometry.enlarge,
        not geometry.shrink,
        geometry.rule != "fixed" and isinstance(geometry.size, tuple),
    )
    order = ("keep", "fixed", "shortest", "longest", "factor", "height", "area")
    return (sum(extras), extras, order.index(geometry.rule))
