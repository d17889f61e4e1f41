"""Rotations of cameras, from a vector or from the angles of a view."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from warpkit.core import checks, exports
from warpkit.core.sharding import batched
from warpkit.engine.definitions.maps import matrix_of
from warpkit.geometry.arguments import floats
from warpkit.types import NumbersLike


@batched(vector=1, yaw=0, pitch=0, roll=0)
def rotation(
    *,
    vector: NumbersLike | None = None,
    yaw: NumbersLike = 0.0,
    pitch: NumbersLike = 0.0,
    roll: NumbersLike = 0.0,
) -> Tensor:
    """The matrix of a rotation: cv2.Rodrigues of a vector, or a view turned by three angles.

    vector (..., 3): the axis, times the angle in radians. Or yaw, pitch and roll, (...) each, in
    degrees: the view is turned right, up and clockwise by them, as by `warpkit view`; the rows of
    the matrix are its right, down and forward in the other camera's or the sphere's directions, as
    `from_sphere` takes them. Batches broadcast. Returns (..., 3, 3). Gradients: all orders, to all.
    Raises ValueError for a vector and angles together.

    >>> rotation(yaw=90.0).round() + 0.0  # forward is the other's right
    tensor([[ 0.,  0., -1.],
            [ 0.,  1.,  0.],
            [ 1.,  0.,  0.]])
    >>> rotation(vector=[0.0, 0.0, 3.1415927]).round() + 0.0
    tensor([[-1.,  0.,  0.],
            [ 0., -1.,  0.],
            [ 0.,  0.,  1.]])
    """
    name = "rotation"
    angles = {"yaw": yaw, "pitch": pitch, "roll": roll}
    if vector is None:
        return _of_angles(name, angles)
    for argument, value in angles.items():
        if not (isinstance(value, (int, float)) and value == 0):
            checks.fail(name, argument, "left out with a `vector`", f"{value!r:.60}")
    device, dtype = checks.result_kind(vector)
    vector = floats(name, "vector", vector, device)
    checks.check_last(name, "vector", vector, 3)
    return of_vector(vector.double()).to(dtype)


def _of_angles(name: str, values: dict[str, Any]) -> Tensor:
    device, dtype = checks.result_kind(*values.values())
    angles = {key: floats(name, key, value, device) for key, value in values.items()}
    checks.broadcast_batch(name, **{key: value.shape for key, value in angles.items()})
    turns = [value.double() for value in angles.values()]
    turns = [turn * exports.number(math.pi / 180, turn) for turn in turns]
    (cy, sy), (cp, sp), (cr, sr) = ((turn.cos(), turn.sin()) for turn in turns)
    zero = torch.zeros_like(cy)
    right, down, forward = (cy, zero, -sy), (sp * sy, cp, sp * cy), (cp * sy, -sp, cp * cy)
    leaning = (
        [cr * a + sr * b for a, b in zip(right, down, strict=True)],
        [cr * b - sr * a for a, b in zip(right, down, strict=True)],
        forward,
    )
    return matrix_of(leaning).to(dtype)


def of_vector(vector: Tensor) -> Tensor:
    """The matrix (..., 3, 3) of rotation vectors (..., 3), whose lengths are angles in radians.

    Rodrigues's formula, I + a K + b K^2, with a = sin(t) / t and b = (1 - cos(t)) / t^2. Below half
    a radian both are their series in t^2, which have all derivatives at 0 too.
    """
    x, y, z = vector.unbind(-1)
    s = x * x + y * y + z * z
    small = s < 0.25
    length = torch.where(small, 1.0, s).sqrt()
    a = torch.where(small, _series(s, 1.0, 2), length.sin() / length)
    b = torch.where(small, _series(s, 0.5, 3), (1 - length.cos()) / (length * length))
    c = 1 - b * s
    return matrix_of(
        (
            (c + b * x * x, b * x * y - a * z, b * x * z + a * y),
            (b * x * y + a * z, c + b * y * y, b * y * z - a * x),
            (b * x * z - a * y, b * y * z + a * x, c + b * z * z),
        )
    )


def _series(s: Tensor, first: float, n: int) -> Tensor:
    """first (1 - s / (n (n + 1)) (1 - s / ((n + 2) (n + 3)) ...)), to 1e-17 for s up to 1/4."""
    total = torch.ones_like(s)
    for k in range(n + 14, n - 1, -2):
        total = 1 - s / (k * (k + 1)) * total
    return first * total
