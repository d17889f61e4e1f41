"""The backends' inverses of matrices, compared bit for bit with `maps.inverse_map`."""

from __future__ import annotations

import pytest
import torch

from tests.support.inputs import noise
from warpkit.engine import cpu
from warpkit.engine.cpu import opencv as cpu_opencv
from warpkit.engine.definitions import maps

WILD = [0.0, 1.0, -1.0, 0.5, 1e5, 1e155, 1e-160, 5e-324, 1e300, torch.inf, torch.nan, 3.0, 7.0]


def batches(rows: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    index = torch.randint(len(WILD), (1000, rows, 3), generator=generator)
    return {
        "many": noise(40, 5, rows, 3),
        "one": noise(rows, 3, seed=1),
        "one in a batch": noise(1, 1, rows, 3, seed=2),
        "none": noise(0, rows, 3),
        "strided": noise(4, 3, rows, seed=3).mT,
        "wild": torch.tensor(WILD, dtype=torch.float64)[index],
    }


@pytest.mark.parametrize("rows", [2, 3])
@pytest.mark.parametrize("name", list(batches(2)))
@pytest.mark.parametrize(("backend", "singular"), [(cpu, torch.nan), (cpu_opencv, 0.0)])
def test_inverses_have_the_references_bits(backend, singular, rows, name):
    matrices = batches(rows)[name]
    for matrix in (matrices, *(matrices if name == "wild" else ())):
        wanted, got = maps.inverse_map(matrix, singular=singular), backend.inverse_map(matrix)
        torch.testing.assert_close(got, wanted, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("rows", [2, 3])
def test_inverses_can_be_differentiated_twice(rows):
    matrix = noise(3, rows, 3).requires_grad_()
    torch.autograd.gradcheck(cpu.inverse_map, (matrix,))
    torch.autograd.gradgradcheck(cpu.inverse_map, (matrix,))


@pytest.mark.parametrize("rows", [2, 3])
def test_singular_matrices_get_no_gradient(rows):
    matrices = batches(rows)["wild"].requires_grad_()
    inverse = cpu.inverse_map(matrices)
    (grad,) = torch.autograd.grad(inverse, matrices, torch.ones_like(inverse))
    none = inverse.isnan().any(-1).any(-1)
    assert none.any()
    assert (grad[none] == 0).all()
