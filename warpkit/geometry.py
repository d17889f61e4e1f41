"""Matrices and points: every function batched, and differentiable in every tensor argument.

Conventions, here and everywhere in warpkit:

- Pixel coordinates are (x, y), x right, y down; the centre of the top-left pixel is (0, 0).
- A matrix (..., 2, 3) or (..., 3, 3) maps source pixels to destination pixels.
- Angles are degrees, counter-clockwise positive on the screen.
- Boxes are (x1, y1, x2, y2) in edge coordinates: pixel i covers [i, i + 1).
- Sizes are (H, W).

Numbers, sequences and arrays are accepted beside tensors. Results are computed in float64 and
returned in the arguments' common type (torch's default type for Python numbers). All functions are
differentiable any number of times.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from warpkit import _checks as checks
from warpkit._objects import as_corners
from warpkit._sharding import batched
from warpkit.kernels import quads
from warpkit.kernels.maps import (
    inverse_map,
    map_points,
    matrix_of,
    to_3x3,
)


@batched(center=1, angle=0, scale=0)
def rotation_matrix(center: Any, angle: Any, scale: Any = 1.0) -> Tensor:
    """Turn by `angle` and scale by `scale` about `center`: cv2.getRotationMatrix2D, batched.

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
    radians = angle.double() * (math.pi / 180)
    cos, sin = radians.cos() * scale.double(), radians.sin() * scale.double()
    # cv2's own order of operations, so that its float64 matrix comes out to the last bit
    rows = ((cos, sin, (1 - cos) * x - sin * y), (-sin, cos, sin * x + (1 - cos) * y))
    return as_result(matrix_of(rows), dtype)


