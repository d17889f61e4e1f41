"""Objects inside images: cut out, paste, or transform in place, all at once and with gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from warpkit import _checks as checks
from warpkit import _objects as given
from warpkit._sharding import objects
from warpkit._warnings import warn_of_integers
from warpkit.kernels import blends_cpu, crops_cpu, frames, windows_cpu
from warpkit.kernels.antialias import MOST_AFFINE, SLACK
from warpkit.kernels.layers import paint_layers, paint_levels, paint_topmost
from warpkit.kernels.maps import inverse_map, matrix_of
from warpkit.kernels.objects import Rectangles, pixels_of, rectangles, topmost
from warpkit.kernels.painters import (
    Paint,
    cropped_mask,
    patch_painter,
    stretched_mask,
    window_painter,
)
from warpkit.kernels.places import Points, sample_opaque
from warpkit.kernels.rules import Rule
from warpkit.warp import check_nearest, named_rule


@objects("object", boxes=1, image_index=0, border_value=1)
def crop_patches(
    images: Tensor,
    boxes: Any,
    image_index: Any,
    size: Sequence[int],
    *,
    interpolation: str = "bilinear",
    border: str = "constant",
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
    data = given.images(name, images)
    boxes, index = given.boxes(name, boxes, image_index, data)
    height, width = checks.check_size(name, "size", size)
    rule = named_rule(name, interpolation, border, "exact")
    check_nearest(name, rule, images)
    if rule.border == "transparent":
        checks.fail(name, "border", "a border other than 'transparent'", repr(border))
    checks.check_bool(name, "antialias", antialias)
    checks.check_labels(name, "antialias", antialias, images.dtype, "False", not antialias)
    warn_of_integers(name, data.given, rule.interpolation, boxes=boxes)
    outside = given.border_value(name, border_value, len(boxes), data)
    if not antialias and windows_cpu.compiled(data.batch):
        crops = _crop_compiled(data, boxes.double(), outside, index, (height, width), rule)
        return data.converted(crops).contiguous()
    x1, y1, x2, y2 = boxes.double().unbind(-1)
    x1 = torch.where((index >= 0) & (index < data.shape[0]), x1, torch.nan)  # looks nowhere
    across = down = None
    if antialias:
        across, down = _samples(boxes.double(), (height, width), rule.interpolation).unbind(1)
    x, keep_x = _positions(x1, x2, width, across)
    y, keep_y = _positions(y1, y2, height, down)
    values = _sample_grids(data.batch, index, x, y, outside, rule)
    if antialias:
        values = values.unflatten(3, (width, -1)).unflatten(2, (height, -1))
        weights = (keep.to(values.dtype) for keep in (keep_y, keep_x))
        values = torch.einsum("cnhjwi,nj,ni->cnhw", values, *weights)
    return data.converted(values.movedim(1, 0)).contiguous()


def _crop_compiled(
    data: given.Images,
    boxes: Tensor,
    outside: Tensor,
    index: Tensor,
    size: tuple[int, int],
    rule: Rule,
) -> Tensor:
    """Crops as affine warps, (N, C, h, w)."""
    x1, y1, x2, y2 = boxes.unbind(-1)
    across, down = (x2 - x1) / size[1], (y2 - y1) / size[0]
    nothing = torch.zeros_like(across)
    first_x, first_y = x1 + across / 2 - 0.5, y1 + down / 2 - 0.5
    inverse = matrix_of(((across, nothing, first_x), (nothing, down, first_y)))

    def plain(batch: Tensor, inverse: Tensor, outside: Tensor) -> Tensor:
        (across, _, first_x), (_, down, first_y) = (row.split(1, 1) for row in inverse.unbind(1))
        row, column = (torch.arange(n, dtype=inverse.dtype) for n in size)
        x, y = across * column + first_x, down * row + first_y
        own = outside[..., 0, 0].mT
        return _sample_grids(batch, index, x, y, own, rule).movedim(1, 0)

    own = outside.mT[..., None, None]
    if rule.interpolation == "nearest":  # it has no slope, and autograd should say so
        inverse = inverse.detach()
    return crops_cpu.crop(data.batch, inverse, own, index, size, rule, plain)


def _sample_grids(
    batch: Tensor, index: Tensor, x: Tensor, y: Tensor, outside: Tensor, rule: Rule
) -> Tensor:
    """Images[index] at the columns x (N, w) of the rows y (N, h): (C, N, h, w)."""
    count, _, height, width = batch.shape
    start = (index.clamp(0, count - 1) * height)[:, None, None]
    own = torch.arange(len(index), device=index.device)[:, None, None]
    return sample_opaque(
        batch.movedim(1, 0).flatten(1),
        outside,
        own if outside.shape[1] > 1 else torch.zeros_like(own[:1]),
        lambda row, column: (start + row) * width + column,
        Points(x[:, None, :], y[:, :, None], (height, width)),
        rule,
    )


def _samples(boxes: Tensor, size: tuple[int, int], interpolation: str) -> Tensor:
    """Samples along x and y in each pixel of (h, w), (N, 2): as many as the warps take."""
    boxes = boxes.detach()
    shares = (boxes[:, 2:] - boxes[:, :2]) / boxes.new_tensor([size[1], size[0]])
    density = math.sqrt(2) if interpolation == "nearest" else 1.0
    counts = ((shares * density).floor() + 1).clamp(max=MOST_AFFINE)
    return torch.where(shares.amax(1, keepdim=True) > 1 + SLACK, counts, 1.0)


def _positions(
    low: Tensor, high: Tensor, length: int, samples: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Where `length` pixels spread over [low, high) look, and the weights of one pixel's samples.

    (N, length k) and (N, k), k being the most of `samples` (N,), which are 1 where None; the weight
    is 0 for those that a box does not need.
    """
    most = int(samples.max()) if samples is not None and len(low) else 1  # no trace has a number
    samples = torch.ones_like(low) if samples is None else samples
    share, samples = ((high - low) / length)[:, None, None], samples[:, None, None]
    number = torch.arange(most, dtype=low.dtype, device=low.device)
    pixel = torch.arange(length, dtype=low.dtype, device=low.device)[:, None]
    weights = (number < samples) / samples
    within = (torch.minimum(number, samples - 1) + 0.5) / samples
    return (low[:, None, None] + (pixel + within) * share - 0.5).flatten(1), weights[:, 0]


