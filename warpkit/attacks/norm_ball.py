"""The set of valid images: near the original, in [0, 1], and optionally on 8-bit levels."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from warpkit.attacks.expectations import check_images
from warpkit.core import checks
from warpkit.core.numbers import check_positive

NORMS = ("linf", "l2")

SAME_BYTE = 0.5 / 255
"""Values this far beyond [0, 1] still round to 0 or 255: a resize's last bits make 1.0000001."""


@dataclass(frozen=True)
class Ball:
    """All images in [0, 1] within `epsilon` of `image` (B, C, H, W), per image."""

    image: Tensor
    epsilon: float
    norm: str
    quantize: bool
    low: Tensor = field(init=False)
    high: Tensor = field(init=False)

    def __post_init__(self) -> None:
        reach = self.epsilon if self.norm == "linf" else 1.0
        low, high = (self.image - reach).clamp(min=0), (self.image + reach).clamp(max=1)
        if self.quantize and self.norm == "linf":
            # 1e-4 of a level: epsilon = 8 / 255 in float64 must reach 8 levels in float32
            low = (low * 255 - 1e-4).ceil().abs() / 255  # abs: no -0
            high = (high * 255 + 1e-4).floor() / 255
        object.__setattr__(self, "low", self._inward(low, reach))
        object.__setattr__(self, "high", self._inward(high, reach))

    def _inward(self, bound: Tensor, reach: float) -> Tensor:
        """Correct `bound` by the last bits by which rounding moved it too far."""
        for _ in range(2):
            far = (bound - self.image).abs().double() > reach
            bound = torch.where(far, torch.nextafter(bound, self.image), bound)
        # next to 0 the last bits are too small to matter: there the distance itself is shortened
        far = (bound - self.image).abs().double() > reach
        shorter = (bound - self.image) * (1 - 2 * torch.finfo(bound.dtype).eps)
        return torch.where(far, self.image + shorter, bound)

    def project(self, x: Tensor) -> Tensor:
        """The nearest member (for l2: nearest in the ball, then in the box)."""
        if self.norm == "l2":
            delta = x - self.image
            # one part in a million for the rounding of x, so that the norm stays within epsilon
            shrink = self.epsilon * (1 - 1e-6) / self.lengths(delta).clamp(min=1e-300)
            x = self.image + delta * shrink.clamp(max=1).to(x.dtype)
        return x.clamp(self.low, self.high)

    def settle(self, x: Tensor) -> Tensor:
        """A member that is within epsilon to the last bit, and on 8-bit levels if asked."""
        result = self._on_levels(x)
        if self.norm == "linf":
            return result
        while bool((far := self.lengths(result - self.image) > self.epsilon).any()):
            x = torch.where(far, self.image + (x - self.image) * (1 - 1e-3), x)
            result = self._on_levels(x)
        return result

    def _on_levels(self, x: Tensor) -> Tensor:
        return ((x * 255).round() / 255).clamp(self.low, self.high) if self.quantize else x

    def lengths(self, delta: Tensor) -> Tensor:
        """The l2 norm of each image, (B, 1, 1, 1), in float64."""
        return delta.double().flatten(1).norm(dim=1)[:, None, None, None]


def make_ball(
    function: str, image: object, epsilon: object, norm: object, quantize: object
) -> Ball:
    """The ball of validated arguments."""
    images = check_unit(function, "image", image)
    epsilon = check_positive(function, "epsilon", epsilon)
    norm = checks.check_name(function, "norm", norm, NORMS)
    if norm == "linf" and epsilon > 1:  # the distance from black to white
        levels = f" ({epsilon:g}/255?)" if epsilon <= 255 else ""
        checks.fail(function, "epsilon", "at most 1 on images in [0, 1]", f"{epsilon:g}{levels}")
    quantize = checks.check_bool(function, "quantize", quantize)
    if quantize:
        # float32 holds k / 255 to 1.5e-5 of a level
        if bool(((images * 255).round() - images * 255).abs().max() > 1e-3):
            wanted = "what an 8-bit file holds, multiples of 1/255, with quantize=True"
            checks.fail(function, "image", wanted, "values between them")
        if norm == "linf" and epsilon * 255 < 1 - 1e-4:
            wanted = "at least 1/255, one level of an 8-bit file, with quantize=True"
            checks.fail(function, "epsilon", wanted, f"{epsilon:g}")
    return Ball(images, epsilon, norm, quantize)


def check_unit(function: str, argument: str, image: object) -> Tensor:
    """`image` as (B, C, H, W), float32 or float64, with values in [0, 1], detached."""
    images = check_images(function, argument, image).detach()
    if images.dtype not in (torch.float32, torch.float64):
        checks.fail(function, argument, "float32 or float64", images.dtype, TypeError)
    checks.check_held(function, argument, images)
    return clamp_rounding(function, argument, images)


def clamp_rounding(function: str, argument: str, images: Tensor) -> Tensor:
    """Images in [0, 1]; values that are outside by less than half a level become 0 or 1."""
    if bool(((images >= 0) & (images <= 1)).all()):
        return images
    if not bool(((images > -SAME_BYTE) & (images < 1 + SAME_BYTE)).all()):
        low, high = images.min().item(), images.max().item()
        checks.fail(function, argument, "in [0, 1]", f"values from {low:g} to {high:g}")
    return images.clamp(0, 1)
