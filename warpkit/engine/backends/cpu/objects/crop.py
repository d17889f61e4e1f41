"""Crops on a CPU by the native library's warps, which read each image in place.

Higher derivatives are the plain path's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from warpkit.core.tracing import is_eager
from warpkit.engine.backends.cpu.objects.autograd import followed, reference_vjp
from warpkit.engine.backends.cpu.objects.opaque import Plain
from warpkit.engine.sampling.rules import SamplingRule


def compiled(images: Tensor) -> bool:
    """Whether the library can be called."""
    if images.device.type != "cpu" or not is_eager(images):
        return False
    from warpkit.engine.backends.cpu.opened import LIBRARY

    return LIBRARY is not None


def crop(
    images: Tensor,
    to_source: Tensor,
    fill: Tensor,
    index: Tensor,
    size: Sequence[int],
    rule: SamplingRule,
    reference: Plain,
) -> Tensor:
    """(N, C, h, w): images[index] under affine maps.

    images (B, C, H, W); to_source (N, 2, 3), float64, output -> source; fill (1 or N, 1 or C, 1,
    1); index (N,), within the images. `reference` is the same, of the first three, in plain torch.
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
        from warpkit.engine.backends.cpu.launch import forward

        ctx.save_for_backward(images, to_source, fill)
        ctx.call, ctx.reference = (size, rule, index.contiguous().numpy()), reference
        size, rule, image_of = ctx.call
        return forward(images, to_source, fill, size, rule, image_of)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        saved, wanted = ctx.saved_tensors, ctx.needs_input_grad[:3]
        if followed(gradients):
            return *reference_vjp(ctx.reference, saved, wanted, gradients), *(None,) * 4
        from warpkit.engine.backends.cpu.launch import backward

        size, rule, image_of = ctx.call
        images, to_source, fill = saved
        found = backward(gradients[0], images, to_source, fill, size, rule, wanted, image_of)
        return (
            *(g if want else None for g, want in zip(found, wanted, strict=True)),
            *(None,) * 4,
        )
