"""Distorts and undistorts images: samples them by a map of `maps`, as `warpkit.remap` does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from warpkit import warp
from warpkit.camera.arguments import as_lens
from warpkit.camera.maps import are_plain, as_view, distorting, planned_field, undistorting
from warpkit.core import checks
from warpkit.core.mistakes import warn_if_16_bit_camera, warn_if_relative_camera
from warpkit.core.sharding import batched
from warpkit.engine.binding import plan
from warpkit.engine.binding.plan import Once, Plan
from warpkit.types import (
    Arithmetic,
    BackendName,
    Border,
    Interpolation,
    LensModel,
    MatrixLike,
    NumbersLike,
)


@batched(
    image=3,
    camera_matrix=2,
    distortion=1,
    rotation=2,
    new_camera_matrix=2,
    border_value=1,
    background=3,
)
def undistort(
    image: Tensor,
    camera_matrix: MatrixLike,
    distortion: NumbersLike,
    *,
    size: Sequence[int] | None = None,
    rotation: MatrixLike | None = None,
    new_camera_matrix: MatrixLike | None = None,
    model: LensModel = "brown",
    interpolation: Interpolation = "bilinear",
    border: Border = "constant",
    border_value: NumbersLike = 0.0,
    background: Tensor | None = None,
    antialias: bool | int = False,
    arithmetic: Arithmetic = "exact",
    backend: BackendName = "auto",
) -> Tensor:
    """Undistort images: cv2.undistort on tensors.

    image (..., C, H, W); camera_matrix (..., 3, 3), distortion (..., n), rotation and
    new_camera_matrix (..., 3, 3) as in `undistort_map`; size (h, w), the image's if None; all
    batches broadcast. Returns (..., C, h, w). Otherwise as `warpkit.remap`, including errors;
    gradients of all orders to image, camera, coefficients and rotation. Points are in float64; cv2
    rounds them to 1/32 pixel, as `warpkit.opencv.undistort` does.

    >>> import torch
    >>> image = torch.arange(3.0).reshape(1, 1, 3)
    >>> undistort(image, [[1, 0, 1], [0, 1, 0], [0, 0, 1]], [-0.5, 0, 0, 0])
    tensor([[[0.5000, 1.0000, 1.5000]]])
    """
    arrays = image, camera_matrix, distortion, rotation, new_camera_matrix
    keywords = size, model, interpolation, border, border_value, background
    return plan.call(_plan_undistort, arrays, (*keywords, antialias, arithmetic, backend))


def _plan_undistort(
    keeps: bool,
    image: Any,
    camera_matrix: Any,
    distortion: Any,
    rotation: Any,
    new_camera_matrix: Any,
    *keywords: Any,
) -> Plan | Once:
    """The plan of `undistort`; keywords: its other arguments, in their order."""
    size, model, interpolation, border, border_value, background, *names = keywords
    antialias, arithmetic, backend = names
    name = "undistort"
    image = checks.check_image(name, "image", image, labels=True)
    cameras = camera_matrix, distortion, rotation, new_camera_matrix
    lens, view = as_view(name, *cameras, model, image.device)
    size = _size(name, size, image)
    points = undistorting(lens, view, size)
    rule = warp.parse_rule(name, interpolation, border, arithmetic)
    made_of = {"camera_matrix": camera_matrix, "distortion": distortion}
    others = {"rotation": rotation, "new_camera_matrix": new_camera_matrix}
    made_of |= {argument: value for argument, value in others.items() if value is not None}
    warn_if_16_bit_camera(name, image.shape[-2:], **made_of)
    # without autograd's tape, nothing would show whether a gradient is lost
    keeps = keeps and are_plain(*cameras)
    keeps = keeps and points.requires_grad == any(v.requires_grad for v in made_of.values())
    options: dict[str, Any] = {"antialias": antialias, "made_of": made_of}
    inputs = name, image, points, rule, border_value, background, backend
    sampling = warp.plan_sampling(keeps, *inputs, **options)
    if isinstance(sampling, Once):
        warn_if_relative_camera(name, "camera_matrix", lens.tensors()[:4], image.shape[-2:])
        return sampling
    field = planned_field(name, lens, distortion, size, image.shape[-2:])
    return lambda image, *cameras: sampling(image, field(*cameras))


@batched(image=3, camera_matrix=2, distortion=1, border_value=1, background=3)
def distort(
    image: Tensor,
    camera_matrix: MatrixLike,
    distortion: NumbersLike,
    *,
    size: Sequence[int] | None = None,
    model: LensModel = "brown",
    interpolation: Interpolation = "bilinear",
    border: Border = "constant",
    border_value: NumbersLike = 0.0,
    background: Tensor | None = None,
    antialias: bool | int = False,
    arithmetic: Arithmetic = "exact",
    backend: BackendName = "auto",
) -> Tensor:
    """Distort ideal images.

    image (..., C, H, W); camera_matrix (..., 3, 3) and distortion (..., n) as in `distort_map`;
    size (h, w), the image's if None; all batches broadcast. Returns (..., C, h, w), the border
    value beyond the model's fold. Otherwise as `warpkit.remap`; gradients to the image, and to
    camera and coefficients up to the third order.

    >>> import torch
    >>> image = torch.arange(3.0).reshape(1, 1, 3)
    >>> distort(image, [[1, 0, 1], [0, 1, 0], [0, 0, 1]], [1.0, 0, 0, 0]).round(decimals=4)
    tensor([[[0.3177, 1.0000, 1.6823]]])
    """
    name = "distort"
    image = checks.check_image(name, "image", image, labels=True)
    lens = as_lens(name, camera_matrix, distortion, model, image.device)
    warn_if_relative_camera(name, "camera_matrix", lens.tensors()[:4], image.shape[-2:])
    points = distorting(lens, _size(name, size, image))
    rule = warp.parse_rule(name, interpolation, border, arithmetic)
    made_of = {"camera_matrix": camera_matrix, "distortion": distortion}
    warn_if_16_bit_camera(name, image.shape[-2:], **made_of)
    options: dict[str, Any] = {"antialias": antialias, "made_of": made_of}
    return warp.remap_by(name, image, points, rule, border_value, background, backend, **options)


def _size(name: str, size: Sequence[int] | None, image: Tensor) -> tuple[int, int]:
    """(h, w) of the result; by default the size of the image (..., C, H, W)."""
    height, width = image.shape[-2:] if size is None else checks.check_size(name, "size", size)
    return height, width
