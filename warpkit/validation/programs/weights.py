"""Resizes that warpkit lacks, as weights along an axis (o, n): TensorFlow's.

TensorFlow computes positions in float32: (i + 0.5) * float32(n / o) - 0.5, or i * float32(n / o)
for "start", the resize of TensorFlow 1. Its bicubic has a = -0.5 and a table of 1,024 positions for
its weights; taps outside the picture are left out. Its antialiased filters are as wide as the
scale.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Weights = NDArray[np.float64]

TABLE = 1024
"""The number of positions between two pixels for which TensorFlow has bicubic weights."""


def resized(levels: Tensor, size: tuple[int, int], kind: str, aligned: str = "centers") -> Tensor:
    """Float levels (..., C, H, W), resized by the weights of a kind such as "bilinear"."""
    height, width = levels.shape[-2:]
    down = torch.from_numpy(_weights(kind, aligned, height, size[0])).to(levels)
    across = torch.from_numpy(_weights(kind, aligned, width, size[1])).to(levels)
    return down @ (levels @ across.mT)


@lru_cache(maxsize=8)
def _weights(kind: str, aligned: str, length: int, wanted: int) -> Weights:
    """Weights (wanted, length); the identity if nothing changes."""
    if length == wanted:
        return np.eye(length)
    if kind.startswith("antialiased"):
        return _antialiased(kind.removeprefix("antialiased_"), length, wanted)
    places = _places(length, wanted, aligned)
    return _keys(places, length) if kind == "bicubic" else _lerp(places, length)


def _places(length: int, wanted: int, aligned: str) -> NDArray[np.float32]:
    """The source positions of output pixels, float32."""
    scale = np.float32(length) / np.float32(wanted)
    at = np.arange(wanted, dtype=np.float32)
    if aligned == "start":
        return at * scale
    return (at + np.float32(0.5)) * scale - np.float32(0.5)


def _lerp(places: NDArray[np.float32], length: int) -> Weights:
    """Linear weights of the two neighbours, with the border repeated."""
    low = np.floor(places)
    share = (places - low).astype(np.float64)
    weights = np.zeros((len(places), length))
    rows = np.arange(len(places))
    first = np.clip(low, 0, length - 1).astype(int)
    second = np.clip(low + 1, 0, length - 1).astype(int)
    np.add.at(weights, (rows, first), 1 - share)
    np.add.at(weights, (rows, second), share)
    return weights


def _keys(places: NDArray[np.float32], length: int) -> Weights:
    """Bicubic weights from the table, a = -0.5; taps outside the picture are left out."""
    low = np.floor(places)
    offset = np.rint((places - low) * np.float32(TABLE))
    weights = np.zeros((len(places), length))
    rows = np.arange(len(places))
    for tap in (-1, 0, 1, 2):
        at = (low + tap).astype(int)
        value = _cubic(np.abs(offset / TABLE - tap))
        inside = (at >= 0) & (at < length)
        np.add.at(weights, (rows[inside], at[inside]), value[inside])
    return weights / weights.sum(1, keepdims=True)


def _cubic(x: NDArray[np.floating]) -> Weights:
    """Keys' kernel with a = -0.5."""
    x = x.astype(np.float64)
    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x < 1, near, np.where(x < 2, far, 0.0))


def _antialiased(name: str, length: int, wanted: int) -> Weights:
    """tf.image's ScaleAndTranslate: a filter as wide as the scale, computed in float32."""
    one, half = np.float32(1), np.float32(0.5)
    scale = one / (np.float32(wanted) / np.float32(length))
    narrow = one / max(scale, one)
    centre = (np.arange(wanted, dtype=np.float32) + half) * scale
    at = np.arange(length, dtype=np.float32) + half
    x = np.abs((at[None] - centre[:, None]) * narrow)
    weights = _cubic(x) if name == "bicubic" else np.clip(one - x, 0, None)
    weights = weights.astype(np.float32)
    total = weights.sum(1, keepdims=True, dtype=np.float64)
    return (weights * (one / total.astype(np.float32))).astype(np.float64)
