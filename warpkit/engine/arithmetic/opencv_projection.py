"""OpenCV's own projection of scenes to pixels: Rodrigues' formula, and both lens models.

Everything is float64, one operation at a time, without gradients. A rotation is computed in
Python's floats, with sines from the C library.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import torch
from torch import Tensor

from warpkit.engine.arithmetic.opencv_lenses import tilts
from warpkit.engine.definitions.maps import rows_at

UNITS = (0, 4, 8)
"""Where the flattened identity (3, 3) has its ones."""
SKEW = ((5, 7), (6, 2), (1, 3))
"""Where the flattened cross products with x, y and z have -1 and 1."""
HALF_TURN = 1e-5
"""If an angle's sine is smaller, OpenCV takes the angle as 0 or 180 degrees."""


def turn_of(vector: Sequence[float]) -> tuple[list[float], list[list[float]]]:
    """The rotation (9,) for a rotation vector, and its derivatives (3, 9) by the vector."""
    x, y, z = vector
    angle = math.sqrt(x * x + y * y + z * z)
    if not math.isfinite(angle):  # Python's cosine of infinity is an error
        return [math.nan] * 9, [[math.nan] * 9 for _ in range(3)]
    if angle < sys.float_info.epsilon:
        slopes = [[0.0] * 9 for _ in range(3)]
        for row, (low, high) in zip(slopes, SKEW, strict=True):
            row[low], row[high] = -1.0, 1.0
        return [float(i in UNITS) for i in range(9)], slopes
    c, s, per = math.cos(angle), math.sin(angle), 1 / angle
    c1 = 1 - c
    r = (x * per, y * per, z * per)
    squares = [a * b for a in r for b in r]
    cross = [0.0, -r[2], r[1], r[2], 0.0, -r[0], -r[1], r[0], 0.0]
    rotation = [c * (k in UNITS) + c1 * squares[k] + s * cross[k] for k in range(9)]
    slopes = []
    for i in range(3):
        a0, a1, a2 = -s * r[i], (s - 2 * c1 * per) * r[i], c1 * per
        a3, a4 = (c - s * per) * r[i], s * per
        slope = [(k // 3 == i) * r[k % 3] + (k % 3 == i) * r[k // 3] for k in range(9)]
        row = []
        for k in range(9):
            sign = (k == SKEW[i][1]) - (k == SKEW[i][0])
            row.append(
                a0 * (k in UNITS) + a1 * squares[k] + a2 * slope[k] + a3 * cross[k] + a4 * sign
            )
        slopes.append(row)
    return rotation, slopes


def vector_of(turn: Sequence[Sequence[float]]) -> tuple[list[float], list[list[float]]]:
    """The rotation vector of an orthogonal matrix (3, 3), and its derivatives (3, 9) by the
    entries.

    For angles of 0 and 180 degrees, the derivatives are OpenCV's: halves and zeros.
    """
    r = [turn[2][1] - turn[1][2], turn[0][2] - turn[2][0], turn[1][0] - turn[0][1]]
    s = math.sqrt((r[0] * r[0] + r[1] * r[1] + r[2] * r[2]) * 0.25)
    c = min(max((turn[0][0] + turn[1][1] + turn[2][2] - 1) * 0.5, -1.0), 1.0)
    angle = math.acos(c)
    slopes = [[0.0] * 9 for _ in range(3)]
    if s < HALF_TURN:
        if c > 0:
            for row, (low, high) in zip(slopes, SKEW, strict=True):
                row[low], row[high] = -0.5, 0.5
            return [0.0] * 3, slopes
        return _half_turn(turn, angle), slopes
    per = 1 / (2 * s)
    # by the entries off the diagonal, and by the trace through the angle
    by_trace = 0.5 * (-per * c / s) * (-1 / s) * angle + 0.5 * (-1 / s) * per
    for row, number, (low, high) in zip(slopes, r, SKEW, strict=True):
        row[low], row[high] = -angle * per, angle * per
        for k in UNITS:
            row[k] = by_trace * number
    return [number * (per * angle) for number in r], slopes


def _half_turn(turn: Sequence[Sequence[float]], angle: float) -> list[float]:
    """The vector of a rotation by 180 degrees: the axis is an eigenvector with OpenCV's sign."""
    x, y, z = (math.sqrt(max((turn[i][i] + 1) * 0.5, 0.0)) for i in range(3))
    y, z = y * (-1 if turn[0][1] < 0 else 1), z * (-1 if turn[0][2] < 0 else 1)
    if abs(x) < abs(y) and abs(x) < abs(z) and (turn[1][2] > 0) != (y * z > 0):
        z = -z
    scale = angle / math.sqrt(x * x + y * y + z * z)
    return [x * scale, y * scale, z * scale]


def moved(points: Tensor, turn: Tensor, shift: Tensor) -> list[Tensor]:
    """Points (N, 3) rotated by (3, 3) and shifted by (3,), as three coordinates."""
    x, y, z = points.unbind(-1)
    return [turn[i, 0] * x + turn[i, 1] * y + turn[i, 2] * z + shift[i] for i in range(3)]


def project(
    points: list[Tensor], camera: tuple[Tensor, Tensor, Tensor, Tensor], k: Tensor
) -> Tensor:
    """cv2.projectPoints of points before the camera, three (N,), by k (14,): pixels (N, 2)."""
    fx, fy, cx, cy = camera
    x, y, z = points
    per = torch.where(z == 0, 1.0, 1 / z)
    x, y = x * per, y * per
    r2 = x * x + y * y
    r4 = r2 * r2
    r6 = r4 * r2
    a1, a2, a3 = 2 * x * y, r2 + 2 * x * x, r2 + 2 * y * y
    top = 1 + k[0] * r2 + k[1] * r4 + k[4] * r6
    per = 1 / (1 + k[5] * r2 + k[6] * r4 + k[7] * r6)
    u = x * top * per + k[2] * a1 + k[3] * a2 + k[8] * r2 + k[9] * r4
    v = y * top * per + k[2] * a3 + k[3] * a1 + k[10] * r2 + k[11] * r4
    if bool(k[12:].any()):
        a, b, w = rows_at(tilts(*k[12:].tolist())[0].to(k.device), u, v)
        per = torch.where(w == 0, 1.0, 1 / w)
        u, v = per * a, per * b
    return torch.stack((u * fx + cx, v * fy + cy), dim=-1)


def project_fisheye(
    points: list[Tensor], camera: tuple[Tensor, Tensor, Tensor, Tensor], k: Tensor, skew: Tensor
) -> Tensor:
    """cv2.fisheye.projectPoints of points before the camera, three (N,), k (4,): pixels (N, 2)."""
    fx, fy, cx, cy = camera
    x, y, z = points
    z = torch.where(z.abs() < sys.float_info.min, 1.0, z)
    x, y = x / z, y / z
    r = (x * x + y * y).sqrt()
    angle = r.atan()
    t2 = angle * angle
    t3, t4 = t2 * angle, t2 * t2
    t5, t6, t8 = t4 * angle, t3 * t3, t4 * t4
    bent = angle + k[0] * t3 + k[1] * t5 + k[2] * (t6 * angle) + k[3] * (t8 * angle)
    scale = torch.where(r > 1e-8, bent * (1 / r), 1.0)
    u, v = x * scale, y * scale
    return torch.stack(((u + skew * v) * fx + cx, v * fy + cy), dim=-1)
