"""Opaque objects painted last on a CPU, compiled by Numba: bilinear, constant border.

What `over.paint_topmost` does with a window painter, in one pass over the images and one back,
without a list. Sums have one order for any number of threads. Higher derivatives and forward mode
are the plain path's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit.core.tracing import is_eager
from warpkit.engine.backends import cpu
from warpkit.engine.backends.cpu.objects.autograd import array_of, as_tensors, followed, pull_plain
from warpkit.engine.compositing.rectangles import Rectangles
from warpkit.engine.sampling.rules import Rule

PARTS = 4
"""Pieces of the images' gradient that threads can share. An object on the line between two bands of
an image is gone through for both."""

Plain = Callable[[Tensor, Tensor, Tensor], Tensor]


def compiled(images: Tensor, *others: Tensor) -> bool:
    """Whether kernels can be called."""
    return cpu.HAS_NUMBA and images.device.type == "cpu" and is_eager(images, *others)


def serves(images: Tensor, rule: Rule) -> bool:
    """Whether the kernels can do this."""
    return rule == Rule("bilinear", "constant") and compiled(images)


def paint(
    images: Tensor, inverse: Tensor, outside: Tensor, boxes: Rectangles, plain: Plain
) -> Tensor:
    """Objects over images (B, C, H, W), a later one over an earlier one; all read the original.

    inverse (N, 2, 3), float64; outside (C, 1 or N). `plain` is the same, of the first three, in
    plain torch.
    """
    return _Paint.apply(images, inverse, outside, boxes, plain)  # pyright: ignore


class _Paint(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, images: Tensor, inverse: Tensor, outside: Tensor, boxes: Rectangles, plain: Plain
    ) -> Tensor:
        from warpkit.engine.backends.cpu.objects.opaque_kernels import BAND, Scene, forward_kernel
        from warpkit.engine.backends.cpu.runtime.result_memory import empty
        from warpkit.engine.backends.cpu.runtime.threads import run

        count, channels, height, width = images.shape
        order, starts = by_image(boxes, count)
        edges = torch.stack(boxes[1:], dim=1).numpy()
        shown = empty(count * height * width, np.dtype(np.int32))
        parts = min(-(-PARTS // max(count, 1)), height)
        scene = Scene(channels, height, width, outside.shape[1], parts, True, True, True)
        ctx.save_for_backward(images, inverse, outside)
        ctx.scene, ctx.plain, ctx.places = scene, plain, (shown, edges, order, starts)
        result = torch.from_numpy(empty(images.shape, array_of(images).dtype))
        arrays = (*map(array_of, (images, inverse, outside, result)), *ctx.places, scene)
        kernel = forward_kernel()
        run(lambda *span: kernel(*arrays, *span), count * -(-height // BAND), result.numel())
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        saved, wanted = ctx.saved_tensors, ctx.needs_input_grad[:3]
        if followed(gradients):
            return *pull_plain(ctx.plain, saved, wanted, gradients), None, None
        from warpkit.engine.backends.cpu.objects.opaque_kernels import backward_kernel
        from warpkit.engine.backends.cpu.runtime.result_memory import empty
        from warpkit.engine.backends.cpu.runtime.threads import run

        images, inverse, outside = saved
        scene = ctx.scene._replace(to_images=wanted[0], to_inverse=wanted[1], to_outside=wanted[2])
        to_images = empty(images.numel() if wanted[0] else 0, array_of(images).dtype)
        to_inverse = np.zeros((len(inverse), 6))
        to_outside = np.zeros((len(outside), len(inverse)))
        arrays = (*map(array_of, (*gradients, *saved)), to_images, to_inverse, to_outside)
        kernel, units = backward_kernel(), len(images) * scene.parts
        work = (*arrays, *ctx.places, scene)
        run(lambda *span: kernel(*work, *span), units, images.numel())
        if scene.values == 1:
            with np.errstate(all="ignore"):  # infinities may meet: NaN without a warning
                to_outside = to_outside.sum(1, keepdims=True)
        return *as_tensors((to_images, to_inverse, to_outside), saved, wanted), None, None


def by_image(boxes: Rectangles, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The objects by their image, each image's in order; and where each image's begin."""
    index = boxes.image.numpy()
    order = np.argsort(index, kind="stable")
    return order, np.searchsorted(index[order], np.arange(count + 1))
