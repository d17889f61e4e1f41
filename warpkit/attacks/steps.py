"""A pipeline step: its results for 8 bits and for floats, and which of them it takes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, NoReturn

import torch
from torch import Tensor, nn

from warpkit.core import checks, exports, tracing
from warpkit.core.caller_warnings import warn
from warpkit.engine.sampling.reference import compute_dtype, with_gradient_of

Function = Callable[[Tensor], Tensor]

AGREES = 0.05
"""The allowed difference between a step's results for 8 bits and floats, relative to the spread.

Intermediate rounding to 8 bits is 1/500 of the full range; a factor of 255 is far larger."""
UNLIKE = 0.1
"""A mean difference of 25 levels between results for 8 bits and floats: more than rounding."""
FLAT = 1 / 50
"""The remaining share of the spread if a step divides floats by 255 once more."""


class Pictures(NamedTuple):
    """A step's input and output: (N, C, H, W), or any shape that a step returns."""

    levels: Tensor | None
    """uint8, if the real program has 8 bits here; otherwise None."""
    values: Tensor
    """Floats with the gradient, of the same values: levels / 255 if there are levels."""


class Step:
    """A callable on images, and the type of numbers that it takes.

    takes: "uint8", "floats", or None if the first call has to find out. surrogate: replaces the
    function in the gradient of 8-bit values; None is the function on floats.
    """

    def __init__(
        self, function: Any, takes: str | None = None, surrogate: Any = None, said: str = ""
    ) -> None:
        self.function: Function = function
        self.takes = takes
        self.needs_uint8 = takes == "uint8"
        self.surrogate: Function = function if surrogate is None else surrogate
        self.said = said or name_of(function)
        self.scale: float | None = None
        """The value of white, for a function that only converts 8 bits to floats."""

    def __repr__(self) -> str:
        return self.said

    def __call__(self, images: Tensor) -> Tensor:
        """For uint8 the real program's result; for floats the same value, with the gradient."""
        if check_pictures(self.said, images).dtype == torch.uint8:
            return self.function(images)
        return self.run(self.said, photographed(self.said, images)).values

    def run(self, place: str, given: Pictures) -> Pictures:
        """The step's result; `place` is its name in errors."""
        if given.levels is None and self.needs_uint8:
            got = "the floats of the step before it (`to_uint8` between them makes 8 bits)"
            fail(place, "given 8 bits", got)
        if given.levels is None or self._takes(place, given.levels) == "floats":
            made = self.function(given.values)
            check_made(place, made, given.values)
            check_gradient(place, made, given.values)
            return Pictures(None, made)
        begun = random_state(given.values)
        with torch.no_grad():
            levels = self.function(given.levels)
        check_made(place, levels, given.values, (torch.uint8, *checks.FLOATS))
        value = unit(levels, given.values.dtype)
        if self.scale is not None:
            surrogate = given.values * self.scale
        else:
            surrogate = self._of_floats(place, given.values, begun)
        if surrogate is not None:
            if surrogate.shape != value.shape:
                wanted = f"of one shape of 8 bits and of floats, {checks.shape_of(value)}"
                fail(place, wanted, checks.shape_of(surrogate))
            value = with_gradient_of(value, surrogate.to(value.dtype))
        return Pictures(levels if levels.dtype == torch.uint8 else None, value)

    def _of_floats(self, place: str, values: Tensor, begun: list[Tensor]) -> Tensor | None:
        """The step on floats (N, ...), for the gradient; None if no gradient is wanted.

        values (N, C, H, W). begun: the random state before the step on 8 bits, for the same draws.
        """
        if not tracing.can_differentiate():
            return None
        ended = random_state(values)
        try:
            set_random_state(values, begun)
            try:
                made = self.surrogate(values)
            except TypeError:  # Pillow's arithmetic has no float64, and many kernels no float16
                set_random_state(values, begun)
                made = self.surrogate(values.float())
        except Exception as error:
            if not values.requires_grad:
                return None
            got = f"no gradient: of floats it raises {type(error).__name__} ({error!s:.80})"
            no_gradient(place, got, error)
        finally:
            set_random_state(values, ended)
        check_made(place, made, values)
        check_gradient(place, made, values)
        return made

    def _takes(self, place: str, levels: Tensor) -> str:
        """The type of numbers that the function takes, tested once on a pattern."""
        if self.takes is None:
            exports.refuse(
                "Pipeline",
                "since what its steps take is found out on values at the first call",
                "call it once before the export, on images of the example's size",
            )
            with torch.no_grad(), torch.random.fork_rng(list(cuda_of(levels))):
                self.takes = self._find_out(place, pattern(levels))
        return self.takes

    def _find_out(self, place: str, levels: Tensor) -> str:
        values = unit(levels, torch.get_default_dtype())
        begun = random_state(levels)
        made = attempt(self.function, levels)
        set_random_state(levels, begun)
        of_floats = attempt(self.function, values)
        if made is None and of_floats is None:
            self.function(levels)  # takes neither: raise its own error, and cache nothing
        if made is None:
            return "floats"
        if of_floats is not None and of_floats.shape != made.shape:
            of_floats = None
        if made.dtype == torch.uint8:
            if of_floats is not None:
                difference = unit(made, of_floats.dtype) - of_floats
                # an added constant (255 - x) does not affect the gradient
                if (difference - difference.mean()).abs().mean() > UNLIKE:
                    text = f"{place} returns different images for 8 bits and floats: values are "
                    text += "in [0, 255] in one case and in [0, 1] in the other; it gets 8 bits, "
                    warn(text + "`on_floats(step)` gives it floats")
            return "uint8"
        if not made.is_floating_point() or of_floats is None:
            return "floats"
        spread = float(made.std(correction=0)) + float(made.abs().mean())
        if float((made - of_floats).abs().mean()) <= AGREES * spread:
            return "uint8"  # it checks the type and scales by itself
        for scale in (1.0, 255.0) if made.shape == values.shape else ():  # x / 255, x.float()
            if torch.allclose(made, (values * scale).to(made.dtype), atol=1e-6 * scale):
                self.scale = scale
                return "uint8"
        if of_floats.std(correction=0) < FLAT * values.std(correction=0):
            text = f"{place} gets floats in [0, 1] and returns nearly constant values: if it "
            warn(text + "divides 8 bits by 255 itself, use `on_uint8(step, surrogate)`")
        return "floats"


