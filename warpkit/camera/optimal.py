"""The camera matrix under which an undistorted image shows all, or nothing but, of the original."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from warpkit.camera.arguments import as_lens
from warpkit.camera.points import directions
from warpkit.core import checks
from warpkit.core.sharding import batched
from warpkit.engine.sampling.maps import matrix_of
from warpkit.geometry.arguments import floats

GRID_POINTS = 9
"""Points along a side of the grid that OpenCV looks at."""


class Rectangles(NamedTuple):
    """(x, y, x of the far side, y of the far side) of two rectangles, each (...)."""

    inner: tuple[Tensor, ...]
    """Inside of what the image's edges become: every pixel of it is one of the image."""
    outer: tuple[Tensor, ...]
    """Around all of the image."""


@batched(camera_matrix=2, distortion=1, alpha=0)
def optimal_camera_matrix(
    camera_matrix: Any,
    distortion: Any,
    size: Sequence[int],
    alpha: Any,
    *,
    new_size: Sequence[int] | None = None,
) -> Tensor:
    """The new camera matrix for `undistort`: cv2.getOptimalNewCameraMatrix.

    camera_matrix (..., 3, 3) and distortion (..., n) of model "brown" as in `distort_points`;
    size (H, W) of the image; alpha (...): 0 shows only pixels that the image has, 1 all that it
    has; new_size (h, w) of the undistorted image, the same if None. All broadcast. Returns
    (..., 3, 3). Points are solved for, where cv2 takes five steps: strong lenses' matrices differ.
    Gradients: to the third order, to camera, distortion and alpha. Raises ValueError where the
    image reaches beyond the model's fold.

    >>> camera = [[100, 0, 50], [0, 100, 50], [0, 0, 1]]
    >>> optimal_camera_matrix(camera, [0, 0, 0, 0], (101, 101), 0.0)
    tensor([[100.,   0.,  50.],
            [  0., 100.,  50.],
            [  0.,   0.,   1.]])
    """
    name = "optimal_camera_matrix"
    device, dtype = checks.result_kind(camera_matrix, distortion, alpha)
    lens = as_lens(name, camera_matrix, distortion, "brown", device)
    alpha = floats(name, "alpha", alpha, device).double()
    checks.broadcast_batch(name, camera_matrix=lens.fx.shape, alpha=alpha.shape)
    size = checks.check_size(name, "size", size)
    new = size if new_size is None else checks.check_size(name, "new_size", new_size)
    x, y, found = directions(lens.beside(1), grid(size, lens.fx.device))
    wanted = "a lens that shows all of the image: it reaches beyond the model's fold"
    checks.check_values(name, "distortion", ~found.all(-1), wanted)
    matrix = between(rectangles(x, y), new, alpha)
    return torch.where(found.all(-1)[..., None, None], matrix, torch.nan).to(dtype)


def grid(size: Sequence[int], device: torch.device) -> Tensor:
    """9 x 9 pixels over the whole of an image, (81, 2), float64, row by row."""
    height, width = size
    steps = torch.arange(GRID_POINTS, dtype=torch.float64, device=device)
    x, y = steps * (width - 1) / (GRID_POINTS - 1), steps * (height - 1) / (GRID_POINTS - 1)
    return torch.stack(
        (x.expand(GRID_POINTS, -1), y[:, None].expand(-1, GRID_POINTS)), dim=-1
    ).flatten(0, 1)


def rectangles(x: Tensor, y: Tensor) -> Rectangles:
    """Of the undistorted points of `grid`, x and y (..., 81)."""
    x, y = x.unflatten(-1, (GRID_POINTS, GRID_POINTS)), y.unflatten(-1, (GRID_POINTS, GRID_POINTS))
    inner = (x[..., 0].amax(-1), y[..., 0, :].amax(-1), x[..., -1].amin(-1), y[..., -1, :].amin(-1))
    flat_x, flat_y = x.flatten(-2), y.flatten(-2)
    outer = (flat_x.amin(-1), flat_y.amin(-1), flat_x.amax(-1), flat_y.amax(-1))
    return Rectangles(inner, outer)


def between(found: Rectangles, size: Sequence[int], alpha: Tensor) -> Tensor:
    """The matrix that lays the rectangles, in directions, on an image of `size`, mixed by alpha."""
    height, width = size
    lenses = []
    for left, top, right, bottom in found:
        fx, fy = (width - 1) / (right - left), (height - 1) / (bottom - top)
        lenses.append((fx, fy, -fx * left, -fy * top))
    fx, fy, cx, cy = (a * (1 - alpha) + b * alpha for a, b in zip(*lenses, strict=True))
    one, zero = torch.ones_like(fx), torch.zeros_like(fx)
    return matrix_of(((fx, zero, cx), (zero, fy, cy), (zero, zero, one)))
