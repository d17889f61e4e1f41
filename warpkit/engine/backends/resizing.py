"""Selects a backend for a call of `resize`.

A backend has `unsupported_reasons(image, rule)`, the reasons why a call is not supported, and
`resize(image, size, rule, box)`; for arithmetics other than "exact" it also takes `factors`.
"""

from __future__ import annotations

from types import ModuleType

from torch import Tensor

from warpkit.core.tracing import exports_to_onnx
from warpkit.engine.backends import refuse
from warpkit.engine.sampling.resize import ResizeRule

BACKENDS = ("reference", "cpu")
"""The backends of `resize`: plain torch on any device, and compiled kernels."""

PREFERENCE = ("cpu", "reference")
"""The order in which "auto" tries backends."""


def select_backend(function: str, backend: str, image: Tensor, rule: ResizeRule) -> ModuleType:
    """The backend's module, or an error with the reasons of all backends that were tried."""
    if backend == "auto" and exports_to_onnx():
        from warpkit.engine.backends import exported

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
        from warpkit.engine.backends.cpu import resize as module
    elif rule.arithmetic == "exact":
        from warpkit.engine.sampling import resize as module
    elif rule.arithmetic == "pillow":
        from warpkit.engine.arithmetic import pillow as module
    elif rule.arithmetic == "torchvision":
        from warpkit.engine.arithmetic import torch_resize as module
    else:
        from warpkit.engine.arithmetic import opencv_resize as module
    return module
