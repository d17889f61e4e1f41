"""Gradients to a matrix whose horizon passes close to an output pixel.

Points there are up to 2^31 pixels away, where "replicate" repeats one pixel: the gradient is 0, and
the matrix multiplies what rounding leaves of it by up to 1e20.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import warpkit as wk
from tests.support.inputs import noise
from tests.support.tolerances import TOLERANCE

SIZE, PIXEL = (40, 36), (20, 13)
IMAGE, COTANGENT = noise(3, 48, 45), noise(3, *SIZE, seed=1)
WAYS = ("bilinear", "bicubic", "lanczos4")


def matrix_near(distance: float) -> Tensor:
    """Destination -> source; its divisor at PIXEL is `distance`."""
    rows = [[1.0, 0.1, 3.0], [0.05, 1.0, 2.0], [0.02, 0.013, 0.0]]
    rows[2][2] = distance - (PIXEL[0] * rows[2][0] + PIXEL[1] * rows[2][1])
    return torch.tensor(rows, dtype=torch.float64)


def loss(matrix: Tensor, image: Tensor, interpolation: str, backend: str) -> Tensor:
    options = {"interpolation": interpolation, "border": "replicate", "backend": backend}
    found = wk.warp_perspective(image, matrix, size=SIZE, inverse=True, **options)
    return (found * COTANGENT.to(found.dtype)).double().sum()


def gradient(distance: float, image: Tensor, interpolation: str, backend: str) -> Tensor:
    matrix = matrix_near(distance).requires_grad_()
    return torch.autograd.grad(loss(matrix, image, interpolation, backend), matrix)[0]


@pytest.mark.parametrize("interpolation", WAYS)
@pytest.mark.parametrize("distance", [1e-5, 1e-7])
def test_the_definitions_gradient_is_the_slope(distance, interpolation):
    found = gradient(distance, IMAGE, interpolation, "reference")
    step, slope = distance * 1e-3, torch.empty(9, dtype=torch.float64)
    for n in range(9):
        move = torch.zeros(9, dtype=torch.float64).index_fill(0, torch.tensor(n), step).view(3, 3)
        ahead, behind = (
            loss(matrix_near(distance) + sign * move, IMAGE, interpolation, "reference")
            for sign in (1, -1)
        )
        slope[n] = (ahead - behind) / (2 * step)
    error = (found.flatten() - slope).abs().max() / slope.abs().max()
    assert error <= TOLERANCE["slope near a horizon"]


@pytest.mark.parametrize("interpolation", WAYS)
@pytest.mark.parametrize("distance", [1e-3, 1e-5, 3e-8])
def test_kernels_give_the_definitions_gradient(distance, interpolation):
    truth = gradient(distance, IMAGE, interpolation, "reference")
    for dtype in (torch.float64, torch.float32):
        for backend in ("cpu", "reference"):
            for _ in range(2):
                found = gradient(distance, IMAGE.to(dtype), interpolation, backend)
                error = (found - truth).abs().max() / truth.abs().max()
                assert error <= TOLERANCE[f"cpu {dtype}"], (backend, dtype)
