"""Points that several matrices map, or none: beside others, and with gradients."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck

import warpkit as wk
from tests.support.second_order import gradgradcheck

SQUARE = torch.tensor([[0, 0], [100, 0], [100, 90], [0, 90]], dtype=torch.float64)


def corners(count, origin=0.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(count, 4, 2, generator=generator, dtype=torch.float64)
    return origin + SQUARE + 8 * noise


def test_a_source_whose_origin_goes_to_infinity():
    src = torch.tensor([[1, 0], [2, 0], [2, 1], [1, 1]], dtype=torch.float64)
    dst = torch.stack((1 / src[:, 0], src[:, 1] / src[:, 0]), -1)
    pairs = [torch.stack((p, q)) for p, q in zip((src, dst), corners(2, 5000.0), strict=True)]
    found = wk.perspective_from_points(*pairs)
    assert float(found[0].norm()) == pytest.approx(1)
    carried = wk.transform_points(found, pairs[0])
    torch.testing.assert_close(carried, pairs[1], rtol=0, atol=1e-6)


def test_collinear_points_beside_others_have_gradients():
    src, line = corners(3), corners(3, seed=1)
    line[1, :, 1] = 0
    found = wk.perspective_from_points(src, line)
    carried = wk.transform_points(found, src)
    torch.testing.assert_close(carried, line, rtol=0, atol=1e-9)
    alone = wk.perspective_from_points(src[::2], line[::2])
    torch.testing.assert_close(found[::2], alone, rtol=1e-12, atol=0)
    leaves = [points.clone().requires_grad_() for points in (src, line)]
    grads = torch.autograd.grad(wk.perspective_from_points(*leaves).sum(), leaves)
    assert all(grad.isfinite().all() for grad in grads)
    others = [points[::2].clone().requires_grad_() for points in (src, line)]
    wanted = torch.autograd.grad(wk.perspective_from_points(*others).sum(), others)
    for grad, alone in zip(grads, wanted, strict=True):
        torch.testing.assert_close(grad[::2], alone, rtol=1e-9, atol=1e-9)
    with pytest.raises(ValueError, match="`src`"):
        wk.perspective_from_points(line, src)
    src[2, 1, 0] = torch.nan
    with pytest.raises(ValueError, match="`dst`"):
        wk.perspective_from_points(line, src)
    with pytest.raises(ValueError, match="`src` must be four finite points"):
        wk.perspective_from_points(src, corners(1))
    assert wk.perspective_from_points(src[:0], line[:0]).shape == (0, 3, 3)


def test_gradients_of_both_orders():
    src, dst = (p.requires_grad_() for p in (corners(2) / 50, corners(1, seed=1) / 50))
    assert gradcheck(wk.perspective_from_points, (src, dst), check_batched_grad=True)
    assert gradgradcheck(wk.perspective_from_points, (src, dst))


def test_similarities_of_coincident_points_are_refused():
    one = torch.full((2, 3, 2), 1000.0)
    with pytest.raises(ValueError, match="apart"):
        wk.similarity_from_points(one, one)
    other = corners(1)[0]
    other[0, 0] = torch.nan
    with pytest.raises(ValueError, match="apart"):
        wk.similarity_from_points(other, SQUARE)
    assert wk.similarity_from_points(SQUARE, other).isnan().any()  # as of any formula
    assert wk.similarity_from_points(SQUARE[None][:0], SQUARE).shape == (0, 2, 3)
