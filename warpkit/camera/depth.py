"""Warps by depth and pose: the points of a view's pixels in another camera, and its image there."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, NamedTuple

import torch
from torch import Tensor

from warpkit import warp
from warpkit.camera.arguments import Names, as_any_lens, not_none
from warpkit.camera.poses import as_pose
from warpkit.camera.views import directions
from warpkit.core import checks
from warpkit.core.mistakes import warn_if_16_bit_camera, warn_if_relative_camera
from warpkit.core.sharding import batched
from warpkit.core.tracing import is_eager
from warpkit.engine.definitions import depth as definition
from warpkit.engine.definitions import finite, lens_models, lens_rays
from warpkit.engine.definitions.depth import KINDS, Depths
from warpkit.engine.definitions.depth_warp import DepthWarp as Warped
from warpkit.engine.definitions.fill import checked_fill
from warpkit.engine.definitions.layout import restore_memory_format
from warpkit.engine.definitions.lens_models import Lens
from warpkit.engine.definitions.maps import pixel_points
from warpkit.engine.definitions.rule_names import check_nearest, parse_rule
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.engine.operators.depth import POINTS
from warpkit.engine.operators.depth_warp import SHOWN
from warpkit.geometry.arguments import floats
from warpkit.types import Border, DepthKind, Interpolation, LensModel, MatrixLike, NumbersLike

OTHER = Names("other_matrix", "other_distortion", "other_model")

LEAST_DEPTH = 1e-300
"""Its inverse is finite; a surface as near as that hides everything."""

BILINEAR = SamplingRule("bilinear", "constant", "exact")

CORES = {
    "depth": 3,
    "camera_matrix": 2,
    "pose": 2,
    "other_matrix": 2,
    "distortion": 1,
    "other_distortion": 1,
}


class DepthPoints(NamedTuple):
    """The result of `depth_points`."""

    points: Tensor
    """(..., h, w, 2), pixels of the other image, NaN where it shows none."""
    depth: Tensor
    """(..., 1, h, w): the points' own in the other camera, of the same kind."""


class DepthWarp(NamedTuple):
    """The result of `warp_depth`."""

    image: Tensor
    """(..., C, h, w)."""
    valid: Tensor
    """(..., 1, h, w), bool: whether every tap with weight lies in the image."""
    occluded: Tensor | None
    """(..., 1, h, w), bool: whether another surface hides the point; None without a depth of it."""


class _Scene(NamedTuple):
    """The validated arguments of both functions."""

    depth: Tensor
    """(..., h, w)."""
    pose: Tensor
    """(..., 3, 4)."""
    own: Lens
    other: Lens
    kind: str
    batch: tuple[int, ...]

    @property
    def size(self) -> tuple[int, int]:
        height, width = self.depth.shape[-2:]
        return height, width


