"""The kernels as torch operators: autograd of every order, vmap, torch.compile and export.

Two operators, `warpkit::cpu_sample` and its backward. `where` is a matrix that maps destination ->
source, or points. The first gradient comes from kernels; a gradient of the gradient is the
reference's, and costs nothing unless it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from warpkit.kernels import reference
from warpkit.kernels.cpu import launch
from warpkit.kernels.rules import Rule

LIBRARY = torch.library.Library("warpkit", "FRAGMENT")
LIBRARY.define(
    "cpu_sample(Tensor image, Tensor where, Tensor outside, SymInt[] size, str interpolation, "
    "str border) -> Tensor",
    tags=(torch.Tag.pt2_compliant_tag,),
)
LIBRARY.define(
    "cpu_sample_backward(Tensor grad, Tensor image, Tensor where, Tensor outside, SymInt[] size, "
    "str interpolation, str border, bool[] wanted) -> (Tensor, Tensor, Tensor)",
    tags=(torch.Tag.pt2_compliant_tag,),
)
sample = torch.ops.warpkit.cpu_sample.default
sample_backward = torch.ops.warpkit.cpu_sample_backward.default


def _forward(
    image: Tensor, where: Tensor, outside: Tensor, size: Sequence[int], i: str, b: str
) -> Tensor:
    return launch.forward(image, where, outside, size, Rule(i, b))


def _backward(
    grad: Tensor,
    image: Tensor,
    where: Tensor,
    outside: Tensor,
    size: Sequence[int],
    i: str,
    b: str,
    wanted: Sequence[bool],
) -> tuple[Tensor, Tensor, Tensor]:
    return launch.backward(grad, image, where, outside, size, Rule(i, b), wanted)


def _fake_forward(
    image: Tensor, where: Tensor, outside: Tensor, size: Sequence[int], i: str, b: str
) -> Tensor:
    shape = (*launch.batch_of(image, where), image.shape[-3], *size)
    last = launch.is_last(image)
    layout = torch.channels_last if last and len(shape) == 4 else torch.contiguous_format
    return torch.empty(shape, dtype=image.dtype, device=image.device, memory_format=layout)


def _fake_backward(
    grad: Tensor, *inputs: Any
) -> tuple[Tensor, Tensor, Tensor]:
    image, where, outside, *_, wanted = inputs
    layouts = (torch.channels_last if launch.is_last(image) else torch.contiguous_format,)
    layouts = (*layouts, torch.contiguous_format, torch.contiguous_format)
    a, b, c = (
        torch.empty(t.shape, dtype=t.dtype, device=t.device, memory_format=layout)
        if want
        else grad.new_empty(0)
        for t, layout, want in zip((image, where, outside), layouts, wanted, strict=True)
    )
    return a, b, c


class Sample(torch.autograd.Function):
    """The operator with its gradient; below it, on the autograd key, transforms are peeled off."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        """As `reference.warp` and `reference.sample`."""
        image, where, outside, *options = inputs
        ctx.save_for_backward(image, where, outside)
        ctx.options = options
        with torch._C._AutoDispatchBelowAutograd():  # pyright: ignore
            return sample(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """The kernels' gradient, itself an operator that can be differentiated."""
        wanted = ctx.needs_input_grad[:3]
        found = sample_backward(*grads, *ctx.saved_tensors, *ctx.options, wanted)
        return *(g if want else None for g, want in zip(found, wanted, strict=True)), *(None,) * 3


