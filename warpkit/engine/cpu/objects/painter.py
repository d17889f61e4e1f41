"""Paints objects over images in the native library: bilinear, constant border.

It does the same as `over.paint_topmost` for opaque objects and `over.paint_layers` for objects with
coverage: in one pass over the images, and in two for gradients, without a list of pixels. Sums have
the same order for any number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.cpu.memory import empty
from warpkit.engine.cpu.objects.calls import (
    Objects,
    enter,
    launch,
    objects_of,
    painted_of,
)
from warpkit.engine.definitions.layout import is_channels_last
from warpkit.engine.definitions.objects.canvases import Images, listed, together
from warpkit.engine.definitions.objects.objects import Layers
from warpkit.engine.operators.objects import Paint

GROUPS = 8
"""Partial sums of the gradient to data that all objects share, so threads can work in parallel."""

BANDS = 4
"""The number of bands of the images' gradient, which threads can share. An object on the edge of
two bands is processed for both."""

QUAD = 4
"""Channels that are adjacent in the sums of the gradient to patches."""


def forward(options: Paint, *tensors: Tensor) -> tuple[Images, tuple[Objects, np.ndarray]]:
    """As `objects.paint`; and the objects, and the topmost one of each pixel."""
    layers = _dense(options.named(tensors))
    images = listed(layers.images)
    painted, objects = painted_of(images), objects_of(layers, options.boxes, options.rows)
    top_object = empty(0 if layers.fill is None else painted.pixels, np.dtype(np.int32))
    last = options.batched and is_channels_last(images[0][:1])
    results = tuple(_result(image, last) for image in images)
    painted.table["out_step"] = painted.channels if last else 1
    painted.table["top_object"] = painted.begins * 4
    bases = {
        "images": enter(painted, "pixels", images), "out": enter(painted, "out", results),
    }  # fmt: skip
    work = len(painted.image_of_unit), painted.pixels * painted.channels
    launch("paint", layers, painted, objects, {"top_object": top_object}, bases, *work)
    return together(results), (objects, top_object)


def backward(
    options: Paint,
    kept: tuple[Objects, np.ndarray],
    grads: Sequence[Tensor],
    tensors: Sequence[Tensor],
    wanted: Sequence[bool],
) -> Sequence[Tensor | None]:
    """The gradients to the operator's tensors: see `PAINT`."""
    named = dict(zip(options.layers, wanted, strict=False))
    of_images = wanted[len(options.layers) :]
    needs = [*(named.get(name, False) for name in Layers._fields[1:]), *of_images]
    layers, dense = _dense(options.named(tensors)), [grad.contiguous() for grad in grads]
    sums = iter(_vjp(dense, layers, *kept, needs))
    totals = [total for layer, total in zip(layers[1:], sums, strict=False) if layer is not None]
    return [
        torch.from_numpy(total).reshape(tensor.shape).to(tensor.dtype) if want else None
        for total, tensor, want in zip((*totals, *sums), tensors, wanted, strict=True)
    ]


