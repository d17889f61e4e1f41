"""OpenCV's weight tables: 32 positions between two pixels.

A table is computed once on the CPU, in float32 and in OpenCV's order of operations.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from warpkit.core.tracing import constant_to_compilers
from warpkit.engine.definitions.rules import CUBIC_A, TAPS

STEPS = 32
"""The number of positions between two pixels."""

ONE = 1 << 15
"""The weights of 8-bit images are integers in units of 1 / ONE."""


@constant_to_compilers
def axis_table(interpolation: str, device: torch.device) -> Tensor:
    """(32, K) float32: the weights along one axis for every step."""
    return torch.from_numpy(_axis_table(interpolation).copy()).to(device)


@constant_to_compilers
def integer_table(interpolation: str, device: torch.device) -> Tensor:
    """(32 * 32, K * K) int32: the weights of a neighbourhood, indexed by y step * 32 + x step."""
    return torch.from_numpy(_integer_table(interpolation).copy()).to(device)


@lru_cache
def _axis_table(interpolation: str) -> NDArray[np.float32]:
    steps: NDArray[np.float32] = (np.arange(STEPS) / STEPS).astype(np.float32)
    if interpolation == "bilinear":
        return np.stack([np.float32(1) - steps, steps], axis=1)
    if interpolation == "bicubic":
        return cubic_weights(steps)
    return np.stack([_lanczos(step) for step in steps])


def cubic_weights(t: NDArray[np.float32]) -> NDArray[np.float32]:
    """(m, 4): bicubic's weights for the fractions t (m,)."""
    a, one = np.float32(CUBIC_A), np.float32(1)
    d, u = t + one, one - t
    first = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    second = ((a + 2) * t - (a + 3)) * t * t + one
    third = ((a + 2) * u - (a + 3)) * u * u + one
    return np.stack([first, second, third, one - first - second - third], axis=1)


def _lanczos(t: np.float32) -> NDArray[np.float32]:
    """All taps are pi / 4 apart in phase, so one sine and one cosine give all weights."""
    if t == 0:
        return np.eye(8, dtype=np.float32)[3]
    turns = [(1, 0), (-1, -1), (0, 1), (1, -1), (-1, 0), (1, 1), (0, -1), (-1, 1)]
    first_angle = -float(t + np.float32(3)) * math.pi * 0.25
    sine, cosine = math.sin(first_angle), math.cos(first_angle)
    weights, total = np.zeros(8, np.float32), np.float32(0)
    for k, (p, q) in enumerate(turns):
        scale = 0.70710678118654752440 if p and q else 1.0
        d = -float(t + np.float32(3) - np.float32(k)) * math.pi * 0.25
        weights[k] = np.float32((p * scale * sine + q * scale * cosine) / (d * d))
        total = total + weights[k]
    return weights * (np.float32(1) / total)


@lru_cache
def _integer_table(interpolation: str) -> NDArray[np.int32]:
    """Products of axis weights in units of 1 / ONE, corrected so that every row sums to ONE."""
    axis, k = _axis_table(interpolation), TAPS[interpolation]
    products = axis[:, None, :, None] * axis[None, :, None, :]
    limits = np.iinfo(np.int16)
    table = np.rint(products * np.float32(ONE)).clip(limits.min, limits.max).astype(np.int32)
    table = table.reshape(STEPS * STEPS, k, k)
    if interpolation == "bilinear":
        # exact except for (ONE, 0, 0, 0), which does not fit in int16: OpenCV's table has (ONE - 1,
        # 0, 0, 1), which affects no 8-bit result
        table[0, 0, 0] = ONE
        return table.reshape(STEPS * STEPS, k * k)
    for weights in table:
        off = int(weights.sum()) - ONE
        centre = weights[k // 2 : k // 2 + 2, k // 2 : k // 2 + 2]
        # an excess is subtracted from the smallest central weight, a deficit added to the largest
        corrected = centre.argmax() if off < 0 else centre.argmin()
        centre[np.unravel_index(corrected, centre.shape)] -= off
    return table.reshape(STEPS * STEPS, k * k)
