"""Solves linear systems by operations that ONNX has: it has no solver."""

from __future__ import annotations

import torch
from torch import Tensor

from warpkit.core.tracing import exports_to_onnx


def solve(matrix: Tensor, right: Tensor) -> Tensor:
    """The x of matrix @ x = right; matrix (..., n, n), right (..., n, m), which broadcast.

    No error where there is none: what comes then is no number, or a large one.
    """
    if exports_to_onnx():
        return solve_by_reflections(matrix, right)
    return torch.linalg.solve_ex(matrix, right).result


def solve_by_reflections(matrix: Tensor, right: Tensor) -> Tensor:
    """As `solve`, by Householder's reflections, written out: some 25 operations a row.

    They need no pivots, which would be decisions about values. matrix (..., n, n); right
    (..., n, m).
    """
    rest = torch.cat((matrix, right.expand(*matrix.shape[:-1], right.shape[-1])), -1)
    count, rows = matrix.shape[-1], []
    for _ in range(count):
        column = rest[..., :, :1]
        head = column[..., :1, :]
        length = (column * column).sum((-2, -1), keepdim=True).sqrt()
        length = torch.where(head < 0, -length, length)  # away from the head: no digits are lost
        normal = torch.cat((head + length, column[..., 1:, :]), -2)
        square = (normal * normal).sum((-2, -1), keepdim=True)
        rest = rest - normal * (2 / square) * (normal.mT @ rest)
        rows.append(rest[..., :1, :])
        rest = rest[..., 1:, 1:]
    found = rows[-1][..., 1:] / rows[-1][..., :1]
    for row in reversed(rows[:-1]):
        known = found.shape[-2]
        top = (row[..., 1 + known :] - row[..., 1 : 1 + known] @ found) / row[..., :1]
        found = torch.cat((top, found), -2)
    return found
