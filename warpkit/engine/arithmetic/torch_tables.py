"""The taps of F.interpolate for bytes along an axis, with its integer weights.

Positions and weights are float64. The weights of an axis are rounded to 16 bits, with as many
fraction bits as the largest of them allows, at most 22. Here they are in units of 2^-22 for any
number of fraction bits, so one rounding works for all axes: the sum is the same number, shifted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from warpkit.engine.arithmetic.pillow_tables import KINDS as PILLOW_KINDS

BITS = 22
"""Fraction bits of the unit of weights, and the most that torch uses."""

Indices = NDArray[np.int64]
Whole = NDArray[np.int32]
Inside = NDArray[np.bool_]

ANTIALIASED = ("bilinear", "bicubic", "lanczos")
"""Filters that are stretched if the image shrinks: they have Pillow's weights, before rounding."""


def fraction_bits(largest: float) -> int:
    """The number of fraction bits of weights whose largest one is `largest`."""
    for bits in range(BITS):
        if int(0.5 + largest * (1 << (bits + 1))) >= 1 << 15:
            return bits
    return BITS


def _rounded(weight: NDArray[np.float64]) -> Whole:
    bits = fraction_bits(float(weight.max()))
    whole = np.trunc(np.where(weight < 0, -0.5, 0.5) + weight * (1 << bits)).astype(np.int32)
    return whole << (BITS - bits)


def _antialiased(name: str, n: int, m: int) -> tuple[Indices, Whole, Inside]:
    index, weight, inside = PILLOW_KINDS[f"pillow_{name}"](n, m, 0.0, float(n))
    return index, _rounded(weight), inside


def _sampled(name: str, reach: int, n: int, m: int) -> tuple[Indices, Whole, Inside]:
    """Two or four taps; those beyond an end repeat the pixel there, and their weights are
    merged."""
    position = (np.arange(m, dtype=np.float64) + 0.5) * (n / m) - 0.5
    if name == "bilinear":
        position = np.maximum(position, 0)
    first = np.floor(position)
    weight = POINT_WEIGHTS[name]((position - first).astype(np.float64))
    index = first.astype(np.int64)[:, None] + np.arange(1 - reach, reach + 1)
    merged = np.clip(index, 0, n - 1)
    lowest = merged[:, :1]
    total = np.zeros(weight.shape)
    for k in range(2 * reach):
        np.add.at(total, (np.arange(m), merged[:, k] - lowest[:, 0]), weight[:, k])
    index = lowest + np.arange(2 * reach)
    inside = index <= merged[:, -1:]
    return index, _rounded(total), inside


def _linear(t: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.stack([1 - t, t], 1)


def _cubic(t: NDArray[np.float64]) -> NDArray[np.float64]:
    """a = -0.75, as for floats without antialias; the antialiased filter has -0.5."""
    return np.stack([_far(t + 1), _near(t), _near(1 - t), _far(2 - t)], 1)


def _near(d: NDArray[np.float64]) -> NDArray[np.float64]:
    return (1.25 * d - 2.25) * d * d + 1


def _far(d: NDArray[np.float64]) -> NDArray[np.float64]:
    return ((-0.75 * d + 3.75) * d - 6) * d + 3


POINT_WEIGHTS: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "bilinear": _linear,
    "bicubic": _cubic,
}


def _nearest(shift: float, n: int, m: int) -> tuple[Indices, Whole]:
    """Positions in float32."""
    scale = np.float32(n) / np.float32(m)
    return _shown((np.arange(m).astype(np.float32) + np.float32(shift)) * scale, n)


def _nearest_exact_fused(n: int, m: int) -> tuple[Indices, Whole]:
    """The half pixel is subtracted in the same rounding, and added again in another."""
    scale = np.float64(np.float32(n) / np.float32(m))
    place = ((np.arange(m) + 0.5) * scale - 0.5).astype(np.float32)
    return _shown(np.maximum(place, 0) + np.float32(0.5), n)


def _shown(place: NDArray[np.float32], n: int) -> tuple[Indices, Whole]:
    index = np.minimum(np.floor(place).astype(np.int64), n - 1)
    return index[:, None], np.full((len(place), 1), 1 << BITS, np.int32)


KINDS: dict[str, Callable[..., tuple[np.ndarray, ...]]] = {
    "torch_nearest": partial(_nearest, 0.0),
    "torch_nearest_exact": partial(_nearest, 0.5),
    "torch_nearest_exact_fused": _nearest_exact_fused,
    "torch_bilinear": partial(_sampled, "bilinear", 1),
    "torch_bicubic": partial(_sampled, "bicubic", 2),
    **{f"torch_antialiased_{name}": partial(_antialiased, name) for name in ANTIALIASED},
}
"""Functions of (length, size): the lengths of axis and output."""
