"""Curved surfaces for patches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.core.mistakes import warn_if_points
from warpkit.core.numbers import check_positive
from warpkit.geometry import image_center


@dataclass(frozen=True)
class Cylinder:
    """An upright cylinder that a patch is wrapped around, such as a bottle, seen from far away.

    radius: in patch pixels, above 0. The middle column faces the camera; paper at the distance s
        from it appears at radius * sin(s / radius), and the far side is invisible. Raises
        ValueError for a radius that is not above 0.

    >>> flow = Cylinder(2.0).flow((1, 5))
    >>> flow[0, :, 0].round(decimals=3).tolist()
    [-1.142, -0.047, 0.0, 0.047, 1.142]
    """

    radius: float

    def __post_init__(self) -> None:
        check_positive("Cylinder", "radius", self.radius)

    def flow(self, size: Sequence[int]) -> Tensor:
        """(h, w, 2), float64: what `warp_flow` and `paste_patches` take for a patch of (h, w).

        It is on torch's default device.
        """
        return self._flow(checks.check_size("Cylinder.flow", "size", size), None)

    def _flow(self, size: tuple[int, int], device: torch.device | None) -> Tensor:
        """`flow` on a device."""
        height, width = size
        x = torch.arange(width, dtype=torch.float64, device=device) - image_center(size)[0]
        radius = float(self.radius)  # torch has no scalars for integers beyond 64 bits
        along = (x / radius).clamp(-1, 1).asin() * radius
        # outside the cylinder: twice the patch away, where there is no paper
        beside = along + x.sign() * 2 * width
        offset = torch.where(x.abs() <= radius, along, beside) - x
        return torch.stack((offset.expand(height, -1), offset.new_zeros(height, width)), -1)


def bend_of(name: str, surface: Any, patch_size: tuple[int, int], like: Tensor) -> Tensor | None:
    """The flow (h, w, 2) of a surface for a patch of (h, w), on the device of `like` (...)."""
    if surface is None:
        return None
    wanted = f"a Cylinder, or a flow (h, w, 2) of the patch's size {patch_size}"
    if isinstance(surface, Cylinder):
        return surface._flow(patch_size, like.device)
    if isinstance(surface, type) or callable(surface):
        got = checks.kind_of(surface) if isinstance(surface, type) else "a function"
        checks.fail(name, "surface", wanted, got, TypeError)
    if isinstance(surface, Real):
        checks.fail(name, "surface", wanted, repr(surface), TypeError)
    flow = checks.as_float(name, "surface", surface, like.device).detach()
    if flow.shape != (*patch_size, 2):
        checks.fail(name, "surface", wanted, checks.shape_of(flow))
    checks.check_device(name, "surface", flow, like.device)
    warn_if_points(name, flow)
    return flow
