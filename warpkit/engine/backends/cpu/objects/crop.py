"""Crops on a CPU by the native library's warps, which read each image in place.

Higher derivatives are the plain path's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from warpkit.engine.backends.cpu import launch
from warpkit.engine.backends.cpu.objects.autograd import followed, reference_vjp
from warpkit.engine.compositing.layers import Plain
from warpkit.engine.sampling.rules import SamplingRule


def crop(
    images: Tensor,
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
    return _Crop.apply(images, to_source, fill, index, size, rule, reference)  # pyright: ignore


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
