"""The camera matrix with which an undistorted image shows all, or only valid, pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.camera.arguments import as_lens
from warpkit.camera.points import directions
from warpkit.core import checks
from warpkit.core.mistakes import warn_if_16_bit_camera, warn_if_relative_camera
from warpkit.core.sharding import batched
from warpkit.engine.definitions import finite
from warpkit.engine.definitions.lens_models import Lens
from warpkit.engine.definitions.maps import matrix_of
from warpkit.engine.operators import lens_inverse
from warpkit.geometry.arguments import floats
from warpkit.types import LensModel, MatrixLike, NumbersLike

SIDE_POINTS = 9
"""Points along each side of the image that OpenCV checks; since 4.12 it checks no others."""

POINTS = 1025
"""Points along each side among which the search begins."""

ZOOMS, ZOOMED = 2, 257
"""How often the search continues between the neighbours of the best point, and with how many. A
pass takes half a millisecond, whatever its points."""

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
    square: bool = False,
) -> Tensor:
    """The new camera matrix for `undistort`: what cv2.getOptimalNewCameraMatrix approximates.

    camera_matrix (..., 3, 3) and distortion (..., n) of `model` as in `distort_points`; size (H, W)
    of the image; alpha (...), 0 to 1: 0 shows only valid pixels, 1 all pixels of the image;
    new_size (h, w) of the undistorted image, the same if None; square: with fx = fy, about the same
    middle, so that alpha 0 shows less and alpha 1 more. All broadcast. Returns (..., 3, 3).

    The extremes of each side are found to 1e-7 of its length, where cv2 compares nine points, and
    points are solved to convergence, where cv2 takes five steps: `warpkit.opencv` has its numbers.
    For fisheyes cv2 has only an estimate from four points,
    `warpkit.opencv.fisheye.estimateNewCameraMatrixForUndistortRectify`. Parts of the image beyond
    the model's fold, which no direction shows, or beyond 90 degrees do not count. Gradients: up to
    the third order, to camera, distortion and alpha. Raises ValueError if a whole side is such a
    part, and for alpha outside [0, 1].

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
    outside = ~((alpha.detach() >= 0) & (alpha.detach() <= 1))
    checks.check_values(name, "alpha", outside, "within [0, 1]", alpha.detach())
    checks.broadcast_batch(name, camera_matrix=lens.fx.shape, alpha=alpha.shape)
    size = checks.check_size(name, "size", size)
    warn_if_relative_camera(name, "camera_matrix", lens.tensors()[:4], size)
    warn_if_16_bit_camera(name, size, camera_matrix=camera_matrix, distortion=distortion)
    new = size if new_size is None else checks.check_size(name, "new_size", new_size)
    square = checks.check_bool(name, "square", square)
    fixed, _ = finite.finite_lens(lens.detach().beside(1))
    reach = lens_inverse.reach_of(fixed)  # as long as thousands of points take
    x, y, converged = directions(lens.beside(1), extremes(fixed, reach, size), reach)
    wanted = "a lens that shows a part of every side: one is beyond the model's fold"
    wanted += ", or 90 degrees" * (lens.model == "fisheye")
    checks.check_values(name, "distortion", ~converged.all(-1), wanted)
    good = converged.all(-1)
    some = torch.tensor((-1.0, -1, 1, 1) * 2, dtype=x.dtype, device=x.device)
    x, y = (torch.where(good[..., None], part, some) for part in (x, y))
    (left, _, right, _, west, _, east, _), (_, top, _, bottom, _, north, _, south) = (
        part.unbind(-1) for part in (x, y)
    )
    sides = Rectangles((left, top, right, bottom), (west, north, east, south))
    matrix = between(sides, new, alpha, square=square)
    return torch.where(good[..., None, None], matrix, torch.nan).to(dtype)


