"""Rotated boxes and quads: their own pixels within the rectangles that contain them.

An own pixel is as large as the image's: a box of w x h has w x h of them along its own axes.
Matrices and borders act on own pixels; the image's pixels are read and painted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.engine.definitions.frames import (
    TURNED,
    corners_of,
    cos_sin,
    frame_of,
    kind_of_boxes,
    own_size,
    patch_matrix,
)
from warpkit.engine.definitions.maps import (
    adjugate,
    determinant,
    inverse_map,
    map_xy,
    matrix_of,
    to_3x3,
)
from warpkit.engine.definitions.objects.gather import columns
from warpkit.engine.definitions.objects.rectangles import Rectangles, Rows, rows_of
from warpkit.engine.definitions.rules import LIMIT


class Frames(NamedTuple):
    """Boxes (N, 5) or quads (N, 4, 2), relative to the corners of the rectangles around them."""

    to_rectangle: Tensor
    """(N, 2 or 3, 3), float64: own pixel -> pixel of the rectangle."""
    height: Tensor
    width: Tensor
    turn: tuple[Tensor, Tensor] | None
    """Cosine and sine, (N,) each; None for quads."""
    middle: Tensor
    """(N, 2): the centre of a rotated box, in pixels of the rectangle."""
    corners: Tensor
    """(N, 4, 2), in edge coordinates."""


def bounds(boxes: Tensor, good: Tensor | None) -> Tensor:
    """The upright boxes (N, 4) around boxes (N, 5) or (N, 4, 2); NaN for invalid ones.

    good (N,); None for all.
    """
    corners = corners_of(boxes.detach().double())
    upright = torch.cat((corners.amin(1), corners.amax(1)), dim=1)
    return upright if good is None else torch.where(good[:, None], upright, torch.nan)


def frames_of(boxes: Tensor, painted: Rectangles, good: Tensor | None) -> Frames:
    """The frames of boxes (N, 5) or (N, 4, 2) in their rectangles.

    good (N,): whether each box is valid; None if all are.
    """
    boxes = boxes.double()
    turned = kind_of_boxes(boxes.shape) == TURNED
    if good is not None:  # replace invalid boxes by any valid one: their rectangles are empty
        whole = [0.5, 0.5, 1, 1, 0] if turned else [[0, 0], [1, 0], [1, 1], [0, 1]]
        good = good.reshape(-1, *(1,) * (boxes.ndim - 1))
        boxes = torch.where(good, boxes, boxes.new_tensor(whole))
    corner = torch.stack((painted.left, painted.top), dim=-1).to(boxes.dtype)
    turn = None
    if turned:
        boxes = torch.cat((boxes[:, :2] - corner, boxes[:, 2:]), dim=1)
        turn = cos_sin(boxes[:, 4])
    else:
        boxes = boxes - corner[:, None]
    height, width = own_size(boxes)
    to_rectangle = patch_matrix(frame_of(boxes), (height, width))
    middle = boxes[:, :2] - 0.5 if turned else boxes.mean(1)
    return Frames(to_rectangle, height, width, turn, middle, corners_of(boxes))


def rows_within(
    frames: Frames, painted: Rectangles, along: tuple[bool, bool] = (True, True)
) -> Rows:
    """The pixels of rectangles whose centres lie in the boxes: see `rectangles.rows_of`."""
    return rows_of(frames.corners, painted, along)


def frame_inverse(matrices: Tensor, frames: Frames, space: str) -> Tensor:
    """The source positions of boxes' pixels, (N, 2 or 3, 3), relative to their rectangles.

    matrices (N, 2, 3), float64: source -> destination in the boxes' own pixels, or thetas of
    F.affine_grid. The identity gives exactly the identity, and at angle 0 the map is that of the
    upright box.
    """
    source = inverse_map(matrices) if space == "pixel" else matrices
    is_finite = source.isfinite().all(-1).all(-1)[:, None, None]
    source = torch.where(is_finite, source, 0.0)
    height, width = frames.height, frames.width
    (a, b, c), (d, e, f) = (row.unbind(-1) for row in source.unbind(-2))
    if space == "theta":  # acts on [-1, 1] over the box: on pixels, half a side is 1
        b, d = b * (width / height), d * (height / width)
        c, f = c * width / 2, f * height / 2
    if frames.turn is None:
        if space == "theta":  # relative to the centre
            u, v = (width - 1) / 2, (height - 1) / 2
            c, f = c + u - a * u - b * v, f + v - d * u - e * v
        return torch.where(is_finite, _by_perspective((a, b, c, d, e, f), frames), torch.nan)
    x, y = (frames.to_rectangle[..., 2] if space == "pixel" else frames.middle).unbind(-1)
    cos, sin = frames.turn
    # a rotation about the centre keeps the matrix's own rotation and scale: the remaining part
    # rotates by twice the angle, and is added as a difference, exactly 0 at angle 0 and for the
    # identity
    stretch, skew = (a - e) / 2, (b + d) / 2
    twice, square = 2 * sin * cos, 2 * sin * sin
    stretched, skewed = twice * skew - square * stretch, -twice * stretch - square * skew
    a, b, d, e = a + stretched, b + skewed, d + skewed, e - stretched
    c, f = cos * c + sin * f, cos * f - sin * c
    to_source = matrix_of(((a, b, c + x - a * x - b * y), (d, e, f + y - d * x - e * y)))
    return torch.where(is_finite, to_source, torch.nan)


def _by_perspective(source: Sequence[Tensor], frames: Frames) -> Tensor:
    """An affine map of own pixels, given by six numbers (N,), in pixels of rectangles: (N, 3, 3).

    1 + L (map - 1) L^-1, where L maps own pixels to the rectangle, times det L / its value: a
    factor of the whole matrix that changes no position and equals 1.
    """
    a, b, c, d, e, f = source
    none = torch.zeros_like(a)
    change = matrix_of(((a - 1, b, c), (d, e - 1, f), (none, none, none)))
    outwards = frames.to_rectangle
    depth = determinant(outwards)[:, None, None]
    moved = (outwards @ change @ adjugate(outwards)) / depth.detach()
    identity = torch.eye(3, dtype=moved.dtype, device=moved.device)
    return depth / depth.detach() * identity + moved


def own_places(frames: Frames, objects: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Pixels of rectangles as the boxes' own pixels; x and y (P,), for objects (P,)."""
    if frames.turn is not None:
        cos, sin = columns(torch.stack(frames.turn), objects).unbind(0)
        x0, y0 = columns(frames.to_rectangle[..., 2].mT, objects).unbind(0)
        x, y = x - x0, y - y0
        return cos * x - sin * y, sin * x + cos * y
    return map_xy(_rows(adjugate(frames.to_rectangle), objects), x, y)


