"""Renders views of a sphere, and projects views back onto it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor

from warpkit import warp
from warpkit.camera.views import View, as_view, is_plain, pixels, rays, to_rays
from warpkit.core import checks
from warpkit.core.caller_warnings import warn_of_lost_gradients
from warpkit.core.mistakes import warn_if_not_2_to_1
from warpkit.core.shapes import broadcast_shapes
from warpkit.core.sharding import batched
from warpkit.core.tracing import peel, wants_gradient
from warpkit.engine.backends import spheres
from warpkit.engine.definitions import sphere as definition
from warpkit.engine.definitions.antialias import (
    MOST_AFFINE,
    check_antialias,
    fail_unreadable,
    least_density,
    mean_of_samples,
)
from warpkit.engine.definitions.maps import map_points, to_3x3
from warpkit.engine.definitions.rule_names import check_nearest, parse_rule
from warpkit.types import Interpolation, LensModel, MatrixLike, NumbersLike

LATTICE = 64
"""The most steps along a side of a view at which the angle between pixels is measured. Between
them, the angle in a view of 180 degrees is up to 4e-4 larger."""

STEP = 1e-3
"""Distance in pixels between two directions whose angle is measured."""

MARGIN = 1.01

CORES = {
    "field_of_view": 0,
    "camera_matrix": 2,
    "rotation": 2,
    "distortion": 1,
}


@batched(sphere=3, **CORES)
def from_sphere(
    sphere: Tensor,
    size: Sequence[int],
    *,
    field_of_view: NumbersLike | None = None,
    camera_matrix: MatrixLike | None = None,
    rotation: MatrixLike | None = None,
    distortion: NumbersLike | None = None,
    model: LensModel = "brown",
    antialias: bool | int = False,
    interpolation: Interpolation = "bilinear",
) -> Tensor:
    """Render the view of a camera at the centre of an equirectangular image.

    Args:
        sphere: (..., C, H, W) of any type of `warpkit.remap`'s images. Its centre looks along +z, x
            right, y down; longitude increases to the right over 360 degrees, latitude downwards
            over 180, from edge to edge.
        size: (h, w) of the view.
        field_of_view: (...), degrees across the view's width, from edge to edge, before distortion:
            f = (w / 2) / tan(field / 2), below 180; for model="fisheye" f = (w / 2) / (field / 2 in
            radians), at most 360. The principal point is ((w - 1) / 2, (h - 1) / 2).
        camera_matrix: (..., 3, 3), pixels; exactly one of it and `field_of_view`.
        rotation: (..., 3, 3), from the sphere's directions to the view's; None is the identity. Its
            rows are the view's right, down and forward.
        distortion: (..., n), the lens's coefficients by `model`: see `warpkit.camera`. Fisheyes
            reach beyond 90 degrees from their axis. Pixels beyond the lens's range are 0.
        antialias: average the sphere over each pixel's square, mapped to directions: samples evenly
            spaced in the pixel, closer than 180 / H degrees, at most 256 per axis. An integer fixes
            their number per axis, which vmap, torch.compile and export need.
        interpolation: as in `warpkit.remap`. There is no seam and no hole: a row beyond a pole is
            the same row, rotated by 180 degrees.

    Returns:
        (..., C, h, w) of the sphere's type. All batches broadcast; the sphere is not copied.

    Gradients: all orders, forward and reverse, to sphere, field of view, camera and rotation, and
    to coefficients up to the third. At a pole itself the derivative with respect to direction is 0.

    Raises:
        ValueError, TypeError: with the argument, what it must be and what it got. A matrix that is
        not a rotation causes a warning: its transpose maps the view to the sphere.

    >>> import torch
    >>> sphere = torch.arange(8.0).expand(1, 4, 8)
    >>> from_sphere(sphere, (1, 2), field_of_view=90).round(decimals=4)
    tensor([[[2.9097, 4.0903]]])
    """
    name = "from_sphere"
    sphere = checks.check_image(name, "sphere", sphere, labels=True)
    rule = parse_rule(name, interpolation, "wrap", "exact")
    check_nearest(name, rule, sphere)
    antialias = check_antialias(name, antialias)
    checks.check_labels(name, "antialias", antialias, sphere.dtype, "False", antialias is False)
    warn_if_not_2_to_1(name, "sphere", sphere.shape[-2:])
    height, width = checks.check_size(name, "size", size)
    numbers = (field_of_view, camera_matrix, rotation, distortion)
    view = as_view(name, (height, width), sphere.device, *numbers, model)
    warn_of_lost_gradients(name, sphere, interpolation, **dict(zip(CORES, numbers, strict=True)))
    checks.broadcast_batch(name, sphere=sphere.shape[:-3], **{_named(*numbers): view.batch})
    return render(name, sphere, (height, width), view, antialias, interpolation)


def _named(*numbers: Any) -> str:
    """The names of the given arguments of a view."""
    return ", ".join(key for key, value in zip(CORES, numbers, strict=True) if value is not None)


@batched(view=3, border_value=1, **CORES)
def to_sphere(
    view: Tensor,
    size: Sequence[int],
    *,
    field_of_view: NumbersLike | None = None,
    camera_matrix: MatrixLike | None = None,
    rotation: MatrixLike | None = None,
    distortion: NumbersLike | None = None,
    model: LensModel = "brown",
    border_value: NumbersLike = 0.0,
    antialias: bool | int = False,
    interpolation: Interpolation = "bilinear",
) -> Tensor:
    """Project a camera's image onto the sphere, as an equirectangular image.

    view (..., C, h, w); size (H, W) of the sphere; the camera's numbers as in `from_sphere`;
    border_value, antialias and interpolation as in `warpkit.remap`, with border="constant", which
    fills the sphere outside the view. Returns (..., C, H, W). Gradients and errors as in
    `from_sphere`.

    >>> import torch
    >>> view = torch.ones(1, 8, 8)
    >>> to_sphere(view, (2, 4), field_of_view=120, border_value=-1.0)
    tensor([[[-1.,  1.,  1., -1.],
             [-1.,  1.,  1., -1.]]])
    """
    name = "to_sphere"
    view = checks.check_image(name, "view", view, labels=True)
    rule = parse_rule(name, interpolation, "constant", "exact")
    shape = checks.check_size(name, "size", size)
    warn_if_not_2_to_1(name, "size", shape)
    numbers = (field_of_view, camera_matrix, rotation, distortion)
    height, width = view.shape[-2:]
    camera_view = as_view(name, (height, width), view.device, *numbers, model)
    points = pixels(camera_view, *definition.directions(shape, view.device))
    made_of = {key: value for key, value in zip(CORES, numbers, strict=True) if value is not None}
    options: dict[str, Any] = {"antialias": antialias, "made_of": made_of}
    return warp.remap_by(name, view, points, rule, border_value, None, "auto", **options)


def render(
    name: str,
    sphere: Tensor,
    size: tuple[int, int],
    view: View,
    antialias: bool | int,
    interpolation: str,
) -> Tensor:
    """Render a view of `size` (h, w), for a public function; sphere (*I, C, H, W)."""
    sphere_size = (sphere.shape[-2], sphere.shape[-1])
    whole = torch.eye(2, 3, dtype=torch.float64, device=sphere.device)

    def one_sample(
        view: View,
        image: Tensor,
        to_view: Tensor,
        fill: Tensor,
        size: tuple[int, int],
        wide: bool = False,
    ) -> Tensor:
        """One sample per pixel of an image of `size`; to_view (2, 3) maps its pixels to the
        view's, as in `mean_of_samples`.
        """
        if is_plain(view):
            matrix = to_rays(view) @ to_3x3(to_view)
            return spheres.view(name, image, matrix, size, interpolation, wide)
        points = _places(view, to_view, size, sphere_size)
        return spheres.sample(name, image, points, interpolation)

    def mean(image: Tensor, view: View, counts: tuple[int, int]) -> Tensor:
        if counts == (1, 1):
            return one_sample(view, image, whole, fill, size)
        maps = whole.expand(*view.batch, 2, 3)
        plain = partial(one_sample, view)
        wide = partial(plain, wide=True) if is_plain(view) and not wants_gradient(image) else None
        return mean_of_samples(plain, image, maps, size, fill, counts, wide)

    fill = torch.zeros((), dtype=torch.float64, device=sphere.device)
    if antialias is False:
        return mean(sphere, view, (1, 1))
    if antialias is not True:
        return mean(sphere, view, (antialias, antialias))
    counts = _counts(name, view, size, sphere_size[0], least_density(interpolation))
    if len(set(counts)) <= 1:
        return mean(sphere, view, counts[0] if counts else (1, 1))
    # each item uses its own scale, so that it does not depend on the rest of the batch
    batch = broadcast_shapes(sphere.shape[:-3], view.batch)
    number = torch.arange(len(counts), device="cpu").reshape(view.batch).expand(batch)
    images, views = sphere.expand(*batch, *sphere.shape[-3:]), _expand(view, batch)
    pieces = [
        mean(images[index], views.item(index), counts[int(number[index])])
        for index in product(*map(range, batch))
    ]
    return torch.stack(pieces).unflatten(0, batch)


def _expand(view: View, batch: Sequence[int]) -> View:
    return View(view.lens, view.turn.expand(*batch, 3, 3), view.valid)


def _places(
    view: View, to_view: Tensor, size: tuple[int, int], sphere_size: tuple[int, int]
) -> Tensor:
    """Sphere positions of pixels (h, w) that to_view (..., 2, 3) maps to the view's pixels."""
    to_view = to_view.flatten(0, -3)[0] if to_view.ndim > 2 else to_view  # the same for all
    y, x = (torch.arange(n, dtype=torch.float64, device=to_view.device) for n in size)
    points = map_points(to_view[None], x, y[:, None])
    return definition.places(*rays(view, points[..., 0], points[..., 1]), sphere_size)