@np.errstate(all="ignore")  # infinities may meet: NaN without a warning, as in torch
def _vjp(
    gradients: Sequence[Tensor],
    layers: Layers,
    objects: Objects,
    top_object: np.ndarray,
    wanted: Sequence[bool],
) -> Sequence[np.ndarray]:
    """The gradients to the layers, with the images last; arbitrary values for those not needed.

    gradients: dense, of a batch or of each image in a list.
    """
    to_map, to_patches, to_mask, to_opacity, to_fill, *to_images = wanted
    to_images = any(to_images)
    images, to_source, patches, mask, opacity, fill = layers
    count, rows = to_source.shape[:2]
    dense = listed(images)
    painted, dtype, windows = painted_of(dense), _numpy(dense[0]), patches is None
    table, channels = painted.table, painted.channels
    grad_images = empty(painted.pixels * channels * to_images, dtype)
    grad_patches, colour_step = _sums(
        _packed(patches.shape) if to_patches and patches is not None else None, count, dtype
    )
    table["grad_images"] = painted.begins * (channels * dtype.itemsize)
    table["top_object"] = painted.begins * 4
    bases = {"images": enter(painted, "pixels", dense), "grad": enter(painted, "grad", gradients)}
    grad_mask, mask_step = _sums(mask.shape if to_mask and mask is not None else None,
                                 1 if windows else count, dtype)  # fmt: skip
    grad_to_source, grad_opacity = np.zeros((count, 9)), np.zeros(count)
    grad_fill = np.zeros((channels, count))
    needs_alpha = to_map or to_mask or to_opacity
    visited = 0 if fill is not None else int(objects.areas.sum())
    groups = _groups(objects)
    arrays = {
        "top_object": top_object, "groups": groups,
        "grad_images": grad_images, "grad_to_source": grad_to_source,
        "grad_colour": grad_patches, "grad_mask": grad_mask,
        "grad_opacity": grad_opacity, "grad_fill": grad_fill,
        "passed": empty(visited, dtype), "alpha_grad": empty(visited * needs_alpha, dtype),
    }  # fmt: skip
    bands = min([-(-BANDS // max(len(table), 1)), *table["height"].tolist()]) if windows else 0
    options = {
        **bases, "backward": 1, "needs_images": to_images, "needs_alpha": needs_alpha,
        "needs_colour": to_images if windows else to_patches, "needs_mask": to_mask,
        "needs_fill": to_fill, "bands": bands,
        "colour_step": colour_step, "mask_step": mask_step,
    }  # fmt: skip
    values = painted.pixels * channels
    if to_images or fill is None:
        work = len(painted.image_of_unit), values
        launch("let_through", layers, painted, objects, arrays, options, *work)
    if needs_alpha or options["needs_colour"] or to_fill:
        units = len(table) * bands if windows else len(groups) - 1
        values = values if fill is not None else visited * channels
        launch("paint_backward", layers, painted, objects, arrays, options, units, values)
    ends = (painted.begins * channels)[1:] if len(dense) > 1 else []
    return (
        grad_to_source[:, : 3 * rows].copy(),
        _unpacked(grad_patches.sum(0), channels) if to_patches else grad_patches,
        grad_mask.sum(0),
        _shared(grad_opacity, opacity is None or not opacity.ndim),
        _shared(grad_fill, fill is None or fill.shape[1] == 1),
        *np.split(grad_images, ends),
    )


def _dense(layers: Layers) -> Layers:
    """The same tensors, each dense except images."""
    images, *others = layers
    return Layers(images, *(None if t is None else t.contiguous() for t in others))  # pyright: ignore


def _result(image: Tensor, last: bool) -> Tensor:
    """Memory for the result of images, (C, H, W) or a batch; `last`: channels-last."""
    if not last:
        return torch.from_numpy(empty(image.shape, _numpy(image)))
    shape = image.movedim(-3, -1).shape
    return torch.from_numpy(empty(shape, _numpy(image))).movedim(-1, -3)


def _numpy(images: Tensor) -> np.dtype:
    """The numpy type of the images."""
    return np.dtype(np.float32 if images.dtype == torch.float32 else np.float64)


def _shared(sums: np.ndarray, by_all: bool) -> np.ndarray:
    """Sums per object, added up if all objects share the tensor."""
    return sums.sum(-1, keepdims=True) if by_all else sums


def _sums(shape: Sequence[int] | None, count: int, dtype: np.dtype) -> tuple[np.ndarray, int]:
    """Zeros to add to, and the offset between two groups, 0 if they share one.

    shape: that of the tensor, None if its gradient is not needed; count: of objects.
    """
    shape = (0,) if shape is None else tuple(shape)
    shared = shape[0] < count and len(shape) > 1
    sums = np.zeros((GROUPS if shared else 1, *shape), dtype)
    return sums, sums[0].size if shared else 0


def _packed(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of images with four adjacent channels."""
    count, channels, height, width = shape
    return count, -(-channels // QUAD), height, width, QUAD


def _unpacked(packed: np.ndarray, channels: int) -> np.ndarray:
    """The shape (N, C, h, w) again, without padding channels."""
    count, quads, height, width, lanes = packed.shape
    planes = np.moveaxis(packed, -1, 2).reshape(count, quads * lanes, height, width)
    return planes[:, :channels].copy()


def _groups(objects: Objects) -> np.ndarray:
    """The starts of groups of objects that have about equally many pixels."""
    done = np.cumsum(objects.areas[objects.order])
    total = done[-1] if len(done) else 0
    inner = np.searchsorted(done, np.arange(1, GROUPS) * total // GROUPS)
    return np.array([0, *inner, len(objects.order)])
