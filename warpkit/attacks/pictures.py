"""Pictures between two steps of a pipeline: 8 bits, and floats with the gradient."""

from __future__ import annotations

from math import isfinite
from typing import Any

import torch
from torch import Tensor

from warpkit.core import checks, tracing
from warpkit.engine.definitions.reference import compute_dtype, with_gradient_of
from warpkit.gradients.surrogates import bounds_of, warn_of_bounds


class Picture:
    """Images (N, C, H, W), or any shape (N, ...) that a step returns."""

    def __init__(
        self,
        levels: Tensor | None,
        values: Tensor | None = None,
        *,
        dtype: torch.dtype | None = None,
        surrogate: Tensor | None = None,
        bounds: tuple[float, float] | None = None,
    ) -> None:
        """levels (N, ...): uint8, if the real program has 8 bits here; else values, its floats.

        dtype: of the floats that are levels / 255. surrogate (N, ...), of this type: its gradient
        is that of the values. bounds: its least and greatest number, if known.
        """
        self.levels, self._values = levels, values
        self._dtype, self._surrogate, self._bounds = dtype, surrogate, bounds

    @property
    def values(self) -> Tensor:
        """Floats with the gradient, of the same numbers; made when the first step wants them."""
        if self._values is None:
            assert self.levels is not None
            assert self._dtype is not None
            self._values = unit(self.levels, self._dtype)
            if self._surrogate is not None:
                self._values = carry(self._values, self._surrogate, self._bounds)
        return self._values

    @property
    def real(self) -> Tensor:
        """What the real program has here: 8 bits, or its floats."""
        return self.values if self.levels is None else self.levels

    @property
    def can_differentiate(self) -> bool:
        """Whether anything may differentiate its values: without, only 8 bits are computed."""
        if not tracing.can_differentiate():
            return False
        if not tracing.runs_eagerly():
            return True
        source = self._surrogate if self._values is None else self._values
        return source is not None and source.requires_grad

    @property
    def dtype(self) -> torch.dtype:
        """The type of the values."""
        return self.values.dtype if self._dtype is None else self._dtype


Pictures = Picture | tuple[Picture, ...]
"""What a step makes, and the next one takes as one argument, or several."""


def each(pictures: Pictures) -> tuple[Picture, ...]:
    """The pictures that a step takes as arguments."""
    return pictures if isinstance(pictures, tuple) else (pictures,)


def check_pictures(name: str, images: object) -> Tensor:
    """Images (..., C, H, W) must be floats in [0, 1], or uint8."""
    checked = checks.check_image(name, "images", images)
    if not checked.is_floating_point() and checked.dtype != torch.uint8:
        checks.fail(name, "images", "floats in [0, 1], or uint8", checked.dtype, TypeError)
    return checked


def photograph(name: str, images: Tensor, *, warns: bool = False) -> Picture:
    """Images as 8-bit pictures: uint8 as they are, floats in [0, 1] rounded and saturated.

    warns: about values far outside [0, 1]. One pass finds these, NaN and infinity.
    """
    if images.dtype == torch.uint8:
        return Picture(images, dtype=torch.get_default_dtype())
    bounds = bounds_of(images)
    if warns:
        warn_of_bounds(name, bounds)
    exact = images.detach().to(compute_dtype(images.dtype))
    if bounds is None or bounds[0] != bounds[0]:
        checks.check_values(name, "images", exact.isnan(), "numbers", images.detach())
    levels = exact.mul(255).round_().clamp_(0, 255).to(torch.uint8)
    return Picture(levels, dtype=images.dtype, surrogate=images, bounds=bounds)


def unit(images: Tensor, dtype: torch.dtype) -> Tensor:
    """8 bits as floats in [0, 1]; floats in another type."""
    if images.is_floating_point():
        return images.to(dtype)
    return images.to(compute_dtype(dtype)).div_(255).to(dtype)


def carry(value: Tensor, surrogate: Tensor, bounds: tuple[float, float] | None = None) -> Tensor:
    """A fresh `value` with the gradient of `surrogate`, both (N, ...): 0 where it is not finite.

    As `with_gradient_of`, whose five passes over an image cost as much as resizing it. bounds: the
    least and greatest number of `surrogate`, if known.
    """
    if tracing.is_eager(value, surrogate):
        if not tracing.wants_gradient(surrogate):
            return value
        bounds = bounds_of(surrogate) if bounds is None else bounds
        if bounds is not None and all(map(isfinite, bounds)):
            return _Carry.apply(value, surrogate)
    return with_gradient_of(value, surrogate)


class _Carry(torch.autograd.Function):
    """The value of one tensor with the gradient of another, without a pass over either."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, surrogate: Tensor) -> Tensor:
        """Both are (N, ...), of one shape."""
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:  # pyright: ignore
        return None, grad


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
