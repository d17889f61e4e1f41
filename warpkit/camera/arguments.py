"""Validates the arguments of camera functions, in float64."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.core.numbers import listed
from warpkit.engine.definitions.lens_models import COUNTS, Lens
from warpkit.geometry.arguments import as_matrix, floats


def as_lens(
    name: str, camera_matrix: Any, distortion: Any, model: Any, device: torch.device | None
) -> Lens:
    """The lens of camera_matrix (..., 3, 3) and distortion (..., n), whose batches broadcast.

    A distortion (1, n) or (n, 1) is one lens, without a batch.
    """
    model = checks.check_name(name, "model", model, COUNTS)
    matrix = camera(name, camera_matrix, device).double()
    k = floats(name, "distortion", distortion, device)
    counts = COUNTS[model]
    if k.ndim == 2 and 1 in k.shape and k.numel() in counts:
        k = k.flatten()  # cv2's form, not a batch
    if k.ndim < 1 or k.shape[-1] not in counts:
        wanted = f"of shape (..., n) with n of {listed(counts)} for model={model!r}"
        checks.fail(name, "distortion", wanted, checks.shape_of(k))
    checks.check_device(name, "distortion", k, matrix.device, "`camera_matrix`")
    batch = checks.broadcast_batch(name, camera_matrix=matrix.shape[:-2], distortion=k.shape[:-1])
    matrix, k = matrix.expand(*batch, 3, 3), k.double().expand(*batch, k.shape[-1])
    (fx, _, cx), (_, fy, cy) = (row.unbind(-1) for row in matrix[..., :2, :].unbind(-2))
    return Lens(model, fx, fy, cx, cy, k.unbind(-1))


def camera(name: str, value: Any, device: torch.device | None) -> Tensor:
    """Validates a camera matrix without skew."""
    matrix = as_matrix(name, value, "camera_matrix", device, (3,))
    (a, b, _), (c, d, _), (e, f, g) = (row.unbind(-1) for row in matrix.detach().unbind(-2))
    good = (a != 0) & (b == 0) & (c == 0) & (d != 0) & (e == 0) & (f == 0) & (g == 1)
    wanted = "(fx, 0, cx), (0, fy, cy), (0, 0, 1) with fx and fy other than 0"
    checks.check_values(name, "camera_matrix", ~good, wanted, matrix.detach())
    return matrix


def given(*values: Any) -> tuple[Any, ...]:
    """The values that are not None."""
    return tuple(value for value in values if value is not None)
