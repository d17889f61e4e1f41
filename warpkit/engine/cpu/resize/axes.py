"""The taps along an axis in the kernels' format, made once for each size and rule."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch

from warpkit.core.lasting import lasting
from warpkit.engine.arithmetic import opencv_resize, pillow, torch_tables
from warpkit.engine.arithmetic.opencv_ipp_resize import apart, beyond, interior
from warpkit.engine.arithmetic.resize_tables import TableKey, table
from warpkit.engine.definitions.resize import KEPT_TABLES, Edges, ResizeRule, axis_taps


class Axis(NamedTuple):
    """The taps of all outputs along an axis, one after the other: see resize_call.h."""

    pixel: np.ndarray
    """The pixel of every tap, int32."""
    weight: np.ndarray
    """The weight of every tap, in the type of the sums."""
    begin: np.ndarray
    """The index of every output's first tap, int32, and the end."""
    end: np.ndarray

    @property
    def size(self) -> int:
        return len(self.begin)

    @property
    def taps(self) -> int:
        """The largest number of taps of an output."""
        return int((self.end - self.begin).max())

    def extents(self, edges: np.ndarray) -> np.ndarray:
        """(N - 1, 2): the pixels first .. end that outputs edges[n] .. edges[n + 1] read."""
        pairs = zip(self.begin[edges[:-1]].tolist(), self.end[edges[1:] - 1].tolist(), strict=True)
        parts = [self.pixel[begin:end] for begin, end in pairs]
        ranges = [(p.min(), p.max() + 1) if p.size else (0, 0) for p in parts]
        return np.array(ranges, np.int32).reshape(-1, 2)

    def of_pixels_read(self) -> tuple[Axis, np.ndarray]:
        """The axis with pixels numbered among those that are read, and a list of the latter.

        Two of four pixels are read if bilinear shrinks by that factor.
        """
        pixels, places = np.unique(self.pixel, return_inverse=True)
        return self._replace(pixel=places.reshape(-1).astype(np.int32)), pixels


def make_axis(pixel: np.ndarray, weight: np.ndarray, inside: np.ndarray | None = None) -> Axis:
    """pixel, weight, inside: (m, K); the taps that are inside must be adjacent."""
    rows, count = pixel.shape
    first = np.arange(rows) * count
    begin, end = first, first + count
    if inside is not None:
        begin, end = first + inside.argmax(1), end - inside[:, ::-1].argmax(1)
        end = np.where(inside.any(1), end, begin)
    flat = np.ascontiguousarray(pixel, np.int32).ravel(), np.ascontiguousarray(weight).ravel()
    return Axis(*flat, begin.astype(np.int32), end.astype(np.int32))


def _turned(length: int, pixel: np.ndarray, weight: np.ndarray, inside: np.ndarray | None) -> Axis:
    """The taps of the gradient: for each pixel, the outputs that read it, in order."""
    output = np.broadcast_to(np.arange(len(pixel))[:, None], pixel.shape)
    there = np.ones(pixel.shape, bool) if inside is None else inside
    pixels, outputs, weights = pixel[there], output[there], weight[there]
    order = np.argsort(pixels, kind="stable")
    ends = np.cumsum(np.bincount(pixels, minlength=length))
    begins = np.concatenate(([0], ends[:-1]))
    flat = outputs[order].astype(np.int32), weights[order]
    return Axis(*flat, begins.astype(np.int32), ends.astype(np.int32))


def _still(size: int, weight: np.ndarray) -> Axis:
    """An unchanged axis; weight (1,): one."""
    return make_axis(np.arange(size)[:, None], np.repeat(weight, size)[:, None])


@lru_cache(maxsize=KEPT_TABLES)
def exact_axis(
    length: int, size: int, rule: ResizeRule, edges: Edges | None, kind: np.dtype, adjoint: bool
) -> Axis:
    """The reference's taps; adjoint: those of its gradient."""
    if edges is None and length == size and not rule.is_filter:
        return _still(size, np.ones(1, kind))
    dtype = torch.float32 if kind == np.float32 else torch.float64
    pixel, weight, inside = _exact_taps(length, size, rule, edges, dtype)
    assert weight is not None
    weight = weight.astype(kind)
    return _turned(length, pixel, weight, inside) if adjoint else make_axis(pixel, weight, inside)


