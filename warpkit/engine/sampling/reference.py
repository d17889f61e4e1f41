"""Defines every result, in plain torch operations.

Slow where slow is obvious: coordinates in float64, one gather a tap, a sum as the formula has it.
Differentiable any number of times, in both modes, by torch's own rules; every other backend and
every arithmetic is tested against this file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from warpkit.core.checks import LABELS
from warpkit.core.shapes import broadcast_shapes
from warpkit.engine.sampling.maps import inverse_map, no_float64, output_points
from warpkit.engine.sampling.rules import (
    LIMIT,
    SamplingRule,
    any_inside,
    axis_rules,
    both_inside,
    taps,
)


def unsupported_reasons(image: Tensor, rule: SamplingRule) -> list[str]:
    """The reasons why the reference cannot do this."""
    return no_float64(image)


def warp(
    image: Tensor, to_source: Tensor, size: Sequence[int], fill: Tensor, rule: SamplingRule
) -> Tensor:
    """Sample `image` where `to_source` sends each pixel of an output of `size` (h, w).

    image (*I, C, H, W); to_source (*M, 2 or 3, 3), float64, destination -> source; fill broadcasts
    to the result and stands where the rule finds nothing: the border's value or the background.
    Returns (*batch, C, h, w) of the image's type.
    """
    return sample(image, output_points(to_source, size), fill, rule)


def warp_forward(
    image: Tensor, matrix: Tensor, size: Sequence[int], fill: Tensor, rule: SamplingRule
) -> Tensor:
    """As `warp` by the inverse of `matrix` (*M, 2 or 3, 3), source -> destination, of any type."""
    return warp(image, inverse_map(matrix.double()), size, fill, rule)


def sample(image: Tensor, points: Tensor, fill: Tensor, rule: SamplingRule) -> Tensor:
    """Sample `image` (*I, C, H, W) at `points` (*P, h, w, 2), (x, y) in pixels.

    An image of labels and its `fill` come as their bits: see `labels`.
    """
    return sum_of_taps(image, points, fill, rule, weighted=True)


def splat(image: Tensor, points: Tensor, size: Sequence[int], rule: SamplingRule) -> Tensor:
    """The adjoint of `sample` under a constant border of 0: every pixel is added where it is read.

    image (*I, C, H, W), of a type that is computed with, and points (*P, H, W, 2), (x, y) in pixels
    of the result of `size` (h, w). Returns (*batch, C, h, w).
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

    What is taken away is +0.0, which keeps even the sign of a zero, and its gradient is -1 wherever
    the surrogate is finite. Plain operations instead of an autograd.Function, which Dynamo refuses
    once it has a jvp.
    """
    finite = torch.where(surrogate.isfinite(), surrogate, 0.0)
    return value - (finite.detach() - finite)


def sum_of_taps(
    image: Tensor, points: Tensor, fill: Tensor, rule: SamplingRule, *, weighted: bool
) -> Tensor:
    """As `sample`; where not `weighted`, the plain sum of the pixels it reads, `fill` too."""
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
        # a NaN would leave its trace in the gradient to a point whose result it is, and constant
        beyond = torch.where(reached, fill, 0)  # not 0.0, which makes floats of labels
    for y in lines:
        for x in columns:
            value = read(y.index * width + x.index)
            inside = both_inside(y.inside, x.inside)
            if inside is not None:
                value = torch.where(inside[..., None, :, :], value, beyond)
            if weighted and x.weight is not None and y.weight is not None:
                value = (y.weight * x.weight).to(value.dtype)[..., None, :, :] * value
            total = total + value
    # where no tap is inside, the border's value itself: the weights' sum may be off in the last bit
    return convert(torch.where(reached, total, fill), image.dtype)


def by_rows(fill: Tensor, points: Tensor) -> Tensor:
    """`fill` with a row for every row of points, so that its gradient is summed by rows first.

    One sum over all pixels is split among threads and rounds otherwise for another number of them.

    fill (*F, C, h, w), or fewer; points (*P, h, w, 2).
    """
    return fill.expand(broadcast_shapes(fill.shape, (points.shape[-3], 1)))


def reader(
    image: Tensor, points_shape: Sequence[int], dtype: torch.dtype | None = None
) -> Callable[[Tensor], Tensor]:
    """A function that reads pixels of `image` (*I, C, H, W) by index y W + x, shape (*P, h, w).

    Values come in `dtype`, or in the type of the computation.

    Where the image's batch is 1 and the points' is not, the points become more samples of the one
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
    """One batch of images and a larger one of points: the points of an image side by side.

    Dimensions of the batch in which the image has 1 and the points have more become more rows of
    points of the same image.
    """

    def __init__(self, image_batch: Sequence[int], points_batch: Sequence[int]) -> None:
        self.batch = broadcast_shapes(tuple(image_batch), tuple(points_batch))
        n = len(self.batch)
        image_sizes = (1,) * (n - len(image_batch)) + tuple(image_batch)
        self.image_dims = [d for d in range(n) if image_sizes[d] == self.batch[d]]
        self.point_dims = [d for d in range(n) if image_sizes[d] != self.batch[d]]
        # math.prod of a list: Size.numel() fixes a dynamic batch, and Dynamo wants no generator
        self.images = math.prod(list(image_sizes))
        self.shared = math.prod([self.batch[d] for d in self.point_dims])

    def points(self, points: Tensor, last: Sequence[int]) -> Tensor:
        """(*P, h, w, ...) as (images, shared h, w, ...); `last` is what follows the batch."""
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
    """Half types are computed in float32; integers in float64, so that they round only once.

    Labels are not computed with.
    """
    if dtype in (torch.float32, torch.float64, *LABELS):
        return dtype
    return torch.float32 if dtype.is_floating_point else torch.float64


def convert(values: Tensor, dtype: torch.dtype) -> Tensor:
    """To the image's type; integers by rounding half to even and saturating, as OpenCV does."""
    if dtype.is_floating_point or dtype in LABELS or values.dtype == dtype:
        return values.to(dtype)
    limits = torch.iinfo(dtype)
    if values.is_floating_point():  # ONNX rounds no whole numbers
        values = values.round()
    return values.clamp(limits.min, limits.max).to(dtype)
