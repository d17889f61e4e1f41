"""Operators: functions of tensors, with a definition in torch operations and kernels.

The definition decides every result. Kernels compute the values and the first gradients of plain
tensors; whatever is traced, transformed, batched or differentiated again is the definition's, which
torch differentiates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from warpkit.core.tracing import is_eager, wants_gradient

Load = Callable[[], ModuleType | None]


class Binding:
    """A formula and the kernels that compute the same, in whatever mode torch is."""

    kernels: Mapping[str, Load]
    task: str
    """The function of the kernels' module."""

    def __call__(self, options: Any, *tensors: Tensor, device: str | None = None) -> Any:
        """The results; device: a key of `kernels`, by default the type of the tensors' device."""
        module = self._module(tensors, device)
        if module is None:
            return self.formula(options, *tensors)
        if wants_gradient(*tensors):
            return Node.apply(self, module, options, device, *tensors)
        return self.run(module, options, [tensor.detach() for tensor in tensors])[0]

    def _module(self, tensors: Sequence[Tensor], device: str | None) -> ModuleType | None:
        """The kernels that can read the tensors, or None."""
        if not is_eager(*tensors):
            return None
        devices = {tensor.device.type for tensor in tensors} if device is None else {device}
        load = self.kernels.get(devices.pop()) if len(devices) == 1 else None
        module = None if load is None else load()
        return module if hasattr(module, self.task) else None

    def formula(self, options: Any, *tensors: Tensor) -> Any:
        """The definition, in torch operations."""
        raise NotImplementedError

    def run(self, module: ModuleType, options: Any, tensors: Sequence[Tensor]) -> tuple[Any, Any]:
        """The results by kernels, and what the backward pass needs."""
        raise NotImplementedError

    def differentiate(self, node: Any, grads: tuple[Tensor, ...]) -> Any:
        """The gradients of the tensors that a node of autograd's tape has saved."""
        raise NotImplementedError


class Operator(Binding):
    """A function of tensors.

    formula(options, *tensors): its definition. Of several results the floating ones come first;
    only these have gradients.

    kernels: by the type of a device, or by another name that callers give, a function that returns
    a module, or None without one that works. The module has `forward(options, *tensors)`, which
    returns the results, and what the backward pass needs beside the tensors (never a result
    itself); and perhaps `backward(options, kept, grads, tensors, wanted)`, which returns a gradient
    for each tensor, arbitrary for one that is not wanted. Their tensors are detached, and have any
    strides.

    known(options, kept, *tensors): the formula, if results that are known save it work.
    """

    task = "forward"

    def __init__(
        self,
        formula: Callable[..., Any],
        kernels: Mapping[str, Load],
        known: Callable[..., Any] | None = None,
    ) -> None:
        self.kernels, self.known = kernels, known
        self.formula = formula  # pyright: ignore
        self.gradient = Gradient(self)

    def run(self, module: ModuleType, options: Any, tensors: Sequence[Tensor]) -> tuple[Any, Any]:
        """As `Binding.run`."""
        return module.forward(options, *tensors)

    def differentiate(self, node: Any, grads: tuple[Tensor, ...]) -> Any:
        """As `Binding.differentiate`, by the operator of the gradient."""
        grads = grads[: node.floats]
        call = GradientOptions(node.options, node.kept, node.wanted, len(grads))
        return self.gradient(call, *grads, *node.saved_tensors, device=node.device)


class GradientOptions(NamedTuple):
    """The options of a gradient."""

    options: Any
    kept: Any
    wanted: tuple[bool, ...]
    results: int
    """The number of gradients of results, which precede the operator's tensors."""


class Gradient(Binding):
    """The gradients of an operator's tensors, None for those that are not wanted."""

    task = "backward"

    def __init__(self, of: Operator) -> None:
        self.of, self.kernels = of, of.kernels

    def formula(self, options: GradientOptions, *tensors: Tensor) -> Any:
        """The vector-Jacobian product of the operator's formula."""
        of, call = self.of, options

        def results(*inputs: Tensor) -> Any:
            if of.known is not None:
                return of.known(call.options, call.kept, *inputs)
            return of.formula(call.options, *inputs)

        return vjp(results, tensors[call.results :], tensors[: call.results], call.wanted)

    def run(self, module: ModuleType, options: Any, tensors: Sequence[Tensor]) -> tuple[Any, Any]:
        """As `Binding.run`."""
        grads, inputs = tensors[: options.results], tensors[options.results :]
        found = module.backward(options.options, options.kept, grads, inputs, options.wanted)
        return tuple(g if want else None for g, want in zip(found, options.wanted, strict=True)), ()

    def differentiate(self, node: Any, grads: tuple[Tensor, ...]) -> Any:
        """As `Binding.differentiate`: torch differentiates the formula."""
        wanted = node.options.wanted

        def results(*inputs: Tensor) -> Any:
            return tuple(g for g in self.formula(node.options, *inputs) if g is not None)

        grads = tuple(grad for grad, want in zip(grads, wanted, strict=True) if want)
        return vjp(results, node.saved_tensors, grads, node.wanted)


def vjp(
    function: Callable[..., Any],
    inputs: Sequence[Tensor],
    grads: Sequence[Tensor],
    wanted: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    """The gradients of a function's inputs, None for those that are not wanted.

    In a graph they can be differentiated again. grads: those of the function's first results.
    Tensors are of any shape.
    """
    in_graph = torch.is_grad_enabled()
    with torch.enable_grad():
        # an input may depend on another one, whose gradient must not include this path
        apart = [value.view_as(value) for value in inputs]
        results = function(*apart)
    results = results if isinstance(results, tuple) else (results,)
    of = [value for value, want in zip(apart, wanted, strict=True) if want]
    options = {"create_graph": in_graph, "allow_unused": True, "materialize_grads": True}
    # a gradient does not depend on the inputs in which its function is linear
    depend = [n for n in range(len(grads)) if results[n].requires_grad]
    values, seeds = [results[n] for n in depend], [grads[n] for n in depend]
    found = iter(torch.autograd.grad(values, of, seeds, **options))
    return tuple(next(found) if want else None for want in wanted)


class Node(torch.autograd.Function):
    """An operator's kernels on autograd's tape."""

    @staticmethod
    def forward(
        ctx: Any,
        operator: Binding,
        module: ModuleType,
        options: Any,
        device: str | None,
        *tensors: Tensor,
    ) -> Any:
        """The results of `operator` by the kernels of `module`."""
        results, ctx.kept = operator.run(module, options, tensors)
        ctx.operator, ctx.options, ctx.device = operator, options, device
        ctx.save_for_backward(*tensors)
        ctx.wanted = ctx.needs_input_grad[4:]
        several = results if isinstance(results, tuple) else (results,)
        others = [x for x in several if x is not None and not x.is_floating_point()]
        ctx.floats = len(several) - len(others)
        ctx.mark_non_differentiable(*others)
        return results

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """The gradients by kernels, or by the definition if they are differentiated or batched."""
        return None, None, None, None, *ctx.operator.differentiate(ctx, grads)
