"""Perspectives from four pairs of points: H s_i = w_i (u_i, v_i, 1) for i = 0 ... 3.

Points are (..., 4, 2), (x, y) in pixels, float64; matrices (..., 3, 3). A matrix is computed up to
a factor first, because its last entry, by which it is usually divided, may be 0.
"""

from __future__ import annotations

import torch
from torch import Tensor

from warpkit.engine.definitions.maps import adjugate, matrix_of

ROUNDING = 8 * torch.finfo(torch.float64).eps
"""A sum of three products counts as 0 up to this part of the sum of their magnitudes."""


def perspective(src: Tensor, dst: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The matrix (..., 3, 3) that maps `src` to `dst`, and whether it is the only one, (...).

    src and dst (..., 4, 2), pixels; dtype: the type that the matrix must fit, and whose rounding
    the points have. Where several or none do, the matrix is arbitrary.
    """
    whole, alone = quad_to_quad(src, dst), has_one(src, dst, dtype)
    identity = torch.eye(3, dtype=whole.dtype, device=whole.device)
    whole = torch.where(alone[..., None, None], whole, identity)  # so that no gradient is NaN
    return normalised(whole, origin_is_far(whole, src, dtype)), alone


def has_one(src: Tensor, dst: Tensor, dtype: torch.dtype) -> Tensor:
    """Whether one matrix alone maps points (..., 4, 2) to others, (...)."""
    finite = dst.detach().isfinite().all(-1).all(-1)
    return finite & ~(lines(src, dtype).any(0) | lines(dst, dtype).all(0))


def quad_to_quad(src: Tensor, dst: Tensor) -> Tensor:
    """The matrix, up to a factor, that maps `src` to `dst`; zeros if several do.

    src and dst (..., 4, 2), pixels.
    """
    # both quadrilaterals are images of one projective frame: source -> frame -> destination. The
    # origin moves to the first point of each, so that a distant quadrilateral loses no digits.
    frame_to_src, frame_to_dst = (_frame_matrix(p - p[..., :1, :]) for p in (src, dst))
    return _moved(frame_to_dst @ adjugate(frame_to_src), src, dst)


def closest_to_affine(src: Tensor, dst: Tensor) -> tuple[Tensor, Tensor]:
    """One of several matrices that map `src` to `dst`, and whether one was found, (...).

    It is the one whose w_i are closest to 1: an affine matrix if there is one. The points of `src`
    must not all be collinear. Gradients: to both, with constant w_i.
    """
    local_src, local_dst = (_columns(p - p[..., :1, :]) for p in (src, dst))  # (..., 3, 4)
    with torch.no_grad():
        # n: the combination of the source's points that is 0; then D diag(n) w = 0. Points have
        # size 1, so the threshold 1e-6 is above the deviation of collinear float32 points, 1e-7
        s, d = (_of_size_one(p) for p in (local_src, local_dst))
        n = torch.linalg.svd(s)[2][..., -1, :]
        n = torch.where(n.abs() < 1e-6, 0.0, n)
        _, sizes, rows = torch.linalg.svd(d * n[..., None, :])
        sizes = torch.nn.functional.pad(sizes, (0, 1))
        free = torch.where((sizes < 1e-6 * sizes[..., :1])[..., None], rows, 0.0)
        w = (free * free.sum(-1, keepdim=True)).sum(-2)  # 1 = (1, 1, 1, 1), projected
        # if 1 is orthogonal to all solutions, use one of these
        w = torch.where(w.abs().amax(-1, keepdim=True) < 1e-6, rows[..., -1, :], w)
    carried = (w.abs() > 1e-6).all(-1)
    local = (local_dst * w[..., None, :]) @ torch.linalg.pinv(local_src)
    return _moved(local, src, dst), carried


def normalised(matrix: Tensor, far: Tensor) -> Tensor:
    """The matrix divided by its last entry, or where `far` (...) is true, by its norm."""
    norm = matrix.square().sum((-1, -2)).sqrt()
    return matrix / torch.where(far, norm, matrix[..., 2, 2])[..., None, None]


def origin_is_far(matrix: Tensor, src: Tensor, dtype: torch.dtype) -> Tensor:
    """Whether the matrix maps (0, 0) to infinity, or overflows `dtype` over its last entry.

    matrix (..., 3, 3) up to a factor, from `src` (..., 4, 2). Returns (...).
    """
    matrix, (x, y) = matrix.detach(), src[..., 0, :].detach().unbind(-1)
    g, h, i = matrix[..., 2, :].unbind(-1)
    terms = (g * x).abs() + (h * y).abs() + (g * x + h * y + i).abs()  # their signed sum is i
    largest = matrix.abs().amax((-1, -2))
    return (i.abs() <= ROUNDING * terms) | ~(largest / i.abs() <= torch.finfo(dtype).max)


def _columns(points: Tensor) -> Tensor:
    """Homogeneous points as columns, (..., 3, 4)."""
    return torch.cat((points, torch.ones_like(points[..., :1])), dim=-1).mT


def _of_size_one(columns: Tensor) -> Tensor:
    """Homogeneous columns with the first point at the origin and the others within 1 of it."""
    size = columns[..., :2, :].abs().amax((-1, -2), keepdim=True)
    places = columns[..., :2, :] / torch.where(size > 0, size, 1.0)
    return torch.cat((places, columns[..., 2:, :]), dim=-2)


def _frame_matrix(points: Tensor) -> Tensor:
    """The matrix that maps (1,0,0), (0,1,0), (0,0,1) and (1,1,1) to four points (..., 4, 2)."""
    columns = _columns(points)
    first = columns[..., :3]
    return first * (adjugate(first) @ columns[..., 3:]).mT


def _moved(local: Tensor, src: Tensor, dst: Tensor) -> Tensor:
    """Convert a matrix relative to the first point of each quadrilateral to one from the origin.

    local (..., 3, 3); src and dst (..., 4, 2), pixels.
    """
    return _shift(dst[..., 0, :]) @ local @ _shift(-src[..., 0, :])


def _shift(by: Tensor) -> Tensor:
    one, zero = torch.ones_like(by[..., 0]), torch.zeros_like(by[..., 0])
    return matrix_of(((one, zero, by[..., 0]), (zero, one, by[..., 1]), (zero, zero, one)))


def lines(points: Tensor, dtype: torch.dtype) -> Tensor:
    """Which three of four points (..., 4, 2) are collinear, (4, ...): all except the i-th."""
    threes = ([1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2])
    return torch.stack([collinear(points[..., three, :], dtype) for three in threes])


def collinear(points: Tensor, dtype: torch.dtype) -> Tensor:
    """Whether three points (..., 3, 2) lie on a line, up to the rounding of `dtype`.

    A coordinate c with error eps c changes the doubled area by eps c times an edge; 4 for safety.
    """
    points = points.detach()
    (ax, ay), (bx, by) = ((points[..., i, :] - points[..., 0, :]).unbind(-1) for i in (1, 2))
    edge = torch.stack((ax, ay, bx, by), dim=-1).abs().amax(-1)
    reach = points.abs().amax((-1, -2))
    area = (ax * by - ay * bx).abs()
    return ~(area > 4 * torch.finfo(dtype).eps * edge * reach)  # NaN counts as degenerate
