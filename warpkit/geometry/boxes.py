"""Boxes in torchvision's formats, and the matrix that maps a patch to a box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.core.sharding import Layout, Shapes, batch_layout, batched, shardable
from warpkit.core.tracing import is_readable
from warpkit.engine.definitions.frames import (
    QUAD,
    TURNED,
    UPRIGHT,
    areas,
    cos_sin,
    frame_of,
    kind_of_boxes,
    patch_matrix,
)
from warpkit.engine.definitions.maps import matrix_of, rows_at, to_3x3
from warpkit.geometry.arguments import as_matrix, as_result, floats
from warpkit.types import BoxesLike, MatrixLike, NumbersLike, PointsLike

KINDS = {
    UPRIGHT: "finite (x1, y1, x2, y2) with x1 < x2 and y1 < y2",
    TURNED: "finite (cx, cy, w, h, angle) with w > 0 and h > 0",
    QUAD: "finite convex quads, four corners (x, y) clockwise from the box's own top left",
}
"""The requirement for boxes of each kind, as errors state it."""


def _rule(shapes: Shapes, options: Mapping[str, Any]) -> Layout:
    quads = kind_of_boxes(shapes.get("boxes", ())) == QUAD
    return batch_layout(shapes, {"boxes": 1 + quads, "angle": 0, "scale": 0, "translation": 1})


@shardable(_rule, "boxes", "angle", "scale", "translation")
def box_to_matrix(
    boxes: BoxesLike,
    size: Sequence[int],
    *,
    angle: NumbersLike = 0.0,
    scale: NumbersLike = 1.0,
    translation: PointsLike = (0.0, 0.0),
) -> Tensor:
    """The matrix that maps a patch of `size` pixels to its box in an image.

    boxes, in edge coordinates: (..., 4), (x1, y1, x2, y2); (..., 5), (cx, cy, w, h, angle), rotated
    by degrees counter-clockwise on the screen; (..., 4, 2), four corners clockwise from the box's
    own top left; or torchvision's BoundingBoxes of any format. size (H, W) of the patch. The patch
    is rotated by angle (...) degrees, which are added to a rotated box's own, and scaled by scale
    (...) about the box's centre, then moved by translation (..., 2) pixels; angle and scale have no
    meaning for four corners, and raise an error. Returns (..., 2, 3), patch pixel -> image pixel,
    for four corners (..., 3, 3), whose depth is 1 in the box's middle. Boxes are in edge
    coordinates and matrices in centre coordinates; the result accounts for the half pixel between
    them. Gradients: all orders, to all tensors. Raises ValueError for four corners that form no
    convex quad, and for w <= 0 or h <= 0 (on an accelerator: NaN).

    >>> box_to_matrix((4.0, 2.0, 8.0, 4.0), (2, 4))
    tensor([[1., 0., 4.],
            [0., 1., 2.]])
    >>> box_to_matrix((5.0, 3.0, 4.0, 2.0, 90.0), (2, 4))  # from (4, 5) upwards
    tensor([[ 0.,  1.,  4.],
            [-1.,  0.,  4.]])
    """
    name = "box_to_matrix"
    height, width = checks.check_size(name, "size", size)
    boxes = read_boxes(boxes)
    device, dtype = checks.result_kind(boxes, angle, scale, translation)
    boxes = floats(name, "boxes", boxes, device)
    kind = kind_of_boxes(boxes.shape)
    if kind is None:
        wanted = "of shape (..., 4), (..., 5) or (..., 4, 2)"
        checks.fail(name, "boxes", wanted, checks.shape_of(boxes))
    translation = floats(name, "translation", translation, device, checks.as_pair)
    batch = boxes.shape[:-2] if kind == QUAD else boxes.shape[:-1]
    if kind == QUAD:
        for argument, value, none in (("angle", angle, 0), ("scale", scale, 1)):
            if not (isinstance(value, int | float) and value == none):
                wanted = f"{none}, the default, for four corners, which determine everything"
                checks.fail(name, argument, wanted, f"{value!r:.60}")
        checks.broadcast_batch(name, boxes=batch, translation=translation.shape[:-1])
        matrix = patch_matrix(frame_of(boxes.double()), (height, width))
        right, down = translation.double()[..., None].unbind(-2)
        x, y, depth = matrix.unbind(-2)
        rows = (x + right * depth, y + down * depth, depth)
        matrix = torch.stack(torch.broadcast_tensors(*rows), dim=-2)
        bad = check_boxes(name, boxes)[..., None, None]
        return as_result(torch.where(bad, torch.nan, matrix), dtype)
    angle = floats(name, "angle", angle, device)
    scale = floats(name, "scale", scale, device)
    checks.broadcast_batch(
        name,
        boxes=batch,
        angle=angle.shape,
        scale=scale.shape,
        translation=translation.shape[:-1],
    )
    degrees = angle.double()
    if kind == TURNED:
        x, y, long, high, turned = boxes.double().unbind(-1)
        degrees = turned + degrees
    else:
        x1, y1, x2, y2 = boxes.double().unbind(-1)
        x, y, long, high = (x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1
    cos, sin = (part * scale.double() for part in cos_sin(degrees))
    per_x, per_y = long / width, high / height  # image pixels per patch pixel
    a, b, d, e = cos * per_x, sin * per_y, -sin * per_x, cos * per_y
    # the patch's centre, ((W - 1) / 2, (H - 1) / 2), maps to the box's centre minus half a pixel
    u, v = (width - 1) / 2, (height - 1) / 2
    right, down = translation.double().unbind(-1)
    c = x - 0.5 + right - a * u - b * v
    f = y - 0.5 + down - d * u - e * v
    matrix = matrix_of(((a, b, c), (d, e, f)))
    if kind == TURNED:
        matrix = torch.where(check_boxes(name, boxes)[..., None, None], torch.nan, matrix)
    return as_result(matrix, dtype)


ROTATED = ("XYWHR", "CXCYWHR", "XYXYXYXY")
"""torchvision's formats of rotated boxes."""


