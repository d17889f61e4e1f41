"""Patches pasted on images, each under a matrix of its own, in order."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from warpkit.core.caller_warnings import warn_of_integers
from warpkit.core.sharding import objects
from warpkit.engine.backends.cpu.objects import composite
from warpkit.engine.compositing import source_maps as frames
from warpkit.engine.compositing.over import paint_layers
from warpkit.engine.compositing.rectangles import pixels_of
from warpkit.engine.compositing.sources import (
    Paint,
    patch_painter,
)
from warpkit.engine.sampling.maps import inverse_map
from warpkit.patches import arguments as given
from warpkit.warp import check_nearest, named_rule


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

    >>> import torch
    >>> patch = torch.ones(1, 1, 2)
    >>> paste_patches(torch.zeros(1, 2, 4), patch, [[[1, 0, 1.5], [0, 1, 0]]], None)
    tensor([[[0.0000, 0.5000, 1.0000, 0.5000],
             [0.0000, 0.0000, 0.0000, 0.0000]]])
    """
    name = "paste_patches"
    data = given.canvas(name, images)
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

    layers = (data.batch, inverse, patches, mask, alpha)
    return data.restore(composite.painted(rule, layers, places, plain))
