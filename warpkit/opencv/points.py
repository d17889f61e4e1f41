"""Applies cv2's matrices to every vector of an array: transform and perspectiveTransform."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from warpkit.core import checks, exports
from warpkit.engine.arithmetic import opencv_points
from warpkit.engine.arithmetic.guarantees import installed_arithmetic
from warpkit.engine.arithmetic.opencv import TYPES as OPENCV_TYPES
from warpkit.engine.definitions.reference import with_gradient_of
from warpkit.opencv import plain_calls
from warpkit.opencv.door import check_output
from warpkit.opencv.layout import as_given, check_picture, device_of, has_tensor, is_followed
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
    exports.refuse_values(f"opencv.{name}", src, m)
    if (moved := plain_calls.transformed(src, m)) is not None:
        return plain_calls.given((src, m), moved, check_output(name, "dst", dst, src))
    values, matrix, given = _arguments(name, src, m, OPENCV_TYPES)
    checks.check_held(name, "m", matrix)  # its values decide whether it is diagonal
    channels = values.shape[-1]
    if matrix.shape[1] not in (channels, channels + 1):
        wanted = f"of shape (R, {channels}) or (R, {channels + 1}) for {channels} channels"
        checks.fail(name, "m", wanted, checks.shape_of(matrix))
    if matrix.shape[1] == channels:
        matrix = torch.cat((matrix, torch.zeros_like(matrix[:, :1])), dim=1)
    pixels, factors = values.detach(), matrix.detach()
    if (moved := plain_calls.transformed(pixels, factors)) is not None:
        result = torch.from_numpy(moved).reshape(*values.shape[:-1], len(matrix))
    else:
        result = opencv_points.transform(pixels, factors, installed_arithmetic())
    if result.is_floating_point() and is_followed(values, matrix):
        exact = values.double() @ matrix[:, :-1].mT + matrix[:, -1]
        result = with_gradient_of(result, exact.to(result.dtype))
    return _finish(name, src, result, given, dst)


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
    if (moved := plain_calls.moved_points(src, m)) is not None:
        return plain_calls.given((src, m), moved, check_output(name, "dst", dst, src))
    values, matrix, given = _arguments(name, src, m, (torch.float32, torch.float64))
    channels = values.shape[-1]
    if tuple(matrix.shape) != (channels + 1, channels + 1):
        wanted = f"of shape ({channels + 1}, {channels + 1}) for points of {channels} numbers"
        checks.fail(name, "m", wanted, checks.shape_of(matrix))
    # plain torch operations, which have their own gradient
    result = opencv_points.perspective(values, matrix)
    return _finish(name, src, result, given, dst)


def _arguments(
    name: str, src: Any, m: Any, types: tuple[torch.dtype, ...]
) -> tuple[Tensor, Tensor, bool]:
    """Values (..., C), the matrix in float64, and whether a tensor is given."""
    check_picture(name, "src", src, types)
    values = src if isinstance(src, Tensor) else checks.from_array(name, "src", src, device_of(m))
    matrix = checks.as_float(name, "m", m, values.device, torch.float64)
    checks.check_device(name, "m", matrix, values.device, "`src`")
    if matrix.ndim != 2:
        checks.fail(name, "m", "a matrix", checks.shape_of(matrix))
    values = values[..., None] if values.ndim == 2 else values
    return values, matrix.double(), has_tensor(src, m)


def _finish(name: str, src: Any, result: Tensor, given: bool, dst: Any) -> Any:
    output = check_output(name, "dst", dst, src)
    result = result[..., 0] if result.shape[-1] == 1 else result
    return as_given(given, result, output)
