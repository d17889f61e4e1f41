"""Finds the call that detached the graph, for the error about a missing gradient."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._pytree import tree_leaves

from warpkit.core import checks

NUMBERS = ("item", "tolist", "__int__", "__index__", "__bool__")
"""Calls that return a tensor's values as numbers; integers from other calls are shapes."""

SHAPES_ALONE = ("new_", "_like", "size", "__len__", "dim")
"""Parts of the names of calls that read only a shape: noise in an image's shape is no cause."""

WRAPPERS = ("warpkit.core.sharding", "warpkit.distributed")
"""Modules that wrap every function on tensors: they are no cause, and users do not call them."""


class GradientTracer(TorchFunctionMode):
    """Tracks what is computed from a tensor, and which call detached each result.

    Not every call without a gradient is the cause: noise is drawn in an image's shape, and warps
    compute in separate arrays. The cause is the one from which the objective's value came.
    """

    def __init__(self, leaf: Tensor) -> None:
        super().__init__()
        self.leaf = leaf
        self.start = leaf.clone()  # no leaf, so that the objective may write to it
        self.cuts: dict[int, tuple[Any, str]] = {}
        """What has lost the gradient, and where, by id; kept alive so that no id is reused."""
        self.escapes: dict[int, str] = {}
        """The last cut for each degree of likelihood; see `_record`."""
        self._reaches: dict[Any, bool] = {}

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        inputs = tree_leaves((args, kwargs))
        follows = any(map(self.follows, inputs))
        inherited = None if follows else next(filter(None, map(self.cut_of, inputs)), None)
        result = func(*args, **(kwargs or {}))
        if inherited or (follows and not reads_shape(func)):
            outputs = [args[0]] if func is Tensor.__setitem__ else values_of(func, result)
            lost = [x for x in outputs if not self.follows(x)]
            if lost:
                self._record(func, inherited, lost)
        return result

    def _record(self, func: Callable[..., Any], inherited: str | None, lost: list[Any]) -> None:
        """Note the source of `lost`, the results of a call that have no gradient.

        If the value has no history at all, the likeliest cause are numbers that leave torch in the
        objective. Decisions (`if`) come next, then tensors that are detached there, for example to
        read their length. Calls inside the package come last.
        """
        inside, line = place()
        cut = inherited or describe(func, inside, line)
        self.cuts.update((id(x), (x, cut)) for x in lost if isinstance(x, HELD))
        rank = 3
        if not inside:
            rank = 2 if any(isinstance(x, Tensor) for x in lost) else 0
            rank = 1 if any(isinstance(x, bool) for x in lost) else rank
        self.escapes[rank] = cut

    def follows(self, value: object) -> bool:
        """Whether a gradient of `value` would reach the images."""
        if value is self.start or not isinstance(value, Tensor):
            return value is self.start
        visited, stack = set(), [value.grad_fn]
        while stack:
            node = stack.pop()
            if node is None or node in visited or self._reaches.get(node) is False:
                continue
            if self._reaches.get(node) or getattr(node, "variable", None) is self.leaf:
                self._reaches[value.grad_fn] = True
                return True
            visited.add(node)
            stack += [child for child, _ in node.next_functions]
        self._reaches.update(dict.fromkeys(visited, False))
        return False

    def cut_of(self, value: object) -> str | None:
        """Where `value` lost the gradient, if it did."""
        return self.cuts.get(id(value), (None, None))[1]

    def cause(self, value: object) -> str | None:
        """Where the objective's `value` lost the gradient, if it had one."""
        return self.cut_of(value) or next((self.escapes[r] for r in sorted(self.escapes)), None)


HELD = (Tensor, np.ndarray)


def reads_shape(func: Callable[..., Any]) -> bool:
    """Whether a call does not use the values of its arguments."""
    name = getattr(func, "__name__", "")
    return any(name.startswith(part) or name.endswith(part) for part in SHAPES_ALONE)


def values_of(func: Callable[..., Any], result: object) -> list[Any]:
    """The tensors, arrays and numbers of a result that hold values."""
    kinds = (*HELD, float, int) if getattr(func, "__name__", "") in NUMBERS else (*HELD, float)
    return [x for x in tree_leaves(result) if isinstance(x, kinds)]


def describe(func: Callable[..., Any], inside: str, line: str) -> str:
    """Describe a cut, such as `torch.Tensor.detach at model.py:12`."""
    cut = inside or resolve_name(func) or getattr(func, "__name__", repr(func))
    if not torch.is_grad_enabled() or torch.is_inference_mode_enabled():
        line += ", where gradients are switched off (no_grad or inference_mode)"
    return cut + line


def place() -> tuple[str, str]:
    """The package's function that makes the traced call, if any, and the objective's line."""
    inside = ""
    frame = sys._getframe(3)  # the caller of the call that `GradientTracer` watches
    while frame and frame.f_code is not fail_without_gradient.__code__:
        module = frame.f_globals.get("__name__", "")
        package = module.partition(".")[0]
        if package == __name__.partition(".")[0]:
            inside = inside if module in WRAPPERS else f"warpkit.{frame.f_code.co_name}"
        elif package != "torch":
            file = frame.f_code.co_filename.replace("\\", "/").rsplit("/", 1)[-1]
            return inside, f" at {file}:{frame.f_lineno}"
        frame = frame.f_back
    return inside, ""


def fail_without_gradient(
    name: str, objective: Callable[..., Any], views: Tensor, *extra: Any, **keywords: Tensor
) -> NoReturn:
    """Raise the error of an objective from which no gradient reaches `views` (N, C, H, W)."""
    keywords = {key: value.detach() for key, value in keywords.items()}
    leaf = views.detach().requires_grad_()
    with torch.enable_grad():
        watch = GradientTracer(leaf)
        with watch:
            value = objective(watch.start, *extra, **keywords)
    cause = watch.cause(value)
    ignored = "the objective does not use the images it is given"
    got = f"no gradient: it ends at {cause}" if cause else ignored
    checks.fail(name, "objective", "differentiable in the images it is given", got)
