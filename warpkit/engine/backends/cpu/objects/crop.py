"""Crops on a CPU by the native library's warps, which read each image in place.

Higher derivatives are the plain path's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from warpkit.engine.backends.cpu import image_lists, launch
from warpkit.engine.backends.cpu.objects.autograd import followed, reference_vjp
from warpkit.engine.compositing.layers import Plain
from warpkit.engine.sampling.rules import SamplingRule


def crop(
    images: Tensor | Sequence[Tensor],
    to_source: Tensor,
    fill: Tensor,
    index: Tensor,
    size: Sequence[int],
    rule: SamplingRule,
    reference: Plain,
) -> Tensor:
    """As `ObjectsBackend.crop`.

    Shapes as there.
    """
    given = to_source, fill, index, size, rule, reference
    if isinstance(images, Tensor):
        return _Crop.apply(images, *given)  # pyright: ignore
    return _CropOfList.apply(*given, *images)  # pyright: ignore


class _Crop(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        images: Tensor,
        to_source: Tensor,
        fill: Tensor,
        index: Tensor,
        size: Sequence[int],
        rule: SamplingRule,
        reference: Plain,
    ) -> Tensor:
        """Tensors as of `crop`."""
        ctx.save_for_backward(images, to_source, fill)
        ctx.call, ctx.reference = (size, rule, index.contiguous().numpy()), reference
        size, rule, image_of = ctx.call
        return launch.forward(images, to_source, fill, size, rule, image_of)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        saved, wanted = ctx.saved_tensors, ctx.needs_input_grad[:3]
        if followed(gradients):
            return *reference_vjp(ctx.reference, saved, wanted, gradients), *(None,) * 4
        size, rule, image_of = ctx.call
        images, to_source, fill = saved
        found = launch.backward(gradients[0], images, to_source, fill, size, rule, wanted, image_of)
        return (
            *(g if want else None for g, want in zip(found, wanted, strict=True)),
            *(None,) * 4,
        )


class _CropOfList(torch.autograd.Function):
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
        """Tensors as of `crop`; images (C, H_i, W_i)."""
        ctx.save_for_backward(to_source, fill, *images)
        ctx.call, ctx.reference = (size, rule, index.contiguous().numpy()), reference
        return image_lists.forward(images, to_source, fill, *ctx.call)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        saved, wanted = ctx.saved_tensors, ctx.needs_input_grad
        if followed(gradients):

            def reference(to_source: Tensor, fill: Tensor, *images: Tensor) -> Tensor:
                """Tensors as of `crop`."""
                return ctx.reference(images, to_source, fill)

            chosen = (*wanted[:2], *wanted[6:])
            found = reference_vjp(reference, saved, chosen, gradients)
            return *found[:2], *(None,) * 4, *found[2:]
        size, rule, image_of = ctx.call
        to_source, fill, *images = saved
        needs = any(wanted[6:]), wanted[0], wanted[1]
        to_images, *others = image_lists.backward(
            gradients[0], images, to_source, fill, size, rule, needs, image_of
        )
        to_images = to_images or [None] * len(images)
        return (
            *(g if want else None for g, want in zip(others, wanted[:2], strict=True)),
            *(None,) * 4,
            *(g if want else None for g, want in zip(to_images, wanted[6:], strict=True)),
        )