def unchanged(images: Tensor) -> Tensor:
    """Returns images unchanged."""
    return images


class Rounding(Step):
    """Converts back to 8 bits: rounded half to even and saturated, with gradient 1."""

    def __init__(self) -> None:
        super().__init__(unchanged, said="to_uint8")

    def run(self, place: str, given: Pictures) -> Pictures:
        """As in `Step`."""
        return given if given.levels is not None else photographed(place, given.values)


def check_pictures(name: str, images: object) -> Tensor:
    """Images (..., C, H, W) must be floats in [0, 1], or uint8."""
    checked = checks.check_image(name, "images", images)
    if not checked.is_floating_point() and checked.dtype != torch.uint8:
        checks.fail(name, "images", "floats in [0, 1], or uint8", checked.dtype, TypeError)
    return checked


def photographed(name: str, images: Tensor) -> Pictures:
    """Images as 8-bit pictures: uint8 as they are, floats in [0, 1] rounded and saturated."""
    if images.dtype == torch.uint8:
        return Pictures(images, unit(images, torch.get_default_dtype()))
    exact = images.detach().to(compute_dtype(images.dtype))
    checks.check_values(name, "images", exact.isnan(), "numbers", images.detach())
    levels = (exact.clamp(0, 1) * 255).round().to(torch.uint8)
    return Pictures(levels, with_gradient_of(unit(levels, images.dtype), images))


def unit(images: Tensor, dtype: torch.dtype) -> Tensor:
    """8 bits as floats in [0, 1]; floats in another type."""
    if images.is_floating_point():
        return images.to(dtype)
    return (images.to(compute_dtype(dtype)) / 255).to(dtype)


def pattern(levels: Tensor) -> Tensor:
    """Ramps of all levels in the shape of images (N, C, H, W)."""
    height, width = levels.shape[-2:]
    rows, columns = (torch.arange(side, device=levels.device) for side in (height, width))
    channels = torch.arange(levels.shape[-3], device=levels.device)[:, None, None]
    ramps = (13 + 3 * rows[:, None] + 5 * columns + 61 * channels) % 256
    return ramps.to(torch.uint8).expand(levels.shape).contiguous()


def attempt(function: Function, images: Tensor) -> Tensor | None:
    """The result of a function for images; None if it raises an error or returns something else."""
    try:
        made = function(images)
    except Exception:  # a function may raise any error for an unsupported type
        return None
    return made if isinstance(made, Tensor) else None


def random_state(images: Tensor) -> list[Tensor]:
    """The state of torch's random generators on the CPU and the images' device; not while
    tracing."""
    if torch.compiler.is_compiling():
        return []
    return [torch.get_rng_state(), *map(torch.cuda.get_rng_state, cuda_of(images))]


def set_random_state(images: Tensor, state: list[Tensor]) -> None:
    """Restores the result of `random_state` for images (N, ...): state (bytes,) each."""
    if not state:
        return
    torch.set_rng_state(state[0])
    for device, numbers in zip(cuda_of(images), state[1:], strict=True):
        torch.cuda.set_rng_state(numbers, device)


def cuda_of(images: Tensor) -> tuple[torch.device, ...]:
    """The devices whose random numbers a function on these images may draw."""
    return (images.device,) if images.device.type == "cuda" else ()


def check_made(
    place: str, made: object, given: Tensor, kinds: tuple[torch.dtype, ...] = checks.FLOATS
) -> None:
    """A step must return a tensor of one of the types, with as many images as it gets (N, ...)."""
    if not isinstance(made, Tensor):
        fail(place, "one that returns a tensor", type(made).__name__, TypeError)
    if made.dtype not in kinds:
        wanted = (
            "one that returns floats of floats" if kinds == checks.FLOATS else "uint8 or floats"
        )
        fail(place, wanted, made.dtype, TypeError)
    count = given.shape[0]  # len would bind a batch of any size
    if made.ndim == 0 or made.shape[0] != count:
        wanted = f"one that returns as many images as it is given, {count}"
        fail(place, wanted, f"shape {checks.shape_of(made)}")


def check_gradient(place: str, made: Tensor, given: Tensor) -> None:
    """The result (N, ...) must carry a gradient if the input (N, ...) does."""
    if torch.is_grad_enabled() and given.requires_grad and not made.requires_grad:
        no_gradient(place, "no gradient")


def no_gradient(place: str, got: str, cause: Exception | None = None) -> NoReturn:
    """Raise the error of a step that stops the gradient."""
    wanted = "differentiable on floats, or `on_uint8(step, surrogate)` with a surrogate"
    try:
        fail(place, wanted, got)
    except ValueError as error:
        raise error from cause


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
