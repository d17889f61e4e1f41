"""Least squares: matrices that map N weighted points as close as possible to N others.

Points are (..., N, 2), (x, y) in pixels, weights (..., N), all float64; batches broadcast. The
derivative of a singular value decomposition is infinite for equal singular values, so none is
differentiated: affine matrices and similarities have closed forms, and a homography is a null
vector whose derivative follows from the equations it solves.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from warpkit.core import exports
from warpkit.core.tracing import is_eager, wants_gradient
from warpkit.engine.definitions.maps import matrix_of
from warpkit.engine.definitions.reference import with_gradient_of

ROUNDING = 16
"""Distances below this many eps of the coordinates' type count as 0. Rounding takes about one eps
each for the point, the centre and the part along a line; the rest is a margin."""

NEWTON_STEPS = 2
"""Newton steps from the constant solution: k steps have its derivatives up to order 2^k - 1."""


def affine(src: Tensor, dst: Tensor, weights: Tensor) -> Tensor:
    """The affine matrix (..., 2, 3) with the least weighted squared distances."""
    (x, y), (u, v), source, target = _centred(src, dst, weights)
    # Gram-Schmidt keeps the digits that products of x and y would lose. It starts with the axis of
    # larger spread, so that the factor that makes the other axis orthogonal is at most about 1.
    swap = (_mean(weights, x * x) < _mean(weights, y * y)).detach()
    first, second = torch.where(swap, y, x), torch.where(swap, x, y)
    length = _mean(weights, first * first)
    along = _mean(weights, first * second) / length
    second = second - along * first
    columns = []
    for target_axis in (u, v):
        b = _mean(weights, target_axis * second) / _mean(weights, second * second)
        a = _mean(weights, target_axis * first) / length - along * b
        columns.append((torch.where(swap, b, a)[..., 0], torch.where(swap, a, b)[..., 0]))
    rows = [(a, b, t - a * source[0] - b * source[1]) for (a, b), t in _zip(columns, target)]
    return matrix_of(rows)


def similarity(src: Tensor, dst: Tensor, weights: Tensor) -> Tensor:
    """The matrix (..., 2, 3) of a rotation, a uniform scale and a shift.

    Umeyama's closed form is linear in two dimensions: with points as complex numbers, the factor
    between the two lists.
    """
    (x, y), (u, v), source, target = _centred(src, dst, weights)
    length = _mean(weights, x * x + y * y)
    a = (_mean(weights, x * u + y * v) / length)[..., 0]
    b = (_mean(weights, x * v - y * u) / length)[..., 0]
    rows = [
        (p, q, t - p * source[0] - q * source[1]) for (p, q), t in _zip([(a, -b), (b, a)], target)
    ]
    return matrix_of(rows)


def perspective(src: Tensor, dst: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The normalised direct linear transform up to a factor, and where it exists, (...).

    Both lists are moved to their centre and scaled to a mean distance of sqrt(2) from it (Hartley,
    1997); then the weighted squares of the equations are minimised. If several matrices are equally
    good, there is no result.
    """
    (x, y), to_local, _ = _normalised(src, weights)
    (u, v), _, from_local = _normalised(dst, weights)
    one, zero = torch.ones_like(x), torch.zeros_like(x)
    upper = (x, y, one, zero, zero, zero, -u * x, -u * y, -u)
    lower = (zero, zero, zero, x, y, one, -v * x, -v * y, -v)
    rows = [torch.stack(torch.broadcast_tensors(*row), dim=-1) for row in (upper, lower)]
    equations = torch.cat(rows, dim=-2)  # (..., 2 N, 9)
    finite = equations.detach().isfinite().all(-1).all(-1)
    equations = torch.where(finite[..., None, None], equations, 0.0)
    null, alone = _null_vector(equations, torch.cat((weights, weights), dim=-1)[..., None])
    local = null.unflatten(-1, (3, 3))
    return from_local @ local @ to_local, alone & finite


def on_a_line(points: Tensor, weights: Tensor, dtype: torch.dtype) -> Tensor:
    """Whether the points with weight lie on one line, or are fewer than three, (...)."""
    points, weights = points.detach(), weights.detach()
    x, y = _axes(points)
    x, y = x - _mean(weights, x), y - _mean(weights, y)
    swap = _mean(weights, x * x) < _mean(weights, y * y)
    first, second = torch.where(swap, y, x), torch.where(swap, x, y)
    along = _mean(weights, first * second) / _mean(weights, first * first)
    return ~_exceeds(second - along * first, points, weights, dtype)


def at_one_place(points: Tensor, weights: Tensor, dtype: torch.dtype) -> Tensor:
    """Whether all points with weight coincide, (...)."""
    points, weights = points.detach(), weights.detach()
    x, y = _axes(points)
    apart = torch.maximum((x - _mean(weights, x)).abs(), (y - _mean(weights, y)).abs())
    return ~_exceeds(apart, points, weights, dtype)


def no_four_in_general_position(points: Tensor, weights: Tensor, dtype: torch.dtype) -> Tensor:
    """Whether all points with weight lie on one line, or all except one and its copies, (...)."""
    points, weights = points.detach(), weights.detach()
    x, y = _axes(points)
    counts = weights > 0

    def farthest(distance: Tensor) -> tuple[Tensor, Tensor]:
        at = torch.where(counts, distance, -1.0).argmax(-1, keepdim=True)
        return x.expand(distance.shape).gather(-1, at), y.expand(distance.shape).gather(-1, at)

    # a line through all points but one: this is an end of the longest distance, or farthest from it
    ax, ay = farthest(torch.hypot(x - _mean(weights, x), y - _mean(weights, y)))
    bx, by = farthest(torch.hypot(x - ax, y - ay))
    cx, cy = farthest(((bx - ax) * (y - ay) - (by - ay) * (x - ax)).abs())
    reach = torch.where(counts, points.abs().amax(-1), 0.0).amax(-1, keepdim=True)
    bad = on_a_line(points, weights, dtype)
    for px, py in ((ax, ay), (bx, by), (cx, cy)):
        apart = torch.hypot(x - px, y - py) > ROUNDING * torch.finfo(dtype).eps * reach
        bad = bad | on_a_line(points, torch.where(apart, weights, 0.0), dtype)
    return bad


