"""cv2.resize with Intel's IPP, which OpenCV's wheels for x86-64 enable.

It applies to 1, 3 and 4 channels: bilinear of 16 bits and floats, and bicubic of all types except
float64. Positions are float64, sums float32 with fused multiply-adds. The order of sums differs
between IPP's code for AVX-512 and for AVX2; this machine's is used. If fx and fy do not fit the
size, OpenCV calls IPP's warp instead ("affine" here), whose last bits are not all known.
"""

from __future__ import annotations

import torch
from torch import Tensor

from warpkit.engine.arithmetic.processor import VECTOR_BYTES
from warpkit.engine.arithmetic.resize_axes import Axis, of_kind, taps_of
from warpkit.engine.arithmetic.resize_tables import Taps
from warpkit.engine.definitions.reference import convert
from warpkit.engine.definitions.resize import beside
from warpkit.engine.definitions.rounding import fma32, fma64

LINEAR_TYPES = (torch.uint16, torch.int16, torch.float32, torch.float64)
CUBIC_TYPES = (torch.uint8, torch.uint16, torch.int16, torch.float32)
CHANNELS = (1, 3, 4)

MISFIT = 1e-10
"""Relative: if fx differs more from the resulting ratio of sizes, IPP's warp is called."""

AVX512 = VECTOR_BYTES == 64
"""Whether IPP's code is that for AVX-512 or that for AVX2."""

BLOCK = 16
"""The number of columns at the border that are computed together with AVX-512; two with AVX2."""


def plan(
    name: str, channels: int, dtype: torch.dtype, across: Axis, down: Axis
) -> tuple[str, Axis, Axis] | None:
    """The path through IPP, and its tables; None if OpenCV does not call IPP."""
    types = {"bilinear": LINEAR_TYPES, "bicubic": CUBIC_TYPES}.get(name, ())
    smallest = min(across.length, down.length)
    if channels not in CHANNELS or dtype not in types or smallest < 2:
        return None
    allowed = 0.0 if dtype == torch.float64 else MISFIT
    fits = all(abs(a.size / a.length - a.factor) / a.factor <= allowed for a in (across, down))
    if fits and name == "bicubic" and smallest < 4:
        return None
    way = f"ipp_{'' if fits else 'affine_'}{'linear' if name == 'bilinear' else name}"
    kind = way + "64" * (dtype == torch.float64)
    return of_kind(way, kind, kind, across, down)


def values(image: Tensor, way: str, across: Axis, down: Axis) -> Tensor:
    """The pixels (..., C, h, w), without gradients."""
    x, y = taps_of(across, image.device), taps_of(down, image.device)
    if way.endswith("linear"):
        return _linear(image, x, y, down, across, fits=way == "ipp_linear")
    if way == "ipp_bicubic":
        return _bicubic(image, x, y, across, down)
    return _affine_bicubic(image, x, y)


def _linear(image: Tensor, x: Taps, y: Taps, down: Axis, across: Axis, *, fits: bool) -> Tensor:
    double = image.dtype == torch.float64
    work, fma = (torch.float64, fma64) if double else (torch.float32, fma32)
    pixels = image.to(work)
    tx, ty = x.weight[:, 1].to(work), y.weight[:, 1].to(work)[:, None]
    near, far = (pixels.index_select(-1, x.pixel[:, k]) for k in (0, 1))
    line = fma(tx, far - near, near)
    above, below = (line.index_select(-2, y.pixel[:, k]) for k in (0, 1))
    total = fma(ty, below - above, above)
    if not fits or image.dtype not in (torch.float32, torch.int16):
        return convert(total, image.dtype)
    left, right = beyond(across, image.device)
    if image.dtype == torch.float32:
        p, q = (near.index_select(-2, y.pixel[:, k]) for k in (0, 1))
        other = p + ty * (q - p)  # not fused
        return torch.where(apart(image.shape[-3], left, right), other, total)
    # if one axis reads one pixel, the other one's step is rounded separately
    total = total.round()
    upper, lower = beyond(down, image.device)
    corner, beside = (t.index_select(-2, y.pixel[:, 0]) for t in (near, far))
    under = near.index_select(-2, y.pixel[:, 1])
    total = torch.where(left | right, corner + (ty * (under - corner)).round(), total)
    flat = corner + (tx * (beside - corner)).round()
    return convert(torch.where((upper | lower)[:, None], flat, total), image.dtype)


def beyond(axis: Axis, device: torch.device) -> tuple[Tensor, Tensor]:
    """(m,) each: which output pixels are before the first pixel's centre, and beyond the last
    one's."""
    position = _positions(axis, device)
    return position < 0, position >= axis.length - 1


def _positions(axis: Axis, device: torch.device) -> Tensor:
    """(m,), float64: the source position of each output pixel."""
    i = torch.arange(axis.size, dtype=torch.float64, device=device)
    return (i + 0.5) * (axis.length / axis.size) - 0.5


def apart(channels: int, left: Tensor, right: Tensor) -> Tensor:
    """(C, 1, w): the columns of both borders (w,) whose sums IPP does not fuse."""
    c = torch.arange(channels, device=left.device)[:, None, None]
    mask = torch.zeros_like(left)[None, None].expand(channels, 1, -1)
    if channels not in (3, 4):
        return mask
    for columns in (left, right):
        number = columns.long().cumsum(0) - 1  # numbered within its border
        count = columns.sum()
        if AVX512:
            full = count // BLOCK * BLOCK
            many = count - full >= 5
            chosen = ((number < full) | many) if channels == 4 else ((number >= full) & many)
        else:
            chosen = number < count // 2 * 2
        mask = mask | (columns & chosen & ((c < 2) | (channels == 4)))
    return mask


