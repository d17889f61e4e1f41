"""Points of a view's depths in another camera: where it shows them, and their own depths there.

A pixel's ray d, its depth z and the pose X' = R X + t give Y = n R d + s t, a positive multiple of
the point in the other camera, n = min(z, 1) and s = min(1 / z, 1). So a point at infinity is as
good as any, nothing overflows, and no infinity is multiplied by 0.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.core.shapes import broadcast_shapes
from warpkit.engine.definitions import finite, lens_models, lens_rays
from warpkit.engine.definitions.maps import pixel_points

KINDS = ("z", "ray", "inverse")

WHOLE = 1e-6
"""Masks take a coordinate this close to a whole number as that number: rounding in two cameras
takes no row of an image away."""

REACH = {"nearest": (0, 0), "bilinear": (0, 1), "bicubic": (-1, 2), "lanczos4": (-3, 4)}
"""The first and the last tap of each interpolation, from the whole number below a coordinate."""


class Depths(NamedTuple):
    """The options of points of depths."""

    kind: str
    """What the depths are, of `KINDS`."""
    model: str
    """The other camera's."""
    pinhole: bool
    """Whether rays are a camera's numbers instead of a field."""
    own: bool
    """Whether the points' own depths are wanted."""
    inside: tuple[str, int, int] | None
    """An interpolation and the other image's size, if a mask is wanted of where all taps are."""


class Shares(NamedTuple):
    """Of depths (...): the factors of ray and translation, and which depths are not missing."""

    near: Tensor
    far: Tensor
    there: Tensor


def batch_of(
    options: Depths, depth: Tensor, rays: Tensor, pose: Tensor, numbers: Tensor, end: Tensor
) -> tuple[int, ...]:
    """The batch of points; tensors as in `points`."""
    core = 1 if options.pinhole else 3
    shapes = (depth.shape[:-2], rays.shape[: rays.ndim - core], pose.shape[:-2])
    return tuple(broadcast_shapes(*shapes, numbers.shape[:-1], end.shape))


def points(
    options: Depths, depth: Tensor, rays: Tensor, pose: Tensor, numbers: Tensor, end: Tensor
) -> tuple[Tensor, ...]:
    """Points (..., h, w, 2), float64, NaN where there is none; then what `options` asks for.

    The points' own depths (..., h, w), of the same kind, and a mask (..., h, w), bool. depth
    (..., h, w); rays (..., 3, h, w), NaN where there is none, or fx, fy, cx, cy (..., 4) of a
    pinhole; pose (..., 3, 4); numbers (..., 4 + n) of the other lens, as `lens_models.packed`; end
    (...) of `lens_rays.end_of`.
    """
    lens, has_lens = finite.finite_lens(lens_models.unpacked(options.model, numbers))
    pose, straight = _finite_pose(pose)
    ray, has_ray = _rays(options, rays, depth.shape[-2:])
    share = shares(depth.double(), options.kind)
    good = has_ray & share.there & (has_lens & straight)[..., None, None]
    rows = [row[..., None, None, :].unbind(-1) for row in pose.unbind(-2)]
    moved = [
        (a * ray[0] + b * ray[1] + c * ray[2]) * share.near + t * share.far for a, b, c, t in rows
    ]
    near = finite.within(*(value.detach() for value in moved))
    good = good & near
    x, y, z = (torch.where(good, v, one) for v, one in zip(moved, (0.0, 0.0, 1.0), strict=True))
    pixels, is_shown = lens_rays.shown(lens.beside(2), x, y, z, end[..., None, None])
    good = good & is_shown
    places = torch.where(good[..., None], pixels, torch.nan)
    results = [places]
    if options.own:
        results.append(_own_depth(options.kind, depth.double(), share, (x, y, z), good))
    if options.inside is not None:
        results.append(inside(snapped(places.detach()), *options.inside))
    return tuple(results)


