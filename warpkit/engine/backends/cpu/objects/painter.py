"""Objects painted over images by the native library: bilinear, nothing outside a source.

What `over.paint_topmost` does for opaque objects, and `over.paint_layers` for those with a
coverage, in one pass over the images and two back, without a list of pixels. Sums have one order
for any number of threads. Higher derivatives and forward mode are the plain path's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit.core.tracing import is_eager
from warpkit.engine.backends.cpu.memory import empty
from warpkit.engine.backends.cpu.objects.autograd import as_tensors, followed, reference_vjp
from warpkit.engine.backends.cpu.objects.calls import BAND, Objects, launch, objects_of
from warpkit.engine.compositing.layers import Layers, Plain
from warpkit.engine.compositing.rectangles import Rectangles, Rows
from warpkit.engine.sampling.rules import SamplingRule

GROUPS = 8
"""Sums of the gradient to what all objects share, which threads can work on side by side."""

BANDS = 4
"""Pieces of the images' gradient that threads can share. An object on the line between two bands of
an image is gone through for both."""

QUAD = 4
"""Channels that lie side by side in the sums of the gradient to patches, and to images."""

PACKED = 3
"""Channels from which on images have such sums, too: one addition for four, but a pass more."""


def paint(
    layers: Layers,
    boxes: Rectangles,
    rule: SamplingRule,
    reference: Plain,
    rows: Rows | None = None,
) -> Tensor:
    """As `ObjectsBackend.paint`."""
    if rule != SamplingRule("bilinear", "constant"):
        return reference(*layers)
    if not is_eager(*(layer for layer in layers if layer is not None)):
        return reference(*layers)
    return _Paint.apply(*layers, boxes, rows, reference)  # pyright: ignore


class _Paint(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        images: Tensor,
        to_source: Tensor,
        patches: Tensor | None,
        mask: Tensor | None,
        opacity: Tensor | None,
        fill: Tensor | None,
        boxes: Rectangles,
        rows: Rows | None,
        reference: Plain,
    ) -> Tensor:
        """Tensors as of `Layers`."""
        layers = Layers(images, to_source, patches, mask, opacity, fill)
        ctx.save_for_backward(*layers)
        layers = _dense(layers)
        ctx.objects, ctx.reference = objects_of(layers, boxes, rows), reference
        count, _, height, width = images.shape
        ctx.top_object = empty(0 if fill is None else count * height * width, np.dtype(np.int32))
        result = torch.from_numpy(empty(images.shape, _numpy(images)))
        arrays = {"out": result, "top_object": ctx.top_object}
        launch("paint", layers, ctx.objects, arrays, {}, _units(images), result.numel())
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        saved, wanted = ctx.saved_tensors, ctx.needs_input_grad[:6]
        if followed(gradients):
            return *reference_vjp(ctx.reference, saved, wanted, gradients), None, None, None
        layers = _dense(Layers(*saved))
        sums = _vjp(gradients[0].contiguous(), layers, ctx.objects, ctx.top_object, wanted)
        return *as_tensors(sums, saved, wanted), None, None, None


@np.errstate(all="ignore")  # infinities may meet: NaN without a warning, as in torch
def _vjp(
    gradient: Tensor,
    layers: Layers,
    objects: Objects,
    top_object: np.ndarray,
    wanted: Sequence[bool],
) -> Sequence[np.ndarray]:
    """The gradients to the layers; anything for one that is not wanted."""
    images, to_source, patches, mask, opacity, fill = layers
    count, rows = to_source.shape[:2]
    dtype, windows = _numpy(images), patches is None
    grad_images = empty(images.numel() if wanted[0] else 0, dtype)
    grad_patches, colour_step = _sums(
        _packed(patches.shape) if wanted[2] and patches is not None else None, count, dtype
    )
    colour, packed = grad_patches, not windows or images.shape[1] >= PACKED
    if windows and wanted[0]:
        colour = empty(_packed(images.shape), dtype) if packed else grad_images
    grad_mask, mask_step = _sums(mask.shape if wanted[3] and mask is not None else None,
                                 1 if windows else count, dtype)  # fmt: skip
    grad_to_source, grad_opacity = np.zeros((count, 9)), np.zeros(count)
    grad_fill = np.zeros((images.shape[1], count))
    needs_alpha = wanted[1] or wanted[3] or wanted[4]
    visited = 0 if fill is not None else int(objects.areas.sum())
    groups = _groups(objects)
    arrays = {
        "grad": gradient, "top_object": top_object, "groups": groups,
        "grad_images": grad_images, "grad_to_source": grad_to_source,
        "grad_colour": colour, "grad_mask": grad_mask,
        "grad_opacity": grad_opacity, "grad_fill": grad_fill,
        "passed": empty(visited, dtype), "alpha_grad": empty(visited * needs_alpha, dtype),
    }  # fmt: skip
    bands = min(-(-BANDS // max(len(images), 1)), images.shape[2]) if windows else 0
    options = {
        "needs_images": wanted[0], "needs_alpha": needs_alpha,
        "needs_colour": wanted[0] if windows else wanted[2], "needs_mask": wanted[3],
        "needs_fill": wanted[5], "bands": bands, "packed": packed,
        "colour_step": colour_step, "mask_step": mask_step,
    }  # fmt: skip
    if wanted[0] or fill is None:
        work = _units(images), images.numel()
        launch("let_through", layers, objects, arrays, options, *work)
    if needs_alpha or options["needs_colour"] or wanted[5]:
        units = len(images) * bands if windows else len(groups) - 1
        values = images.numel() if fill is not None else visited * images.shape[1]
        launch("paint_backward", layers, objects, arrays, options, units, values)
    return (
        grad_images,
        grad_to_source[:, : 3 * rows].copy(),
        _unpacked(grad_patches.sum(0), images.shape[1]) if wanted[2] else grad_patches,
        grad_mask.sum(0),
        _shared(grad_opacity, opacity is None or not opacity.ndim),
        _shared(grad_fill, fill is None or fill.shape[1] == 1),
    )


def _dense(layers: Layers) -> Layers:
    """The same numbers, each tensor in one piece."""
    return Layers(*(None if t is None else t.detach().contiguous() for t in layers))  # pyright: ignore


def _numpy(images: Tensor) -> np.dtype:
    """The type of the images' numbers."""
    return np.dtype(np.float32 if images.dtype == torch.float32 else np.float64)