@objects("image", patches=3, matrices=1, image_index=0, mask=3, opacity=0)
def paste_patches(
    images: Tensor,
    patches: Tensor,
    matrices: Any,
    image_index: Any,
    *,
    mask: Tensor | None = None,
    opacity: Any = 1.0,
    interpolation: str = "bilinear",
) -> Tensor:
    """Paste patches on images, each under a matrix of its own, in order.

    Args:
        images: (B, C, H, W), or (C, H, W) for one image; types as in `warp_affine`. Labels are
            painted whole: by "nearest", with no mask but one of booleans, and no opacity.
        patches: (N, C, h, w), or one (C, h, w) for all, which is never copied. Floats where the
            images are floats, integers where they are integers.
        matrices: (N, 2, 3) or (N, 3, 3), patch pixel -> image pixel; `box_to_matrix` makes them.
        image_index: (N,), integers: the image of each object. None where there is one image.
        mask: (N, 1, h, w), or one (1, h, w) for all: how much of each patch pixel there is.
        opacity: a number, or (N,).
        interpolation: as in `warp_affine`.

    Returns:
        Images like `images`. An object's alpha is mask x opacity x coverage; the coverage is what
        the interpolation makes of 1 on the patch and 0 outside. Patch and mask are warped together,
        the colour multiplied by the mask beforehand, so that edges do not darken. Objects are
        composited "over" in order: a later one covers an earlier one.

    Time and memory grow with the covered pixels and one pass over the images. Results and gradients
    are the same at every run. A matrix without an inverse paints nothing.

    Gradients: all orders, to images, patches, matrices, mask and opacity.

    Raises:
        ValueError, TypeError: naming the argument; on the CPU also for an index out of range, which
            on an accelerator paints nothing.

    >>> patch = torch.ones(1, 1, 2)
    >>> paste_patches(torch.zeros(1, 2, 4), patch, [[[1, 0, 1.5], [0, 1, 0]]], None)
    tensor([[[0.0000, 0.5000, 1.0000, 0.5000],
             [0.0000, 0.0000, 0.0000, 0.0000]]])
    """
    name = "paste_patches"
    data = _canvas(name, images)
    matrices = given.matrices(name, matrices, data, ((2, 3), (3, 3)))
    count = len(matrices)
    index = given.image_index(name, image_index, count, data)
    rule = named_rule(name, interpolation, "constant", "exact")
    check_nearest(name, rule, images)
    warn_of_integers(name, data.given, rule.interpolation, matrices=matrices)
    given.check_whole(name, data, mask, opacity)
    patches = given.patches(name, patches, count, data)
    size = (patches.shape[-2], patches.shape[-1])
    if mask is not None:
        mask = given.per_object(name, "mask", mask, count, (1, *size), data).to(data.batch.dtype)
    alpha = given.opacity(name, opacity, count, data)
    places = frames.footprints(matrices.double(), size, rule, index, data.shape)
    inverse = frames.from_corner(inverse_map(matrices.double()), places)

    def plain(
        batch: Tensor, inverse: Tensor, patches: Tensor, mask: Tensor | None, alpha: Tensor | None
    ) -> Tensor:
        pixels = frames.covered(pixels_of(places, data.size), inverse, size, rule)
        painter = patch_painter(Paint(inverse, rule, batch.new_zeros(1, 1), alpha), patches, mask)
        return paint_layers(batch, pixels, painter)

    return _blended(data, places, rule, (data.batch, inverse, patches, mask, alpha), plain)


