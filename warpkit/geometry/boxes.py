"""Boxes: the corners of torchvision's, and the matrix that lays a patch on one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from warpkit.core import checks
from warpkit.core.sharding import batched
from warpkit.engine.sampling.maps import matrix_of
from warpkit.geometry.arguments import as_result, floats


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


def as_corners(function: str, value: Any) -> Any:
    """The corners of boxes that know their format, torchvision's; anything else as it is."""
    if type(value).__name__ != "BoundingBoxes":  # by name, since torchvision may be absent
        return value
    if value.format.name not in ("XYXY", "XYWH", "CXCYWH"):
        wanted = "of the format XYXY, XYWH or CXCYWH: a box here has no rotation"
        checks.fail(function, "boxes", wanted, value.format.name)
    from torchvision.transforms.v2.functional import convert_bounding_box_format

    tensor = value.as_subclass(Tensor)
    return convert_bounding_box_format(
        tensor, old_format=value.format, new_format=type(value.format).XYXY
    )
