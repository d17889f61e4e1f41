"""The camera matrix with which an undistorted image shows all, or only valid, pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.camera.arguments import as_lens
from warpkit.camera.points import directions
from warpkit.core import checks
from warpkit.core.sharding import batched
from warpkit.core.slips import look_at_camera
from warpkit.engine.sampling.maps import matrix_of
from warpkit.geometry.arguments import floats
from warpkit.types import LensModel, MatrixLike, NumbersLike

SIDE_POINTS = 9
"""Points along each side of the image that OpenCV checks; since 4.12 it checks no others."""

FARTHEST = torch.finfo(torch.float32).max
"""The initial value of OpenCV's search for the rectangles."""


class Rectangles(NamedTuple):
    """(x, y, x of the far side, y of the far side) of two rectangles, each (...)."""

    inner: tuple[Tensor, ...]
    """Inside the undistorted edges, so every pixel in it is valid."""
    outer: tuple[Tensor, ...]
    """Around the whole image."""


@batched(camera_matrix=2, distortion=1, alpha=0)
def optimal_camera_matrix(
    camera_matrix: MatrixLike,
    distortion: NumbersLike,
    size: Sequence[int],
    alpha: NumbersLike,
    *,
    new_size: Sequence[int] | None = None,
    model: LensModel = "brown",
) -> Tensor:
    """The new camera matrix for `undistort`: cv2.getOptimalNewCameraMatrix.

    camera_matrix (..., 3, 3) and distortion (..., n) of `model` as in `distort_points`; size (H, W)
    of the image; alpha (...): 0 shows only valid pixels, 1 all pixels of the image; new_size (h, w)
    of the undistorted image, the same if None. All broadcast. Returns (..., 3, 3). Points are
    solved to convergence, while cv2 takes five steps: matrices of strong lenses differ; for
    fisheyes cv2 has only an estimate from four points,
    `warpkit.opencv.fisheye.estimateNewCameraMatrixForUndistortRectify`. Gradients: up to the third
    order, to camera, distortion and alpha. Raises ValueError if the image reaches beyond the
    model's fold, or a fisheye's beyond 90 degrees.

    >>> camera = [[100, 0, 50], [0, 100, 50], [0, 0, 1]]
    >>> optimal_camera_matrix(camera, [0, 0, 0, 0], (101, 101), 0.0)
    tensor([[100.,   0.,  50.],
            [  0., 100.,  50.],
            [  0.,   0.,   1.]])
    """
    name = "optimal_camera_matrix"
    device, dtype = checks.result_kind(camera_matrix, distortion, alpha)
    lens = as_lens(name, camera_matrix, distortion, model, device)
    alpha = floats(name, "alpha", alpha, device).double()
    checks.broadcast_batch(name, camera_matrix=lens.fx.shape, alpha=alpha.shape)
    size = checks.check_size(name, "size", size)
    look_at_camera(name, "camera_matrix", lens.tensors()[:4], size)
    new = size if new_size is None else checks.check_size(name, "new_size", new_size)
    x, y, found = directions(lens.beside(1), border(size, lens.fx.device))
    wanted = "a lens that shows all of the image: it reaches beyond the model's fold"
    wanted += ", or 90 degrees" * (lens.model == "fisheye")
    checks.check_values(name, "distortion", ~found.all(-1), wanted)
    matrix = between(rectangles(x, y), new, alpha)
    return torch.where(found.all(-1)[..., None, None], matrix, torch.nan).to(dtype)


def border(size: Sequence[int], device: torch.device) -> Tensor:
    """9 pixels along each side of an image, (36, 2), float64: left, top, right, bottom."""
    height, width = size
    steps = torch.arange(SIDE_POINTS, dtype=torch.float64, device=device)
    x, y = steps * (width - 1) / (SIDE_POINTS - 1), steps * (height - 1) / (SIDE_POINTS - 1)
    first = torch.zeros_like(steps)
    sides = (first, y), (x, first), (first + (width - 1), y), (x, first + (height - 1))
    return torch.cat([torch.stack(side, dim=-1) for side in sides])


def rectangles(x: Tensor, y: Tensor) -> Rectangles:
    """Rectangles of the undistorted points of `border`, x and y (..., 36); OpenCV skips NaN."""
    (left, _, right, _), (_, top, _, bottom) = (v.split(SIDE_POINTS, -1) for v in (x, y))
    return Rectangles(
        (_last(left), _last(top), _first(right), _first(bottom)),
        (_first(x), _first(y), _last(x), _last(y)),
    )


def _last(values: Tensor) -> Tensor:
    """The largest of (..., N), from the lowest float32 on."""
    return values.nan_to_num(-FARTHEST, torch.inf, -FARTHEST).amax(-1).clamp_min(-FARTHEST)


def _first(values: Tensor) -> Tensor:
    """The smallest of (..., N), from the highest float32 down."""
    return values.nan_to_num(FARTHEST, FARTHEST, -torch.inf).amin(-1).clamp_max(FARTHEST)


def between(found: Rectangles, size: Sequence[int], alpha: Tensor) -> Tensor:
    """The matrix that maps the rectangles (directions) to an image of `size`, blended by alpha."""
    # torch computes a number over a tensor as a product with 1 / the tensor, which rounds twice
    height, width = (torch.full_like(alpha, n - 1) for n in size)
    lenses = []
    for left, top, right, bottom in found:
        fx, fy = width / (right - left), height / (bottom - top)
        lenses.append((fx, fy, -fx * left, -fy * top))
    fx, fy, cx, cy = (a * (1 - alpha) + b * alpha for a, b in zip(*lenses, strict=True))
    one, zero = torch.ones_like(fx), torch.zeros_like(fx)
    return matrix_of(((fx, zero, cx), (zero, fy, cy), (zero, zero, one)))
