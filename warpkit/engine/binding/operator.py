"""Operators: functions of tensors, with a definition in torch operations and kernels.

The definition decides every result. Kernels compute the values and the first gradients of plain
tensors; whatever is traced, transformed, batched or differentiated again is the definition's, which
torch differentiates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from warpkit.core.tracing import has_tangents, in_transform, is_eager, wants_gradient
from warpkit.engine.binding.batches import Cores, Dims, fold, unfold
from warpkit.engine.binding.nodes import Node, Transformed, unchanged
from warpkit.engine.binding.vjp import blank, vjp

Load = Callable[[], Any]
"""Returns a module of kernels, or None without one that works."""


class Signature(NamedTuple):
    """What torch must know of an operator with one result to trace and to batch it."""

    cores: Cores
    """The number of dimensions of each tensor, by all of them, that follow its batch."""
    core: int
    """The same of the result."""
    encode: Callable[[Any], list[Any] | None]
    """The options as a torch operator's schema has them, or None if it has none for some of them:
    then the formula is traced."""
    plain: Callable[..., tuple[Any, Sequence[Tensor]] | None]
    """Such a call, (options, *tensors), as one that a torch operator has; None if it is one. The
    tensors in which the operator is linear stay as they are."""


class Binding:
    """A formula and the kernels that compute the same, in whatever mode torch is."""

    task: str
    """The function of the kernels' module."""

    def __init__(self, kernels: Mapping[str, Load], signature: Signature | None) -> None:
        self.kernels, self.signature = kernels, signature
        self.traced: dict[str, Any] = {}
        """The torch operators by device, as `torch_operators.register` defines them."""

    def __call__(self, options: Any, *tensors: Tensor, device: str | None = None) -> Any:
        """The results; device: a key of `kernels`, by default the type of the tensors' device."""
        if not is_eager(*tensors):
            return self._traced(options, tensors, device)
        load = self.kernels.get(device or device_of(tensors))
        module = None if load is None else load()
        if not hasattr(module, self.task):
            return self.formula(options, *tensors)
        return self.by(module, options, *tensors, device=device)

    def by(self, module: Any, options: Any, *tensors: Tensor, device: str | None = None) -> Any:
        """The results of plain tensors by the kernels of `module`, which may be of this call."""
        if wants_gradient(*tensors):
            return Node.apply(self, module, options, device, *tensors)
        return self.run(module, options, tensors)[0]

    def _traced(self, options: Any, tensors: Sequence[Tensor], device: str | None) -> Any:
        """The results where torch traces or transforms the call."""
        inputs = self.inputs_of(options)
        if inputs is None or has_tangents():  # kernels have no tangents
            return self.formula(options, *tensors)
        if in_transform():
            found = Transformed.apply(self, options, device, *tensors)
            return self.outputs_of(options, found)
        operator = self.traced.get(device or device_of(tensors))
        if operator is None:
            return self.formula(options, *tensors)
        return self.outputs_of(options, operator(*tensors, *inputs))

    def inputs_of(self, options: Any) -> list[Any] | None:
        """The options of the torch operator, or None if it is none or has not all that are set."""
        raise NotImplementedError

    def outputs_of(self, options: Any, results: Any) -> Any:
        """The results of a torch operator as a call returns them."""
        raise NotImplementedError

    def batched(
        self, count: int, dims: Dims, options: Any, device: str | None, *tensors: Tensor
    ) -> tuple[Any, Any]:
        """The results of a batch of calls, and their dimensions: the rule of torch.func.vmap."""
        raise NotImplementedError

    def formula(self, options: Any, *tensors: Tensor) -> Any:
        """The definition, in torch operations."""
        raise NotImplementedError

    def run(self, module: Any, options: Any, tensors: Sequence[Tensor]) -> tuple[Any, Any]:
        """The results by kernels, and what the backward pass needs."""
        raise NotImplementedError

    def saved(self, tensors: Sequence[Tensor], wanted: Sequence[bool]) -> Sequence[Tensor]:
        """The tensors as the tape keeps them."""
        return tensors

    def later(self, options: Any) -> Sequence[int]:
        """The positions of tensors that kernels of the gradient do not read."""
        return ()

    def differentiate(self, node: Any, grads: Sequence[Tensor], wanted: Sequence[bool]) -> Any:
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

    saved(tensors, wanted): what the tape keeps of the tensors for these gradients.

    later(options): the positions of tensors that `backward` does not read if `forward` has run.
    They may be changed in place before it.

    linear: the positions of the tensors in which, together, the function is linear.
    """

    task = "forward"

    def __init__(
        self,
        formula: Callable[..., Any],
        kernels: Mapping[str, Load],
        known: Callable[..., Any] | None = None,
        *,
        signature: Signature | None = None,
        saved: Callable[..., Sequence[Tensor]] | None = None,
        later: Callable[[Any], Sequence[int]] | None = None,
        linear: Sequence[int] = (),
    ) -> None:
        super().__init__(kernels, signature)
        self.known, self.linear = known, linear
        self.formula = formula  # pyright: ignore
        if saved is not None:
            self.saved = saved  # pyright: ignore
        if later is not None:
            self.later = later  # pyright: ignore
        self.gradient = Gradient(self)

    def run(self, module: Any, options: Any, tensors: Sequence[Tensor]) -> tuple[Any, Any]:
        """As `Binding.run`."""
        return module.forward(options, *tensors)

    def inputs_of(self, options: Any) -> list[Any] | None:
        """As `Binding.inputs_of`."""
        return None if self.signature is None else self.signature.encode(options)

    def outputs_of(self, options: Any, results: Any) -> Any:
        """As `Binding.outputs_of`."""
        return results

    def batched(
        self, count: int, dims: Dims, options: Any, device: str | None, *tensors: Tensor
    ) -> tuple[Any, Any]:
        """As `Binding.batched`."""
        assert self.signature is not None
        folded = fold(count, dims, tensors, self.signature.cores)
        return self(options, *folded, device=device), 0

    def differentiate(self, node: Any, grads: Sequence[Tensor], wanted: Sequence[bool]) -> Any:
        """As `Binding.differentiate`, by the operator of the gradient."""
        grads = grads[: node.floats]
        call = GradientOptions(node.options, node.kept, tuple(wanted), len(grads))
        tensors = list(node.saved_tensors)
        if node.later and (torch.is_grad_enabled() or not is_eager(*grads)):
            for n, tensor, version in node.later:
                tensors[n] = unchanged(tensor, version)
        return self.gradient(call, *grads, *tensors, device=node.device)


class Linear(Operator):
    """A linear function of one tensor, whose gradient it is itself, with other options.

    transposed(options, tensor): these options.
    """

    def __init__(
        self,
        formula: Callable[..., Any],
        kernels: Mapping[str, Load],
        transposed: Callable[[Any, Tensor], Any],
        signature: Signature,
    ) -> None:
        super().__init__(formula, kernels, signature=signature)
        self.transposed = transposed

    def saved(self, tensors: Sequence[Tensor], wanted: Sequence[bool]) -> Sequence[Tensor]:
        """The tensor's shape."""
        return [blank(tensors[0])]

    def differentiate(self, node: Any, grads: Sequence[Tensor], wanted: Sequence[bool]) -> Any:
        """As `Binding.differentiate`."""
        options = self.transposed(node.options, node.saved_tensors[0])
        return (self(options, grads[0], device=node.device),)


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
        super().__init__(of.kernels, of.signature)
        self.of = of

    def formula(self, options: GradientOptions, *tensors: Tensor) -> Any:
        """The vector-Jacobian product of the operator's formula."""
        of, call = self.of, options
        plain = None
        if of.signature is not None and self._is_linear(call.wanted):
            plain = of.signature.plain(call.options, *tensors[call.results :])
        if plain is not None:
            options = call._replace(options=plain[0], kept=None)
            return self(options, *tensors[: call.results], *plain[1])

        def results(*inputs: Tensor) -> Any:
            if of.known is not None and call.kept is not None:
                return of.known(call.options, call.kept, *inputs)
            return of.formula(call.options, *inputs)

        return vjp(results, tensors[call.results :], tensors[: call.results], call.wanted)

    def run(self, module: Any, options: Any, tensors: Sequence[Tensor]) -> tuple[Any, Any]:
        """As `Binding.run`."""
        grads, inputs = tensors[: options.results], tensors[options.results :]
        found = module.backward(options.options, options.kept, grads, inputs, options.wanted)
        return self.outputs_of(options, found), ()

    def inputs_of(self, options: GradientOptions) -> list[Any] | None:
        """As `Binding.inputs_of`."""
        inputs = self.of.inputs_of(options.options)
        return None if inputs is None else [*inputs, list(options.wanted)]

    def outputs_of(self, options: GradientOptions, results: Any) -> Any:
        """As `Binding.outputs_of`."""
        pairs = zip(results, options.wanted, strict=True)
        return tuple([g if want else None for g, want in pairs])

    def batched(
        self, count: int, dims: Dims, options: Any, device: str | None, *tensors: Tensor
    ) -> tuple[Any, Any]:
        """As `Binding.batched`."""
        assert self.signature is not None
        options = options._replace(kept=None)  # it is of the tensors without the batch
        folded, shapes = unfold(count, dims, tensors, self.signature.cores, self.signature.core)
        results = self(options, *folded, device=device)
        pairs = zip(results, shapes, strict=True)
        found = tuple(None if g is None else g.reshape(count, *shape) for g, shape in pairs)
        return found, tuple(None if g is None else 0 for g in found)

    def differentiate(self, node: Any, grads: Sequence[Tensor], wanted: Sequence[bool]) -> Any:
        """As `Binding.differentiate`: torch differentiates the formula, if kernels cannot."""
        first = node.options.wanted
        if self._is_linear(first):
            return self._differentiate_linear(node, grads, wanted)

        def results(*inputs: Tensor) -> Any:
            return tuple(g for g in self.formula(node.options, *inputs) if g is not None)

        grads = tuple(grad for grad, want in zip(grads, first, strict=True) if want)
        return vjp(results, node.saved_tensors, grads, wanted)

    def _is_linear(self, wanted: Sequence[bool]) -> bool:
        """Whether the operator is linear in the tensors whose gradients are wanted."""
        return all(n in self.of.linear for n, want in enumerate(wanted) if want)

    def _differentiate_linear(self, node: Any, grads: Sequence[Any], wanted: Sequence[bool]) -> Any:
        """The same for gradients of tensors in which the operator is linear.

        With directions of these tensors, their gradient's product with `grads` is that of the
        operator's result and the gradient of the result.
        """
        of, options, (grad, *inputs) = self.of, node.options, node.saved_tensors
        at = [
            value if n not in of.linear else grads[n] if options.wanted[n] else blank(value)
            for n, value in enumerate(inputs)
        ]
        bent = tuple(want and n not in of.linear for n, want in enumerate(wanted[1:]))
        call = GradientOptions(options.options, None, bent, 1)
        found = of.gradient(call, grad, *at, device=node.device) if any(bent) else [None] * len(at)
        to_grad = of(options.options, *at, device=node.device) if wanted[0] else None
        return (to_grad, *found)


def device_of(tensors: Sequence[Tensor]) -> str:
    """The type of the device of all tensors, or none's if they differ."""
    for tensor in tensors:
        if not tensor.is_cpu:  # asked for by itself: names of devices take 1 us
            devices = {tensor.device.type for tensor in tensors}
            return devices.pop() if len(devices) == 1 else ""
    return "cpu"
