"""One map for transforms in a row: composed in float64, and what can be told from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.engine.sampling.antialias import SLACK, footprint
from warpkit.engine.sampling.maps import inverse_map, pixel_points
from warpkit.flow.fields import compose as compose_flows
from warpkit.flow.fields import from_matrix
from warpkit.geometry.arguments import as_result
from warpkit.geometry.matrices import transform_points

NEAR = 1e-6
"""Of the longer side: a canvas that ends on the picture's edge but for rounding is inside it."""


class ComposedMap(NamedTuple):
    """Where the pixels of an image go under transforms in a row."""

    mappings: tuple[Tensor, ...]
    """Each transform's: (3, 3), source -> destination, or a flow (h, w, 2), float64."""
    mapping: Tensor
    """All in one: (3, 3), or a flow (h, w, 2) on the last canvas."""
    size: tuple[int, int]
    """(h, w) of the last canvas."""


def is_matrix(mapping: Tensor) -> bool:
    """Whether a mapping, (3, 3) or (h, w, 2), is a matrix."""
    return mapping.shape[-1] == 3


def compose(mappings: Sequence[Tensor], size: tuple[int, int]) -> ComposedMap:
    """Mappings, (3, 3) or (h, w, 2), the first first, whose last canvas is `size` (h, w)."""
    if all(map(is_matrix, mappings)):
        total = torch.eye(3, dtype=torch.float64)
        for matrix in mappings:
            total = matrix @ total
        return ComposedMap(tuple(mappings), as_result(total + 0.0, torch.float64), size)
    to_source, flow = torch.eye(3, dtype=torch.float64), None
    pixels = pixel_points(size, torch.float64, to_source.device)
    for mapping in reversed(mappings):  # from the last canvas back to the image
        if not is_matrix(mapping):
            before = from_matrix(to_source, size, inverse=True) if flow is None else flow
            flow = compose_flows(mapping, before)
        elif flow is None:
            to_source = inverse_map(mapping) @ to_source
        else:
            flow = transform_points(inverse_map(mapping), pixels + flow) - pixels
    assert flow is not None
    return ComposedMap(tuple(mappings), flow, size)


def is_whole(mapping: Tensor) -> bool:
    """Whether a mapping, (3, 3) or (h, w, 2), only moves pixels: flips, quarter turns, steps."""
    if not is_matrix(mapping):
        return False
    (a, b, x), (c, d, y), bottom = mapping.tolist()
    turns = sorted((abs(a), abs(b))) == sorted((abs(c), abs(d))) == [0.0, 1.0]
    apart = turns and abs(a) != abs(c)  # each source axis on one of the destination's
    return apart and bottom == [0.0, 0.0, 1.0] and x == round(x) and y == round(y)


def may_shrink(mapping: Tensor) -> bool:
    """Whether a mapping, (3, 3) or (h, w, 2), makes the picture smaller anywhere.

    Of a flow and a perspective that is only known pixel by pixel: True.
    """
    if not is_matrix(mapping) or mapping[2].tolist() != [0.0, 0.0, 1.0]:
        return True
    return not float(footprint(inverse_map(mapping[:2]), (1, 1)).largest) <= 1 + SLACK


def sees_inside(mapping: Tensor, size: tuple[int, int], source: tuple[int, int]) -> bool:
    """Whether all of the canvas of `size` (h, w) lies within the image of `source` (H, W).

    mapping (3, 3) or (h, w, 2). From edge to edge: a Resize does, at any factor.
    """
    height, width = size
    if is_matrix(mapping):
        x, y = (-0.5, width - 0.5), (-0.5, height - 0.5)
        corners = mapping.new_tensor([[u, v, 1.0] for u in x for v in y])
        points = corners @ inverse_map(mapping).T
        depth = points[:, 2:]
        if not bool((depth > 0).all() | (depth < 0).all()):
            return False  # the horizon crosses it
        points = points[:, :2] / depth
    else:
        points = mapping + pixel_points(size, mapping.dtype, mapping.device)
        for axis in (0, 1):  # from the outermost pixels' middles on to the edges
            n = size[axis]
            first, second = points.narrow(axis, 0, 1), points.narrow(axis, min(1, n - 1), 1)
            last, before = points.narrow(axis, n - 1, 1), points.narrow(axis, max(n - 2, 0), 1)
            edges = (1.5 * first - 0.5 * second, points, 1.5 * last - 0.5 * before)
            points = torch.cat(edges, axis)
    last = points.new_tensor((source[1], source[0])) - 0.5
    near = NEAR * max(*source)
    return bool(((points >= -0.5 - near) & (points <= last + near)).all())
