"""Opaque objects painted last on a CPU, compiled by Numba: bilinear, constant border.

What `layers.paint_topmost` does with a window painter, in one pass over the images and one back,
without a list: 5 times faster. Serial, so that sums have one order. Higher derivatives and forward
mode are the plain path's.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from warpkit.kernels.objects import Rectangles
from warpkit.kernels.rules import Rule

Plain = Callable[[Tensor, Tensor, Tensor], Tensor]


def serves(images: Tensor, rule: Rule) -> bool:
    """Whether the kernels can do this."""
    tracing = torch.compiler.is_compiling() or forward_ad._current_level >= 0
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor(images)  # pyright: ignore
    simple = rule == Rule("bilinear", "constant") and images.device.type == "cpu"
    return simple and not tracing and not wrapped and find_spec("numba") is not None


def paint(
    images: Tensor,
    inverse: Tensor,
    outside: Tensor,
    top: Tensor,
    boxes: Rectangles,
    plain: Plain,
) -> Tensor:
    """As `layers.paint_topmost`; `plain` is that, of the first three tensors.

    images (C, M); inverse (N, 2, 3), float64; outside (C, 1 or N); top as `topmost` returns it.
    """
    return _Paint.apply(images, inverse, outside, (top, *boxes), plain)  # pyright: ignore


class _Paint(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        images: Tensor,
        inverse: Tensor,
        outside: Tensor,
        places: tuple[Tensor, ...],
        plain: Plain,
    ) -> Tensor:
        ctx.save_for_backward(images, inverse, outside)
        ctx.places, ctx.plain = places, plain
        result = torch.empty_like(images, memory_format=torch.contiguous_format)
        from warpkit.kernels.windows_loops import forward

        forward(*_arrays(images, inverse, outside, result), *_arrays(*places))
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        saved, wanted = ctx.saved_tensors, ctx.needs_input_grad[:3]
        if torch.is_grad_enabled():  # to be differentiated once more
            value = ctx.plain(*saved)
            chosen = [t for t, want in zip(saved, wanted, strict=True) if want]
            found = iter(torch.autograd.grad(value, chosen, gradients, create_graph=True))
            return (*(next(found) if want else None for want in wanted), None, None)
        from warpkit.kernels.windows_loops import backward

        results = [torch.zeros_like(t, memory_format=torch.contiguous_format) for t in saved]
        backward(*_arrays(gradients[0], *saved, *results), *_arrays(*ctx.places))
        return (*(t if want else None for t, want in zip(results, wanted, strict=True)), None, None)


def _arrays(*tensors: Tensor) -> list[Any]:
    return [tensor.detach().contiguous().numpy() for tensor in tensors]
