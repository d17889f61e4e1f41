"""Pastes patches on images, each with its own matrix, in order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from torch import Tensor

from warpkit.core import checks
from warpkit.core.caller_warnings import warn_of_lost_gradients
from warpkit.core.sharding import objects
from warpkit.engine.definitions.antialias import check_antialias
from warpkit.engine.definitions.objects import source_maps
from warpkit.engine.definitions.objects.canvases import Images, canvas_of
from warpkit.engine.definitions.objects.objects import Layers
from warpkit.engine.definitions.objects.over import paint_layers
from warpkit.engine.definitions.objects.rectangles import pixels_of
from warpkit.engine.definitions.objects.sources import LayerOptions, patch_painter
from warpkit.engine.definitions.rule_names import check_nearest, parse_rule
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.engine.operators.inverse import inverse_map
from warpkit.engine.operators.objects import paint
from warpkit.patches import arguments
from warpkit.patches.means import mean_painter, minifies, repeated_painter
from warpkit.types import FlowLike, IndexLike, Interpolation, MatrixLike, NumbersLike


@objects("image", patches=3, matrices=1, image_index=0, mask=3, opacity=0, flow=3)
def paste_patches(
    images: Tensor | Sequence[Tensor],
    patches: Tensor,
    matrices: MatrixLike,
    image_index: IndexLike | None,
    *,
    mask: Tensor | None = None,
    opacity: NumbersLike = 1.0,
    interpolation: Interpolation = "bilinear",
    flow: FlowLike | None = None,
    antialias: bool | int = False,
) -> Any:
    """Paste patches on images, each with its own matrix, in order.

    Args:
        images: (B, C, H, W), or (C, H, W) for one image, or a list of (C, H_i, W_i); types as in
            `warp_affine`. Labels need "nearest", a boolean mask or none, and no opacity.
        patches: (N, C, h, w), or one (C, h, w) for all, which is never copied. Floats where the
            images are floats, integers where they are integers.
        matrices: (N, 2, 3) or (N, 3, 3), patch pixel -> image pixel; `box_to_matrix` makes them.
        image_index: (N,), integers: the image of each object. None for one image.
        mask: (N, 1, h, w), or one (1, h, w) for all: how much of each patch pixel there is.
        opacity: a number, or (N,).
        interpolation: as in `warp_affine`.
        flow: (N, k, l, 2), or one (k, l, 2) for all, in patch pixels: bends each patch before its
            matrix places it, as `warp_flow(patch, flow)`, of k x l pixels, does; patch and mask are
            still sampled once. None: flat.
        antialias: as in `warp_affine`: where a patch is made smaller, each image pixel is the mean
            of the patch, and of its mask and coverage, over the pixel's unit square, so that every
            visible pixel of the patch gets a gradient. A patch that is not made smaller does not
            change.

    Returns:
        Images like `images`; for a list a list, in which images without objects are the same
        tensors. An object's alpha is mask x opacity x coverage; the coverage is the interpolation
        of 1 on the patch and 0 outside. Patch and mask are warped together, with the colour
        multiplied by the mask first, so that edges do not darken. Objects are composited "over" in
        order: later ones cover earlier ones.

    Time and memory grow with the covered pixels and one pass over the images. Results and gradients
    are the same at every run. A matrix without an inverse paints nothing.

    Gradients: all orders, to images, patches, matrices, mask, opacity and flow.

    Raises:
        ValueError, TypeError: with the argument; on the CPU also for an index out of range, which
            paints nothing on an accelerator.

    >>> import torch
    >>> patch = torch.ones(1, 1, 2)
    >>> paste_patches(torch.zeros(1, 2, 4), patch, [[[1, 0, 1.5], [0, 1, 0]]], None)
    tensor([[[0.0000, 0.5000, 1.0000, 0.5000],
             [0.0000, 0.0000, 0.0000, 0.0000]]])
    """
    name = "paste_patches"
    data = arguments.canvas(name, images)
    matrices = arguments.matrices(name, matrices, data, ((2, 3), (3, 3)))
    count = len(matrices)
    index = arguments.image_index(name, image_index, count, data)
    rule = parse_rule(name, interpolation, "constant", "exact")
    check_nearest(name, rule, data.original)
    warn_of_lost_gradients(name, data.original, rule.interpolation, matrices=matrices, flow=flow)
    arguments.check_whole(name, data, mask, opacity)
    samples = check_antialias(name, antialias)
    checks.check_labels(
        name, "antialias", antialias, data.original.dtype, "False", samples is False
    )
    patches = arguments.patches(name, patches, count, data)
    size = (patches.shape[-2], patches.shape[-1])
    if mask is not None:
        mask = arguments.per_object(name, "mask", mask, count, (1, *size), data).to(data.dtype)
    alpha = arguments.opacity(name, opacity, count, data)
    bend = None if flow is None else arguments.flows(name, flow, count, data)
    kit = _Objects(patches, matrices, mask, alpha, bend)
    return data.painted(index, partial(_paste, name, kit, rule, samples, data.batched))


class _Objects(NamedTuple):
    """The validated objects."""

    patches: Tensor
    matrices: Tensor
    mask: Tensor | None
    opacity: Tensor | None
    flow: Tensor | None


def _paste(
    name: str,
    kit: _Objects,
    rule: SamplingRule,
    samples: bool | int,
    batched: bool,
    images: Images,
    index: Tensor,
) -> Images:
    """Images of the computation, with each patch pasted on the image of its index (N,)."""
    patches, matrices, mask, alpha, bend = kit
    canvas = canvas_of(images)
    size = (patches.shape[-2], patches.shape[-1])
    frame = size if bend is None else (bend.shape[-3], bend.shape[-2])
    painted = source_maps.footprints(matrices.double(), frame, rule, index, canvas)
    to_source = source_maps.from_corner(inverse_map(matrices.double()), painted)
    options = LayerOptions(to_source, rule, patches.new_zeros(1, 1), alpha)
    if samples is not False and len(matrices) and minifies(to_source):
        if bend is None:
            painter = mean_painter(name, options, patches, mask, painted, samples)
        else:
            plain = patch_painter(options, patches, mask, bend)
            painter = repeated_painter(plain, options, samples)
        return paint_layers(images, pixels_of(painted, canvas), painter)
    if bend is not None:
        pixels = source_maps.covered(pixels_of(painted, canvas), to_source, frame, rule)
        return paint_layers(images, pixels, patch_painter(options, patches, mask, bend))
    return paint(Layers(images, to_source, patches, mask, alpha), painted, rule, batched=batched)