@batched(2, **CORES)
def depth_points(
    depth: Tensor,
    camera_matrix: MatrixLike,
    pose: MatrixLike,
    *,
    other_matrix: MatrixLike | None = None,
    distortion: NumbersLike | None = None,
    other_distortion: NumbersLike | None = None,
    model: LensModel = "brown",
    other_model: LensModel | None = None,
    kind: DepthKind = "z",
) -> DepthPoints:
    """Where another camera shows the points of a view's depths.

    Args:
        depth: (..., 1, h, w), of the view's pixels, or (h, w). Missing: NaN; of "z" and "ray" 0 and
            less; of "inverse" less than 0, and infinity.
        camera_matrix: (..., 3, 3) of the view, in pixels of `depth`, without skew.
        pose: (..., 3, 4) or (..., 4, 4), from the view's coordinates to the other camera's: see
            `camera.pose`. A matrix that is not a rotation causes a warning.
        other_matrix: (..., 3, 3), the other camera's; None: the same camera, lens included.
        distortion: (..., n), the view's lens by `model`: see `warpkit.camera`. None: a pinhole; of
            model="fisheye" an ideal one.
        other_distortion: the other camera's, given with `other_matrix` alone; None is no lens, not
            the view's.
        model: "brown" or "fisheye".
        other_model: the other camera's; None is `model`.
        kind: "z", along the optical axis; "ray", the distance from the camera's centre; "inverse",
            1 / z, a disparity over focal length and base. Infinity of "z" and "ray", and 0 of
            "inverse", is at infinity.

    Returns:
        DepthPoints(points (..., h, w, 2), depth (..., 1, h, w)), computed in float64, of the
        arguments' common type. Points are for `warpkit.remap`: NaN where depth is missing, the
        view's lens has no direction (of "z" and "inverse" also 90 degrees and more off the axis),
        the other camera does not show the point, or a camera or pose is not finite. The depth is
        the point's own in the other camera, of the same kind; NaN where the point is and where it
        would be missing. All batches broadcast.

    Gradients: all orders, forward and reverse, to all; through the view's lens, which is inverted,
    up to the third.

    >>> camera = [[10.0, 0, 2], [0, 10, 0], [0, 0, 1]]
    >>> pose = [[1.0, 0, 0, -0.5], [0, 1, 0, 0], [0, 0, 1, 0]]  # the other stands to the right
    >>> depth_points(torch.tensor([[2.0, 5.0, 0.0, torch.inf]]), camera, pose)
    DepthPoints(points=tensor([[[-2.5000,  0.0000],
             [ 0.0000,  0.0000],
             [    nan,     nan],
             [ 3.0000,  0.0000]]]), depth=tensor([[[2., 5., nan, inf]]]))
    """
    numbers = not_none(camera_matrix, pose, other_matrix, distortion, other_distortion)
    device, dtype = checks.result_kind(depth, *numbers)
    lenses = (other_matrix, distortion, other_distortion, model, other_model)
    scene = _scene("depth_points", depth, camera_matrix, pose, lenses, kind, device)
    points, own = _points(scene, own=True)
    return DepthPoints(points.to(dtype), own[..., None, :, :].to(dtype))


@batched(3, image=3, other_depth=3, border_value=1, **CORES)
def warp_depth(
    image: Tensor,
    depth: Tensor,
    camera_matrix: MatrixLike,
    pose: MatrixLike,
    *,
    other_matrix: MatrixLike | None = None,
    distortion: NumbersLike | None = None,
    other_distortion: NumbersLike | None = None,
    model: LensModel = "brown",
    other_model: LensModel | None = None,
    kind: DepthKind = "z",
    other_depth: Tensor | None = None,
    tolerance: float = 0.01,
    interpolation: Interpolation = "bilinear",
    border: Border = "constant",
    border_value: NumbersLike = 0.0,
) -> DepthWarp:
    """The image of another camera, seen from a view whose depths are known.

    Args:
        image: (..., C, H, W), the other camera's, of any type that `warpkit.remap` takes. Without
            `other_matrix` it has the size of `depth`.
        depth: as all arguments up to `kind`, see `depth_points`: (..., 1, h, w), of the view.
        other_depth: (..., 1, H, W), the other camera's, of the same kind, to find what is hidden.
        tolerance: at least 0: a point is occluded if its depth there exceeds that of the surface by
            more than this share. The surface is interpolated in 1 / z, which is linear on planes.
        interpolation: as `border` and `border_value`, see `warpkit.remap`. Points that the other
            camera does not show get `border_value`; border="transparent" is an error.

    Returns:
        DepthWarp(image (..., C, h, w), valid, occluded), the masks (..., 1, h, w), bool. `valid`:
        every tap with weight lies in the image, whatever the border. `occluded`: the other camera
        has a surface before the point; None without `other_depth`, False where either is missing.
        Both take coordinates within 1e-6 of a whole number as that number. All batches broadcast.

    Gradients: all orders, forward and reverse, to image, border value, depth, cameras, lenses and
    pose; through the view's lens up to the third; none through the masks.

    >>> camera = [[10.0, 0, 2], [0, 10, 0], [0, 0, 1]]
    >>> pose = [[1.0, 0, 0, -0.5], [0, 1, 0, 0], [0, 0, 1, 0]]  # the other stands to the right
    >>> image, depth = torch.tensor([[[1.0, 2, 4, 8]]]), torch.tensor([[[5.0, 5, 0, 10]]])
    >>> warp_depth(image, depth, camera, pose)
    DepthWarp(image=tensor([[[0., 1., 0., 6.]]]), valid=tensor([[[False,  True, False,  True]]]), \
occluded=None)
    """
    name = "warp_depth"
    image = checks.check_image(name, "image", image, labels=True)
    rule = parse_rule(name, interpolation, border, "exact")
    check_nearest(name, rule, image)
    if border == "transparent":
        wanted = "another border: `valid` says what to keep of a background"
        checks.fail(name, "border", wanted, repr(border))
    if not _is_share(tolerance):
        checks.fail(name, "tolerance", "a finite number of at least 0", f"{tolerance!r:.60}")
    size = (image.shape[-2], image.shape[-1])
    lenses = (other_matrix, distortion, other_distortion, model, other_model)
    scene = _scene(name, depth, camera_matrix, pose, lenses, kind, image.device, size)
    surface = None
    if other_depth is not None:
        surface = _as_depth(name, "other_depth", other_depth, image.device)
        if tuple(surface.shape[-2:]) != size:
            wanted = f"of the image's size, (..., 1, {size[0]}, {size[1]})"
            checks.fail(name, "other_depth", wanted, checks.shape_of(other_depth))
    beside = () if surface is None else surface.shape[:-2]
    batch = checks.broadcast_batch(
        name, image=image.shape[:-3], depth=scene.batch, other_depth=beside
    )
    numbers = (depth, camera_matrix, pose, other_matrix, distortion, other_distortion)
    made_of = {k: v for k, v in zip(CORES, numbers, strict=True) if v is not None}
    points, own = None, []
    if surface is None and _in_tiles(image, rule, batch, scene):
        fill = checked_fill(
            name, image, (*batch, image.shape[-3], *scene.size), rule, border_value, None
        )
        options, *tensors = _inputs(scene, own=False, inside=(interpolation, *size))
        picture, valid = SHOWN(Warped(options, rule), image, fill, *tensors)
        picture = restore_memory_format(picture, image)
    else:
        points, *own, valid = _points(scene, own=surface is not None, inside=(interpolation, *size))
        picture = warp.remap_by(
            name, image, points, rule, border_value, None, "auto", made_of=made_of
        )
    hidden = None
    if surface is not None and points is not None:
        hidden = _hidden(surface, kind, points, own[0], tolerance)
    masks = [valid, hidden]
    masks = [
        mask if mask is None else mask[..., None, :, :].expand(*batch, 1, *mask.shape[-2:])
        for mask in masks
    ]
    return DepthWarp(picture.expand(*batch, *picture.shape[-3:]), masks[0], masks[1])  # pyright: ignore


