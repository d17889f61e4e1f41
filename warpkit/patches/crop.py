"""Boxes cut out of images and resized, all at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.core.caller_warnings import warn_of_integers
from warpkit.core.sharding import objects
from warpkit.engine import backends
from warpkit.engine.compositing.gather import Points, sample_opaque
from warpkit.engine.sampling.antialias import MOST_AFFINE, SLACK, least_density
from warpkit.engine.sampling.maps import matrix_of
from warpkit.engine.sampling.named import Border, named_rule
from warpkit.engine.sampling.rules import SamplingRule
from warpkit.patches import arguments
from warpkit.warp import check_nearest


@objects("object", boxes=1, image_index=0, border_value=1)
def crop_patches(
    images: Tensor,
    boxes: Any,
    image_index: Any,
    size: Sequence[int],
    *,
    interpolation: str = "bilinear",
    border: Border = "constant",
    border_value: Any = 0.0,
    antialias: bool = False,
) -> Tensor:
    """Cut boxes out of images and resize them: torchvision.ops.roi_align with one sample a bin.

    Args:
        images: (B, C, H, W), or (C, H, W) for one image; types as in `warp_affine`.
        boxes: (N, 4), (x1, y1, x2, y2) in edge coordinates, which may leave the image, or
            torchvision's BoundingBoxes of any format that is not rotated.
        image_index: (N,), integers: the image of each box. None where there is one image.
        size: (h, w) of the result; each pixel is the image at the middle of its share of the box.
        interpolation, border: as in `warp_affine`; the border is the image's, not the box's, and
            "transparent" has no meaning here.
        border_value: a number, a sequence of C, or a tensor (C,) or (N, C).
        antialias: average over each pixel's share of the box where the box is larger than `size`,
            as the warps do.

    Returns:
        (N, C, h, w) of the images' type.

    Gradients: all orders, to images, boxes and border value.

    Raises:
        ValueError, TypeError: naming the argument; on the CPU also for x2 <= x1 and for an index
            out of range, which on an accelerator give the border's value.

    >>> image = torch.arange(16.0).reshape(1, 1, 4, 4)
    >>> crop_patches(image, [[1, 0, 3, 4]], None, (2, 2))
    tensor([[[[ 3.,  4.],
              [11., 12.]]]])
    """
    name = "crop_patches"
    data = arguments.images(name, images)
    boxes, index = arguments.boxes(name, boxes, image_index, data)
    height, width = checks.check_size(name, "size", size)
    rule = named_rule(name, interpolation, border, "exact")
    check_nearest(name, rule, images)
    if rule.border == "transparent":
        checks.fail(name, "border", "a border other than 'transparent'", repr(border))
    checks.check_bool(name, "antialias", antialias)
    checks.check_labels(name, "antialias", antialias, images.dtype, "False", not antialias)
    warn_of_integers(name, data.given, rule.interpolation, boxes=boxes)
    fill = arguments.border_value(name, border_value, len(boxes), data)
    painter = None if antialias else backends.select_painter(name, data.batch, rule)
    if painter is not None:
        crops = _crop_by(painter, data, boxes.double(), fill, index, (height, width), rule)
        return data.converted(crops).contiguous()
    x1, y1, x2, y2 = boxes.double().unbind(-1)
    x1 = torch.where((index >= 0) & (index < data.shape[0]), x1, torch.nan)  # looks nowhere
    across = down = None
    if antialias:
        across, down = _samples(boxes.double(), (height, width), rule.interpolation).unbind(1)
    x, keep_x = _positions(x1, x2, width, across)
    y, keep_y = _positions(y1, y2, height, down)
    values = _sample_grids(data.batch, index, x, y, fill, rule)
    if antialias:
        values = values.unflatten(3, (width, -1)).unflatten(2, (height, -1))
        weights = (keep.to(values.dtype) for keep in (keep_y, keep_x))
        values = torch.einsum("cnhjwi,nj,ni->cnhw", values, *weights)
    return data.converted(values.movedim(1, 0)).contiguous()


def _crop_by(
    painter: backends.ObjectsBackend,
    data: arguments.Images,
    boxes: Tensor,
    fill: Tensor,
    index: Tensor,
    size: tuple[int, int],
    rule: SamplingRule,
) -> Tensor:
    """Crops as a backend's affine warps, (N, C, h, w)."""
    x1, y1, x2, y2 = boxes.unbind(-1)
    across, down = (x2 - x1) / size[1], (y2 - y1) / size[0]
    nothing = torch.zeros_like(across)
    first_x, first_y = x1 + across / 2 - 0.5, y1 + down / 2 - 0.5
    to_source = matrix_of(((across, nothing, first_x), (nothing, down, first_y)))

    if rule.interpolation == "nearest":  # it has no slope, and autograd should say so
        to_source = to_source.detach()
    reference = partial(_crop_reference, index, size, rule)
    by_item = fill.mT[..., None, None]
    return painter.crop(data.batch, to_source, by_item, index, size, rule, reference)


