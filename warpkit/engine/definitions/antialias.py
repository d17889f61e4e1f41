"""Antialiased warps: the mean over each output pixel's square, with any backend.

If a map minifies, one sample per output pixel skips source pixels: the result flickers, and the
skipped pixels get no gradient. Here a grid of samples, less than one source pixel apart, covers the
output pixel's unit square, and their mean is taken. The samples are a plain warp to a finer image,
some rows at a time, so a backend that is fast at one warp is fast at this: 7 times as fast as one
plain warp for each position in the square (5 x 5 samples, 4x3x512x768 with gradients), whose
samples are too far apart for the processor's caches. With n = floor(s) + 1 samples along an axis
that the map shrinks s times, the mean squared error against a 15 x 15 mean is 100 to 3000 times
below the plain warp's at s = 4.8 (noise and photographs), 70 to 380 at 2.2, 15 to 40 at 1.4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import NamedTuple, NoReturn

import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.core.shapes import broadcast_shapes
from warpkit.core.tracing import exports_to_onnx, in_transform, is_eager, peel
from warpkit.engine.definitions.reference import compute_dtype, convert
from warpkit.engine.definitions.rules import TAPS, SamplingRule, missing_axes

MOST_AFFINE = 256
MOST_PERSPECTIVE = 16
"""The largest number of samples along an axis. A perspective has one number for all its pixels, and
shrinks without bound towards its horizon: 16 x 16 samples per pixel limit the cost."""

SLACK = 1e-5
"""A singular value of up to 1 + SLACK counts as 1: a float32 rotation is off by 1e-7, a chain by
more."""

AT_ONCE = 1 << 20
"""The number of sample values computed in one call, or twice the image's if that is more, since
each call has a gradient of the image's size. 4 to 8 MB."""

PlainWarp = Callable[[Tensor, Tensor, Tensor, tuple[int, int]], Tensor]
"""A plain warp: image, inverse matrix, fill, size -> result."""


class Footprint(NamedTuple):
    """The image of each output pixel's unit square; (*M, h, w), or (*M, 1, 1) if affine."""

    x: Tensor
    """The length of its edge (1, 0) under the map, in source pixels."""
    y: Tensor
    """The length of its edge (0, 1) under the map."""
    largest: Tensor
    """The largest singular value of the map's derivative; NaN if there is no map."""


def check_antialias(function: str, value: object) -> bool | int:
    """`antialias` is True, False or a number of samples along each axis."""
    if isinstance(value, bool):
        return value
    if not isinstance(value, Integral) or not 1 <= int(value) <= MOST_AFFINE:
        error = ValueError if isinstance(value, Integral) else TypeError
        wanted = f"True, False or a number of samples along an axis, from 1 to {MOST_AFFINE}"
        checks.fail(function, "antialias", wanted, f"{value!r:.60}", error)
    return int(value)


def warp(
    function: str,
    plain_warp: PlainWarp,
    image: Tensor,
    to_source: Tensor,
    size: tuple[int, int],
    fill: Tensor,
    rule: SamplingRule,
    samples: bool | int,
    wide_warp: PlainWarp | None = None,
) -> Tensor:
    """Arguments as in `reference.warp`; `samples` is True, or a number along each axis.

    wide_warp: a plain warp that does not round its results to the image's type, if there is one;
    otherwise the image is converted.
    """
    foot = footprint(to_source, size)
    if samples is not True:
        minifies = (foot.largest > 1 + SLACK)[..., None, :, :]
        arguments = (image, to_source, size, fill, (int(samples), int(samples)))
        mean = mean_of_samples(plain_warp, *arguments, wide_warp)
        if _all_minify(minifies):
            return mean
        return torch.where(minifies, mean, plain_warp(image, to_source, fill, size))
    per_item = _counts(function, foot, to_source, image.shape[-2:], rule)

    def warp_group(
        image: Tensor,
        to_source: Tensor,
        fill: Tensor,
        n: tuple[int, int],
        foot: Footprint | None = None,
    ) -> Tensor:
        """Items that take n samples each; tensors as in `warp`, and their footprint if known."""
        if n == (1, 1):
            return plain_warp(image, to_source, fill, size)
        mean = mean_of_samples(plain_warp, image, to_source, size, fill, n, wide_warp)
        if to_source.shape[-2] == 2:
            return mean
        minifies = (foot or footprint(to_source, size)).largest > 1 + SLACK
        if _all_minify(minifies):
            return mean
        minifies = minifies[..., None, :, :]
        return torch.where(minifies, mean, plain_warp(image, to_source, fill, size))

    kinds = set(per_item) or {(1, 1)}  # without items: an empty batch
    if len(kinds) == 1:
        return warp_group(image, to_source, fill, kinds.pop(), foot)
    return _in_groups(warp_group, image, to_source, fill, per_item)


def _all_minify(minifies: Tensor) -> bool:
    """Whether every pixel minifies, if that can be read without waiting for a device.

    minifies (*M, h, w), or (*M, 1, 1) if affine, in any shape that broadcasts.
    """
    return minifies.device.type == "cpu" and is_eager(minifies) and bool(minifies.all())


