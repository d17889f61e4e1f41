"""Point fields of undistorted images: where the lens shows what their pixels show."""

from __future__ import annotations

import torch
from torch import Tensor

from warpkit.engine.arithmetic.opencv_lenses import fused
from warpkit.engine.definitions import lens_models
from warpkit.engine.definitions.finite import finite_lens, is_known_true, within
from warpkit.engine.definitions.lens_models import Lens
from warpkit.engine.definitions.maps import pixel_points, rows_at


def field(lens: Lens, to_ray: Tensor, size: tuple[int, int], opencv: bool) -> Tensor:
    """Where the lens shows what an undistorted image has at its pixels: (..., h, w, 2).

    to_ray (..., 3, 3), from the undistorted image's pixels to directions. Those that look backwards
    get NaN, or the formula's value as in OpenCV.
    """
    pixels = pixel_points(size, torch.float64, to_ray.device)
    # one copy of the matrix per row, as in all maps: its gradient is summed by rows first
    rows = to_ray[..., None, :, :].expand(*to_ray.shape[:-2], size[0], 3, 3)
    x, y, w = rows_at(rows[..., None, :, :], *pixels.unbind(-1))
    lens = lens.beside(2)
    safe, valid = finite_lens(lens)
    good = valid & within(x.detach() / w.detach(), y.detach() / w.detach())
    good = good if opencv else good & (w > 0)
    if is_known_true(good):
        return _shown(lens, x, y, w, opencv)
    ahead = torch.where(good, x, 0.0), torch.where(good, y, 0.0), torch.where(good, w, 1.0)
    points = _shown(safe, ahead[0], ahead[1], ahead[2], opencv)
    none = _shown(lens.detach(), x.detach(), y.detach(), w.detach(), True) if opencv else torch.nan
    return torch.where(good[..., None], points, none)


def _shown(lens: Lens, x: Tensor, y: Tensor, w: Tensor, opencv: bool) -> Tensor:
    """Distorted pixels of directions (x, y, w), each (..., h, w)."""
    per = 1 / w  # as OpenCV divides
    u, v = lens_models.distort(lens, x * per, y * per)
    points = torch.stack(torch.broadcast_tensors(*lens_models.to_pixels(lens, u, v)), dim=-1)
    if not opencv:
        return points
    fixed, u, v = lens.detach(), u.detach(), v.detach()
    rest = fused(fixed.fx, u, fixed.cx), fused(fixed.fy, v, fixed.cy)
    return points + torch.stack(torch.broadcast_tensors(*rest), dim=-1)
