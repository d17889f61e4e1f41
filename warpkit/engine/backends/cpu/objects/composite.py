"""Objects composited over images on a CPU, compiled by Numba: bilinear, nothing outside a source.

What `over.paint_layers` does with a patch painter, or with a window painter and a mask, in one
pass over the images and two back, without a list of pixels. Sums have one order for any number of
threads. Higher derivatives and forward mode are the plain path's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.backends.cpu.objects import opaque as opaque
from warpkit.engine.backends.cpu.objects.autograd import (
    array_of,
    as_tensors,
    followed,
    reference_vjp,
)
from warpkit.engine.backends.cpu.objects.opaque import by_image
from warpkit.engine.compositing.rectangles import Rectangles
from warpkit.engine.sampling.rules import SamplingRule

GROUPS = 8
"""Sums of the gradient to what all objects share, which threads can work on side by side."""


class Layers(NamedTuple):
    """What is composited over images, in the order of the gradients."""

    images: Tensor
    """(B, C, H, W)."""
    to_source: Tensor
    """(N, 2 or 3, 3), float64: from pixels counted from the boxes' corners."""
    patches: Tensor | None
    """(N or 1, C, h, w), or None where objects show what the images have in their boxes."""
    mask: Tensor | None
    """(N or 1, 1, h, w), or (1, P) for the pixels of all boxes."""
    opacity: Tensor | None
    """() or (N,)."""


def supports(rule: SamplingRule, layers: Layers) -> bool:
    """Whether the kernels can do this."""
    if rule != SamplingRule("bilinear", "constant"):
        return False
    return opaque.compiled(*(layer for layer in layers if layer is not None))


def painted(
    rule: SamplingRule, layers: Layers, boxes: Rectangles, reference: Callable[..., Tensor]
) -> Tensor:
    """Objects over images, a later one over an earlier one; all read the original. (B, C, H, W).

    `reference` is the same, of the layers, in plain torch: for what the kernels cannot do.
    """
    if not supports(rule, layers):
        return reference(*layers)
    return _Composite.apply(*layers, boxes, reference)  # pyright: ignore


