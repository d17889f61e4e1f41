"""Converts the sphere to the six faces of a cube, and back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from warpkit.camera.spheres import render
from warpkit.camera.views import as_view
from warpkit.core import checks
from warpkit.core.lasting import lasting
from warpkit.core.mistakes import warn_if_not_2_to_1
from warpkit.core.numbers import check_count
from warpkit.core.sharding import batched
from warpkit.engine.backends import select_backend
from warpkit.engine.definitions import sphere as definition
from warpkit.engine.definitions.antialias import check_antialias
from warpkit.engine.definitions.labels import as_bits, as_labels
from warpkit.engine.definitions.reference import compute_dtype, convert
from warpkit.engine.definitions.rule_names import check_nearest, parse_rule
from warpkit.engine.definitions.rules import TAPS, SamplingRule, taps
from warpkit.types import Interpolation

FACES = (
    ((0, 0, -1), (0, 1, 0), (1, 0, 0)),
    ((0, 0, 1), (0, 1, 0), (-1, 0, 0)),
    ((1, 0, 0), (0, 0, -1), (0, 1, 0)),
    ((1, 0, 0), (0, 0, 1), (0, -1, 0)),
    ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    ((-1, 0, 0), (0, 1, 0), (0, 0, -1)),
)
"""+x, -x, +y (the floor), -y (the sky), +z, -z: each face's right, down and forward, which are the
rows of its rotation."""


@batched(sphere=3)
def to_cube(
    sphere: Tensor,
    side: int,
    *,
    antialias: bool | int = False,
    interpolation: Interpolation = "bilinear",
) -> Tensor:
    """Convert an equirectangular image to the six faces of a cube.

    sphere (..., C, H, W), side in pixels. Returns (..., 6, C, side, side): +x, -x, +y (the floor),
    -y (the sky), +z (forward), -z; docs/cameras.md lists their right and down directions, and other
    libraries' orders. antialias, interpolation, errors and gradients as in `from_sphere`: each face
    is a view of 90 degrees.

    >>> import torch
    >>> sphere = torch.arange(8.0).expand(1, 4, 8)
    >>> to_cube(sphere, 1).flatten()
    tensor([5.5000, 1.5000, 3.5000, 3.5000, 3.5000, 3.5000])
    """
    name = "to_cube"
    sphere = checks.check_image(name, "sphere", sphere, labels=True)
    warn_if_not_2_to_1(name, "sphere", sphere.shape[-2:])
    height = width = check_count(name, "side", side)
    rule = parse_rule(name, interpolation, "wrap", "exact")
    check_nearest(name, rule, sphere)
    antialias = check_antialias(name, antialias)
    checks.check_labels(name, "antialias", antialias, sphere.dtype, "False", antialias is False)
    turns = torch.tensor(FACES, dtype=torch.float64, device=sphere.device)
    view = as_view(name, (height, width), sphere.device, 90.0, None, turns, None, "brown")
    return render(name, sphere[..., None, :, :, :], (height, width), view, antialias, interpolation)


@batched(cube=4)
def from_cube(
    cube: Tensor, size: Sequence[int], *, interpolation: Interpolation = "bilinear"
) -> Tensor:
    """Convert the six faces of a cube to an equirectangular image.

    cube (..., 6, C, side, side), in the order of `to_cube`; size (H, W). Returns (..., C, H, W). A
    tap beyond a face's edge is interpolated on the neighbouring face, in the tap's direction.
    Errors and gradients, to the cube, as in `warpkit.remap`.

    >>> import torch
    >>> cube = torch.arange(6.0).reshape(6, 1, 1, 1)
    >>> from_cube(cube, (1, 8), interpolation="nearest")
    tensor([[[5., 1., 1., 4., 4., 0., 0., 5.]]])
    """
    name = "from_cube"
    cube = checks.check_image(name, "cube", cube, labels=True, look=False)
    if cube.ndim < 4 or cube.shape[-4] != 6 or cube.shape[-1] != cube.shape[-2]:
        checks.fail(name, "cube", "of shape (..., 6, C, side, side)", checks.shape_of(cube))
    height, width = checks.check_size(name, "size", size)
    warn_if_not_2_to_1(name, "size", (height, width))
    rule = parse_rule(name, interpolation, "replicate", "exact")
    check_nearest(name, rule, cube)
    side = cube.shape[-1]
    bits = as_bits(cube)
    faces = bits.to(compute_dtype(bits.dtype)).movedim(-4, -3)  # (..., C, 6, side, side)
    sheet = _sheet(faces, interpolation)
    points = _on_sheet(
        *definition.directions((height, width), cube.device), side, _frame(interpolation)
    )
    backend = select_backend(name, "auto", sheet, rule)
    fill = torch.zeros((), dtype=sheet.dtype, device=cube.device)
    values = convert(backend.sample(sheet, points, fill, rule), bits.dtype)
    return as_labels(values, cube.dtype)


def _frame(interpolation: str) -> int:
    """The most pixels beyond an edge that are read."""
    return max(TAPS[interpolation] // 2, 1)


def _face_of(x: Tensor, y: Tensor, z: Tensor, side: int) -> tuple[Tensor, Tensor, Tensor]:
    """The face that directions (...) hit, and the column and row in it."""
    ax, ay, az = x.abs(), y.abs(), z.abs()
    about_x, about_y = (ax >= ay) & (ax > az), (ay > ax) & (ay > az)
    ahead = torch.where(about_x, x, torch.where(about_y, y, z))
    first = torch.where(about_x, 0, torch.where(about_y, 2, 4))
    face = first + (ahead < 0)
    turns = torch.tensor(FACES, dtype=x.dtype, device=x.device)[face]
    right, down, depth = (
        turns[..., k, 0] * x + turns[..., k, 1] * y + turns[..., k, 2] * z for k in range(3)
    )
    column, row = (value / depth * (side / 2) + (side - 1) / 2 for value in (right, down))
    return face, column, row


def _on_sheet(x: Tensor, y: Tensor, z: Tensor, side: int, frame: int) -> Tensor:
    """Positions of directions (...) on faces with frames, stacked vertically: (..., 2)."""
    x, y, z = torch.broadcast_tensors(x, y, z)
    face, column, row = _face_of(x, y, z, side)
    return torch.stack((column + frame, row + frame + face * (side + 2 * frame)), dim=-1)


def _sheet(faces: Tensor, interpolation: str) -> Tensor:
    """Faces (*I, C, 6, side, side) with frames from their neighbours, stacked vertically."""
    side, frame = faces.shape[-1], _frame(interpolation)
    outer = side + 2 * frame
    order, index, weight = _frames(side, frame, interpolation, str(faces.device))
    flat = faces.flatten(-3)
    beyond = flat.index_select(-1, index.flatten()).unflatten(-1, index.shape)
    mean = beyond[..., 0, :] if weight is None else (beyond * weight.to(beyond.dtype)).sum(-2)
    sheet = torch.cat((flat, mean), dim=-1).index_select(-1, order)
    return sheet.unflatten(-1, (6 * outer, outer))


@lru_cache(maxsize=8)
@lasting
def _frames(
    side: int, frame: int, interpolation: str, device: str
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Tables for the frames: the index of each of the sheet's pixels among the pixels of the faces
    and the N pixels of the frames; for each of the latter, the pixels of the faces that it sums,
    and their weights, (taps, N).
    """
    outer = side + 2 * frame
    line = torch.arange(outer, dtype=torch.float64, device=device) - frame
    a = ((2 * line + 1) / side - 1).expand(6, outer, outer)
    b = a.mT
    turns = torch.tensor(FACES, dtype=torch.float64, device=device)[:, None, None]
    x, y, z = (a * turns[..., 0, k] + b * turns[..., 1, k] + turns[..., 2, k] for k in range(3))
    inside = (a.abs() < 1) & (b.abs() < 1)
    order = torch.empty(inside.shape, dtype=torch.int64, device=device)
    order[inside] = torch.arange(6 * side * side, device=device)
    order[~inside] = torch.arange(int((~inside).sum()), device=device) + 6 * side * side
    face, column, row = _face_of(x[~inside], y[~inside], z[~inside], side)
    # the neighbour's taps are clamped to its face: beyond it, they would be pixels of this face
    rule = SamplingRule(interpolation, "replicate")
    index, weights = [], []
    for along_y in taps(row, side, rule):
        for along_x in taps(column, side, rule):
            index.append((face * side + along_y.index) * side + along_x.index)
            if along_x.weight is not None and along_y.weight is not None:
                weights.append(along_x.weight * along_y.weight)
    return order.flatten(), torch.stack(index), torch.stack(weights) if weights else None
