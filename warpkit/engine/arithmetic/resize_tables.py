"""The taps of cv2.resize along an axis: pixels and weights, with OpenCV's own rounding.

A table is made once, in numpy on the CPU, and kept. `factor` is the output's size over the input's,
or fx or fy, float64. OpenCV computes with its reciprocal, which differs from the inverse quotient.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from warpkit.core.lasting import lasting
from warpkit.core.tracing import exports_to_onnx, is_eager
from warpkit.engine.arithmetic.opencv4_tables import cubic_weights
from warpkit.engine.arithmetic.pillow_tables import KINDS as PILLOW_KINDS
from warpkit.engine.arithmetic.pillow_tables import running
from warpkit.engine.arithmetic.torch_tables import KINDS as TORCH_KINDS
from warpkit.engine.definitions.resize import KEPT_TABLES

F32, F64 = np.float32, np.float64
SLIVER = 1e-3
"""OpenCV's area drops a pixel if its share would be smaller than this."""

EXACT_BITS = {"uint8": 8, "int8": 16, "uint16": 16, "int16": 16, "int32": 32}
"""Fraction bits of the weights of cv2.INTER_LINEAR_EXACT."""

Indices = NDArray[np.int64]
Weights = NDArray[np.float32] | NDArray[np.float64]


class Table(NamedTuple):
    """Like `AxisTaps`, but in numpy: each (m, K)."""

    pixel: Indices
    weight: Weights
    inside: NDArray[np.bool_]


class Taps(NamedTuple):
    """Like `Table`, but in torch."""

    pixel: Tensor
    """int64."""
    weight: Tensor
    """float32 or float64; int32 for torch's tables."""
    inside: Tensor


TableKey = tuple[Any, ...]
"""The arguments of `table`."""


@lru_cache(maxsize=KEPT_TABLES)
def table(kind: str, length: int, size: int, *numbers: float) -> Table:
    """The table of one of KINDS, for an axis that is resized from `length` to `size` pixels.

    numbers: the factor; for Pillow, the box's edges.
    """
    index, weight, *inside = KINDS[kind](length, size, *numbers)
    whole = np.ones(index.shape, bool)
    return Table(np.clip(index, 0, length - 1), weight, inside[0] if inside else whole)


def on_device(kind: str, *numbers: float, device: torch.device) -> Taps:
    """table(kind, *numbers) on a device; an operator if torch compiles, except for ONNX."""
    if torch.compiler.is_compiling() and not exports_to_onnx():
        length, size, *rest = numbers
        rest = [float(number) for number in rest]
        call = kind, int(length), int(size), rest, device
        return Taps(*(torch.ops.warpkit.resize_table(part, *call) for part in range(3)))
    return (
        _kept(kind, *numbers, device=device) if is_eager() else _made(kind, *numbers, device=device)
    )


def _made(kind: str, *numbers: float, device: torch.device) -> Taps:
    parts: Table = table(kind, *numbers)  # pyright: ignore
    return Taps(*(torch.from_numpy(part.copy()).to(device) for part in parts))


@lru_cache(maxsize=KEPT_TABLES)
@lasting
def _kept(kind: str, *numbers: float, device: torch.device) -> Taps:
    return _made(kind, *numbers, device=device)


TYPES = {
    "b1": torch.bool,
    "i4": torch.int32,
    "i8": torch.int64,
    "f4": torch.float32,
    "f8": torch.float64,
}
"""The torch types of the parts of tables, by numpy's names."""

LIBRARY = torch.library.Library("warpkit", "FRAGMENT")
LIBRARY.define(
    "resize_table(int part, str kind, int length, int size, float[] numbers, Device device)"
    " -> Tensor",
    tags=(torch.Tag.pt2_compliant_tag,),
)
"""One part of a table. Dynamo accepts one constant tensor from a function, not several."""


def _resize_table(
    part: int, kind: str, length: int, size: int, numbers: list[float], device: torch.device
) -> Tensor:
    return _made(kind, length, size, *numbers, device=device)[part]


