"""Objects composited over images on a CPU, compiled by Numba: bilinear, nothing outside a source.

What `over.paint_layers` does with a patch painter, or with a window painter and a mask, in one
pass over the images and two back, without a list of pixels. Sums have one order for any number of
threads. Higher derivatives and forward mode are the plain path's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.backends.cpu.objects import opaque as windows_cpu
from warpkit.engine.backends.cpu.objects.autograd import array_of, as_tensors, followed, pull_plain
from warpkit.engine.backends.cpu.objects.opaque import by_image
from warpkit.engine.compositing.rectangles import Rectangles
from warpkit.engine.sampling.rules import Rule

GROUPS = 8
"""Sums of the gradient to what all objects share, which threads can work on side by side."""

Layers = tuple[Tensor, Tensor, Tensor | None, Tensor | None, Tensor | None]
"""images (B, C, H, W); inverse (N, 2 or 3, 3), float64, from pixels counted from the boxes'
corners; patches (N or 1, C, h, w), or None where objects show what the images have in their boxes;
mask (N or 1, 1, h, w), or (1, P) for the pixels of all boxes; opacity () or (N,)."""


def serves(rule: Rule, layers: Layers) -> bool:
    """Whether the kernels can do this."""
    if rule != Rule("bilinear", "constant"):
        return False
    return windows_cpu.compiled(*(layer for layer in layers if layer is not None))


def painted(
    rule: Rule, layers: Layers, boxes: Rectangles, reference: Callable[..., Tensor]
) -> Tensor:
    """`reference` of the layers, (B, C, H, W): by the compiled kernels where they can do it."""
    return blend(layers, boxes, reference) if serves(rule, layers) else reference(*layers)


def blend(layers: Layers, boxes: Rectangles, plain: Callable[..., Tensor]) -> Tensor:
    """Objects over images, a later one over an earlier one; all read the original.

    `plain` is the same, of the layers, in plain torch.
    """
    return _Blend.apply(*layers, boxes, plain)  # pyright: ignore


class _Blend(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        images: Tensor,
        inverse: Tensor,
        patches: Tensor | None,
        mask: Tensor | None,
        opacity: Tensor | None,
        boxes: Rectangles,
        plain: Callable[..., Tensor],
    ) -> Tensor:
        from warpkit.engine.backends.cpu.objects.composite_forward import (
            BAND,
            Blend,
            forward_kernel,
        )
        from warpkit.engine.backends.cpu.runtime.result_memory import empty
        from warpkit.engine.backends.cpu.runtime.threads import run

        count, channels, height, width = images.shape
        source = images if patches is None else patches
        scene = Blend(
            channels,
            height,
            width,
            plane=source.shape[-2:].numel(),
            line=source.shape[-1],
            masked=mask is not None,
            opacities=1 if opacity is None else opacity.numel(),
        )
        ctx.save_for_backward(images, inverse, patches, mask, opacity)
        ctx.scene, ctx.plain, ctx.image_of = scene, plain, boxes.image.numpy()
        ctx.places = _table(boxes, images, patches, mask), *by_image(boxes, count)
        given = _arrays(images, inverse, patches, mask, opacity)
        result = torch.from_numpy(empty(images.shape, given[0].dtype))
        arrays = (*given, array_of(result), *ctx.places, scene)
        kernel = forward_kernel(inverse.shape[-2])
        run(lambda *span: kernel(*arrays, *span), count * -(-height // BAND), result.numel())
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        saved, wanted = ctx.saved_tensors, ctx.needs_input_grad[:5]
        if followed(gradients):
            return *pull_plain(ctx.plain, saved, wanted, gradients), None, None
        return *as_tensors(_pull(ctx, gradients[0], saved, wanted), saved, wanted), None, None


@np.errstate(all="ignore")  # infinities may meet: NaN without a warning, as in torch
def _pull(ctx: Any, gradient: Tensor, saved: Layers, wanted: Sequence[bool]) -> Sequence[Any]:
    """The gradients to the layers; anything for one that is not wanted."""
    from warpkit.engine.backends.cpu.objects.composite_backward import (
        backward_kernel,
        through_kernel,
    )
    from warpkit.engine.backends.cpu.objects.composite_forward import BAND
    from warpkit.engine.backends.cpu.runtime.result_memory import empty
    from warpkit.engine.backends.cpu.runtime.simd import LANES
    from warpkit.engine.backends.cpu.runtime.threads import run

    images, inverse, patches, mask, _ = saved
    table, order, starts = ctx.places
    count, rows = inverse.shape[:2]
    upstream, (pixels, *others) = array_of(gradient), _arrays(*saved)
    dtype, visited = pixels.dtype, int(_areas(table).sum())
    one_patch = patches is not None and len(patches) < count
    one_mask = patches is not None and mask is not None and len(mask) < count
    to_patches = _sums(
        _packed(patches) if wanted[2] and patches is not None else (0,), one_patch, dtype
    )
    to_mask = _sums(mask.shape if wanted[3] and mask is not None else (0,), one_mask, dtype)
    scene = ctx.scene._replace(
        to_images=wanted[0],
        to_alpha=wanted[1] or wanted[3] or wanted[4],
        to_colour=wanted[0] if patches is None else wanted[2],
        to_mask=wanted[3],
        packed=patches is not None,
        colour_step=to_patches[0].size // LANES if one_patch else 0,
        mask_step=to_mask[0].size if one_mask else 0,
    )
    to_images = empty(images.numel() if wanted[0] else 0, dtype)
    passed, pull = empty(visited, dtype), empty(visited if scene.to_alpha else 0, dtype)
    through = through_kernel(rows)
    arrays = (upstream, pixels, *others, to_images, passed, pull, *ctx.places, scene)
    bands = len(images) * -(-scene.height // BAND)
    run(lambda *span: through(*arrays, *span), bands, images.numel())
    to_inverse, to_opacity = np.zeros((count, 9)), np.zeros(count)
    if scene.to_alpha or scene.to_colour:
        backward = backward_kernel(rows)
        source = to_images if patches is None else to_patches
        groups = starts if patches is None else _groups(table, order)
        sums = to_inverse, source.reshape(-1), to_mask.reshape(-1), to_opacity
        work = (upstream, *others, passed, pull, *sums, table, ctx.image_of, order, groups, scene)
        run(lambda *span: backward(*work, *span), len(groups) - 1, visited * scene.channels)
    if scene.opacities == 1:
        to_opacity = to_opacity.sum(keepdims=True)
    to_inverse = to_inverse[:, : 3 * rows].copy()
    to_patches = to_patches.sum(0)
    if wanted[2]:
        to_patches = _unpacked(to_patches, ctx.scene.channels)
    return to_images, to_inverse, to_patches, to_mask.sum(0), to_opacity


def _sums(shape: Sequence[int], shared: bool, dtype: np.dtype) -> np.ndarray:
    """Zeros to add to: for each group where objects share them, else once."""
    return np.zeros((GROUPS if shared else 1, *shape), dtype)


def _packed(patches: Tensor) -> tuple[int, ...]:
    """The shape of patches with four channels side by side."""
    from warpkit.engine.backends.cpu.runtime.simd import LANES

    count, channels, height, width = patches.shape
    return count, -(-channels // LANES), height, width, LANES


def _unpacked(packed: np.ndarray, channels: int) -> np.ndarray:
    """(N, C, h, w) again, without the channels that fill up."""
    count, quads, height, width, lanes = packed.shape
    planes = np.moveaxis(packed, -1, 2).reshape(count, quads * lanes, height, width)
    return planes[:, :channels].copy()


def _arrays(
    images: Tensor,
    inverse: Tensor,
    patches: Tensor | None,
    mask: Tensor | None,
    opacity: Tensor | None,
) -> tuple[np.ndarray, ...]:
    """The layers' numbers: nothing for no mask, and 1 for no opacity."""
    pixels = array_of(images)
    colour = pixels if patches is None else array_of(patches)
    cover = pixels[:0] if mask is None else array_of(mask)
    full = np.ones(1, pixels.dtype) if opacity is None else array_of(opacity)
    return pixels, array_of(inverse), colour, cover, full


