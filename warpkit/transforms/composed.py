"""One map for several transforms: composed in float64, with its properties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.engine.definitions.maps import pixel_points
from warpkit.engine.operators.inverse import inverse_map
from warpkit.flow.fields import compose as compose_flows
from warpkit.flow.fields import from_matrix
from warpkit.geometry.arguments import as_result
from warpkit.geometry.matrices import transform_points

NEAR = 1e-6
"""Relative to the longer side: a canvas that ends on the image's edge up to rounding is inside."""


class ComposedMap(NamedTuple):
    """The map of an image under consecutive transforms."""

    mappings: tuple[Tensor, ...]
    """Each transform's: (3, 3), source -> destination, or a flow (h, w, 2), float64."""
    mapping: Tensor
    """All combined: (3, 3), or a flow (h, w, 2) on the last canvas."""
    size: tuple[int, int]
    """(h, w) of the last canvas."""


def is_matrix(mapping: Tensor) -> bool:
    """Whether a mapping, (3, 3) or (h, w, 2), is a matrix."""
    return mapping.shape[-1] == 3


def compose(mappings: Sequence[Tensor], size: tuple[int, int]) -> ComposedMap:
    """Combine mappings, (3, 3) or (h, w, 2), in order; the last canvas has `size` (h, w)."""
    if all(map(is_matrix, mappings)):
        total = torch.eye(3, dtype=torch.float64, device="cpu")
        for matrix in mappings:
            total = matrix @ total
        return ComposedMap(tuple(mappings), as_result(total + 0.0, torch.float64), size)
    to_source, flow = torch.eye(3, dtype=torch.float64, device="cpu"), None
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
    """Whether a mapping, (3, 3) or (h, w, 2), only flips, turns by 90° or shifts."""
    if not is_matrix(mapping):
        return False
    (a, b, x), (c, d, y), bottom = mapping.tolist()
    turns = sorted((abs(a), abs(b))) == sorted((abs(c), abs(d))) == [0.0, 1.0]
    apart = turns and abs(a) != abs(c)  # each source axis on one of the destination's
    return apart and bottom == [0.0, 0.0, 1.0] and x == round(x) and y == round(y)


def sees_inside(mapping: Tensor, size: tuple[int, int], source: tuple[int, int]) -> bool:
    """Whether all of the canvas of `size` (h, w) lies within the image of `source` (H, W).

    mapping (3, 3) or (h, w, 2). From edge to edge: a Resize does, at any factor.
    """
    near = NEAR * max(*source)
    low, right, bottom = -0.5 - near, source[1] - 0.5 + near, source[0] - 0.5 + near
    if not is_matrix(mapping):
        x, y = _to_edges(mapping + pixel_points(size, mapping.dtype, mapping.device)).unbind(-1)
        return bool(((x >= low) & (x <= right) & (y >= low) & (y <= bottom)).all())
    (a, b, c), (d, e, f), (g, h, i) = _inverse_rows(mapping)
    corners = [(x, y) for x in (-0.5, size[1] - 0.5) for y in (-0.5, size[0] - 0.5)]
    depths = [g * x + h * y + i for x, y in corners]
    if not (min(depths) > 0 or max(depths) < 0):
        return False  # the horizon crosses it, or there is no map
    ends = [
        ((a * x + b * y + c) / w, (d * x + e * y + f) / w)
        for (x, y), w in zip(corners, depths, strict=True)
    ]
    return all(low <= x <= right and low <= y <= bottom for x, y in ends)


def _to_edges(points: Tensor) -> Tensor:
    """A point field (h, w, 2), extended from the outermost pixels' centres to their edges."""
    for axis in (0, 1):
        n = points.shape[axis]
        first, second = points.narrow(axis, 0, 1), points.narrow(axis, min(1, n - 1), 1)
        last, before = points.narrow(axis, n - 1, 1), points.narrow(axis, max(n - 2, 0), 1)
        edges = (1.5 * first - 0.5 * second, points, 1.5 * last - 0.5 * before)
        points = torch.cat(edges, axis)
    return points


def _inverse_rows(matrix: Tensor) -> list[list[float]]:
    """The inverse of a matrix (3, 3) but for a factor, in numbers.

    One matrix in tensors takes 0.2 ms, a tenth of sampling a small image.
    """
    (a, b, c), (d, e, f), (g, h, i) = matrix.tolist()
    return [
        [e * i - f * h, c * h - b * i, b * f - c * e],
        [f * g - d * i, a * i - c * g, c * d - a * f],
        [d * h - e * g, b * g - a * h, a * e - b * d],
    ]
