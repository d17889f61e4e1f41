"""cv2.resize's pixels, bit for bit, on tensors: OpenCV's choice of an algorithm, and each of them.

OpenCV resizes rows of C * W numbers, x C + c. It sums the first of them in vector registers and the
rest one by one, in another order. Sums of floats here follow both orders.

What moves pixels has the gradient of that. The others have none here: `engine.backends.resizing`
adds that of "exact".
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from warpkit.core.checks import LABELS
from warpkit.engine.arithmetic import opencv_ipp_resize
from warpkit.engine.arithmetic.resize_axes import Axis, move, of_kind, taps_of
from warpkit.engine.arithmetic.resize_tables import EXACT_BITS, Taps
from warpkit.engine.definitions.maps import no_float64
from warpkit.engine.definitions.reference import convert
from warpkit.engine.definitions.resize import Edges, ResizeRule, beside
from warpkit.engine.definitions.rounding import saturate16, wrap32

EPSILON = 2.0**-52
"""OpenCV takes a scale as a whole number if the difference is smaller than this."""

UINT8_ONE = 1 << 11
"""Weights of 8-bit images are integers in units of 1 / UINT8_ONE."""

VECTORS = {
    ("bicubic", torch.uint8): 8,
    ("bicubic", torch.uint16): 8,
    ("bicubic", torch.int16): 8,
    ("bicubic", torch.float32): 4,
    ("lanczos4", torch.int16): 8,
    ("lanczos4", torch.float32): 4,
}
"""The count of a row's numbers that OpenCV sums together, if that changes the order of a sum."""


def unsupported_reasons(image: Tensor, rule: ResizeRule) -> list[str]:
    """The reasons why OpenCV's pixels are not available."""
    return no_float64(image)


def resize(
    image: Tensor,
    size: Sequence[int],
    rule: ResizeRule,
    box: Sequence[Edges] | None = None,
    factors: tuple[float, float] | None = None,
) -> Tensor:
    """Resizes the image (..., C, H, W) to `size` (h, w) as cv2.resize does; the type is kept.

    box: None. factors: fy and fx, if cv2 gets these instead of a size.
    """
    way, across, down = plan(image.shape, image.dtype, size, rule, factors)
    x, y = taps_of(across, image.device), taps_of(down, image.device)
    if way == "move":
        return move(image, x, y)
    if way.startswith("ipp"):
        return opencv_ipp_resize.values(image, way, across, down)
    if way == "exact":
        return _exact(image, x, y, int(across.kind.removeprefix("exact")))
    if way == "cells":
        return _cells(image, x, y, cut=cuts_cells(across) or cuts_cells(down))
    if way == "area":
        return _area(image, x, y)
    if image.dtype == torch.uint8:
        return _separable_uint8(image, x, y, way)
    return _separable(image, x, y, way)


def plan(
    shape: Sequence[int],
    dtype: torch.dtype,
    size: Sequence[int],
    rule: ResizeRule,
    factors: tuple[float, float] | None,
) -> tuple[str, Axis, Axis]:
    """OpenCV's algorithm, and the axes along x and y with their kinds of table.

    shape, dtype: of the image, (..., C, H, W).
    """
    (height, width), (rows, columns) = (map(int, s) for s in (shape[-2:], size))
    fy, fx = (rows / height, columns / width) if factors is None else factors
    across, down = Axis("", width, columns, fx), Axis("", height, rows, fy)
    name = rule.interpolation
    if name == "bilinear_exact" and dtype.is_floating_point:
        name = "bilinear"
    if rule.arithmetic.endswith("_ipp"):
        by_ipp = opencv_ipp_resize.plan(name, shape[-3], dtype, across, down)
        if by_ipp is not None:
            return by_ipp
    if name == "nearest_exact":
        name += rule.arithmetic.removeprefix("opencv")[0]
    if name in ("nearest", "nearest_exact4", "nearest_exact5"):
        return of_kind("move", name, name, across, down)
    by_two = _is_whole(across) and _is_whole(down) and round(across.scale) == round(down.scale) == 2
    if name == "bilinear_exact":
        if by_two and shape[-3] != 2 and dtype not in LABELS:
            return of_kind("cells", "cells", "cells", across, down)
        bits = EXACT_BITS[str(dtype).removeprefix("torch.")]
        return of_kind("exact", f"exact{bits}", f"exact{bits}", across, down)
    if name == "bilinear" and by_two:
        return of_kind("cells", "cells", "cells", across, down)
    if name == "area" and across.scale >= 1 and down.scale >= 1:
        kind = "cells" if _is_whole(across) and _is_whole(down) else "area"
        return of_kind(kind, kind, kind, across, down)
    if name in ("area", "bilinear"):
        kind = "enlarge" if name == "area" else name
        return of_kind("bilinear", f"{kind}_x", f"{kind}_y", across, down)
    return of_kind(name, name, name, across, down)


