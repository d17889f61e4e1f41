"""Compiled kernels as torch operators: autograd of every order, vmap, torch.compile and export.

Each backend has two operators, `warpkit::<name>_sample` and its backward. `mapping` is a matrix
destination -> source, (*M, 2 or 3, 3), or points, (*P, h, w, 2). The names `where` and `outside` in
the schemas are part of exported graphs and must not change. The first gradient comes from kernels;
a gradient of the gradient comes from the reference, and costs nothing if it is not needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from warpkit.core.tracing import has_tangents, in_transform
from warpkit.engine.sampling import reference
from warpkit.engine.sampling.layout import batch_of, layout_of
from warpkit.engine.sampling.rules import SamplingRule

LIBRARY = torch.library.Library("warpkit", "FRAGMENT")
INPUTS = "Tensor image, Tensor where, Tensor outside, SymInt[] size, "
INPUTS += "str interpolation, str border"

ADJOINT = [True, False, False]
"""The needed gradients of image, mapping and fill: only the image's, in which a warp is linear."""


class BackendOperators:
    """The two operators of a backend, with its name as their prefix.

    `launch` has `forward` and `backward`, which take tensors of any layout and batch; gradients
    that are not needed may be arbitrary. `keys` are the dispatch keys of its devices.
    """

    def __init__(self, name: str, launch: ModuleType, keys: Sequence[str]) -> None:
        self.launch = launch
        schema = f"{name}_sample({INPUTS}) -> Tensor"
        self.forward_operator = self._define(
            schema, keys, self._forward, _fake_forward, self._vmap, self.vjp, _keep_what_is_needed
        )
        schema = f"{name}_sample_backward(Tensor grad, {INPUTS}, bool[] wanted)"
        self.backward_operator = self._define(
            f"{schema} -> (Tensor, Tensor, Tensor)",
            keys, self._backward, _fake_backward, self._vmap_backward, self.double_backward, _keep,
        )  # fmt: skip

    def _define(
        self,
        schema: str,
        keys: Sequence[str],
        kernel: Any,
        fake: Any,
        vmap: Any,
        gradient: Any,
        keep: Any,
    ) -> Any:
        name = schema.partition("(")[0]
        LIBRARY.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
        for key in keys:
            LIBRARY.impl(name, kernel, key)
        full = f"warpkit::{name}"
        torch.library.register_autograd(full, gradient, setup_context=keep, lib=LIBRARY)
        torch.library.register_fake(full, fake, lib=LIBRARY)
        torch.library.register_vmap(full, vmap, lib=LIBRARY)
        return getattr(torch.ops.warpkit, name).default

    def warp(
        self,
        image: Tensor,
        to_source: Tensor,
        size: Sequence[int],
        fill: Tensor,
        rule: SamplingRule,
    ) -> Tensor:
        """As `Backend.warp`; the reference computes tangents, and derivatives of tangents."""
        if has_tangents():
            return reference.warp(image, to_source, size, fill, rule)
        if rule.interpolation == "nearest":  # it has no slope, and autograd should report that
            to_source = to_source.detach()
        return self.call(image, to_source.double(), fill, size, rule.interpolation, rule.border)

    def sample(self, image: Tensor, points: Tensor, fill: Tensor, rule: SamplingRule) -> Tensor:
        """As `Backend.sample`, with tangents as in `warp`."""
        if has_tangents():
            return reference.sample(image, points, fill, rule)
        points = points.to(reference.compute_dtype(points.dtype))
        if rule.interpolation == "nearest":
            points = points.detach()
        return self.call(image, points, fill, points.shape[-3:-1], rule.interpolation, rule.border)

    def splat(
        self, image: Tensor, points: Tensor, size: Sequence[int], rule: SamplingRule
    ) -> Tensor:
        """As `reference.splat`: a warp's gradient to the image. Tangents as in `warp`.

        image (*I, C, H, W); points (*P, H, W, 2), pixels of the result of `size`.
        """
        if has_tangents():
            return reference.splat(image, points, size, rule)
        if rule.interpolation == "nearest":
            points = points.detach()
        batch = batch_of(image.shape, points.shape)
        target = image.new_zeros(()).expand(*batch, image.shape[-3], *size)
        inputs = (target, points, image.new_zeros(()), list(image.shape[-2:]))
        image = image.expand(*batch, *image.shape[-3:])
        return self.call_backward(image, *inputs, rule.interpolation, rule.border, ADJOINT)[0]

    def call(self, *inputs: Any) -> Tensor:
        """The operator, in a form that any active transform can differentiate."""
        return Sample.apply(*inputs, self) if in_transform() else self.forward_operator(*inputs)

    def call_backward(self, *inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
        """The same for the backward operator."""
        if in_transform():
            return SampleBackward.apply(*inputs, self)
        return self.backward_operator(*inputs)

    def _forward(self, *inputs: Any) -> Tensor:
        *tensors, size, interpolation, border = inputs
        return self.launch.forward(*tensors, size, SamplingRule(interpolation, border))

    def _backward(self, *inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
        *tensors, size, interpolation, border, wanted = inputs
        found = self.launch.backward(*tensors, size, SamplingRule(interpolation, border), wanted)
        # as promised by `_fake_backward`, on which compiled code relies: no shared memory, dense
        # layouts
        layouts = layout_of(tensors[1]), torch.contiguous_format, torch.contiguous_format
        a, b, c = (
            g.contiguous(memory_format=layout) if want else tensors[0].new_empty(0)
            for g, layout, want in zip(found, layouts, wanted, strict=True)
        )
        return a, b, c

    def vjp(self, ctx: Any, *grads: Any) -> Any:
        """The kernels' gradient, itself an operator that can be differentiated."""
        wanted = ctx.needs_input_grad[:3]
        found = self.call_backward(*grads, *ctx.saved_tensors, *ctx.options, list(wanted))
        return *(g if want else None for g, want in zip(found, wanted, strict=True)), *(None,) * 3

    def double_backward(self, ctx: Any, *grads: Any) -> Any:
        """The gradient of the gradient: kernels compute the adjoint's, the reference any other."""
        *options, wanted = ctx.options
        if list(wanted) != ADJOINT:
            return double_backward(ctx, *grads)
        grad, image, mapping, fill = ctx.saved_tensors
        needs = ctx.needs_input_grad
        inputs = (grads[0], mapping, torch.zeros_like(fill), *options)
        return (
            self.call(*inputs) if needs[0] else None,
            torch.zeros_like(image) if needs[1] else None,
            self.call_backward(grad, *inputs, [False, True, False])[1] if needs[2] else None,
            torch.zeros_like(fill) if needs[3] else None,
            *(None,) * 4,
        )

    def _vmap(self, info: Any, dims: Sequence[int | None], *inputs: Any) -> Any:
        return self.call(*_fold(info.batch_size, dims[:3], inputs[:3]), *inputs[3:]), 0

    def _vmap_backward(self, info: Any, dims: Sequence[int | None], *inputs: Any) -> Any:
        count, wanted = info.batch_size, inputs[-1]
        grad = inputs[0].expand(count, *inputs[0].shape) if dims[0] is None else inputs[0]
        grad = grad if dims[0] is None else grad.movedim(dims[0], 0)
        folded = _fold(count, dims[1:4], inputs[1:4])
        batch = batch_of(folded[0].shape, folded[1].shape)
        found = self.call_backward(grad.reshape(*batch, *grad.shape[-3:]), *folded, *inputs[4:])
        shapes = [
            t.shape if d is None else t.movedim(d, 0).shape[1:]
            for t, d in zip(inputs[1:4], dims[1:4], strict=True)
        ]
        grads = tuple(
            g.reshape(count, *shape) if want else g
            for g, shape, want in zip(found, shapes, wanted, strict=True)
        )
        return grads, tuple(0 if want else None for want in wanted)


class AutogradOnly(BackendOperators):
    """The same with autograd functions instead of operators, for a backend that is torch's own."""

    def __init__(self, launch: Any) -> None:
        self.launch = launch
        self.forward_operator, self.backward_operator = self._forward, self._backward

    def call(self, *inputs: Any) -> Tensor:
        """As the operator."""
        return Sample.apply(*inputs, self)

    def call_backward(self, *inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
        """As the backward operator."""
        return SampleBackward.apply(*inputs, self)


def _fake_forward(
    image: Tensor, mapping: Tensor, fill: Tensor, size: Sequence[int], *rule_names: str
) -> Tensor:
    """The operator's result without values; tensors as in `reference_sample`."""
    shape = (*batch_of(image.shape, mapping.shape), image.shape[-3], *size)
    layout = layout_of(image) if len(shape) == 4 else torch.contiguous_format
    return torch.empty(shape, dtype=image.dtype, device=image.device, memory_format=layout)


def _fake_backward(grad: Tensor, *inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
    image, mapping, fill, *_, wanted = inputs
    layouts = layout_of(image), torch.contiguous_format, torch.contiguous_format
    a, b, c = (
        torch.empty(t.shape, dtype=t.dtype, device=t.device, memory_format=layout)
        if want
        else grad.new_empty(0)
        for t, layout, want in zip((image, mapping, fill), layouts, wanted, strict=True)
    )
    return a, b, c


def _keep(ctx: Any, inputs: Sequence[Any], output: Any) -> None:
    tensors = [x for x in inputs if isinstance(x, Tensor)]
    ctx.save_for_backward(*tensors)
    ctx.options = inputs[len(tensors) :]


def _keep_what_is_needed(ctx: Any, inputs: Sequence[Any], output: Any) -> None:
    """Saves the image's pixels only if the mapping needs a gradient; otherwise its shape."""
    image = inputs[0]
    if not ctx.needs_input_grad[1]:
        image = image.new_empty(()).expand(image.shape)
    _keep(ctx, (image, *inputs[1:]), output)


def double_backward(ctx: Any, *grads: Any) -> Any:
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

    vjp_twice: Any = torch.func.vjp(first, *(saved[n] for n in needed))[1]
    found = dict(zip(needed, vjp_twice(tuple(grads[n] for n in chosen)), strict=True))
    return *(found.get(n) for n in range(4)), *(None,) * 4


def _replaced(values: Sequence[Any], positions: Sequence[int], new: Sequence[Any]) -> list[Any]:
    """A copy of `values` with `new` at `positions`."""
    values = list(values)
    for place, value in zip(positions, new, strict=True):
        values[place] = value
    return values


class Sample(torch.autograd.Function):
    """The operator for torch.func's transforms, in which an operator's own gradient cannot be
    nested.

    The last input is the backend's `BackendOperators`.
    """

    @staticmethod
    def forward(*inputs: Any) -> Tensor:
        """As the operator."""
        return inputs[-1].forward_operator(*inputs[:-1])

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep what the gradient needs."""
        _keep_what_is_needed(ctx, inputs[:-1], output)
        ctx.operators = inputs[-1]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """As the operator's."""
        return *ctx.operators.vjp(ctx, *grads), None

    @staticmethod
    def vmap(info: Any, in_dims: Any, *inputs: Any) -> Any:
        """As the operator's rule, differentiable."""
        return inputs[-1]._vmap(info, in_dims, *inputs[:-1])


class SampleBackward(torch.autograd.Function):
    """The same for the backward operator."""

    @staticmethod
    def forward(*inputs: Any) -> Any:
        """As the operator."""
        return inputs[-1].backward_operator(*inputs[:-1])

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep what the gradient needs."""
        _keep(ctx, inputs[:-1], output)
        ctx.operators = inputs[-1]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """As the operator's."""
        return *ctx.operators.double_backward(ctx, *grads), None

    @staticmethod
    def vmap(info: Any, in_dims: Any, *inputs: Any) -> Any:
        """As the operator's rule, differentiable."""
        return inputs[-1]._vmap_backward(info, in_dims, *inputs[:-1])


def reference_sample(
    image: Tensor, mapping: Tensor, fill: Tensor, size: Sequence[int], *rule_names: str
) -> Tensor:
    """The definition of the operator.

    image (*I, C, H, W); mapping (*M, 2 or 3, 3) or (*P, h, w, 2); fill broadcasts to the result.
    """
    rule = SamplingRule(*rule_names)
    if mapping.shape[-1] == 2:
        return reference.sample(image, mapping, fill, rule)
    return reference.warp(image, mapping, size, fill, rule)


def _fold(count: int, dims: Sequence[int | None], tensors: Sequence[Tensor]) -> list[Tensor]:
    """image, mapping and fill with the vmapped dimension, of size `count`, first in each batch.

    An input that is not vmapped repeats its memory, which the kernels read directly.
    """
    first = [
        t.expand(count, *t.shape) if d is None else t.movedim(d, 0)
        for t, d in zip(tensors, dims, strict=True)
    ]
    core_dims = (3, 3 if first[1].shape[-1] == 2 else 2, 3)
    batch = max(t.ndim - 1 - n for t, n in zip(first, core_dims, strict=True))
    return [
        t.reshape(count, *(1,) * (batch + n - t.ndim + 1), *t.shape[1:])
        for t, n in zip(first, core_dims, strict=True)
    ]