def footprint(to_source: Tensor, size: Sequence[int]) -> Footprint:
    """The derivative of a map (*M, 2 or 3, 3), destination -> source, at the output's pixels."""
    rows = _rows_of(to_source)
    (a, b, c), (d, e, f) = rows[:2]
    if len(rows) == 2:
        largest = (_length(a + e, b - d) + _length(a - e, b + d)) / 2
        return Footprint(_length(a, d), _length(b, e), largest)
    g, h, i = rows[2]
    x, y = _axes(to_source, size)
    depth = (g * x + (h * y + i)).square()
    # multiplied by the depth, one column of the derivative depends only on y, the other only on x
    across, below = h * y + i, g * x + i
    a, b, d, e = (
        a * across - g * (b * y + c),
        b * below - h * (a * x + c),
        d * across - g * (e * y + f),
        e * below - h * (d * x + f),
    )
    largest = (_length(a + e, b - d) + _length(a - e, b + d)) / (2 * depth)
    return Footprint(_length(a, d) / depth, _length(b, e) / depth, largest)


def _length(x: Tensor, y: Tensor) -> Tensor:
    """`torch.hypot` of entries (..., h, w) that broadcast, in a fifth of its time.

    Infinite beyond the root of the type's largest number.
    """
    return (x * x + y * y).sqrt()


def _counts(
    function: str, foot: Footprint, to_source: Tensor, image_size: Sequence[int], rule: SamplingRule
) -> list[tuple[int, int]]:
    """Samples along x and y for each map of the flattened batch; (1, 1) where it is plain."""
    readable = peel(foot.largest)
    if readable is None or readable.is_meta:
        fail_unreadable(function, "matrix")
    minifies = foot.largest > 1 + SLACK
    if to_source.shape[-2] == 3 and any(missing_axes(rule.border)):
        minifies = minifies & _looks_at_image(foot, to_source, image_size, rule)
    density = least_density(rule.interpolation)
    most_samples = MOST_AFFINE if to_source.shape[-2] == 2 else MOST_PERSPECTIVE
    axes = [
        torch.where(minifies, (length * density).floor() + 1, 1.0)
        .clamp(max=most_samples)
        .flatten(-2)
        .amax(-1)
        for length in (foot.x, foot.y)
    ]
    return list(zip(*(_whole(axis) for axis in axes), strict=True))


def least_density(interpolation: str) -> float:
    """The number of samples per source pixel along an axis with which every visible pixel is read.

    In a grid with cells smaller than h, no point is farther than h / sqrt(2) from a sample. For h =
    1 this is less than 1, the reach of bilinear weights; nearest reaches only half a pixel.
    """
    return math.sqrt(2) if interpolation == "nearest" else 1.0


def fail_unreadable(function: str, what: str) -> NoReturn:
    """Raise the error of antialias=True for a map whose minification cannot be read."""
    wanted = f"a number of samples along an axis where the {what} cannot be read"
    got = "True under vmap, torch.compile, export or on the meta device"
    checks.fail(function, "antialias", wanted, got)


def _whole(counts: Tensor) -> list[int]:
    readable = peel(counts)
    if readable is None:
        return []
    numbers = readable.flatten()
    # one by one in a transform, which wraps new tensors: tolist() reads the wrapper since torch 2.9
    return [int(n) for n in (numbers if in_transform() else numbers.tolist())]


def _looks_at_image(
    foot: Footprint, to_source: Tensor, image_size: Sequence[int], rule: SamplingRule
) -> Tensor:
    """Whether a pixel's square may touch the image; other pixels show only the border.

    Along an axis whose border repeats pixels, it always may.
    """
    height, width = image_size
    (a, b, c), (d, e, f), (g, h, i) = _rows_of(to_source)
    x, y = _axes(to_source, foot.largest.shape[-2:])
    depth = g * x + (h * y + i)
    u, v = (a * x + (b * y + c)) / depth, (d * x + (e * y + f)) / depth
    reach = (foot.x + foot.y) / 2 + TAPS[rule.interpolation]
    along_y, along_x = missing_axes(rule.border)
    touches = torch.ones_like(depth, dtype=torch.bool)
    if along_x:
        touches = touches & (u > -reach) & (u < width + reach)
    if along_y:
        touches = touches & (v > -reach) & (v < height + reach)
    return touches


def _rows_of(to_source: Tensor) -> list[Sequence[Tensor]]:
    """The entries of a map (*M, 2 or 3, 3), each (*M, 1, 1), without their gradient."""
    entries = to_source.detach()[..., None, None]
    return [row.unbind(-3) for row in entries.unbind(-4)]


