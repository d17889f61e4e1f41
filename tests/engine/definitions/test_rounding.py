"""The integer arithmetic of OpenCV's kernels, compared with exact fractions and numpy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import torch

from tests.support.inputs import noise
from warpkit.engine.definitions.rounding import fma32, to_int32, wrap32


def one_rounding(a: float, b: float, c: float) -> np.float32:
    """a * b + c in exact fractions, rounded once, half to even."""
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    near = np.float32(float(exact))
    around = [np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf))]
    last_bit = {float(value): int(value.view(np.int32)) & 1 for value in around}
    return min(around, key=lambda v: (abs(Fraction(float(v)) - exact), last_bit[float(v)]))


def test_fma_of_random_numbers_rounds_once():
    a, b, c = (noise(500, dtype=torch.float32, seed=k) * 4 - 2 for k in range(3))
    expected = [
        one_rounding(*values) for values in zip(*(x.tolist() for x in (a, b, c)), strict=True)
    ]
    assert fma32(a, b, c).tolist() == [float(value) for value in expected]


def test_fma_just_below_a_tie_rounds_down():
    """The sum is within 2^-60 of a tie; rounded to float64 first, it would become the tie."""
    a, b, c = (1 + 2.0**-18) * 2.0**-24, 1 - 2.0**-18, 1 + 2.0**-23
    for sign in (1.0, -1.0):
        got = fma32(*(torch.tensor(x, dtype=torch.float32) for x in (sign * a, b, sign * c)))
        assert got.item() == sign * float(one_rounding(a, b, c)) == sign * (1 + 2.0**-23)


def test_fma_just_below_a_tie_with_infinity():
    """Half a step, 2^103, above the largest float32 rounds to infinity; 2^57 less does not."""
    largest = 2.0**128 - 2.0**104
    for part, wanted in ((2.0**-23, largest), (0.0, torch.inf)):
        for sign in (1.0, -1.0):
            numbers = (sign * 2.0**52 * (1 - part), 2.0**51 * (1 + part), sign * largest)
            got = fma32(*(torch.tensor(x, dtype=torch.float32) for x in numbers))
            assert got.item() == sign * wanted


def test_fma_of_special_numbers():
    inf = torch.tensor(torch.inf)
    assert fma32(inf, torch.tensor(2.0), torch.tensor(1.0)).item() == torch.inf
    assert fma32(inf, torch.tensor(0.0), torch.tensor(1.0)).isnan()
    assert fma32(inf, torch.tensor(1.0), -inf).isnan()
    assert fma32(torch.tensor(3e38), torch.tensor(3e38), torch.tensor(0.0)).item() == torch.inf


def test_to_int32_saturates_and_rounds_half_to_even():
    values = [0.5, 1.5, -0.5, -2.5, 2.0**31 - 1, 2.0**31, -(2.0**31) - 1, torch.nan, torch.inf]
    low = -(2**31)
    got = to_int32(torch.tensor(values, dtype=torch.float64))
    assert got.tolist() == [0, 2, 0, -2, 2**31 - 1, low, low, low, low]


def test_wrap32_wraps_around():
    values = np.array([0, -1, 2**31 - 1, 2**31, -(2**31) - 1, 2**32 + 7])
    assert wrap32(torch.from_numpy(values)).tolist() == values.astype(np.int32).tolist()
