"""Matrices from pairs of points: exact, or by least squares."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.core.sharding import batched
from warpkit.core.tracing import is_readable
from warpkit.engine.definitions import fits, quads
from warpkit.engine.operators.four_points import four_points
from warpkit.engine.operators.similarity import similarity
from warpkit.geometry.arguments import as_result, floats
from warpkit.types import NumbersLike, PointsLike

BETTER = 1e-9
"""How much larger the squared scale of a reflection must be; on a line, both are equal but for
rounding."""


@batched(src=2, dst=2, weights=1)
def affine_from_points(
    src: PointsLike, dst: PointsLike, *, weights: NumbersLike | None = None
) -> Tensor:
    """The affine matrix that maps points to points: cv2.getAffineTransform, batched.

    src and dst (..., N, 2), (x, y) in pixels, N of at least 3; weights (..., N), none of them
    negative; all broadcast. Returns (..., 2, 3). Three points are mapped exactly; for more, the
    weighted sum of squared distances in pixels is minimal (cv2.estimateAffine2D's refinement,
    without its outlier rejection). Gradients: all orders, to all three. Raises ValueError if the
    points of `src` with positive weight are collinear.

    >>> affine_from_points([[0, 0], [1, 0], [0, 1]], [[5, 7], [6, 7], [5, 9]])
    tensor([[1., 0., 5.],
            [0., 2., 7.]])
    """
    name = "affine_from_points"
    src, dst, weights, dtype = weighted_pairs(name, src, dst, weights, 3)
    if weights is not None or src.shape[-2] > 3:
        counted = torch.ones_like(src[..., 0]) if weights is None else weights
        wanted = "at least three points of positive weight that are not on a line"
        checks.check_values(name, "src", fits.on_a_line(src, counted, dtype), wanted)
        return as_result(fits.affine(src, dst, counted), dtype)
    wanted = "three points that span a triangle"
    checks.check_values(name, "src", quads.collinear(src, dtype), wanted)
    (ax, ay), (bx, by) = ((src[..., i, :] - src[..., 0, :]).unbind(-1) for i in (1, 2))
    u, v = (dst[..., i, :] - dst[..., 0, :] for i in (1, 2))
    area = (ax * by - ay * bx)[..., None]
    column_x = (u * by[..., None] - v * ay[..., None]) / area
    column_y = (v * ax[..., None] - u * bx[..., None]) / area
    x0, y0 = src[..., 0, :].unbind(-1)
    shift = dst[..., 0, :] - column_x * x0[..., None] - column_y * y0[..., None]
    return as_result(torch.stack((column_x, column_y, shift), dim=-1), dtype)


@batched(src=2, dst=2, weights=1)
def similarity_from_points(
    src: PointsLike,
    dst: PointsLike,
    *,
    weights: NumbersLike | None = None,
    allow_reflection: bool = False,
) -> Tensor:
    """The rotation, uniform scale and shift between points by least squares: Umeyama's, batched.

    src and dst (..., N, 2), (x, y) in pixels, N of at least 2; weights (..., N), none of them
    negative; all broadcast. Returns (..., 2, 3) with the smallest weighted sum of squared distances
    in pixels; two points are mapped exactly (cv2.estimateAffinePartial2D without its outlier
    rejection). It is never a reflection, unless allow_reflection is True and a reflection is
    better: points on a line are not reflected. Gradients: all orders, to all three. Raises
    ValueError if the points of `src` with positive weight coincide.

    >>> similarity_from_points([[0, 0], [2, 0]], [[1, 1], [1, 5]])
    tensor([[ 0., -2.,  1.],
            [ 2.,  0.,  1.]])
    """
    name = "similarity_from_points"
    src, dst, weights, dtype = weighted_pairs(name, src, dst, weights, 2)
    weights = torch.ones_like(src[..., 0]) if weights is None else weights
    mirrors = checks.check_bool(name, "allow_reflection", allow_reflection)
    matrix, exists = similarity(src, dst, weights, dtype)
    wanted = "at least two points of positive weight that are apart"
    checks.check_values(name, "src", ~exists, wanted)
    if mirrors:
        upside_down = src.new_tensor((1.0, -1.0))
        other, _ = similarity(src * upside_down, dst, weights, dtype)
        # the sum of squares is least where the scale is largest
        plain, mirrored = (m.detach()[..., 0].square().sum(-1) for m in (matrix, other))
        other = other * torch.cat((upside_down, upside_down.new_ones(1)))
        better = mirrored > plain * (1 + BETTER)
        matrix = torch.where(better[..., None, None], other, matrix)
    return as_result(matrix, dtype)


@batched(src=2, dst=2, weights=1)
def perspective_from_points(
    src: PointsLike, dst: PointsLike, *, weights: NumbersLike | None = None
) -> Tensor:
    """The perspective matrix that maps points to points: cv2.getPerspectiveTransform, batched.

    src and dst (..., N, 2), (x, y) in pixels, N of at least 4; weights (..., N), none of them
    negative; all broadcast. Returns (..., 3, 3) whose last entry is 1, or whose norm is 1 if that
    entry is 0: if the source's origin goes to infinity.

    Four points are mapped exactly. The points of `dst` may coincide or be collinear; if several
    matrices map them, the result is the one closest to an affine one. More points, or any with
    weights, give the normalised direct linear transform, which minimises the weighted squares of
    its equations: cv2.findHomography(src, dst, 0) if the points fit exactly (otherwise cv2 refines
    this result iteratively).

    Gradients: all orders, to all (to collinear points, as if they stayed on the line); for more
    than four points, up to the third order. Raises ValueError if points of `src` are collinear and
    those of `dst` are not; for more than four, if no four of `src` are in general position.

    >>> square = [[0, 0], [1, 0], [1, 1], [0, 1]]
    >>> perspective_from_points(square, [[0, 0], [2, 0], [2, 2], [0, 2]])
    tensor([[2., 0., 0.],
            [0., 2., 0.],
            [0., 0., 1.]])
    """
    name = "perspective_from_points"
    src, dst, weights, dtype = weighted_pairs(name, src, dst, weights, 4)
    if weights is not None or src.shape[-2] > 4:
        counted = torch.ones_like(src[..., 0]) if weights is None else weights
        return as_result(_fit(name, src, dst, counted, dtype), dtype)
    matrix, alone = four_points(src, dst, dtype)
    if not is_readable(alone):
        matrix = torch.where(alone[..., None, None], matrix, torch.nan)
    elif not bool(alone.all()):
        matrix = _with_collinear(name, src, dst, matrix, dtype)
    return as_result(matrix, dtype)


def _fit(name: str, src: Tensor, dst: Tensor, weights: Tensor, dtype: torch.dtype) -> Tensor:
    """The least-squares matrix (..., 3, 3) for points (..., N, 2) with weights (..., N)."""
    whole, alone = fits.perspective(src, dst, weights)
    for argument, points in (("src", src), ("dst", dst)):
        bad = fits.no_four_in_general_position(points, weights, dtype)
        bad = bad if argument == "src" else bad & ~alone
        wanted = "points of positive weight of which four are in general position (no three on a"
        checks.check_values(name, argument, bad, f"{wanted} line)")
    checks.check_values(name, "src, dst", ~alone, "pairs of points that one matrix maps")
    whole = torch.where(alone[..., None, None], whole, torch.nan)
    return quads.normalised(whole, quads.origin_is_far(whole, src, dtype))


def _with_collinear(
    name: str, src: Tensor, dst: Tensor, matrix: Tensor, dtype: torch.dtype
) -> Tensor:
    """`matrix` (..., 3, 3), but where several fit, one of them; an error if none does."""
    for argument, points in (("dst", dst), ("src", src)):
        finite = points.detach().isfinite().all(-1).all(-1)
        checks.check_values(name, argument, ~finite, "four finite points")
    src_lines, several = quads.lines(src, dtype), ~quads.has_one(src, dst, dtype)
    flat, bent = (lines.expand(several.shape) for lines in (src_lines.all(0), src_lines.any(0)))
    wanted = "four points of which no three are on a line, unless those of `dst` are too"
    checks.check_values(name, "src", flat, wanted)
    src, dst = (p.expand(*several.shape, 4, 2)[several] for p in (src, dst))
    closest, carried = quads.closest_to_affine(src, dst)
    none = torch.zeros_like(several).masked_scatter(several, ~carried) & bent
    checks.check_values(name, "src", none, wanted)
    closest = quads.normalised(closest, quads.origin_is_far(closest, src, dtype))
    return matrix.masked_scatter(several[..., None, None], closest)


def weighted_pairs(
    name: str, src: Any, dst: Any, weights: Any, minimum: int
) -> tuple[Tensor, Tensor, Tensor | None, torch.dtype]:
    """Validated pairs (..., N, 2), N at least `minimum`; weights (..., N) or None; both in float64.

    Also returns the type of the result.
    """
    arguments = (src, dst) if weights is None else (src, dst, weights)
    device, dtype = checks.result_kind(*arguments)
    src, dst = (floats(name, a, p, device) for a, p in (("src", src), ("dst", dst)))
    if src.ndim < 2 or src.shape[-1] != 2 or src.shape[-2] < minimum:
        wanted = f"of shape (..., N, 2) with N of at least {minimum}"
        checks.fail(name, "src", wanted, checks.shape_of(src))
    checks.check_last(name, "dst", dst, src.shape[-2], 2)
    checks.broadcast_batch(name, src=src.shape[:-2], dst=dst.shape[:-2])
    if weights is None:
        return src.double(), dst.double(), None, dtype
    weights = floats(name, "weights", weights, device)
    checks.check_last(name, "weights", weights, src.shape[-2])
    checks.broadcast_batch(name, src=src.shape[:-2], dst=dst.shape[:-2], weights=weights.shape[:-1])
    values = weights.detach()
    bad = ~((values >= 0) & values.isfinite()).all(-1)
    checks.check_values(name, "weights", bad, "finite and not negative", values)
    return src.double(), dst.double(), weights.double(), dtype