def _is_whole(axis: Axis) -> bool:
    return abs(axis.scale - round(axis.scale)) < EPSILON


def cuts_cells(axis: Axis) -> bool:
    """Whether the end of the image truncates a cell of a whole number of pixels."""
    return axis.size * round(axis.scale) > axis.length


def in_vectors(image: Tensor, width: int, step: int, columns: int | Tensor | None = None) -> Tensor:
    """(C, 1, w): whether a number of a row is among those that are processed `step` at a time.

    columns: how many of the row's pixels (image (..., C, H, W)) can be; None for all.
    """
    columns = width if columns is None else columns
    channels = image.shape[-3]
    c = torch.arange(channels, device=image.device)[:, None, None]
    x = torch.arange(width, device=image.device)
    return x * channels + c < columns * channels // step * step


def _work_dtype(dtype: torch.dtype) -> torch.dtype:
    """The type of OpenCV's floating-point sums."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def _separable(image: Tensor, x: Taps, y: Taps, way: str) -> Tensor:
    work = _work_dtype(image.dtype)
    lines = _lines(image.to(work), x.weight.to(work), x, y)
    weights = y.weight.to(work)[:, :, None].unbind(1)
    total = lines[0] * weights[0]
    for line, weight in zip(lines[1:], weights[1:], strict=True):
        total = total + line * weight
    if step := VECTORS.get((way, image.dtype)):
        nested = _nested(lines, weights)
        total = torch.where(in_vectors(image, total.shape[-1], step), nested, total)
    return convert(total, image.dtype)


def _lines(pixels: Tensor, across: Tensor, x: Taps, y: Taps) -> list[Tensor]:
    """Sums along x of pixels (..., H, W) by weights across (w, K), for each tap along y.

    Each (..., h, w).
    """
    line = pixels.index_select(-1, x.pixel[:, 0]) * across[:, 0]
    for k in range(1, across.shape[1]):
        line = line + pixels.index_select(-1, x.pixel[:, k]) * across[:, k]
    return [line.index_select(-2, y.pixel[:, k]) for k in range(y.pixel.shape[1])]


def _nested(lines: Sequence[Tensor], weights: Sequence[Tensor]) -> Tensor:
    """The sum of lines (..., h, w) times weights (h, 1), starting with the last."""
    total = lines[-1] * weights[-1]
    for line, weight in zip(reversed(lines[:-1]), reversed(weights[:-1]), strict=True):
        total = line * weight + total
    return total


def _separable_uint8(image: Tensor, x: Taps, y: Taps, way: str) -> Tensor:
    across, down = (
        saturate16((t.weight * UINT8_ONE).round().long()) for t in (x, y)
    )  # rounded separately: their sum may be off
    lines, weights = _lines(image.long(), across, x, y), down[:, :, None].unbind(1)
    if way == "bilinear":  # each product loses 4 and then 16 bits by truncation
        pair = zip(lines, weights, strict=True)
        upper, lower = ((weight * (value >> 4)) >> 16 for value, weight in pair)
        return ((upper + lower + 2) >> 2).to(torch.uint8)
    total = torch.zeros_like(lines[0])
    for value, weight in zip(lines, weights, strict=True):
        total = total + value * weight
    total = (wrap32(wrap32(total) + (1 << 21)) >> 22).clamp(0, 255)
    if way == "bicubic":
        floats = [weight.float() * 2.0**-22 for weight in weights]
        nested = _nested([line.float() for line in lines], floats)
        nested = nested.round().clamp(0, 255).long()
        step = VECTORS[way, image.dtype]
        total = torch.where(in_vectors(image, total.shape[-1], step), nested, total)
    return total.to(torch.uint8)


def _exact(image: Tensor, x: Taps, y: Taps, bits: int) -> Tensor:
    """cv2.INTER_LINEAR_EXACT: integers, rounded once, half up."""
    one = 1 << bits
    right, lower = ((t.weight[:, 1] * one).long() for t in (x, y))
    pixels, lower = image.long(), lower[:, None]
    line = pixels.index_select(-1, x.pixel[:, 0]) * (one - right)
    line = line + pixels.index_select(-1, x.pixel[:, 1]) * right
    above, below = (line.index_select(-2, y.pixel[:, k]) for k in (0, 1))
    if bits == 32:
        total = _upper_half(above, one - lower) + _upper_half(below, lower)
        total = (total + (1 << 31)) >> 32
    else:
        total = above * (one - lower) + below * lower
        total = (total + (1 << (2 * bits - 1))) >> (2 * bits)
    limits = torch.iinfo(image.dtype)
    return total.clamp(limits.min, limits.max).to(image.dtype)


def _upper_half(value: Tensor, weight: Tensor) -> Tensor:
    """value * weight / 2^32, for int64 and 0 <= weight <= 2^32, rounded half away from zero.

    value and weight (...), which broadcast.
    """
    size = torch.where(value < 0, -value, value)  # -2^63 keeps its bits, read as unsigned
    high, low = (size >> 32) & 0xFFFFFFFF, size & 0xFFFFFFFF
    upper, lower = low * (weight >> 16), low * (weight & 0xFFFF) + (1 << 31)
    half = high * weight + ((upper + (lower >> 16)) >> 16)
    return torch.where(value < 0, -half, half)


def _cells(image: Tensor, x: Taps, y: Taps, *, cut: bool) -> Tensor:
    """Means over whole cells; cut: those at the end may be partial, if fx and fy made the size."""
    channels, by_two = image.shape[-3], x.pixel.shape[1] == y.pixel.shape[1] == 2
    whole = not image.dtype.is_floating_point
    work = torch.int64 if image.dtype == torch.uint8 else _work_dtype(image.dtype)
    pixels, cells = image.to(torch.int64 if whole else work), []
    for j in range(y.pixel.shape[1]):
        line = pixels.index_select(-2, y.pixel[:, j])
        cells += [line.index_select(-1, x.pixel[:, i]) for i in range(x.pixel.shape[1])]
    if whole and by_two and channels in (1, 3, 4):
        mean = ((cells[0] + cells[1] + cells[2] + cells[3] + 2) >> 2).double()  # half up
    else:
        total = _sum_by_four(cells, work)
        share = torch.full((), len(cells), dtype=torch.float32, device=image.device).reciprocal()
        mean = total.float() * share if work == torch.int64 else total * share.to(work)
    if by_two and image.dtype == torch.float32 and channels in (1, 4):
        pairs = ((cells[0] + cells[1]) + (cells[2] + cells[3])) * 0.25
        whole_cells = x.inside.all(-1).sum()
        mean = torch.where(in_vectors(image, x.pixel.shape[0], 4, whole_cells), pairs, mean)
    if cut:
        mean = _with_cut_cells(mean, [value.to(work) for value in cells], x, y)
    return convert(mean, image.dtype)


def _sum_by_four(values: Sequence[Tensor], work: torch.dtype) -> Tensor:
    """Sums groups of four first, exactly for integers, then one after the other."""
    fours = len(values) // 4 * 4
    total = torch.zeros((), dtype=work, device=values[0].device)
    for first in range(0, fours, 4):
        a, b, c, d = values[first : first + 4]
        total = total + (((a + b) + c) + d).to(work)
    for value in values[fours:]:
        total = total + value.to(work)
    return total


def _with_cut_cells(mean: Tensor, cells: Sequence[Tensor], x: Taps, y: Taps) -> Tensor:
    """`mean` (..., C, h, w), with cells truncated by the image's end summed one by one.

    cells: the pixels for every tap (j, i) of a cell, row by row, each like `mean`.
    """
    total, number = torch.zeros_like(cells[0]), torch.zeros((), device=mean.device)
    for k, value in enumerate(cells):
        row, column = divmod(k, x.pixel.shape[1])
        there = y.inside[:, row, None] & x.inside[:, column]
        total, number = torch.where(there, total + value, total), number + there
    cut = ~(y.inside.all(-1)[:, None] & x.inside.all(-1))
    return torch.where(cut, (total.float() / number).to(mean.dtype), mean)


def _area(image: Tensor, x: Taps, y: Taps) -> Tensor:
    """Means over intervals that include fractions of pixels."""
    work = _work_dtype(image.dtype)
    pixels, total = image.to(work), torch.zeros((), dtype=work, device=image.device)
    for taps, dim in ((x, -1), (y, -2)):
        weights, inside = taps.weight.to(work), taps.inside
        for k in range(weights.shape[1]):
            weight, there = beside(weights[:, k], dim), beside(inside[:, k], dim)
            term = pixels.index_select(dim, taps.pixel[:, k]) * weight
            total = torch.where(there, total + term, total)
        pixels, total = total, torch.zeros((), dtype=work, device=image.device)
    return convert(pixels, image.dtype)
