"""Finds out whether torch traces or transforms a call, so that kernels may not read its tensors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.autograd import forward_ad

F = TypeVar("F", bound=Callable[..., Any])


def constant_to_compilers(function: F) -> F:
    """torch.compiler.assume_constant_result without its import of the whole compiler.

    The import would take 1.5 s of the first call, although nothing is compiled.
    """
    function._dynamo_marked_constant = True  # pyright: ignore
    return function


def has_tangents() -> bool:
    """Whether forward mode is active, on any tensors."""
    return forward_ad._current_level >= 0


def in_transform() -> bool:
    """Whether torch.func's transforms are active; not while Dynamo traces, which handles them."""
    if torch.compiler.is_compiling():
        return False
    return torch._C._are_functorch_transforms_active()  # pyright: ignore


def can_differentiate() -> bool:
    """Whether anything may be differentiated now: by autograd, forward mode or torch.func."""
    return torch.is_grad_enabled() or has_tangents() or in_transform()


def runs_eagerly() -> bool:
    """Whether operations run immediately, with at most autograd's tape.

    Not while torch traces, transforms, or passes all operations to a dispatch mode.
    """
    if torch.compiler.is_compiling() or forward_ad._current_level >= 0:
        return False
    inner: Any = torch._C
    if inner._are_functorch_transforms_active() or inner._len_torch_dispatch_stack():
        return False
    return not inner._is_tracing()


def is_eager(*tensors: Tensor) -> bool:
    """Whether the tensors hold numbers, and only autograd's reverse mode tracks them.

    A subclass with its own dispatch, such as a fake tensor, may have no memory.
    """
    if not runs_eagerly() or any(map(Tensor.is_neg, tensors)) or any(map(is_batch, tensors)):
        return False
    kinds = set(map(type, tensors))
    return kinds <= PLAIN or all(map(_has_memory, kinds))


PLAIN = {Tensor, torch.nn.Parameter}


is_batch = torch._C._functorch.is_legacy_batchedtensor  # pyright: ignore
"""Batches of gradients (is_grads_batched) are no transform."""


def _has_memory(kind: Any) -> bool:
    return kind.__torch_dispatch__ is torch._C._disabled_torch_dispatch_impl  # pyright: ignore


@constant_to_compilers
def exports_to_onnx() -> bool:
    """Whether torch.onnx.export is tracing, which supports only torch's own operators.

    Also correct while Dynamo traces, which torch.onnx.export uses as a fallback: Dynamo evaluates
    torch's own function to False.
    """
    # importing it takes 80 ms; an export has already done so
    if "torch.onnx" not in sys.modules:
        return False
    if torch.onnx.is_in_onnx_export():
        return True
    # torch 2.7's function, which is TorchScript's, does not see the exporter that uses Dynamo
    is_old = torch.onnx.is_in_onnx_export.__module__ == "torch.onnx.utils"
    return is_old and _is_called_by("torch.onnx")


def _is_called_by(package: str) -> bool:
    """Whether a function of a module in `package` is among the callers."""
    frame = sys._getframe()
    while frame := frame.f_back:
        if frame.f_globals.get("__name__", "").startswith(f"{package}."):
            return True
    return False


NO_ONNX = "has no ONNX operator"
"""Why kernels do not support the export to ONNX."""


def is_watched() -> bool:
    """Whether a mode intercepts calls of torch functions."""
    return torch._C._len_torch_function_stack() > 0  # pyright: ignore


def wants_gradient(*tensors: Tensor) -> bool:
    """Whether autograd records operations on the tensors."""
    if torch.is_grad_enabled():
        for tensor in tensors:  # a generator would take longer than the question
            if tensor.requires_grad:
                return True
    return False


def wants_derivative(image: Tensor, *others: Tensor) -> bool:
    """Whether autograd or a tangent tracks an image (..., C, H, W), or the others.

    An integer image has no derivative, nor has any result computed from it.
    """
    if not image.is_floating_point():
        return False
    tensors = (image, *others)
    if not torch.compiler.is_compiling():
        # torch.func's wrappers hide what tracks the tensor that they wrap
        tensors = tuple(part for tensor in tensors for part in _layers(tensor))
    if wants_gradient(*tensors):
        return True
    if has_tangents() and in_transform():  # vmap cannot unpack duals
        return True
    return any(forward_ad.unpack_dual(tensor).tangent is not None for tensor in tensors)


def _layers(tensor: Tensor) -> Iterator[Tensor]:
    """The tensor, and those that torch.func's wrappers around it hide."""
    yield tensor
    functorch = torch._C._functorch  # pyright: ignore
    while functorch.is_functorch_wrapped_tensor(tensor):
        tensor = functorch.get_unwrapped(tensor)
        yield tensor


def is_readable(tensor: Tensor) -> bool:
    """Whether values can be read without synchronising: on the CPU, outside traces, transforms."""
    on_cpu = tensor.device.type == "cpu"
    return on_cpu and not torch.compiler.is_compiling() and not is_transformed(tensor)


def is_transformed(tensor: Tensor) -> bool:
    """Whether `tensor` is inside torch.func's transforms, where its values cannot be read."""
    return torch._C._functorch.is_functorch_wrapped_tensor(tensor)  # pyright: ignore


def peel(tensor: Tensor) -> Tensor | None:
    """The tensor under torch.func's gradient wrappers; None if it has no readable value."""
    if torch.compiler.is_compiling():
        return None
    functorch = torch._C._functorch  # pyright: ignore
    while functorch.is_functorch_wrapped_tensor(tensor):
        if functorch.is_batchedtensor(tensor):
            return None
        tensor = functorch.get_unwrapped(tensor)
    return tensor