def _exceeds(distance: Tensor, points: Tensor, weights: Tensor, dtype: torch.dtype) -> Tensor:
    """Whether a distance (..., N) of a point with weight exceeds rounding, (...); false for NaN."""
    counts = weights > 0
    reach = torch.where(counts, points.abs().amax(-1), 0.0).amax(-1)
    largest = torch.where(counts, distance.abs(), 0.0).amax(-1)
    return largest > ROUNDING * torch.finfo(dtype).eps * reach


def _null_vector(equations: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The unit vector h (..., 9) of least h^T A^T W A h, and whether it is the only one, (...).

    equations A (..., m, 9), weights W (..., m, 1). The value comes from an SVD. Its derivatives are
    those of the solution of A^T W A h = s h, |h| = 1, which exist if the least singular value is
    simple, even if others are equal.
    """
    exports.refuse(
        "perspective_from_points",
        "because ONNX has no singular value decomposition, for weights or more than four pairs",
        "take four pairs, or affine_from_points",
    )
    with torch.no_grad():
        weighted = equations.detach() * weights.detach().sqrt()
        if weighted.shape[-2] < 9:
            weighted = torch.nn.functional.pad(weighted, (0, 0, 0, 9 - weighted.shape[-2]))
        _, sizes, rows = torch.linalg.svd(weighted, full_matrices=False)
        start = rows[..., -1, :]
        start = start * torch.where(start.amax(-1) < -start.amin(-1), -1.0, 1.0)[..., None]
        alone = sizes[..., -2] > 1e-9 * sizes[..., 0]
        value = sizes[..., -1].square()
    if is_eager(equations, weights) and not wants_gradient(equations, weights):
        return torch.where(alone[..., None], start, start.new_tensor([1.0] + [0.0] * 8)), alone
    product = equations.mT @ (weights * equations)
    # an item without a solution still needs a finite gradient, so another matrix replaces its own
    other = torch.diag(torch.arange(9, dtype=product.dtype, device=product.device))
    product = torch.where(alone[..., None, None], product, other)
    eye = torch.eye(9, dtype=product.dtype, device=product.device)
    start = torch.where(alone[..., None], start, eye[0])
    value = torch.where(alone, value, 0.0)
    null = start
    for _ in range(NEWTON_STEPS):
        shifted = product - value[..., None, None] * eye
        residual = torch.cat(
            ((shifted @ null[..., None])[..., 0], (1 - null.square().sum(-1, keepdim=True)) / 2), -1
        )
        upper = torch.cat((shifted, -null[..., None]), dim=-1)
        lower = torch.nn.functional.pad(-null, (0, 1))[..., None, :]
        step = torch.linalg.solve(torch.cat((upper, lower), dim=-2), residual[..., None])[..., 0]
        null, value = null - step[..., :9], value - step[..., 9]
    # the SVD's value: solving with the product loses digits by the square of the condition number
    return with_gradient_of(start, null), alone


def _normalised(points: Tensor, weights: Tensor) -> tuple[list[Tensor], Tensor, Tensor]:
    """The points relative to their centre, scaled to a mean distance of sqrt(2) from it.

    Also the matrices to these points and back. points (..., N, 2), pixels; weights (..., N).
    """
    x, y = _axes(points)
    centre = [_mean(weights, axis) for axis in (x, y)]
    x, y = x - centre[0], y - centre[1]
    distance = _mean(weights, _safe_sqrt(x * x + y * y))
    scale = math.sqrt(2) / torch.where(distance > 0, distance, 1.0)
    (cx, cy), s = (c[..., 0] for c in centre), scale[..., 0]
    one, zero = torch.ones_like(s), torch.zeros_like(s)
    there = matrix_of(((s, zero, -s * cx), (zero, s, -s * cy), (zero, zero, one)))
    back = matrix_of(((1 / s, zero, cx), (zero, 1 / s, cy), (zero, zero, one)))
    return [x * scale, y * scale], there, back


def _centred(src: Tensor, dst: Tensor, weights: Tensor) -> tuple[list[Tensor], ...]:
    """x and y of both lists relative to weighted centres, (..., N), and the centres, (...)."""
    lists, centres = [], []
    for points in (src, dst):
        axes = _axes(points)
        centre = [_mean(weights, axis) for axis in axes]
        lists.append([axis - c for axis, c in zip(axes, centre, strict=True)])
        centres.append([c[..., 0] for c in centre])
    return (*lists, *centres)


def _axes(points: Tensor) -> tuple[Tensor, Tensor]:
    x, y = points.unbind(-1)
    return x, y


def _mean(weights: Tensor, values: Tensor) -> Tensor:
    """The weighted mean, (..., 1), of values (..., N)."""
    return (weights * values).sum(-1, keepdim=True) / weights.sum(-1, keepdim=True)


def _safe_sqrt(values: Tensor) -> Tensor:
    """The root, with gradient 0 at 0."""
    positive = values > 0
    return torch.where(positive, torch.where(positive, values, 1.0).sqrt(), 0.0)


def _zip(pairs: list[tuple[Tensor, Tensor]], shifts: list[Tensor]) -> zip:
    """Pairs of sums (...) with their shifts (...)."""
    return zip(pairs, shifts, strict=True)
