"""Every public function, called twice with equal arguments of every documented kind.

The second call gives the first one's bits, and both those of a call with plain tensors: a call that
is right once and wrong when repeated, or wrong for a view, fails here.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

import warpkit as wk
from tests.support import argument_kinds as kinds
from tests.support import exported_calls, exported_face_calls, exported_pixel_calls
from tests.support.argument_kinds import Kind
from tests.support.exported_inputs import (
    BYTES,
    FIELD,
    FLOW,
    HOMOGRAPHY,
    IMAGE,
    MATRIX,
    PLACES,
    ExportedCall,
)
from warpkit.engine.binding import plan

OPTIONS: dict[str, tuple[Callable[..., Any], Sequence[Any], dict[str, Any]]] = {
    "warp_affine inverse": (wk.warp_affine, (IMAGE, MATRIX), {"inverse": True}),
    "warp_affine nearest of bytes": (wk.warp_affine, (BYTES, MATRIX), {"interpolation": "nearest"}),
    "warp_affine antialias": (wk.warp_affine, (IMAGE, MATRIX), {"antialias": True}),
    "warp_perspective inverse": (wk.warp_perspective, (IMAGE, HOMOGRAPHY), {"inverse": True}),
    "warp_perspective of bytes": (wk.warp_perspective, (BYTES, HOMOGRAPHY), {"size": (9, 40)}),
    "remap relative": (wk.remap, (IMAGE, FLOW), {"relative": True}),
    "remap bicubic": (wk.remap, (IMAGE, FIELD), {"interpolation": "bicubic"}),
    "remap nearest of bytes": (wk.remap, (BYTES, FIELD), {"interpolation": "nearest"}),
    "remap relative, nearest": (wk.remap, (BYTES, FLOW), {"relative": True}),
    "sample_pixels reflect": (wk.sample_pixels, (IMAGE, PLACES), {"border": "reflect"}),
    "flow.from_matrix inverse": (wk.flow.from_matrix, (MATRIX,), {"size": (9, 8), "inverse": True}),
}
"""Options that change the way to a kernel, beside the exported calls."""
CALLS = {
    f"{call.function} {call.words}".strip(): call
    for made in (exported_pixel_calls, exported_calls, exported_face_calls)
    for call in made.calls()
} | {
    name: ExportedCall(name.split()[0], name, partial(function, **options), given)
    for name, (function, given, options) in OPTIONS.items()
}
DIFFERENTIABLE = [name for name in CALLS if name != "attacks.on_uint8"]
"""That call's function divides whole numbers, without another one for the gradient."""
OF_THE_ARGUMENTS = [name for name in CALLS if not name.startswith("transforms.")]
"""torchvision draws the numbers of its transforms on the default device."""
NUMBERS = ("MatrixLike", "PointsLike", "NumbersLike", "BoxesLike", "FlowLike", "ArrayLike")
"""Annotations of arguments that may be arrays, lists and integers."""
OF_TORCH = {
    "attacks.nonprintability": "torch's distances",
    "attacks.total_variation": "torch's sums of views",
    "indexing.lookup_2d": "torch's product of matrices",
    "indexing.superposition_assign": "torch's product of matrices",
    "indexing.superposition_lookup": "torch's product of matrices",
    "nn.SpatialTransformer": "torch's layers, in the localization",
    "opencv.findHomography": "torch's sums of views",
}
"""Functions whose last bits depend on an argument's memory layout, and why."""
OF_ONE_KIND = ("opencv.hconcat", "opencv.vconcat")
"""Functions that refuse arrays beside tensors, as they have no common result."""


def annotations(call: ExportedCall) -> list[str]:
    """The annotation of each given argument; empty where a lambda hides it."""
    inner = call.call
    while isinstance(inner, partial):
        inner = inner.func
    if call.function.startswith("opencv."):
        return ["ImageLike"] * len(call.inputs)
    if not inspect.isroutine(inner) or inner.__name__ == "<lambda>":
        return [""] * len(call.inputs)
    named = inspect.signature(inner).parameters.values()
    count = len(call.inputs)
    found = [p.annotation for p in named for _ in range(count if p.kind is p.VAR_POSITIONAL else 1)]
    return found[:count]


def kinds_of(tensor: Tensor, annotation: str) -> Iterator[Kind]:
    """The documented kinds of one argument."""
    yield from kinds.views(tensor)
    if any(name in annotation for name in (*NUMBERS, "ImageLike")):
        yield from kinds.arrays(tensor)
    if any(name in annotation for name in NUMBERS):
        yield from kinds.lists(tensor)
        yield from kinds.integers(tensor)