def folded(
    frames: Frames, objects: Tensor, x: Tensor, y: Tensor, borders: tuple[str, str]
) -> tuple[Tensor, Tensor]:
    """Positions outside boxes, folded by the borders along the boxes' own rows and columns.

    x and y (P,), pixels of the rectangles, for objects (P,); borders along y and x. Positions
    inside a box are unchanged.
    """
    u, v = own_places(frames, objects, x, y)
    height, width = columns(torch.stack((frames.height, frames.width)), objects).unbind(0)
    new_u, new_v = _folded(u, width, borders[1]), _folded(v, height, borders[0])
    if frames.turn is not None:
        cos, sin = columns(torch.stack(frames.turn), objects).unbind(0)
        du, dv = new_u - u, new_v - v
        return x + (cos * du + sin * dv), y + (cos * dv - sin * du)
    new_x, new_y = map_xy(_rows(to_3x3(frames.to_rectangle), objects), new_u, new_v)
    stays = (new_u == u) & (new_v == v)
    return torch.where(stays, x, new_x), torch.where(stays, y, new_y)


def _folded(place: Tensor, length: Tensor, border: str) -> Tensor:
    """Positions (P,) folded along an axis of `length` own pixels (P,), which begins at -1/2."""
    if border == "constant":
        return place
    if border == "replicate":
        position = torch.where(place < 0, -0.5, length - 0.5)
    elif border == "reflect":
        turn = torch.remainder(place + 0.5, 2 * length)
        position = torch.where(turn < length, turn, 2 * length - turn) - 0.5
    elif border == "reflect_101":
        last = (length - 1).clamp(min=0)
        period = torch.where(last > 0, 2 * last, 1.0)
        turn = torch.remainder(place, period)
        position = torch.where(turn <= last, turn, 2 * last - turn)
        position = torch.where(last > 0, position, 0.0)
    else:
        position = torch.remainder(place + 0.5, length) - 0.5
    beyond = ((place < -0.5) | (place > length - 0.5)) & (place.abs() < LIMIT)  # false for NaN
    return torch.where(beyond, position, place)


def _rows(matrices: Tensor, objects: Tensor) -> list[Sequence[Tensor]]:
    """The rows of (N, 3, 3), with each entry selected for its object (P,)."""
    entries = columns(matrices.flatten(1).mT, objects).unbind(0)
    return [entries[i : i + 3] for i in (0, 3, 6)]
