"""Compiled fits of matrices, compared with the torch operations that define them."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck

import warpkit as wk
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE
from warpkit.engine.backends import select_fits
from warpkit.geometry import from_points, quick

SQUARE = torch.tensor([[0, 0], [100, 0], [100, 90], [0, 90]], dtype=torch.float64)


def corners(count, origin=0.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(count, 4, 2, generator=generator, dtype=torch.float64)
    return origin + SQUARE + 8 * noise


@pytest.mark.parametrize("origin", [0.0, 5000.0])
def test_kernels_and_torch_agree_on_perspectives_and_their_gradients(origin, monkeypatch):
    src, dst = corners(50, origin), corners(50, -origin / 2, seed=1)
    far = torch.zeros(4, 2, dtype=torch.float64)
    # the last item's source has its origin at infinity
    far[:] = torch.tensor([[1, 0], [2, 0], [2, 1], [1, 1]])
    src[-1], dst[-1] = far, torch.stack((1 / far[:, 0], far[:, 1] / far[:, 0]), -1)
    src, dst = src.requires_grad_(), dst.requires_grad_()
    mine = wk.perspective_from_points(src, dst)
    with monkeypatch.context() as patch:
        patch.setattr(quick, "select_fits", lambda *points: None)
        wanted = wk.perspective_from_points(src, dst)
    assert float(wanted[-1].detach().norm()) == pytest.approx(1)
    scale = wanted.detach().abs()
    limit = TOLERANCE["quad kernels"]
    assert float(((mine - wanted).detach().abs() / scale.clamp_min(1e-9)).max()) < limit
    grad = torch.randn_like(mine) / scale.clamp_min(1e-9)
    for a, b in zip(
        *(torch.autograd.grad(found, (src, dst), grad) for found in (mine, wanted)), strict=True
    ):
        torch.testing.assert_close(a, b, rtol=0, atol=limit * float(b.abs().max()))


def test_gradients_pass_gradcheck_and_fail_it_when_scaled_by_1_01(monkeypatch):
    src, dst = (p.requires_grad_() for p in (corners(2) / 50, corners(1, seed=1) / 50))
    assert type(wk.perspective_from_points(src, dst).grad_fn).__name__ != "DivBackward0"
    assert gradcheck(wk.perspective_from_points, (src, dst), check_batched_grad=True)
    assert gradgradcheck(wk.perspective_from_points, (src, dst))
    known = select_fits(src)
    exact = known.four_points_backward
    monkeypatch.setattr(
        known, "four_points_backward", lambda *given: tuple(1.01 * g for g in exact(*given))
    )
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        gradcheck(wk.perspective_from_points, (src, dst))


def test_collinear_points_are_left_to_torch():
    src, line = corners(3), corners(3, seed=1)
    line[1, :, 1] = 0
    assert quick.four_points(src, line, torch.float64) is None
    found = wk.perspective_from_points(src, line)
    carried = wk.transform_points(found, src)
    torch.testing.assert_close(carried, line, rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match="`src`"):
        wk.perspective_from_points(line, src)
    src[2, 1, 0] = torch.nan
    assert quick.four_points(src, src, torch.float64) is None
    assert wk.perspective_from_points(src[:0], line[:0]).shape == (0, 3, 3)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [2, 3, 70])
def test_kernels_and_torch_agree_on_similarities(n, weighted, monkeypatch):
    generator = torch.Generator().manual_seed(n)
    src, dst = 100 * torch.rand(2, 5, n, 2, generator=generator, dtype=torch.float64)
    weights = torch.rand(n, generator=generator, dtype=torch.float64) if weighted else None
    assert quick.similarity(src, dst[:1], weights, torch.float32) is not None
    mine = wk.similarity_from_points(src, dst[:1], weights=weights)
    monkeypatch.setattr(quick, "select_fits", lambda *points: None)
    wanted = wk.similarity_from_points(src, dst[:1], weights=weights)
    torch.testing.assert_close(mine, wanted, rtol=0, atol=1e-11)


def test_similarities_of_coincident_points_get_the_same_error():
    one = torch.full((2, 3, 2), 1000.0)
    assert quick.similarity(one.double(), one.double(), None, torch.float32) is None
    with pytest.raises(ValueError, match="apart"):
        wk.similarity_from_points(one, one)
    other = corners(1)[0]
    other[0, 0] = torch.nan
    assert quick.similarity(other, other, None, torch.float64) is None
    assert from_points.similarity_from_points(SQUARE[None][:0], SQUARE).shape == (0, 2, 3)
