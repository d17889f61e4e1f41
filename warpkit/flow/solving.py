"""Solves linear systems by operations that ONNX has: it has no solver."""

from __future__ import annotations

import torch
from torch import Tensor

from warpkit.core.tracing import exports_to_onnx


def solve(matrix: Tensor, right: Tensor) -> Tensor:
    """The x of matrix @ x = right; matrix (..., n, n), right (..., n, m), which broadcast.

    A singular matrix raises no error: the result is then NaN or large.
    """
    if exports_to_onnx():
        return solve_by_reflections(matrix, right)
    return torch.linalg.solve_ex(matrix, right).result


def solve_by_reflections(matrix: Tensor, right: Tensor) -> Tensor:
    """The x of matrix @ x = right by explicit Householder reflections, about 25 operations per row.

    They need no pivoting, which depends on values. matrix (..., n, n); right (..., n, m).
    """
    rest = torch.cat((matrix, right.expand(*matrix.shape[:-1], right.shape[-1])), -1)
    count, rows = matrix.shape[-1], []
    for _ in range(count):
        column = rest[..., :, :1]
        head = column[..., :1, :]
        length = (column * column).sum((-2, -1), keepdim=True).sqrt()
        length = torch.where(head < 0, -length, length)  # so that no digits cancel
        normal = torch.cat((head + length, column[..., 1:, :]), -2)
        square = (normal * normal).sum((-2, -1), keepdim=True)
        # no product with a transpose: onnxruntime 1.23 fuses it into one without a float64 kernel
        along = (normal * rest).sum(-2, keepdim=True)
        rest = rest - normal * (2 / square) * along
        rows.append(rest[..., :1, :])
        rest = rest[..., 1:, 1:]
    solution = rows[-1][..., 1:] / rows[-1][..., :1]
    for row in reversed(rows[:-1]):
        solved = solution.shape[-2]
        top = (row[..., 1 + solved :] - row[..., 1 : 1 + solved] @ solution) / row[..., :1]
        solution = torch.cat((top, solution), -2)
    return solution
