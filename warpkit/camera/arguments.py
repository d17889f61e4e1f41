"""Validates the arguments of camera functions, in float64."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.core.numbers import join_or
from warpkit.engine.definitions.lens_models import COUNTS, Lens
from warpkit.geometry.arguments import as_matrix, floats
from warpkit.types import LensModel


class Names(NamedTuple):
    """The names of a camera's arguments, for errors."""

    matrix: str = "camera_matrix"
    distortion: str = "distortion"
    model: str = "model"


OWN = Names()


def as_lens(
    name: str,
    camera_matrix: Any,
    distortion: Any,
    model: Any,
    device: torch.device | None,
    names: Names = OWN,
) -> Lens:
    """The lens of camera_matrix (..., 3, 3) and distortion (..., n), whose batches broadcast.

    A distortion (1, n) or (n, 1) is one lens, without a batch.
    """
    model = checks.check_name(name, names.model, model, COUNTS)
    matrix = camera(name, camera_matrix, device, names.matrix).double()
    k = floats(name, names.distortion, distortion, device)
    counts = COUNTS[model]
    if k.ndim == 2 and 1 in k.shape and k.numel() in counts:
        k = k.flatten()  # cv2's form, not a batch
    if k.ndim < 1 or k.shape[-1] not in counts:
        wanted = f"of shape (..., n) with n of {join_or(counts)} for {names.model}={model!r}"
        checks.fail(name, names.distortion, wanted, checks.shape_of(k))
    checks.check_device(name, names.distortion, k, matrix.device, f"`{names.matrix}`")
    shapes = {names.matrix: matrix.shape[:-2], names.distortion: k.shape[:-1]}
    batch = checks.broadcast_batch(name, **shapes)
    return _lens(model, matrix.expand(*batch, 3, 3), k.double().expand(*batch, k.shape[-1]))


def as_any_lens(
    name: str,
    camera_matrix: Any,
    distortion: Any,
    model: Any,
    device: torch.device | None,
    names: Names = OWN,
) -> Lens:
    """The lens of `as_lens`; without a distortion, a pinhole or a fisheye without coefficients."""
    if distortion is not None:
        return as_lens(name, camera_matrix, distortion, model, device, names)
    model = checks.check_name(name, names.model, model, COUNTS)
    matrix = camera(name, camera_matrix, device, names.matrix).double()
    none = 4 if model == "fisheye" else 0
    return _lens(model, matrix, matrix.new_zeros((*matrix.shape[:-2], none)))


def _lens(model: LensModel, matrix: Tensor, k: Tensor) -> Lens:
    """The lens of a camera (..., 3, 3) and its coefficients (..., n)."""
    (fx, _, cx), (_, fy, cy) = (row.unbind(-1) for row in matrix[..., :2, :].unbind(-2))
    return Lens(model, fx, fy, cx, cy, k.unbind(-1))


def camera(
    name: str, value: Any, device: torch.device | None, argument: str = OWN.matrix
) -> Tensor:
    """Validates a camera matrix without skew."""
    matrix = as_matrix(name, value, argument, device, (3,))
    (a, b, _), (c, d, _), (e, f, g) = (row.unbind(-1) for row in matrix.detach().unbind(-2))
    good = (a != 0) & (b == 0) & (c == 0) & (d != 0) & (e == 0) & (f == 0) & (g == 1)
    wanted = "(fx, 0, cx), (0, fy, cy), (0, 0, 1) with fx and fy other than 0"
    checks.check_values(name, argument, ~good, wanted, matrix.detach())
    return matrix


def not_none(*values: Any) -> tuple[Any, ...]:
    """The values that are not None."""
    return tuple(value for value in values if value is not None)
