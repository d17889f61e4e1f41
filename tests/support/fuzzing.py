"""How the fuzz tests call a function: any arguments, most of them valid.

A call is rejected in the common form of errors, or its result is right: finite and NaN where the
reference's or the oracle's result is, and close to it. Every call is made twice: the second one has
the same bits and gradients, or the same error.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support import hostile_arguments as wild
from tests.support.argument_kinds import parts, same
from tests.support.tolerances import TOLERANCE

MORE = os.environ.get("FUZZ_EXAMPLES")
"""How many calls of each function, other ones each time; None for 30 that are always the same."""


class Case(NamedTuple):
    """A function, its arguments, and what is known about its results."""

    function: Callable[..., Any]
    needed: dict[str, Any]
    options: dict[str, Any]
    truth: Callable[..., Any] | None = None
    """The result by float64 numpy, of arguments that are finite and not huge; None: not known."""
    says: tuple[str, ...] = ()
    """How its errors may begin, if not with its name."""
    spoiled: tuple[str, ...] | None = None
    """The arguments that are exchanged for anything; None: all."""


@st.composite
def calls(draw: st.DrawFn, case: Case) -> dict[str, Any]:
    """Valid arguments of one function, up to two of which are then replaced by anything."""
    needed, options = case.needed, case.options
    chosen = draw(st.sets(st.sampled_from(sorted(options)), max_size=3)) if options else set()
    values = {key: draw(needed[key]) for key in needed}
    values |= {key: draw(options[key]) for key in sorted(chosen)}
    if values.get("border") == "transparent" and "background" in options:
        shape = output_shape(values)
        values["background"] = draw(wild.tensors(shape, (values["image"].dtype,)))
    spoil = draw(st.sampled_from((0, 0, 0, 0, 0, 1, 1, 2)))
    open_to = sorted(values if case.spoiled is None else values.keys() & {*case.spoiled})
    for key in draw(st.permutations(open_to))[:spoil]:
        # a caller's function may raise any error
        own = callable(values[key])
        values[key] = draw(wild.wrong.filter(lambda v: not callable(v)) if own else wild.wrong)
    return values


def output_shape(values: dict[str, Any]) -> tuple[int, ...]:
    """(C, h, w) of a warp's result."""
    image, points = values["image"], values.get("points")
    own = image.shape[-2:] if points is None else points.shape[-3:-1]
    return (image.shape[-3], *(values.get("size") or own))


def leaves(value: Any) -> Any:
    """The same arguments, but with tensors that require a gradient as new leaves."""
    if isinstance(value, dict):
        return {key: leaves(item) for key, item in value.items()}
    if isinstance(value, tuple | list) and any(isinstance(v, torch.Tensor) for v in value):
        return type(value)([leaves(item) for item in value])
    if isinstance(value, torch.Tensor) and value.requires_grad:
        return value.detach().requires_grad_()
    return value


def weights(result: torch.Tensor) -> torch.Tensor:
    """Fixed weights from 0.5 to 1.5 for the sum of a result."""
    line = torch.linspace(0.5, 1.5, result.numel(), device=result.device)
    return line.reshape(result.shape).to(result.dtype)


def gradients(result: Any, values: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The gradients of a fixed weighted sum of the result's tensors."""
    several = {k: v for k, v in values.items() if isinstance(v, list)}
    own = values | {f"{k}[{i}]": v for k, items in several.items() for i, v in enumerate(items)}
    of = {k: v for k, v in own.items() if isinstance(v, torch.Tensor) and v.requires_grad}
    reached = [t for t in parts(result) if isinstance(t, torch.Tensor) and t.requires_grad]
    if not of or not reached:
        return {}
    total = sum((part * weights(part)).sum().double() for part in reached)
    grads = torch.autograd.grad(total, list(of.values()), allow_unused=True)
    return {key: grad for key, grad in zip(of, grads, strict=True) if grad is not None}


def run(name: str, case: Case, values: dict[str, Any]) -> Any:
    """The function's result, or its error, which is in the common form."""
    try:
        with warnings.catch_warnings():
            expected = (
                r"[\w.]+: (no gradient reaches|the image has values|`\w+` above 1 leaves nothing)"
            )
            warnings.filterwarnings("ignore", expected)
            return case.function(**values)
    except (ValueError, TypeError) as error:
        refused = str(error)
    says = (*case.says, f"{name.split('.')[-1]}: ")
    assert refused.startswith(says), refused
    assert refused
    return Refused(refused)


class Refused(str):
    """The text of an error."""


class Made(NamedTuple):
    """A call that was made twice."""

    result: Any
    gradients: dict[str, torch.Tensor]


def twice(name: str, case: Case, values: dict[str, Any]) -> Made | None:
    """Make a call twice with equal arguments and random numbers; None if it is rejected."""
    generators = [value for value in values.values() if isinstance(value, torch.Generator)]
    states, drawn = [each.get_state() for each in generators], torch.get_rng_state()
    results = []
    for _ in range(2):
        torch.set_rng_state(drawn)
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)
        mine = leaves(values)
        if isinstance(mine.get("dst"), np.ndarray):  # it is written to
            mine["dst"] = mine["dst"].copy()
        result = run(name, case, mine)
        results.append(Made(result, gradients(result, mine)))
    first, second = results
    assert same(first, second), f"the second call differs: {first}\n{second}"
    return None if isinstance(first.result, Refused) else first


