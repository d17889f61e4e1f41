"""The derivatives of projections that cv2 returns with the pixels, by the chain rule."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from warpkit.engine.definitions import lens_models
from warpkit.engine.definitions.lens_models import Lens
from warpkit.engine.definitions.maps import rows_at

Parts = tuple[Tensor, Tensor, Tensor, Tensor]


def of_projection(
    scene: Tensor, seen: list[Tensor], turning: Tensor, lens: Lens, skew: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The derivatives of pixels with respect to pose, camera, skew and lens, without a gradient.

    scene: points (N, 3); seen: the same in the camera's coordinates, three (N,); turning (3, 3, 3):
    the derivative of the rotation matrix with respect to its vector. Returns (2N, 6), for rotation
    vector and translation, (2N, 4), for fx, fy, cx and cy, (2N, 1) and (2N, n).
    """
    x, y, z = seen
    z = torch.where(z == 0, 1.0, z)
    x, y = x / z, y / z
    zero, one = torch.zeros_like(x), torch.ones_like(x)
    u, v = lens_models.bend(lens, x, y)
    by_lens = _by_lens(lens, x, y)
    straight = _matrix(((one, zero), (zero, one)))
    if len(lens.k) == 14:
        u, v, straight, tilting = _tilted(lens, u, v)
        by_lens = torch.cat((straight @ by_lens, tilting), dim=-1)
    to_pixels = _matrix(((lens.fx * one, lens.fx * skew * one), (zero, lens.fy * one)))
    ux, uy, vx, vy = lens_models.slopes(lens, x, y)
    bent = to_pixels @ straight @ _matrix(((ux, uy), (vx, vy)))
    by_shift = bent @ _matrix(((1 / z, zero, -x / z), (zero, 1 / z, -y / z)))
    by_vector = by_shift @ torch.einsum("jik,nk->nij", turning, scene)
    by_camera = _matrix(((u + skew * v, zero, one, zero), (zero, v, zero, one)))
    by_skew = _matrix(((lens.fx * v,), (zero,)))
    parts = (torch.cat((by_vector, by_shift), -1), by_camera, by_skew, to_pixels @ by_lens)
    pose, camera, tilt, k = (part.flatten(0, 1) for part in parts)
    return pose, camera, tilt, k


def _matrix(rows: tuple[tuple[Tensor, ...], ...]) -> Tensor:
    """Entries (N,) as matrices (N, rows, columns)."""
    return torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2)


def _by_lens(lens: Lens, x: Tensor, y: Tensor) -> Tensor:
    """The derivative of `lens_models.bend` with respect to the coefficients without tilt, (N, 2,
    n)."""
    q = x * x + y * y
    if lens.model == "fisheye":
        r = q.sqrt()
        angle = r.atan()
        per = torch.where(r > 0, angle / torch.where(r > 0, r, 1.0), 1.0)
        factors = [per * angle ** (2 * i) for i in range(1, 5)]
        return _matrix((tuple(x * f for f in factors), tuple(y * f for f in factors)))
    zero, cross = torch.zeros_like(x), 2 * x * y
    k = (*lens.k, *[torch.zeros_like(lens.fx)] * (8 - len(lens.k)))
    bottom = 1 + ((k[7] * q + k[6]) * q + k[5]) * q
    factor = (1 + ((k[4] * q + k[1]) * q + k[0]) * q) / bottom
    powers = [q, q * q, q * q * q]
    radial = [(x * p / bottom, y * p / bottom) for p in powers]
    below = [(-u * factor, -v * factor) for u, v in radial]
    tangential = [(cross, q + 2 * y * y), (q + 2 * x * x, cross)]
    prism = [(q, zero), (q * q, zero), (zero, q), (zero, q * q)]
    columns = [*radial[:2], *tangential, radial[2], *below, *prism][: min(len(lens.k), 12)]
    us, vs = zip(*columns, strict=True)
    return _matrix((us, vs))


def _tilted(lens: Lens, u: Tensor, v: Tensor) -> Parts:
    """Directions (N,) on the tilted sensor, and their derivatives.

    These are with respect to the untilted directions, (N, 2, 2), and to both angles, (N, 2, 2).
    """
    matrix = lens_models.tilt(lens)
    a, b, w = rows_at(matrix, u, v)
    w = torch.where(w == 0, 1.0, w)
    a, b = a / w, b / w
    straight = [
        tuple((matrix[i, j] - shown * matrix[2, j]) / w for j in range(2))
        for i, shown in enumerate((a, b))
    ]
    columns = []
    for slope in tilting(*(float(t) for t in lens.k[12:])):
        da, db, dw = rows_at(slope.to(u), u, v)
        columns.append(((da - a * dw) / w, (db - b * dw) / w))
    us, vs = zip(*columns, strict=True)
    return a, b, _matrix(tuple(straight)), _matrix((us, vs))


def tilting(tx: float, ty: float) -> tuple[Tensor, Tensor]:
    """The derivative of `lens_models.tilt` with respect to each of its angles, (3, 3)."""
    (cx, sx), (cy, sy) = ((math.cos(t), math.sin(t)) for t in (tx, ty))
    about_x = _of((1, 0, 0), (0, cx, sx), (0, -sx, cx))
    about_y = _of((cy, 0, -sy), (0, 1, 0), (sy, 0, cy))
    turn = about_y @ about_x
    slopes = (
        about_y @ _of((0, 0, 0), (0, -sx, cx), (0, -cx, -sx)),
        _of((-sy, 0, -cy), (0, 0, 0), (cy, 0, -sy)) @ about_x,
    )
    first, second = (
        _onto_sensor(turn, 1.0) @ slope + _onto_sensor(slope, 0.0) @ turn for slope in slopes
    )
    return first, second


def _onto_sensor(turn: Tensor, corner: float) -> Tensor:
    """The projection onto a rotated sensor, (3, 3); with the corner 0, its derivative."""
    a, b, c = (float(turn[i, 2]) for i in (2, 0, 1))
    return _of((a, 0, -b), (0, a, -c), (0, 0, corner))


def _of(*rows: tuple[float, ...]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64, device="cpu")
