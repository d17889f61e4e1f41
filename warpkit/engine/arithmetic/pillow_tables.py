"""The taps of PIL.Image.resize along an axis, with Pillow's own rounding, in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from warpkit.engine.definitions.resize import SUPPORT

FLOAT32_TERMS = float(np.float32(0.54)), float(np.float32(0.46))
"""The constants of Hamming's window, which are float32 in Pillow."""

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


def running(first: float, step: float, count: int) -> Indices:
    """The integers at or below first, first + step, ..., where each sum is rounded to float64."""
    steps = np.full(count, step, np.float64)
    steps[0] = first
    return np.floor(np.add.accumulate(steps)).astype(np.int64)


def _nearest(n: int, m: int, low: float, high: float) -> tuple[Indices, Array]:
    """Positions from a running sum."""
    scale = _scale(m, low, high)
    return running(low + 0.5 * scale, scale, m)[:, None], np.ones((m, 1))


def _nearest_each(n: int, m: int, low: float, high: float) -> tuple[Indices, Array]:
    """Mode I;16: each position is computed separately."""
    position = (np.arange(m) + 0.5) * _scale(m, low, high) + low
    return position.astype(np.int64)[:, None], np.ones((m, 1))


def _filter(
    name: str, n: int, m: int, low: float, high: float
) -> tuple[Indices, Array, NDArray[np.bool_]]:
    scale = _scale(m, low, high)
    stretch = max(scale, 1.0)
    reach = SUPPORT[name] * stretch
    centre = low + (np.arange(m) + 0.5) * scale
    first = np.maximum(np.trunc(centre - reach + 0.5), 0).astype(np.int64)
    end = np.minimum(np.trunc(centre + reach + 0.5), n).astype(np.int64)
    index = first[:, None] + np.arange(max(int((end - first).max()), 1))
    inside = index < end[:, None]
    weight = np.where(inside, FILTERS[name]((index - centre[:, None] + 0.5) * (1 / stretch)), 0.0)
    total = np.zeros(m)
    for k in range(index.shape[1]):  # from left to right
        total += weight[:, k]
    return index, weight / np.where(total == 0, 1, total)[:, None], inside


def _scale(m: int, low: float, high: float) -> float:
    return float(np.float32(high) - np.float32(low)) / m


def _box(x: Array) -> Array:
    return np.where((x > -0.5) & (x <= 0.5), 1.0, 0.0)


def _bilinear(x: Array) -> Array:
    return np.maximum(1 - np.abs(x), 0)


def _hamming(x: Array) -> Array:
    x = np.abs(x)
    p = np.where((x == 0) | (x >= 1), 1.0, x) * math.pi
    a, b = FLOAT32_TERMS
    return np.where(x == 0, 1.0, np.where(x >= 1, 0.0, np.sin(p) / p * (a + b * np.cos(p))))


def _bicubic(x: Array) -> Array:
    x = np.abs(x)
    near = (1.5 * x - 2.5) * x * x + 1
    return np.where(x < 1, near, np.where(x < 2, (((x - 5) * x + 8) * x - 4) * -0.5, 0.0))


def _lanczos(x: Array) -> Array:
    return np.where((x >= -3) & (x < 3), _sinc(x) * _sinc(x / 3), 0.0)


def _sinc(x: Array) -> Array:
    p = np.where(x == 0, 1.0, x) * math.pi
    return np.where(x == 0, 1.0, np.sin(p) / p)


FILTERS: dict[str, Callable[[Array], Array]] = {
    "box": _box,
    "bilinear": _bilinear,
    "hamming": _hamming,
    "bicubic": _bicubic,
    "lanczos": _lanczos,
}

KINDS: dict[str, Callable[..., tuple[np.ndarray, ...]]] = {
    "pillow_nearest": _nearest,
    "pillow_nearest_each": _nearest_each,
    **{f"pillow_{name}": partial(_filter, name) for name in FILTERS},
}
"""Functions of (length, size, low, high): the lengths of axis and output, and the box's edges."""
