"""Random lighting, print, sensor noise and JPEG files: changes the colours of a view."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from warpkit.attacks.compression import QUALITIES, File
from warpkit.attacks.distribution import check_generator, uniform
from warpkit.core import checks
from warpkit.core.integers import WHOLE_NUMBERS, plain_integer
from warpkit.core.mistakes import warn_if_levels
from warpkit.core.numbers import check_count, check_range
from warpkit.engine.definitions.bounds import clamped
from warpkit.engine.definitions.reference import with_gradient_of
from warpkit.gradients.surrogates import warn_beyond_unit

DRAWS = 4
"""Numbers of one view: brightness, contrast, gamma, and the seed of its noise; its file's quality
follows if there is one."""
STEEPEST = 1 / 255
"""The smallest value at which the slope of a power is taken: at 0 it can be infinite."""


@dataclass(frozen=True, kw_only=True)
class Photometric:
    """Random changes of colour, drawn for every view.

    Each is a range (low, high), uniform and independent: brightness is added; contrast scales about
    the mean of the view, all channels together; gamma is a power; noise, one number, is the
    standard deviation of normal noise of each value. Applied to a view x in [0, 1] with mean m, in
    this order: ``clamp(clamp((x - m) * contrast + m + brightness, 0, 1) ** gamma + noise, 0, 1)``.
    jpeg, (low, high), draws an integer quality, both ends included: the view, of 1 or 3 channels,
    is rounded to 8 bits and goes through the file of that quality, as `warpkit.attacks.jpeg` in
    4:2:0, last of all; None is no file. `optimize_patch` gives a patch on its box no file.
    Gradients: to the view, those of the formula, including at 0 and 1, and of `jpeg`; below 1/255
    the slope of the power is that at 1/255. Raises ValueError if low > high, contrast is negative,
    gamma is not positive, noise is negative or a quality is not from 1 to 100. Warns about a
    brightness or a noise above 1, which are values for levels from 0 to 255.

    >>> brighter = Photometric(brightness=(0.25, 0.25), contrast=(0.5, 0.5))
    >>> brighter(torch.tensor([[[[0.0, 1.0]]]]))
    tensor([[[[0.5000, 1.0000]]]])
    """

    brightness: tuple[float, float] = (0.0, 0.0)
    contrast: tuple[float, float] = (1.0, 1.0)
    gamma: tuple[float, float] = (1.0, 1.0)
    noise: float = 0.0
    jpeg: tuple[int, int] | None = None

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
        check_qualities(name, self.jpeg)
        warn_if_levels(name, brightness=max(map(abs, self.brightness)), noise=noise)

    def sample(self, n: int, *, generator: torch.Generator | None = None) -> Tensor:
        """The draws for n views, (n, 4), float64: brightness, contrast, gamma, seed of the noise.

        With `jpeg` (n, 5), the last the quality. They depend only on `generator` (None is torch's
        global one), and are on its device.
        """
        n = check_count("Photometric.sample", "n", n)
        check_generator("Photometric.sample", generator)
        draw = uniform((n, self._draws), generator)
        limits = (self.brightness, self.contrast, self.gamma, (0.0, 2.0**53))
        if self.jpeg is not None:
            limits = (*limits, (self.jpeg[0], self.jpeg[1] + 1))
        ranges = draw.new_tensor([[float(low), float(high)] for low, high in limits])
        low, high = ranges.unbind(-1)
        values = low + (high - low) * draw
        if self.jpeg is not None:
            values[:, DRAWS] = values[:, DRAWS].floor().clamp(*self.jpeg)
        return values

    @property
    def _draws(self) -> int:
        return DRAWS + (self.jpeg is not None)

    def apply(self, views: Tensor, draws: Tensor) -> Tensor:
        """Views (N, C, H, W) under draws (N, 4), with `jpeg` (N, 5), that `sample` made."""
        name = "Photometric.apply"
        if checks.check_image(name, "views", views).ndim != 4 or not views.is_floating_point():
            got = f"{checks.shape_of(views)} of {views.dtype}"
            checks.fail(name, "views", "of shape (N, C, H, W) and a floating type", got)
        if not isinstance(draws, Tensor) or draws.shape != (len(views), self._draws):
            wanted = f"of shape ({len(views)}, {self._draws}), one for each view"
            got = checks.shape_of(draws) if isinstance(draws, Tensor) else type(draws).__name__
            checks.fail(name, "draws", wanted, got)
        if self.jpeg is not None and views.shape[1] not in (1, 3):
            checks.fail(name, "views", "of 1 or 3 channels for `jpeg`", checks.shape_of(views))
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
        result = clamped(result, 0, 1)
        if self.jpeg is None:
            return result
        quality = draws[:, DRAWS].to(views.device, torch.int32).clamp(*self.jpeg)
        return File(quality, "4:2:0")(result)

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


def check_qualities(name: str, jpeg: Any) -> None:
    """`jpeg` must be None or (low, high), integers from 1 to 100 in order."""
    if jpeg is None:
        return
    wanted = "None or (low, high), two integers with 1 <= low <= high <= 100"
    pair = isinstance(jpeg, Sequence) and not isinstance(jpeg, str) and len(jpeg) == 2
    if not pair or not all(isinstance(q, WHOLE_NUMBERS) and not isinstance(q, bool) for q in jpeg):
        checks.fail(name, "jpeg", wanted, repr(jpeg), TypeError)
    low, high = map(plain_integer, jpeg)
    if not QUALITIES[0] <= low <= high <= QUALITIES[1]:
        checks.fail(name, "jpeg", wanted, repr(jpeg))


def check_photometric(name: str, photometric: object) -> Photometric | None:
    """`photometric` must be None or a Photometric."""
    if photometric is not None and not isinstance(photometric, Photometric):
        got = checks.kind_of(photometric)
        checks.fail(name, "photometric", "None or a Photometric", got, TypeError)
    return photometric