def _counts(
    name: str, view: View, size: tuple[int, int], rows: int, density: float
) -> list[tuple[int, int]]:
    """Samples along x and y for each view (h, w) of the flattened batch, closer than a row."""
    y, x = (_lattice(n, view.turn.device) for n in size)
    y = y[:, None]
    steps = []
    for dx, dy in ((STEP / 2, 0.0), (0.0, STEP / 2)):
        a, b = rays(view, x - dx, y - dy), rays(view, x + dx, y + dy)
        steps.append((_angle(a, b) / STEP).nan_to_num(0.0).flatten(-2).amax(-1).expand(view.batch))
    axes = []
    for step in steps:
        readable = peel(step)
        if readable is None or readable.is_meta:
            fail_unreadable(name, "view")
        counts = (readable.detach() * (MARGIN * density * rows / math.pi)).floor() + 1
        axes.append([int(n) for n in counts.clamp(max=MOST_AFFINE).flatten()])
    return list(zip(*axes, strict=True))


def _lattice(length: int, device: torch.device) -> Tensor:
    """Positions along a side of a view from edge to edge, including its centre."""
    steps = min(2 * length, LATTICE) + 1
    return torch.linspace(-0.5, length - 0.5, steps, dtype=torch.float64, device=device)


def _angle(a: tuple[Tensor, ...], b: tuple[Tensor, ...]) -> Tensor:
    """The angle between directions (...), accurate for small angles, too."""
    first, second = torch.stack(a, -1).detach(), torch.stack(b, -1).detach()
    across = torch.linalg.cross(first, second).norm(dim=-1)
    return torch.atan2(across, (first * second).sum(-1))
