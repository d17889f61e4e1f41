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


def _fake_backward(grad: Tensor, *inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
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


def _keep(ctx: Any, inputs: Sequence[Any], output: Any) -> None:
    image, *others = inputs[:3]
    if not ctx.needs_input_grad[1]:  # its pixels serve the gradient to `where` alone
        image = image.new_empty(()).expand(image.shape)
    ctx.save_for_backward(image, *others)
    ctx.options = inputs[3:]


def _keep_all(ctx: Any, inputs: Sequence[Any], output: Any) -> None:
    ctx.save_for_backward(*inputs[:4])
    ctx.options = inputs[4:]


def _pull(ctx: Any, *grads: Any) -> Any:
    """The kernels' gradient, itself an operator that can be differentiated."""
    wanted = ctx.needs_input_grad[:3]
    found = call_backward(*grads, *ctx.saved_tensors, *ctx.options, list(wanted))
    return *(g if want else None for g, want in zip(found, wanted, strict=True)), *(None,) * 3


def _pull_twice(ctx: Any, *grads: Any) -> Any:
    """The gradient of the reference's gradient, differentiable again."""
    *options, wanted = ctx.options
    chosen = [n for n in range(3) if wanted[n]]
    needed = [n for n in range(4) if ctx.needs_input_grad[n]]
    saved = ctx.saved_tensors

    def first(*needs: Tensor) -> tuple[Tensor, ...]:
        grad, *inputs = _replaced(saved, needed, needs)

        def warped(*some: Tensor) -> Tensor:
            return reference_sample(*_replaced(inputs, chosen, some), *options)

        return torch.func.vjp(warped, *(inputs[n] for n in chosen))[1](grad)

    pull: Any = torch.func.vjp(first, *(saved[n] for n in needed))[1]
    found = dict(zip(needed, pull(tuple(grads[n] for n in chosen)), strict=True))
    return *(found.get(n) for n in range(4)), *(None,) * 4


def _replaced(values: Sequence[Any], places: Sequence[int], new: Sequence[Any]) -> list[Any]:
    """A copy of `values` with `new` at `places`."""
    values = list(values)
    for place, value in zip(places, new, strict=True):
        values[place] = value
    return values


def reference_sample(
    image: Tensor, where: Tensor, outside: Tensor, size: Sequence[int], i: str, b: str
) -> Tensor:
    """The definition of the operator."""
    rule = Rule(i, b)
    if where.shape[-1] == 2:
        return reference.sample(image, where, outside, rule)
    return reference.warp(image, where, size, outside, rule)


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
    found = call_backward(grad.reshape(*batch, *grad.shape[-3:]), *folded, *inputs[4:])
    shapes = [
        t.shape if d is None else t.movedim(d, 0).shape[1:]
        for t, d in zip(inputs[1:4], dims[1:4], strict=True)
    ]
    grads = tuple(
        g.reshape(count, *shape) if want else g
        for g, shape, want in zip(found, shapes, wanted, strict=True)
    )
    return grads, tuple(0 if want else None for want in wanted)


class Sample(torch.autograd.Function):
    """The operator for torch.func's transforms, which an operator's own gradient cannot nest in."""

    @staticmethod
    def forward(*inputs: Any) -> Tensor:
        """As the operator."""
        return sample(*inputs)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *inputs: Any) -> Any:
        """As the operator's rule, differentiable."""
        return Sample.apply(*_fold(info.batch_size, in_dims[:3], inputs[:3]), *inputs[3:]), 0

    setup_context, backward = staticmethod(_keep), staticmethod(_pull)


class SampleBackward(torch.autograd.Function):
    """The same for the backward operator."""

    @staticmethod
    def forward(*inputs: Any) -> Any:
        """As the operator."""
        return sample_backward(*inputs)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *inputs: Any) -> Any:
        """As the operator's rule, differentiable."""
        return _vmap_backward(info, in_dims, *inputs)

    setup_context, backward = staticmethod(_keep_all), staticmethod(_pull_twice)


def call(*inputs: Any) -> Tensor:
    """The operator, in a form that whatever is going on can differentiate."""
    return Sample.apply(*inputs) if _transformed() else sample(*inputs)


def call_backward(*inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
    """The same for the backward operator."""
    return SampleBackward.apply(*inputs) if _transformed() else sample_backward(*inputs)


def _transformed() -> bool:
    if torch.compiler.is_compiling():
        return False
    return torch._C._are_functorch_transforms_active()  # pyright: ignore


for _name, _kernel, _fake, _rule, _save, _gradient in (
    ("cpu_sample", _forward, _fake_forward, _vmap, _keep, _pull),
    ("cpu_sample_backward", _backward, _fake_backward, _vmap_backward, _keep_all, _pull_twice),
):
    LIBRARY.impl(_name, _kernel, "CPU")
    _full = f"warpkit::{_name}"
    torch.library.register_autograd(_full, _gradient, setup_context=_save, lib=LIBRARY)
    torch.library.register_fake(_full, _fake, lib=LIBRARY)
    torch.library.register_vmap(_full, _rule, lib=LIBRARY)
