"""Defines resizing, in plain torch: tables of taps along each axis, and two passes.

Along an axis, output pixel i of m covers a part of the source: the interval of length span / m that
starts at low + i span / m, in edge coordinates (pixel j covers [j, j + 1)). `span` is the source's
length n or the box's side, and `low` is 0 or the box's edge. Everything is computed as one quotient
of two sums, which are integers without a box, so positions are rounded once.

Without antialias, the middle of that interval is a point, sampled as in warps with the border
repeated. With antialias, a filter stretched by max(span / m, 1) weights the pixels around the
middle; pixels outside the image are left out, and the weights are divided by their sum. "area"
weights each pixel by the part of the interval that it covers.

Splines are sums of pixels around the middle, too, with a border of their own (`spline_tables`). The
arithmetics of SciPy and scikit-image have other positions, which SciPy rounds several times.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.core.lasting import lasting
from warpkit.core.tracing import is_eager
from warpkit.engine.definitions.bounds import at_least_zero
from warpkit.engine.definitions.labels import as_signed, from_signed
from warpkit.engine.definitions.maps import no_float64
from warpkit.engine.definitions.reference import compute_dtype, convert
from warpkit.engine.definitions.rules import SamplingRule, borders_of, taps
from warpkit.engine.definitions.spline_tables import filter_table, table
from warpkit.engine.definitions.splines import ORDERS, is_spline
from warpkit.types import Filter

POINT_FILTERS: tuple[Filter, ...] = ("nearest", "bilinear", "bicubic", "lanczos4")
"""The interpolations without antialias: those of the warps."""

SUPPORT = {
    "box": 0.5,
    "bilinear": 1.0,
    "hamming": 1.0,
    "bicubic": 2.0,
    "lanczos": 3.0,
}
"""The filters with antialias, and the radius of each."""

AREA_FILTERS: tuple[Filter, ...] = ("box", "bilinear", "hamming", "bicubic", "lanczos", "area")

KEPT_TABLES = 256
"""The number of tables of taps that are cached: 64 KiB for 1,000 pixels of 8 taps."""

Number = float | Tensor


class ResizeRule(NamedTuple):
    """How an image is resized."""

    interpolation: str
    antialias: bool
    arithmetic: str = "exact"
    border: str = "replicate"
    """Of splines, and of SciPy's and scikit-image's arithmetics."""
    aligned: str = "centers"
    """What the ends of both rows have in common: their pixels' "centers" by the grid, or the
    "corners", which are the end pixels themselves."""

    @property
    def is_filter(self) -> bool:
        """Whether the result is not samples but the coefficients of a spline, for a warp.

        Its border is that of the warp, which may be a pair: see `axis_rule`.
        """
        return self.arithmetic == "coefficients"

    @property
    def is_zoom(self) -> bool:
        """Whether the numbers are those of scipy.ndimage.zoom, perhaps after a Gaussian."""
        return self.arithmetic in ("scipy", "skimage")


def axis_rule(rule: ResizeRule, axis: int) -> ResizeRule:
    """The rule along axis -2 or -1, with one border."""
    border = borders_of(rule.border)[axis]  # Dynamo of torch 2.7 knows no `_replace`
    return ResizeRule(rule.interpolation, rule.antialias, rule.arithmetic, border, rule.aligned)


class Edges(NamedTuple):
    """The part of an axis that is resized, in edge coordinates."""

    low: Number
    high: Number
    longest: float
    """An upper bound of high - low: the number of taps for which a table has room."""


class AxisTaps(NamedTuple):
    """The pixels of an axis that each of m output pixels reads, and their weights."""

    pixel: Tensor
    """(m, K), int64, within the axis."""
    weight: Tensor | None
    """(m, K), float64; None for nearest, which reads one pixel."""
    inside: Tensor | None
    """(m, K); False if there is no such tap. None if all exist."""
    touching: Tensor | None = None
    """(m, K); True if a tap of weight 0 has a gradient. None if there is no such tap."""


def unsupported_reasons(image: Tensor, rule: ResizeRule) -> list[str]:
    """The reasons why the reference does not support a call."""
    return no_float64(image)


def axis_taps(
    length: int,
    size: int,
    rule: ResizeRule,
    edges: Edges | None,
    device: torch.device,
    dtype: torch.dtype = torch.float64,
) -> AxisTaps:
    """The taps of an axis that is resized from `length` to `size` pixels; edges None: the whole
    axis. dtype: of the sums, which decides how many pixels a spline reads."""
    low, high, longest = (0, length, length) if edges is None else edges
    span = high - low
    i = torch.arange(size, dtype=torch.float64, device=device)[:, None]
    if rule.is_zoom:
        return _zoom_taps(length, size, rule, i[:, 0], dtype)
    if rule.is_filter:
        order = ORDERS[rule.interpolation]
        return AxisTaps(*filter_table(length, order, rule.border, dtype, device), None)
    if rule.interpolation == "area":
        return _area_taps(length, size, i, low, span, longest)
    centre = (2 * i + 1) * span + 2 * size * low  # in units of 1 / (2 size) pixels
    if rule.antialias:
        return _filter_taps(length, size, rule.interpolation, centre, span, longest)
    position = (centre[:, 0] - size) / (2 * size)
    if is_spline(rule.interpolation):
        order = ORDERS[rule.interpolation]
        return AxisTaps(*table(position, length, order, rule.border, 0.0, dtype), None)
    tap_list = taps(position, length, SamplingRule(rule.interpolation, "replicate"))
    index = torch.stack([tap.index for tap in tap_list], -1)
    weights = [tap.weight for tap in tap_list if tap.weight is not None]
    return AxisTaps(index, torch.stack(weights, -1) if weights else None, None)


def _zoom_taps(length: int, size: int, rule: ResizeRule, i: Tensor, dtype: torch.dtype) -> AxisTaps:
    """The taps of scipy.ndimage.zoom; i (m,): 0, 1, ..., the output's pixels.

    The order of operations is SciPy's: where a position is halfway between two pixels, its rounding
    decides which one nearest shows.
    """
    if rule.aligned == "centers":
        position = (i + 0.5) * (length / size) - 0.5
    else:
        position = i * ((length - 1) / (size - 1) if size > 1 else 1.0)
    if rule.interpolation == "nearest":
        index = (position + 0.5).floor().long().clamp(0, length - 1)
        return AxisTaps(index[:, None], None, None)
    sigma = max(0.0, (length / size - 1) / 2) if rule.antialias else 0.0
    order = ORDERS[rule.interpolation]
    pixel, weight = table(position, length, order, rule.border, sigma, dtype)
    # a position at a pixel reads no other one, unless there is a filter
    return AxisTaps(pixel, weight, weight != 0 if order == 1 else None)


def _filter_taps(
    length: int, size: int, interpolation: str, centre: Tensor, span: Number, longest: float
) -> AxisTaps:
    """The taps of a filter; centre (m, 1): middles of the intervals, in 1 / (2 size) pixels."""
    support = SUPPORT[interpolation]
    stretch = _at_least(span, size)  # the filter's unit, in 1 / size pixels
    first = ((centre / 2 - support * stretch) / size + 0.5).detach().floor()
    count = math.ceil(2 * support * max(longest / size, 1)) + 2
    pixel = first + torch.arange(count, dtype=torch.float64, device=centre.device)
    x = ((2 * pixel + 1) * size - centre) / (2 * stretch)
    inside = (pixel >= 0) & (pixel < length) & (x.detach().abs() <= support)
    weight = torch.where(inside, FILTERS[interpolation](torch.where(inside, x, 0.0)), 0.0)
    weight = weight / weight.sum(-1, keepdim=True)
    return AxisTaps(pixel.long().clamp(0, length - 1), weight, inside)


def _area_taps(
    length: int, size: int, i: Tensor, low: Number, span: Number, longest: float
) -> AxisTaps:
    """The taps of "area"; i (m, 1): 0, 1, ..., the output's pixels."""
    cell_start = i * span + size * low  # in 1 / size pixels, like all lengths here
    first = (cell_start / size).detach().floor()
    count = math.ceil(longest / size) + 1
    pixel = first + torch.arange(count, dtype=torch.float64, device=i.device)
    cell_end = cell_start + span
    # at an edge between two pixels the derivative from the right, at the image's end from the left
    left = torch.where(pixel * size > cell_start, pixel * size, cell_start)
    beyond = (pixel + 1) * size - cell_end
    ends = (beyond > 0) | ((beyond == 0) & (pixel == length - 1))
    right = torch.where(ends, cell_end, (pixel + 1) * size)
    there = (pixel >= 0) & (pixel < length)
    inside = (right > left).detach() & there
    touching = (right == left).detach() & there if isinstance(span, Tensor) else None
    has_part = inside if touching is None else inside | touching
    weight = torch.where(has_part, (right - left) / span, 0.0)
    weight = weight / weight.detach().sum(-1, keepdim=True)  # the sum is 1, except for rounding
    return AxisTaps(pixel.long().clamp(0, length - 1), weight, has_part, touching)