@objects("image", boxes=1, matrices=1, image_index=0, mask=3, opacity=0, border_value=1)
def transform_patches(
    images: Tensor,
    boxes: Any,
    matrices: Any,
    image_index: Any,
    *,
    space: str = "pixel",
    mask: Tensor | None = None,
    mask_space: str | None = None,
    opacity: Any = 1.0,
    overlap: str = "last",
    edge: str = "hard",
    interpolation: str = "bilinear",
    border: str = "constant",
    border_value: Any = 0.0,
) -> Tensor:
    """Warp what the images show in boxes, each box by its own matrix, and put it back.

    What this loop does, for all objects of all images at once, without its in-place writes::

        for i, (x1, y1, x2, y2), matrix in zip(image_index, boxes, matrices):
            images[i, :, y1:y2, x1:x2] = warp_affine(images[i, :, y1:y2, x1:x2], matrix)

    Args:
        images: (B, C, H, W), or (C, H, W) for one image; labels as in `paste_patches`, and with
            edge="hard".
        boxes: (N, 4), (x1, y1, x2, y2) in edge coordinates; `torchvision.ops.box_convert` makes
            them from other formats. The part outside the image is neither read nor painted.
        matrices: space="pixel": (N, 2, 3), source -> destination in the box's own pixels, whose
            origin is the centre of a pixel at the box's top-left corner, (x1, y1) + 1/2.
            space="theta": (N, 2, 3) or (N, 6) as F.affine_grid takes it with align_corners=False,
            destination -> source in [-1, 1] over the box.
        image_index: (N,), integers: the image of each object. None where there is one image.
        mask: (N, 1, h, w), or one (1, h, w) for all: how much of each pixel of the box belongs to
            the object. It is warped with the box's pixels.
        mask_space: "box" stretches the mask over the box; "image" says that it lies over the whole
            image, (N, 1, H, W). None: "box", and a mask of the images' size is refused.
        opacity: a number, or (N,).
        overlap: "last": every object reads the original images; "sequential": what the earlier
            ones left, as the loop does. Both paint in order, a later object over an earlier one.
        edge: what a fractional box does. "hard": it reads and paints the pixels whose centre lies
            in it. "soft": all that it touches, each by the share that it covers, so that the
            result is continuous in the box and its gradient knows of the edges.
        interpolation, border: as in `warp_affine`, but the border is the box's: a tap outside it is
            never a neighbouring pixel of the image. "transparent" shows what is below.
        border_value: a number, a sequence of C, or a tensor (C,) or (N, C).

    Returns:
        Images like `images`. Without a mask the whole box is painted, border value included; with
        one, what comes from outside the box has mask 0 under border="constant", and is what the
        border makes of the mask otherwise. Colours are multiplied by the mask before the warp and
        composited "over", so that edges do not darken. On integer boxes both edges are the slices
        of the loop; under edge="soft" a tap outside that is not constant jumps where the box
        reaches another pixel.

    Time and memory grow with the pixels of the images where opaque objects paint "last": only the
    topmost object of a pixel is sampled. With a mask or an opacity they grow with the covered
    pixels; "sequential" takes a pass for each level of overlap. Results and gradients are the same
    at every run.

    Gradients: all orders, to images, boxes, matrices, mask, opacity and border value.

    Raises:
        ValueError, TypeError: naming the argument; on the CPU also for x2 <= x1 and for an index
            out of range, which on an accelerator paint nothing.

    >>> image = torch.arange(12.0).reshape(1, 3, 4)
    >>> mirror = torch.tensor([[[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> transform_patches(image, [[1, 0, 4, 2]], mirror, None, space="theta")
    tensor([[[ 0.,  3.,  2.,  1.],
             [ 4.,  7.,  6.,  5.],
             [ 8.,  9., 10., 11.]]])
    """
    name = "transform_patches"
    data = _canvas(name, images)
    boxes, index = given.boxes(name, boxes, image_index, data)
    for argument, value, names in (
        ("space", space, ("pixel", "theta")),
        ("overlap", overlap, ("last", "sequential")),
        ("edge", edge, ("hard", "soft")),
        ("mask_space", "box" if mask_space is None else mask_space, ("box", "image")),
    ):
        checks.check_name(name, argument, value, names)
    rule = named_rule(name, interpolation, border, "exact")
    check_nearest(name, rule, images)
    given.check_whole(name, data, mask, opacity, edge)
    count, soft = len(boxes), edge == "soft"
    matrices = given.matrices(name, matrices, data, ((2, 3),), count, flat=space == "theta")
    warn_of_integers(name, data.given, rule.interpolation, boxes=boxes, matrices=matrices)
    alpha = given.opacity(name, opacity, count, data)
    outside = given.border_value(name, border_value, count, data)
    if mask is not None:
        mask = given.mask(name, mask, mask_space, count, data)
    places = rectangles(boxes, index, data.shape, touched=soft)
    edges = boxes.double() - torch.stack((places.left, places.top), dim=-1).repeat(1, 2)
    cover = None
    if mask is not None and mask_space == "image":
        cover = cropped_mask(mask, places, data.size).to(data.batch.dtype)
    elif mask is not None:
        cover = stretched_mask(mask.to(data.batch.dtype), places, edges, data.size, rule)
    elif rule.border == "transparent":  # what a mask of 1 within the box and 0 outside shows
        cover = data.batch.new_ones(1, int((places.width * places.height).sum()))
    if rule.border == "transparent":
        rule = Rule(rule.interpolation, "constant")
    paint = Paint(frames.box_inverse(matrices.double(), edges, space), rule, outside, alpha)
    if overlap == "last" and cover is None and alpha is None and not soft:
        return _opaque(data, places, paint)
    if overlap == "last" and cover is not None and not soft:
        return _masked(data, places, paint, cover)
    painter = window_painter(paint, places, data.size, cover, edges if soft else None)
    if overlap == "sequential":
        batch = paint_levels(data.batch, places, data.size, painter, data.rounded)
    else:
        batch = paint_layers(data.batch, pixels_of(places, data.size), painter)
    return data.restore(batch)


