"""Maps and borders for Numba's kernels: `sampling.rules` for one point, in a kernel's types.

The native library has the same in native/rules.h.
"""

from __future__ import annotations

import numpy as np

from warpkit.engine.backends.cpu.runtime.compiler import inline
from warpkit.engine.backends.cpu.runtime.simd import max_signed, min_signed
from warpkit.engine.sampling.layout import AFFINE, POINTS
from warpkit.engine.sampling.rules import CODE, LIMIT

ROUND = 1.5 * 2.0**52
"""Adding and subtracting it rounds to an integer, ties to even."""

CACHE_LINE = 64

CONSTANT, REPLICATE, REFLECT = CODE["constant"], CODE["replicate"], CODE["reflect"]
WRAP, TRANSPARENT = CODE["wrap"], CODE["transparent"]


@inline
def map_point(kind, mapping, mapping_start, x, y):
    """The source point of output pixel (x, y); `mapping` holds matrices or points."""
    if kind == POINTS:
        return np.float64(mapping[mapping_start]), np.float64(mapping[mapping_start + 1])
    fx, fy = np.float64(x), np.float64(y)
    u = mapping[mapping_start] * fx + mapping[mapping_start + 1] * fy + mapping[mapping_start + 2]
    v = (
        mapping[mapping_start + 3] * fx
        + mapping[mapping_start + 4] * fy
        + mapping[mapping_start + 5]
    )
    if kind == AFFINE:
        return u, v
    w = (
        mapping[mapping_start + 6] * fx
        + mapping[mapping_start + 7] * fy
        + mapping[mapping_start + 8]
    )
    limit = LIMIT * abs(w)
    good = (abs(u) < limit) & (abs(v) < limit) & (abs(w) < np.inf)
    w = w if good else np.nan
    return u / w, v / w


@inline
def misses(border):
    """Whether taps outside the image are missing."""
    return (border == CONSTANT) | (border == TRANSPARENT)


@inline
def inside(index, length):
    """Whether 0 <= index < length."""
    return (index >= 0) & (index < length)


@inline
def resolve(index, length, border):
    """The pixel an index reads under a border, or -1 where it is missing; as `rules.resolve`."""
    if 0 <= index < length:
        return index
    if misses(border):
        return np.int64(-1)
    if border == REPLICATE:
        return min_signed(max_signed(index, np.int64(0)), length - 1)
    if border == WRAP:
        return index % length
    period = 2 * length if border == REFLECT else max_signed(2 * length - 2, np.int64(1))
    index = index % period
    return min_signed(index, (period - 1 if border == REFLECT else period) - index)


@inline
def clear(to, planes, area, dst, line, band):
    """Set the rows band[0] .. band[1] of an image's planes to 0; `line` numbers make up a row."""
    for k in range(planes):
        for p in range(band[0] * line, band[1] * line):
            to[np.uint64(dst + k * area + p)] = 0
