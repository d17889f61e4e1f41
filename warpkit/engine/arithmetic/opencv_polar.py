"""cv2.warpPolar's maps: float32 steps between float64 ones, and its own arctangent.

Nothing here has a gradient; the exact maps that have one stand beside, in float64.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from warpkit.engine.sampling.maps import pixel_points

ARCTANGENT = (0.9997878412794807, -0.3258083974640975, 0.1555786518463281, -0.04432655554792128)
"""OpenCV's polynomial in c = min / max: of c, c^3, c^5 and c^7, in radians."""


def map_to_polar(size: tuple[int, int], center: Tensor, radius: Tensor, log: bool) -> Tensor:
    """Where pixels of a polar image (h, w) look in the picture, as OpenCV: (h, w, 2), float32.

    center (2,) and radius (), float64.
    """
    rho, angles = _rings(size, radius, log)
    rho = rho.float().double()
    x, y = (
        rho * turn + c
        for turn, c in zip((angles.cos(), angles.sin()), center.float().double(), strict=True)
    )
    return torch.stack((x, y), dim=-1).float()


def map_from_polar(
    size: tuple[int, int], polar_size: tuple[int, int], center: Tensor, radius: Tensor, log: bool
) -> Tensor:
    """Where pixels of the picture (h, w) look in a polar image, as OpenCV: (h, w, 2), float32."""
    height, width = polar_size
    offsets = pixel_points(size, torch.float32, center.device) - center.float()
    dx, dy = offsets.unbind(-1)
    length = (dx.double().square() + (dy * dy).double()).sqrt().float()
    angle = _angle(dx, dy)
    scale = radius.log() / width if log else radius / width
    length = (length + 1).log() if log else length
    rows = (angle.double() / (2 * math.pi / height)).float()
    return torch.stack(((length.double() / scale).float(), rows), dim=-1)


def exact_to_polar(size: tuple[int, int], center: Tensor, radius: Tensor, log: bool) -> Tensor:
    """`map_to_polar` in real numbers: differentiable in center and radius.

    center (2,), (x, y) in pixels; radius (), pixels.
    """
    rho, angles = _rings(size, radius, log)
    x, y = center.unbind()
    return torch.stack((rho * angles.cos() + x, rho * angles.sin() + y), dim=-1)


def exact_from_polar(
    size: tuple[int, int], polar_size: tuple[int, int], center: Tensor, radius: Tensor, log: bool
) -> Tensor:
    """`map_from_polar` in real numbers: differentiable in center and radius but at the center.

    center (2,), (x, y) in pixels; radius (), pixels.
    """
    height, width = polar_size
    dx, dy = (pixel_points(size, torch.float64, center.device) - center).unbind(-1)
    here = (dx == 0) & (dy == 0)
    dx = torch.where(here, 1.0, dx)
    length, angle = torch.hypot(dx, dy), torch.atan2(dy, dx).remainder(2 * math.pi)
    column = (length + 1).log() * width / radius.log() if log else length * width / radius
    points = torch.stack((column, angle * (height / (2 * math.pi))), dim=-1)
    return torch.where(here[..., None], 0.0, points)


def _rings(size: tuple[int, int], radius: Tensor, log: bool) -> tuple[Tensor, Tensor]:
    """The distances (w,) of a polar image's columns, and the angles (h, 1) of its rows, float64."""
    height, width = size
    steps = torch.arange(width, dtype=torch.float64, device=radius.device)
    rho = (steps * (radius.log() / width)).exp() - 1 if log else steps * (radius / width)
    rows = torch.arange(height, dtype=torch.float64, device=radius.device)[:, None]
    return rho, rows * (2 * math.pi / height)


def _angle(x: Tensor, y: Tensor) -> Tensor:
    """OpenCV's arctangent of float32, in [0, 2 pi).

    x and y (...).
    """
    ax, ay = x.abs(), y.abs()
    c = torch.minimum(ax, ay) / (torch.maximum(ax, ay) + torch.finfo(torch.float64).eps)
    square = c * c
    p1, p3, p5, p7 = (torch.tensor(p * (180 / math.pi), dtype=torch.float32) for p in ARCTANGENT)
    angle = (((p7 * square + p5) * square + p3) * square + p1) * c
    angle = torch.where(ax >= ay, angle, 90 - angle)
    angle = torch.where(x < 0, 180 - angle, angle)
    angle = torch.where(y < 0, 360 - angle, angle)
    return angle * torch.tensor(math.pi / 180, dtype=torch.float32)
