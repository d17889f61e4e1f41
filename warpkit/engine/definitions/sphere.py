"""Equirectangular images: positions of directions, and sampling across seam and poles.

x is right, y down and z forward. A picture (..., C, H, W) has longitude atan2(x, z) along its
columns, -180 to 180 degrees from edge to edge, and latitude atan2(y, hypot(x, z)) along its rows,
-90 to 90: its centre is +z. Columns continue around the sphere, and a row beyond a pole is a row on
the other side: row -1 - k is row k, rotated by half a turn.

This definition uses plain torch operations; `engine.backends.spheres` computes it faster.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from warpkit.core import exports
from warpkit.engine.definitions.maps import rows_at
from warpkit.engine.definitions.reference import convert, reader
from warpkit.engine.definitions.rules import LIMIT, TAPS, SamplingRule, taps

POLE = 2.0**-22
"""If a direction's distance from the axis, relative to its length, is smaller, it is a pole: a
ten-thousandth of a pixel for 8192 x 4096. A float32 rotation towards a pole is off by 4e-8, and the
derivative of longitude there, 1 / 4e-8, would be that of its rounding error."""

FARTHEST = 1e100
"""The largest direction, because its square is summed and is a divisor."""


def places(x: Tensor, y: Tensor, z: Tensor, size: Sequence[int]) -> Tensor:
    """The pixels (..., 2) of directions in a picture of `size` (H, W), in float64.

    x, y, z (...), of any length. At a pole the longitude is arbitrary and has no derivative, and
    the direction (0, 0, 0) counts as a pole. A non-finite direction has no position: NaN.
    """
    height, width = size
    end = exports.number(FARTHEST, x)
    good = (x.abs() < end) & (y.abs() < end) & (z.abs() < end)
    x, y, z = (torch.where(good, value, 0.0) for value in (x, y, z))
    flat = x * x + z * z
    pole = flat <= POLE * POLE * (flat + y * y)
    fixed_x, fixed_y, fixed_z = (value.detach() + 0.0 for value in (x, y, z))  # -0 is half a turn
    # both sides of torch.where get a gradient: at a pole, that of another direction, times 0
    x, y = (torch.where(pole, 0.0, value) for value in (x, y))
    z, flat = (torch.where(pole, 1.0, value) for value in (z, flat))
    lon, lat = exports.atan2(x + 0.0, z), exports.atan2(y, flat.sqrt())  # not -0, as below
    lon = torch.where(pole, exports.atan2(fixed_x, fixed_z), lon)
    lat = torch.where(pole, exports.atan2(fixed_y, exports.hypot(fixed_x, fixed_z)), lat)
    u = lon * exports.number(width / (2 * math.pi), lon) + (width - 1) / 2
    v = lat * exports.number(height / math.pi, lat) + (height - 1) / 2
    return torch.where(good[..., None], torch.stack((u, v), dim=-1), torch.nan)


def places_of_pixels(matrix: Tensor, size: Sequence[int], sphere_size: Sequence[int]) -> Tensor:
    """The positions in a sphere's picture of pixels of `size` (h, w): (..., h, w, 2), float64.

    matrix (..., 3, 3), float64, maps (x, y, 1) to directions.
    """
    y, x = (torch.arange(n, dtype=torch.float64, device=matrix.device) for n in size)
    # a copy of the matrix for every row, as for all maps: its gradient is summed by rows first
    rows = matrix[..., None, None, :, :].expand(*matrix.shape[:-2], len(y), 1, 3, 3)
    a, b, c = rows_at(rows, x, y[:, None])
    return places(a, b, c, sphere_size)


def directions(size: Sequence[int], device: torch.device | None) -> tuple[Tensor, Tensor, Tensor]:
    """x, z (h, w) and y (h, 1) of the pixels of a picture of `size`, of length 1, in float64."""
    height, width = size
    row, column = (torch.arange(n, dtype=torch.float64, device=device) for n in size)
    lat = ((row + 0.5) / height - 0.5)[:, None] * exports.number(math.pi, row)
    lon = ((column + 0.5) / width - 0.5) * exports.number(2 * math.pi, column)
    return lat.cos() * lon.sin(), lat.sin(), lat.cos() * lon.cos()


GRID = 2.0**32
"""Positions of nearest are multiples of 1 / GRID: the pixels of a cube's faces, of their middle
lines and diagonals above all, are often ties, which the last bit of an arc tangent would decide,
another one on every machine."""


def on_grid(points: Tensor) -> Tensor:
    """Points (..., 2) for nearest, without the last bits of their positions."""
    return (points * GRID).round() / GRID


def reach(interpolation: str) -> tuple[float, float]:
    """Positions whose row is below the first number, or at least H minus the second, read beyond a
    pole."""
    count = TAPS[interpolation]
    return (-0.5, 0.5) if count == 1 else (count / 2 - 1, count / 2)


def sample(
    picture: Tensor, points: Tensor, interpolation: str, rows: tuple[int, int] | None = None
) -> Tensor:
    """picture (*I, C, H, W), with labels as bits, at points (*P, h, w, 2): (*batch, C, h, w).

    The result has the picture's type, and 0 where a point is NaN. rows: the first row of the
    picture, and the number of rows of the whole one, if no point reads other rows.
    """
    width = picture.shape[-1]
    first, height = (0, picture.shape[-2]) if rows is None else rows
    points = on_grid(points.double()) if interpolation == "nearest" else points.double()
    near = (points.abs() < LIMIT).all(-1)
    points = torch.where(near[..., None], points, 0.0)
    read = reader(picture, points.shape[:-1])
    rule = SamplingRule(interpolation, "wrap")
    total = 0
    # over both poles and back: 2 H rows, whose second half is the first one seen from behind
    for y in taps(points[..., 1], 2 * height, rule):
        behind = y.index >= height
        row = torch.where(behind, 2 * height - 1 - y.index, y.index)
        for x in taps(points[..., 0] + behind * (width / 2), width, rule):
            value = read((row - first) * width + x.index)
            if x.weight is not None and y.weight is not None:
                value = (y.weight * x.weight).to(value.dtype)[..., None, :, :] * value
            total = total + value
    return convert(torch.where(near[..., None, :, :], total, 0), picture.dtype)


def both_sides(picture: Tensor) -> Tensor:
    """A picture (..., C, H, W) of even width, continued over both poles: (..., C, 2 H, W).

    With a border that wraps along both axes, this is the sphere.
    """
    return torch.cat((picture, picture.flip(-2).roll(picture.shape[-1] // 2, -1)), dim=-2)
