"""The loop of every attack: chunked gradients, steps, projection, history, state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from math import isfinite
from typing import Any

import torch
from torch import Tensor

from warpkit.attacks.distribution import check_generator
from warpkit.attacks.expectations import Objective, evaluate, patch_of
from warpkit.attacks.gradient_tracing import fail_without_gradient
from warpkit.attacks.random_parameters import Draws
from warpkit.core import checks
from warpkit.core.caller_warnings import warn
from warpkit.core.numbers import check_count
from warpkit.core.progress import progress_bar

MakeOptimizer = Callable[..., torch.optim.Optimizer]
SAME_CALL = "the state of an earlier result of the same call"
ROUNDED = 1e-5
"""The tolerance for projecting twice, for values in [0, 1] or a few pixels."""
STATE = {"variable", "history", "optimizer", "generator"}
"""The state that a run resumes from."""

Render = Callable[[Tensor, Draws], Tensor]
"""Renders the objective's input from a variable and the draws of a chunk."""


class Steepest(torch.optim.Optimizer):
    """Steps of one length: along the sign of the gradient (linf), or along the gradient (l2)."""

    def __init__(self, params: Any, lr: float, direction: Callable[[Tensor], Tensor]) -> None:
        super().__init__(params, {"lr": lr})
        self.direction = direction

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # pyright: ignore
        """One step against the gradient."""
        for group in self.param_groups:
            for x in group["params"]:
                x.sub_(self.direction(x.grad), alpha=group["lr"])


def sign(params: Any, lr: float) -> Steepest:
    """Signed steps: every value moves by `lr`."""
    return Steepest(params, lr, torch.sign)


def normalized(params: Any, lr: float) -> Steepest:
    """Steps of l2 norm `lr` for every image (..., C, H, W); none where the gradient is zero."""

    def direction(gradient: Tensor) -> Tensor:
        lengths = gradient.flatten(-3).norm(dim=-1)[..., None, None, None]
        return gradient / lengths.clamp(min=torch.finfo(gradient.dtype).tiny)

    return Steepest(params, lr, direction)


STEPS: dict[str, MakeOptimizer] = {"sign": sign, "gradient": normalized}


def make_optimizer(
    name: str, optimizer: str | MakeOptimizer, variable: Tensor, step_size: float
) -> torch.optim.Optimizer:
    """An optimizer: one of STEPS by name, or made by the caller's function."""
    if isinstance(optimizer, torch.optim.Optimizer):
        wanted = "a class such as torch.optim.Adam, or a function of ([tensor], lr=step_size)"
        checks.fail(name, "optimizer", wanted, f"one of {type(optimizer).__name__} made already")
    if not callable(optimizer):
        optimizer = STEPS[checks.check_name(name, "optimizer", optimizer, STEPS)]
    other = isinstance(optimizer, type) and not issubclass(optimizer, torch.optim.Optimizer)
    result = None if other else optimizer([variable], lr=step_size)  # pyright: ignore
    if not isinstance(result, torch.optim.Optimizer):
        wanted = "what makes a torch.optim.Optimizer of ([tensor], lr=step_size)"
        got = repr(optimizer) if other else f"what makes a {type(result).__name__}"
        checks.fail(name, "optimizer", wanted, got, TypeError)
    if isinstance(result, torch.optim.LBFGS):  # only its step needs a closure
        wanted = "an optimizer that takes one step for one gradient"
        checks.fail(name, "optimizer", wanted, "LBFGS")
    return result


def mean_and_gradient(
    name: str,
    objective: Objective,
    variable: Tensor,
    pieces: Sequence[Draws],
    render: Render,
    *extra: Any,
    patch: Callable[[Tensor], Tensor] | None = None,
) -> tuple[float, Tensor]:
    """The objective's mean over all chunks and its gradient, with one chunk in memory at a time.

    variable: the image or patch, (..., C, H, W); extra: further arguments of the objective; patch:
    makes its argument `patch` from the variable, if it has one.
    """
    count = sum(map(len, pieces))
    total, gradient = 0.0, torch.zeros_like(variable)
    for piece in pieces:
        views = render(variable, piece)
        keywords = {} if patch is None else patch_of(objective, patch(variable), *extra)
        value = evaluate(name, objective, views, *extra, **keywords) * (len(piece) / count)
        part = None
        if value.requires_grad:
            (part,) = torch.autograd.grad(value, variable, allow_unused=True)
        if part is None:
            fail_without_gradient(name, objective, views, *extra, **keywords)
        total += value.item()
        gradient += part
    return total, gradient


