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
from warpkit.engine.backends.cpu.objects.autograd import (
    array_of,
    as_tensors,
    followed,
    reference_vjp,
)
from warpkit.engine.compositing.rectangles import Rectangles
from warpkit.engine.sampling.rules import SamplingRule

BANDS = 4
"""Pieces of the images' gradient that threads can share. An object on the line between two bands of
an image is gone through for both."""

Plain = Callable[[Tensor, Tensor, Tensor], Tensor]


def compiled(images: Tensor, *others: Tensor) -> bool:
    """Whether kernels can be called."""
    return images.device.type == "cpu" and is_eager(images, *others) and cpu.has_kernels()


def supports(images: Tensor, rule: SamplingRule) -> bool:
    """Whether the kernels can do this."""
    return rule == SamplingRule("bilinear", "constant") and compiled(images)


def paint(
    images: Tensor, to_source: Tensor, fill: Tensor, boxes: Rectangles, reference: Plain
) -> Tensor:
    """Objects over images (B, C, H, W), a later one over an earlier one; all read the original.

    to_source (N, 2, 3), float64; fill (C, 1 or N). `reference` is the same, of the first three, in
    plain torch.
    """
    return _Paint.apply(images, to_source, fill, boxes, reference)  # pyright: ignore


class _Paint(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        images: Tensor,
        to_source: Tensor,
        fill: Tensor,
        boxes: Rectangles,
        reference: Plain,
    ) -> Tensor:
        """Tensors as of `paint`."""
        from warpkit.engine.backends.cpu.memory import empty
        from warpkit.engine.backends.cpu.objects.opaque_kernels import (
            BAND,
            OpaquePlan,
            forward_kernel,
        )
        from warpkit.engine.backends.cpu.threads import run

        count, channels, height, width = images.shape
        order, starts = by_image(boxes, count)
        edges = torch.stack(boxes[1:], dim=1).numpy()
        top_object = empty(count * height * width, np.dtype(np.int32))
        bands = min(-(-BANDS // max(count, 1)), height)
        plan = OpaquePlan(channels, height, width, fill.shape[1], bands, True, True, True)
        ctx.save_for_backward(images, to_source, fill)
        ctx.plan, ctx.reference = plan, reference
        ctx.objects = (top_object, edges, order, starts)
        result = torch.from_numpy(empty(images.shape, array_of(images).dtype))
        arrays = (*map(array_of, (images, to_source, fill, result)), *ctx.objects, plan)
        kernel = forward_kernel()
        units = count * -(-height // BAND)
        run(lambda *unit_range: kernel(*arrays, *unit_range), units, result.numel())
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        saved, wanted = ctx.saved_tensors, ctx.needs_input_grad[:3]
        if followed(gradients):
            return *reference_vjp(ctx.reference, saved, wanted, gradients), None, None
        from warpkit.engine.backends.cpu.memory import empty
        from warpkit.engine.backends.cpu.objects.opaque_kernels import backward_kernel
        from warpkit.engine.backends.cpu.threads import run

        images, to_source, fill = saved
        plan = ctx.plan._replace(
            needs_grad_images=wanted[0], needs_grad_to_source=wanted[1], needs_grad_fill=wanted[2]
        )
        grad_images = empty(images.numel() if wanted[0] else 0, array_of(images).dtype)
        grad_to_source = np.zeros((len(to_source), 6))
        grad_fill = np.zeros((len(fill), len(to_source)))
        arrays = tuple(map(array_of, (*gradients, *saved)))
        work = (arrays, (grad_images, grad_to_source, grad_fill), ctx.objects, plan)
        kernel, units = backward_kernel(), len(images) * plan.bands
        run(lambda *unit_range: kernel(*work, *unit_range), units, images.numel())
        if plan.values == 1:
            with np.errstate(all="ignore"):  # infinities may meet: NaN without a warning
                grad_fill = grad_fill.sum(1, keepdims=True)
        return *as_tensors((grad_images, grad_to_source, grad_fill), saved, wanted), None, None


def by_image(boxes: Rectangles, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The objects by their image, each image's in order; and where each image's begin."""
    index = boxes.image.numpy()
    order = np.argsort(index, kind="stable")
    return order, np.searchsorted(index[order], np.arange(count + 1))
