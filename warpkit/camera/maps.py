"""Point fields of undistorted and distorted images, for `remap`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from warpkit.camera import guards, kernels, models
from warpkit.camera.arguments import as_lens, given
from warpkit.camera.kernels import Field
from warpkit.camera.models import Lens
from warpkit.camera.points import new_view, own_view, undistorted
from warpkit.core import checks
from warpkit.core.sharding import batched
from warpkit.core.slips import look_at_camera
from warpkit.engine.arithmetic.opencv_lenses import fused
from warpkit.engine.sampling.maps import inverse_map, pixel_points, rows_at
from warpkit.types import LensModel, MatrixLike, NumbersLike


@batched(camera_matrix=2, distortion=1, rotation=2, new_camera_matrix=2)
def undistort_map(
    camera_matrix: MatrixLike,
    distortion: NumbersLike,
    size: Sequence[int],
    *,
    rotation: MatrixLike | None = None,
    new_camera_matrix: MatrixLike | None = None,
    model: LensModel = "brown",
) -> Tensor:
    """The point field that undistorts an image: cv2.initUndistortRectifyMap.

    camera_matrix (..., 3, 3), pixels; distortion (..., n) of `model`, "brown" or "fisheye": see
    `warpkit.camera`; size (h, w) of the undistorted image; rotation (..., 3, 3) from the camera's
    directions to the new ones; new_camera_matrix (..., 3, 3), the camera's own if None. All
    broadcast. Returns (..., h, w, 2), for `warpkit.remap`: NaN where a pixel looks backwards;
    beyond the model's fold the formula's value, as in cv2. Gradients: all orders, to all.

    >>> camera, wide = [[100, 0, 1], [0, 100, 0], [0, 0, 1]], [[1, 0, 1], [0, 1, 0], [0, 0, 1]]
    >>> undistort_map(camera, [-0.1, 0, 0, 0], (1, 3), new_camera_matrix=wide)
    tensor([[[-89.,   0.],
             [  1.,   0.],
             [ 91.,   0.]]])
    """
    name = "undistort_map"
    kind = checks.result_kind(camera_matrix, distortion, *given(rotation, new_camera_matrix))
    lens, view = as_view(
        name, camera_matrix, distortion, rotation, new_camera_matrix, model, kind[0]
    )
    height, width = checks.check_size(name, "size", size)
    look_at_camera(name, "camera_matrix", lens.tensors()[:4], (height, width))
    return undistorting(lens, view, (height, width)).to(kind[1])


@batched(camera_matrix=2, distortion=1)
def distort_map(
    camera_matrix: MatrixLike,
    distortion: NumbersLike,
    size: Sequence[int],
    *,
    model: LensModel = "brown",
) -> Tensor:
    """The point field that distorts an ideal image.

    camera_matrix (..., 3, 3) and distortion (..., n) as in `undistort_map`; size (h, w) of the
    distorted image. Returns (..., h, w, 2), for `warpkit.remap`: `undistort_points` of every pixel,
    NaN where it has no solution. Gradients: up to the third order, to both.

    >>> distort_map([[100, 0, 0], [0, 100, 0], [0, 0, 1]], [0.1, 0, 0, 0], (1, 2)).round(decimals=4)
    tensor([[[0., 0.],
             [1., 0.]]])
    """
    name = "distort_map"
    device, dtype = checks.result_kind(camera_matrix, distortion)
    lens = as_lens(name, camera_matrix, distortion, model, device)
    height, width = checks.check_size(name, "size", size)
    look_at_camera(name, "camera_matrix", lens.tensors()[:4], (height, width))
    return distorting(lens, (height, width)).to(dtype)


def as_view(
    name: str,
    camera_matrix: Any,
    distortion: Any,
    rotation: Any,
    new_camera_matrix: Any,
    model: Any,
    device: torch.device | None,
) -> tuple[Lens, Tensor]:
    """The lens, and the matrix (..., 3, 3) from its directions to pixels of the new view."""
    lens = as_lens(name, camera_matrix, distortion, model, device)
    view = new_view(name, rotation, new_camera_matrix, lens, lens.fx.device)
    view = own_view(lens) if view is None else view
    checks.broadcast_batch(
        name, camera_matrix=lens.fx.shape, **{"rotation, new_camera_matrix": view.shape[:-2]}
    )
    return lens, view


def undistorting(
    lens: Lens, view: Tensor, size: tuple[int, int], *, opencv: bool = False
) -> Tensor:
    """`undistort_map` in float64, (..., h, w, 2); `opencv`: also for pixels that look backwards."""
    to_ray = inverse_map(view)
    by_torch = partial(_undistorting, size=size, opencv=opencv)
    if kernels.supports(to_ray, *lens.tensors()):
        return kernels.field(lens, to_ray, Field(lens.model, size, opencv, by_torch))
    return by_torch(lens, to_ray)


def _undistorting(lens: Lens, to_ray: Tensor, size: tuple[int, int], opencv: bool) -> Tensor:
    """`undistorting` in torch's operations; to_ray (..., 3, 3), from pixels to directions."""
    pixels = pixel_points(size, torch.float64, to_ray.device)
    # one copy of the matrix per row, as in all maps: its gradient is summed by rows first
    rows = to_ray[..., None, :, :].expand(*to_ray.shape[:-2], size[0], 3, 3)
    x, y, w = rows_at(rows[..., None, :, :], *pixels.unbind(-1))
    lens = lens.beside(2)
    finite, valid = guards.finite_lens(lens)
    good = valid & guards.within(x.detach() / w.detach(), y.detach() / w.detach())
    good = good if opencv else good & (w > 0)
    if guards.is_known_true(good):
        return _shown(lens, x, y, w, opencv)
    ahead = torch.where(good, x, 0.0), torch.where(good, y, 0.0), torch.where(good, w, 1.0)
    points = _shown(finite, ahead[0], ahead[1], ahead[2], opencv)
    none = _shown(lens.detach(), x.detach(), y.detach(), w.detach(), True) if opencv else torch.nan
    return torch.where(good[..., None], points, none)


def _shown(lens: Lens, x: Tensor, y: Tensor, w: Tensor, opencv: bool) -> Tensor:
    """Distorted pixels of directions (x, y, w), each (..., h, w)."""
    per = 1 / w  # as OpenCV divides
    u, v = models.distort(lens, x * per, y * per)
    points = torch.stack(torch.broadcast_tensors(*models.to_pixels(lens, u, v)), dim=-1)
    if not opencv:
        return points
    fixed, u, v = lens.detach(), u.detach(), v.detach()
    rest = fused(fixed.fx, u, fixed.cx), fused(fixed.fy, v, fixed.cy)
    return points + torch.stack(torch.broadcast_tensors(*rest), dim=-1)


def distorting(lens: Lens, size: tuple[int, int]) -> Tensor:
    """`distort_map` in float64, (..., h, w, 2)."""
    pixels = pixel_points(size, torch.float64, lens.fx.device).flatten(0, 1)
    points, _ = undistorted(lens.beside(1), pixels, None)
    return points.unflatten(-2, size)
