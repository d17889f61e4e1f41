"""Finds out whether torch traces or transforms a call, so that kernels may not read its tensors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.autograd import forward_ad

F = TypeVar("F", bound=Callable[..., Any])


def constant_to_compilers(function: F) -> F:
    """torch.compiler.assume_constant_result, which imports the whole compiler to set this mark.

    That takes 1.5 s of the first call, of which nothing is compiled.
    """
    function._dynamo_marked_constant = True  # pyright: ignore
    return function


def has_tangents() -> bool:
    """Whether forward mode is at work, on whatever tensors."""
    return forward_ad._current_level >= 0


def in_transform() -> bool:
    """Whether torch.func's transforms are at work; not while Dynamo traces, which sees to them."""
    if torch.compiler.is_compiling():
        return False
    return torch._C._are_functorch_transforms_active()  # pyright: ignore


def can_differentiate() -> bool:
    """Whether anything may be differentiated now: by autograd, forward mode or torch.func."""
    return torch.is_grad_enabled() or has_tangents() or in_transform()


def runs_eagerly() -> bool:
    """Whether operations are done as they are called, followed by autograd's tape at most.

    Not while torch traces, transforms, or hands all operations to a mode of its dispatcher.
    """
    if torch.compiler.is_compiling() or has_tangents() or in_transform():
        return False
    return not (torch._C._len_torch_dispatch_stack() or torch.jit.is_tracing())  # pyright: ignore


def is_eager(*tensors: Tensor) -> bool:
    """Whether the tensors hold numbers, and nothing but autograd's reverse mode follows them.

    A subclass with a dispatch of its own, such as a fake tensor, may have no memory.
    """
    if not runs_eagerly() or any(map(Tensor.is_neg, tensors)) or any(map(is_batch, tensors)):
        return False
    return all(map(_has_memory, map(type, tensors)))


is_batch = torch._C._functorch.is_legacy_batchedtensor  # pyright: ignore
"""Batches of gradients (is_grads_batched) are no transform."""


def _has_memory(kind: Any) -> bool:
    return kind.__torch_dispatch__ is torch._C._disabled_torch_dispatch_impl  # pyright: ignore


@constant_to_compilers
def exports_to_onnx() -> bool:
    """Whether torch.onnx.export is tracing, which knows torch's own operators alone.

    Asked while Dynamo traces, too, by which torch.onnx.export tries again what could not be traced
    otherwise: Dynamo takes torch's own function for False.
    """
    # importing it takes 80 ms; who exports has done so
    return "torch.onnx" in sys.modules and torch.onnx.is_in_onnx_export()


NO_ONNX = "has no ONNX operator"
"""Why kernels do not serve what is exported to ONNX."""


def is_watched() -> bool:
    """Whether a mode sees the functions of torch that are called."""
    return torch._C._len_torch_function_stack() > 0  # pyright: ignore


def wants_gradient(*tensors: Tensor) -> bool:
    """Whether autograd's tape records what is done to the tensors."""
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def wants_derivative(image: Tensor, *others: Tensor) -> bool:
    """Whether autograd or a tangent follows an image (..., C, H, W), or others beside it.

    An integer image has no derivative, and then neither has what is made of it.
    """
    if not image.is_floating_point():
        return False
    tensors = (image, *others)
    if wants_gradient(*tensors):
        return True
    return any(forward_ad.unpack_dual(tensor).tangent is not None for tensor in tensors)


def is_readable(tensor: Tensor) -> bool:
    """Whether looking at the values costs nothing: on the CPU, outside traces and transforms."""
    on_cpu = tensor.device.type == "cpu"
    return on_cpu and not torch.compiler.is_compiling() and not is_transformed(tensor)


def is_transformed(tensor: Tensor) -> bool:
    """Whether `tensor` is inside torch.func's transforms, where its values cannot be read."""
    return torch._C._functorch.is_functorch_wrapped_tensor(tensor)  # pyright: ignore


def peel(tensor: Tensor) -> Tensor | None:
    """The tensor under torch.func's gradient wrappers; None where no value is there to be read."""
    if torch.compiler.is_compiling():
        return None
    functorch = torch._C._functorch  # pyright: ignore
    while functorch.is_functorch_wrapped_tensor(tensor):
        if functorch.is_batchedtensor(tensor):
            return None
        tensor = functorch.get_unwrapped(tensor)
    return tensor