def _finite_pose(pose: Tensor) -> tuple[Tensor, Tensor]:
    """The pose (..., 3, 4), with the identity for items that are not finite; and which are."""
    good = pose.detach().isfinite().flatten(-2).all(-1)
    if finite.is_known_true(good):
        return pose, good
    identity = torch.eye(3, 4, dtype=pose.dtype, device=pose.device)
    return torch.where(good[..., None, None], pose, identity), good


def _rays(
    options: Depths, rays: Tensor, size: tuple[int, ...]
) -> tuple[tuple[Tensor, ...], Tensor]:
    """The rays of pixels, three of (..., h, w), forward for those without one; which have one."""
    if not options.pinhole:
        has_ray = rays.detach().isfinite().all(-3)
        parts = zip(rays.unbind(-3), (0.0, 0.0, 1.0), strict=True)
        return tuple(torch.where(has_ray, part, forward) for part, forward in parts), has_ray
    lens, sound = finite.finite_lens(lens_models.unpacked("brown", rays))
    x, y = pixel_points(size, torch.float64, rays.device).unbind(-1)
    a, b = lens_models.from_pixels(lens.beside(2), x, y)
    has_ray = finite.within(a.detach(), b.detach()) & sound[..., None, None]
    a, b = (torch.where(has_ray, value, 0.0) for value in (a, b))
    return unit(options.kind, a, b), has_ray


def unit(kind: str, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The directions (a, b, 1), (...), of unit length if depths are distances along them."""
    if kind != "ray":
        return a, b, torch.ones_like(a)
    per = 1 / (a * a + b * b + 1).sqrt()
    return a * per, b * per, per


def shares(depth: Tensor, kind: str) -> Shares:
    """The factors of depths (...), float64."""
    value = depth.detach()
    if kind == "inverse":
        there = (value >= 0) & (value < torch.inf)
        inverse = torch.where(there, depth, 1.0)
        close = inverse.detach() > 1
        return Shares(
            torch.where(close, 1 / torch.where(close, inverse, 1.0), 1.0),
            torch.where(close, 1.0, inverse),
            there,
        )
    there = value > 0
    close = value < 1
    return Shares(
        torch.where(there & close, depth, 1.0),
        torch.where(there & ~close, 1 / torch.where(there & ~close, depth, 1.0), 1.0),
        there,
    )


def _own_depth(
    kind: str, depth: Tensor, share: Shares, moved: tuple[Tensor, Tensor, Tensor], good: Tensor
) -> Tensor:
    """The depths (..., h, w) of points in the other camera, NaN where their kind has none."""
    x, y, z = moved
    if kind == "ray":
        square = x * x + y * y + z * z
        ahead = good & (square.detach() > 0)
        reach = torch.where(ahead, square, 1.0).sqrt()
    else:
        ahead = good & (z.detach() > 0)
        reach = torch.where(ahead, z, 1.0)
    if kind == "inverse":
        return torch.where(ahead, share.far / reach, torch.nan)
    endless = depth.detach() == torch.inf
    # not reach / share.far, which has no derivative at infinity
    back = torch.where(share.there & ~endless & (depth.detach() >= 1), depth, 1.0)
    return torch.where(ahead, torch.where(endless, torch.inf, reach * back), torch.nan)


def snapped(places: Tensor) -> Tensor:
    """Coordinates, those within `WHOLE` of a whole number as that number."""
    whole = places.round()
    return torch.where((places - whole).abs() <= WHOLE, whole, places)


def inside(places: Tensor, interpolation: str, height: int, width: int) -> Tensor:
    """Where no tap with weight is missing, of `snapped` places (..., 2); false for NaN."""
    sides = [
        _inside(at, interpolation, length)
        for at, length in zip(places.unbind(-1), (width, height), strict=True)
    ]
    return sides[0] & sides[1]


def _inside(at: Tensor, interpolation: str, length: int) -> Tensor:
    if interpolation == "nearest":
        at = at.round()
        return (at >= 0) & (at <= length - 1)
    low, (first, last) = at.floor(), REACH[interpolation]
    whole = (at == low) & (at >= 0) & (at <= length - 1)
    # no torch.where of masks: onnxruntime has none
    return whole | ((at != low) & (low + first >= 0) & (low + last <= length - 1))
