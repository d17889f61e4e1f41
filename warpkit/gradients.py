"""Gradients by choice, and where they are: surrogates, coverage, and a check by differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor

from warpkit import _checks as checks
from warpkit import _tracing as tracing
from warpkit._warnings import warn
from warpkit.coverage import Reads, fixed_weights
from warpkit.kernels.reference import compute_dtype, minus_nothing
from warpkit.warp import IMAGE_GRADIENTS, named_rule


def straight_through(value: Tensor, surrogate: Tensor) -> Tensor:
    """`value` on the way forward, the gradient of `surrogate` on the way back.

    Both of one shape, floating; the result is `value` to the last bit, in its type, and nothing
    flows back to `value`. Biased: the gradient is that of another function. It helps where the true
    one is zero or absent (rounding, nearest, a hard threshold) and the surrogate moves the same
    way. Gradients: all orders and both modes of `surrogate`; zero where it is NaN or infinite.

    >>> x = torch.tensor([0.2, 0.7], requires_grad=True)
    >>> straight_through(x.round(), x * x).sum().backward()
    >>> x.grad
    tensor([0.4000, 1.4000])
    """
    name = "straight_through"
    for argument, tensor in (("value", value), ("surrogate", surrogate)):
        _check_floating(name, argument, tensor)
    if value.shape != surrogate.shape:
        wanted = f"of the shape of `value`, {checks.shape_of(value)}"
        checks.fail(name, "surrogate", wanted, checks.shape_of(surrogate))
    checks.check_device(name, "surrogate", surrogate, value.device)
    return add_gradient(value.detach(), surrogate.to(value.dtype))


def add_gradient(value: Tensor, surrogate: Tensor) -> Tensor:
    """`value` to the last bit, with the gradient of `surrogate` added to its own."""
    return value - minus_nothing(surrogate)


def quantize(image: Tensor, *, levels: int = 256) -> Tensor:
    """What a file of `levels` levels holds of an image in [0, 1]; the gradient passes unchanged.

    image (...), floating; values below 0 and above 1 become 0 and 1; ties go to the even level.
    Returns the same shape and type. Biased: the true gradient is zero nearly everywhere, this one
    is 1, outside [0, 1] too, so that a saturated pixel can come back. It helps where a perturbation
    must survive being saved as 8 bits. NaN stays NaN. Gradients: first order, both modes (the
    second is zero). Warns, on the CPU, of values that no change by at most 1 brings about: below
    -1 and above 2, as images in [0, 255] have them.

    >>> quantize(torch.tensor([0.1, 0.5, 1.2]), levels=3)
    tensor([0.0000, 0.5000, 1.0000])
    """
    name = "quantize"
    _check_floating(name, "image", image)
    if not isinstance(levels, int) or isinstance(levels, bool) or levels < 2:
        checks.fail(name, "levels", "an integer of at least 2", repr(levels))
    if levels > 2**53:  # no type tells more of them apart
        checks.fail(name, "levels", "an integer of at most 2^53", f"{levels!r:.60}")
    warn_beyond_unit(name, image)
    exact = image.detach().to(compute_dtype(image.dtype))
    rounded = (exact.clamp(0, 1) * (levels - 1)).round() / (levels - 1)
    return add_gradient(rounded.to(image.dtype), image)


def warn_beyond_unit(name: str, image: Tensor) -> None:
    """Say that an image is not one in [0, 1], nor one that a perturbation has driven out of it.

    One pass over its values, where they can be read and nothing waits for them.
    """
    if image.device.type != "cpu" or image.numel() == 0 or not tracing.is_eager(image):
        return
    low, high = (bound.item() for bound in image.detach().aminmax())
    if low < -1 or high > 2:
        text = f"{name}: the image has values from {low:g} to {high:g}, but is taken as one in "
        warn(text + "[0, 1]: what lies outside becomes 0 or 1 (image / 255, if it is in 8 bits)")


def _check_floating(name: str, argument: str, tensor: object) -> None:
    if not isinstance(tensor, Tensor):
        checks.fail(name, argument, "a tensor", type(tensor).__name__, TypeError)
    if tensor.dtype not in checks.FLOATS:
        wanted = "of a floating type: integers carry no gradient"
        checks.fail(name, argument, wanted, tensor.dtype, TypeError)
    checks.check_dense(name, argument, tensor)


@dataclass(frozen=True)
class GradientSupport:
    """Which entries of an input get a gradient; `str` of it is one line."""

    nonzero: int
    total: int
    fraction: float
    mask: Tensor
    """True where the gradient is not zero (NaN counts as not zero); of the input's shape."""

    def __str__(self) -> str:
        return f"{self.nonzero:,} of {self.total:,} entries ({self.fraction:.1%}) get a gradient"

    def explain(
        self,
        where: Any,
        *,
        size: Sequence[int] | None = None,
        interpolation: str = "bilinear",
        border: str = "constant",
        inverse: bool = False,
        antialias: bool | int = False,
        image_gradient: str = "exact",
    ) -> str:
        """Why the other entries of a warped image get none, with counts, as text.

        The input must be the image (..., C, H, W); where is the matrix (..., 2, 3) or (..., 3, 3)
        given to the warp, or the points (..., h, w, 2) given to `remap`; the options are the warp's
        own, those that decide which pixels are read.

        >>> image = torch.rand(1, 4, 4, requires_grad=True)
        >>> matrix = torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]])
        >>> from warpkit import warp_affine
        >>> print(gradient_support(warp_affine(image, matrix), image).explain(matrix))
        8 of 16 entries (50.0%) get a gradient
               4  are not visible: no output pixel reads them
               4  are read with weight 0 only: image_gradient="straight_through" reaches them
        16 output pixels: 8 show the border alone, 0 have no source point (NaN, or 2^31 and beyond)
        """
        checks.check_name("explain", "image_gradient", image_gradient, IMAGE_GRADIENTS)
        rule = named_rule("explain", interpolation, border, "exact")
        reads = Reads(self.mask, where, size, rule, inverse, antialias)
        lines = [str(self)]
        for reason, entries in reads.reasons(image_gradient).items():
            count = int((entries & ~self.mask).sum())
            lines += [f"{count:8,}  {reason}"] if count else []
        return "\n".join([*lines, reads.output()])