@batched(angle=0, scale=0, shear=1, translation=1, center=1)
def affine_matrix(
    *,
    angle: Any = 0.0,
    scale: Any = 1.0,
    shear: Any = 0.0,
    translation: Any = (0.0, 0.0),
    center: Any = (0.0, 0.0),
) -> Tensor:
    """Scale, shear and turn about `center`, then translate.

    angle (...) and shear in degrees; scale (...), of both axes: a pair is a batch of two;
    translation and center (..., 2), pixels, the center the top-left pixel's unless told. shear is
    x alone, (...), or a pair (x, y), (..., 2): x' = x + tan(x shear) y, y' = y + tan(y shear) x.
    All broadcast. Returns (..., 2, 3), source -> destination. Gradients: all orders, to all.

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
    radians, s = angle.double() * (math.pi / 180), scale.double()
    tx, ty = (shear.double() * (math.pi / 180)).tan().unbind(-1)
    cos, sin = radians.cos() * s, radians.sin() * s
    # turn [[cos, sin], [-sin, cos]] after shear [[1, tx], [ty, 1]]
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
        wanted = "a tuple (x, y) here: two shears could also be one for each of the batch of 2"
        checks.fail(name, "shear", wanted, f"a tensor of shape {checks.shape_of(shear)}")
    return shear


def image_center(size: Sequence[int]) -> tuple[float, float]:
    """The centre (x, y) of an image of `size` (H, W) in pixel coordinates.

    >>> image_center((480, 640))
    (319.5, 239.5)
    """
    height, width = checks.check_size("image_center", "size", size)
    return (width - 1) / 2, (height - 1) / 2


@batched(src=2, dst=2)
def affine_from_points(src: Any, dst: Any) -> Tensor:
    """The affine matrix that carries three points to three: cv2.getAffineTransform, batched.

    src and dst (..., 3, 2), (x, y) in pixels, broadcast. Returns (..., 2, 3). Gradients: all
    orders, to both. Raises ValueError where the three points of `src` lie on a line.

    >>> affine_from_points([[0, 0], [1, 0], [0, 1]], [[5, 7], [6, 7], [5, 9]])
    tensor([[1., 0., 5.],
            [0., 2., 7.]])
    """
    name = "affine_from_points"
    src, dst, dtype = point_pairs(name, src, dst, 3)
    checks.check_values(name, "src", collinear(src, dtype), "three points that span a triangle")
    (ax, ay), (bx, by) = ((src[..., i, :] - src[..., 0, :]).unbind(-1) for i in (1, 2))
    u, v = (dst[..., i, :] - dst[..., 0, :] for i in (1, 2))
    area = (ax * by - ay * bx)[..., None]
    column_x = (u * by[..., None] - v * ay[..., None]) / area
    column_y = (v * ax[..., None] - u * bx[..., None]) / area
    x0, y0 = src[..., 0, :].unbind(-1)
    shift = dst[..., 0, :] - column_x * x0[..., None] - column_y * y0[..., None]
    return as_result(torch.stack((column_x, column_y, shift), dim=-1), dtype)


@batched(src=2, dst=2)
def perspective_from_points(src: Any, dst: Any) -> Tensor:
    """The perspective matrix that carries four points to four: cv2.getPerspectiveTransform.

    src and dst (..., 4, 2), (x, y) in pixels, broadcast. Returns (..., 3, 3) whose last entry is 1,
    or whose norm is 1 where that entry is 0: where the source's origin goes to infinity. The points
    of `dst` may be collapsed or lie on a line; where more than one matrix carries them, it is the
    one nearest to an affine one. Gradients: all orders, to both (to a line's points, as if they
    stayed on it). Raises ValueError where points of `src` lie on a line and those of `dst` do not.

    >>> square = [[0, 0], [1, 0], [1, 1], [0, 1]]
    >>> perspective_from_points(square, [[0, 0], [2, 0], [2, 2], [0, 2]])
    tensor([[2., 0., 0.],
            [0., 2., 0.],
            [0., 0., 1.]])
    """
    name = "perspective_from_points"
    src, dst, dtype = point_pairs(name, src, dst, 4)
    finite = dst.detach().isfinite().all(-1).all(-1)
    checks.check_values(name, "dst", ~finite, "four finite points")
    whole = quads.carry(src, dst)
    src_lines, dst_lines = _lines(src, dtype), _lines(dst, dtype)
    several = src_lines.any(0) | dst_lines.all(0)  # matrices, or none
    if not checks.is_readable(several):
        whole = torch.where(several[..., None, None], torch.nan, whole)
    elif bool(several.any()):
        whole = _carry_lines(name, src, dst, whole, src_lines, several)
    return as_result(quads.normalised(whole, quads.origin_is_far(whole, src, dtype)), dtype)


def _carry_lines(
    name: str, src: Tensor, dst: Tensor, whole: Tensor, src_lines: Tensor, several: Tensor
) -> Tensor:
    """`whole` (..., 3, 3), where `several` (...) holds by one of several matrices, or an error."""
    flat, bent = (lines.expand(several.shape) for lines in (src_lines.all(0), src_lines.any(0)))
    wanted = "four points of which no three are on a line, unless those of `dst` are too"
    checks.check_values(name, "src", flat, wanted)
    src, dst = (p.expand(*several.shape, 4, 2)[several] for p in (src, dst))
    found, carried = quads.carry_somehow(src, dst)
    none = torch.zeros_like(several).masked_scatter(several, ~carried) & bent
    checks.check_values(name, "src", none, wanted)
    return whole.masked_scatter(several[..., None, None], found)


def _lines(points: Tensor, dtype: torch.dtype) -> Tensor:
    """Which three of four points (..., 4, 2) lie on a line, (4, ...): all but the i-th."""
    threes = ([1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2])
    return torch.stack([collinear(points[..., three, :], dtype) for three in threes])


def point_pairs(name: str, src: Any, dst: Any, n: int) -> tuple[Tensor, Tensor, torch.dtype]:
    """Checked pairs (..., n, 2) in float64, and the type of what is made from them."""
    device, dtype = checks.result_kind(src, dst)
    src, dst = (floats(name, a, p, device) for a, p in (("src", src), ("dst", dst)))
    for argument, points in (("src", src), ("dst", dst)):
        checks.check_last(name, argument, points, n, 2)
    checks.broadcast_batch(name, src=src.shape[:-2], dst=dst.shape[:-2])
    return src.double(), dst.double(), dtype


def collinear(points: Tensor, dtype: torch.dtype) -> Tensor:
    """Whether three points (..., 3, 2) lie on a line, up to the rounding of `dtype`.

    A coordinate c known to eps c moves the doubled area by eps c times an edge; 4 for safety.
    """
    points = points.detach()
    (ax, ay), (bx, by) = ((points[..., i, :] - points[..., 0, :]).unbind(-1) for i in (1, 2))
    edge = torch.stack((ax, ay, bx, by), dim=-1).abs().amax(-1)
    reach = points.abs().amax((-1, -2))
    area = (ax * by - ay * bx).abs()
    return ~(area > 4 * torch.finfo(dtype).eps * edge * reach)  # NaN counts as degenerate


@batched(boxes=1, angle=0, scale=0, translation=1)
def box_to_matrix(
    boxes: Any,
    size: Sequence[int],
    *,
    angle: Any = 0.0,
    scale: Any = 1.0,
    translation: Any = (0.0, 0.0),
) -> Tensor:
    """The matrix that lays a patch of `size` pixels on its box in an image.

    boxes (..., 4), (x1, y1, x2, y2) in edge coordinates, or torchvision's BoundingBoxes of any
    format that is not rotated; size (H, W) of the patch; the patch is turned by angle (...) degrees
    and scaled by scale (...) about the box's centre, then moved by translation (..., 2) pixels.
    Returns (..., 2, 3), patch pixel -> image pixel; boxes are in edge coordinates and matrices in
    centre coordinates, and the half pixel between them is dealt with here. Gradients: all orders,
    to all tensors.

    >>> box_to_matrix((4.0, 2.0, 8.0, 4.0), (2, 4))
    tensor([[1., 0., 4.],
            [0., 1., 2.]])
    """
    name = "box_to_matrix"
    height, width = checks.check_size(name, "size", size)
    boxes = as_corners(name, boxes)
    device, dtype = checks.result_kind(boxes, angle, scale, translation)
    boxes = floats(name, "boxes", boxes, device)
    checks.check_last(name, "boxes", boxes, 4)
    angle = floats(name, "angle", angle, device)
    scale = floats(name, "scale", scale, device)
    translation = floats(name, "translation", translation, device, checks.as_pair)
    checks.broadcast_batch(
        name,
        boxes=boxes.shape[:-1],
        angle=angle.shape,
        scale=scale.shape,
        translation=translation.shape[:-1],
    )
    x1, y1, x2, y2 = boxes.double().unbind(-1)
    radians = angle.double() * (math.pi / 180)
    cos, sin = radians.cos() * scale.double(), radians.sin() * scale.double()
    per_x, per_y = (x2 - x1) / width, (y2 - y1) / height  # image pixels per patch pixel
    a, b, d, e = cos * per_x, sin * per_y, -sin * per_x, cos * per_y
    # the patch's centre, ((W - 1) / 2, (H - 1) / 2), goes to the box's, half a pixel off its edges
    u, v = (width - 1) / 2, (height - 1) / 2
    right, down = translation.double().unbind(-1)
    c = (x1 + x2) / 2 - 0.5 + right - a * u - b * v
    f = (y1 + y2) / 2 - 0.5 + down - d * u - e * v
    return as_result(matrix_of(((a, b, c), (d, e, f))), dtype)


@batched(matrix=2)
def invert(matrix: Any) -> Tensor:
    """The inverse map, destination -> source: cv2.invertAffineTransform, batched.

    matrix (..., 2, 3) or (..., 3, 3). Returns the same shape. Closed form, exact for shifts by
    whole pixels. Gradients: all orders. Raises ValueError where a matrix is singular.

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
def compose(*matrices: Any) -> Tensor:
    """One matrix for several in a row: ``compose(a, b)`` applies `a` first.

    matrices (..., 2, 3) or (..., 3, 3), batches broadcast. Returns (..., 2, 3) if all are affine,
    else (..., 3, 3). Gradients: all orders, to all.

    >>> move, double = [[1, 0, 3], [0, 1, 0]], [[2, 0, 0], [0, 2, 0]]
    >>> compose(move, double)
    tensor([[2., 0., 6.],
            [0., 2., 0.]])
    """
    if not matrices:
        checks.fail("compose", "matrices", "at least one matrix", "none")
    device, dtype = checks.result_kind(*matrices)
    tensors = [as_matrix("compose", m, f"matrices[{i}]", device) for i, m in enumerate(matrices)]
    batches = {f"matrices[{i}]": t.shape[:-2] for i, t in enumerate(tensors)}
    checks.broadcast_batch("compose", **batches)
    result = to_3x3(tensors[0].double())
    for tensor in tensors[1:]:
        result = to_3x3(tensor.double()) @ result
    rows = 2 if all(tensor.shape[-2] == 2 for tensor in tensors) else 3
    return result[..., :rows, :].to(dtype)


