"""Resizes that warpkit lacks, as weights along an axis (o, n): TensorFlow's and scikit-image's.

TensorFlow computes positions in float32: (i + 0.5) * float32(n / o) - 0.5, or i * float32(n / o)
for "start", the resize of TensorFlow 1. Its bicubic has a = -0.5 and a table of 1,024 positions for
its weights; taps outside the picture are left out. Its antialiased filters are as wide as the
scale. When scikit-image shrinks, it blurs by a Gaussian of sigma (n / o - 1) / 2 first; then it
samples, with a mirrored border.
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

TRUNCATE = 4.0
"""scipy's Gaussian ends at this many sigmas."""


def resized(levels: Tensor, size: tuple[int, int], kind: str, aligned: str = "centers") -> Tensor:
    """Float levels (..., C, H, W), resized by the weights of a kind such as "tensorflow
    bilinear"."""
    height, width = levels.shape[-2:]
    down = torch.from_numpy(_weights(kind, aligned, height, size[0])).to(levels)
    across = torch.from_numpy(_weights(kind, aligned, width, size[1])).to(levels)
    return down @ (levels @ across.mT)


@lru_cache(maxsize=8)
def _weights(kind: str, aligned: str, length: int, wanted: int) -> Weights:
    """Weights (wanted, length); the identity if nothing changes."""
    if length == wanted:
        return np.eye(length)
    library, name = kind.split(" ")
    if library == "skimage":
        return _skimage(length, wanted, blurred=name == "antialiased")
    if name.startswith("antialiased"):
        return _tensorflow_antialiased(name.removeprefix("antialiased_"), length, wanted)
    places = _tensorflow_places(length, wanted, aligned)
    return _keys(places, length) if name == "bicubic" else _lerp(places, length)


def _tensorflow_places(length: int, wanted: int, aligned: str) -> NDArray[np.float32]:
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


def _tensorflow_antialiased(name: str, length: int, wanted: int) -> Weights:
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


def _skimage(length: int, wanted: int, *, blurred: bool) -> Weights:
    """A Gaussian, then linear interpolation between centres; the border mirrors about end
    pixels."""
    scale = length / wanted
    at = (np.arange(wanted) + 0.5) * scale - 0.5
    low = np.floor(at)
    sampled = np.zeros((wanted, length))
    rows = np.arange(wanted)
    for tap, share in ((0, 1 - (at - low)), (1, at - low)):
        np.add.at(sampled, (rows, _mirrored(low.astype(int) + tap, length)), share)
    sigma = max(0.0, (scale - 1) / 2)
    if not blurred or sigma == 0:
        return sampled
    radius = int(TRUNCATE * sigma + 0.5)
    offsets = np.arange(-radius, radius + 1)
    kernel = np.exp(-0.5 * (offsets / sigma) ** 2)
    blur = np.zeros((length, length))
    pixels = np.arange(length)
    for offset, share in zip(offsets, kernel / kernel.sum(), strict=True):
        np.add.at(blur, (pixels, _mirrored(pixels + offset, length)), share)
    return sampled @ blur


def _mirrored(at: NDArray[np.int_], length: int) -> NDArray[np.int_]:
    """Positions reflected about the first and the last pixel."""
    if length == 1:
        return np.zeros_like(at)
    at = np.abs(at) % (2 * (length - 1))
    return np.where(at >= length, 2 * (length - 1) - at, at)