@batched(boxes=2, matrix=2)
def transform_boxes(boxes: BoxesLike, matrix: MatrixLike) -> Tensor:
    """Map boxes by a matrix: the upright boxes around their mapped corners.

    boxes (..., N, 4) or (4,), (x1, y1, x2, y2) in edge coordinates, any numbers, or torchvision's
    upright BoundingBoxes; matrix (..., 2, 3) or (..., 3, 3), source -> destination in pixels; the
    batches broadcast. Returns (..., N, 4), edge coordinates; NaN where a box crosses or touches the
    horizon. Gradients: all orders, to both, through the corners that lie on the sides.

    >>> transform_boxes([[2.0, 1.0, 6.0, 3.0]], [[2, 0, 0.5], [0, 2, 0.5]])  # twice as large
    tensor([[ 4.,  2., 12.,  6.]])
    """
    name = "transform_boxes"
    form = getattr(getattr(boxes, "format", None), "name", "XYXY")  # torchvision's
    if form in ROTATED:
        wanted = "upright, (x1, y1, x2, y2): of rotated boxes map the corners, by transform_points"
        checks.fail(name, "boxes", wanted, f"BoundingBoxes of {form}")
    boxes = read_boxes(boxes)
    device, dtype = checks.result_kind(boxes, matrix)
    matrix = as_matrix(name, matrix, "matrix", device)
    boxes = floats(name, "boxes", boxes, matrix.device)
    checks.check_device(name, "boxes", boxes, matrix.device, "`matrix`")
    checks.check_last(name, "boxes", boxes, 4)
    single = boxes.ndim == 1
    boxes = boxes[None] if single else boxes
    checks.broadcast_batch(name, boxes=boxes.shape[:-2], matrix=matrix.shape[:-2])
    left, top, right, bottom = (boxes.double() - 0.5).unbind(-1)
    x = torch.stack((left, right, right, left), dim=-1)
    y = torch.stack((top, top, bottom, bottom), dim=-1)
    u, v, w = rows_at(to_3x3(matrix.double())[..., None, None, :, :], x, y)
    ahead = w.detach() > 0
    good = (ahead.all(-1) | (w.detach() < 0).all(-1))[..., None]
    u, v = (torch.where(good, part, 0.0) / torch.where(good, w, 1.0) for part in (u, v))
    sides = u.amin(-1), v.amin(-1), u.amax(-1), v.amax(-1)
    result = torch.where(good, torch.stack(sides, dim=-1) + 0.5, torch.nan).to(dtype)
    return result[..., 0, :] if single else result


def check_boxes(function: str, boxes: Tensor) -> Tensor:
    """Which boxes (..., 4), (..., 5) or (..., 4, 2) are invalid, (...).

    If values can be read, an invalid box raises an error, which for a quad gives the reason.
    """
    values = boxes.detach()
    kind = kind_of_boxes(values.shape)
    assert kind is not None
    if kind != QUAD:
        finite = values.isfinite().all(-1)
        if kind == TURNED:
            good = finite & (values[..., 2:4] > 0).all(-1)
        else:
            good = finite & (values[..., :2] < values[..., 2:]).all(-1)
        checks.check_values(function, "boxes", ~good, KINDS[kind], values)
        return ~good
    area = areas(values.double())
    finite = values.isfinite().flatten(-2).all(-1)
    left, right = (area > 0).sum(-1), (area < 0).sum(-1)
    bad = ~finite | ~((left == 4) | (right == 4))
    if is_readable(bad) and bool(bad.any()):
        at = tuple(bad.nonzero()[0].tolist())
        what = ", which is not finite"
        if bool(finite[at]):
            signs = int(left[at]), int(right[at])
            what = ", whose edges cross" if signs == (2, 2) else ", which is not convex"
            what = what if sum(signs) == 4 else ", with three corners on a line"
        where = f" at {at[0] if len(at) == 1 else at}" if at else ""
        checks.fail(function, "boxes", KINDS[kind], f"{values[at].tolist()}{where}{what}")
    return bad


def read_boxes(value: Any) -> Any:
    """Converts torchvision's boxes of any format to numbers; returns anything else unchanged.

    (N, 4), two corners; for rotated formats (N, 5), the centre first, or (N, 4, 2).
    """
    if type(value).__name__ != "BoundingBoxes":  # by name, since torchvision may be absent
        return value
    form, tensor = value.format.name, value.as_subclass(Tensor)
    if form == "CXCYWHR":
        return tensor
    if form == "XYXYXYXY":
        return tensor.unflatten(-1, (4, 2))
    if form == "XYWHR":  # x and y are the box's own top left corner, after the rotation
        x, y, width, height, angle = tensor.double().unbind(-1)
        cos, sin = cos_sin(angle)
        x = x + (width * cos + height * sin) / 2
        y = y + (height * cos - width * sin) / 2
        dtype = tensor.dtype if tensor.is_floating_point() else torch.get_default_dtype()
        return torch.stack((x, y, width, height, angle), dim=-1).to(dtype)
    from torchvision.transforms.v2.functional import convert_bounding_box_format

    return convert_bounding_box_format(
        tensor, old_format=value.format, new_format=type(value.format).XYXY
    )
