"""An operator and its gradient as torch operators, for torch.compile and exported graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from warpkit.engine.binding.nodes import record
from warpkit.engine.binding.operator import (
    Binding,
    Gradient,
    GradientOptions,
    Linear,
    Operator,
)

LIBRARY = torch.library.Library("warpkit", "FRAGMENT")


class Schema(NamedTuple):
    """The part of a torch operator that all devices have in common."""

    tensors: str
    """Their names in the schema."""
    options: str
    """In the schema."""
    decode: Callable[..., Any]
    """Makes the operator's options of these."""
    fake: Callable[..., Tensor]
    """An empty result for options and tensors."""
    formats: Callable[[Sequence[Tensor]], Sequence[torch.memory_format]]
    """The memory formats of the tensors' gradients; unused if the gradient is the operator."""


def register(
    operator: Operator, schema: Schema, name: str, device: str, keys: Sequence[str]
) -> None:
    """Define `warpkit::<name>`, and its backward if the gradient is an operator of its own.

    device: a key of the operator's kernels; keys: torch's dispatch keys of its tensors.
    """
    names = [f"Tensor {part}" for part in schema.tensors.split()]
    inputs, results = ", ".join([*names, schema.options]), ", ".join(["Tensor"] * len(names))
    text = f"{name}({inputs}) -> Tensor"
    operator.traced[device] = _define(text, operator, schema, device, keys)
    if isinstance(operator, Linear):
        return
    text = f"{name}_backward(Tensor grad, {inputs}, bool[] wanted) -> ({results})"
    operator.gradient.traced[device] = _define(text, operator.gradient, schema, device, keys)


def _define(text: str, binding: Binding, schema: Schema, device: str, keys: Sequence[str]) -> Any:
    name, count = text.partition("(")[0], text.partition("->")[0].count("Tensor ")
    is_gradient = isinstance(binding, Gradient)

    def split(inputs: Sequence[Any]) -> tuple[Any, Sequence[Tensor]]:
        tensors, values = inputs[:count], inputs[count:]
        if not is_gradient:
            return schema.decode(*values), tensors
        options = schema.decode(*values[:-1])
        return GradientOptions(options, None, tuple(values[-1]), 1), tensors

    def kernel(*inputs: Any) -> Any:
        options, tensors = split(inputs)
        module = binding.kernels[device]()
        if module is None:
            raise RuntimeError(f"warpkit: warpkit::{name} needs the kernels, which are missing")
        results, _ = binding.run(module, options, tensors)
        return _dense(results, tensors, schema) if is_gradient else results

    def fake(*inputs: Any) -> Any:
        options, tensors = split(inputs)
        return (
            _empty_like(tensors, options.wanted, schema)
            if is_gradient
            else schema.fake(options, *tensors)
        )

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        options, tensors = split(inputs)
        record(ctx, binding, options, device, tensors, ctx.needs_input_grad[:count])

    def differentiate(ctx: Any, *grads: Any) -> Any:
        needs = ctx.needs_input_grad
        return *binding.differentiate(ctx, grads, needs[:count]), *(None,) * len(needs[count:])

    def batch(info: Any, dims: Any, *inputs: Any) -> Any:
        options, tensors = split(inputs)
        found, places = binding.batched(info.batch_size, dims[:count], options, device, *tensors)
        if is_gradient:
            found = tuple(tensors[0].new_empty(0) if g is None else g for g in found)
        return found, places

    LIBRARY.define(text, tags=(torch.Tag.pt2_compliant_tag,))
    for key in keys:
        LIBRARY.impl(name, kernel, key)
    full = f"warpkit::{name}"
    torch.library.register_autograd(full, differentiate, setup_context=keep, lib=LIBRARY)
    torch.library.register_fake(full, fake, lib=LIBRARY)
    torch.library.register_vmap(full, batch, lib=LIBRARY)
    return getattr(torch.ops.warpkit, name).default


def _dense(
    grads: Sequence[Tensor | None], tensors: Sequence[Tensor], schema: Schema
) -> tuple[Tensor, ...]:
    """Gradients as promised by `_empty_like`, on which compiled code relies: of no shared memory,
    in dense layouts. tensors: of any shapes, the result's gradient first."""
    pairs = zip(grads, schema.formats(tensors[1:]), strict=True)
    return tuple(
        tensors[0].new_empty(0) if g is None else g.contiguous(memory_format=layout)
        for g, layout in pairs
    )


def _empty_like(
    tensors: Sequence[Tensor], wanted: Sequence[bool], schema: Schema
) -> tuple[Tensor, ...]:
    """Empty gradients of all tensors but the first, the result's gradient."""
    grad, *inputs = tensors
    return tuple(
        torch.empty(t.shape, dtype=t.dtype, device=t.device, memory_format=layout)
        if want
        else grad.new_empty(0)
        for t, layout, want in zip(inputs, schema.formats(inputs), wanted, strict=True)
    )
