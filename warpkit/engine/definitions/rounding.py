"""The arithmetic of OpenCV's kernels, in tensor operations.

Every function gives the same bits on every device with float64.
"""

from __future__ import annotations

import torch
from torch import Tensor

INT_MIN, INT_MAX = -(2**31), 2**31 - 1


def to_int32(values: Tensor) -> Tensor:
    """Rounds half to even; INT_MIN for NaN and out of range, as x86 does. Returns int64."""
    rounded = values.double().round()
    fits = (rounded >= INT_MIN) & (rounded <= INT_MAX)
    return torch.where(fits, rounded, INT_MIN).long()


def wrap32(values: Tensor) -> Tensor:
    """int64 values wrapped around as in an int32."""
    return (values - INT_MIN).remainder(2**32) + INT_MIN


def wrap16(values: Tensor) -> Tensor:
    """int64 values wrapped around as in an int16."""
    return (values + 2**15).remainder(2**16) - 2**15


def saturate16(values: Tensor) -> Tensor:
    """Clamps to the range of int16."""
    return values.clamp(-(2**15), 2**15 - 1)


def fma32(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """a b + c in float32 with one rounding, as in a fused multiply-add.

    The product is exact in float64. a, b, c (...), float32.
    """
    return rounded_once(*two_sum(a.double() * b.double(), c.double()))


def rounded_once(total: Tensor, lost: Tensor) -> Tensor:
    """A float64 sum plus its rounding error, (...), rounded to float32 as if in one step.

    The result differs from total.float() only if the total is a tie, about once in 2^29 values:
    then the error decides. No operation looks at bits, which ONNX does not support.
    """
    near = total.float()
    at = near.double().clamp(-(2.0**128), 2.0**128)  # 2^128 for infinity, so that ties are found
    other = 2 * total - at  # equally far on the other side: a float32 if the total is a tie
    tie = (other.float().double() == other) & (other != at) & (lost != 0) & lost.isfinite()
    further = torch.where(lost > 0, torch.maximum(at, other), torch.minimum(at, other))
    return torch.where(tie, further.float(), near)


def fma64(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """a b + c in float64 with one rounding; a, b, c float64, which broadcast.

    The product is split into two numbers without error, and the sum of the three is first rounded
    to odd (Boldo and Melquiond, 2008).

    a, b, c (...).
    """
    a, b, c = torch.broadcast_tensors(a, b, c)
    product, rest = two_product(a, b)
    lower, lower_rest = two_sum(c, rest)
    upper, upper_rest = two_sum(product, lower)
    odd, lost = two_sum(lower_rest, upper_rest)
    bits = odd.view(torch.int64)
    away = torch.where((lost > 0) == (odd > 0), 1, -1)
    inexact = (lost != 0) & lost.isfinite() & (bits & 1 == 0)
    total = upper + torch.where(inexact, bits + away, bits).view(torch.float64)
    return torch.where(total.isfinite(), total, product + c)


def _halves(a: Tensor) -> tuple[Tensor, Tensor]:
    """Two numbers of 26 bits each that sum to a (Veltkamp)."""
    scaled = 134217729.0 * a
    high = scaled - (scaled - a)
    return high, a - high


def two_product(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """a b rounded, and its exact rounding error (Dekker); NaN if that is not finite.

    a and b (...), float64, which broadcast.
    """
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    lost = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, lost


def two_sum(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """a + b rounded, and its exact rounding error (Knuth).

    a and b (...), which broadcast.
    """
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)
