"""The kernels as a torch operator: autograd of every order, vmap, torch.compile and export.

A resize is linear, and its gradient is a resize by the transposed taps. So a single operator is its
own gradient, with `adjoint` switched, to any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from warpkit.core.tracing import in_transform, is_eager
from warpkit.engine.backends.cpu.resize import launch
from warpkit.engine.sampling.exact_gradient import Values
from warpkit.engine.sampling.layout import layout_of
from warpkit.engine.sampling.resize import Edges, ResizeRule

LIBRARY = torch.library.Library("warpkit", "FRAGMENT")
LIBRARY.define(
    "cpu_resize(Tensor image, SymInt[] size, str interpolation, bool antialias, float[] box, "
    "bool adjoint) -> Tensor",
    tags=(torch.Tag.pt2_compliant_tag,),
)


def call(
    image: Tensor,
    size: Sequence[int],
    rule: ResizeRule,
    box: Sequence[Edges] | None,
    values: Values | None = None,
) -> Tensor:
    """As the reference's `resize`, in a form that any active transform can differentiate.

    values: as in `with_exact_gradient`.
    """
    corners = [] if box is None else [float(edge) for e in box for edge in (e.low, e.high)]
    inputs = (image, list(size), rule.interpolation, rule.antialias, corners, False)
    return _call(*inputs, values=values)


def _call(*inputs: Any, values: Values | None = None) -> Tensor:
    if in_transform() or is_eager(inputs[0]):  # cheaper than an operator
        return Resize.apply(*inputs, values)  # pyright: ignore
    return torch.ops.warpkit.cpu_resize(*inputs)


def _forward(
    image: Tensor,
    size: Sequence[int],
    interpolation: str,
    antialias: bool,
    box: Sequence[float],
    adjoint: bool,
) -> Tensor:
    edges = None
    if box:
        x1, x2, y1, y2 = box
        edges = Edges(x1, x2, x2 - x1), Edges(y1, y2, y2 - y1)
    rule = ResizeRule(interpolation, antialias)
    found = launch.exact(image, tuple(size), rule, edges, adjoint=adjoint)
    return found.contiguous(memory_format=layout_of(image))


def _fake(image: Tensor, size: Sequence[int], *options: Any) -> Tensor:
    shape = (*image.shape[:-2], *size)
    layout = layout_of(image)
    return torch.empty(shape, dtype=image.dtype, device=image.device, memory_format=layout)


def _keep(ctx: Any, inputs: Sequence[Any], output: Any) -> None:
    image, _, *options, adjoint = inputs
    ctx.size, ctx.options, ctx.adjoint = list(image.shape[-2:]), options, adjoint


def _vjp(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None, None, None]:
    found = _call(grad, ctx.size, *ctx.options, not ctx.adjoint)
    return found, None, None, None, None, None


def _vmap(info: Any, dims: Sequence[int | None], image: Tensor, *options: Any) -> Any:
    assert dims[0] is not None
    return _call(image.movedim(dims[0], 0), *options), 0


LIBRARY.impl("cpu_resize", _forward, "CPU")
torch.library.register_fake("warpkit::cpu_resize", _fake, lib=LIBRARY)
torch.library.register_autograd("warpkit::cpu_resize", _vjp, setup_context=_keep, lib=LIBRARY)
torch.library.register_vmap("warpkit::cpu_resize", _vmap, lib=LIBRARY)


class Resize(torch.autograd.Function):
    """The operator without its overhead, and for torch.func's transforms; the last input computes
    the values instead, if it is not None."""

    @staticmethod
    def forward(*inputs: Any) -> Tensor:
        """As the operator."""
        values = inputs[-1]
        return _forward(*inputs[:-1]) if values is None else values()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep what the gradient needs."""
        _keep(ctx, inputs[:-1], output)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The operator itself, transposed."""
        return *_vjp(ctx, *grads), None

    @staticmethod
    def vmap(info: Any, in_dims: Any, *inputs: Any) -> Any:
        """As the operator's rule, differentiable."""
        return _vmap(info, in_dims, *inputs[:-1])