def _units(images: Tensor) -> int:
    """Bands of BAND rows of all images."""
    return len(images) * -(-images.shape[2] // BAND)


def _shared(sums: np.ndarray, by_all: bool) -> np.ndarray:
    """Sums for each object, or added up where all share what they are of."""
    return sums.sum(-1, keepdims=True) if by_all else sums


def _sums(shape: Sequence[int] | None, count: int, dtype: np.dtype) -> tuple[np.ndarray, int]:
    """Zeros to add to, and the step from one group's to the next, 0 where they share one.

    shape: of what the gradient is to, None where it is not wanted; count: of objects.
    """
    shape = (0,) if shape is None else tuple(shape)
    shared = shape[0] < count and len(shape) > 1
    sums = np.zeros((GROUPS if shared else 1, *shape), dtype)
    return sums, sums[0].size if shared else 0


def _packed(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of images with four channels side by side."""
    count, channels, height, width = shape
    return count, -(-channels // QUAD), height, width, QUAD


def _unpacked(packed: np.ndarray, channels: int) -> np.ndarray:
    """(N, C, h, w) again, without the channels that fill up."""
    count, quads, height, width, lanes = packed.shape
    planes = np.moveaxis(packed, -1, 2).reshape(count, quads * lanes, height, width)
    return planes[:, :channels].copy()


def _groups(objects: Objects) -> np.ndarray:
    """Where runs of objects begin that have about as many pixels each."""
    done = np.cumsum(objects.areas[objects.order])
    total = done[-1] if len(done) else 0
    inner = np.searchsorted(done, np.arange(1, GROUPS) * total // GROUPS)
    return np.array([0, *inner, len(objects.order)])
