"""Defines every result, in plain torch operations.

It prefers clarity to speed: coordinates are float64, each tap is one gather, and sums follow the
formula. It is differentiable any number of times, in both modes, by torch's own rules. Every other
backend and every arithmetic is tested against this file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from warpkit.core.checks import LABELS
from warpkit.core.shapes import broadcast_shapes
from warpkit.engine.definitions.maps import inverse_map, no_float64, output_points
from warpkit.engine.definitions.rules import (
    LIMIT,
    SamplingRule,
    any_inside,
    axis_rules,
    both_inside,
    taps,
)


def unsupported_reasons(image: Tensor, rule: SamplingRule) -> list[str]:
    """The reasons why the reference does not support a call."""
    return no_float64(image)


def warp(
    image: Tensor, to_source: Tensor, size: Sequence[int], fill: Tensor, rule: SamplingRule
) -> Tensor:
    """Sample `image` at the positions to which `to_source` maps an output of `size` (h, w).

    image (*I, C, H, W); to_source (*M, 2 or 3, 3), float64, destination -> source; fill broadcasts
    to the result and is the value of missing taps: the border's value or the background. Returns
    (*batch, C, h, w) of the image's type.
    """
    return sample(image, output_points(to_source, size), fill, rule)


def warp_forward(
    image: Tensor, matrix: Tensor, size: Sequence[int], fill: Tensor, rule: SamplingRule
) -> Tensor:
    """As `warp` by the inverse of `matrix` (*M, 2 or 3, 3), source -> destination, of any type."""
    return warp(image, inverse_map(matrix.double()), size, fill, rule)


def sample(image: Tensor, points: Tensor, fill: Tensor, rule: SamplingRule) -> Tensor:
    """Sample `image` (*I, C, H, W) at `points` (*P, h, w, 2), (x, y) in pixels.

    Labels and their `fill` are passed as bits: see `labels`.
    """
    return sum_of_taps(image, points, fill, rule, weighted=True)


def splat(image: Tensor, points: Tensor, size: Sequence[int], rule: SamplingRule) -> Tensor:
    """The adjoint of `sample` with constant border 0: adds every pixel where `sample` would read.

    image (*I, C, H, W), of a type for computations, and points (*P, H, W, 2), (x, y) in pixels of
    the result of `size` (h, w). Returns (*batch, C, h, w).
    """
    height, width = size
    points = points.double()
    near = (points.abs() < LIMIT).all(-1)  # false for NaN
    points = torch.where(near[..., None], points, 0.0)
    batch = broadcast_shapes(image.shape[:-3], points.shape[:-3])
    values = image.expand(*batch, *image.shape[-3:]).flatten(-2)
    total = torch.zeros_like(values[..., :1]).expand(*values.shape[:-1], height * width)
    for y in taps(points[..., 1], height, rule):
        for x in taps(points[..., 0], width, rule):
            weight = near
            if x.inside is not None and y.inside is not None:
                weight = near & x.inside & y.inside
            if x.weight is not None and y.weight is not None:
                weight = torch.where(weight, y.weight * x.weight, 0.0)
            weight = weight.to(image.dtype).flatten(-2)[..., None, :]
            index = (y.index * width + x.index).flatten(-2)[..., None, :].expand(values.shape)
            total = total.scatter_add(-1, index, weight * values)
    return total.unflatten(-1, (height, width))


def with_gradient_of(value: Tensor, surrogate: Tensor) -> Tensor:
    """`value` to the last bit, with the gradient of `surrogate` added to its own.

    The subtracted number is +0.0, which preserves even the sign of a zero, and its gradient is -1
    wherever the surrogate is finite. These are plain operations, because Dynamo rejects an
    autograd.Function that has a jvp.
    """
    finite = torch.where(surrogate.isfinite(), surrogate, 0.0)
    return value - (finite.detach() - finite)


def sum_of_taps(
    image: Tensor, points: Tensor, fill: Tensor, rule: SamplingRule, *, weighted: bool
) -> Tensor:
    """As `sample`; if not `weighted`, the plain sum of the pixels it reads, including `fill`."""
    height, width = image.shape[-2:]
    fill = by_rows(fill, points)
    points = points.double()
    near = (points.abs() < LIMIT).all(-1)  # false for NaN
    points = torch.where(near[..., None], points, 0.0)
    near = near[..., None, :, :]
    read = reader(image, points.shape[:-1])
    along_y, along_x = axis_rules(rule)
    columns, lines = taps(points[..., 0], width, along_x), taps(points[..., 1], height, along_y)
    total, reached, beyond = fill.new_zeros(()), near, fill
    seen = both_inside(any_inside(y.inside for y in lines), any_inside(x.inside for x in columns))
    if seen is not None:
        reached = near & seen[..., None, :, :]
        # a NaN would affect the gradient to a point, although the result is constant there
        beyond = torch.where(reached, fill, 0)  # not 0.0, which would convert labels to floats
    for y in lines:
        for x in columns:
            value = read(y.index * width + x.index)
            inside = both_inside(y.inside, x.inside)
            if inside is not None:
                value = torch.where(inside[..., None, :, :], value, beyond)
            if weighted and x.weight is not None and y.weight is not None:
                value = (y.weight * x.weight).to(value.dtype)[..., None, :, :] * value
            total = total + value
    # without taps inside, use the border's value: the sum of weights may differ in the last bit
    return convert(torch.where(reached, total, fill), image.dtype)


def by_rows(fill: Tensor, points: Tensor) -> Tensor:
    """`fill` with one row for every row of points, so its gradient is summed by rows first.

    A single sum over all pixels is split among threads, and its rounding depends on their number.

    fill (*F, C, h, w), or fewer; points (*P, h, w, 2).
    """
    return fill.expand(broadcast_shapes(fill.shape, (points.shape[-3], 1)))


def reader(
    image: Tensor, points_shape: Sequence[int], dtype: torch.dtype | None = None
) -> Callable[[Tensor], Tensor]:
    """A function that reads pixels of `image` (*I, C, H, W) by index y W + x, shape (*P, h, w).

    Values have type `dtype`, or the type of the computation.

    If the image's batch is 1 and the points' is not, the points become more samples of the one
    image: it is never copied, and its gradient accumulates in one place.
    """
    channels, height, width = image.shape[-3:]
    *batch_points, h, w = points_shape
    fold = Fold(image.shape[:-3], batch_points)
    pixels = image.to(dtype or compute_dtype(image.dtype))
    pixels = pixels.reshape(fold.images, channels, height * width)

    def read(index: Tensor) -> Tensor:
        index = fold.points(index, (h, w)).flatten(1)[:, None]
        values = pixels.gather(2, index.expand(-1, channels, -1))
        return fold.values(values.unflatten(2, (fold.shared * h, w)), h)

    return read


class Fold:
    """Combines a batch of images with a larger one of points: an image's points become one list.

    Batch dimensions in which the image has size 1 and the points have more become additional rows
    of points of the same image.
    """

    def __init__(self, image_batch: Sequence[int], points_batch: Sequence[int]) -> None:
        self.batch = broadcast_shapes(tuple(image_batch), tuple(points_batch))
        n = len(self.batch)
        image_sizes = (1,) * (n - len(image_batch)) + tuple(image_batch)
        self.image_dims = [d for d in range(n) if image_sizes[d] == self.batch[d]]
        self.point_dims = [d for d in range(n) if image_sizes[d] != self.batch[d]]
        # math.prod of a list: Size.numel() fixes a dynamic batch, and Dynamo rejects a generator
        self.images = math.prod(list(image_sizes))
        self.shared = math.prod([self.batch[d] for d in self.point_dims])

    def points(self, points: Tensor, last: Sequence[int]) -> Tensor:
        """(*P, h, w, ...) as (images, shared h, w, ...); `last` has the dimensions after the
        batch."""
        n, k = len(self.batch), len(last)
        points = points.expand(*self.batch, *last)
        points = points.permute(*self.image_dims, *self.point_dims, *range(n, n + k))
        return points.reshape(self.images, self.shared * last[0], *last[1:])

    def values(self, values: Tensor, rows: int) -> Tensor:
        """(images, C, shared rows, w) as (*batch, C, rows, w)."""
        n = len(self.batch)
        order = [
            *self.image_dims,
            n,
            *self.point_dims,
            n + 1,
            n + 2,
        ]  # the dimensions of the result, as folded
        sizes = (*self.batch, values.shape[1], rows, values.shape[3])
        values = values.reshape([sizes[d] for d in order])
        return values.permute([order.index(d) for d in range(n + 3)])


def compute_dtype(dtype: torch.dtype) -> torch.dtype:
    """Half types are computed in float32, and integers in float64, so they are rounded only once.

    Labels are not used in computations.
    """
    if dtype in (torch.float32, torch.float64, *LABELS):
        return dtype
    return torch.float32 if dtype.is_floating_point else torch.float64


def convert(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Converts to the image's type; integers are rounded half to even and saturated, as in
    OpenCV."""
    if dtype.is_floating_point or dtype in LABELS or values.dtype == dtype:
        return values.to(dtype)
    limits = torch.iinfo(dtype)
    if values.is_floating_point():  # ONNX cannot round integers
        values = values.round()
    return values.clamp(limits.min, limits.max).to(dtype)
