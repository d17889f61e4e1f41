"""Transforms the objects of images in place, all at once and with gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.core.caller_warnings import warn_of_lost_gradients
from warpkit.core.sharding import objects
from warpkit.engine.definitions.frames import UPRIGHT, kind_of_boxes
from warpkit.engine.definitions.objects import source_maps
from warpkit.engine.definitions.objects.canvases import Images, canvas_of, flat, listed
from warpkit.engine.definitions.objects.folding import frame_painter
from warpkit.engine.definitions.objects.frames import (
    bounds,
    frame_inverse,
    frames_of,
    rows_within,
)
from warpkit.engine.definitions.objects.objects import Layers
from warpkit.engine.definitions.objects.over import paint_layers, paint_levels
from warpkit.engine.definitions.objects.rectangles import pixels_of, rectangles
from warpkit.engine.definitions.objects.sources import (
    LayerOptions,
    cropped_mask,
    stretched_mask,
    window_painter,
)
from warpkit.engine.definitions.rule_names import check_nearest, parse_rule
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.engine.operators.objects import paint
from warpkit.patches import arguments
from warpkit.types import (
    Border,
    BoxesLike,
    Edge,
    IndexLike,
    Interpolation,
    MaskSpace,
    MatrixLike,
    NumbersLike,
    Overlap,
    Space,
)


@objects("image", boxes=1, matrices=1, image_index=0, mask=3, opacity=0, border_value=1)
def transform_patches(
    images: Tensor | Sequence[Tensor],
    boxes: BoxesLike,
    matrices: MatrixLike,
    image_index: IndexLike | None,
    *,
    space: Space = "pixel",
    mask: Tensor | None = None,
    mask_space: MaskSpace | None = None,
    opacity: NumbersLike = 1.0,
    overlap: Overlap = "last",
    edge: Edge = "hard",
    interpolation: Interpolation = "bilinear",
    border: Border = "constant",
    border_value: NumbersLike = 0.0,
) -> Any:
    """Warp the contents of boxes in place, each box by its own matrix.

    Equals this loop, for all objects of all images at once, without its in-place writes::

        for i, (x1, y1, x2, y2), matrix in zip(image_index, boxes, matrices):
            images[i, :, y1:y2, x1:x2] = warp_affine(images[i, :, y1:y2, x1:x2], matrix)

    Args:
        images: (B, C, H, W), or (C, H, W) for one image, or a list of (C, H_i, W_i); labels as in
            `paste_patches`, and with edge="hard".
        boxes: (N, 4), (N, 5), (N, 4, 2) or torchvision's, as in `crop_patches`: upright, rotated,
            or four corners. The part outside the image is neither read nor painted.
        matrices: space="pixel": (N, 2, 3), source -> destination in the box's own pixels, whose
            origin is the centre of a pixel at the box's own top-left corner, (x1, y1) + 1/2 of an
            upright one. There are w x h of them along the box's own axes; for four corners the
            means of opposite sides. space="theta": (N, 2, 3) or (N, 6) as F.affine_grid takes it
            with align_corners=False, destination -> source in [-1, 1] over the box.
        image_index: (N,), integers: the image of each object. None for one image.
        mask: (N, 1, h, w), or one (1, h, w) for all: how much of each pixel of the box belongs to
            the object. It is warped with the box's pixels.
        mask_space: "box" stretches the mask over the box; "image" means that it covers the whole
            image, (N, 1, H, W), which needs a batch of images. None: "box", but a mask of the
            images' size raises an error.
        opacity: a number, or (N,).
        overlap: "last": every object reads the original images; "sequential": the result of the
            earlier objects, as the loop does. Both paint in order, later objects over earlier ones.
        edge: for fractional boxes. "hard": a box reads and paints the pixels whose centre lies in
            it. "soft": all pixels that it touches, weighted by the covered share, so that the
            result is continuous in the box and its gradient includes the edges; needs upright
            boxes.
        interpolation, border: as in `warp_affine`, but the border is the box's: a tap outside it is
            never a neighbouring pixel of the image. "transparent" keeps the pixels below.
        border_value: a number, a sequence of C, or a tensor (C,) or (N, C).

    Returns:
        Images like `images`; for a list a list, in which images without objects are the same
        tensors. Without a mask the whole box is painted, border values included; with one, pixels
        from outside the box have mask 0 with border="constant", and otherwise the border's
        continuation of the mask. Colours are multiplied by the mask before the warp and composited
        "over", so that edges do not darken. For integer boxes both edges equal the slices of the
        loop; with edge="soft", a tap outside that is not constant jumps when the box reaches
        another pixel. A pixel or tap is in a rotated box or quad if its centre is; borders other
        than constant fold a position outside back by the box's own pixels, and read the image
        there. Angle 0 equals the upright box; the identity changes nothing.

    For opaque objects with overlap="last", time and memory grow with the pixels of the images: only
    the topmost object of a pixel is sampled. With a mask or an opacity they grow with the covered
    pixels; "sequential" takes one pass per level of overlap. Results and gradients are the same at
    every run.

    Gradients: all orders, to images, boxes, matrices, mask, opacity and border value.

    Raises:
        ValueError, TypeError: with the argument; on the CPU also for invalid boxes as in
            `crop_patches` and for an index out of range, which paint nothing on an accelerator.

    >>> image = torch.arange(12.0).reshape(1, 3, 4)
    >>> mirror = torch.tensor([[[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> transform_patches(image, [[1, 0, 4, 2]], mirror, None, space="theta")
    tensor([[[ 0.,  3.,  2.,  1.],
             [ 4.,  7.,  6.,  5.],
             [ 8.,  9., 10., 11.]]])
    """
    name = "transform_patches"
    data = arguments.canvas(name, images)
    boxes, index, good = arguments.boxes(name, boxes, image_index, data)
    for argument, value, names in (
        ("space", space, ("pixel", "theta")),
        ("overlap", overlap, ("last", "sequential")),
        ("edge", edge, ("hard", "soft")),
        ("mask_space", "box" if mask_space is None else mask_space, ("box", "image")),
    ):
        checks.check_name(name, argument, value, names)
    rule = parse_rule(name, interpolation, border, "exact")
    check_nearest(name, rule, data.original)
    arguments.check_whole(name, data, mask, opacity, edge)
    count, soft = len(boxes), edge == "soft"
    if soft and kind_of_boxes(boxes.shape) != UPRIGHT:
        checks.fail(name, "edge", "'hard' for rotated boxes and four corners", repr(edge))
    matrices = arguments.matrices(name, matrices, data, ((2, 3),), count, flat=space == "theta")
    followed = {} if soft and data.original.is_floating_point() else {"boxes": boxes}
    warn_of_lost_gradients(name, data.original, rule.interpolation, **followed, matrices=matrices)
    alpha = arguments.opacity(name, opacity, count, data)
    fill = arguments.border_value(name, border_value, count, data)
    if mask is not None:
        mask = arguments.mask(name, mask, mask_space, count, data)
    kit = _Objects(boxes, matrices, good, mask, alpha, fill)
    options = _Options(rule, space, mask_space, overlap, soft, data.rounded, data.batched)
    return data.painted(index, partial(_transform, kit, options))


class _Objects(NamedTuple):
    """The validated objects."""

    boxes: Tensor
    matrices: Tensor
    good: Tensor | None
    mask: Tensor | None
    opacity: Tensor | None
    fill: Tensor


class _Options(NamedTuple):
    """The options of the call."""

    rule: SamplingRule
    space: str
    mask_space: str | None
    overlap: str
    soft: bool
    rounded: Callable[[Tensor], Tensor]
    """Rounds values as writing them to the given images does."""
    batched: bool


def _transform(kit: _Objects, options: _Options, images: Images, index: Tensor) -> Images:
    """Images of the computation, with each object transformed in the image of its index (N,)."""
    boxes, matrices, good, mask, alpha, fill = kit
    rule, space, mask_space, overlap, soft, rounded, batched = options
    canvas, one = canvas_of(images), listed(images)[0]
    frames = rows = None
    if kind_of_boxes(boxes.shape) == UPRIGHT:
        painted = rectangles(boxes, index, canvas, touched=soft)
        edges = boxes.double() - torch.stack((painted.left, painted.top), dim=-1).repeat(1, 2)
        to_source = source_maps.box_inverse(matrices.double(), edges, space)
    else:
        painted = rectangles(bounds(boxes, good), index, canvas, touched=False)
        edges = frames = frames_of(boxes, painted, good)
        rows = rows_within(frames, painted)
        to_source = frame_inverse(matrices.double(), frames, space)
    cover = None
    if mask is not None and mask_space == "image":
        cover = cropped_mask(mask, painted, canvas).to(one.dtype)
    elif mask is not None:
        cover = stretched_mask(mask.to(one.dtype), painted, edges, canvas, rule)
    elif rule.border == "transparent":  # as with a mask of 1 inside the box and 0 outside
        cover = one.new_ones(1, int((painted.width * painted.height).sum()))
    if rule.border == "transparent":
        rule = SamplingRule(rule.interpolation, "constant")
    look = LayerOptions(to_source, rule, fill, alpha)
    if overlap == "last" and not soft and (cover is not None or alpha is None):
        layers = Layers(images, to_source, None, cover, alpha)
        if cover is None:
            layers = layers._replace(fill=fill.expand(one.shape[-3], -1))
        return paint(layers, painted, rule, rows, frames, batched=batched)
    share = edges if soft and isinstance(edges, Tensor) else None
    if frames is None:
        painter = window_painter(look, painted, canvas, cover, share)
    else:
        painter = frame_painter(look, painted, canvas, cover, frames)
    if overlap == "sequential":
        return paint_levels(images, painted, canvas, painter, rounded, rows)
    pixels = pixels_of(painted, canvas, rows=rows)
    return paint_layers(images, pixels, partial(painter, flat(images)))
