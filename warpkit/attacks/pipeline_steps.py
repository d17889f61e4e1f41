"""A pipeline step: its results for 8 bits and for floats, and which of them it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from warpkit.attacks.pictures import (
    Picture,
    Pictures,
    carry,
    check_pictures,
    each,
    photograph,
    random_state,
    set_random_state,
    unit,
)
from warpkit.attacks.trials import Takes, find_out
from warpkit.core import checks, tracing

Function = Callable[..., Any]


class Step:
    """A callable on images, and the type of numbers that it takes.

    takes: "uint8", "floats", or None if the first call has to find out. surrogate: replaces the
    function in the gradient of 8-bit values; None is the function on floats.
    """

    def __init__(
        self, function: Any, takes: str | None = None, surrogate: Any = None, label: str = ""
    ) -> None:
        self.function: Function = function
        self.needs_uint8 = takes == "uint8"
        self.surrogate: Function = function if surrogate is None else surrogate
        self.label = label or name_of(function)
        self._inputs = None if takes is None else Takes(takes)
        self._in_range = surrogate is not None or takes == "floats"
        """Whether the range of the surrogate's floats is known."""

    def __repr__(self) -> str:
        return self.label

    def __call__(self, *images: Tensor) -> Any:
        """For uint8 the real program's result; for floats the same value, with the gradient."""
        checked = [check_pictures(self.label, image) for image in images]
        if all(image.dtype == torch.uint8 for image in checked):
            return self.function(*checked)
        return values_of(self.run(self.label, tuple(photograph(self.label, x) for x in checked)))

    @property
    def takes(self) -> str | None:
        """The type of numbers that it takes, "uint8" or "floats"; None before the first call."""
        return None if self._inputs is None else self._inputs.kind

    def run(self, place: str, pictures: Pictures) -> Pictures:
        """The step's result; `place` is its name in errors."""
        pictures = each(pictures)
        if self.needs_uint8 and any(picture.levels is None for picture in pictures):
            got = "the floats of the step before it (`to_uint8` between them makes 8 bits)"
            fail(place, "given 8 bits", got)
        floats = all(picture.levels is None for picture in pictures)
        if floats or self._takes(place, pictures).kind == "floats":
            values = [picture.values for picture in pictures]
            result = self.function(*values)
            parts = check_result(place, result, values)
            check_gradient(place, parts, values)
            return _arrange(result, [Picture(None, part) for part in parts])
        real = [picture.real for picture in pictures]
        begun = random_state(real[0])
        with torch.no_grad():
            result = self.function(*real)
        parts = check_result(place, result, real, (torch.uint8, *checks.FLOATS))
        surrogates = self._of_floats(place, parts, pictures, begun)
        pairs = zip(parts, surrogates, strict=True)
        return _arrange(result, [_picture(place, *pair, pictures[0].dtype) for pair in pairs])

    def _of_floats(
        self, place: str, parts: Sequence[Tensor], pictures: Sequence[Picture], begun: list[Tensor]
    ) -> Sequence[Tensor | None]:
        """The step on floats (N, ...), for the gradient; None if no gradient is wanted.

        parts: its results for 8 bits. begun: the random state before them, for the same draws.
        """
        nothing = [None] * len(parts)
        if not tracing.can_differentiate():
            return nothing
        takes, values = self._takes(place, pictures, in_range=True), [x.values for x in pictures]
        if takes.scale is not None:
            return [values[0] * takes.scale]
        arguments = [
            v * 255 if takes.in_levels and x.levels is not None else v
            for x, v in zip(pictures, values, strict=True)
        ]
        ended = random_state(values[0])
        try:
            set_random_state(values[0], begun)
            try:
                result = self.surrogate(*arguments)
            except TypeError:  # Pillow's arithmetic has no float64, and many kernels no float16
                set_random_state(values[0], begun)
                result = self.surrogate(*(argument.float() for argument in arguments))
        except Exception as error:
            if stops_recomputation(error):
                raise
            if not any(value.requires_grad for value in values):
                return nothing
            got = f"no gradient: of floats it raises {type(error).__name__} ({error!s:.80})"
            no_gradient(place, got, error)
        finally:
            set_random_state(values[0], ended)
        surrogates = check_result(place, result, values)
        check_gradient(place, surrogates, values)
        if len(surrogates) != len(parts):
            wanted = f"one that returns as many images of floats as of 8 bits, {len(parts)}"
            fail(place, wanted, len(surrogates))
        if not takes.in_levels:
            return surrogates
        pairs = zip(parts, surrogates, strict=True)
        return [x / 255 if part.dtype == torch.uint8 else x for part, x in pairs]

    def _takes(self, place: str, pictures: Sequence[Picture], *, in_range: bool = False) -> Takes:
        """What the function takes, tested once on a pattern; `in_range`: by its surrogate, too."""
        takes = self._inputs
        if takes is None:
            self._inputs = takes = find_out(place, self.function, pictures, warns=True)
            self._in_range = True
        elif in_range and not self._in_range and _has_values():
            in_levels = find_out(place, self.function, pictures, warns=False).in_levels
            self._inputs = takes = takes._replace(in_levels=in_levels)
            self._in_range = True
        return takes


