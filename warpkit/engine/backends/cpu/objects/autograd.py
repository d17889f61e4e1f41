"""Shared autograd functions of objects: gradients from kernels or from plain torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from warpkit.core.tracing import is_eager
from warpkit.engine.compositing.canvases import Images, listed


def followed(gradients: Sequence[Tensor]) -> bool:
    """Whether gradients are differentiated again or are batched, which kernels do not support."""
    return torch.is_grad_enabled() or not is_eager(*gradients)


def together(images: Sequence[Tensor]) -> Images:
    """The only batch (B, C, H, W), or a list."""
    return images[0] if images[0].ndim == 4 else tuple(images)


def reference_vjp(
    reference: Callable[..., Images],
    inputs: Sequence[Tensor | None],
    wanted: Sequence[bool],
    gradients: Sequence[Tensor],
) -> tuple[Tensor | None, ...]:
    """The gradients of `reference`, which can be differentiated again if a tape is kept."""
    kept = torch.is_grad_enabled()
    with torch.enable_grad():
        # detached from each other: if a matrix depends on the images, that path is not part of this
        # gradient
        inputs = [None if t is None else t.view_as(t) for t in inputs]
        chosen = [t for t, want in zip(inputs, wanted, strict=True) if want and t is not None]
        # zeros if nothing is painted, because then no matrix is used
        found = torch.autograd.grad(
            listed(reference(*inputs)), chosen, gradients, create_graph=kept, materialize_grads=True
        )
    rest = iter(found)
    return tuple(next(rest) if want else None for want in wanted)


def as_tensors(
    sums: Sequence[np.ndarray], inputs: Sequence[Tensor | None], wanted: Sequence[bool]
) -> tuple[Tensor | None, ...]:
    """The kernels' sums as gradients with the inputs' shapes; None for those not needed."""
    return tuple(
        torch.from_numpy(total).reshape(t.shape).to(t.dtype) if want and t is not None else None
        for total, t, want in zip(sums, inputs, wanted, strict=True)
    )