@torch.no_grad()
def extremes(lens: Lens, reach: Tensor, size: Sequence[int]) -> Tensor:
    """Pixels of the border, (..., 8, 2): of four sides the innermost, then the outermost of all.

    lens: finite, with a point dimension; reach: its own. In the order left, top, right and bottom,
    also between pixels. Pixels without a direction do not
    count, and a side of such alone is NaN. Where an extreme lies inside a side, its derivative
    along the side is 0: so the gradient of the result is that at a fixed place.
    """
    device = lens.fx.device
    side = torch.arange(4, device=device).repeat_interleave(POINTS)
    along = torch.linspace(0, 1, POINTS, dtype=torch.float64, device=device).repeat(4)
    ends = [(n % 2, 1 if n < 2 else -1) for n in range(4)]  # the coordinate, and its sign inwards
    ends += [(axis, -sign) for axis, sign in ends]
    mine = torch.ones(8, 4, dtype=torch.bool, device=device)
    mine[:4] = torch.eye(4, dtype=torch.bool, device=device)

    def scores(side: Tensor, along: Tensor) -> Tensor:
        """How extreme points at `along` of `side` are, each for one of the eight, (..., 8, N).

        side and along (..., 8, N), or (..., 1, N): points of all eight.
        """
        shape = along.shape
        places = _on_border(side.flatten(-2), along.flatten(-2), size)
        *coordinates, there = (
            part.unflatten(-1, shape[-2:]) for part in directions(lens, places, reach)
        )
        x, y = (part.expand(*part.shape[:-2], 8, -1) for part in coordinates)
        values = [sign * (x, y)[axis][..., n, :] for n, (axis, sign) in enumerate(ends)]
        side = side.expand(*side.shape[:-2], 8, -1)
        allowed = mine.expand(*side.shape[:-1], 4).gather(-1, side)
        return torch.where(there & allowed, torch.stack(values, dim=-2), -torch.inf)

    side, along = side[None], along[None]
    step, place = 1 / (POINTS - 1), side
    ahead = torch.linspace(-1, 1, ZOOMED, dtype=torch.float64, device=device)
    for _ in range(1 + ZOOMS):
        merits = scores(side, along)
        best = merits.argmax(-1, keepdim=True)
        side = side.expand(merits.shape).gather(-1, best)
        along = along.expand(merits.shape).gather(-1, best)
        place = _on_border(side[..., 0], along[..., 0], size)
        place = torch.where(merits.amax(-1, keepdim=True) > -torch.inf, place, torch.nan)
        side = side.expand(*side.shape[:-1], ZOOMED)
        along = (along + ahead * step).clamp(0, 1)
        step *= 2 / (ZOOMED - 1)
    return place


def _on_border(side: Tensor, along: Tensor, size: Sequence[int]) -> Tensor:
    """Pixels (..., N, 2) of the left, top, right or bottom side, 0 to 3, at parts 0 to 1 of it."""
    height, width = size
    upright, far = side % 2 == 0, (side > 1).to(along.dtype)
    x = torch.where(upright, far, along) * (width - 1)
    y = torch.where(upright, along, far) * (height - 1)
    return torch.stack((x, y), dim=-1)


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


def between(
    rectangles: Rectangles, size: Sequence[int], alpha: Tensor, *, square: bool = False
) -> Tensor:
    """The matrix that maps the rectangles (directions) to an image of `size`, blended by alpha.

    square: with equal focal lengths, about the rectangles' middles.
    """
    # torch computes a number over a tensor as a product with 1 / the tensor, which rounds twice
    height, width = (torch.full_like(alpha, n - 1) for n in size)
    lenses = []
    for n, (left, top, right, bottom) in enumerate(rectangles):
        fx, fy = width / (right - left), height / (bottom - top)
        if square:
            fx = fy = torch.minimum(fx, fy) if n else torch.maximum(fx, fy)
            middle = (width - fx * (left + right)) / 2, (height - fy * (top + bottom)) / 2
            lenses.append((fx, fy, *middle))
        else:
            lenses.append((fx, fy, -fx * left, -fy * top))
    fx, fy, cx, cy = (a * (1 - alpha) + b * alpha for a, b in zip(*lenses, strict=True))
    one, zero = torch.ones_like(fx), torch.zeros_like(fx)
    return matrix_of(((fx, zero, cx), (zero, fy, cy), (zero, zero, one)))