def describe(history: list[float]) -> str:
    """A summary of a descent."""
    ends = f", objective {history[0]:.4g} -> {history[-1]:.4g}" if history else ""
    return f"{len(history)} steps{ends}"


def descend(
    name: str,
    variable: Tensor,
    gradient_of: Callable[[], tuple[float, Tensor]],
    project: Callable[[Tensor], Tensor],
    optimizer: torch.optim.Optimizer,
    *,
    steps: int,
    resume: dict[str, Any] | None,
    generator: torch.Generator | None,
    progress: bool,
    step_size: float | None,
) -> tuple[list[float], dict[str, Any]]:
    """Optimise `variable` in place; return the history, and the state to resume from.

    step_size: the caller's, if given; a resumed state must have the same.
    """
    steps = check_count(name, "steps", steps)
    checks.check_bool(name, "progress", progress)
    check_generator(name, generator)
    history: list[float] = []
    if resume is not None:
        history = restore(name, resume, variable, optimizer, generator)
        check_resumed(name, variable, project, optimizer, step_size)
        if len(history) > steps:
            checks.fail(name, "steps", f"at least {len(history)}, those done before", steps)
    with progress_bar(name, total=steps, completed=len(history), visible=progress) as advance:
        while len(history) < steps:
            with torch.enable_grad():
                value, variable.grad = gradient_of()
            if not (isfinite(value) and bool(variable.grad.isfinite().all())):
                what = "value" if not isfinite(value) else "gradient"
                got = f"a {what} that is not, in step {len(history) + 1}"
                checks.fail(name, "objective", "finite, and its gradient too", got)
            if not history and not bool(variable.grad.any()):
                text = f"{name}: the gradient is zero at every pixel in the first step: "
                text += "the objective is flat there, or no view shows the image"
                warn(text)
            optimizer.step()
            with torch.no_grad():
                variable.copy_(project(variable))
            history.append(value)
            advance(f"objective {value:.4g}")
    variable.grad = None
    return history, {
        "variable": variable.detach().clone(),
        "history": list(history),
        "optimizer": deepcopy(optimizer.state_dict()),
        "generator": None if generator is None else generator.get_state(),
    }


def check_state(name: str, state: object) -> None:
    """`resume` must be None or a state that `descend` returned."""
    if state is not None and not (isinstance(state, dict) and state.keys() >= STATE):
        got = f"a dict of {sorted(state)}" if isinstance(state, dict) else type(state).__name__
        checks.fail(name, "resume", SAME_CALL, got, TypeError)


def check_resumed(
    name: str,
    variable: Tensor,
    project: Callable[[Tensor], Tensor],
    optimizer: torch.optim.Optimizer,
    step_size: float | None,
) -> None:
    """A resumed state must match these inputs, limits and steps."""
    with torch.no_grad():
        away = (project(variable) - variable).abs().max().item() if variable.numel() else 0.0
    if away > ROUNDED:
        got = f"one whose result lies {away:.3g} outside the limits of this call's arguments"
        checks.fail(name, "resume", SAME_CALL, got)
    begun = optimizer.param_groups[0].get("lr")
    if step_size is not None and begun != step_size:
        checks.fail(name, "step_size", f"None or the {begun} that `resume` began with", step_size)


def restore(
    name: str,
    state: dict[str, Any],
    variable: Tensor,
    optimizer: torch.optim.Optimizer,
    generator: torch.Generator | None,
) -> list[float]:
    """Restore a state that `descend` returned; return the history so far."""
    check_state(name, state)
    if state["variable"].shape != variable.shape:
        got = f"one of shape {checks.shape_of(state['variable'])}"
        checks.fail(name, "resume", f"{SAME_CALL}, of shape {checks.shape_of(variable)}", got)
    if (state["generator"] is None) != (generator is None):
        got = "one with a generator" if generator is None else "one without a generator"
        checks.fail(name, "resume", SAME_CALL, f"{got}, unlike this call")
    begun = state["optimizer"]["param_groups"][0].keys()
    if begun != optimizer.param_groups[0].keys():
        checks.fail(name, "resume", SAME_CALL, "one of another kind of optimizer")
    if generator is not None:
        generator.set_state(state["generator"])
    with torch.no_grad():
        variable.copy_(state["variable"])
    # a copy: torch's optimizers modify the tensors that they load
    optimizer.load_state_dict(deepcopy(state["optimizer"]))
    return list(state["history"])
