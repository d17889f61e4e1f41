"""Crops on a CPU with the native library's warps, which read each image directly.

Higher derivatives come from plain torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from warpkit.engine.backends.cpu import image_lists, launch
from warpkit.engine.backends.cpu.objects.autograd import followed, reference_vjp, together
from warpkit.engine.compositing.canvases import Images, listed
from warpkit.engine.compositing.layers import Plain
from warpkit.engine.sampling.rules import SamplingRule


def crop(
    images: Images,
    to_source: Tensor,
    fill: Tensor,
    index: Tensor,
    size: Sequence[int],
    rule: SamplingRule,
    reference: Plain,
) -> Tensor:
    """As `ObjectsBackend.crop`.

    Shapes as in that function.
    """
    given = to_source, fill, index, size, rule, reference
    return _Crop.apply(*given, *listed(images))  # pyright: ignore


class _Crop(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        to_source: Tensor,
        fill: Tensor,
        index: Tensor,
        size: Sequence[int],
        rule: SamplingRule,
        reference: Plain,
        *images: Tensor,
    ) -> Tensor:
        """Tensors as in `crop`; images are a batch or a list."""
        ctx.save_for_backward(to_source, fill, *images)
        ctx.call, ctx.reference = (size, rule, index.contiguous().numpy()), reference
        size, rule, image_of = ctx.call
        if images[0].ndim == 4:
            return launch.forward(images[0], to_source, fill, size, rule, image_of)
        return image_lists.forward(images, to_source, fill, size, rule, image_of)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        saved, wanted = ctx.saved_tensors, ctx.needs_input_grad
        wanted = (*wanted[:2], *wanted[6:])
        if followed(gradients):

            def reference(to_source: Tensor, fill: Tensor, *images: Tensor) -> Tensor:
                """Tensors as in `crop`."""
                return ctx.reference(together(images), to_source, fill)

            found = reference_vjp(reference, saved, wanted, gradients)
        else:
            size, rule, image_of = ctx.call
            to_source, fill, *images = saved
            needs = any(wanted[2:]), *wanted[:2]
            given = to_source, fill, size, rule, needs, image_of
            if images[0].ndim == 4:
                to_images, *others = launch.backward(gradients[0], images[0], *given)
                found = *others, to_images
            else:
                to_images, *others = image_lists.backward(gradients[0], images, *given)
                found = *others, *(to_images or [None] * len(images))
        found = tuple(g if want else None for g, want in zip(found, wanted, strict=True))
        return *found[:2], *(None,) * 4, *found[2:]
