"""The taps along an axis as the kernels read them, made once for each size and rule."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch

from warpkit.engine.arithmetic import opencv_resize, pillow
from warpkit.engine.arithmetic.opencv_ipp_resize import interior
from warpkit.engine.arithmetic.resize_tables import TableKey, table
from warpkit.engine.backends.cpu.resize import two_taps
from warpkit.engine.backends.cpu.resize.ipp_cubic import ALONE, CHAIN, ENDS, HALVES, PAIRS, SKIP
from warpkit.engine.backends.cpu.resize.passes import Axis
from warpkit.engine.sampling.resize import KEPT_TABLES, Edges, ResizeRule, axis_taps


@lru_cache(maxsize=KEPT_TABLES)
def exact_axis(
    length: int, size: int, rule: ResizeRule, edges: Edges | None, kind: np.dtype, adjoint: bool
) -> Axis:
    """The reference's taps as the kernel reads them."""
    if edges is None and length == size:
        return _axis(np.arange(size)[:, None], np.ones((size, 1), kind), None)
    with torch.inference_mode(False), torch.no_grad():
        found = axis_taps(length, size, rule, edges, torch.device("cpu"))
    assert found.weight is not None
    inside = None if found.inside is None else found.inside.numpy()
    pixel, weight = found.pixel.numpy(), found.weight.numpy().astype(kind)
    return _turned(length, pixel, weight, inside) if adjoint else _axis(pixel, weight, inside)


def _axis(pixel: np.ndarray, weight: np.ndarray, inside: np.ndarray | None) -> Axis:
    """pixel, weight, inside: (m, K); those that are there follow each other."""
    rows, count = pixel.shape
    begin, end = np.zeros(rows, np.int64), np.full(rows, count, np.int64)
    if inside is not None:
        begin, end = inside.argmax(1), count - inside[:, ::-1].argmax(1)
    flat = np.ascontiguousarray(pixel, np.int64).ravel(), np.ascontiguousarray(weight).ravel()
    return Axis(*flat, np.ascontiguousarray(begin, np.int64), np.ascontiguousarray(end, np.int64))


def _turned(length: int, pixel: np.ndarray, weight: np.ndarray, inside: np.ndarray | None) -> Axis:
    """The taps of the gradient: for each pixel the outputs that read it, in order."""
    output = np.broadcast_to(np.arange(len(pixel))[:, None], pixel.shape)
    there = np.ones(pixel.shape, bool) if inside is None else inside
    pixels, outputs, weights = pixel[there], output[there], weight[there]
    order = np.argsort(pixels, kind="stable")
    counts = np.bincount(pixels, minlength=length)
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    place = np.arange(len(order)) - np.repeat(starts, counts)
    longest = max(int(counts.max()), 1)
    reads, weighs = (
        np.zeros((length, longest), np.int64),
        np.zeros((length, longest), weight.dtype),
    )
    reads[pixels[order], place], weighs[pixels[order], place] = outputs[order], weights[order]
    return Axis(reads.ravel(), weighs.ravel(), np.zeros(length, np.int64), counts)


@lru_cache(maxsize=KEPT_TABLES)
def table_axis(key: TableKey | None, side: int, kind: np.dtype, adjoint: bool) -> Axis:
    """A table as the kernel reads it; an axis of `side` pixels that stays, without one."""
    if key is None:
        return _axis(np.arange(side)[:, None], np.ones((side, 1), kind), None)
    pixel, weight, inside = table(*key)
    weight = weight.astype(kind)
    return _turned(side, pixel, weight, inside) if adjoint else _axis(pixel, weight, inside)


@lru_cache(maxsize=KEPT_TABLES)
def pillow_axis(kind: str, length: int, size: int, low: float, high: float) -> Axis:
    one = 1 << pillow.BITS
    if pillow.keeps(length, size, low, high):
        return _axis(np.arange(size)[:, None], np.full((size, 1), one, np.int32), None)
    pixel, weight, inside = table(f"pillow_{kind}", length, size, low, high)
    whole = np.trunc(weight * one + np.where(weight < 0, -0.5, 0.5)).astype(np.int32)
    return _axis(pixel, whole, inside)