def _is_share(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) < math.inf


def _scene(
    name: str,
    depth: Any,
    camera_matrix: Any,
    pose: Any,
    lenses: tuple[Any, ...],
    kind: Any,
    device: torch.device | None,
    size: tuple[int, int] | None = None,
) -> _Scene:
    """The validated scene; size (H, W) of the other image, if there is one."""
    other_matrix, distortion, other_distortion, model, other_model = lenses
    kind = checks.check_name(name, "kind", kind, KINDS)
    depth = _as_depth(name, "depth", depth, device)
    device, mine = depth.device, (depth.shape[-2], depth.shape[-1])
    own = other = as_any_lens(name, camera_matrix, distortion, model, device)
    warn_if_relative_camera(name, "camera_matrix", own.tensors()[:4], mine)
    warn_if_16_bit_camera(name, mine, camera_matrix=camera_matrix, distortion=distortion, pose=pose)
    if other_matrix is None:
        for argument, value in (
            ("other_distortion", other_distortion),
            ("other_model", other_model),
        ):
            if value is not None:
                wanted = "left out without `other_matrix`: both are the same camera then"
                checks.fail(name, argument, wanted, f"{value!r:.60}")
        if size not in (None, mine):
            wanted = f"given for an image of {size}, as `depth` is of {mine}: None is the same one"
            checks.fail(name, "other_matrix", wanted, None)
    else:
        there = model if other_model is None else other_model
        other = as_any_lens(name, other_matrix, other_distortion, there, device, OTHER)
        if size is not None:
            warn_if_relative_camera(name, "other_matrix", other.tensors()[:4], size)
            numbers = {"other_matrix": other_matrix, "other_distortion": other_distortion}
            warn_if_16_bit_camera(name, size, **numbers)
    moves = as_pose(name, pose, device)
    shapes = {
        "depth": depth.shape[:-2],
        "camera_matrix": own.fx.shape,
        "pose": moves.shape[:-2],
        "other_matrix": other.fx.shape,
    }
    return _Scene(depth, moves, own, other, kind, checks.broadcast_batch(name, **shapes))