def _at_least(span: Number, size: int) -> Number:
    if isinstance(span, Tensor):
        return torch.where(span >= size, span, size)
    return max(span, size)


def _box(x: Tensor) -> Tensor:
    """1 within half a unit; a pixel halfway between two outputs belongs only to the left one."""
    return torch.where((x > -0.5) & (x <= 0.5), 1.0, 0.0).to(x.dtype)


def _triangle(x: Tensor) -> Tensor:
    return at_least_zero(1 - x.abs())


def _hamming(x: Tensor) -> Tensor:
    window = 0.54 + 0.46 * torch.cos(math.pi * x)
    return torch.where(x.abs() < 1, _sinc(x) * window, 0.0)


def _bicubic(x: Tensor) -> Tensor:
    """Keys' cubic with a = -0.5, as in Pillow and torch's antialias."""
    d = x.abs()
    near = (1.5 * d - 2.5) * d * d + 1
    far = ((-0.5 * d + 2.5) * d - 4) * d + 2
    return torch.where(d < 1, near, torch.where(d < 2, far, 0.0))


def _lanczos(x: Tensor) -> Tensor:
    return torch.where(x.abs() < 3, _sinc(x) * _sinc(x / 3), 0.0)


def _sinc(x: Tensor) -> Tensor:
    """sin(pi x) / (pi x), with derivatives of every order also at 0."""
    small = x.abs() < 1e-2  # the first omitted term of the series is 3e-18 there
    p = (math.pi * x) ** 2
    series = 1 - p / 6 + p * p / 120 - p * p * p / 5040
    safe = math.pi * torch.where(small, 1.0, x)
    return torch.where(small, series, torch.sin(safe) / safe)


