"""Inverts a flow, by fixed-point and Newton iterations."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.core import checks, exports
from warpkit.core.mistakes import warn_if_points
from warpkit.core.shapes import broadcast_shapes
from warpkit.core.sharding import batched
from warpkit.core.tracing import is_eager, is_readable, wants_gradient
from warpkit.engine.definitions.bounds import clamped
from warpkit.engine.definitions.maps import pixel_points
from warpkit.engine.definitions.reference import with_gradient_of
from warpkit.flow.arguments import as_field
from warpkit.geometry.arguments import as_points
from warpkit.types import FlowLike, PointsLike

FIXED_POINT_STEPS, STEPS, BLIND_STEPS = 5, 60, 20
"""Steps of u = q - flow(u), which at least halve the error if the field's slopes are at most 1/2;
then the most Newton steps, of which a smooth field takes 3 or 4. If values cannot be read, as in a
transform or a graph, exactly the last number of steps is made: each is 100 operations of a graph.
"""

TIGHT, LOOSE = 1e-12, 1e-6
"""Residuals in pixels: no further step, and converged."""

EDGE = 0.5 + LOOSE
"""Distance beyond the first and last pixel centres that still counts as inside the image, which
ends half a pixel beyond them; a root is as accurate as its residual."""

SMALLEST_STEP = 2.0**-20
STEEP = 1e-9
"""Below this determinant there is no Newton step: its length would be noise."""

NEWTON_STEPS = 2
"""Newton steps from the constant solution: k steps have its derivatives up to order 2^k - 1."""


class InverseFlow(NamedTuple):
    """The inverse of a flow, and its accuracy."""

    flow: Tensor
    """(..., h, w, 2), pixels."""
    residual: Tensor
    """(..., h, w): how far, in pixels, the two flows in a row move a pixel."""
    valid: Tensor
    """(..., h, w), bool: False where the flow folds, leaves the image or has no inverse."""


@batched(3, flow=3)
def invert(flow: FlowLike) -> InverseFlow:
    """Invert a flow: compose(flow, invert(flow).flow) is zero.

    flow (..., h, w, 2), pixels, on the grid of the image that it warps. Returns the inverse (...,
    h, w, 2), its residual (..., h, w) in pixels, before rounding to the flow's type, and valid
    (..., h, w), bool: False where the residual is above 1e-6, where the inverse lies outside the
    image, and wherever a pixel that folds (a determinant <= 0 in one of its corners) lands, even if
    the residual is 0. The image ends half a pixel beyond its first and last centres; beyond those
    the flow continues with its value at the edge. A flow that mirrors, whose determinants are all
    below 0, does not fold. A fold raises no error.

    Gradients: up to the third order, by the implicit function theorem; none where not converged.

    >>> inverse = invert([[[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]])
    >>> inverse.flow[0, :, 0], inverse.valid
    (tensor([-1., -1., -1.]), tensor([[False,  True,  True]]))
    """
    device, dtype = checks.result_kind(flow)
    flow_tensor = as_field("invert", "flow", flow, device)
    warn_if_points("invert", flow_tensor)
    field = flow_tensor.double()
    size = field.shape[-3:-1]
    targets = pixel_points(size, torch.float64, field.device).flatten(0, 1)
    places, residual, valid = _solve(field, targets)
    undone = places - targets
    return InverseFlow(
        undone.unflatten(-2, size).to(dtype),
        residual.unflatten(-1, size).to(dtype),
        valid.unflatten(-1, size),
    )


@batched(2, points=2, flow=3)
def transform_points(points: PointsLike, flow: FlowLike) -> tuple[Tensor, Tensor]:
    """Map points of an image to their positions in warp_flow(image, flow).

    points (..., N, 2) or (2,), (x, y) in pixels of the image; flow (..., h, w, 2), pixels; the
    batches broadcast. Returns the points p with p + flow(p) = point, (..., N, 2), and valid (...,
    N), bool, as in `invert`: False, with the nearest position found, if the flow folds or the point
    leaves the image. Gradients: as in `invert`, to both.

    >>> transform_points([[2.0, 0.0], [0.25, 0.0]], [[[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]])
    (tensor([[ 1.0000,  0.0000],
            [-0.7500,  0.0000]]), tensor([ True, False]))
    """
    name = "transform_points"
    device, dtype = checks.result_kind(points, flow)
    points, single = as_points(name, points, device)
    flow_tensor = as_field(name, "flow", flow, device or points.device)
    checks.broadcast_batch(name, points=points.shape[:-2], flow=flow_tensor.shape[:-3])
    warn_if_points(name, flow_tensor)
    field = flow_tensor.double()
    places, _, valid = _solve(field, points.double())
    places = places.to(dtype)
    return (places[..., 0, :], valid[..., 0]) if single else (places, valid)


class Cell(NamedTuple):
    """A field between its pixels, at points (..., N): values and slopes, all (..., N)."""

    u: Tensor
    v: Tensor
    ux: Tensor
    uy: Tensor
    vx: Tensor
    vy: Tensor

    def determinant(self) -> Tensor:
        """The determinant of p + flow(p), (..., N)."""
        return (1 + self.ux) * (1 + self.vy) - self.uy * self.vx


def _at(field: Tensor, points: Tensor) -> Cell:
    """field (*B, h, w, 2) at points (*B, N, 2): bilinear, clamped at the edges."""
    height, width = field.shape[-3:-1]
    pixels = field.flatten(-3, -2)
    x, x_inside, left, right = _axis(points[..., 0], width)
    y, y_inside, top, bottom = _axis(points[..., 1], height)

    def read(index: Tensor) -> Tensor:
        return pixels.gather(-2, index[..., None].expand(*index.shape, 2))

    a, b = read(top * width + left), read(top * width + right)
    c, d = read(bottom * width + left), read(bottom * width + right)
    x, y = x[..., None], y[..., None]
    upper, lower = a + x * (b - a), c + x * (d - c)
    value = upper + y * (lower - upper)
    along_x = torch.where(x_inside[..., None], b - a + y * (d - c - b + a), 0.0)
    along_y = torch.where(y_inside[..., None], lower - upper, 0.0)
    return Cell(*value.unbind(-1), *torch.stack((along_x, along_y), -1).flatten(-2).unbind(-1))


def _axis(position: Tensor, length: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """For positions (..., N): the second pixel's weight, whether it is inside, and both pixels."""
    inside = (position >= 0) & (position <= length - 1)
    near = clamped(torch.where(position.isnan(), 0.0, position), 0, length - 1)
    first = near.detach().floor().clamp(max=max(length - 2, 0))
    index = first.long()
    return near - first, inside & (length > 1), index, (index + 1).clamp(max=length - 1)


def _solve(field: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Points p (..., N, 2) with p + field(p) = targets, the residual and whether valid, (..., N).

    field (..., h, w, 2) and targets (..., N, 2), float64; their batches broadcast.
    """
    exports.refuse(
        "warpkit.flow",
        "because inverting a flow takes an unknown number of iterations",
        "call flow.invert or flow.transform_points first, and pass the result to the model",
    )
    batch = broadcast_shapes(field.shape[:-3], targets.shape[:-2])
    field = field.expand(*batch, *field.shape[-3:])
    targets = targets.expand(*batch, *targets.shape[-2:])
    with torch.no_grad():
        fixed, wanted = field.detach(), targets.detach()
        turns = _determinants(fixed)
        side = torch.where((turns < 0).flatten(-3).all(-1), -1.0, 1.0)[..., None]
        places, residual = _iterate(fixed, wanted, side)
        cell = _at(fixed, places)
        steady = (residual <= LOOSE) & (cell.determinant().abs() > STEEP)
        last = places.new_tensor((field.shape[-2] - 1, field.shape[-3] - 1))
        inside = ((places >= -EDGE) & (places <= last + EDGE)).all(-1)
        valid = (residual <= LOOSE) & (side * cell.determinant() > 0) & inside
        folds = (side[..., None, None] * turns <= 0).any(-1)
        valid = valid & ~_is_under(folds, fixed, wanted)
    if not is_eager(field, targets) or wants_gradient(field, targets):
        places = with_gradient_of(places, _newton_steps(field, targets, places, steady))
    return places, residual, valid


def _newton_steps(field: Tensor, targets: Tensor, places: Tensor, steady: Tensor) -> Tensor:
    """Newton steps from the solution, (..., N, 2), with its derivatives; 0 where not steady.

    field (..., h, w, 2); targets and places (..., N, 2); steady (..., N).
    """
    safe = torch.where(steady[..., None], places, 0.0)
    for _ in range(NEWTON_STEPS):
        cell = _at(field, safe)
        det = torch.where(steady, cell.determinant(), 1.0)
        step = _newton(cell, det, safe + torch.stack((cell.u, cell.v), -1) - targets)
        safe = torch.where(steady[..., None], safe - step, 0.0)
    return safe


def _newton(cell: Cell, det: Tensor, error: Tensor) -> Tensor:
    """The step (..., N, 2) that removes an error (..., N, 2); det (..., N)."""
    a, b = error.unbind(-1)
    x = ((1 + cell.vy) * a - cell.uy * b) / det
    y = ((1 + cell.ux) * b - cell.vx * a) / det
    return torch.stack((x, y), -1)


def _iterate(field: Tensor, targets: Tensor, side: Tensor) -> tuple[Tensor, Tensor]:
    """The nearest positions found, (..., N, 2), and their residuals in pixels, (..., N).

    field (..., h, w, 2); targets (..., N, 2); side (..., 1): -1 where the field mirrors, or 1. A
    step that does not reduce the residual is rejected and halved.
    """
    places = _first_places(field, targets)
    cell = _at(field, places)
    error = places + torch.stack((cell.u, cell.v), -1) - targets
    last = places.new_tensor((field.shape[-2] - 1, field.shape[-3] - 1))

    def inside(points: Tensor) -> Tensor:
        return ((points >= 0) & (points <= last)).all(-1)

    share = torch.ones_like(error[..., 0])
    readable = is_readable(field) and is_readable(targets) and is_eager(field)
    for number in range(STEPS if readable else BLIND_STEPS):
        det = cell.determinant()
        newton = _newton(cell, torch.where(det.abs() > STEEP, det, 1.0), error)
        is_newton = (side * det > STEEP) & (number >= FIXED_POINT_STEPS)
        step = torch.where(is_newton[..., None], newton, error)
        candidates = places - share[..., None] * step
        new_cell = _at(field, candidates)
        new_error = candidates + torch.stack((new_cell.u, new_cell.v), -1) - targets
        before, after = torch.hypot(*error.unbind(-1)), torch.hypot(*new_error.unbind(-1))
        # beyond the edges the slopes differ: only Newton steps from inside may lead there
        good = (after < before) & (is_newton | inside(candidates) | ~inside(places))
        share = torch.where(good, (2 * share).clamp(max=1), share / 2)
        if number == FIXED_POINT_STEPS - 1:
            share = torch.ones_like(share)
        places = torch.where(good[..., None], candidates, places)
        error = torch.where(good[..., None], new_error, error)
        cell = Cell(*(torch.where(good, n, o) for n, o in zip(new_cell, cell, strict=True)))
        settled = ~(torch.where(good, after, before) > TIGHT) | (share < SMALLEST_STEP)
        if readable and bool(settled.all()):
            break
    return places, torch.hypot(*error.unbind(-1))


def _first_places(field: Tensor, targets: Tensor) -> Tensor:
    """Starting points, (..., N, 2): for each target, a pixel that lands near it.

    field (..., h, w, 2); targets (..., N, 2). Pixels are sorted by where they land into boxes of 1,
    2, 4 ... pixels, and the smallest box with a pixel is used. From the target itself, Newton steps
    would not reach the other side of a rotated, mirrored or folded field.
    """
    height, width = field.shape[-3:-1]
    grid = pixel_points((height, width), field.dtype, field.device)
    laid, grid = (field + grid).flatten(-3, -2), grid.flatten(0, 1)
    numbers = torch.arange(height * width, device=field.device).expand(laid.shape[:-1])
    first = torch.full_like(targets[..., 0], height * width, dtype=torch.long)
    side = 1
    while side < 2 * max(height, width):
        columns, rows = (width - 1) // side + 2, (height - 1) // side + 2
        index, here = (_box_numbers(p, side, columns, rows) for p in (laid, targets))
        shape = (*laid.shape[:-2], columns * rows + 1)
        boxes = torch.full(shape, height * width, device=field.device)
        boxes = boxes.scatter_reduce(-1, index, numbers, "amin")
        # the last box is for points that no other box contains
        boxes = torch.cat((boxes[..., :-1], torch.full_like(boxes[..., -1:], height * width)), -1)
        first = torch.where(first == height * width, boxes.gather(-1, here), first)
        side *= 2
    is_known = first < height * width
    return torch.where(is_known[..., None], grid[torch.where(is_known, first, 0)], targets)


def _box_numbers(points: Tensor, side: int, columns: int, rows: int) -> Tensor:
    """The box of each point (..., N, 2); the last one for points outside all boxes."""
    x, y = ((points + 0.5) / side).floor().unbind(-1)
    inside = (x >= 0) & (y >= 0) & (x < columns) & (y < rows)  # false for NaN
    return torch.where(inside, y * columns + x, columns * rows).long()


def _determinants(field: Tensor) -> Tensor:
    """The determinants of p + flow(p) at the corners of each piece of field (..., h, w, 2).

    Returns (..., m, n, corners). A piece lies between four pixels; inside it, the determinant is
    linear along both axes, so the piece folds if a corner's determinant is not positive. In one row
    or column a piece lies between two pixels; for one pixel the determinant is 1.
    """
    height, width = field.shape[-3:-1]
    points = field + pixel_points((height, width), field.dtype, field.device)
    x = points[..., 1:, :] - points[..., :-1, :]
    y = points[..., 1:, :, :] - points[..., :-1, :, :]
    if width == 1 and height == 1:
        return torch.ones_like(points[..., :1])
    if height == 1:
        return x[..., :1]
    if width == 1:
        return y[..., 1:]
    corners = []
    for along_x in (x[..., :-1, :, :], x[..., 1:, :, :]):
        for along_y in (y[..., :-1, :], y[..., 1:, :]):
            (a, b), (c, d) = along_x.unbind(-1), along_y.unbind(-1)
            corners.append(a * d - b * c)
    return torch.stack(corners, -1)


def _is_under(pieces: Tensor, field: Tensor, targets: Tensor) -> Tensor:
    """Whether a marked piece (..., m, n) of field (..., h, w, 2) covers targets (..., N, 2).

    Returns (..., N). The piece's bounding box is used instead of the piece.
    """
    height, width = field.shape[-3:-1]
    points = field + pixel_points((height, width), field.dtype, field.device)
    rows, columns = slice(max(height - 1, 1)), slice(max(width - 1, 1))
    corners = [
        points[..., i:, j:, :][..., rows, columns, :]
        for i in range(min(height, 2))
        for j in range(min(width, 2))
    ]
    low, high = (torch.stack(corners).amin(0), torch.stack(corners).amax(0))
    return _covers(pieces, low, high, targets, (height, width))


def _covers(
    pieces: Tensor, low: Tensor, high: Tensor, targets: Tensor, size: tuple[int, int]
) -> Tensor:
    """Whether targets (..., N, 2) lie in the box, low to high, of a marked piece.

    pieces (..., m, n), bool; low and high (..., m, n, 2). Boxes are counted on the pixels of `size`
    by their four corners and two sums, and a point belongs to the pixels around it.
    """
    height, width = size
    marked = pieces & low.isfinite().all(-1) & high.isfinite().all(-1)
    ends = torch.tensor((width, height), dtype=low.dtype, device=low.device)
    low = torch.where(marked[..., None], low, 0.0).floor().maximum(torch.zeros_like(ends))
    high = torch.where(marked[..., None], high, 0.0).ceil() + 1
    (x1, y1), (x2, y2) = (end.clamp(min=0).minimum(ends).long().unbind(-1) for end in (low, high))
    count = torch.zeros(*pieces.shape[:-2], (height + 1) * (width + 1), device=low.device)
    for x, y, sign in ((x1, y1, 1), (x2, y2, 1), (x1, y2, -1), (x2, y1, -1)):
        index = (y * (width + 1) + x).flatten(-2)
        count = count.scatter_add(-1, index, sign * marked.flatten(-2).to(count.dtype))
    count = count.unflatten(-1, (height + 1, width + 1)).cumsum(-1).cumsum(-2)
    places = torch.where(targets.isfinite(), targets, 0.0).round()
    x, y = (places.clamp(min=0).minimum(ends - 1)).long().unbind(-1)
    coverage = count.flatten(-2).gather(-1, y * (width + 1) + x)
    return coverage > 0.5