@lru_cache(maxsize=KEPT_TABLES)
def taps_of_numbers(
    kind: str, length: int, size: int, factor: float, one: int, apart: int
) -> dict[str, np.ndarray]:
    """For every number of a row, see `two_taps.NAMES`; the last one repeats to the end."""
    pixel, weight = _two_by_two(kind, length, size, factor, one)
    left, right = weight.T
    single = pixel[:, 0] == pixel[:, 1]  # both taps on one pixel, whose next one is not read
    left, right = np.where(single, left + right, left), np.where(single, 0, right)
    of = np.minimum(np.arange(two_taps.room_of(size * apart)), size * apart - 1)
    place = pixel[of // apart, 0] * apart + of % apart
    tables = place, left[of // apart], right[of // apart]
    return {
        name: np.ascontiguousarray(table, np.int32)
        for name, table in zip(("place", "left", "right"), tables, strict=True)
    }


@lru_cache(maxsize=KEPT_TABLES)
def taps_of_rows(
    kind: str, length: int, size: int, factor: float, one: int
) -> dict[str, np.ndarray]:
    """For every row of the result, see `two_taps.NAMES`."""
    pixel, weight = _two_by_two(kind, length, size, factor, one)
    tables = *pixel.T, *weight.T
    return {
        name: np.ascontiguousarray(table, np.int64)
        for name, table in zip(("above", "below", "upper", "lower"), tables, strict=True)
    }


def _two_by_two(
    kind: str, length: int, size: int, factor: float, one: int
) -> tuple[np.ndarray, np.ndarray]:
    """The two taps of every output, (size, 2): pixels, the same or neighbours, and weights."""
    axis = opencv_axis(kind, length, size, factor, one, np.dtype(np.int32))
    pixel, weight = (numbers.reshape(size, 2) for numbers in axis[:2])
    return np.stack((pixel[:, 0], np.clip(pixel[:, 1], pixel[:, 0], pixel[:, 0] + 1)), 1), weight


@lru_cache(maxsize=KEPT_TABLES)
def opencv_axis(
    kind: str, length: int, size: int, factor: float, one: int, dtype: np.dtype
) -> Axis:
    """one: what a weight of 1 is in whole numbers; 1 where all are; 0 for floats."""
    pixel, weight, inside = table(kind, length, size, factor)
    if one == 1:
        weight = np.ones(weight.shape, dtype)
    elif one:
        limits = np.iinfo(np.int16)
        weight = np.rint(weight * weight.dtype.type(one)).clip(limits.min, limits.max)
    return _axis(pixel, weight.astype(dtype), inside)


@lru_cache(maxsize=KEPT_TABLES)
def ipp_taps(kind: str, length: int, size: int, factor: float) -> tuple[np.ndarray, np.ndarray]:
    """The four pixels and weights of every output, flat."""
    pixel, weight, _ = table(kind, length, size, factor)
    return pixel.astype(np.int64).ravel(), np.ascontiguousarray(weight, np.float32).ravel()


@lru_cache(maxsize=KEPT_TABLES)
def ipp_orders(axis: opencv_resize.Axis, channels: int, avx512: bool) -> np.ndarray:
    """The order of the sum along x of every column, see `ipp_cubic`; avx512: with AVX-512."""
    inner = ipp_inside(axis)
    last = inner & (inner.cumsum() > inner.sum() // 4 * 4)
    if channels == 1:
        inside, tail = PAIRS, SKIP
    elif avx512:
        inside, tail = (HALVES, ENDS) if channels == 4 else (CHAIN, CHAIN)
    else:
        inside = tail = ENDS
    return np.where(last, tail, np.where(inner, inside, CHAIN if avx512 else ALONE))


@lru_cache(maxsize=KEPT_TABLES)
def ipp_inside(axis: opencv_resize.Axis) -> np.ndarray:
    """Of every output whether its four pixels are on the image."""
    return interior(axis, torch.device("cpu")).numpy()