class _Composite(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        images: Tensor,
        to_source: Tensor,
        patches: Tensor | None,
        mask: Tensor | None,
        opacity: Tensor | None,
        boxes: Rectangles,
        reference: Callable[..., Tensor],
    ) -> Tensor:
        """Tensors as of `Layers`."""
        from warpkit.engine.backends.cpu.memory import empty
        from warpkit.engine.backends.cpu.objects.composite_forward import (
            BAND,
            CompositePlan,
            forward_kernel,
        )
        from warpkit.engine.backends.cpu.threads import run

        count, channels, height, width = images.shape
        source = images if patches is None else patches
        plan = CompositePlan(
            channels,
            height,
            width,
            plane=source.shape[-2:].numel(),
            line=source.shape[-1],
            masked=mask is not None,
            opacities=1 if opacity is None else opacity.numel(),
        )
        ctx.save_for_backward(images, to_source, patches, mask, opacity)
        ctx.plan, ctx.reference, ctx.image_of = plan, reference, boxes.image.numpy()
        ctx.objects = _records(boxes, images, patches, mask), *by_image(boxes, count)
        inputs = _arrays(Layers(images, to_source, patches, mask, opacity))
        result = torch.from_numpy(empty(images.shape, inputs[0].dtype))
        arrays = (*inputs, array_of(result), *ctx.objects, plan)
        kernel = forward_kernel(to_source.shape[-2])
        bands = count * -(-height // BAND)
        run(lambda *unit_range: kernel(*arrays, *unit_range), bands, result.numel())
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        saved, wanted = ctx.saved_tensors, ctx.needs_input_grad[:5]
        if followed(gradients):
            return *reference_vjp(ctx.reference, saved, wanted, gradients), None, None
        return (
            *as_tensors(_vjp(ctx, gradients[0], Layers(*saved), wanted), saved, wanted),
            None,
            None,
        )


@np.errstate(all="ignore")  # infinities may meet: NaN without a warning, as in torch
def _vjp(ctx: Any, gradient: Tensor, saved: Layers, wanted: Sequence[bool]) -> Sequence[Any]:
    """The gradients to the layers; anything for one that is not wanted."""
    from warpkit.engine.backends.cpu.memory import empty
    from warpkit.engine.backends.cpu.objects.composite_backward import (
        backward_kernel,
        through_kernel,
    )
    from warpkit.engine.backends.cpu.objects.composite_forward import BAND
    from warpkit.engine.backends.cpu.runtime.simd import CHANNELS_PER_VECTOR
    from warpkit.engine.backends.cpu.threads import run

    images, to_source, patches, mask, _ = saved
    table, order, starts = ctx.objects
    count, rows = to_source.shape[:2]
    upstream, (pixels, *others) = array_of(gradient), _arrays(saved)
    dtype, visited = pixels.dtype, int(_areas(table).sum())
    one_patch = patches is not None and len(patches) < count
    one_mask = patches is not None and mask is not None and len(mask) < count
    grad_patches = _sums(
        _packed(patches) if wanted[2] and patches is not None else (0,), one_patch, dtype
    )
    grad_mask = _sums(mask.shape if wanted[3] and mask is not None else (0,), one_mask, dtype)
    plan = ctx.plan._replace(
        needs_grad_images=wanted[0],
        needs_grad_alpha=wanted[1] or wanted[3] or wanted[4],
        needs_grad_colour=wanted[0] if patches is None else wanted[2],
        needs_grad_mask=wanted[3],
        packed=patches is not None,
        colour_step=grad_patches[0].size // CHANNELS_PER_VECTOR if one_patch else 0,
        mask_step=grad_mask[0].size if one_mask else 0,
    )
    grad_images = empty(images.numel() if wanted[0] else 0, dtype)
    passed = empty(visited, dtype)
    alpha_grad = empty(visited if plan.needs_grad_alpha else 0, dtype)
    through = through_kernel(rows)
    arrays = (upstream, pixels, *others), grad_images, passed, alpha_grad, ctx.objects, plan
    bands = len(images) * -(-plan.height // BAND)
    run(lambda *unit_range: through(*arrays, *unit_range), bands, images.numel())
    grad_to_source, grad_opacity = np.zeros((count, 9)), np.zeros(count)
    if plan.needs_grad_alpha or plan.needs_grad_colour:
        backward = backward_kernel(rows)
        source = grad_images if patches is None else grad_patches
        groups = starts if patches is None else _groups(table, order)
        grads = grad_to_source, source.reshape(-1), grad_mask.reshape(-1), grad_opacity
        objects = table, ctx.image_of, order, groups
        work = (upstream, *others), passed, alpha_grad, grads, objects, plan
        values = visited * plan.channels
        run(lambda *unit_range: backward(*work, *unit_range), len(groups) - 1, values)
    if plan.opacities == 1:
        grad_opacity = grad_opacity.sum(keepdims=True)
    grad_to_source = grad_to_source[:, : 3 * rows].copy()
    grad_patches = grad_patches.sum(0)
    if wanted[2]:
        grad_patches = _unpacked(grad_patches, ctx.plan.channels)
    return grad_images, grad_to_source, grad_patches, grad_mask.sum(0), grad_opacity


def _sums(shape: Sequence[int], shared: bool, dtype: np.dtype) -> np.ndarray:
    """Zeros to add to: for each group where objects share them, else once."""
    return np.zeros((GROUPS if shared else 1, *shape), dtype)


def _packed(patches: Tensor) -> tuple[int, ...]:
    """The shape of patches with four channels side by side."""
    from warpkit.engine.backends.cpu.runtime.simd import CHANNELS_PER_VECTOR

    count, channels, height, width = patches.shape
    return count, -(-channels // CHANNELS_PER_VECTOR), height, width, CHANNELS_PER_VECTOR


def _unpacked(packed: np.ndarray, channels: int) -> np.ndarray:
    """(N, C, h, w) again, without the channels that fill up."""
    count, quads, height, width, lanes = packed.shape
    planes = np.moveaxis(packed, -1, 2).reshape(count, quads * lanes, height, width)
    return planes[:, :channels].copy()


def _arrays(layers: Layers) -> tuple[np.ndarray, ...]:
    """The layers' numbers: nothing for no mask, and 1 for no opacity."""
    pixels = array_of(layers.images)
    colour = pixels if layers.patches is None else array_of(layers.patches)
    cover = pixels[:0] if layers.mask is None else array_of(layers.mask)
    full = np.ones(1, pixels.dtype) if layers.opacity is None else array_of(layers.opacity)
    return pixels, array_of(layers.to_source), colour, cover, full


def _records(
    boxes: Rectangles, images: Tensor, patches: Tensor | None, mask: Tensor | None
) -> np.ndarray:
    """The objects as `composite_forward.PaintedObject` has them; tensors as of `Layers`."""
    from warpkit.engine.backends.cpu.objects.composite_forward import RECORD

    table = np.empty(len(boxes.image), RECORD)
    for name in ("left", "top", "right", "bottom"):
        table[name] = getattr(boxes, name).numpy()
    area, number = _areas(table), np.arange(len(table))
    table["first"] = np.cumsum(area) - area
    if patches is None:
        _, channels, height, width = images.shape
        rows = boxes.image.numpy() * (channels * height) + table["top"]
        table["source_start"] = rows * width + table["left"]
        table["height"] = table["bottom"] - table["top"]
        table["width"] = table["right"] - table["left"]
        table["cover"] = table["first"]
        return table
    size = patches.shape[-2:]
    step = patches.shape[1] * size.numel() if len(patches) > 1 else 0
    table["source_start"] = number * step
    table["height"], table["width"] = size
    table["cover"] = number * (size.numel() if mask is not None and len(mask) > 1 else 0)
    return table


def _areas(table: np.ndarray) -> np.ndarray:
    """The pixels of every object's box."""
    return (table["right"] - table["left"]) * (table["bottom"] - table["top"])


def _groups(table: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Where runs of objects begin that have about as many pixels each."""
    done = np.cumsum(_areas(table)[order])
    total = done[-1] if len(done) else 0
    inner = np.searchsorted(done, np.arange(1, GROUPS) * total // GROUPS)
    return np.array([0, *inner, len(order)])
