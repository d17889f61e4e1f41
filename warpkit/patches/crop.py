"""Crops boxes from images and resizes them, all at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.core.caller_warnings import warn_of_lost_gradients
from warpkit.core.lasting import lasting
from warpkit.core.mistakes import looks_channels_last, without_warnings
from warpkit.core.sharding import objects
from warpkit.core.tracing import peel
from warpkit.engine.binding import plan
from warpkit.engine.binding.plan import Once, Plan
from warpkit.engine.definitions.antialias import (
    MOST_AFFINE,
    MOST_PERSPECTIVE,
    SLACK,
    check_antialias,
    fail_unreadable,
    footprint,
    least_density,
)
from warpkit.engine.definitions.frames import UPRIGHT, frame_of, kind_of_boxes, patch_matrix
from warpkit.engine.definitions.maps import map_xy
from warpkit.engine.definitions.objects.canvases import Images
from warpkit.engine.definitions.reference import compute_dtype, convert
from warpkit.engine.definitions.rule_names import check_nearest, parse_rule
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.engine.operators.objects import CROP, Crop, crop, planned_crop
from warpkit.patches import arguments
from warpkit.patches.windows import read_windows
from warpkit.types import Border, BoxesLike, IndexLike, Interpolation, NumbersLike


@objects("object", boxes=1, image_index=0, border_value=1)
def crop_patches(
    images: Tensor | Sequence[Tensor],
    boxes: BoxesLike,
    image_index: IndexLike | None,
    size: Sequence[int],
    *,
    interpolation: Interpolation = "bilinear",
    border: Border = "constant",
    border_value: NumbersLike = 0.0,
    antialias: bool | int = False,
) -> Tensor:
    """Crop boxes from images and resize them: torchvision.ops.roi_align with one sample per bin.

    For rotated boxes this is RoIAlignRotated of detectron2 and mmcv, and for four corners
    cv2.warpPerspective of a document.

    Args:
        images: (B, C, H, W), or (C, H, W) for one image; types as in `warp_affine`. Or a list of
            (C, H_i, W_i), which are read in place, each with its own border.
        boxes: in edge coordinates, which may leave the image: (N, 4), (x1, y1, x2, y2); (N, 5),
            (cx, cy, w, h, angle), rotated by degrees counter-clockwise on the screen; (N, 4, 2),
            four corners clockwise from the box's own top left, which a perspective maps to the
            crop's (counter-clockwise ones mirror it); or torchvision's BoundingBoxes of any format.
        image_index: (N,), integers: the image of each box, or its index in a list. None for one
            image.
        size: (h, w) of the result; each pixel samples the centre of its cell of the box.
        interpolation, border: as in `warp_affine`; the border is the image's, not the box's, and
            "transparent" has no meaning here.
        border_value: a number, a sequence of C, or a tensor (C,) or (N, C).
        antialias: average over each pixel's cell if the box is larger than `size`, as the warps do.
            True computes the number of samples from the boxes; an integer up to 256 fixes it along
            each axis, which vmap, torch.compile and export need.

    Returns:
        (N, C, h, w) of the images' type.

    Gradients: all orders, to images, boxes and border value.

    Raises:
        ValueError, TypeError: with the argument; on the CPU also for boxes that are not finite or
            have no width or height, for corners that form no convex quad, and for an index out of
            range; these give the border value on an accelerator.

    >>> image = torch.arange(16.0).reshape(1, 1, 4, 4)
    >>> crop_patches(image, [[1, 0, 3, 4]], None, (2, 2))
    tensor([[[[ 3.,  4.],
              [11., 12.]]]])
    >>> crop_patches(image, [[2, 2, 2, 2, 90]], None, (2, 2))
    tensor([[[[ 9.,  5.],
              [10.,  6.]]]])
    """
    keywords = size, interpolation, border, border_value, antialias
    return plan.call(_plan_crop, (images, boxes, image_index), keywords)


def _plan_crop(
    keeps: bool, images: Any, boxes: Any, image_index: Any, *keywords: Any
) -> Plan | Once:
    """The plan of `crop_patches`; keywords: its other arguments, in their order."""
    size, interpolation, border, border_value, antialias = keywords
    name, argument = "crop_patches", boxes
    data = arguments.images(name, images, computed=False)
    keeps = keeps and isinstance(boxes, Tensor) and boxes.dtype in (torch.float32, torch.float64)
    read = without_warnings(arguments.boxes) if keeps else arguments.boxes  # the plan warns
    boxes, index, good = read(name, boxes, image_index, data)
    size = checks.check_size(name, "size", size)
    rule = parse_rule(name, interpolation, border, "exact")
    check_nearest(name, rule, data.original)
    if rule.border == "transparent":
        checks.fail(name, "border", "a border other than 'transparent'", repr(border))
    samples = check_antialias(name, antialias)
    checks.check_labels(
        name, "antialias", antialias, data.original.dtype, "False", samples is False
    )
    warn_of_lost_gradients(name, data.original, rule.interpolation, boxes=boxes)
    fill_of = lasting(arguments.border_value) if keeps else arguments.border_value
    fill = fill_of(name, border_value, boxes.shape[0], data).mT[..., None, None]
    upright = kind_of_boxes(boxes.shape) == UPRIGHT
    computed = not data.of_labels and data.dtype == compute_dtype(data.dtype)
    plans = keeps and not data.of_labels and samples is False and boxes is argument
    if plans and isinstance(data.pixels, Tensor) and _is_quiet(data.original, boxes, rule):
        kernels = None
        if computed:
            kernels = planned_crop(data.pixels, fill, _places(boxes, None, size, rule), size, rule)
        if kernels is not None or not computed:
            return partial(_crop, kernels, fill, size, rule, upright)
    if keeps and isinstance(data.pixels, Tensor):
        arguments.checked_numbers(name, boxes, index, data.pixels)
    places = _places(boxes, good, size, rule)
    pixels = data.pixels
    if not computed:
        pixels, places, index = _computed(pixels, places, index, size, rule)

    def sampled(places: Tensor, size: tuple[int, int]) -> Tensor:
        """The images at places (N, 2 or 3, 3) or (N, *size, 2)."""
        return crop(pixels, places, fill, Crop(index, size, rule, upright))

    if samples is False:
        crops = sampled(places, size)
    else:
        crops = _mean(name, sampled, places, size, rule, samples)
    return Once(data.converted(crops).contiguous())


def _is_quiet(images: Tensor, boxes: Tensor, rule: SamplingRule) -> bool:
    """Whether no types or shapes of a call cause a warning: the next call would warn, too.

    images (B, C, H, W) or (C, H, W); boxes (N, 4), (N, 5) or (N, 4, 2).
    """
    loses = rule.interpolation == "nearest" and boxes.requires_grad
    return not looks_channels_last(images.shape) and not loses


def _crop(
    kernels: Any | None,
    fill: Tensor,
    size: tuple[int, int],
    rule: SamplingRule,
    upright: bool,
    images: Tensor,
    boxes: Tensor,
    index: Tensor | None,
) -> Tensor:
    """Crops like those that were planned: numbers alone are still to be checked.

    kernels: as of `planned_crop`; None if they compute in another type than the images'. images
    (B, C, H, W) or (C, H, W); boxes (N, 4), (N, 5) or (N, 4, 2); index (N,); fill broadcasts to
    the result (N, C, h, w).
    """
    images = images if images.ndim == 4 else images[None]
    index = arguments.checked_numbers("crop_patches", boxes, index, images)
    places = _places(boxes, None, size, rule)
    if kernels is not None:
        options = Crop(index, size, rule, upright)
        return CROP.by(kernels, options, places, fill, images).contiguous()
    pixels, places, index = _computed(images, places, index, size, rule)
    crops = crop(pixels, places, fill, Crop(index, size, rule, upright))
    return convert(crops, images.dtype).contiguous()


def _places(
    boxes: Tensor, good: Tensor | None, size: tuple[int, int], rule: SamplingRule
) -> Tensor:
    """The maps (N, 2 or 3, 3) from pixels of crops of boxes; good (N,): other boxes have none."""
    places = patch_matrix(frame_of(boxes.double()), size)
    if good is not None:
        places = torch.where(good[:, None, None], places, torch.nan)  # samples nothing
    # no gradient under nearest: the result should not require one
    return places.detach() if rule.interpolation == "nearest" else places


def _computed(
    images: Images, places: Tensor, index: Tensor, size: tuple[int, int], rule: SamplingRule
) -> tuple[Images, Tensor, Tensor]:
    """What crops read of images, in the type of the computation, with its maps and its index.

    places (N, 2 or 3, 3), of crops of `size`; index (N,).
    """
    found = read_windows(images, arguments.to_computation, places, index, size, rule)
    if found is not None:
        return found
    if isinstance(images, Tensor):
        return arguments.to_computation(images), places, index
    return tuple(arguments.to_computation(each[None])[0] for each in images), places, index


def _mean(
    name: str,
    sampled: Callable[[Tensor, tuple[int, int]], Tensor],
    to_source: Tensor,
    size: tuple[int, int],
    rule: SamplingRule,
    samples: bool | int,
) -> Tensor:
    """Crops of `size` (h, w) whose pixels are means if the maps (N, 2 or 3, 3) shrink.

    A mean takes as many samples as in the warps. Under a perspective, the most shrunken pixel
    determines the number for all; pixels that are not shrunken are sampled once.
    """
    height, width = size
    foot = footprint(to_source, size)
    shrunk = foot.largest > 1 + SLACK  # false for NaN
    most_samples = MOST_AFFINE if to_source.shape[1] == 2 else MOST_PERSPECTIVE
    lengths = torch.stack([side.flatten(1).amax(1) for side in (foot.y, foot.x)], dim=1)
    counts = ((lengths * least_density(rule.interpolation)).floor() + 1).clamp(max=most_samples)
    if samples is not True:
        counts = torch.full_like(counts, float(samples))
    counts = torch.where(shrunk.flatten(1).any(1, keepdim=True), counts, 1.0)
    if samples is True:
        readable = peel(counts)
        if readable is None or readable.is_meta:
            fail_unreadable(name, "boxes' size")
        most = [int(n) for n in readable.amax(0)] if len(readable) else [1, 1]
    else:
        most = [int(samples)] * 2
    (y, keep_y), (x, keep_x) = (_sample_positions(counts[:, k], size[k], most[k]) for k in range(2))
    rows = [line[..., None, None].unbind(1) for line in to_source.unbind(1)]
    points = torch.broadcast_tensors(*map_xy(rows, x[:, None, :], y[:, :, None]))
    values = sampled(torch.stack(points, dim=-1), (y.shape[1], x.shape[1]))
    means = _weigh(values.unflatten(3, (width, -1)), keep_x)
    means = _weigh(means.unflatten(2, (height, -1)).movedim(3, -1), keep_y)
    if to_source.shape[1] == 2:
        return means
    return torch.where(shrunk[:, None], means, sampled(to_source, size))


def _weigh(values: Tensor, weights: Tensor) -> Tensor:
    """The sums of values (N, C, h, w, k), weighted by weights (N, k), in the order of k.

    Weights of 0 at the end, of objects with fewer samples than others, do not change a bit.
    """
    pairs = zip(values.unbind(-1), weights.to(values.dtype).unbind(-1), strict=True)
    terms = (weight[:, None, None, None] * value for value, weight in pairs)
    return sum(terms, torch.zeros((), dtype=values.dtype, device=values.device))


def _sample_positions(samples: Tensor, length: int, most_samples: int) -> tuple[Tensor, Tensor]:
    """The positions of the samples of `length` pixels, in pixels, and the weights within a pixel.

    (N, length k) and (N, k), where k is `most_samples`, the largest of `samples` (N,). Samples that
    a box does not need have weight 0.
    """
    samples = samples[:, None, None]
    number = torch.arange(most_samples, dtype=samples.dtype, device=samples.device)
    pixel = torch.arange(length, dtype=samples.dtype, device=samples.device)[:, None]
    weights = (number < samples) / samples
    within = (torch.minimum(number, samples - 1) + 0.5) / samples
    return (pixel + within - 0.5).flatten(1), weights[:, 0]
