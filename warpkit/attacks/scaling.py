"""Finds an image that a program's resize turns into another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from warpkit.attacks.norm_ball import clamp_rounding
from warpkit.core import checks
from warpkit.core.numbers import check_count, check_positive
from warpkit.gradients.surrogates import quantize, through_uint8
from warpkit.resizing import resize
from warpkit.types import Filter, ResizeArithmetic

NEAR = 0.02
"""The weight of a level in the large image relative to the small one; 1 / 20 of it at the end."""


@dataclass(frozen=True)
class ScalingAttack:
    """The result of `scaling_attack`; `str` gives one line."""

    image: Tensor
    """Shaped like the input, in [0, 1] and on the levels of an 8-bit file."""
    seen: Tensor
    """(..., C, h, w): the resize's result for it, bytes / 255."""
    changed: float
    """Root mean square difference between `image` and the input, in levels of 255."""
    missed: float
    """Root mean square difference between `seen` and the target."""
    history: list[float] = field(repr=False)
    """The objective at each step, before it."""

    def __str__(self) -> str:
        shapes = f"{tuple(self.image.shape)} seen as {tuple(self.seen.shape)}"
        return f"{shapes}: changed by {self.changed:.1f} levels, {self.missed:.1f} off the target"


def scaling_attack(
    target: Tensor,
    image: Tensor,
    size: Sequence[int],
    *,
    interpolation: Filter = "bilinear",
    antialias: bool | None = None,
    arithmetic: ResizeArithmetic = "exact",
    steps: int = 400,
    step_size: float = 0.02,
) -> ScalingAttack:
    """Change an image as little as possible so that one program's resize turns it into another.

    The image-scaling attack (Xiao et al., USENIX Security 2019), with gradients through the bytes
    that the program computes. It measures whether preprocessing can be fooled by invisible changes:
    a resize that reads two of four pixels along an axis can, a mean over all of them cannot.

    Args:
        target: (..., C, h', w') in [0, 1], floating: what the program should see; resized to
            `size` if necessary, and rounded to bytes.
        image: (..., C, H, W) in [0, 1], of the same batch: what people see.
        size: (h, w) that the program resizes to.
        interpolation, antialias, arithmetic: the program's resize, as in `resize`: "opencv5" for
            cv2's, "pillow", or "torchvision" for tensors.
        steps: of Adam. step_size: its learning rate, of values in [0, 1].

    Returns:
        ScalingAttack: .image, .seen, .changed, .missed, .history.

    Raises:
        ValueError, TypeError: naming the argument.

    >>> result = scaling_attack(torch.ones(1, 2, 2), torch.zeros(1, 8, 8), (2, 2),
    ...                        antialias=False, steps=100)
    >>> result.seen.min() > 0.9, result.image.mean() < 0.3
    (tensor(True), tensor(True))
    """
    name = "scaling_attack"
    target, image = (
        checks.check_image(name, argument, value)
        for argument, value in (("target", target), ("image", image))
    )
    for argument, value in (("target", target), ("image", image)):
        if not value.is_floating_point():
            checks.fail(name, argument, "floating, in [0, 1]", value.dtype, TypeError)
        checks.check_held(name, argument, value)
    if target.shape[:-2] != image.shape[:-2]:
        wanted = f"of the image's batch and channels, {tuple(image.shape[:-2])} + (h, w)"
        checks.fail(name, "target", wanted, checks.shape_of(target))
    checks.check_device(name, "target", target, image.device)
    size = checks.check_size(name, "size", size)
    steps = check_count(name, "steps", steps)
    step_size = check_positive(name, "step_size", step_size)
    how: dict[str, Any] = {"interpolation": interpolation, "antialias": antialias}
    shrink = partial(resize, size=size, arithmetic=arithmetic, **how)
    original, small = (
        clamp_rounding(name, argument, value.detach())
        for argument, value in (("image", image), ("target", target))
    )
    wanted = quantize(resize(small, size).clamp(0, 1))
    with torch.enable_grad():
        attacked, history = _descend(original, wanted.to(original.dtype), shrink, steps, step_size)
    small_view = through_uint8(shrink, attacked)
    return ScalingAttack(
        attacked, small_view, _rms(attacked, original), _rms(small_view, wanted), history
    )


def _descend(
    original: Tensor, wanted: Tensor, shrink: Any, steps: int, step_size: float
) -> tuple[Tensor, list[float]]:
    """Optimises shown (..., C, H, W) for wanted (..., C, h, w); the result is on 8-bit levels."""
    levels, history = original.clone().requires_grad_(), []
    optimizer = torch.optim.Adam([levels], lr=step_size)
    for step in range(steps):
        small = through_uint8(shrink, quantize(levels))
        # in the last quarter only the small image counts
        near = NEAR if step < steps * 3 // 4 else NEAR / 20
        loss = (small - wanted).square().mean() + near * (levels - original).square().mean()
        history.append(float(loss.detach()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            levels.clamp_(0, 1)
    return quantize(levels.detach()), history


def _rms(one: Tensor, other: Tensor) -> float:
    """Root mean square difference of two (..., C, H, W) in [0, 1], in levels of 255."""
    return float((one.double() - other.double()).square().mean().sqrt() * 255)
