"""Upright, rotated and four-cornered boxes: positions of their points in an image.

A frame is a matrix (N, 2 or 3, 3), float64, from a box's unit square, with its own top left at (0,
0), to the image in edge coordinates. In a box of w x h, rotated by a degrees counter-clockwise on
the screen, the point (u, v) relative to the centre, along the box's own axes, is at

    x = cx + u cos a + v sin a,    y = cy - u sin a + v cos a,    |u| <= w / 2, |v| <= h / 2

For a quad p0 ... p3, clockwise from its own top left, it is the perspective map

    [A1 p1 - A0 p0,  A3 p3 - A0 p0,  A0 p0;  A1 - A0,  A3 - A0,  A0] / ((A0 + A2) / 2)

where A_k is the signed area of the triangle of the other three corners. Its numerator is polynomial
in the corners, and its depth is 1 in the quad's centre, so it stays bounded when a corner
approaches the opposite diagonal. Divided by A0 it would grow as 1 / A0, and its gradient as 1 /
A0^2. A quad is convex if all four areas have the same sign; if they are negative, it is mirrored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from warpkit.core import exports
from warpkit.engine.definitions.maps import matrix_of

UPRIGHT, TURNED, QUAD = "upright", "turned", "quad"


def kind_of_boxes(shape: Sequence[int]) -> str | None:
    """The kind of boxes with shape (..., 4), (..., 5) or (..., 4, 2); None for other shapes."""
    if len(shape) >= 2 and tuple(shape[-2:]) == (4, 2):
        return QUAD
    return {4: UPRIGHT, 5: TURNED}.get(shape[-1]) if shape else None


def cos_sin(degrees: Tensor) -> tuple[Tensor, Tensor]:
    """Cosine and sine of angles (...), exact at quarter turns."""
    quarters = (degrees.detach() / 90).round()
    rest = (degrees - 90 * quarters) * exports.number(math.pi / 180, degrees)
    cos, sin = rest.cos(), rest.sin()
    quarter = quarters.remainder(4)
    along = (quarter == 0).to(cos.dtype) - (quarter == 2).to(cos.dtype)
    across = (quarter == 1).to(cos.dtype) - (quarter == 3).to(cos.dtype)
    return cos * along - sin * across, sin * along + cos * across


def areas(quads: Tensor) -> Tensor:
    """Twice the signed areas A0 ... A3 of quads (..., 4, 2): (..., 4)."""
    x, y = quads.unbind(-1)
    ends = ((1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2))
    parts = [
        (x[..., b] - x[..., a]) * (y[..., c] - y[..., a])
        - (y[..., b] - y[..., a]) * (x[..., c] - x[..., a])
        for a, b, c in ends
    ]
    return torch.stack(parts, dim=-1)


def frame_of(boxes: Tensor) -> Tensor:
    """The frames of boxes (..., 4), (..., 5) or (..., 4, 2), float64: (..., 2 or 3, 3)."""
    kind = kind_of_boxes(boxes.shape)
    if kind == QUAD:
        return _frame_of_quads(boxes)
    if kind == UPRIGHT:
        x1, y1, x2, y2 = boxes.unbind(-1)
        none = torch.zeros_like(x1)
        return matrix_of(((x2 - x1, none, x1), (none, y2 - y1, y1)))
    x, y, width, height, angle = boxes.unbind(-1)
    cos, sin = cos_sin(angle)
    a, b, d, e = width * cos, height * sin, -width * sin, height * cos
    # halves are added first, so that angle 0 gives the numbers of the upright box
    return matrix_of(((a, b, x - (a / 2 + b / 2)), (d, e, y - (d / 2 + e / 2))))


def _frame_of_quads(quads: Tensor) -> Tensor:
    """The frames (..., 3, 3) of quads (..., 4, 2), float64."""
    area = areas(quads)
    area = area / ((area[..., 0] + area[..., 2]) / 2)[..., None]
    first, second, _, fourth = area.unbind(-1)
    rows = []
    for axis in range(2):
        p0, p1, _, p3 = quads[..., axis].unbind(-1)
        rows.append((second * p1 - first * p0, fourth * p3 - first * p0, first * p0))
    return matrix_of((*rows, (second - first, fourth - first, first)))


def patch_matrix(frame: Tensor, size: Sequence[int] | tuple[Tensor, Tensor]) -> Tensor:
    """The matrix from pixels of a patch of size (h, w), which fills the box, to image pixels.

    frame (..., 2 or 3, 3); h and w numbers, or (...) each; returns (..., 2 or 3, 3).
    """
    height, width = size
    across, down, corner = frame.unbind(-1)
    if isinstance(height, Tensor):
        height, width = height[..., None], width[..., None]  # pyright: ignore
    across, down = across / width, down / height
    first = corner + across / 2 + down / 2
    if frame.shape[-2] == 2:
        first = first - 0.5
    else:  # subtracts half a pixel of the image, times the depth
        half = frame.new_tensor([0.5, 0.5, 0.0])
        first = first - half * first[..., 2:]
        depths = torch.stack((across[..., 2:], down[..., 2:]), dim=-1)
        moved = torch.stack((across, down), dim=-1) - half[:, None] * depths
        across, down = moved.unbind(-1)
    return torch.stack((across, down, first), dim=-1)


def corners_of(boxes: Tensor) -> Tensor:
    """The corners (..., 4, 2) of boxes of any kind, from their own top left clockwise."""
    kind = kind_of_boxes(boxes.shape)
    if kind == QUAD:
        return boxes
    frame = frame_of(boxes)
    across, down, first = frame.unbind(-1)
    return torch.stack((first, first + across, first + across + down, first + down), dim=-2)


def own_size(boxes: Tensor) -> tuple[Tensor, Tensor]:
    """Height and width of boxes of any kind, (...) each; for a quad the means of opposite sides."""
    kind = kind_of_boxes(boxes.shape)
    if kind == UPRIGHT:
        return boxes[..., 3] - boxes[..., 1], boxes[..., 2] - boxes[..., 0]
    if kind == TURNED:
        return boxes[..., 3], boxes[..., 2]
    sides = (boxes.roll(-1, dims=-2) - boxes).square().sum(-1).sqrt()
    return (sides[..., 1] + sides[..., 3]) / 2, (sides[..., 0] + sides[..., 2]) / 2