@lasting
def _exact_taps(
    length: int,
    size: int,
    rule: ResizeRule,
    edges: Edges | None,
    dtype: torch.dtype = torch.float64,
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    found = axis_taps(length, size, rule, edges, torch.device("cpu"), dtype)
    pixel, weight, inside = (None if t is None else t.numpy() for t in found[:3])
    assert pixel is not None
    return pixel, weight, inside


@lru_cache(maxsize=KEPT_TABLES)
def table_axis(key: TableKey | None, side: int, kind: np.dtype) -> Axis:
    """The axis of a table; without a table, an unchanged axis of `side` pixels."""
    if key is None:
        return _still(side, np.ones(1, kind))
    pixel, weight, inside = table(*key)
    return make_axis(pixel, weight.astype(kind), inside)


@lru_cache(maxsize=KEPT_TABLES)
def pillow_axis(kind: str, length: int, size: int, low: float, high: float) -> Axis:
    """Pillow's taps for bytes."""
    one = 1 << pillow.BITS
    if pillow.keeps(length, size, low, high):
        return _still(size, np.array([one], np.int32))
    pixel, weight, inside = table(f"pillow_{kind}", length, size, low, high)
    whole = np.trunc(weight * one + np.where(weight < 0, -0.5, 0.5)).astype(np.int32)
    return make_axis(pixel, whole, inside)


@lru_cache(maxsize=KEPT_TABLES)
def torch_axis(kind: str, length: int, size: int) -> Axis:
    """F.interpolate's taps for bytes, which are adjacent; each output has at least one."""
    if length == size:
        return _still(size, np.array([1 << torch_tables.BITS], np.int32))
    return make_axis(*table(kind, length, size))


def in_pairs(axis: Axis) -> tuple[Axis, int]:
    """The taps in pairs, at the first one's pixel: both weights in one int32; and their bits.

    The bits are as few as hold the weights, which then have at most 16.
    """
    common = int(np.bitwise_or.reduce(axis.weight))
    spare = min((common & -common).bit_length() - 1, torch_tables.BITS - 1)
    pairs = -(-axis.taps // 2)
    first = axis.begin[:, None] + 2 * np.arange(pairs)
    there = [first + n < axis.end[:, None] for n in range(2)]
    place = [(first + n).clip(0, len(axis.pixel) - 1) for n in range(2)]
    low, high = (
        np.where(there[n], axis.weight[place[n]] >> spare, 0).astype(np.int32) for n in range(2)
    )
    begin = np.arange(axis.size) * pairs
    counts = -(-(axis.end - axis.begin) // 2)
    flat = axis.pixel[place[0]].ravel(), ((high << 16) | (low & 0xFFFF)).ravel()
    ends = begin.astype(np.int32), (begin + counts).astype(np.int32)
    return Axis(*flat, *ends), torch_tables.BITS - spare


@lru_cache(maxsize=KEPT_TABLES)
def opencv_axis(
    kind: str, length: int, size: int, factor: float, one: int, dtype: np.dtype
) -> Axis:
    """one: the integer for a weight of 1; 1 if weights are integers, 0 for floats."""
    pixel, weight, inside = table(kind, length, size, factor)
    if one == 1:
        weight = np.ones(weight.shape, dtype)
    elif one:
        limits = np.iinfo(np.int16)
        weight = np.rint(weight * weight.dtype.type(one)).clip(limits.min, limits.max)
    return make_axis(pixel, weight.astype(dtype), inside)


WIDE = 16
"""The number of float32 sums in a vector."""

CHAIN, PAIRS, SKIP, HALVES, ENDS, ALONE = range(6)
"""`Order` of native/resize/resize_call.h."""


def ipp_orders(axis: opencv_resize.Axis, channels: int, avx512: bool) -> np.ndarray:
    """The order of the sum along x for every column; avx512: as in IPP's code for AVX-512."""
    inner = ipp_inside(axis)
    last = inner & (inner.cumsum() > inner.sum() // 4 * 4)
    if channels == 1:
        inside, tail = PAIRS, SKIP
    elif avx512:
        inside, tail = (HALVES, ENDS) if channels == 4 else (CHAIN, CHAIN)
    else:
        inside = tail = ENDS
    edges = CHAIN if avx512 else ALONE
    return np.where(last, tail, np.where(inner, inside, edges)).astype(np.int32)


def ipp_inside(axis: opencv_resize.Axis) -> np.ndarray:
    """Whether the four pixels of each output are inside the image."""
    return interior(axis, torch.device("cpu")).numpy()


def ipp_beyond(axis: opencv_resize.Axis) -> np.ndarray:
    """Whether IPP's bilinear reads only one pixel for each output, at an edge."""
    before, behind = beyond(axis, torch.device("cpu"))
    return (before | behind).numpy()


def ipp_apart(axis: opencv_resize.Axis, channels: int, by_itself: bool, last: bool) -> np.ndarray:
    """Whether IPP's bilinear does not fuse the step along y, for every number of a row, int32.

    by_itself: it is rounded separately, as for int16; last: the layout is channels-last.
    """
    before, behind = beyond(axis, torch.device("cpu"))
    if by_itself:
        found = (before | behind)[None].expand(channels, -1)
    else:
        found = apart(channels, before, behind)[:, 0]
    numbers = found.mT.reshape(-1) if last else found[0]
    behind_them = np.zeros(WIDE, np.int32)  # whole vectors are read
    return np.concatenate((numbers.numpy().astype(np.int32), behind_them))


def shown_pixels(length: int, size: int, rule: ResizeRule, edges: Edges | None) -> np.ndarray:
    """The pixel of each output under the reference's nearest, int64."""
    if edges is None and length == size:
        return np.arange(size)
    return np.ascontiguousarray(_exact_taps(length, size, rule, edges)[0][:, 0], np.int64)
