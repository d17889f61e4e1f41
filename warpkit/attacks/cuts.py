"""Which call cut a gradient: for the error of an objective whose gradient does not arrive."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._pytree import tree_leaves

from warpkit import _checks as checks


class Watch(TorchFunctionMode):
    """Follows what is computed from a tensor, up to the first call that drops its gradient."""

    def __init__(self, start: Tensor) -> None:
        super().__init__()
        self.derived = {id(start): start}  # kept alive, so that no id is used again
        self.cut: str | None = None

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if self.cut is None and any(id(x) in self.derived for x in tensors((args, kwargs))):
            outputs = list(tensors(result))
            self.derived.update((id(x), x) for x in outputs if x.requires_grad)
            values = outputs or [
                x for x in tree_leaves(result) if isinstance(x, float | np.ndarray)
            ]
            if values and not any(x.requires_grad for x in outputs):
                self.cut = f"{short_name(func)} at {caller()}"
                if not torch.is_grad_enabled() or torch.is_inference_mode_enabled():
                    self.cut += ", where gradients are switched off (no_grad or inference_mode)"
        return result


def tensors(values: Any) -> Iterator[Tensor]:
    """The tensors in nested values."""
    return (x for x in tree_leaves(values) if isinstance(x, Tensor))


def short_name(func: Callable[..., Any]) -> str:
    """`torch.Tensor.detach` and the like."""
    return resolve_name(func) or getattr(func, "__name__", repr(func))


def caller() -> str:
    """The line of the call that is watched: the innermost one outside torch and this file."""
    for frame in reversed(traceback.extract_stack()):
        path = frame.filename.replace("\\", "/")
        if "/torch/" not in path and frame.filename != __file__ and "<" not in path[:1]:
            return f"{path.rsplit('/', 1)[-1]}:{frame.lineno}"
    return "an unknown line"


def fail_without_gradient(name: str, objective: Callable[[Tensor], Any], views: Tensor) -> NoReturn:
    """Raise the error of an objective from which no gradient reaches `views`."""
    start = views.detach().requires_grad_()
    with torch.enable_grad(), Watch(start) as watch:
        objective(start)
    cut = watch.cut or "the objective does not use the images it is given"
    wanted = "differentiable in the images it is given"
    checks.fail(name, "objective", wanted, f"no gradient: it ends at {cut}" if watch.cut else cut)
