"""Selects a backend for a call of `resize`, and joins values with the gradient of "exact".

A backend has `unsupported_reasons(image, rule)`, the reasons why a call is not supported, and
`resize(image, size, rule, box)`; for the pixels of OpenCV, Pillow and torch it also takes
`factors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import ModuleType

from torch import Tensor

from warpkit.core.tracing import exports_to_onnx, peel
from warpkit.engine.arithmetic import resize as arithmetics
from warpkit.engine.backends import refuse
from warpkit.engine.backends.resizing_axes import within_range
from warpkit.engine.definitions.exact_gradient import with_exact_gradient
from warpkit.engine.definitions.resize import Edges, Number, ResizeRule

BACKENDS = ("reference", "cpu")
"""The backends of `resize`: plain torch on any device, and compiled kernels."""

PREFERENCE = ("cpu", "reference")
"""The order in which "auto" tries backends."""


def select_backend(function: str, backend: str, image: Tensor, rule: ResizeRule) -> ModuleType:
    """The backend's module, or an error with the reasons of all backends that were tried."""
    if backend == "auto" and exports_to_onnx():
        from warpkit.engine import onnx as exported

        if not exported.unsupported_reasons(image, rule):
            return exported
    refused = {}
    for name in PREFERENCE if backend == "auto" else (backend,):
        module = backend_module(name, rule)
        refused[name] = module.unsupported_reasons(image, rule)
        if not refused[name]:
            return module
    refuse(function, backend, refused)


def backend_module(name: str, rule: ResizeRule) -> ModuleType:
    """The module, by a plain import, which Dynamo can trace."""
    if name == "cpu":
        from warpkit.engine.cpu import resize as module
    elif rule.arithmetic == "exact" or rule.is_zoom or rule.is_filter:
        from warpkit.engine.definitions import resize as module
    elif rule.arithmetic == "pillow":
        from warpkit.engine.arithmetic import pillow as module
    elif rule.arithmetic == "torchvision":
        from warpkit.engine.arithmetic import torch_resize as module
    else:
        from warpkit.engine.arithmetic import opencv_resize as module
    return module


def resize(
    module: ModuleType,
    image: Tensor,
    size: Sequence[int],
    rule: ResizeRule,
    box: tuple[Edges, Edges] | None,
    factors: tuple[float, float] | None,
) -> Tensor:
    """The result of a backend's module; image (..., C, H, W)."""
    if rule.arithmetic == "exact" or rule.is_zoom:
        found = module.resize(image, size, rule, box)
        if rule.arithmetic == "skimage" and rule.interpolation != "nearest":
            found = within_range(found, image, (-3, -2, -1))
        return found
    ends = [end for edges in box or () for end in (edges.low, edges.high)]
    plain = None if box is None else [Edges(*map(_number, edges)) for edges in box]
    if arithmetics.has_own_gradient(rule):
        return module.resize(image, size, rule, plain, factors)
    values = partial(module.resize, image.detach(), size, rule, plain, factors)
    by_kernels = module is backend_module("cpu", rule)
    exact_rule = arithmetics.exact_rule(rule)
    exact = backend_module("cpu" if by_kernels else "reference", exact_rule)
    surrogate = partial(exact.resize, image, size, exact_rule, box)
    inputs = (image, *(end for end in ends if isinstance(end, Tensor)))
    return with_exact_gradient(values, surrogate, *inputs, fused=by_kernels)


def _number(end: Number) -> float:
    """The end of a box, whose value can be read: see `warpkit.resizing`."""
    if not isinstance(end, Tensor):
        return end
    known = peel(end)
    assert known is not None
    return known.detach().item()