def tolerance_of(tensor: torch.Tensor) -> float:
    """The table's tolerance for results computed from such a tensor."""
    # one rounding of the type, which may go the other way
    half = {torch.float16: "cuda float16", torch.bfloat16: "cuda bfloat16"}
    return TOLERANCE[half.get(tensor.dtype, f"cpu {tensor.dtype}")]


def size_of(*values: Any) -> float:
    """The largest finite number in tensors, lists and numbers; at least 1."""
    largest = 1.0
    for value in values:
        if isinstance(value, torch.Tensor) and value.device.type == "meta":
            continue
        with suppress(TypeError, ValueError, RuntimeError, OverflowError):
            sizes = torch.as_tensor(value).detach().double().abs()
            largest = max(largest, float(sizes[sizes.isfinite()].max()))
    return largest


def assert_near(
    ours: torch.Tensor, reference: torch.Tensor, image: torch.Tensor, what: str, size: float = 1.0
) -> None:
    """Equal up to the table's tolerance times the largest finite entry; NaN equals NaN.

    size: the size of the summands, if they may be larger than the sum.
    """
    assert ours.shape == reference.shape, what
    assert ours.dtype == reference.dtype, what
    if ours.device.type == "meta" or ours.numel() == 0:
        return
    whole = not ours.is_floating_point()
    a, b = ours.detach().double(), reference.detach().double()
    finite = b.isfinite()
    assert torch.equal(a.isfinite(), finite), f"{what}: {a}\n{b}"
    largest = max(size, size_of(b))
    # a value halfway between two integers may be rounded either way
    tolerance = 1.0 if whole else max(map(tolerance_of, (ours, image))) * largest
    assert not ((a - b).abs()[finite] > tolerance).any(), f"{what}: {a}\n{b}"


LARGE = 1e4
"""Numbers below it lose no digit to others in float64."""


def plain(value: Any) -> Any:
    """Tensors and lists of numbers as arrays: floats as float64, integers unchanged."""
    if isinstance(value, torch.Tensor):
        array = value.detach()
        return array.double().numpy() if array.is_floating_point() else array.numpy()
    if not isinstance(value, list | tuple):
        return value
    if any(isinstance(item, torch.Tensor) for item in value):
        return [plain(item) for item in value]
    return np.asarray(value)


def tame(value: Any) -> bool:
    """Whether an argument is finite, not huge, on the CPU and of a common type."""
    if isinstance(value, torch.Tensor):
        usual = value.dtype in (torch.float32, torch.float64, torch.int64)
        usual = usual and value.layout == torch.strided and value.device.type == "cpu"
        return usual and bool((value.abs() < LARGE).all())
    if isinstance(value, list | tuple):
        return all(map(tame, value))
    if isinstance(value, bool | str):
        return True
    return isinstance(value, int | float) and abs(value) < LARGE


def assert_true(case: Case, result: Any, values: dict[str, Any]) -> None:
    """Check that a result is close to the oracle's, if there is one."""
    if case.truth is None or not all(map(tame, values.values())):
        return
    expected = case.truth(**{key: plain(value) for key, value in values.items()})
    if expected is None:
        return
    pairs = [(result, expected)]
    if isinstance(result, tuple):
        pairs = list(zip(result, expected, strict=True))
    types = [value.dtype for value in values.values() if isinstance(value, torch.Tensor)]
    for ours, truth in pairs:
        ours, truth = torch.as_tensor(ours).detach(), np.asarray(truth, dtype=np.float64)
        assert tuple(ours.shape) == truth.shape
        if truth.size == 0:
            continue
        single = torch.float32 in (ours.dtype, *types)
        tolerance = TOLERANCE["fuzz float32" if single else "fuzz float64"]
        apart = np.abs(ours.double().numpy() - truth).max()
        assert apart <= tolerance * max(1.0, np.abs(truth).max()), f"{ours}\n{truth}"


def check_result(name: str, case: Case, values: dict[str, Any]) -> Made | None:
    """Check that a call is rejected, or right with gradients that can be computed."""
    outcome = twice(name, case, values)
    if outcome is not None and outcome.result is not None:
        assert_true(case, outcome.result, values)
    return outcome


def fuzz(
    name: str,
    case: Case,
    check: Callable[[str, Case, dict[str, Any]], Any] = check_result,
    least: int = 30,
) -> None:
    """Make many calls of one function; `least`, unless FUZZ_EXAMPLES asks for more."""

    @settings(
        max_examples=int(MORE or least),
        derandomize=not MORE,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(values=calls(case))
    def one(values: dict[str, Any]) -> None:
        check(name, case, values)

    one()
