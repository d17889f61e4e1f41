"""Local correlation by the CUDA kernel, against the definition."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from tests.support.cuda_comparison import DEVICE, mark_all, quiet_interpreter  # noqa: F401
from tests.support.inputs import noise
from tests.support.tolerances import TOLERANCE
from warpkit.engine.definitions import correlation as definition
from warpkit.engine.definitions.correlation import Square
from warpkit.engine.operators.correlation import CORRELATION

NAN, INF = float("nan"), float("inf")
BORDERS = ["constant", "replicate", "reflect", "reflect_101", "wrap", "wrap,constant"]


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("moved", [True, False])
def test_values_and_gradients(border, moved):
    first, second = noise(2, 1, 5, 3, 7).float(), noise(3, 5, 4, 6, seed=1).float()
    by = 12 * (noise(2, 1, 3, 7, 2, seed=2) - 0.5)
    by[0, 0, 0, :3, 0] = torch.tensor([NAN, INF, 2.0**31 - 1])
    tensors = [t.to(DEVICE) for t in (first, second, *((by,) if moved else ()))]
    options = Square((1, 2), 1.0 if moved else 2.0, border)
    leaves = [t.requires_grad_() for t in tensors]
    truth = definition.correlation(options, *leaves)
    grad = noise(*truth.shape, seed=3).to(truth)
    expected = torch.autograd.grad(truth, leaves, grad)
    close = TOLERANCE["matching torch.float32"]
    for _ in range(2):
        found = CORRELATION(options, *leaves, device="triton")
        assert (found - truth).abs().max() <= close
        for mine, theirs in zip(torch.autograd.grad(found, leaves, grad), expected, strict=True):
            assert (mine - theirs).abs().max() <= 10 * close


def test_gradients_of_more_channels_than_a_program_has_and_of_repeated_pictures():
    first, second = noise(3, 1, 17, 3, 5).float(), noise(2, 17, 3, 4, seed=1).float()[:, None]
    leaves = [first.to(DEVICE), second[:, 0].to(DEVICE), noise(2, 3, 5, 2, seed=2).to(DEVICE)]
    for options, used in (
        (Square((1, 1), 1.0, "wrap"), leaves),
        (Square((0, 2), 3.0, "constant"), leaves[:2]),
    ):
        used = [t.requires_grad_() for t in used]
        truth = definition.correlation(options, *used)
        grad = noise(*truth.shape, seed=3).to(truth)
        expected = torch.autograd.grad(truth, used, grad)
        found = torch.autograd.grad(CORRELATION(options, *used, device="triton"), used, grad)
        for mine, theirs in zip(found, expected, strict=True):
            assert (mine - theirs).abs().max() <= 10 * TOLERANCE["matching torch.float32"]


def test_what_is_empty_and_what_is_not_finite():
    first, second = noise(3, 2, 5).float().to(DEVICE), noise(3, 2, 5, seed=1).float().to(DEVICE)
    first[0, 0, 0], second[1, 1, 2] = NAN, INF
    options = Square((1, 1), 1.0, "constant")
    truth = definition.correlation(options, first, second)
    found = CORRELATION(options, first, second, device="triton")
    assert torch.equal(found.isfinite(), truth.isfinite())
    by = noise(1, 2, 5, 2, seed=2).to(DEVICE)
    for used in ((first, second), (first, second, by)):
        leaves = [t.detach().requires_grad_() for t in used]
        results = [
            torch.autograd.grad(f(options, *leaves).nan_to_num().sum(), leaves)
            for f in (definition.correlation, partial(CORRELATION, device="triton"))
        ]
        for theirs, mine in zip(*results, strict=True):
            assert torch.equal(mine.isfinite(), theirs.isfinite())
    empty = CORRELATION(options, first[:, :0], second, device="triton")
    assert empty.shape == (9, 0, 5)


mark_all(globals())