FILTERS: dict[str, Callable[[Tensor], Tensor]] = {
    "box": _box,
    "bilinear": _triangle,
    "hamming": _hamming,
    "bicubic": _bicubic,
    "lanczos": _lanczos,
}


@lru_cache(maxsize=KEPT_TABLES)
@lasting
def _kept_taps(
    length: int,
    size: int,
    rule: ResizeRule,
    edges: Edges | None,
    device: torch.device,
    dtype: torch.dtype,
) -> AxisTaps:
    return axis_taps(length, size, rule, edges, device, dtype)


def find_taps(
    image: Tensor, size: Sequence[int], rule: ResizeRule, box: Sequence[Edges] | None
) -> list[AxisTaps | None]:
    """The taps along x and along y; None for an axis that is unchanged.

    image (..., H, W); box: the edges along x and y. Tables without tensors are cached.
    """
    by_axis: list[AxisTaps | None] = []
    for axis in (-1, -2):
        length, wanted = image.shape[axis], size[axis]
        edges = None if box is None else box[-1 - axis]
        if edges is None and length == wanted and not rule.is_filter:
            by_axis.append(None)
            continue
        can_keep = edges is None or not isinstance(edges.low, Tensor)
        make = _kept_taps if can_keep and is_eager(image) else axis_taps
        dtype = compute_dtype(image.dtype)
        by_axis.append(make(length, wanted, axis_rule(rule, axis), edges, image.device, dtype))
    return by_axis


def resize(
    image: Tensor, size: Sequence[int], rule: ResizeRule, box: Sequence[Edges] | None
) -> Tensor:
    """Resizes the image (..., C, H, W), or its part in a box, to `size` (h, w); the type is kept.

    box: the edges along x and y, or None. Labels are passed as bits.
    """
    across, down = find_taps(image, size, rule, box)
    if rule.interpolation == "nearest":
        return from_signed(two_passes(as_signed(image), across, down), image.dtype)
    values = two_passes(image.to(compute_dtype(image.dtype)), across, down)
    return to_type(values, image.dtype, rule)


def to_type(values: Tensor, dtype: torch.dtype, rule: ResizeRule) -> Tensor:
    """values (...) in the image's type; SciPy rounds half away from zero to integers."""
    if rule.arithmetic == "scipy" and values.is_floating_point() and not dtype.is_floating_point:
        values = torch.trunc(values + torch.where(values < 0, -0.5, 0.5))
    return convert(values, dtype)


def two_passes(values: Tensor, across: AxisTaps | None, down: AxisTaps | None) -> Tensor:
    """Resizes values (..., H, W) along y, then along x; the order affects the last bits."""
    return along(along(values, down, -2), across, -1)


def along(values: Tensor, axis: AxisTaps | None, dim: int) -> Tensor:
    """One pass, along dimension -1 or -2 of values (..., H, W): a sum over the taps, in order."""
    if axis is None:
        return values
    total = None
    for k in range(axis.pixel.shape[-1]):
        value = values.index_select(dim, axis.pixel[:, k])
        if axis.inside is not None:  # a NaN in an unread pixel must not spread
            inside = beside(axis.inside[:, k], dim)
            if axis.touching is not None:
                inside = inside & (value.isfinite() | ~beside(axis.touching[:, k], dim))
            value = torch.where(inside, value, 0.0)
        if axis.weight is not None:
            value = value * beside(axis.weight[:, k].to(value.dtype), dim)
        total = value if total is None else total + value
    assert total is not None
    return total


def beside(numbers: Tensor, dim: int) -> Tensor:
    """Numbers (m,), shaped to broadcast along dimension -1 or -2."""
    return numbers if dim == -1 else numbers[:, None]