def outcome(call: Callable[..., Any], given: Sequence[Any]) -> Any:
    """The result, or the text of the error; random numbers are the same in every call."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            return call(*given)
        except (TypeError, ValueError) as error:
            return str(error)


def twice(call: Callable[..., Any], given: Sequence[Any], what: str) -> Any:
    """The outcome of two calls with equal arguments."""
    first, second = (outcome(call, given) for _ in range(2))
    assert kinds.same(first, second), f"the second call of {what}"
    return first


def rounded(result: Any, other: Any) -> Any:
    """A result of one tensor in the type of another."""
    both = isinstance(result, Tensor) and isinstance(other, Tensor)
    return result.to(other.dtype) if both else result


@pytest.mark.parametrize("name", CALLS)
def test_the_second_call_equals_the_first_and_plain_tensors(name: str):
    call = CALLS[name]
    given = [given.tensor(0) for given in call.inputs]
    plain = twice(call.call, given, "plain tensors")
    assert not isinstance(plain, str), plain
    known: dict[tuple[int, torch.dtype, bytes], Any] = {}

    def plain_result(place: int, tensor: Tensor) -> Any:
        key = place, tensor.dtype, tensor.numpy().tobytes()
        if key not in known:
            values = [*given[:place], tensor, *given[place + 1 :]]
            known[key] = outcome(call.call, values)
        return known[key]

    for place, annotation in enumerate(annotations(call)):
        for kind in kinds_of(given[place], annotation):
            what = f"{kind.name}, argument {place}"
            found = twice(call.call, [*given[:place], kind.value, *given[place + 1 :]], what)
            wanted = [plain_result(place, tensor) for tensor in kind.plain]
            if call.function in OF_ONE_KIND and not isinstance(kind.value, Tensor):
                assert "must be a " in found, what
            elif call.function in OF_TORCH:
                continue
            else:
                equal = (kinds.same(found, rounded(each, found)) for each in wanted)
                assert any(equal), f"{what}\n{found}\n{wanted}"


def forget() -> None:
    """Empty the caches of calls, so that the next call makes what it keeps."""
    plan._plans.clear()
    for name, module in list(sys.modules.items()):
        if name.startswith("warpkit.") and not name.startswith("warpkit.validation"):
            for value in vars(module).values():
                getattr(value, "cache_clear", bool)()


@pytest.mark.parametrize("name", [name for name in CALLS if name.startswith("opencv.")])
def test_cv2s_functions_take_arrays_of_every_kind(name: str):
    call = CALLS[name]
    given = [given.tensor(0) for given in call.inputs]
    plain = twice(call.call, [t.numpy() if t.ndim else t.item() for t in given], "arrays")
    assert not isinstance(plain, str), plain
    for kind, form in kinds.ARRAYS.items():
        arrays = [form(t.numpy()) if t.ndim else t.item() for t in given]
        found = twice(call.call, arrays, kind)
        assert kinds.same(found, plain) or call.function in OF_TORCH, f"{kind}\n{found}\n{plain}"


def leaves(given: Sequence[Tensor]) -> list[Tensor]:
    """The tensors as new leaves; floating ones require a gradient."""
    return [t.detach().requires_grad_(t.is_floating_point()) for t in given]


def with_gradients(call: Callable[..., Any], given: Sequence[Tensor]) -> list[Any]:
    """The result, and its gradients to all arguments."""
    mine = leaves(given)
    result = outcome(call, mine)
    reached = [t for t in kinds.parts(result) if isinstance(t, Tensor) and t.requires_grad]
    wanted = [t for t in mine if t.requires_grad]
    if not reached or not wanted:
        return [result]
    weights = [torch.linspace(0.5, 1.5, t.numel()).reshape(t.shape).to(t.dtype) for t in reached]
    found = torch.autograd.grad(reached, wanted, weights, allow_unused=True)
    return [result, *(0 if gradient is None else gradient for gradient in found)]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_the_second_gradient_equals_the_first_and_that_of_plain_tensors(name: str):
    call = CALLS[name]
    given = [given.tensor(0) for given in call.inputs]
    for place in range(len(given)):
        for kind in kinds.views(given[place]):
            found = [
                with_gradients(call.call, [*given[:place], tensor, *given[place + 1 :]])
                for tensor in (kind.value, kind.value, *kind.plain)
            ]
            what = f"{kind.name}, argument {place}"
            assert kinds.same(*found[:2]), f"the second call of {what}"
            assert call.function in OF_TORCH or kinds.same(*found[1:]), f"{what}\n{found}"


@pytest.mark.parametrize("name", OF_THE_ARGUMENTS)
def test_results_do_not_depend_on_the_default_device(name: str):
    call = CALLS[name]
    given = [given.tensor(0) for given in call.inputs]
    wanted = outcome(call.call, given)
    with torch.device("meta"):
        found = twice(call.call, given, "a call under another default device")
    assert kinds.same(found, wanted), f"{found}\n{wanted}"


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_after_inference_equal_those_before(name: str):
    call = CALLS[name]
    given = [given.tensor(0) for given in call.inputs]
    forget()
    wanted = with_gradients(call.call, given)
    forget()
    with torch.inference_mode():
        outcome(call.call, given)
    for _ in range(2):
        found = with_gradients(call.call, given)
        assert kinds.same(found, wanted), f"{found}\n{wanted}"