def _bicubic(image: Tensor, x: Taps, y: Taps, across: Axis, down: Axis) -> Tensor:
    pixels, channels = image.float(), image.shape[-3]
    inner_x, inner_y = (interior(axis, image.device) for axis in (across, down))
    p = [pixels.index_select(-1, x.pixel[:, k]) for k in range(4)]
    w = [x.weight[:, k] for k in range(4)]

    def chain(*order: int) -> Tensor:
        """p w of the first tap, with the others added by fused operations."""
        total = p[order[0]] * w[order[0]]
        for k in order[1:]:
            total = fma32(p[k], w[k], total)
        return total

    pairs = (p[0] * w[0] + p[1] * w[1]) + (p[2] * w[2] + p[3] * w[3])
    skip = (p[0] * w[0] + p[2] * w[2]) + (p[1] * w[1] + p[3] * w[3])
    columns = inner_x.long().cumsum(0)
    tail = inner_x & (columns > inner_x.sum() // 4 * 4)
    ends = chain(3, 0) + chain(2, 1)
    if image.dtype == torch.uint8 and AVX512:
        border = chain(0, 1, 2, 3)
        inner = border
        if channels == 1:
            inner = torch.where(tail, skip, pairs)
        elif channels == 4:
            inner = torch.where(tail, ends, chain(0, 2) + chain(1, 3))
        return convert(_fused(torch.where(inner_x, inner, border), y, (1, 0)), image.dtype)
    rows, v = [chain(0, 1, 2, 3), chain(1, 0, 2, 3)], [y.weight[:, k, None] for k in range(4)]
    t = [rows[k in (1, 2)].index_select(-2, y.pixel[:, k]) for k in range(4)]
    border = (t[0] * v[0] + t[2] * v[2]) + (t[1] * v[1] + t[3] * v[3])
    lines = torch.where(tail, skip, pairs) if channels == 1 else ends
    inner = _fused(lines, y, (1, 0))
    if image.dtype == torch.float32 and AVX512:  # the last numbers of a row's interior
        c = torch.arange(channels, device=image.device)[:, None, None]
        count = inner_x.sum() * channels
        rest = (columns - 1) * channels + c >= count // 4 * 4
        inner = torch.where(rest, _fused(lines, y, (0, 1)), inner)
    total = torch.where(inner_x & inner_y[:, None], inner, border)
    return convert(total, image.dtype)


def interior(axis: Axis, device: torch.device) -> Tensor:
    """(m,): whether all four taps are inside the image."""
    first = _positions(axis, device).floor()
    return (first >= 1) & (first < axis.length - 2)


def _fused(lines: Tensor, y: Taps, first: tuple[int, int]) -> Tensor:
    """Sums four rows of `lines` (..., H, w) in two fused pairs; `first`: the order in the upper
    one."""
    t, v = [lines.index_select(-2, y.pixel[:, k]) for k in range(4)], y.weight
    a, b = first
    upper = fma32(t[b], v[:, b, None], t[a] * v[:, a, None])
    return upper + fma32(t[2], v[:, 2, None], t[3] * v[:, 3, None])


def _affine_bicubic(image: Tensor, x: Taps, y: Taps) -> Tensor:
    """IPP's warp: columns before rows, except in the interior of four channels."""
    pixels, channels = image.float(), image.shape[-3]

    def taps(values: Tensor, dim: int) -> tuple[list[Tensor], list[Tensor]]:
        t = x if dim == -1 else y
        weights = [beside(t.weight[:, k], dim) for k in range(4)]
        return [values.index_select(dim, t.pixel[:, k]) for k in range(4)], weights

    def chain(values: Tensor, dim: int, first: int, second: int) -> Tensor:
        p, w = taps(values, dim)
        total = fma32(p[second], w[second], p[first] * w[first])
        return fma32(p[3], w[3], fma32(p[2], w[2], total))

    def halves(values: Tensor, dim: int) -> Tensor:
        p, w = taps(values, dim)
        return fma32(p[0], w[0], p[1] * w[1]) + fma32(p[2], w[2], p[3] * w[3])

    def one_sum(values: Tensor, dim: int) -> Tensor:
        p, w = taps(values, dim)
        return (p[0] * w[0] + p[1] * w[1]) + (p[2] * w[2] + p[3] * w[3])

    inner_x, inner_y = ((t.pixel.diff(dim=1) == 1).all(1) for t in (x, y))
    inner = inner_x & inner_y[:, None]
    if channels == 1:
        total = one_sum(halves(pixels, -2), -1)
    elif channels == 3:
        forth, back = (one_sum(chain(pixels, -2, *order), -1) for order in ((0, 1), (1, 0)))
        total = torch.where(inner, forth, back)
    else:
        p, w = taps(chain(pixels, -2, 1, 0), -1)
        border = fma32(p[1], w[1], p[0] * w[0]) + fma32(p[3], w[3], p[2] * w[2])
        total = torch.where(inner, halves(chain(pixels, -1, 0, 1), -2), border)
    return convert(total, image.dtype)