def _axes(to_source: Tensor, size: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The columns (w,) and the rows (h, 1) of an output of `size` (h, w)."""
    y, x = (torch.arange(n, dtype=to_source.dtype, device=to_source.device) for n in size)
    return x, y[:, None]


def mean_of_samples(
    plain_warp: PlainWarp,
    image: Tensor,
    to_source: Tensor,
    size: tuple[int, int],
    fill: Tensor,
    counts: tuple[int, int],
    wide_warp: PlainWarp | None = None,
) -> Tensor:
    """The mean of counts x samples on a grid in each output pixel, in the image's type.

    image (*I, C, H, W); to_source (*M, 2 or 3, 3); fill broadcasts to the result; wide_warp: as in
    `warp`.
    """
    # rounded once, at the end
    pixels = image.to(compute_dtype(image.dtype)) if wide_warp is None else image
    plain_warp = wide_warp or plain_warp
    batch = broadcast_shapes(image.shape[:-3], to_source.shape[:-2])
    (height, width), (across, down) = size, counts
    if exports_to_onnx():  # the number of pieces would fix a dynamic batch size
        at_once = height * down
    else:
        row = max(math.prod(batch) * image.shape[-3] * width * across, 1)
        at_once = max(max(AT_ONCE, 2 * image.numel()) // row, 1)
    rows, steps = max(at_once // down, 1), min(at_once, down)
    pieces = []
    for top in range(0, height, rows):
        height_of_band = min(rows, height - top)
        beside = _rows(fill, top, height_of_band)
        sums = []
        for first in range(0, down, steps):
            lines = min(steps, down - first)
            finer = _finer_map(to_source, counts, top + (first + 0.5) / down - 0.5)
            around = _repeated(_repeated(beside, -2, lines), -1, across)
            samples = plain_warp(pixels, finer, around, (height_of_band * lines, width * across))
            # rows first, so that fewer numbers are summed with strides; a sum over the two short
            # axes takes 6 to 18 times as long, and slices would have gradients of the full size
            by_row = _sum_of(samples.unflatten(-2, (height_of_band, lines)).unbind(-2))
            sums.append(_sum_of(by_row.unflatten(-1, (width, across)).unbind(-1)))
        pieces.append(_sum_of(sums) / (across * down))
    result = pieces[0] if len(pieces) == 1 else torch.cat(pieces, -2)
    return convert(result, image.dtype)


def _sum_of(parts: Sequence[Tensor]) -> Tensor:
    """The sum of tensors of one shape."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _finer_map(to_source: Tensor, counts: tuple[int, int], top: float) -> Tensor:
    """The map of a finer image, with a grid of `counts` pixels in each pixel of the output.

    top: the output row of its first row; to_source (*M, 2 or 3, 3).
    """
    x, y, shift = to_source.unbind(-1)
    left = 0.5 / counts[0] - 0.5
    return torch.stack((x / counts[0], y / counts[1], x * left + y * top + shift), dim=-1)


def _rows(fill: Tensor, top: int, count: int) -> Tensor:
    """Rows top .. top + count of the fill, (..., C, h or 1, w or 1)."""
    return fill.narrow(-2, top, count) if fill.ndim >= 2 and fill.shape[-2] > 1 else fill


def _repeated(fill: Tensor, dim: int, times: int) -> Tensor:
    """The fill, (..., C, h or 1, w or 1), with each row or column repeated."""
    if times == 1 or fill.ndim < 2 or fill.shape[dim] == 1:
        return fill
    return fill.repeat_interleave(times, dim)


def _in_groups(
    warp_group: Callable[[Tensor, Tensor, Tensor, tuple[int, int]], Tensor],
    image: Tensor,
    to_source: Tensor,
    fill: Tensor,
    per_item: Sequence[tuple[int, int]],
) -> Tensor:
    """Warps items with equal counts together, so that each takes the samples of its own scale.

    image (*I, C, H, W); to_source (*M, 2 or 3, 3); fill broadcasts to the result.
    """
    batch = broadcast_shapes(image.shape[:-3], to_source.shape[:-2])
    which_image, which_map = (_entries(s, batch) for s in (image.shape[:-3], to_source.shape[:-2]))
    which_fill = _entries(fill.shape[:-3], batch)
    images, maps = (
        image.reshape(-1, *image.shape[-3:]),
        to_source.reshape(-1, *to_source.shape[-2:]),
    )
    around = fill.reshape(-1, *fill.shape[-3:]) if fill.ndim > 3 else fill
    # an image of several items, but not all, is a group of its own, so that it is not copied
    serves_some = images.shape[0] not in (1, len(which_map))
    groups: dict[tuple[tuple[int, int], int], list[int]] = {}
    for k, m in enumerate(which_map):
        groups.setdefault((per_item[m], which_image[k] if serves_some else 0), []).append(k)
    pieces = []
    for (counts, shared), items in groups.items():
        one = serves_some or images.shape[0] == 1
        shared_image = images[shared] if one else images[[which_image[k] for k in items]]
        beside = around[[which_fill[k] for k in items]] if fill.ndim > 3 else fill
        pieces.append(warp_group(shared_image, maps[[which_map[k] for k in items]], beside, counts))
    order = [k for items in groups.values() for k in items]
    back = sorted(range(len(order)), key=order.__getitem__)
    return torch.cat(pieces)[back].unflatten(0, batch)


def _entries(shape: Sequence[int], batch: Sequence[int]) -> list[int]:
    """For each item of the flattened `batch`, the index of its entry in the flattened `shape`."""
    numbers = torch.arange(math.prod(shape), device="cpu").reshape(tuple(shape))
    return numbers.expand(*batch).flatten().tolist()