def gradient_support(output: Tensor, input: Tensor) -> GradientSupport:
    """Which entries of `input` the gradient of `output` reaches.

    output any shape, a loss or an image; input any shape, part of output's graph, which is kept.
    The gradient is that of a fixed weighting of the outputs (1 for a single number), so that
    gradients of different outputs do not cancel. Raises ValueError where there is no graph.

    >>> x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> print(gradient_support(x[:2].prod(), x))
    2 of 3 entries (66.7%) get a gradient
    """
    for argument, tensor in (("output", output), ("input", input)):
        _check_floating("gradient_support", argument, tensor)
        checks.check_held("gradient_support", argument, tensor)
        if not tensor.requires_grad:
            wanted = "part of an autograd graph"
            checks.fail("gradient_support", argument, wanted, "requires_grad=False")
    weight = fixed_weights(output)
    (grad,) = torch.autograd.grad(output, input, weight, retain_graph=True, allow_unused=True)
    mask = torch.zeros_like(input, dtype=torch.bool) if grad is None else grad != 0
    nonzero, total = int(mask.sum()), mask.numel()
    return GradientSupport(nonzero, total, nonzero / max(total, 1), mask)


@dataclass(frozen=True)
class GradientEntry:
    """One entry of one input, and its gradient by both ways."""

    input: int
    """Its place among the inputs."""
    index: tuple[int, ...]
    analytic: float
    numeric: float


@dataclass(frozen=True)
class GradientReport:
    """What `check_gradients` found in all entries of all inputs; `str` of it says it in words."""

    passed: bool
    worst: GradientEntry | None
    """The entry that is farthest off for its tolerance; None where there was none to compare."""
    checked: int
    wrong: int
    error: str | None = None
    """What autograd raised, if it did."""

    def __str__(self) -> str:
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


STEP, ABSOLUTE, RELATIVE = 1e-6, 1e-5, 1e-3
"""gradcheck's own: a step that balances float64's rounding against the curvature left out."""


def check_gradients(function: Callable[..., Any], *inputs: Any) -> GradientReport:
    """Central finite differences against autograd, for every entry of every floating input.

    function takes the inputs, floating tensors as float64 copies, and returns a tensor, floating
    and differentiable, or a tuple of them; several outputs are checked through one fixed weighted
    sum. An entry agrees within 1e-5 + 1e-3 |numeric|, as in torch.autograd.gradcheck. A wrong
    gradient does not raise, it is reported; nor does an error in autograd's backward. On a kink,
    such as a whole pixel position under "bilinear", there is no derivative to agree with.

    Raises TypeError where no input is a floating tensor or the function returns something else.

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
    """Which inputs get a gradient: at least one, and their values can be moved."""
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
    """Zero where the total does not depend on an input."""
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
        moved = [value.clone() if _is_floating(value) else value for value in values]
        moved[i][index] += step
        ends.append(float(_weighted_sum(function(*moved)).detach()))
    return (ends[0] - ends[1]) / (2 * STEP)


def _excess(entry: GradientEntry) -> float:
    """How far the two are apart, in tolerances."""
    return abs(entry.analytic - entry.numeric) / (ABSOLUTE + RELATIVE * abs(entry.numeric))