def _as_depth(name: str, argument: str, value: Any, device: torch.device | None) -> Tensor:
    """Depths (..., h, w) of an argument (..., 1, h, w) or (h, w)."""
    depth = floats(name, argument, value, device)
    wanted = "of shape (..., 1, h, w), or (h, w)"
    if depth.ndim < 2 or 0 in depth.shape[-2:]:
        checks.fail(name, argument, wanted, checks.shape_of(depth))
    if depth.ndim == 2:
        return depth
    if depth.shape[-3] != 1:
        got = f"{checks.shape_of(depth)}: {argument}.unsqueeze(-3) has the channel"
        checks.fail(name, argument, wanted, got)
    return depth.squeeze(-3)  # an index's gradient would fill and copy an image


def _points(
    scene: _Scene, own: bool, inside: tuple[str, int, int] | None = None
) -> tuple[Tensor, ...]:
    """The results of `definitions.depth.points`."""
    return POINTS(*_inputs(scene, own, inside))


def _inputs(scene: _Scene, own: bool, inside: tuple[str, int, int] | None) -> tuple[Any, ...]:
    """The arguments of `definitions.depth.points`."""
    pinhole = scene.own.model == "brown" and not scene.own.k
    rays = lens_models.packed(scene.own) if pinhole else rays_of(scene.own, scene.size, scene.kind)
    depth = scene.depth
    return (
        Depths(scene.kind, scene.other.model, pinhole, own, inside),
        depth if depth.dtype in (torch.float32, torch.float64) else depth.double(),
        rays,
        scene.pose.double(),
        lens_models.packed(scene.other),
        lens_rays.end_of(scene.other),
    )


def _in_tiles(image: Tensor, rule: SamplingRule, batch: tuple[int, ...], scene: _Scene) -> bool:
    """Whether a kernel can make the points where it samples the image (..., C, H, W).

    It makes those of an item once, so items must not share them.
    """
    floating = image.dtype in (torch.float32, torch.float64) and rule.interpolation != "nearest"
    tensors = (image, scene.depth, scene.pose, *scene.own.tensors(), *scene.other.tensors())
    here = image.is_cpu and floating and math.prod(batch) == math.prod(scene.batch)
    return here and is_eager(*tensors) and SHOWN.kernels["cpu"]() is not None


def rays_of(lens: Lens, size: tuple[int, int], kind: str) -> Tensor:
    """The rays (..., 3, h, w) of a lens's pixels, NaN where it has none."""
    lens, sound = finite.finite_lens(lens)
    pixels = pixel_points(size, torch.float64, lens.fx.device).flatten(0, 1)
    a, b, c, valid = directions(lens, *pixels.unbind(-1))
    valid = valid & sound[..., None]
    if lens.model == "fisheye":  # of unit length
        if kind != "ray":  # z says nothing at 90 degrees and more off the axis
            valid = valid & (c.detach() > 1 / finite.FARTHEST)
            c = torch.where(valid, c, 1.0)
            a, b, c = a / c, b / c, torch.ones_like(c)
    else:
        a, b, c = definition.unit(kind, a, b)
    rays = torch.stack(torch.broadcast_tensors(a, b, c), -2)
    return torch.where(valid[..., None, :], rays, torch.nan).unflatten(-1, size)


def _hidden(surface: Tensor, kind: str, points: Tensor, own: Tensor, tolerance: float) -> Tensor:
    """Which points (..., h, w) lie behind the surface of depths (..., H, W) that a camera has."""
    depths, own = surface.detach().double(), own.detach()
    if kind == "inverse":
        there = (depths >= 0) & (depths < torch.inf)
        inverse = torch.where(there, depths, 0.0)
    else:
        there, own = depths > 0, 1 / own
        inverse = torch.where(
            there, 1 / torch.where(there, depths, 1.0).clamp(min=LEAST_DEPTH), 0.0
        )
    both = torch.stack((inverse, there.double()), -3)
    places = definition.snapped(points.detach())
    made_of = {"points": places}
    means = warp.remap_by("warp_depth", both, places, BILINEAR, 0.0, None, "auto", made_of=made_of)
    total, weight = means.unbind(-3)
    return (weight > 0) & ((1 + tolerance) * own < total / torch.where(weight > 0, weight, 1.0))