def _table(
    boxes: Rectangles, images: Tensor, patches: Tensor | None, mask: Tensor | None
) -> np.ndarray:
    """The objects as `blending.Item` has them, without their numbers."""
    table = np.empty((len(boxes.image), 9), np.int64)
    table[:, :4] = torch.stack(boxes[1:], dim=1).numpy()
    area, number = _areas(table), np.arange(len(table))
    table[:, 8] = np.cumsum(area) - area
    if patches is None:
        _, channels, height, width = images.shape
        rows = boxes.image.numpy() * (channels * height) + table[:, 1]
        table[:, 4] = rows * width + table[:, 0]
        table[:, 5], table[:, 6] = table[:, 3] - table[:, 1], table[:, 2] - table[:, 0]
        table[:, 7] = table[:, 8]
        return table
    size = patches.shape[-2:]
    table[:, 4] = number * (patches.shape[1] * size.numel() if len(patches) > 1 else 0)
    table[:, 5:7] = size
    table[:, 7] = number * (size.numel() if mask is not None and len(mask) > 1 else 0)
    return table


def _areas(table: np.ndarray) -> np.ndarray:
    """The pixels of every object's box."""
    return (table[:, 2] - table[:, 0]) * (table[:, 3] - table[:, 1])


def _groups(table: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Where runs of objects begin that have about as many pixels each."""
    done = np.cumsum(_areas(table)[order])
    total = done[-1] if len(done) else 0
    inner = np.searchsorted(done, np.arange(1, GROUPS) * total // GROUPS)
    return np.array([0, *inner, len(order)])