def _fake_table(
    part: int, kind: str, length: int, size: int, numbers: list[float], device: torch.device
) -> Tensor:
    array = table(kind, length, size, *numbers)[part]
    return torch.empty(array.shape, dtype=TYPES[array.dtype.str[1:]], device=device)


LIBRARY.impl("resize_table", _resize_table, "CompositeExplicitAutograd")
torch.library.register_fake("warpkit::resize_table", _fake_table, lib=LIBRARY)


def _one(index: Indices) -> tuple[Indices, Weights]:
    return index[:, None], np.ones((len(index), 1), F32)


def _nearest(n: int, m: int, factor: float) -> tuple[Indices, Weights]:
    """Positions without a half pixel; the rounding of the reciprocal matters."""
    return _one(np.minimum(np.floor(np.arange(m) * (1 / F64(factor))), n - 1).astype(np.int64))


def _nearest_exact4(n: int, m: int, factor: float) -> tuple[Indices, Weights]:
    """OpenCV 4.14: positions with 16 fraction bits."""
    step = ((n << 16) + m // 2) // m
    return _one((step * np.arange(m, dtype=np.int64) + step // 2 - n % 2) >> 16)


def _nearest_exact5(n: int, m: int, factor: float) -> tuple[Indices, Weights]:
    """OpenCV 5.0: positions from a running sum."""
    step = F64(n) / F64(m)
    return _one(running(0.5 * step, step, m))


def _places(n: int, m: int, factor: float) -> tuple[Indices, NDArray[np.float32]]:
    """The pixel at or before each position, and the fraction; positions are float32."""
    p = ((np.arange(m) + 0.5) * (1 / F64(factor)) - 0.5).astype(F32)
    first = np.floor(p)
    return first.astype(np.int64), p - first


def _area_places(n: int, m: int, factor: float) -> tuple[Indices, NDArray[np.float32]]:
    """cv2.INTER_AREA along an axis that is enlarged: two taps with special fractions."""
    first = np.floor(np.arange(m) * (1 / F64(factor))).astype(np.int64)
    t = ((np.arange(m) + 1) - (first + 1) * F64(factor)).astype(F32)
    return first, np.where(t <= 0, F32(0), t - np.floor(t))


Places = Callable[[int, int, float], tuple[Indices, NDArray[np.float32]]]


def _two_taps(places: Places, held: bool) -> Callable[..., tuple[Indices, Weights]]:
    """held: the weight is 0 if the second tap is outside the image, which is so only along x."""

    def make(n: int, m: int, factor: float) -> tuple[Indices, Weights]:
        first, t = places(n, m, factor)
        if held:
            t = np.where((first < 0) | (first >= n - 1), F32(0), t)
            first = np.clip(first, 0, n - 1)
        return first[:, None] + np.arange(2), np.stack([F32(1) - t, t], 1)

    return make


def _bicubic(n: int, m: int, factor: float) -> tuple[Indices, Weights]:
    first, t = _places(n, m, factor)
    return first[:, None] + np.arange(-1, 3), cubic_weights(t)


def _lanczos4(n: int, m: int, factor: float) -> tuple[Indices, Weights]:
    """One sine and one cosine give all taps; at a pixel's centre its weight makes the rest
    negligible."""
    first, t = _places(n, m, factor)
    q = math.sqrt(0.5)
    turns = [(1, 0), (-q, -q), (0, 1), (q, -q), (-1, 0), (q, q), (0, -1), (-q, q)]
    first_angle = -(t + F32(3)).astype(F64) * math.pi * 0.25
    sine, cosine = np.sin(first_angle), np.cos(first_angle)
    weights, total = np.zeros((m, 8), F32), np.zeros(m, F32)
    for k, (a, b) in enumerate(turns):
        d = t + F32(3) - F32(k)
        y = -d.astype(F64) * math.pi * 0.25
        on = np.abs(d) < F32(1e-6)
        lobe = ((a * sine + b * cosine) / np.where(on, 1, y * y)).astype(F32)
        weights[:, k] = np.where(on, F32(1e30), lobe)
        total += weights[:, k]
    return first[:, None] + np.arange(-3, 5), weights * (F32(1) / total)[:, None]


def _area(n: int, m: int, factor: float) -> tuple[Indices, Weights, NDArray[np.bool_]]:
    """The pixels covered by each output pixel's interval, in order; slivers are dropped."""
    scale = 1 / F64(factor)
    cell_start = np.arange(m) * scale
    end, cell = cell_start + scale, np.minimum(scale, n - cell_start)
    whole_end = np.minimum(np.floor(end), n - 1).astype(np.int64)
    whole = np.minimum(np.ceil(cell_start).astype(np.int64), whole_end)
    count = int((whole_end - whole).max()) + 2
    before, after = whole - cell_start > SLIVER, end - whole_end > SLIVER
    index = whole[:, None] - 1 + np.arange(count)
    weight = np.zeros((m, count), F32)
    is_whole = (index >= whole[:, None]) & (index < whole_end[:, None])
    weight += np.where(is_whole, (1 / cell)[:, None], 0).astype(F32)
    weight[:, 0] = np.where(before, (whole - cell_start) / cell, 0).astype(F32)
    last = np.minimum(np.minimum(end - whole_end, 1), cell) / cell
    is_last = (index == whole_end[:, None]) & after[:, None]
    weight = np.where(is_last, last.astype(F32)[:, None], weight)
    inside = is_whole | is_last
    inside[:, 0] = before
    return index, weight, inside


def _cells(n: int, m: int, factor: float) -> tuple[Indices, Weights, NDArray[np.bool_]]:
    """cv2.INTER_AREA by a whole number k: cells of k pixels, the last of which may be truncated."""
    k = int(np.rint(1 / F64(factor)))
    index = np.arange(m)[:, None] * k + np.arange(k)
    inside = index < n
    return index, (inside / np.maximum(inside.sum(1, keepdims=True), 1)).astype(F32), inside


def _exact(bits: int) -> Callable[..., tuple[Indices, Weights]]:
    """cv2.INTER_LINEAR_EXACT: weights with this many fraction bits."""

    def make(n: int, m: int, factor: float) -> tuple[Indices, Weights]:
        p = (1 / F64(factor)) * (np.arange(m) + 0.5) - 0.5
        first = np.floor(p).astype(np.int64)
        inner = (first >= 0) & (first < n - 1)
        right = np.where(inner, np.rint((p - first) * 2.0**bits), 0) / 2.0**bits
        return np.clip(first, 0, n - 1)[:, None] + np.arange(2), np.stack([1 - right, right], 1)

    return make


def _ipp_linear(n: int, m: int, factor: float) -> tuple[Indices, Weights]:
    """IPP's positions are float64; beyond the last pixels' centres it reads a single pixel."""
    return _ipp_two_taps(n, (np.arange(m) + 0.5) * F64(n / m) - 0.5, F32)


def _ipp_linear64(n: int, m: int, factor: float) -> tuple[Indices, Weights]:
    """The same for float64 images: a fused multiply-add, and an unrounded fraction."""
    step = Fraction(n / m)
    half = Fraction(1, 2)
    return _ipp_two_taps(n, np.array([float((i + half) * step - half) for i in range(m)], F64), F64)


def _ipp_affine_linear(
    dtype: type[np.floating], n: int, m: int, factor: float
) -> tuple[Indices, Weights]:
    return _ipp_two_taps(n, (np.arange(m) + 0.5) / F64(factor) - 0.5, dtype)


def _ipp_two_taps(
    n: int, position: NDArray[Any], dtype: type[np.floating]
) -> tuple[Indices, Weights]:
    first = np.floor(position)
    beyond = (position < 0) | (position >= n - 1)
    t = np.where(beyond, 0, position - first).astype(dtype)
    first = np.clip(first, 0, n - 1).astype(np.int64)
    return first[:, None] + np.arange(2), np.stack([1 - t, t], 1)


def _ipp_bicubic(n: int, m: int, factor: float) -> tuple[Indices, Weights]:
    """Weights in float64 at float32 distances; the fraction was rounded as 1 + t."""
    position = (np.arange(m) + 0.5) * F64(n / m) - 0.5
    first = np.floor(position)
    t = (F32(1) + (position - first).astype(F32)) - F32(1)
    far, near = _ipp_far, _ipp_near
    weights = [far(F32(1) + t), near(t), near(F32(1) - t), far(F32(2) - t)]
    return first.astype(np.int64)[:, None] + np.arange(-1, 3), np.stack(weights, 1)


def _ipp_near(d: NDArray[np.float32]) -> NDArray[np.float32]:
    return (((1.25 * d.astype(F64) - 2.25) * d) * d + 1).astype(F32)


def _ipp_far(d: NDArray[np.float32]) -> NDArray[np.float32]:
    return (((-0.75 * d.astype(F64) + 3.75) * d - 6) * d + 3).astype(F32)


def _ipp_affine_bicubic(n: int, m: int, factor: float) -> tuple[Indices, Weights]:
    """If fx and fy do not fit the size: polynomials of t in float32, fused."""
    position = (np.arange(m) + 0.5) / F64(factor) - 0.5
    first = np.floor(position)
    t = (position - first).astype(F32)
    square = t * t
    cube = square * t
    weights = [
        _fma(-0.75, cube, _fma(1.5, square, F32(-0.75) * t)),
        _fma(1.25, cube, _fma(-2.25, square, np.ones(m, F32))),
        _fma(-1.25, cube, _fma(1.5, square, F32(0.75) * t)),
        _fma(0.75, cube, F32(-0.75) * square),
    ]
    return first.astype(np.int64)[:, None] + np.arange(-1, 3), np.stack(weights, 1)


def _fma(a: float, b: NDArray[np.float32], c: NDArray[np.float32]) -> NDArray[np.float32]:
    """a b + c rounded once."""
    exact = [
        Fraction(a) * Fraction(float(x)) + Fraction(float(y)) for x, y in zip(b, c, strict=True)
    ]
    return np.array([_to_float32(value) for value in exact], F32)


def _to_float32(value: Fraction) -> np.float32:
    """The nearest float32, ties to even; float() would round twice."""
    near = F32(float(value))
    around = (np.nextafter(near, F32(-np.inf)), near, np.nextafter(near, F32(np.inf)))
    even = [(abs(Fraction(float(x)) - value), int(x.view(np.int32)) & 1, x) for x in around]
    return min(even, key=lambda choice: choice[:2])[2]


KINDS: dict[str, Callable[..., tuple[np.ndarray, ...]]] = {
    "nearest": _nearest,
    "nearest_exact4": _nearest_exact4,
    "nearest_exact5": _nearest_exact5,
    "bilinear_x": _two_taps(_places, True),
    "bilinear_y": _two_taps(_places, False),
    "enlarge_x": _two_taps(_area_places, True),
    "enlarge_y": _two_taps(_area_places, False),
    "bicubic": _bicubic,
    "lanczos4": _lanczos4,
    "area": _area,
    "cells": _cells,
    "exact8": _exact(8),
    "exact16": _exact(16),
    "exact32": _exact(32),
    "ipp_linear": _ipp_linear,
    "ipp_linear64": _ipp_linear64,
    "ipp_affine_linear": partial(_ipp_affine_linear, F32),
    "ipp_affine_linear64": partial(_ipp_affine_linear, F64),
    "ipp_bicubic": _ipp_bicubic,
    "ipp_affine_bicubic": _ipp_affine_bicubic,
    **PILLOW_KINDS,
    **TORCH_KINDS,
}
"""The kinds of tables. _x, _y: only along this axis; 64: for float64 images; affine: fx and fy do
not fit the size."""
