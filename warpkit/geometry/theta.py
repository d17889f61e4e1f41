"""Converts pixel matrices to the thetas of torch.nn.functional.affine_grid, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from warpkit.core import checks
from warpkit.core.mistakes import warn_if_16_bits
from warpkit.core.sharding import batched
from warpkit.engine.definitions.maps import inverse_of_theta, theta_of_inverse
from warpkit.engine.operators.inverse import inverse_map
from warpkit.geometry.arguments import as_matrix, as_result
from warpkit.types import MatrixLike


@batched(matrix=2)
def to_theta(
    matrix: MatrixLike,
    size_in: Sequence[int],
    size_out: Sequence[int],
    *,
    align_corners: bool = False,
) -> Tensor:
    """Convert a pixel matrix to the theta of torch.nn.functional.affine_grid.

    matrix (..., 2, 3) or (..., 3, 3), source -> destination pixels; size_in and size_out (H, W) of
    the source and the destination. Returns the same shape, destination -> source in [-1, 1].
    Pass the same align_corners to affine_grid and grid_sample. Gradients: all orders.

    >>> to_theta([[1, 0, 1], [0, 1, 0]], (4, 4), (4, 4))
    tensor([[ 1.0000,  0.0000, -0.5000],
            [ 0.0000,  1.0000,  0.0000]])
    """
    name = "to_theta"
    _, dtype = checks.result_kind(matrix)
    matrix = as_matrix(name, matrix)
    size_in, size_out = _sides(name, size_in, size_out, align_corners)
    inverse = inverse_map(matrix.double())
    checks.check_values(name, "matrix", inverse.isnan().any(-1).any(-1), "invertible")
    theta = theta_of_inverse(inverse, size_in, size_out, align_corners)
    return as_result(theta, dtype)


@batched(theta=2)
def from_theta(
    theta: MatrixLike,
    size_in: Sequence[int],
    size_out: Sequence[int],
    *,
    align_corners: bool = False,
) -> Tensor:
    """Convert a theta of affine_grid to the pixel matrix, source -> destination.

    theta (..., 2, 3) or (..., 3, 3), destination -> source in [-1, 1]; size_in and size_out (H, W)
    of the source and the destination. Returns the same shape. The inverse of `to_theta`, with
    the same errors. Gradients: all orders.

    >>> from_theta([[1, 0, -0.5], [0, 1, 0]], (4, 4), (4, 4))
    tensor([[1., 0., 1.],
            [0., 1., 0.]])
    """
    name = "from_theta"
    _, dtype = checks.result_kind(theta)
    original, theta = theta, as_matrix(name, theta, "theta")
    size_in, size_out = _sides(name, size_in, size_out, align_corners)
    if isinstance(original, Tensor):
        warn_if_16_bits(
            name, "theta", original, [max(sides) for sides in zip(size_in, size_out, strict=True)]
        )
    matrix = inverse_map(inverse_of_theta(theta.double(), size_in, size_out, align_corners))
    checks.check_values(name, "theta", matrix.isnan().any(-1).any(-1), "invertible")
    return as_result(matrix, dtype)


def _sides(
    name: str, size_in: Any, size_out: Any, align_corners: bool
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Both sizes, validated."""
    checks.check_bool(name, "align_corners", align_corners)
    return (
        _side(name, "size_in", size_in, align_corners),
        _side(name, "size_out", size_out, align_corners),
    )


def _side(name: str, argument: str, value: Any, align_corners: bool) -> tuple[int, int]:
    size = checks.check_size(name, argument, value)
    if align_corners and min(size) < 2:
        checks.fail(name, argument, "at least 2 pixels a side with align_corners=True", size)
    return size
