"""Operators on autograd's tape and in torch.func's transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from warpkit.engine.binding.vjp import blank


class Node(torch.autograd.Function):
    """An operator's kernels on autograd's tape."""

    @staticmethod
    def forward(
        ctx: Any, operator: Any, module: Any, options: Any, device: str | None, *tensors: Tensor
    ) -> Any:
        """The results of `operator` by the kernels of `module`."""
        results, kept = operator.run(module, options, tensors)
        record(ctx, operator, options, device, tensors, ctx.needs_input_grad[4:], kept)
        if isinstance(results, tuple):
            others = [x for x in results if x is not None and not x.is_floating_point()]
            ctx.floats = len(results) - len(others)
            ctx.mark_non_differentiable(*others)
        elif not results.is_floating_point():
            ctx.mark_non_differentiable(results)
        return results

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """The gradients by kernels, or by the definition if they are differentiated or batched."""
        found = ctx.operator.differentiate(ctx, grads, ctx.needs_input_grad[4:])
        return None, None, None, None, *found


def record(
    ctx: Any,
    operator: Any,
    options: Any,
    device: str | None,
    tensors: Sequence[Tensor],
    wanted: Sequence[bool],
    kept: Any = None,
) -> None:
    """Keeps in a node of a tape what `Binding.differentiate` reads."""
    ctx.operator, ctx.options, ctx.device, ctx.kept = operator, options, device, kept
    ctx.floats, ctx.later = 1, []
    saved = operator.saved(tensors, wanted)
    if kept is not None:
        for n in operator.later(options):
            # torch refuses to save tensors of inference mode, which have no version
            version = None if tensors[n].is_inference() else tensors[n]._version
            ctx.later.append((n, tensors[n], version))
            saved = [*saved[:n], blank(tensors[n]), *saved[n + 1 :]]
    ctx.save_for_backward(*saved)


class Transformed(torch.autograd.Function):
    """An operator in torch.func's transforms, in which a torch operator's gradient cannot be
    nested."""

    @staticmethod
    def forward(operator: Any, options: Any, device: str | None, *tensors: Tensor) -> Any:
        """The results one level below."""
        results = operator(options, *tensors, device=device)
        if isinstance(results, Tensor):
            return results
        return tuple(tensors[0].new_empty(0) if g is None else g for g in results)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keeps what the gradient needs."""
        operator, options, device, *tensors = inputs
        record(ctx, operator, options, device, tensors, ctx.needs_input_grad[3:])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """As the node's."""
        found = ctx.operator.differentiate(ctx, grads, ctx.needs_input_grad[3:])
        return None, None, None, *found

    @staticmethod
    def vmap(info: Any, in_dims: Any, *inputs: Any) -> Any:
        """A batch of calls as one."""
        operator, *others = inputs
        return operator.batched(info.batch_size, in_dims[3:], *others)


def unchanged(tensor: Tensor, version: int | None) -> Tensor:
    """A tensor that has still this version, as torch demands of those that it saves."""
    if version is not None and tensor._version != version:
        raise RuntimeError(
            "warpkit: a tensor needed for the gradient of a gradient was modified by an in-place "
            f"operation: it is at version {tensor._version}, not {version}"
        )
    return tensor
