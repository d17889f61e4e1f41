"""Converts the arguments of matrix functions to float64 tensors, and their results back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from warpkit.core import checks


def as_matrix(
    name: str,
    matrix: Any,
    argument: str = "matrix",
    device: torch.device | None = None,
    rows: tuple[int, ...] = (2, 3),
) -> Tensor:
    """A validated matrix (..., 2 or 3, 3), with one of `rows`."""
    tensor = floats(name, argument, matrix, device)
    checks.check_matrix_shape(name, argument, tensor, rows)
    return tensor


def as_points(name: str, value: Any, device: torch.device | None) -> tuple[Tensor, bool]:
    """Points (..., N, 2), and whether a single point, (2,), was given."""
    points = floats(name, "points", value, device)
    checks.check_last(name, "points", points, 2)
    single = points.ndim == 1
    return (points[None] if single else points), single


def floats(
    name: str,
    argument: str,
    value: Any,
    device: torch.device | None,
    read: Callable[..., Tensor] = checks.as_float,
) -> Tensor:
    """A floating tensor on `device`; numbers become float64, the type of the computation."""
    tensor = read(name, argument, value, device, torch.float64)
    checks.check_device(name, argument, tensor, device or tensor.device, "the first tensor")
    return tensor


def as_result(matrix: Tensor, dtype: torch.dtype) -> Tensor:
    """The matrix in the caller's type, with negative zeros, which confuse, replaced by 0."""
    return (matrix + 0.0).to(dtype)
