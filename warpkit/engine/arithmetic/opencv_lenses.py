"""OpenCV's own lens computations: iterations that stop early, and fixed-point maps.

Points (..., 2) and directions are float64; nothing here has gradients.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.engine.definitions.maps import rows_at
from warpkit.engine.definitions.rounding import saturate16, to_int32, two_product, two_sum

Rows = tuple[tuple[float, ...], ...]
NOWHERE = -1e6
"""Both coordinates of a fisheye point that OpenCV does not find."""


class Criteria(NamedTuple):
    """cv2.TermCriteria: when an iteration ends."""

    steps: int | None
    error: float | None
    """In pixels; for the angle of a fisheye, in radians."""


BROWN_AT_ONCE = 8
"""Columns of a brown lens's map that OpenCV's AVX2 code computes together; one for a fisheye."""
FIVE_STEPS = Criteria(5, None)
FISHEYE_STEPS = Criteria(10, 1e-8)
MOST_STEPS = 10_000
"""The limit if only an error is given, which may never be reached."""


def undistort(points: Tensor, camera: Tensor, k: Tensor, criteria: Criteria) -> Tensor:
    """cv2.undistortPoints' fixed-point iteration: pixels (N, 2) to directions (N, 2).

    camera (3, 3), k (14,). If an error is given, a step that increases the error is rejected, and
    the following ones are half as long.
    """
    k1, k2, p1, p2, k3, k4, k5, k6, s1, s2, s3, s4 = k[:12]
    fx, fy, cx, cy = camera[0, 0], camera[1, 1], camera[0, 2], camera[1, 2]
    px, py = points.unbind(-1)
    raw_x, raw_y = (px - cx) * (1 / fx), (py - cy) * (1 / fy)
    x0, y0 = raw_x, raw_y
    tilt, untilt = tilts(*k[12:].tolist()) if bool(k[12:].any()) else (None, None)
    if untilt is not None:
        a, b, w = rows_at(untilt.to(k.device), x0, y0)
        per = torch.where(w != 0, 1 / w, 1.0)
        x0, y0 = per * a, per * b
    x, y = x0, y0
    active = torch.ones_like(x, dtype=torch.bool)
    error, share = torch.full_like(x, math.inf), torch.ones_like(x)
    for _ in range(MOST_STEPS if criteria.steps is None else criteria.steps):
        if criteria.error is not None:
            active = active & ~(error < criteria.error)
        if not bool(active.any()):
            break
        q = x * x + y * y
        factor_inverse = (1 + ((k6 * q + k5) * q + k4) * q) / (1 + ((k3 * q + k2) * q + k1) * q)
        behind = factor_inverse < 0  # OpenCV gives up on these
        dx = 2 * p1 * x * y + p2 * (q + 2 * x * x) + s1 * q + s2 * q * q
        dy = p1 * (q + 2 * y * y) + 2 * p2 * x * y + s3 * q + s4 * q * q
        new_x = (1 - share) * x + share * (x0 - dx) * factor_inverse
        new_y = (1 - share) * y + share * (y0 - dy) * factor_inverse
        better = active
        if criteria.error is not None:
            u, v = _shown(new_x, new_y, k, tilt)
            before, error = error, torch.hypot(fx * u + cx - px, fy * v + cy - py)
            better = active & ~(error > before)
            share = torch.where(better, share, share / 2)
        x, y = torch.where(better, new_x, x), torch.where(better, new_y, y)
        given_up = active & behind
        x, y = torch.where(given_up, raw_x, x), torch.where(given_up, raw_y, y)
        active = active & ~behind
    return torch.stack((x, y), dim=-1)


def tilts(tx: float, ty: float) -> tuple[Tensor, Tensor]:
    """The perspective (3, 3) of a tilted sensor, and its inverse, in OpenCV's operations.

    Sines come from the C library, and sums go from left to right: a last bit moves a region by a
    pixel if its corner is on a pixel.
    """
    (cx, sx), (cy, sy) = ((math.cos(t), math.sin(t)) for t in (tx, ty))
    turn = _product(
        ((cy, 0.0, -sy), (0.0, 1.0, 0.0), (sy, 0.0, cy)),
        ((1.0, 0.0, 0.0), (0.0, cx, sx), (0.0, -sx, cx)),
    )
    a, b, c = turn[2][2], turn[0][2], turn[1][2]
    per = 1 / a if a else math.inf
    there = _product(((a, 0.0, -b), (0.0, a, -c), (0.0, 0.0, 1.0)), turn)
    flat = (per, 0.0, per * b), (0.0, per, per * c), (0.0, 0.0, 1.0)
    back = _product(tuple(zip(*turn, strict=True)), flat)
    return torch.tensor(there, dtype=torch.float64, device="cpu"), torch.tensor(
        back, dtype=torch.float64, device="cpu"
    )


def _product(a: Rows, b: Rows) -> Rows:
    """The product of two matrices with three rows each."""
    columns = tuple(zip(*b, strict=True))
    return tuple(tuple(u[0] * v[0] + u[1] * v[1] + u[2] * v[2] for v in columns) for u in a)


def _shown(x: Tensor, y: Tensor, k: Tensor, tilt: Tensor | None) -> tuple[Tensor, Tensor]:
    """Applies the brown model, to compute the error of a step.

    x and y (N,), directions; each of k and tilt, float64.
    """
    k1, k2, p1, p2, k3, k4, k5, k6, s1, s2, s3, s4 = k[:12]
    q = x * x + y * y
    factor = (1 + ((k3 * q + k2) * q + k1) * q) / (1 + ((k6 * q + k5) * q + k4) * q)
    u = x * factor + 2 * p1 * x * y + p2 * (q + 2 * x * x) + s1 * q + s2 * q * q
    v = y * factor + p1 * (q + 2 * y * y) + 2 * p2 * x * y + s3 * q + s4 * q * q
    if tilt is None:
        return u, v
    a, b, w = rows_at(tilt.to(k.device), u, v)
    per = torch.where(w != 0, 1 / w, 1.0)
    return per * a, per * b


def undistort_fisheye(directions: Tensor, k: Tensor, criteria: Criteria) -> tuple[Tensor, Tensor]:
    """cv2.fisheye.undistortPoints' Newton iteration of the angle: directions (N, 2), k (4,).

    Returns ideal directions (N, 2), and which ones were found, (N,).
    """
    k1, k2, k3, k4 = k
    bent = directions.square().sum(-1).sqrt().clamp(max=math.pi / 2)
    angle, converged = bent, torch.zeros_like(bent, dtype=torch.bool)
    moving = bent.abs() > 1e-8 if criteria.error is not None else torch.ones_like(converged)
    for _ in range(MOST_STEPS if criteria.steps is None else criteria.steps):
        t2 = angle * angle
        t4 = t2 * t2
        t6, t8 = t4 * t2, t4 * t4
        a, b, c, d = k1 * t2, k2 * t4, k3 * t6, k4 * t8
        step = (angle * (1 + a + b + c + d) - bent) / (1 + 3 * a + 5 * b + 7 * c + 9 * d)
        active = moving & ~converged
        if not bool(active.any()):
            break
        angle = torch.where(active, angle - step, angle)
        if criteria.error is not None:
            converged = converged | (active & (step.abs() < criteria.error))
    scale = torch.where(moving, angle.tan() / torch.where(bent > 0, bent, 1.0), 0.0)
    flipped = (bent > 0) & (angle < 0)
    good = (converged | ~moving | (criteria.error is None)) & ~flipped
    return directions * scale[..., None], good


def fused(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """The correction that turns a b + c in three rounded float64 operations into one rounding.

    OpenCV fuses the last step of its maps if the CPU can, so a pixel at source position 0 gets
    4e-16.

    a, b, c (N,), float64.
    """
    product, lost = two_product(a, b)
    lost = lost + two_sum(product, c)[1]
    return torch.where(lost.isfinite(), lost, 0.0)


def fixed_map(points: Tensor, at_once: int = 0) -> tuple[Tensor, Tensor]:
    """Points (h, w, 2), float64, as CV_16SC2 and CV_16UC1: pixels (h, w, 2), and 1/32 parts.

    at_once: columns that OpenCV computes together. In these, pixels outside int16's range saturate;
    in the remaining columns they wrap around.
    """
    steps = to_int32(points * 32)
    parts, pixels = steps & 31, steps >> 5
    if at_once:
        width = points.shape[-2]
        column = torch.arange(width, device=points.device)[:, None]
        pixels = torch.where(column < width // at_once * at_once, saturate16(pixels), pixels)
    return pixels.to(torch.int16), (parts[..., 1] * 32 + parts[..., 0]).to(torch.uint16)


def from_fixed_map(pixels: Tensor, table: Tensor | None) -> Tensor:
    """The points (h, w, 2), float64, of a map of pixels (h, w, 2) and 1/32 parts (h, w)."""
    points = pixels.double()
    if table is None:
        return points
    parts = table.long() & 1023  # 5 bits of y, 5 bits of x
    return points + torch.stack((parts & 31, parts >> 5), dim=-1) / 32
