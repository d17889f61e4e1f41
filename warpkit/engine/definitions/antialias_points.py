"""Antialiased point fields: the mean over each output pixel's square, as in `antialias`.

The image of the square is estimated from the field itself: its derivative at a pixel is half the
difference of the points on either side, or the whole difference to the only neighbour. So a field
made from an affine matrix gives the same result as the matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import torch
from torch import Tensor

from warpkit.core.shapes import broadcast_shapes
from warpkit.core.tracing import peel
from warpkit.engine.definitions.antialias import (
    AT_ONCE,
    MOST_PERSPECTIVE,
    SLACK,
    fail_unreadable,
    least_density,
)
from warpkit.engine.definitions.reference import compute_dtype, convert
from warpkit.engine.definitions.rules import TAPS, SamplingRule, missing_axes

Sample = Callable[[Tensor, Tensor, Tensor], Tensor]
"""A plain sampling function: image, points, fill -> result."""


def sample(
    function: str,
    plain_sample: Sample,
    image: Tensor,
    points: Tensor,
    fill: Tensor,
    rule: SamplingRule,
    samples: bool | int,
    wide_sample: Sample | None = None,
) -> Tensor:
    """image (*I, C, H, W) at points (*P, h, w, 2), averaged where these are more than 1 apart.

    fill broadcasts to the result (*batch, C, h, w); `samples` is True, or a number along each axis;
    wide_sample: as `wide_warp` of `antialias.warp`.
    """
    points = points.double()
    across, down = derivative(points, -2), derivative(points, -3)
    minifies = _largest(across.detach(), down.detach()) > 1 + SLACK

    def mean(
        image: Tensor, points: Tensor, steps: list[Tensor], fill: Tensor, n: tuple[int, int]
    ) -> Tensor:
        """Tensors as in `sample`; steps: derivatives with respect to x and y, (*P, h, w, 2)."""
        value = plain_sample(image, points, fill)
        if n == (1, 1):
            return value
        pixels = image.to(compute_dtype(image.dtype)) if wide_sample is None else image
        square = _mean(wide_sample or plain_sample, pixels, points, steps, fill, n)
        square = convert(square, image.dtype)  # rounded once
        minify = _largest(*(step.detach() for step in steps)) > 1 + SLACK
        return torch.where(minify[..., None, :, :], square, value)

    if samples is not True:
        return mean(image, points, [across, down], fill, (int(samples), int(samples)))
    counts = _counts(function, points, across, down, minifies, image.shape[-2:], rule)
    if len(set(counts)) <= 1:
        return mean(image, points, [across, down], fill, counts[0] if counts else (1, 1))
    # each item has its own scale, and does not depend on the other items of its batch
    batch = broadcast_shapes(image.shape[:-3], points.shape[:-3])
    maps = (
        torch.arange(len(counts), device="cpu")
        .reshape(points.shape[:-3])
        .expand(batch)
        .flatten()
        .tolist()
    )
    images = image.expand(*batch, *image.shape[-3:])
    fields = [field.expand(*batch, *field.shape[-3:]) for field in (points, across, down)]
    fills = fill.expand(*batch, *fill.shape[-3:]) if fill.ndim > 3 else None
    pieces = []
    for k, index in enumerate(product(*map(range, batch))):
        at, step_x, step_y = (field[index] for field in fields)
        beside = fill if fills is None else fills[index]
        pieces.append(mean(images[index], at, [step_x, step_y], beside, counts[maps[k]]))
    return torch.stack(pieces).unflatten(0, batch)


def derivative(points: Tensor, dim: int) -> Tensor:
    """The differences of points (..., h, w, 2) from pixel to pixel along `dim`, in their shape.

    Differences to non-finite points are left out; if none is left the derivative is 0.
    """
    length = points.shape[dim]
    step = points.narrow(dim, 1, length - 1) - points.narrow(dim, 0, length - 1)
    good = step.detach().isfinite().all(-1, keepdim=True).expand(step.shape)
    step, good = torch.where(good, step, 0.0), good.to(points.dtype)
    none = torch.zeros_like(points.narrow(dim, 0, 1))
    total = torch.cat((step, none), dim) + torch.cat((none, step), dim)
    count = torch.cat((good, none.detach()), dim) + torch.cat((none.detach(), good), dim)
    return total / count.clamp(min=1)


def _largest(across: Tensor, down: Tensor) -> Tensor:
    """The largest singular value of the derivative with columns (..., h, w, 2), (..., h, w)."""
    (a, d), (b, e) = across.unbind(-1), down.unbind(-1)
    return (torch.hypot(a + e, b - d) + torch.hypot(a - e, b + d)) / 2


def _counts(
    function: str,
    points: Tensor,
    across: Tensor,
    down: Tensor,
    minifies: Tensor,
    size: torch.Size,
    rule: SamplingRule,
) -> list[tuple[int, int]]:
    """Samples along x and y for each field of the flattened batch of points.

    points, across and down (*P, h, w, 2), pixels; minifies (*P, h, w).
    """
    fields = [peel(tensor) for tensor in (points, across, down, minifies)]
    if any(field is None or field.is_meta for field in fields):
        fail_unreadable(function, "points")
    points, across, down, minifies = (f.detach() for f in fields if f is not None)
    lengths = [torch.hypot(*step.unbind(-1)) for step in (across, down)]
    reach = (lengths[0] + lengths[1]) / 2 + TAPS[rule.interpolation]
    sides = zip((1, 0), size, missing_axes(rule.border), strict=True)  # y, then x
    for axis, length, misses in sides:
        if misses:  # pixels beyond the image show the border, however far apart their points are
            place = points[..., axis]
            minifies = minifies & (place > -reach) & (place < length + reach)
    density = least_density(rule.interpolation)
    axes = []
    for length in lengths:
        counts = torch.where(minifies, (length * density).floor() + 1, 1.0)
        largest = counts.clamp(max=MOST_PERSPECTIVE).flatten(-2).amax(-1)
        axes.append([int(n) for n in largest.flatten()])
    return list(zip(*axes, strict=True))


def _mean(
    plain_sample: Sample,
    image: Tensor,
    points: Tensor,
    steps: list[Tensor],
    fill: Tensor,
    counts: tuple[int, int],
) -> Tensor:
    """The mean of counts x samples on a grid in each output pixel, in the samples' type.

    Tensors as in `sample`; steps: the derivatives with respect to x and y, (*P, h, w, 2), pixels.
    """
    batch = broadcast_shapes(image.shape[:-3], points.shape[:-3])
    missing = len(batch) - (points.ndim - 3)
    points, across, down = (t[(None,) * missing] for t in (points, *steps))
    outputs = math.prod(batch) * image.shape[-3] * points.shape[-3] * points.shape[-2]
    at_once = max(AT_ONCE // max(outputs, 1), 1)
    offsets = list(product(*([(k + 0.5) / n - 0.5 for k in range(n)] for n in counts)))
    total = torch.zeros((), dtype=compute_dtype(image.dtype), device=image.device)
    for first in range(0, len(offsets), at_once):
        piece = [points + across * dx + down * dy for dx, dy in offsets[first : first + at_once]]
        if len(piece) == 1:
            total = total + plain_sample(image, piece[0], fill)
        else:
            total = total + plain_sample(image, torch.stack(piece), fill).sum(0)
    return total / len(offsets)
