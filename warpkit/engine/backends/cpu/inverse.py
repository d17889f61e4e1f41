"""Inverts matrices, with gradients, by the native library: torch's operations take 100 us each."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.backends.cpu import calls

MATRICES = calls.Family("matrix")
GIVEN, SUMS, OUT = (MATRICES.fields[name] for name in ("matrices", "sums", "out"))


@lru_cache(maxsize=64)
def _block(task: str, rows: int, double: bool, singular_to_zero: bool) -> np.ndarray:
    numbers = {"rows": rows, "wide": double, "singular_to_zero": singular_to_zero}
    return MATRICES.block(task, numbers)


def invert(matrix: Tensor, singular_to_zero: bool = False) -> Tensor:
    """As `maps.inverse_map` of float matrices (..., 2 or 3, 3) in float64, bit for bit."""
    given = matrix.detach().contiguous()
    if given.dtype not in (torch.float64, torch.float32):
        given = given.float()
    out = torch.empty_like(given, dtype=torch.float64)
    block = _block("invert", given.shape[-2], given.dtype == torch.float64, singular_to_zero)
    _run(block, given, 0, out)
    return out


def invert_numbers(matrix: np.ndarray, singular_to_zero: bool = False) -> np.ndarray:
    """The same for one array (2 or 3, 3), float64."""
    given, out = np.ascontiguousarray(matrix), np.empty(matrix.shape)
    numbers = _block("invert", given.shape[-2], True, singular_to_zero).copy()
    numbers[GIVEN], numbers[OUT] = calls.address_of(given), calls.address_of(out)
    calls.launch(numbers, 0, 1, given.size)
    return out


def inverse_vjp(to_source: Tensor, grad: Tensor, dtype: torch.dtype) -> Tensor:
    """As `inverse.inverse_vjp`, bit for bit, in the type of the matrix.

    to_source and grad (..., 2 or 3, 3), float64.
    """
    double = dtype == torch.float64
    grad, to_source = grad.contiguous(), to_source.detach().contiguous()
    out = torch.empty_like(grad, dtype=dtype if double else torch.float32)
    block = _block("inverse_vjp", grad.shape[-2], double, False)
    _run(block, to_source, grad.data_ptr(), out)
    return out.to(dtype)


def _run(block: np.ndarray, given: Tensor, sums: int, out: Tensor) -> None:
    """A task for `given` (..., 2 or 3, 3) and the sums at an address, with the result in `out`."""
    numbers, values = block.copy(), given.numel()
    numbers[GIVEN], numbers[SUMS], numbers[OUT] = given.data_ptr(), sums, out.data_ptr()
    calls.launch(numbers, 0, values // (3 * given.shape[-2]), values)
