"""Mean and deviation that explain a gain and an offset."""

from __future__ import annotations

from collections.abc import Sequence

MOST_DIGITS = 8


def mean_and_std(
    gain: Sequence[float], offset: Sequence[float], dtype: str | None
) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """The mean and deviation of numbers in 0..1 with the fewest digits; None if there are none."""
    if not any(offset):
        return None
    room = 2e-3 if dtype in ("float16", "bfloat16") else 2e-6
    stds = [1 / (255 * g) for g in gain]
    means = [-o / g / 255 for g, o in zip(gain, offset, strict=True)]
    for digits in range(1, MOST_DIGITS + 1):
        mean, std = (tuple(round(v, digits) for v in values) for values in (means, stds))
        pairs = zip(mean, means, std, stds, strict=True)
        if all(s and abs(s / t - 1) <= room and abs(m - n) <= room for m, n, s, t in pairs):
            return mean, std
    return None
