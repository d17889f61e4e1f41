"""Random lighting, print and sensor noise: changes the colours of a view."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

import torch
from torch import Tensor

from warpkit.attacks.distribution import check_generator, uniform
from warpkit.core import checks
from warpkit.core.numbers import check_count, check_range
from warpkit.core.slips import look_at_levels
from warpkit.engine.sampling.bounds import clamped
from warpkit.engine.sampling.reference import with_gradient_of
from warpkit.gradients.surrogates import warn_beyond_unit

DRAWS = 4
"""Numbers of one view: brightness, contrast, gamma, and the seed of its noise."""
STEEPEST = 1 / 255
"""The smallest value at which the slope of a power is taken: at 0 it can be infinite."""


@dataclass(frozen=True, kw_only=True)
class Photometric:
    """Random changes of colour, drawn for every view.

    Each is a range (low, high), uniform and independent: brightness is added; contrast scales about
    the mean of the view, all channels together; gamma is a power; noise, one number, is the
    standard deviation of normal noise of each value. Applied to a view x in [0, 1] with mean m, in
    this order: ``clamp(clamp((x - m) * contrast + m + brightness, 0, 1) ** gamma + noise, 0, 1)``.
    Gradients: to the view, those of the formula, including at 0 and 1; below 1/255 the slope of the
    power is that at 1/255. Raises ValueError if low > high, contrast is negative, gamma is not
    positive or noise is negative. Warns about a brightness or a noise above 1, which are values for
    levels from 0 to 255.

    >>> brighter = Photometric(brightness=(0.25, 0.25), contrast=(0.5, 0.5))
    >>> brighter(torch.tensor([[[[0.0, 1.0]]]]))
    tensor([[[[0.5000, 1.0000]]]])
    """

    brightness: tuple[float, float] = (0.0, 0.0)
    contrast: tuple[float, float] = (1.0, 1.0)
    gamma: tuple[float, float] = (1.0, 1.0)
    noise: float = 0.0

    def __post_init__(self) -> None:
        name = "Photometric"
        for argument in ("brightness", "contrast", "gamma"):
            check_range(name, argument, getattr(self, argument))
        if self.contrast[0] < 0:
            checks.fail(name, "contrast", "at least 0", repr(self.contrast))
        if self.gamma[0] <= 0:
            checks.fail(name, "gamma", "positive", repr(self.gamma))
        if not isinstance(self.noise, Real) or isinstance(self.noise, bool):
            checks.fail(name, "noise", "a number of at least 0", repr(self.noise), TypeError)
        noise = checks.float64_of(name, "noise", self.noise)
        if not (math.isfinite(noise) and noise >= 0):
            checks.fail(name, "noise", "a number of at least 0", repr(self.noise))
        look_at_levels(name, brightness=max(map(abs, self.brightness)), noise=noise)

    def sample(self, n: int, *, generator: torch.Generator | None = None) -> Tensor:
        """The draws for n views, (n, 4), float64: brightness, contrast, gamma, seed of the noise.

        They depend only on `generator` (None is torch's global one), and are on its device.
        """
        n = check_count("Photometric.sample", "n", n)
        check_generator("Photometric.sample", generator)
        draw = uniform((n, DRAWS), generator)
        given = (self.brightness, self.contrast, self.gamma, (0.0, 2.0**53))
        ranges = draw.new_tensor([[float(low), float(high)] for low, high in given])
        low, high = ranges.unbind(-1)
        return low + (high - low) * draw

    def apply(self, views: Tensor, draws: Tensor) -> Tensor:
        """Views (N, C, H, W) under draws (N, 4) that `sample` made."""
        name = "Photometric.apply"
        if checks.check_image(name, "views", views).ndim != 4 or not views.is_floating_point():
            got = f"{checks.shape_of(views)} of {views.dtype}"
            checks.fail(name, "views", "of shape (N, C, H, W) and a floating type", got)
        if not isinstance(draws, Tensor) or draws.shape != (len(views), DRAWS):
            wanted = f"of shape ({len(views)}, {DRAWS}), one for each view"
            got = checks.shape_of(draws) if isinstance(draws, Tensor) else type(draws).__name__
            checks.fail(name, "draws", wanted, got)
        columns = draws.to(views.device, views.dtype)[:, :3, None, None, None].unbind(1)
        brightness, contrast, gamma = columns
        result = views
        if self.contrast != (1, 1):
            mean = views.mean((1, 2, 3), keepdim=True)
            result = (result - mean) * contrast + mean
        result = result + brightness if self.brightness != (0, 0) else result
        if self.gamma != (1, 1):
            result = power(clamped(result, 0, 1), gamma)
        if self.noise > 0:
            checks.check_held(name, "views", views)
            result = result + float(self.noise) * noise_of(result, draws[:, 3])
        return clamped(result, 0, 1)

    def __call__(self, views: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Views (N, C, H, W), each with its own draw."""
        count = len(checks.check_image("Photometric", "views", views))
        if views.is_floating_point():
            warn_beyond_unit("Photometric", views)
        return self.apply(views, self.sample(count, generator=generator))


def power(x: Tensor, gamma: Tensor) -> Tensor:
    """x ** gamma, with the tangent at STEEPEST for the gradient below it.

    x (N, C, H, W) in [0, 1]; gamma (N, 1, 1, 1).
    """
    base = x.clamp(min=STEEPEST)
    slope = gamma * base.detach() ** (gamma - 1)
    above = base**gamma
    return with_gradient_of(
        (x.detach() ** gamma), torch.where(x < STEEPEST, above.detach() + slope * x, above)
    )


def noise_of(views: Tensor, seeds: Tensor) -> Tensor:
    """Normal noise of each view by its own seed: (N, C, H, W) for seeds (N,), whatever the chunks.

    It is drawn when used: all noise together would be as large as all views.
    """
    generator = torch.Generator(views.device)
    rows = [
        torch.randn(
            views.shape[1:],
            generator=generator.manual_seed(int(seed)),
            dtype=views.dtype,
            device=views.device,
        )
        for seed in seeds.tolist()
    ]
    return torch.stack(rows) if rows else torch.zeros_like(views)


def check_photometric(name: str, photometric: object) -> Photometric | None:
    """`photometric` must be None or a Photometric."""
    if photometric is not None and not isinstance(photometric, Photometric):
        got = checks.kind_of(photometric)
        checks.fail(name, "photometric", "None or a Photometric", got, TypeError)
    return photometric
