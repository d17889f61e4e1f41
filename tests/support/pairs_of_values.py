"""A few cases that cover every pair of values, instead of all combinations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any


def pairs_of_values(*factors: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Combinations of one value of each factor, in which any two values of two factors meet.

    The list is the same at every run: each step adds the combination with the most new pairs, the
    first of them in the order of `itertools.product`. Most bugs need one or two options to show;
    random tests search for those that need three.
    """
    sizes = [range(len(values)) for values in factors]
    places = list(combinations(range(len(factors)), 2))
    pairs = {
        case: {(i, j, case[i], case[j]) for i, j in places} for case in product(*sizes)
    }  # by the values' indices, since values may not be hashable
    wanted: set[tuple[int, int, int, int]] = set().union(*pairs.values())
    chosen = []
    while wanted:
        best = max(pairs, key=lambda case: len(pairs[case] & wanted))
        wanted -= pairs[best]
        chosen.append(best)
    return [tuple(values[n] for values, n in zip(factors, case, strict=True)) for case in chosen]