@batched(matrix=2, points=2)
def transform_points(matrix: Any, points: Any) -> Tensor:
    """Where a matrix carries points: cv2.transform and cv2.perspectiveTransform, batched.

    matrix (..., 2, 3) or (..., 3, 3); points (..., N, 2) or (2,), (x, y) in pixels; the batches
    broadcast. Returns (..., N, 2). Gradients: all orders, to both.

    >>> transform_points([[1, 0, 5], [0, 1, 7]], [[0, 0], [1, 2]])
    tensor([[5., 7.],
            [6., 9.]])
    """
    name = "transform_points"
    device, dtype = checks.result_kind(matrix, points)
    matrix = as_matrix(name, matrix, "matrix", device)
    points = floats(name, "points", points, device)
    checks.check_last(name, "points", points, 2)
    single = points.ndim == 1
    rows = points[None] if single else points
    checks.broadcast_batch(name, matrix=matrix.shape[:-2], points=rows.shape[:-2])
    x, y = rows.double().unbind(-1)
    moved = map_points(matrix.double(), x, y).to(dtype)
    return moved[..., 0, :] if single else moved


def as_matrix(
    name: str, matrix: Any, argument: str = "matrix", device: torch.device | None = None
) -> Tensor:
    """A matrix (..., 2 or 3, 3), checked."""
    tensor = floats(name, argument, matrix, device)
    checks.check_matrix_shape(name, argument, tensor, (2, 3))
    return tensor


def floats(
    name: str,
    argument: str,
    value: Any,
    device: torch.device | None,
    read: Callable[..., Tensor] = checks.as_float,
) -> Tensor:
    """A tensor on the device of the others; numbers in float64, in which all is computed."""
    tensor = read(name, argument, value, device, torch.float64)
    checks.check_device(name, argument, tensor, device or tensor.device, "the first tensor")
    return tensor


def as_result(matrix: Tensor, dtype: torch.dtype) -> Tensor:
    """In the caller's type, and without negative zeros, which only puzzle a reader."""
    return (matrix + 0.0).to(dtype)
