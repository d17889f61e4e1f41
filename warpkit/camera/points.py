"""Distorts and undistorts points."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from warpkit.camera.arguments import as_lens, not_none
from warpkit.core import checks
from warpkit.core.mistakes import warn_if_16_bit_camera
from warpkit.core.sharding import batched
from warpkit.core.tracing import is_readable
from warpkit.engine.definitions import finite, lens_models
from warpkit.engine.definitions.lens_models import Lens
from warpkit.engine.definitions.maps import matrix_of, rows_at
from warpkit.engine.operators import lens_inverse
from warpkit.engine.operators.inverse import inverse_map
from warpkit.geometry.arguments import as_matrix, as_points
from warpkit.types import LensModel, MatrixLike, NumbersLike, PointsLike


@batched(points=2, camera_matrix=2, distortion=1, rotation=2, new_camera_matrix=2)
def distort_points(
    points: PointsLike,
    camera_matrix: MatrixLike,
    distortion: NumbersLike,
    *,
    rotation: MatrixLike | None = None,
    new_camera_matrix: MatrixLike | None = None,
    model: LensModel = "brown",
) -> Tensor:
    """Distort ideal pixels: cv2.projectPoints of points on the plane z = 1, in pixels.

    points (..., N, 2) or (2,), (x, y) in pixels of the camera without distortion; camera_matrix
    (..., 3, 3), pixels; distortion (..., n) of `model`, "brown" or "fisheye": see `warpkit.camera`.
    With rotation and new_camera_matrix, (..., 3, 3) each, the points are those that
    `undistort_points` returns for them: of an image undistorted or rectified by the same. All
    broadcast. Returns (..., N, 2), pixels. Beyond the model's fold it is the formula's value, and
    NaN for points behind the camera. Gradients: all orders, to all.

    >>> distort_points([[120.0, 50.0]], [[100, 0, 20], [0, 100, 50], [0, 0, 1]], [-0.1, 0, 0, 0])
    tensor([[110.,  50.]])
    """
    name = "distort_points"
    others = not_none(rotation, new_camera_matrix)
    device, dtype = checks.result_kind(points, camera_matrix, distortion, *others)
    of, (points, single) = points, as_points(name, points, device)
    lens = as_lens(name, camera_matrix, distortion, model, points.device)
    view = new_view(name, rotation, new_camera_matrix, lens, points.device)
    numbers = {"camera_matrix": camera_matrix, "distortion": distortion, "rotation": rotation}
    _warn_if_16_bit_camera(name, lens, points=of, new_camera_matrix=new_camera_matrix, **numbers)
    _check_batches(name, points, lens, view)
    result = distort(lens.beside(1), points.double(), view).to(dtype)
    return result[..., 0, :] if single else result


@batched(2, points=2, camera_matrix=2, distortion=1, rotation=2, new_camera_matrix=2)
def undistort_points(
    points: PointsLike,
    camera_matrix: MatrixLike,
    distortion: NumbersLike,
    *,
    rotation: MatrixLike | None = None,
    new_camera_matrix: MatrixLike | None = None,
    model: LensModel = "brown",
) -> tuple[Tensor, Tensor]:
    """Undistort pixels, and report which have a solution: cv2.undistortPoints, converged.

    points (..., N, 2) or (2,), (x, y) in pixels; camera_matrix (..., 3, 3) and distortion (..., n)
    as in `distort_points`; rotation (..., 3, 3) rotates the directions; new_camera_matrix (..., 3,
    3), the camera's own if None, maps them to pixels. All broadcast. Returns the points (..., N, 2)
    and `converged` (..., N), bool: False, with a NaN point, if there is no solution (beyond the
    model's fold, or behind the new camera). Of several roots only the one on the centre's branch
    counts.

    Uses a safeguarded Newton iteration until convergence, while cv2 takes five steps. Gradients: up
    to the third order, to all, by the implicit function theorem; the iterations are not stored.

    >>> camera = [[100, 0, 20], [0, 100, 50], [0, 0, 1]]
    >>> undistort_points([[110.0, 50.0], [400.0, 50.0]], camera, [-0.1, 0, 0, 0])
    (tensor([[120.,  50.],
            [ nan,  nan]]), tensor([ True, False]))
    """
    name = "undistort_points"
    others = not_none(rotation, new_camera_matrix)
    device, dtype = checks.result_kind(points, camera_matrix, distortion, *others)
    of, (points, single) = points, as_points(name, points, device)
    lens = as_lens(name, camera_matrix, distortion, model, points.device)
    view = new_view(name, rotation, new_camera_matrix, lens, points.device)
    numbers = {"camera_matrix": camera_matrix, "distortion": distortion, "rotation": rotation}
    _warn_if_16_bit_camera(name, lens, points=of, new_camera_matrix=new_camera_matrix, **numbers)
    _check_batches(name, points, lens, view)
    result, converged = undistort(lens.beside(1), points.double(), view)
    result = result.to(dtype)
    return (result[..., 0, :], converged[..., 0]) if single else (result, converged)


def _warn_if_16_bit_camera(name: str, lens: Lens, **numbers: Any) -> None:
    """`warn_if_16_bit_camera` for an image whose middle is the camera's centre."""
    centre = [position.detach() for position in (lens.cy, lens.cx)]
    halves = any("float16" in str(getattr(value, "dtype", "")) for value in numbers.values())
    if halves and is_readable(centre[0]) and centre[0].numel():
        ends = [2 * position.abs().max().nan_to_num(0.0, 0.0, 0.0).item() for position in centre]
        warn_if_16_bit_camera(name, (round(ends[0]), round(ends[1])), **numbers)


def _check_batches(name: str, points: Tensor, lens: Lens, view: Tensor | None) -> None:
    """Check that points (..., N, 2), the lens and the view (..., 3, 3) broadcast."""
    batches = {"points": points.shape[:-2], "camera_matrix": lens.fx.shape}
    if view is not None:
        batches["rotation, new_camera_matrix"] = view.shape[:-2]
    checks.broadcast_batch(name, **batches)


def distort(lens: Lens, points: Tensor, view: Tensor | None = None) -> Tensor:
    """Distort float64 ideal pixels (..., N, 2) of `view` (see `new_view`); NaN for invalid ones."""
    lens, valid = finite.finite_lens(lens)
    if view is None:
        points, near = finite.finite_points(lens, points)
        x, y = lens_models.from_pixels(lens, *points.unbind(-1))
    else:
        x, y, near = _project(view, points)
    u, v = lens_models.to_pixels(lens, *lens_models.distort(lens, x, y))
    pixels = torch.stack((u, v), dim=-1)
    good = near & valid
    return pixels if finite.is_known_true(good) else torch.where(good[..., None], pixels, torch.nan)


def undistort(lens: Lens, points: Tensor, view: Tensor | None) -> tuple[Tensor, Tensor]:
    """Undistort float64 pixels (..., 2) to those of `view` (see `new_view`); and which exist."""
    x, y, converged = directions(lens, points)
    if view is None:
        lens, _ = finite.finite_lens(lens)
        result = torch.stack(lens_models.to_pixels(lens, x, y), dim=-1)
        return torch.where(converged[..., None], result, torch.nan), converged
    view, valid = finite.finite_matrix(view)  # no pixel exists in a view of NaN
    a, b, w = rows_at(view[..., None, :, :], x, y)
    near = finite.within(a.detach() / w.detach(), b.detach() / w.detach())
    converged = converged & valid[..., None] & (w > 0) & near
    w = torch.where(converged, w, 1.0)
    result = torch.stack((a / w, b / w), dim=-1)
    return torch.where(converged[..., None], result, torch.nan), converged


def _project(view: Tensor, points: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Ideal directions x and y of pixels (..., N, 2) of a view (..., 3, 3); which exist, (..., N).

    Those behind the camera do not, nor any of a singular view.
    """
    to_ray, straight = finite.finite_matrix(inverse_map(view))
    is_known = points.detach().isfinite().all(-1)
    points = torch.where(is_known[..., None], points, 0.0)
    a, b, w = rows_at(to_ray[..., None, :, :], *points.unbind(-1))
    front = w.detach() > 0
    x, y = (torch.where(front, part, 0.0) / torch.where(front, w, 1.0) for part in (a, b))
    near = finite.within(x.detach(), y.detach())
    x, y = (torch.where(near, part, 0.0) for part in (x, y))
    return x, y, near & front & is_known & straight[..., None]


def directions(
    lens: Lens, points: Tensor, reach: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Ideal directions x and y of float64 pixels (..., N, 2), the centre's if there is none.

    reach: `lens_inverse.reach_of` of the finite lens, if it is known. Also returns which of them
    exist, (..., N). Gradients: see `lens_inverse.unbend`.
    """
    lens, valid = finite.finite_lens(lens)
    points, near = finite.finite_points(lens, points)
    u, v = lens_models.from_pixels(lens, *points.unbind(-1))
    x, y, converged = lens_inverse.unbend(lens, *lens_models.untilt(lens, u, v), reach)
    return x, y, converged & near & valid


def new_view(
    name: str, rotation: Any, new_camera_matrix: Any, lens: Lens, device: torch.device
) -> Tensor | None:
    """The matrix (..., 3, 3) that maps ideal directions to pixels; None for the camera's own."""
    if rotation is None and new_camera_matrix is None:
        return None
    if new_camera_matrix is None:
        matrix = own_view(lens)
    else:
        matrix = as_matrix(name, new_camera_matrix, "new_camera_matrix", device, (3,)).double()
    if rotation is None:
        return matrix
    rotation = as_matrix(name, rotation, "rotation", device, (3,)).double()
    checks.broadcast_batch(name, new_camera_matrix=matrix.shape[:-2], rotation=rotation.shape[:-2])
    (matrix, valid), (rotation, straight) = map(finite.finite_matrix, (matrix, rotation))
    good = (valid & straight)[..., None, None]
    return torch.where(good, matrix @ rotation, torch.nan)


def own_view(lens: Lens) -> Tensor:
    """The camera's own matrix, (..., 3, 3)."""
    one, zero = torch.ones_like(lens.fx), torch.zeros_like(lens.fx)
    return matrix_of(((lens.fx, zero, lens.cx), (zero, lens.fy, lens.cy), (zero, zero, one)))
