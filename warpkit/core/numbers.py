"""Validates single numbers and ranges: counts, numbers above 0, (low, high)."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from numbers import Real

from warpkit.core import checks
from warpkit.core.integers import WHOLE_NUMBERS, plain_integer


def check_count(
    function: str, argument: str, value: object, low: int = 1, high: int | None = None
) -> int:
    """`value` must be an integer from `low` to `high`, which is below 2^31 where it is None."""
    wanted = f"an integer from {low} to {high}"
    wanted = f"an integer of at least {low}" if high is None else wanted
    if not isinstance(value, WHOLE_NUMBERS) or isinstance(value, bool):
        checks.fail(function, argument, wanted, repr(value), TypeError)
    count = plain_integer(value)
    if count < low or (high is not None and count > high):
        checks.fail(function, argument, wanted, f"{value!r:.60}")
    if count >= checks.MAX_SIDE:
        checks.fail(function, argument, "an integer below 2^31", f"{value!r:.60}")
    return count


def check_positive(function: str, argument: str, value: object) -> float:
    """`value` must be a finite number above 0."""
    if not isinstance(value, Real) or isinstance(value, bool):
        checks.fail(function, argument, "a number above 0", repr(value), TypeError)
    number = checks.float64_of(function, argument, value)
    if not (number > 0 and math.isfinite(number)):
        checks.fail(function, argument, "a number above 0", repr(value))
    return number


def check_range(function: str, argument: str, value: object) -> tuple[float, float]:
    """`value` must be (low, high), finite numbers in order."""
    wanted = "(low, high), two finite numbers with low <= high"
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        checks.fail(function, argument, wanted, repr(value), TypeError)
    if not all(isinstance(v, Real) and not isinstance(v, bool) for v in value):
        checks.fail(function, argument, wanted, repr(value), TypeError)
    low, high = (checks.float64_of(function, argument, v) for v in value)
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        checks.fail(function, argument, wanted, repr(value))
    return low, high


def join_or(counts: Collection[int]) -> str:
    """Counts in words: "4, 5 or 8"."""
    *first, last = map(str, counts)
    return f"{', '.join(first)} or {last}" if first else last