def _has_values() -> bool:
    """Whether a step may be tried: not in a trace, whose tensors hold no numbers."""
    return tracing.runs_eagerly() or tracing.in_transform()


def _picture(place: str, part: Tensor, surrogate: Tensor | None, dtype: torch.dtype) -> Picture:
    """A result (N, ...) of 8 bits, or the floats of one, with the gradient of a surrogate."""
    if surrogate is not None and surrogate.shape != part.shape:
        wanted = f"of one shape of 8 bits and of floats, {checks.shape_of(part)}"
        fail(place, wanted, checks.shape_of(surrogate))
    surrogate = None if surrogate is None else surrogate.to(dtype)
    if part.dtype == torch.uint8:
        return Picture(part, dtype=dtype, surrogate=surrogate)
    value = unit(part, dtype)
    return Picture(None, value if surrogate is None else carry(value, surrogate))


def _arrange(result: object, pictures: list[Picture]) -> Pictures:
    """The pictures of a result: one, or a tuple."""
    return tuple(pictures) if isinstance(result, tuple) else pictures[0]


def values_of(pictures: Pictures) -> Tensor | tuple[Tensor, ...]:
    """What a pipeline returns of its last step's pictures: floats with the gradient."""
    if isinstance(pictures, Picture):
        return pictures.values
    return tuple(picture.values for picture in pictures)


class Rounding(Step):
    """Converts back to 8 bits: rounded half to even and saturated, with gradient 1."""

    def __init__(self) -> None:
        super().__init__(nn.Identity(), label="to_uint8")

    def run(self, place: str, pictures: Pictures) -> Pictures:
        """As in `Step`."""
        rounded = [
            x if x.levels is not None else photograph(place, x.values) for x in each(pictures)
        ]
        return tuple(rounded) if isinstance(pictures, tuple) else rounded[0]


def check_result(
    place: str,
    result: object,
    images: Sequence[Tensor],
    kinds: tuple[torch.dtype, ...] = checks.FLOATS,
) -> tuple[Tensor, ...]:
    """What a step returns: a tensor of one of the types, with as many images as it gets (N, ...).

    Or a tuple of them, at least one.
    """
    parts: tuple[Any, ...] = result if isinstance(result, tuple) and result else (result,)
    for part in parts:
        if not isinstance(part, Tensor):
            wanted, got = "one that returns a tensor", type(part).__name__
            if part is not result:
                wanted, got = f"{wanted}, or a tuple of tensors", f"a tuple with {got}"
            fail(place, wanted, got, TypeError)
        if part.dtype not in kinds:
            wanted = (
                "one that returns floats of floats" if kinds == checks.FLOATS else "uint8 or floats"
            )
            fail(place, wanted, part.dtype, TypeError)
        count = images[0].shape[0]  # len would bind a batch of any size
        if part.ndim == 0 or part.shape[0] != count:
            wanted = f"one that returns as many images as it is given, {count}"
            fail(place, wanted, f"shape {checks.shape_of(part)}")
    return parts


def check_gradient(place: str, results: Sequence[Tensor], images: Sequence[Tensor]) -> None:
    """One of the results (N, ...) must carry a gradient if one of the inputs (N, ...) does."""
    if not torch.is_grad_enabled() or not any(x.requires_grad for x in images):
        return
    if not any(x.requires_grad for x in results):
        no_gradient(place, "no gradient")


def no_gradient(place: str, got: str, cause: Exception | None = None) -> NoReturn:
    """Raise the error of a step that stops the gradient."""
    wanted = "differentiable on floats, or `on_uint8(step, surrogate)` with a surrogate"
    try:
        fail(place, wanted, got)
    except ValueError as error:
        raise error from cause


def stops_recomputation(error: Exception) -> bool:
    """Whether this is how torch.utils.checkpoint leaves a function: no failure of a step."""
    return type(error).__module__ == "torch.utils.checkpoint"


def fail(place: str, wanted: str, got: object, error: type[Exception] = ValueError) -> NoReturn:
    """The one form of error, for a step: "Pipeline: step 2 (resize) must be ..."."""
    raise error(f"{place} must be {wanted}, got {got}")


def name_of(function: Any) -> str:
    """The name of a function, without bound arguments; for a lambda its line."""
    while isinstance(function, partial):
        function = function.func
    if isinstance(function, nn.Module):
        return type(function).__name__
    name = getattr(function, "__name__", type(function).__name__)
    code = getattr(function, "__code__", None)
    if name == "<lambda>" and code is not None:
        file = code.co_filename.replace("\\", "/").rsplit("/", 1)[-1]
        return f"lambda at {file}:{code.co_firstlineno}"
    return name