def _crop_reference(
    index: Tensor,
    size: tuple[int, int],
    rule: SamplingRule,
    batch: Tensor,
    to_source: Tensor,
    fill: Tensor,
) -> Tensor:
    """The same in plain torch: batch (B, C, H, W), to_source (N, 2, 3) without a turn, and fill
    (1 or N, 1 or C, 1, 1)."""
    (across, _, first_x), (_, down, first_y) = (row.split(1, 1) for row in to_source.unbind(1))
    row, column = (torch.arange(n, dtype=to_source.dtype) for n in size)
    x, y = across * column + first_x, down * row + first_y
    return _sample_grids(batch, index, x, y, fill[..., 0, 0].mT, rule).movedim(1, 0)


def _sample_grids(
    batch: Tensor, index: Tensor, x: Tensor, y: Tensor, fill: Tensor, rule: SamplingRule
) -> Tensor:
    """Images[index] at the columns x (N, w) of the rows y (N, h): (C, N, h, w)."""
    count, _, height, width = batch.shape
    offset = (index.clamp(0, count - 1) * height)[:, None, None]
    number = torch.arange(len(index), device=index.device)[:, None, None]
    return sample_opaque(
        batch.movedim(1, 0).flatten(1),
        fill,
        number if fill.shape[1] > 1 else torch.zeros_like(number[:1]),
        lambda row, column: (offset + row) * width + column,
        Points(x[:, None, :], y[:, :, None], (height, width)),
        rule,
    )


def _samples(boxes: Tensor, size: tuple[int, int], interpolation: str) -> Tensor:
    """Samples along x and y in each pixel of (h, w), (N, 2): as many as the warps take."""
    boxes = boxes.detach()
    shares = (boxes[:, 2:] - boxes[:, :2]) / boxes.new_tensor([size[1], size[0]])
    counts = ((shares * least_density(interpolation)).floor() + 1).clamp(max=MOST_AFFINE)
    return torch.where(shares.amax(1, keepdim=True) > 1 + SLACK, counts, 1.0)


def _positions(
    low: Tensor, high: Tensor, length: int, samples: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Where `length` pixels spread over [low, high) look, and the weights of one pixel's samples.

    (N, length k) and (N, k), k being the most of `samples` (N,), which are 1 where None; the weight
    is 0 for those that a box does not need.
    """
    most_samples = (
        int(samples.max()) if samples is not None and len(low) else 1
    )  # no trace has a number
    samples = torch.ones_like(low) if samples is None else samples
    share, samples = ((high - low) / length)[:, None, None], samples[:, None, None]
    number = torch.arange(most_samples, dtype=low.dtype, device=low.device)
    pixel = torch.arange(length, dtype=low.dtype, device=low.device)[:, None]
    weights = (number < samples) / samples
    within = (torch.minimum(number, samples - 1) + 0.5) / samples
    return (low[:, None, None] + (pixel + within) * share - 0.5).flatten(1), weights[:, 0]
