"""Inverts matrices, with gradients, by the native library: torch's operations take 100 us each."""

from __future__ import annotations

from math import isnan

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.cpu import calls

MATRICES = calls.Family("matrix")
GIVEN, SUMS, OUT = (MATRICES.fields[name] for name in ("matrices", "sums", "out"))


def forward(singular: float, matrix: Tensor) -> tuple[Tensor, Tensor]:
    """As `maps.inverse_map` of float64 matrices (..., 2 or 3, 3); also the result again.

    singular: NaN or 0.
    """
    to_source = invert(matrix, singular_to_zero=not isnan(singular))
    return to_source, to_source.detach()


def backward(
    singular: float,
    to_source: Tensor,
    grads: tuple[Tensor, ...],
    tensors: tuple[Tensor, ...],
    wanted: tuple[bool, ...],
) -> list[Tensor]:
    """The gradient of matrices (..., 2 or 3, 3) from that of their inverses."""
    return [inverse_vjp(to_source, grads[0], torch.float64)]


BLOCKS = {
    (task, rows, double, to_zero): MATRICES.block(
        task, {"rows": rows, "wide": double, "singular_to_zero": to_zero}
    )
    for task in ("invert", "inverse_vjp")
    for rows in (2, 3)
    for double in (False, True)
    for to_zero in (False, True)
}


def invert(matrix: Tensor, singular_to_zero: bool = False) -> Tensor:
    """As `maps.inverse_map` of float matrices (..., 2 or 3, 3) in float64, bit for bit."""
    given = matrix.detach().contiguous()
    if given.dtype not in (torch.float64, torch.float32):
        given = given.float()
    out, rows = torch.empty_like(given, dtype=torch.float64), given.shape[-2]
    block = BLOCKS["invert", rows, given.dtype == torch.float64, singular_to_zero].copy()
    block[GIVEN], block[OUT] = calls.address(given), calls.address(out)
    values = given.numel()
    calls.launch(block, 0, values // (3 * rows), values)
    return out


def invert_numbers(matrix: np.ndarray, singular_to_zero: bool = False) -> np.ndarray:
    """The same for one array (2 or 3, 3), float64."""
    given, out = np.ascontiguousarray(matrix), np.empty(matrix.shape)
    numbers = BLOCKS["invert", given.shape[-2], True, singular_to_zero].copy()
    numbers[GIVEN], numbers[OUT] = calls.address_of(given), calls.address_of(out)
    calls.launch(numbers, 0, 1, given.size)
    return out


def inverse_vjp(to_source: Tensor, grad: Tensor, dtype: torch.dtype) -> Tensor:
    """As `maps.inverse_vjp`, bit for bit, in the type of the matrix.

    to_source and grad (..., 2 or 3, 3), float64.
    """
    double = dtype == torch.float64
    grad, to_source = grad.contiguous(), to_source.detach().contiguous()
    out = torch.empty_like(grad, dtype=dtype if double else torch.float32)
    block = BLOCKS["inverse_vjp", grad.shape[-2], double, False].copy()
    block[GIVEN], block[SUMS] = calls.address(to_source), calls.address(grad)
    block[OUT] = calls.address(out)
    calls.launch(block, 0, grad.numel() // (3 * grad.shape[-2]), grad.numel())
    return out.to(dtype)
