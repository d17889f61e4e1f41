"""cv2.cartToPolar and cv2.polarToCart to the last bit: float32 polynomials with fused products.

OpenCV processes 16 numbers at a time (AVX2). Fewer than 16, also at the end of a block, are
computed one by one, in other sums. float64 is first rounded to float32. Versions 4.14 and 5.0.0
agree.

Nothing here has gradients; `to_polar` and `from_polar` have exact float64 formulas beside them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.definitions.rounding import rounded_once

AT_ONCE = 16
BLOCK, BLOCK_OF_DOUBLES = 1024, 128
MOST_CHANNELS = {"opencv4": 512, "opencv5": 128}
"""If an array's last axis is longer, it is not taken for channels."""

DEGREE = float(np.float32(math.pi / 180))
ARCTANGENT = (0.9997878412794807, -0.3258083974640975, 0.1555786518463281, -0.04432655554792128)
"""OpenCV's polynomial in c = min / max: the coefficients of c, c^3, c^5 and c^7, in radians."""
IN_DEGREES = [float(np.float32(p) * np.float32(180 / math.pi)) for p in ARCTANGENT]

EIGHTHS = 1.27323954473516
"""4 / pi; Cephes' sine counts eighths of the circle, and subtracts them in three parts."""
PARTS = (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)
SINE = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
COSINE = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2, -0.5, 1.0)
LARGEST = 2.0**31
"""From this many eighths on OpenCV's integers overflow, and warpkit returns the true values."""

STEPS = 64
"""The number of steps around the circle in the table for single numbers."""
TABLE = [math.sin(2 * math.pi * k / STEPS) for k in range(STEPS)]
TABLE[STEPS // 2] = 1.2246e-16  # the constant in OpenCV's source
STEP = 2 * math.pi / STEPS
SINE_CUBE, COSINE_SQUARE = -0.166630293345647 * STEP * STEP * STEP, -0.499818138450326 * STEP * STEP


def alone(
    shape: Sequence[int], double: bool, device: torch.device, arithmetic: str = "opencv5"
) -> Tensor:
    """A mask (*shape) of the numbers in an array that OpenCV computes one by one."""
    count, block = math.prod(shape), block_of(shape, arithmetic)
    index = torch.arange(count, device=device)
    place = index % block
    length = (count - index + place).clamp(max=block)
    if double:
        length = (length - place + place % BLOCK_OF_DOUBLES).clamp(max=BLOCK_OF_DOUBLES)
    return (length < AT_ONCE).reshape(shape)


def block_of(shape: Sequence[int], arithmetic: str) -> int:
    """The number of values of an array that OpenCV processes at a time: whole pixels."""
    has_channels = len(shape) > 2 and 0 < shape[-1] <= MOST_CHANNELS[arithmetic]
    channels = shape[-1] if has_channels else 1
    return -(-BLOCK // channels) * channels


def to_polar(x: Tensor, y: Tensor, single: Tensor, degrees: bool) -> tuple[Tensor, Tensor]:
    """cv2.cartToPolar of float32: lengths, and angles in [0, 2 pi) or [0, 360).

    x and y (...); `single` (...) as from `alone`.
    """
    # torch's own float32 square root sometimes differs in the last bit
    length = _fused(x, x, y * y).double().sqrt().float()
    ax, ay = x.abs(), y.abs()
    c = torch.minimum(ax, ay) / (torch.maximum(ax, ay) + torch.finfo(torch.float64).eps)
    square = c * c
    p1, p3, p5, p7 = IN_DEGREES
    part = _fused(_fused(_fused(square, p7, p5), square, p3), square, p1)
    steep = torch.where(single, _fused(-part, c, 90.0), 90 - part * c)
    angle = torch.where(ax >= ay, part * c, steep)
    angle = torch.where(x < 0, 180 - angle, angle)
    angle = torch.where(y < 0, 360 - angle, angle)
    return length, angle if degrees else angle * _single(DEGREE, angle)


def from_polar(
    length: Tensor | None, angle: Tensor, single: Tensor, degrees: bool
) -> tuple[Tensor, Tensor]:
    """cv2.polarToCart of float32: x and y; lengths are 1 if missing.

    length and angle (...); `single` (...) as from `alone`.
    """
    cosine, sine = _by_eighths(angle * _single(DEGREE, angle) if degrees else angle)
    if length is not None:
        cosine, sine = cosine * length, sine * length
    factor = length.double() if length is not None else 1.0
    by_table = [(value * factor).float() for value in _by_table(angle, degrees)]
    turn = angle.double() * (math.pi / 180 if degrees else 1.0)
    far = ~(turn.abs() * EIGHTHS < LARGEST)  # also true for NaN
    true = [(value * factor).float() for value in (turn.cos(), turn.sin())]
    choices = zip((cosine, sine), by_table, true, strict=True)
    x, y = (torch.where(far, t, torch.where(single, b, a)) for a, b, t in choices)
    return x, y


def _by_eighths(angle: Tensor) -> tuple[Tensor, Tensor]:
    """Cosine and sine of float32 (...) as in Cephes: relative to the nearest even number of
    eighths."""
    rest = angle.abs()
    count = (rest * EIGHTHS).nan_to_num().clamp(max=LARGEST - 128).long()
    count = (count + 1) & ~1
    for part in PARTS:
        rest = _fused(count.float(), part, rest)
    square = rest * rest
    s0, s1, s2 = SINE
    odd = _fused(_fused(square, s0, s1), square, s2) * square
    odd = _fused(odd, rest, rest)
    c0, c1, *others = COSINE
    even = _fused(square, c0, c1)
    for coefficient in others:
        even = _fused(even, square, coefficient)
    swapped = (count & 2) != 0
    cosine, sine = torch.where(swapped, odd, even), torch.where(swapped, even, odd)
    cosine = torch.where(((count - 2) & 4) == 0, -cosine, cosine)
    return cosine, torch.where((angle < 0) ^ ((count & 4) != 0), -sine, sine)


def _by_table(angle: Tensor, degrees: bool) -> tuple[Tensor, Tensor]:
    """Cosine and sine of float32 (...), in float64: the nearest step's, rotated by the rest."""
    turn = angle.double() * (STEPS / 360 if degrees else STEPS / (2 * math.pi))
    nearest = turn.round()
    rest = turn - nearest
    table = torch.tensor(TABLE, dtype=torch.float64, device=angle.device)
    step = nearest.nan_to_num().clamp(-LARGEST, LARGEST).long() & (STEPS - 1)
    at_sine, at_cosine = table[step], table[(STEPS // 4 - step) & (STEPS - 1)]
    sine = (SINE_CUBE * rest * rest + STEP) * rest
    cosine = COSINE_SQUARE * rest * rest + 1
    return at_cosine * cosine - at_sine * sine, at_sine * cosine + at_cosine * sine


def _fused(a: Tensor, b: Tensor | float, c: Tensor | float) -> Tensor:
    """a b + c of float32 with one rounding; tensors (...), numbers as float32 has them.

    The product is exact in float64.
    """
    product = a.double() * _double(b)
    c = _double(c)
    total = product + c
    back = total - product
    error = (product - (total - back)) + (c - back)
    return rounded_once(total, error)


def _double(value: Tensor | float) -> Tensor | float:
    return value.double() if isinstance(value, Tensor) else float(np.float32(value))


def _single(value: float, beside: Tensor) -> Tensor:
    return torch.tensor(value, dtype=torch.float32, device=beside.device)
