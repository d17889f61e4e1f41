"""cv2.cartToPolar and cv2.polarToCart to the last bit: float32 polynomials with fused products.

OpenCV takes 16 numbers at a time (AVX2). Fewer than 16, at the end of a block too, are computed one
by one, by other sums. float64 is rounded to float32 first. Versions 4.14 and 5.0.0 agree.

Nothing here has a gradient; the exact formulas that have one stand beside, in float64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.sampling.rounding import rounded_once

AT_ONCE = 16
BLOCK, BLOCK_OF_DOUBLES = 1024, 128
MOST_CHANNELS = {"opencv4": 512, "opencv5": 128}
"""A longer last axis of an array is no channels."""

DEGREE = float(np.float32(math.pi / 180))
ARCTANGENT = (0.9997878412794807, -0.3258083974640975, 0.1555786518463281, -0.04432655554792128)
"""OpenCV's polynomial in c = min / max: of c, c^3, c^5 and c^7, in radians."""
IN_DEGREES = [float(np.float32(p) * np.float32(180 / math.pi)) for p in ARCTANGENT]

EIGHTHS = 1.27323954473516
"""4 / pi; Cephes' sine counts eighths of the circle, and takes them off in three parts."""
PARTS = (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)
SINE = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
COSINE = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2, -0.5, 1.0)
LARGEST = 2.0**31
"""From so many eighths on OpenCV's integers overflow; the true values stand there."""

STEPS = 64
"""Of the circle, in the table by which single numbers are computed."""
TABLE = [math.sin(2 * math.pi * k / STEPS) for k in range(STEPS)]
TABLE[STEPS // 2] = 1.2246e-16  # as it is written there
STEP = 2 * math.pi / STEPS
SINE_CUBE, COSINE_SQUARE = -0.166630293345647 * STEP * STEP * STEP, -0.499818138450326 * STEP * STEP


def alone(
    shape: Sequence[int], double: bool, device: torch.device, arithmetic: str = "opencv5"
) -> Tensor:
    """Which numbers of an array OpenCV computes one by one: (*shape)."""
    count, block = math.prod(shape), block_of(shape, arithmetic)
    index = torch.arange(count, device=device)
    place = index % block
    length = (count - index + place).clamp(max=block)
    if double:
        length = (length - place + place % BLOCK_OF_DOUBLES).clamp(max=BLOCK_OF_DOUBLES)
    return (length < AT_ONCE).reshape(shape)


def block_of(shape: Sequence[int], arithmetic: str) -> int:
    """How many numbers of an array OpenCV takes into its hand at a time: whole pixels."""
    has_channels = len(shape) > 2 and 0 < shape[-1] <= MOST_CHANNELS[arithmetic]
    channels = shape[-1] if has_channels else 1
    return -(-BLOCK // channels) * channels


def to_polar(x: Tensor, y: Tensor, single: Tensor, degrees: bool) -> tuple[Tensor, Tensor]:
    """cv2.cartToPolar of float32: lengths, and angles in [0, 2 pi) or [0, 360).

    x and y (...); `single` (...), as of `alone`.
    """
    # torch's own root of float32 is off by its last bit in places
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
    """cv2.polarToCart of float32: x and y, of lengths 1 where there are none.

    length and angle (...); `single` (...), as of `alone`.
    """
    cosine, sine = _by_eighths(angle * _single(DEGREE, angle) if degrees else angle)
    if length is not None:
        cosine, sine = cosine * length, sine * length
    factor = length.double() if length is not None else 1.0
    by_table = [(value * factor).float() for value in _by_table(angle, degrees)]
    turn = angle.double() * (math.pi / 180 if degrees else 1.0)
    far = ~(turn.abs() * EIGHTHS < LARGEST)  # NaN, too
    true = [(value * factor).float() for value in (turn.cos(), turn.sin())]
    found = zip((cosine, sine), by_table, true, strict=True)
    x, y = (torch.where(far, t, torch.where(single, b, a)) for a, b, t in found)
    return x, y


def _by_eighths(angle: Tensor) -> tuple[Tensor, Tensor]:
    """Cosine and sine of float32 (...), as Cephes: by the nearest even number of eighths."""
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
    """Cosine and sine of float32 (...), in float64: of the nearest step, turned by the rest."""
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
