"""Point fields of undistorted and distorted images, for `remap`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from warpkit.camera.arguments import as_lens, not_none
from warpkit.camera.points import new_view, own_view, undistort
from warpkit.core import checks
from warpkit.core.mistakes import warn_if_16_bit_camera, warn_if_relative_camera
from warpkit.core.sharding import batched
from warpkit.engine.definitions.lens_models import Lens
from warpkit.engine.definitions.maps import pixel_points
from warpkit.engine.operators.inverse import inverse_map
from warpkit.engine.operators.lens_field import lens_field
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
    kind = checks.result_kind(camera_matrix, distortion, *not_none(rotation, new_camera_matrix))
    lens, view = as_view(
        name, camera_matrix, distortion, rotation, new_camera_matrix, model, kind[0]
    )
    height, width = checks.check_size(name, "size", size)
    warn_if_relative_camera(name, "camera_matrix", lens.tensors()[:4], (height, width))
    numbers = {"camera_matrix": camera_matrix, "distortion": distortion}
    numbers |= {"rotation": rotation, "new_camera_matrix": new_camera_matrix}
    warn_if_16_bit_camera(name, (height, width), **numbers)
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
    warn_if_relative_camera(name, "camera_matrix", lens.tensors()[:4], (height, width))
    warn_if_16_bit_camera(name, (height, width), camera_matrix=camera_matrix, distortion=distortion)
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
    return lens_field(lens, inverse_map(view), size, opencv)


def distorting(lens: Lens, size: tuple[int, int]) -> Tensor:
    """`distort_map` in float64, (..., h, w, 2)."""
    pixels = pixel_points(size, torch.float64, lens.fx.device).flatten(0, 1)
    points, _ = undistort(lens.beside(1), pixels, None)
    return points.unflatten(-2, size)
