"""Point fields of undistorted and distorted images, for `remap`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from warpkit.camera.arguments import as_lens, camera, not_none
from warpkit.camera.points import new_view, own_view, undistort
from warpkit.core import checks
from warpkit.core.lasting import lasting
from warpkit.core.mistakes import warn_if_16_bit_camera, warn_if_relative_camera
from warpkit.core.sharding import batched
from warpkit.engine.binding import plan
from warpkit.engine.binding.plan import Once, Plan
from warpkit.engine.definitions import lens_models
from warpkit.engine.definitions.lens_models import Lens
from warpkit.engine.definitions.maps import pixel_points
from warpkit.engine.operators.inverse import inverse_map
from warpkit.engine.operators.lens_field import FIELD, Field, lens_field
from warpkit.types import LensModel, MatrixLike, NumbersLike

PLAIN = (torch.float32, torch.float64)
"""Types of cameras that need no warnings."""


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
    cameras = camera_matrix, distortion, rotation, new_camera_matrix
    return plan.call(_plan_map, cameras, (size, model))


def _plan_map(
    keeps: bool,
    camera_matrix: Any,
    distortion: Any,
    rotation: Any,
    new_camera_matrix: Any,
    size: Any,
    model: Any,
) -> Plan | Once:
    """The plan of `undistort_map`, with its arguments."""
    name, cameras = "undistort_map", (camera_matrix, distortion, rotation, new_camera_matrix)
    device, dtype = checks.result_kind(*not_none(*cameras))
    lens, view = as_view(name, *cameras, model, device)
    height, width = checks.check_size(name, "size", size)
    if keeps and are_plain(*cameras):
        field = planned_field(name, lens, distortion, (height, width), (height, width))
        return lambda *cameras: field(*cameras).to(dtype)
    warn_if_relative_camera(name, "camera_matrix", lens.tensors()[:4], (height, width))
    numbers = {"camera_matrix": camera_matrix, "distortion": distortion}
    numbers |= {"rotation": rotation, "new_camera_matrix": new_camera_matrix}
    warn_if_16_bit_camera(name, (height, width), **numbers)
    return Once(undistorting(lens, view, (height, width)).to(dtype))


def are_plain(*cameras: Any) -> bool:
    """Whether a plan can take cameras of these types without conversions or warnings."""
    return all(isinstance(v, Tensor) and v.dtype in PLAIN for v in not_none(*cameras))


@lasting
def planned_field(
    name: str, like: Lens, distortion: Tensor, size: tuple[int, int], sides: Sequence[int]
) -> Callable[..., Tensor]:
    """Makes `undistort_map` in float64 of cameras whose types and shapes have been checked.

    like: the lens of the first ones, of which distortion (..., n) is a part; sides: the image's.
    """
    batch, count, options = like.fx.shape, len(like.k), Field(like.model, size, False)
    is_row = distortion.ndim == 2 and distortion.numel() == count  # cv2's form
    free = torch.tensor([[1, 0, 1], [0, 1, 1], [0, 0, 0]], dtype=torch.bool, device="cpu")
    focal = torch.tensor([[1, 0, 0], [0, 1, 0], [0, 0, 0]], dtype=torch.bool, device="cpu")
    checked = ~(free ^ focal)
    fixed = torch.tensor([[0, 0, 0], [0, 0, 0], [0, 0, 1]], dtype=torch.float64, device="cpu")
    at = torch.tensor([0, 4, 2, 5], device="cpu")

    def field(
        camera_matrix: Tensor, distortion: Tensor, rotation: Tensor | None, new: Tensor | None
    ) -> Tensor:
        """Shapes as in `undistort_map`."""
        matrix = camera_matrix.double()
        if bool((((matrix == fixed) == focal) & checked).any()):
            camera(name, camera_matrix, matrix.device)  # raises the error
        k = distortion.double().flatten() if is_row else distortion.double()
        matrix, k = matrix.expand(*batch, 3, 3), k.expand(*batch, count)
        numbers = torch.cat((matrix.flatten(-2).index_select(-1, at), k), dim=-1)
        four = numbers.detach().unbind(-1)[:4]
        warn_if_relative_camera(name, "camera_matrix", four, sides)
        if rotation is None and new is None:
            view = torch.where(free, matrix, fixed)
        else:
            lens = lens_models.unpacked(options.model, numbers)
            view = new_view(name, rotation, new, lens, matrix.device)
        return FIELD(options, numbers, inverse_map(view))  # pyright: ignore

    return field


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
