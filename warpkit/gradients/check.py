"""Compares gradients with finite differences, in float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.gradients.reasons import fixed_weights

STEP, ABSOLUTE, RELATIVE = 1e-6, 1e-5, 1e-3
"""gradcheck's own: a step that balances float64's rounding against the neglected curvature."""


@dataclass(frozen=True)
class GradientEntry:
    """One entry of one input, and its gradient by both methods."""

    input: int
    """Its place among the inputs."""
    index: tuple[int, ...]
    analytic: float
    numeric: float


@dataclass(frozen=True)
class GradientReport:
    """The result of `check_gradients` for all entries of all inputs; printed as text."""

    passed: bool
    worst: GradientEntry | None
    """The entry with the largest error relative to its tolerance; None if there was none."""
    checked: int
    wrong: int
    error: str | None = None
    """The error that autograd raised, if any."""

    def __repr__(self) -> str:
        if self.error is not None:
            return f"gradients cannot be computed: {self.error}"
        verdict = "agree" if self.passed else f"differ at {self.wrong:,}"
        text = f"gradients {verdict} of {self.checked:,} entries"
        if self.passed:
            text = f"gradients agree at all {self.checked:,} entries"
        if self.worst is None:
            return text
        at = f"input {self.worst.input}, index {self.worst.index}"
        values = f"analytic {self.worst.analytic:.9g}, numeric {self.worst.numeric:.9g}"
        return f"{text}; worst: {at}: {values}"


def check_gradients(function: Callable[..., Any], *inputs: Any) -> GradientReport:
    """Compare autograd with central differences, for every entry of every floating input.

    function takes the inputs, floating tensors as float64 copies, and returns a tensor, floating
    and differentiable, or a tuple of them; several outputs are checked through one fixed weighted
    sum. An entry agrees within 1e-5 + 1e-3 |numeric|, as in torch.autograd.gradcheck. A wrong
    gradient, or an error in autograd's backward, does not raise but is reported. On a kink, such as
    an integer position with "bilinear", there is no derivative to compare with.

    Raises TypeError if no input is a floating tensor or the function returns something else.

    >>> report = check_gradients(lambda x: x.square().sum(), torch.tensor([1.0, 3.0]))
    >>> report.passed, report.checked
    (True, 2)
    """
    name = "check_gradients"
    if not callable(function):
        checks.fail(name, "function", "a function", type(function).__name__, TypeError)
    values = [_double(value) for value in inputs]
    places = _floating_places(name, values)
    with torch.enable_grad():
        tracked = [v.clone().requires_grad_() if i in places else v for i, v in enumerate(values)]
        try:
            analytic = _gradients(_weighted_sum(function(*tracked)), [tracked[i] for i in places])
        except (RuntimeError, NotImplementedError) as error:
            return GradientReport(False, None, 0, 0, str(error).splitlines()[0])
    entries = [
        GradientEntry(i, index, float(grad[index]), _difference(function, values, i, index))
        for i, grad in zip(places, analytic, strict=True)
        for index in product(*map(range, grad.shape))
    ]
    excess = [_excess(entry) for entry in entries]
    wrong = sum(not x <= 1 for x in excess)  # NaN is wrong
    ranks = [math.inf if math.isnan(x) else x for x in excess]
    worst = entries[max(range(len(entries)), key=ranks.__getitem__)] if entries else None
    return GradientReport(wrong == 0, worst, len(entries), wrong)


def _floating_places(name: str, inputs: Sequence[Any]) -> list[int]:
    """The inputs that get a gradient: at least one, with values that can be changed."""
    places = [i for i, value in enumerate(inputs) if _is_floating(value)]
    if not places:
        got = ", ".join(type(value).__name__ for value in inputs) or "none"
        checks.fail(name, "inputs", "at least one floating tensor", got, TypeError)
    for i in places:
        checks.check_held(name, f"inputs[{i}]", inputs[i])
    return places


def _double(value: Any) -> Any:
    return value.detach().double() if _is_floating(value) else value


def _is_floating(value: object) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _weighted_sum(output: Any) -> Tensor:
    outputs = output if isinstance(output, tuple | list) else (output,)
    for tensor in outputs:
        if not _is_floating(tensor):
            got = tensor.dtype if isinstance(tensor, Tensor) else type(tensor).__name__
            wanted = "a function that returns floating tensors"
            checks.fail("check_gradients", "function", wanted, got, TypeError)
        if tensor.is_meta:
            wanted = "a function that returns tensors that hold values"
            checks.fail("check_gradients", "function", wanted, "one on the device meta", TypeError)
    return torch.stack(
        [(tensor * fixed_weights(tensor)).sum().double() for tensor in outputs]
    ).sum()


def _gradients(total: Tensor, inputs: list[Tensor]) -> list[Tensor]:
    """Zero for inputs that the total does not depend on.

    total (); inputs of any shape.
    """
    if not total.requires_grad:
        return [torch.zeros_like(tensor) for tensor in inputs]
    grads = torch.autograd.grad(total, inputs, allow_unused=True)
    return [
        torch.zeros_like(tensor) if grad is None else grad
        for grad, tensor in zip(grads, inputs, strict=True)
    ]


def _difference(
    function: Callable[..., Any], values: list[Any], i: int, index: tuple[int, ...]
) -> float:
    """The central difference of the weighted sum along one entry of input `i`."""
    ends = []
    for step in (STEP, -STEP):
        arguments = [value.clone() if _is_floating(value) else value for value in values]
        arguments[i][index] += step
        ends.append(float(_weighted_sum(function(*arguments)).detach()))
    return (ends[0] - ends[1]) / (2 * STEP)


def _excess(entry: GradientEntry) -> float:
    """The difference of the two, in tolerances."""
    return abs(entry.analytic - entry.numeric) / (ABSOLUTE + RELATIVE * abs(entry.numeric))
