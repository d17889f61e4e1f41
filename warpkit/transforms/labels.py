"""Boxes and key points under composed maps, in torchvision's conventions."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any

import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

from warpkit.flow.inverse import transform_points as transform_by_flow
from warpkit.geometry.matrices import transform_points
from warpkit.transforms.composed import ComposedMap, is_matrix
from warpkit.transforms.images import retype

LABELS = (tv_tensors.BoundingBoxes, getattr(tv_tensors, "KeyPoints", tv_tensors.BoundingBoxes))
"""Labels without pixels; key points since torchvision 0.23."""
ROTATED = ("XYWHR", "CXCYWHR", "XYXYXYXY")
EDGES = (0.5, 0.5)
"""The origin relative to the centre of pixel (0, 0), for points relative to the corner."""
MOST_POINTS = 128
"""Points on a bent edge of a box; a pixel apart on shorter ones, where a chord is 0.01 px off. On
an edge of 600 pixels it is 0.1 px off for the default ElasticTransform."""
HORIZON = 1e-9
"""A depth: an edge that crosses the horizon is followed up to here, 10^9 pixels away."""
MIRRORED = [1, 0, 3, 2]
"""The corners of a rotated box that was mirrored, in the order that torchvision's flips leave."""


def move_keypoints(
    points: Any, composed: ComposedMap, offsets: Sequence[tuple[float, float]]
) -> Any:
    """Move key points, which each mapping counts from (-x, -y) of its offset, in pixels."""
    xy = points.as_subclass(Tensor).double()
    shape, xy = xy.shape, xy.reshape(-1, 2)
    pending = torch.eye(3, dtype=torch.float64, device="cpu")
    for mapping, offset in zip(composed.mappings, offsets, strict=True):
        if is_matrix(mapping):
            pending = counted_from(mapping, offset) @ pending
            continue
        there = transform_points(pending.to(xy.device), xy)
        xy = _by_flow(there - xy.new_tensor(offset), mapping) + xy.new_tensor(offset)
        pending = torch.eye(3, dtype=torch.float64, device="cpu")
    xy = transform_points(pending.to(xy.device), xy).reshape(shape).to(points.dtype)
    return retype(xy, points, canvas_size=composed.size)


def move_boxes(boxes: Any, composed: ComposedMap, clamps: bool) -> Any:
    """The tight boxes of mapped boxes (N, 4); for rotated ones the enclosing rectangles."""
    kind, size = boxes.format, composed.size
    if boxes.numel() == 0:
        return retype(boxes.as_subclass(Tensor).clone(), boxes, canvas_size=size)
    rotated = kind.value in ROTATED
    between = tv_tensors.BoundingBoxFormat["XYXYXYXY" if rotated else "XYXY"]
    wide = retype(boxes.as_subclass(Tensor).double(), boxes)
    wide = v2.functional.convert_bounding_box_format(wide, new_format=between)
    numbers = wide.as_subclass(Tensor)
    if rotated:
        quads = outline(numbers.reshape(-1, 4, 2), composed, 1)
        edges = _in_order(quads[:, :4]).reshape(-1, 8)
    else:
        corners = numbers[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 4, 2)
        longest = (numbers[:, 2:] - numbers[:, :2]).abs().amax()
        spans = min(max(ceil(longest.nan_to_num(MOST_POINTS).item()), 1), MOST_POINTS)
        least_greatest = torch.aminmax(outline(corners, composed, spans), dim=1)
        edges = torch.cat(tuple(least_greatest), dim=1)
    result = retype(edges, wide, canvas_size=size)
    if rotated:
        # torchvision has the rectangle about a quad, and its clamping, in this function alone
        still = {"angle": 0.0, "translate": [0, 0], "scale": 1.0, "shear": [0.0, 0.0]}
        result = v2.functional.affine(result, **still)  # pyright: ignore
    elif clamps:
        result = v2.functional.clamp_bounding_boxes(result)
    result = v2.functional.convert_bounding_box_format(result, new_format=kind)
    edges = result.as_subclass(Tensor).reshape(boxes.shape).to(boxes.dtype)
    return retype(edges, boxes, canvas_size=size)


def outline(corners: Tensor, composed: ComposedMap, spans: int) -> Tensor:
    """Points on the outlines of mapped quads (N, 4, 2), in edge coordinates: (N, K, 2).

    Under matrices the corners, and for edges that cross the horizon distant points on both sides of
    it; under flows `spans` points on each edge.
    """
    if is_matrix(composed.mapping):
        return _under_matrix(corners, counted_from(composed.mapping, EDGES).to(corners.device))
    share = torch.arange(spans, dtype=corners.dtype, device=corners.device) / spans
    edges = corners.roll(-1, dims=1) - corners
    points = corners[:, :, None] + share[:, None] * edges[:, :, None]
    places = points.transpose(1, 2).flatten(0, 2) - 0.5  # the corners come first
    for mapping in composed.mappings:
        if is_matrix(mapping):
            places = transform_points(mapping.to(places.device), places)
        else:
            places = _by_flow(places, mapping)
    return places.unflatten(0, (corners.shape[0], -1)) + 0.5


def counted_from(matrix: Tensor, offset: tuple[float, float]) -> Tensor:
    """A matrix (3, 3) for coordinates that are greater by `offset` (x, y)."""
    there = torch.eye(3, dtype=torch.float64, device="cpu")
    there[:2, 2] = torch.tensor(offset, dtype=torch.float64, device="cpu")
    back = torch.eye(3, dtype=torch.float64, device="cpu")
    back[:2, 2] = -there[:2, 2]
    return there @ matrix @ back


def _by_flow(points: Tensor, flow: Tensor) -> Tensor:
    """Positions of points (N, 2) under a flow (h, w, 2); the nearest position if it folds."""
    return transform_by_flow(points, flow.to(points.device))[0]


def _under_matrix(corners: Tensor, matrix: Tensor) -> Tensor:
    """`outline` of quads (N, 4, 2) under a matrix (3, 3): (N, 4 or 12, 2)."""
    ones = torch.ones_like(corners[..., :1])
    points = torch.cat((corners, ones), -1) @ matrix.T
    after = points.roll(-1, dims=1)
    result, depth, depth_after = points[..., :2] / points[..., 2:], points[..., 2:], after[..., 2:]
    crosses = depth * depth_after <= 0
    if not bool(crosses.any()):
        return result
    share = depth / torch.where(crosses, depth - depth_after, 1.0)
    horizon = (points + share * (after - points))[..., :2]
    far = HORIZON * (depth - depth_after).abs().clamp_min(HORIZON)
    sides = [torch.where(crosses, horizon / (side * far), result) for side in (-1, 1)]
    return torch.cat((result, *sides), dim=1)


def _in_order(quads: Tensor) -> Tensor:
    """Quads (N, 4, 2) with corners in the order of a box."""
    x, y = quads.unbind(-1)
    area = (x * y.roll(-1, dims=1) - x.roll(-1, dims=1) * y).sum(1)
    return torch.where(area[:, None, None] < 0, quads[:, MIRRORED], quads)
