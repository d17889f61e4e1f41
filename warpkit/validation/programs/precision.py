"""The last bits of a program's numbers: how coarse they are, and what they still distinguish."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

DIGITS = {
    "float16": (10, -14),
    "bfloat16": (7, -126),
    "float32": (23, -126),
    "float64": (52, -1022),
}
"""The bits of the fraction, and the least exponent, of each type."""

ULPS = 2
"""How many last bits equal numbers may be apart: one each for a gain and an offset."""

ROUNDOFF = {"float16": 5e-4, "bfloat16": 4e-3}
"""Half a last bit, relative; for float32 and wider 3e-7, for a few operations."""

DISCRETE = 300
"""The largest number of levels of results that are taken for 8 bits (and a padding)."""


def ulp(numbers: Array, dtype: str) -> Array:
    """The distance to the next number of this type."""
    digits, least = DIGITS.get(dtype, DIGITS["float32"])
    _, exponent = np.frexp(numbers)  # numbers = fraction * 2 ** exponent, 0.5 <= |fraction| < 1
    return np.ldexp(1.0, np.maximum(exponent - 1, least) - digits)


def type_of(dtype: str, numbers: Array) -> str:
    """The type that numbers of a type really have: float32 if they were only stored in 64 bits."""
    if dtype != "float64":
        return dtype
    return "float32" if (numbers == numbers.astype(np.float32)).all() else "float64"


def line(levels: Array, numbers: Array, dtype: str, *, zero: bool = False) -> tuple[Array, Array]:
    """Gain and offset (C,) of rounded numbers (K, C) for levels (K,), each weighted by its ulp.

    zero: the offset is 0."""
    gains, offsets = [], []
    for channel in numbers.T:
        floor = ulp(np.abs(channel).max(keepdims=True), dtype) * 2.0**-12
        weights = 1 / np.maximum(ulp(channel, dtype), floor)
        columns = np.stack([levels, np.full_like(levels, not zero)], 1) * weights[:, None]
        (gain, offset), *_ = np.linalg.lstsq(columns, channel * weights)
        gains.append(gain)
        offsets.append(offset)
    return np.array(gains), np.array(offsets)


def wrong_values(
    levels: Array, expected: Array, numbers: Array, level: Array, dtype: str, tolerance: float
) -> NDArray[np.bool_]:
    """Which numbers (C, h, w) are not those of a twin's `levels` (C or 1, h, w).

    If the twin's levels are 8 bits, equal levels must have equal numbers, within twice
    `tolerance` levels of the `expected` ones. Otherwise numbers must be within 2 ulps of these."""
    apart = np.abs(numbers - expected)
    if is_discrete(levels):
        far = ~(apart <= 2 * tolerance * level)  # three roundings, and the line's own error
        planes = np.broadcast_to(levels, numbers.shape)
        pairs = zip(planes, numbers, strict=True)
        return far | np.stack([_unlike(*pair) for pair in pairs])
    return ~(apart <= ULPS * ulp(expected, dtype) + 1.5e-3 * level)


def is_discrete(levels: Array) -> bool:
    """Whether levels (C, h, w) are 8 bits, and perhaps a padding."""
    return all(_codes(plane) is not None or len(np.unique(plane)) <= DISCRETE for plane in levels)


def _codes(levels: Array) -> NDArray[np.int64] | None:
    """Whole levels as indices from 0 on; None if they are not whole, or more than `DISCRETE`."""
    low, high = levels.min(initial=np.inf), levels.max(initial=-np.inf)
    if not 0 <= high - low < DISCRETE or low != np.round(low):
        return None
    codes = (levels - low).astype(np.int64)
    return codes if np.array_equal(codes + low, levels) else None


def _unlike(levels: Array, numbers: Array) -> NDArray[np.bool_]:
    """Where a number is not the most frequent one of its level."""
    codes = _codes(levels)  # sorting takes ten times as long
    which = np.unique(levels, return_inverse=True)[1] if codes is None else codes
    which = which.ravel()
    values, code = np.unique(numbers.ravel(), return_inverse=True)
    counts = np.zeros((which.max(initial=0) + 1, len(values)), np.int64)
    np.add.at(counts, (which, code), 1)
    return (counts.argmax(1)[which] != code).reshape(levels.shape)
