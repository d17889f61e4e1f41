"""A few cases that cover every pair of values, instead of all combinations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any


def pairs_of_values(*factors: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Combinations of a value of each factor: any two values of two factors meet in one of them.

    The same list at every run: again and again the combination with the most pairs that are new,
    the first of them in the order of `itertools.product`. A fault takes two options to show, or
    it takes one; the faults that take three are looked for by the tests that draw at random.
    """
    sizes = [range(len(values)) for values in factors]
    places = list(combinations(range(len(factors)), 2))
    pairs = {
        case: {(i, j, case[i], case[j]) for i, j in places} for case in product(*sizes)
    }  # of the values' numbers: values need no hash
    wanted: set[tuple[int, int, int, int]] = set().union(*pairs.values())
    chosen = []
    while wanted:
        best = max(pairs, key=lambda case: len(pairs[case] & wanted))
        wanted -= pairs[best]
        chosen.append(best)
    return [tuple(values[n] for values, n in zip(factors, case, strict=True)) for case in chosen]