class SampleBackward(torch.autograd.Function):
    """The backward operator with its own gradient, from the reference."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Any:
        """As `launch.backward`."""
        ctx.save_for_backward(*inputs[:4])
        ctx.options = inputs[4:]
        with torch._C._AutoDispatchBelowAutograd():  # pyright: ignore
            return sample_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The gradient of the reference's gradient, differentiable again."""
        *options, wanted = ctx.options
        chosen = [n for n in range(3) if wanted[n]]
        needed = [n for n in range(4) if ctx.needs_input_grad[n]]

        def first(*needs: Tensor) -> tuple[Tensor, ...]:
            values = list(ctx.saved_tensors)
            for n, value in zip(needed, needs, strict=True):
                values[n] = value
            grad, *inputs = values

            def warped(*some: Tensor) -> Tensor:
                full = list(inputs)
                for n, value in zip(chosen, some, strict=True):
                    full[n] = value
                return reference_sample(*full, *options)

            return torch.func.vjp(warped, *(inputs[n] for n in chosen))[1](grad)

        _, pull = torch.func.vjp(first, *(ctx.saved_tensors[n] for n in needed))
        found = dict(zip(needed, pull(tuple(grads[n] for n in chosen)), strict=True))
        return *(found.get(n) for n in range(4)), *(None,) * 4


def reference_sample(
    image: Tensor, where: Tensor, outside: Tensor, size: Sequence[int], i: str, b: str
) -> Tensor:
    """The definition of the operator."""
    rule = Rule(i, b)
    if where.shape[-1] == 2:
        return reference.sample(image, where, outside, rule)
    return reference.warp(image, where, size, outside, rule)


def _with_autograd(function: type[torch.autograd.Function], op: Any, tensors: int) -> Any:
    def call(*inputs: Any) -> Any:
        if torch.is_grad_enabled() and any(t.requires_grad for t in inputs[:tensors]):
            return function.apply(*inputs)
        with torch._C._AutoDispatchBelowAutograd():  # pyright: ignore
            return op(*inputs)

    return call


def _fold(count: int, dims: Sequence[int | None], tensors: Sequence[Tensor]) -> list[Tensor]:
    """image, where and outside with the vmapped dimension, of `count`, first in the batch of each.

    One that is not vmapped repeats its memory, which the kernels read in place.
    """
    first = [
        t.expand(count, *t.shape) if d is None else t.movedim(d, 0)
        for t, d in zip(tensors, dims, strict=True)
    ]
    own = (3, 3 if first[1].shape[-1] == 2 else 2, 3)
    batch = max(t.ndim - 1 - n for t, n in zip(first, own, strict=True))
    return [
        t.reshape(count, *(1,) * (batch + n - t.ndim + 1), *t.shape[1:])
        for t, n in zip(first, own, strict=True)
    ]


def _vmap(info: Any, dims: Sequence[int | None], *inputs: Any) -> Any:
    return sample(*_fold(info.batch_size, dims[:3], inputs[:3]), *inputs[3:]), 0


def _vmap_backward(info: Any, dims: Sequence[int | None], *inputs: Any) -> Any:
    count, wanted = info.batch_size, inputs[-1]
    grad = inputs[0].expand(count, *inputs[0].shape) if dims[0] is None else inputs[0]
    grad = grad if dims[0] is None else grad.movedim(dims[0], 0)
    folded = _fold(count, dims[1:4], inputs[1:4])
    batch = launch.batch_of(folded[0], folded[1])
    found = sample_backward(grad.reshape(*batch, *grad.shape[-3:]), *folded, *inputs[4:])
    shapes = [
        t.shape if d is None else t.movedim(d, 0).shape[1:]
        for t, d in zip(inputs[1:4], dims[1:4], strict=True)
    ]
    grads = tuple(
        g.reshape(count, *shape) if want else g
        for g, shape, want in zip(found, shapes, wanted, strict=True)
    )
    return grads, tuple(0 if want else None for want in wanted)


for _name, _op, _kernel, _fake, _rule, _function, _tensors in (
    ("cpu_sample", sample, _forward, _fake_forward, _vmap, Sample, 3),
    ("cpu_sample_backward", sample_backward, _backward, _fake_backward, _vmap_backward,
     SampleBackward, 4),
):  # fmt: skip
    LIBRARY.impl(_name, _kernel, "CPU")
    LIBRARY.impl(_name, _with_autograd(_function, _op, _tensors), "Autograd")
    torch.library.register_fake(f"warpkit::{_name}", _fake, lib=LIBRARY)
    torch.library.register_vmap(f"warpkit::{_name}", _rule, lib=LIBRARY)
