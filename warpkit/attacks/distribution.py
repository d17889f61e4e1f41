"""Random affine transformations, as an attacked pipeline may apply them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from inspect import signature
from numbers import Real
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from warpkit.core import checks
from warpkit.geometry import affine_matrix, image_center


class Distribution(Protocol):
    """Anything that draws matrices: `AffineDistribution`, or a class of your own."""

    def sample(
        self, n: int, *, size: Sequence[int], generator: torch.Generator | None = None
    ) -> Tensor:
        """n matrices (n, 2, 3) or (n, 3, 3), source -> destination, for images of `size` (H, W)."""
        ...


@dataclass(frozen=True, kw_only=True)
class AffineDistribution:
    """Affine transformations whose parts are uniform and independent of each other.

    Each part is a range (low, high): angle in degrees, counter-clockwise; scale, 2 makes twice as
    large; shear in degrees, along x; translation in pixels, drawn for x and y alone. They combine
    as in `affine_matrix`. Raises ValueError where low > high or a scale is not positive.

    >>> AffineDistribution(scale=(2.0, 2.0)).sample(1, size=(3, 3))
    tensor([[[ 2.,  0., -1.],
             [ 0.,  2., -1.]]])
    """

    angle: tuple[float, float] = (0.0, 0.0)
    scale: tuple[float, float] = (1.0, 1.0)
    shear: tuple[float, float] = (0.0, 0.0)
    translation: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        for field in fields(self):
            check_range("AffineDistribution", field.name, getattr(self, field.name))
        if self.scale[0] <= 0:
            checks.fail("AffineDistribution", "scale", "positive", repr(self.scale))

    def sample(
        self, n: int, *, size: Sequence[int], generator: torch.Generator | None = None
    ) -> Tensor:
        """n matrices (n, 2, 3), source -> destination, about the centre of `size` (H, W).

        The draw depends on `generator` alone (torch's global one where None), and comes in
        torch's default type on the generator's device.
        """
        name = "AffineDistribution.sample"
        check_count(name, "n", n)
        center = image_center(checks.check_size(name, "size", size))
        check_generator(name, generator)
        device = generator.device if generator is not None else torch.device("cpu")
        draw = torch.rand(n, 5, generator=generator, dtype=torch.float64, device=device)
        angle, scale, shear, *moves = (
            low + (high - low) * part
            for (low, high), part in zip(
                (self.angle, self.scale, self.shear, self.translation, self.translation),
                draw.unbind(-1),
                strict=True,
            )
        )
        matrices = affine_matrix(
            angle=angle,
            scale=scale,
            shear=(shear, torch.zeros_like(shear)),
            translation=torch.stack(moves, dim=-1),
            center=center,
        )
        return matrices.to(torch.get_default_dtype())


def draw(
    name: str,
    distribution: Distribution | Any,
    samples: int | None,
    size: Sequence[int],
    generator: torch.Generator | None,
    device: torch.device,
) -> Tensor:
    """`samples` matrices of a distribution, or all the matrices given in its place."""
    check_generator(name, generator)
    check_distribution(name, distribution)
    if hasattr(distribution, "sample"):
        count = check_count(name, "samples", samples)
        drawn = distribution.sample(count, size=size, generator=generator)
        drawn = checks.as_float(name, "distribution", drawn, device).to(device)
        if drawn.shape not in ((count, 2, 3), (count, 3, 3)):
            wanted = f"one whose `sample({count}, ...)` returns ({count}, 2, 3) or ({count}, 3, 3)"
            checks.fail(name, "distribution", wanted, f"shape {checks.shape_of(drawn)}")
        return drawn
    matrices = checks.as_float(name, "distribution", distribution, device)
    checks.check_device(name, "distribution", matrices, device)
    if matrices.ndim != 3 or matrices.shape[1:] not in ((2, 3), (3, 3)) or len(matrices) == 0:
        wanted = "a distribution, or matrices (samples, 2, 3) or (samples, 3, 3), at least one"
        checks.fail(name, "distribution", wanted, f"shape {checks.shape_of(matrices)}")
    if samples is not None and check_count(name, "samples", samples) != len(matrices):
        wanted = f"None or {len(matrices)}, the number of the given matrices"
        checks.fail(name, "samples", wanted, repr(samples))
    return matrices


def check_distribution(name: str, distribution: object) -> None:
    """`distribution` must draw matrices as `Distribution` does, or may be matrices."""
    wanted = "an AffineDistribution, an object with `sample(n, *, size, generator)`, or matrices"
    wanted += " (samples, 2, 3) or (samples, 3, 3)"
    if isinstance(distribution, type):
        got = f"the class {distribution.__name__} (an instance of it?)"
        checks.fail(name, "distribution", wanted, got, TypeError)
    sample = getattr(distribution, "sample", None)
    if sample is not None:
        takes = refuses(sample, 1, size=(1, 1), generator=None)
        if takes is not None:
            got = f"a {type(distribution).__name__} with `sample{takes}`"
            checks.fail(name, "distribution", wanted, got, TypeError)
    elif callable(distribution) or distribution is None:
        got = "a function (make it the `sample` of a class)" if distribution else "None"
        checks.fail(name, "distribution", wanted, got, TypeError)


def refuses(function: Any, *args: Any, **kwargs: Any) -> str | None:
    """What `function` takes, where that is seen to be something else than these arguments."""
    if torch.compiler.is_compiling():  # Dynamo reads no signatures
        return None
    try:
        takes = signature(function.forward if isinstance(function, nn.Module) else function)
    except (TypeError, ValueError):  # built in: it says nothing
        return None
    try:
        takes.bind(*args, **kwargs)
    except TypeError:
        return f"({', '.join(takes.parameters)})"
    return None


def check_count(name: str, argument: str, value: object) -> int:
    """`value` must be an integer of at least 1, and below 2^31."""
    if not isinstance(value, int) or isinstance(value, bool):
        checks.fail(name, argument, "an integer of at least 1", repr(value), TypeError)
    if value < 1:
        checks.fail(name, argument, "an integer of at least 1", repr(value))
    if value >= checks.MAX_SIDE:
        checks.fail(name, argument, "an integer below 2^31", f"{value!r:.60}")
    return value


def check_generator(name: str, generator: object) -> None:
    """`generator` must be None or torch's, not a seed."""
    if not isinstance(generator, torch.Generator | None):
        wanted = "None or a torch.Generator (torch.Generator().manual_seed(0))"
        checks.fail(name, "generator", wanted, repr(generator), TypeError)


def check_range(name: str, argument: str, value: object) -> tuple[float, float]:
    """`value` must be (low, high), finite numbers in order."""
    wanted = "(low, high), two finite numbers with low <= high"
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        checks.fail(name, argument, wanted, repr(value), TypeError)
    if not all(isinstance(v, Real) and not isinstance(v, bool) for v in value):
        checks.fail(name, argument, wanted, repr(value), TypeError)
    low, high = (checks.float64_of(name, argument, v) for v in value)
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        checks.fail(name, argument, wanted, repr(value))
    return low, high
