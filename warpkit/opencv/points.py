"""Applies cv2's matrices to every vector of an array: transform and perspectiveTransform."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from warpkit.core import checks, exports
from warpkit.engine.arithmetic import opencv_points
from warpkit.engine.arithmetic.guarantees import installed_arithmetic
from warpkit.engine.arithmetic.opencv import TYPES as OPENCV_TYPES
from warpkit.engine.binding.plan import Once, Plan, once
from warpkit.engine.definitions.reference import with_gradient_of
from warpkit.opencv import door, point_lists
from warpkit.opencv.door import check_output
from warpkit.opencv.layout import check_picture, device_of, is_followed
from warpkit.types import ImageLike, MatrixLike, PointsLike


def transform(src: PointsLike, m: MatrixLike, dst: ImageLike | None = None) -> Any:
    """cv2.transform: a matrix for the channels of every pixel, or for every point.

    src (H, W, C), or (H, W) of one channel; m (R, C), or (R, C + 1) whose last column is added.
    Returns (H, W, R), (H, W) for R = 1, of src's type, with cv2's bits; float64 with more than four
    channels up to the last bits. Gradients, if src or m is a tensor and src is float: all orders,
    to both.

    >>> import numpy as np
    >>> transform(np.array([[[1.0, 2.0]]]), np.array([[1.0, 0, 5], [0, 1, 7]]))
    array([[[6., 9.]]])
    """
    name = "transform"
    output = dst if dst is None else check_output(name, "dst", dst, src)
    return door.numbers(_plan_transform, (src, m), (), output)


def _plan_transform(keeps: bool, src: Any, m: Any) -> Plan | Once:
    """The plan of `transform`."""
    name = "transform"
    exports.refuse_values(f"opencv.{name}", src, m)
    values, matrix = _arguments(name, src, m, OPENCV_TYPES)
    checks.check_held(name, "m", matrix)  # its values decide whether it is diagonal
    channels = values.shape[-1]
    if matrix.shape[1] not in (channels, channels + 1):
        wanted = f"of shape (R, {channels}) or (R, {channels + 1}) for {channels} channels"
        checks.fail(name, "m", wanted, checks.shape_of(matrix))
    pixels, factors, arithmetic = values.detach(), matrix.detach(), installed_arithmetic()
    followed = values.is_floating_point() and is_followed(values, matrix)
    if door.runs_kernels(pixels, factors):
        make = partial(point_lists.transforming, arithmetic=arithmetic)
        plan = door.planned(keeps and not followed, make, (src, m), (pixels, factors))
        if not followed:
            return plan
        result = torch.from_numpy(once(plan)).reshape(*values.shape[:-1], len(matrix))
    else:
        bias = matrix.new_zeros(len(matrix), channels + 1 - matrix.shape[1])
        result = opencv_points.transform(pixels, torch.cat((factors, bias), dim=1), arithmetic)
    if followed:
        bias = matrix[:, channels] if matrix.shape[1] > channels else 0.0
        exact = values.double() @ matrix[:, :channels].mT + bias
        result = with_gradient_of(result, exact.to(result.dtype))
    return Once(_squeezed(result))


def perspectiveTransform(src: PointsLike, m: MatrixLike, dst: ImageLike | None = None) -> Any:
    """cv2.perspectiveTransform: map points by a perspective matrix.

    src (N, 1, C) or (H, W, C), float32 or float64; m (C + 1, C + 1), others raise an error: for
    them cv2 multiplies instead of dividing. Returns src's shape and type, 0 for points at infinity.
    Gradients, if an argument is a tensor: all orders, to both.

    >>> import numpy as np
    >>> perspectiveTransform(np.array([[[2.0, 4.0]]]), np.diag([1.0, 1.0, 2.0]))
    array([[[1., 2.]]])
    """
    name = "perspectiveTransform"
    output = dst if dst is None else check_output(name, "dst", dst, src)
    shape = getattr(src, "shape", ())
    width = shape[-1] if len(shape) == 3 else 0
    return door.numbers(_plan_perspective, (src, m), (), output, width=width)


def _plan_perspective(keeps: bool, src: Any, m: Any) -> Plan | Once:
    """The plan of `perspectiveTransform`."""
    name = "perspectiveTransform"
    values, matrix = _arguments(name, src, m, (torch.float32, torch.float64))
    channels = values.shape[-1]
    if tuple(matrix.shape) != (channels + 1, channels + 1):
        wanted = f"of shape ({channels + 1}, {channels + 1}) for points of {channels} numbers"
        checks.fail(name, "m", wanted, checks.shape_of(matrix))
    if door.runs_kernels(values, matrix):
        return door.planned(keeps, point_lists.perspective, (src, m), (values, matrix))
    # plain torch operations, which have their own gradient
    return Once(_squeezed(opencv_points.perspective(values, matrix)))


def _arguments(
    name: str, src: Any, m: Any, types: tuple[torch.dtype, ...]
) -> tuple[Tensor, Tensor]:
    """Values (..., C), and the matrix in float64."""
    check_picture(name, "src", src, types)
    values = src if isinstance(src, Tensor) else checks.from_array(name, "src", src, device_of(m))
    matrix = checks.as_float(name, "m", m, values.device, torch.float64)
    checks.check_device(name, "m", matrix, values.device, "`src`")
    if matrix.ndim != 2:
        checks.fail(name, "m", "a matrix", checks.shape_of(matrix))
    return values[..., None] if values.ndim == 2 else values, matrix.double()


def _squeezed(result: Tensor) -> Tensor:
    """cv2 drops a single channel."""
    return result[..., 0] if result.shape[-1] == 1 else result
