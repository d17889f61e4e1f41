"""Makes matrices from numbers; inverts, composes and applies them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from warpkit.core import checks, exports
from warpkit.core.sharding import batched
from warpkit.engine.definitions.maps import map_points, matrix_of, to_3x3
from warpkit.engine.operators.inverse import inverse_map
from warpkit.geometry.arguments import as_matrix, as_points, as_result, floats
from warpkit.types import MatrixLike, NumbersLike, PointsLike


@batched(center=1, angle=0, scale=0)
def rotation_matrix(center: PointsLike, angle: NumbersLike, scale: NumbersLike = 1.0) -> Tensor:
    """Rotate by `angle` and scale by `scale` about `center`: cv2.getRotationMatrix2D, batched.

    center (..., 2), (x, y) in pixels; angle (...), degrees, counter-clockwise; scale (...); all
    broadcast. Returns (..., 2, 3), source -> destination. Gradients: all orders, to all three.

    >>> rotation_matrix((2.0, 1.0), 90.0).round(decimals=4) + 0.0
    tensor([[ 0.,  1.,  1.],
            [-1.,  0.,  3.]])
    """
    name = "rotation_matrix"
    device, dtype = checks.result_kind(center, angle, scale)
    center = floats(name, "center", center, device, checks.as_pair)
    angle = floats(name, "angle", angle, device)
    scale = floats(name, "scale", scale, device)
    checks.broadcast_batch(name, center=center.shape[:-1], angle=angle.shape, scale=scale.shape)
    x, y = center.double().unbind(-1)
    radians = angle.double() * exports.number(math.pi / 180, angle.double())
    cos, sin = radians.cos() * scale.double(), radians.sin() * scale.double()
    # cv2's own order of operations, so that the float64 matrix equals cv2's to the last bit
    rows = ((cos, sin, (1 - cos) * x - sin * y), (-sin, cos, sin * x + (1 - cos) * y))
    return as_result(matrix_of(rows), dtype)


@batched(angle=0, scale=0, shear=1, translation=1, center=1)
def affine_matrix(
    *,
    angle: NumbersLike = 0.0,
    scale: NumbersLike = 1.0,
    shear: NumbersLike = 0.0,
    translation: PointsLike = (0.0, 0.0),
    center: PointsLike = (0.0, 0.0),
) -> Tensor:
    """Scale, shear and rotate about `center`, then translate.

    angle (...) and shear in degrees; scale (...), for both axes: a pair is a batch of two;
    translation and center (..., 2), pixels, center by default (0, 0). shear is x alone, (...), or a
    pair (x, y), (..., 2): x' = x + tan(x shear) y, y' = y + tan(y shear) x. All broadcast. Returns
    (..., 2, 3), source -> destination. Gradients: all orders, to all.

    >>> affine_matrix(scale=2.0, translation=(2.0, 0.0), center=(1.0, 1.0))
    tensor([[ 2.,  0.,  1.],
            [ 0.,  2., -1.]])
    """
    name = "affine_matrix"
    device, dtype = checks.result_kind(angle, scale, shear, translation, center)
    angle = floats(name, "angle", angle, device)
    scale = floats(name, "scale", scale, device)
    translation = floats(name, "translation", translation, device, checks.as_pair)
    center = floats(name, "center", center, device, checks.as_pair)
    others = checks.broadcast_batch(
        name,
        angle=angle.shape,
        scale=scale.shape,
        translation=translation.shape[:-1],
        center=center.shape[:-1],
    )
    shear = _shear_pair(name, shear, others, device)
    checks.broadcast_batch(name, shear=shear.shape[:-1], others=others)
    degree = exports.number(math.pi / 180, angle.double())
    radians, s = angle.double() * degree, scale.double()
    tx, ty = (shear.double() * degree).tan().unbind(-1)
    cos, sin = radians.cos() * s, radians.sin() * s
    # rotation [[cos, sin], [-sin, cos]] after shear [[1, tx], [ty, 1]]
    a, b = cos + sin * ty, cos * tx + sin
    d, e = cos * ty - sin, cos - sin * tx
    (x, y), (right, down) = center.double().unbind(-1), translation.double().unbind(-1)
    rows = ((a, b, x - a * x - b * y + right), (d, e, y - d * x - e * y + down))
    return as_result(matrix_of(rows), dtype)


def _shear_pair(name: str, shear: Any, batch: Sequence[int], device: Any) -> Tensor:
    if isinstance(shear, checks.LISTS):
        return floats(name, "shear", shear, device, checks.as_pair)
    shear = floats(name, "shear", shear, device)
    if shear.ndim == 0 or shear.shape[-1] != 2:
        return torch.stack((shear, torch.zeros_like(shear)), dim=-1)
    if shear.ndim == len(batch) and batch[-1] == 2:
        wanted = "a tuple (x, y) here: two numbers could also be a batch of 2 shears"
        checks.fail(name, "shear", wanted, f"a tensor of shape {checks.shape_of(shear)}")
    return shear


def image_center(size: Sequence[int]) -> tuple[float, float]:
    """The centre (x, y) of an image of `size` (H, W) in pixel coordinates.

    >>> image_center((480, 640))
    (319.5, 239.5)
    """
    height, width = checks.check_size("image_center", "size", size)
    return (width - 1) / 2, (height - 1) / 2


def resize_matrix(size: Sequence[int], new_size: Sequence[int]) -> Tensor:
    """The matrix that maps pixels to those of the resized picture.

    size (H, W), new_size (h, w): x' = (x + 1/2) w / W - 1/2, and so for y. Pixel centres are at
    whole numbers, and the pictures' edges meet. Returns (2, 3), of torch's default type:
    ``compose(camera_matrix, resize_matrix(...))`` is the camera's matrix for the resized picture,
    and a warp by it samples where `resize` does.

    >>> resize_matrix((480, 640), (240, 320))
    tensor([[ 0.5000,  0.0000, -0.2500],
            [ 0.0000,  0.5000, -0.2500]])
    """
    height, width = checks.check_size("resize_matrix", "size", size)
    h, w = checks.check_size("resize_matrix", "new_size", new_size)
    across, down = w / width, h / height
    rows = ((across, 0.0, (across - 1) / 2), (0.0, down, (down - 1) / 2))
    return torch.tensor(rows, device=None)


@batched(matrix=2)
def invert(matrix: MatrixLike) -> Tensor:
    """The inverse map, destination -> source: cv2.invertAffineTransform, batched.

    matrix (..., 2, 3) or (..., 3, 3). Returns the same shape. Closed form, exact for shifts by
    whole pixels. Gradients: all orders. Raises ValueError for a singular matrix.

    >>> invert([[2, 0, 4], [0, 1, -3]])
    tensor([[ 0.5000,  0.0000, -2.0000],
            [ 0.0000,  1.0000,  3.0000]])
    """
    _, dtype = checks.result_kind(matrix)
    matrix = as_matrix("invert", matrix)
    inverse = inverse_map(matrix.double())
    checks.check_values("invert", "matrix", inverse.isnan().any(-1).any(-1), "invertible")
    return as_result(inverse, dtype)


@batched(matrices=2)
def compose(*matrices: MatrixLike) -> Tensor:
    """Combine matrices: ``compose(a, b)`` applies `a` first.

    matrices (..., 2, 3) or (..., 3, 3), batches broadcast. Returns (..., 2, 3) if all are affine,
    else (..., 3, 3). Gradients: all orders, to all.

    >>> move, double = [[1, 0, 3], [0, 1, 0]], [[2, 0, 0], [0, 2, 0]]
    >>> compose(move, double)
    tensor([[2., 0., 6.],
            [0., 2., 0.]])
    """
    if not matrices:
        checks.fail("compose", "matrices", "at least one matrix", "none")
    first = matrices[0]
    if len(matrices) == 1 and isinstance(first, checks.LISTS) and _holds_matrices(first):
        wanted = "separate arguments: compose(a, b), or compose(*matrices) of a list"
        checks.fail("compose", "matrices", wanted, f"a list of {len(first)}")
    device, dtype = checks.result_kind(*matrices)
    tensors = [as_matrix("compose", m, f"matrices[{i}]", device) for i, m in enumerate(matrices)]
    batches = {f"matrices[{i}]": t.shape[:-2] for i, t in enumerate(tensors)}
    checks.broadcast_batch("compose", **batches)
    result = to_3x3(tensors[0].double())
    for tensor in tensors[1:]:
        result = to_3x3(tensor.double()) @ result
    rows = 2 if all(tensor.shape[-2] == 2 for tensor in tensors) else 3
    return result[..., :rows, :].to(dtype)


def _holds_matrices(values: Sequence[Any]) -> bool:
    """Whether a list holds matrices, and not a matrix's rows."""
    first = values[0] if values else None
    if isinstance(first, checks.LISTS):
        return bool(first) and (
            isinstance(first[0], checks.LISTS) or getattr(first[0], "ndim", 0) > 0
        )
    return getattr(first, "ndim", 0) > 1


@batched(matrix=2, points=2)
def transform_points(matrix: MatrixLike, points: PointsLike) -> Tensor:
    """Map points by a matrix: cv2.transform and cv2.perspectiveTransform, batched.

    matrix (..., 2, 3) or (..., 3, 3); points (..., N, 2) or (2,), (x, y) in pixels; the batches
    broadcast. Returns (..., N, 2). Gradients: all orders, to both.

    >>> transform_points([[1, 0, 5], [0, 1, 7]], [[0, 0], [1, 2]])
    tensor([[5., 7.],
            [6., 9.]])
    """
    name = "transform_points"
    device, dtype = checks.result_kind(matrix, points)
    matrix = as_matrix(name, matrix, "matrix", device)
    points, single = as_points(name, points, device)
    checks.broadcast_batch(name, matrix=matrix.shape[:-2], points=points.shape[:-2])
    x, y = points.double().unbind(-1)
    result = map_points(matrix.double(), x, y).to(dtype)
    return result[..., 0, :] if single else result
