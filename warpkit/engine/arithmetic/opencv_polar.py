"""cv2.warpPolar's maps: float32 steps between float64 ones, and cv2.cartToPolar's arctangent.

Nothing here has gradients except the exact maps, which are in float64.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from warpkit.core import exports
from warpkit.engine.arithmetic import opencv_angles
from warpkit.engine.definitions.maps import pixel_points


def map_to_polar(size: tuple[int, int], center: Tensor, radius: Tensor, log: bool) -> Tensor:
    """The positions in the picture for pixels of a polar image (h, w), as in OpenCV: (h, w, 2),
    float32.

    center (2,) and radius (), float64.
    """
    rho, angles = rings(size, radius, log)
    rho = rho.float().double()
    x, y = (
        rho * turn + c
        for turn, c in zip((angles.cos(), angles.sin()), center.float().double(), strict=True)
    )
    return torch.stack((x, y), dim=-1).float()


def map_from_polar(
    size: tuple[int, int], polar_size: tuple[int, int], center: Tensor, radius: Tensor, log: bool
) -> Tensor:
    """The positions in a polar image for pixels of the picture (h, w), as in OpenCV: (h, w, 2),
    float32."""
    height, width = polar_size
    offsets = pixel_points(size, torch.float32, center.device) - center.float()
    dx, dy = offsets.unbind(-1)
    single = opencv_angles.alone((size[1],), False, center.device)  # row by row
    length, angle = opencv_angles.to_polar(dx, dy, single, degrees=False)
    scale = radius.log() / width if log else radius / width
    length = (length + 1).log() if log else length
    rows = (angle.double() / (2 * math.pi / height)).float()
    return torch.stack(((length.double() / scale).float(), rows), dim=-1)


def exact_to_polar(size: tuple[int, int], center: Tensor, radius: Tensor, log: bool) -> Tensor:
    """`map_to_polar` without rounding: differentiable in center and radius.

    center (2,), (x, y) in pixels; radius (), pixels.
    """
    rho, angles = rings(size, radius, log)
    x, y = center.unbind()
    return torch.stack((rho * angles.cos() + x, rho * angles.sin() + y), dim=-1)


def exact_from_polar(
    size: tuple[int, int], polar_size: tuple[int, int], center: Tensor, radius: Tensor, log: bool
) -> Tensor:
    """`map_from_polar` without rounding: differentiable in center and radius except at the center.

    center (2,), (x, y) in pixels; radius (), pixels.
    """
    height, width = polar_size
    dx, dy = (pixel_points(size, torch.float64, center.device) - center).unbind(-1)
    here = (dx == 0) & (dy == 0)
    dx = torch.where(here, 1.0, dx)
    length, angle = exports.hypot(dx, dy), torch.atan2(dy, dx)
    angle = angle.remainder(exports.number(2 * math.pi, angle))
    column = (length + 1).log() * width / radius.log() if log else length * width / radius
    points = torch.stack((column, angle * exports.number(height / (2 * math.pi), angle)), dim=-1)
    return torch.where(here[..., None], 0.0, points)


def rings(size: tuple[int, int], radius: Tensor, log: bool) -> tuple[Tensor, Tensor]:
    """The distances (w,) of a polar image's columns, and the angles (h, 1) of its rows, float64."""
    height, width = size
    steps = torch.arange(width, dtype=torch.float64, device=radius.device)
    rho = (steps * (radius.log() / width)).exp() - 1 if log else steps * (radius / width)
    rows = torch.arange(height, dtype=torch.float64, device=radius.device)[:, None]
    return rho, rows * exports.number(2 * math.pi / height, rows)
