"""Matrices that carry points to points."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.core.sharding import batched
from warpkit.geometry import quads
from warpkit.geometry.arguments import as_result, floats


@batched(src=2, dst=2)
def affine_from_points(src: Any, dst: Any) -> Tensor:
    """The affine matrix that carries three points to three: cv2.getAffineTransform, batched.

    src and dst (..., 3, 2), (x, y) in pixels, broadcast. Returns (..., 2, 3). Gradients: all
    orders, to both. Raises ValueError where the three points of `src` lie on a line.

    >>> affine_from_points([[0, 0], [1, 0], [0, 1]], [[5, 7], [6, 7], [5, 9]])
    tensor([[1., 0., 5.],
            [0., 2., 7.]])
    """
    name = "affine_from_points"
    src, dst, dtype = point_pairs(name, src, dst, 3)
    checks.check_values(name, "src", collinear(src, dtype), "three points that span a triangle")
    (ax, ay), (bx, by) = ((src[..., i, :] - src[..., 0, :]).unbind(-1) for i in (1, 2))
    u, v = (dst[..., i, :] - dst[..., 0, :] for i in (1, 2))
    area = (ax * by - ay * bx)[..., None]
    column_x = (u * by[..., None] - v * ay[..., None]) / area
    column_y = (v * ax[..., None] - u * bx[..., None]) / area
    x0, y0 = src[..., 0, :].unbind(-1)
    shift = dst[..., 0, :] - column_x * x0[..., None] - column_y * y0[..., None]
    return as_result(torch.stack((column_x, column_y, shift), dim=-1), dtype)


@batched(src=2, dst=2)
def perspective_from_points(src: Any, dst: Any) -> Tensor:
    """The perspective matrix that carries four points to four: cv2.getPerspectiveTransform.

    src and dst (..., 4, 2), (x, y) in pixels, broadcast. Returns (..., 3, 3) whose last entry is 1,
    or whose norm is 1 where that entry is 0: where the source's origin goes to infinity. The points
    of `dst` may be collapsed or lie on a line; where more than one matrix carries them, it is the
    one nearest to an affine one. Gradients: all orders, to both (to a line's points, as if they
    stayed on it). Raises ValueError where points of `src` lie on a line and those of `dst` do not.

    >>> square = [[0, 0], [1, 0], [1, 1], [0, 1]]
    >>> perspective_from_points(square, [[0, 0], [2, 0], [2, 2], [0, 2]])
    tensor([[2., 0., 0.],
            [0., 2., 0.],
            [0., 0., 1.]])
    """
    name = "perspective_from_points"
    src, dst, dtype = point_pairs(name, src, dst, 4)
    finite = dst.detach().isfinite().all(-1).all(-1)
    checks.check_values(name, "dst", ~finite, "four finite points")
    whole = quads.carry(src, dst)
    src_lines, dst_lines = _lines(src, dtype), _lines(dst, dtype)
    several = src_lines.any(0) | dst_lines.all(0)  # matrices, or none
    if not checks.is_readable(several):
        whole = torch.where(several[..., None, None], torch.nan, whole)
    elif bool(several.any()):
        whole = _carry_lines(name, src, dst, whole, src_lines, several)
    return as_result(quads.normalised(whole, quads.origin_is_far(whole, src, dtype)), dtype)


def _carry_lines(
    name: str, src: Tensor, dst: Tensor, whole: Tensor, src_lines: Tensor, several: Tensor
) -> Tensor:
    """`whole` (..., 3, 3), where `several` (...) holds by one of several matrices, or an error."""
    flat, bent = (lines.expand(several.shape) for lines in (src_lines.all(0), src_lines.any(0)))
    wanted = "four points of which no three are on a line, unless those of `dst` are too"
    checks.check_values(name, "src", flat, wanted)
    src, dst = (p.expand(*several.shape, 4, 2)[several] for p in (src, dst))
    found, carried = quads.carry_somehow(src, dst)
    none = torch.zeros_like(several).masked_scatter(several, ~carried) & bent
    checks.check_values(name, "src", none, wanted)
    return whole.masked_scatter(several[..., None, None], found)


def _lines(points: Tensor, dtype: torch.dtype) -> Tensor:
    """Which three of four points (..., 4, 2) lie on a line, (4, ...): all but the i-th."""
    threes = ([1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2])
    return torch.stack([collinear(points[..., three, :], dtype) for three in threes])


def point_pairs(name: str, src: Any, dst: Any, n: int) -> tuple[Tensor, Tensor, torch.dtype]:
    """Checked pairs (..., n, 2) in float64, and the type of what is made from them."""
    device, dtype = checks.result_kind(src, dst)
    src, dst = (floats(name, a, p, device) for a, p in (("src", src), ("dst", dst)))
    for argument, points in (("src", src), ("dst", dst)):
        checks.check_last(name, argument, points, n, 2)
    checks.broadcast_batch(name, src=src.shape[:-2], dst=dst.shape[:-2])
    return src.double(), dst.double(), dtype


def collinear(points: Tensor, dtype: torch.dtype) -> Tensor:
    """Whether three points (..., 3, 2) lie on a line, up to the rounding of `dtype`.

    A coordinate c known to eps c moves the doubled area by eps c times an edge; 4 for safety.
    """
    points = points.detach()
    (ax, ay), (bx, by) = ((points[..., i, :] - points[..., 0, :]).unbind(-1) for i in (1, 2))
    edge = torch.stack((ax, ay, bx, by), dim=-1).abs().amax(-1)
    reach = points.abs().amax((-1, -2))
    area = (ax * by - ay * bx).abs()
    return ~(area > 4 * torch.finfo(dtype).eps * edge * reach)  # NaN counts as degenerate
