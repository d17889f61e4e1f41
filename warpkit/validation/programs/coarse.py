"""Compares a twin with numbers whose last bits are coarser than the distance of equal levels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpkit.validation.programs.precision import is_discrete, line, wrong_values
from warpkit.validation.programs.values import Measured, Values

Array = NDArray[np.float64]

REFITTED = 0.3
"""If fewer numbers than this are wrong, gain and offset may be known too little."""

ONE_GAIN = 0.1
"""Levels at white: channels whose gains are nearer have one gain and one offset."""


def difference(
    measured: Measured, twin_levels: Array, levels: Array, values: Values
) -> tuple[float, float, int]:
    """The share of wrong numbers, the largest distance in levels, and their count.

    twin_levels (C or 1, h, w); levels (C, h, w): the program's, by the first gain."""
    numbers = _numbers(measured, levels)
    wrong, expected, level = _wrong(measured, twin_levels, numbers, values)
    if 0 < wrong.mean() < REFITTED and not is_discrete(twin_levels):
        values = refit(measured, twin_levels, levels, values)
        wrong, expected, level = _wrong(measured, twin_levels, numbers, values)
    apart = np.abs(numbers - expected) / level
    return float(wrong.mean()), float(apart.max(initial=0)), int(wrong.sum())


def refit(measured: Measured, twin_levels: Array, levels: Array, values: Values) -> Values:
    """Gain and offset from all values of a picture, if they are near those of flat ones."""
    gains, offsets = [], []
    for k, (plane, numbers) in enumerate(
        zip(twin_levels, _numbers(measured, levels), strict=False)
    ):
        zero = values.offset[k] == 0
        gain, offset = line(plane.ravel(), numbers.reshape(-1, 1), measured.dtype, zero=zero)
        gains.append(float(gain[0]))
        offsets.append(float(offset[0]))
    before = np.array([values.gain, values.offset])[:, : len(gains)]
    apart = np.abs(np.array([gains, offsets]) - before) / np.abs(before[0])
    if len(gains) != len(values.gain) or not (apart <= measured.tolerance).all():
        return values
    one = sum(gains) / len(gains), sum(offsets) / len(offsets)
    room = ONE_GAIN * abs(one[0])
    if 255 * np.ptp(gains) < room and np.ptp(offsets) < room:
        gains, offsets = ([number] * len(gains) for number in one)
    return replace(values, gain=tuple(gains), offset=tuple(offsets))


def _wrong(
    measured: Measured, twin_levels: Array, numbers: Array, values: Values
) -> tuple[Any, Array, Array]:
    """Which numbers are not those of a twin's levels, the expected ones, and a level."""
    gain, offset = (np.reshape(v[: len(numbers)], (-1, 1, 1)) for v in (values.gain, values.offset))
    expected, level = twin_levels * gain + offset, np.abs(gain)
    wrong = wrong_values(twin_levels, expected, numbers, level, measured.dtype, measured.tolerance)
    return wrong, expected, level


def _numbers(measured: Measured, levels: Array) -> Array:
    """The program's own numbers for levels of the first gain."""
    first = measured.variants[0]
    gain, offset = (np.reshape(v[: len(levels)], (-1, 1, 1)) for v in (first.gain, first.offset))
    return levels * gain + offset