def _canvas(name: str, images: Any) -> given.Images:
    """Images to paint on."""
    data = given.images(name, images)
    if data.given.is_meta:
        wanted = "on a device that holds values: how much is painted depends on them"
        checks.fail(name, "images", wanted, "meta")
    return data


def _masked(data: given.Images, places: Rectangles, paint: Paint, cover: Tensor) -> Tensor:
    """What the images show in rectangles, by a mask (1, P) of their pixels."""

    def plain(
        batch: Tensor, inverse: Tensor, _: None, cover: Tensor, alpha: Tensor | None
    ) -> Tensor:
        own = paint._replace(inverse=inverse, opacity=alpha)
        painter = window_painter(own, places, data.size, cover, None)
        return paint_layers(batch, pixels_of(places, data.size), painter)

    layers = (data.batch, paint.inverse, None, cover, paint.opacity)
    return _blended(data, places, paint.rule, layers, plain)


def _blended(
    data: given.Images,
    places: Rectangles,
    rule: Rule,
    layers: blends_cpu.Layers,
    plain: Callable[..., Tensor],
) -> Tensor:
    """Objects with a coverage: by compiled kernels where there are some."""
    if blends_cpu.serves(rule, layers):
        return data.restore(blends_cpu.blend(layers, places, plain))
    return data.restore(plain(*layers))


def _opaque(data: given.Images, places: Rectangles, paint: Paint) -> Tensor:
    """Opaque objects, the last one on top: by a compiled kernel where there is one."""

    def plain(batch: Tensor, inverse: Tensor, outside: Tensor) -> Tensor:
        own = paint._replace(inverse=inverse, outside=outside)
        painter = window_painter(own, places, data.size, None, None)
        return paint_topmost(batch, topmost(places, data.shape), places, painter)

    if windows_cpu.serves(data.batch, paint.rule):
        outside = paint.outside.expand(data.channels, -1)
        return data.restore(windows_cpu.paint(data.batch, paint.inverse, outside, places, plain))
    return data.restore(plain(data.batch, paint.inverse, paint.outside))
