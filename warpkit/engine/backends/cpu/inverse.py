"""Inverses of matrices, and their gradient, by the library: torch's operations cost 100 us each."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.backends.cpu import calls

MATRICES = calls.Family("matrix")
GIVEN, SUMS, OUT = (MATRICES.fields[name] for name in ("matrices", "sums", "out"))


@lru_cache(maxsize=64)
def _block(task: str, rows: int, wide: bool, singular_to_zero: bool) -> np.ndarray:
    numbers = {"rows": rows, "wide": wide, "singular_to_zero": singular_to_zero}
    return MATRICES.block(task, numbers)


def invert(matrix: Tensor, singular_to_zero: bool = False) -> Tensor:
    """As `maps.inverse_map` of float matrices (..., 2 or 3, 3) in float64, bit for bit."""
    wide = matrix.dtype == torch.float64
    given = (matrix if wide else matrix.float()).detach().contiguous()
    out = torch.empty(matrix.shape, dtype=torch.float64, device="cpu")
    _run("invert", wide, singular_to_zero, given, 0, out)
    return out


def inverse_vjp(to_source: Tensor, grad: Tensor, dtype: torch.dtype) -> Tensor:
    """As `inverse.inverse_vjp`, bit for bit, in the type of the matrix.

    to_source and grad (..., 2 or 3, 3), float64.
    """
    real = torch.float64 if dtype == torch.float64 else torch.float32
    out = torch.empty(grad.shape, dtype=real, device="cpu")
    grad = grad.contiguous()
    _run("inverse_vjp", dtype == torch.float64, False, to_source.contiguous(), grad.data_ptr(), out)
    return out.to(dtype)


def _run(
    task: str, wide: bool, singular_to_zero: bool, given: Tensor, sums: int, out: Tensor
) -> None:
    """A task of given (..., 2 or 3, 3), and of sums by their address."""
    rows = given.shape[-2]
    numbers, count = _block(task, rows, wide, singular_to_zero).copy(), given.numel() // (3 * rows)
    numbers[GIVEN], numbers[SUMS], numbers[OUT] = given.data_ptr(), sums, out.data_ptr()
    calls.launch(numbers, 0, count, given.numel())
