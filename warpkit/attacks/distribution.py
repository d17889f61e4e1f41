"""Random affine and perspective transformations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from inspect import signature
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from warpkit.core import checks, exports
from warpkit.core.numbers import check_count, check_range
from warpkit.geometry import affine_matrix, compose, image_center, perspective_from_points

MOST_CORNERS = 0.5
"""A share of the side: where two corners of one side can meet."""
SHRINKS = 2
"""Halvings after which four corners are convex: below 1/4 of a side they always are."""


class Distribution(Protocol):
    """Anything that draws matrices: `AffineDistribution`, or a class of your own."""

    def sample(
        self, n: int, *, size: Sequence[int], generator: torch.Generator | None = None
    ) -> Tensor:
        """n matrices (n, 2, 3) or (n, 3, 3), source -> destination, for images of `size` (H, W)."""
        ...


@dataclass(frozen=True, kw_only=True)
class AffineDistribution:
    """Affine transformations with independent, uniformly distributed parameters.

    Each parameter is a range (low, high): angle in degrees, counter-clockwise; scale, 2 doubles the
    size; shear in degrees, along x; translation in pixels, drawn for x and y separately. They
    combine as in `affine_matrix`. Raises ValueError if low > high or a scale is not positive.

    >>> AffineDistribution(scale=(2.0, 2.0)).sample(1, size=(3, 3))
    tensor([[[ 2.,  0., -1.],
             [ 0.,  2., -1.]]])
    """

    angle: tuple[float, float] = (0.0, 0.0)
    scale: tuple[float, float] = (1.0, 1.0)
    shear: tuple[float, float] = (0.0, 0.0)
    translation: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        name = type(self).__name__
        for field in fields(self):
            check_range(name, field.name, getattr(self, field.name))
        if self.scale[0] <= 0:
            checks.fail(name, "scale", "positive", repr(self.scale))

    def sample(
        self, n: int, *, size: Sequence[int], generator: torch.Generator | None = None
    ) -> Tensor:
        """n matrices (n, 2, 3), source -> destination, about the centre of `size` (H, W).

        The draw depends only on `generator` (None is torch's global one), and has torch's default
        type and the generator's device.
        """
        n, size = self._check_sample(n, size, generator)
        return self._affine(n, size, generator).to(torch.get_default_dtype())

    def _check_sample(
        self, n: int, size: Sequence[int], generator: object
    ) -> tuple[int, tuple[int, int]]:
        """`sample`'s count and size, checked."""
        name = f"{type(self).__name__}.sample"
        n, size = check_count(name, "n", n), checks.check_size(name, "size", size)
        check_generator(name, generator)
        return n, size

    def _affine(self, n: int, size: tuple[int, int], generator: torch.Generator | None) -> Tensor:
        """(n, 2, 3) in float64."""
        draw = uniform((n, 5), generator)
        angle, scale, shear, *moves = (
            float(low) + (float(high) - float(low)) * part
            for (low, high), part in zip(
                (self.angle, self.scale, self.shear, self.translation, self.translation),
                draw.unbind(-1),
                strict=True,
            )
        )
        return affine_matrix(
            angle=angle,
            scale=scale,
            shear=(shear, torch.zeros_like(shear)),
            translation=torch.stack(moves, dim=-1),
            center=image_center(size),
        )


@dataclass(frozen=True, kw_only=True)
class PerspectiveDistribution(AffineDistribution):
    """Perspectives: each corner moves independently, followed by an `AffineDistribution`.

    corners is a range (low, high) of a corner's motion along x and y, relative to the side between
    the corner pixels' centres: uniform, in both directions, with the axes drawn separately; (0,
    0.1) and (-0.1, 0.1) are the same. At most 1/2; if the corners would fold the image, the four
    motions of that draw are halved until they do not. angle, scale, shear and translation are those
    of `AffineDistribution`, after the corners and from the same random numbers. For a patch the
    sides are the patch's own. Raises ValueError if low > high, a corner moves by more than 1/2 or a
    scale is not positive.

    >>> PerspectiveDistribution(scale=(2.0, 2.0)).sample(1, size=(3, 3))
    tensor([[[ 2.,  0., -1.],
             [ 0.,  2., -1.],
             [ 0.,  0.,  1.]]])
    """

    corners: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if max(map(abs, self.corners)) > MOST_CORNERS:
            wanted = f"shares of the side within [-{MOST_CORNERS}, {MOST_CORNERS}]"
            checks.fail("PerspectiveDistribution", "corners", wanted, repr(self.corners))

    def sample(
        self, n: int, *, size: Sequence[int], generator: torch.Generator | None = None
    ) -> Tensor:
        """n matrices (n, 3, 3), source -> destination; otherwise as in `AffineDistribution`."""
        parts = self._parts(*self._check_sample(n, size, generator), generator)
        return compose(*parts).to(torch.get_default_dtype())

    def sample_parts(
        self, n: int, *, size: Sequence[int], generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """The corners' matrices (n, 3, 3), and the affine ones (n, 2, 3) that follow them."""
        corners, affine = self._parts(*self._check_sample(n, size, generator), generator)
        dtype = torch.get_default_dtype()
        return corners.to(dtype), affine.to(dtype)

    def _parts(
        self, n: int, size: tuple[int, int], generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor]:
        """`sample_parts` in float64."""
        affine = self._affine(n, size, generator)
        return self._corners(n, size, generator), affine

    def _corners(self, n: int, size: tuple[int, int], generator: torch.Generator | None) -> Tensor:
        """(n, 3, 3) in float64: each matrix moves the centres of the corner pixels."""
        far, sign = uniform((2, n, 4, 2), generator)
        low, high = map(float, self.corners)
        shares = (low + (high - low) * far) * torch.where(sign < 0.5, -1.0, 1.0)
        unit = shares.new_tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
        for _ in range(SHRINKS):
            folded = ~is_convex(unit + shares)
            shares = torch.where(folded[:, None, None], shares / 2, shares)
        height, width = size
        sides = shares.new_tensor([max(width - 1, 1), max(height - 1, 1)])
        matrices = perspective_from_points(unit * sides, (unit + shares) * sides)
        still = (shares == 0).all(-1).all(-1)[:, None, None]
        identity = torch.eye(3, dtype=matrices.dtype, device=matrices.device)
        return torch.where(still, identity, matrices)  # and not nearly it


def is_convex(corners: Tensor) -> Tensor:
    """Whether (..., 4, 2), in order, turn one way at every corner, by more than a little."""
    before, after = corners - corners.roll(1, -2), corners.roll(-1, -2) - corners
    turns = before[..., 0] * after[..., 1] - before[..., 1] * after[..., 0]
    return (turns > 0.05).all(-1)


def uniform(shape: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
    """Numbers in [0, 1), float64, on the generator's device."""
    exports.refuse(
        "attacks",
        "because it draws random numbers",
        "draw before the export by `sample`, and pass the draws to the model",
    )
    device = generator.device if generator is not None else torch.device("cpu")
    return torch.rand(shape, generator=generator, dtype=torch.float64, device=device)


def draw(
    name: str,
    distribution: Distribution | Any,
    samples: int | None,
    size: Sequence[int],
    generator: torch.Generator | None,
    device: torch.device,
    argument: str = "distribution",
) -> Tensor:
    """`samples` matrices of a distribution, or all given matrices."""
    check_generator(name, generator)
    check_distribution(name, distribution, argument)
    if hasattr(distribution, "sample"):
        count = check_count(name, "samples", samples)
        result = distribution.sample(count, size=size, generator=generator)
        result = checks.as_float(name, argument, result, device).to(device)
        if result.shape not in ((count, 2, 3), (count, 3, 3)):
            wanted = f"one whose `sample({count}, ...)` returns ({count}, 2, 3) or ({count}, 3, 3)"
            checks.fail(name, argument, wanted, f"shape {checks.shape_of(result)}")
        return result
    matrices = checks.as_float(name, argument, distribution, device)
    checks.check_device(name, argument, matrices, device)
    if matrices.ndim != 3 or matrices.shape[1:] not in ((2, 3), (3, 3)) or len(matrices) == 0:
        wanted = "a distribution, or matrices (samples, 2, 3) or (samples, 3, 3), at least one"
        checks.fail(name, argument, wanted, f"shape {checks.shape_of(matrices)}")
    bad = ~matrices.detach().flatten(1).isfinite().all(1)
    checks.check_values(name, argument, bad, "finite matrices")
    if samples is not None and check_count(name, "samples", samples) != len(matrices):
        wanted = f"None or {len(matrices)}, the number of the given matrices"
        checks.fail(name, "samples", wanted, repr(samples))
    return matrices


def check_distribution(name: str, distribution: object, argument: str = "distribution") -> None:
    """`distribution` must draw matrices as `Distribution` does, or may be matrices."""
    wanted = "an AffineDistribution, an object with `sample(n, *, size, generator)`, or matrices"
    wanted += " (samples, 2, 3) or (samples, 3, 3)"
    if isinstance(distribution, type):
        checks.fail(name, argument, wanted, checks.kind_of(distribution), TypeError)
    sample = getattr(distribution, "sample", None)
    if sample is not None:
        takes = refuses(sample, 1, size=(1, 1), generator=None)
        if takes is not None:
            got = f"a {type(distribution).__name__} with `sample{takes}`"
            checks.fail(name, argument, wanted, got, TypeError)
    elif callable(distribution) or distribution is None:
        got = "a function (make it the `sample` of a class)" if distribution else "None"
        checks.fail(name, argument, wanted, got, TypeError)


def refuses(function: Any, *args: Any, **kwargs: Any) -> str | None:
    """The parameters of `function`, if it does not accept these arguments."""
    if torch.compiler.is_compiling():  # Dynamo reads no signatures
        return None
    try:
        takes = signature(function.forward if isinstance(function, nn.Module) else function)
    except (TypeError, ValueError):  # a built-in function has no signature
        return None
    try:
        takes.bind(*args, **kwargs)
    except TypeError:
        return f"({', '.join(takes.parameters)})"
    return None


def check_generator(name: str, generator: object) -> None:
    """`generator` must be None or torch's, not a seed."""
    if not isinstance(generator, torch.Generator | None):
        wanted = "None or a torch.Generator (torch.Generator().manual_seed(0))"
        checks.fail(name, "generator", wanted, repr(generator), TypeError)
