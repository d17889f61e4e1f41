"""Eager native calls give the same bits and behaviour as the operator."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import warpkit as wk
from tests.support.inputs import affine_matrices, images, noise, perspective_matrices
from warpkit.engine.binding import operator
from warpkit.engine.cpu.inverse import inverse_vjp, invert
from warpkit.engine.definitions import maps

TURNS = affine_matrices()["batch of turns"]
WHERE = {
    "one matrix": (wk.warp_affine, TURNS[0].float()),
    "two matrices": (wk.warp_affine, TURNS),
    "a singular one": (wk.warp_affine, torch.stack((TURNS[0], torch.ones(2, 3).double()))),
    "perspective": (wk.warp_perspective, perspective_matrices()["mild"].float()),
    "points": (wk.remap, noise(2, 4, 5, 2, dtype=torch.float32) * 9 - 1),
}


def found(function, inputs: list[Tensor], again: bool = False, **options) -> list[Tensor]:
    """The result and the gradients to image, map and border value."""
    leaves = [t.detach().requires_grad_() for t in inputs]
    result = function(*leaves[:2], border_value=leaves[2], **options)
    weights = noise(*result.shape, dtype=result.dtype, seed=5)
    grads = torch.autograd.grad(
        result, leaves, weights, create_graph=again, allow_unused=True, materialize_grads=True
    )
    return [result, *grads]


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("name", list(WHERE))
def test_eager_calls_have_the_operators_bits(name, again, monkeypatch):
    function, where = WHERE[name]
    for dtype in (torch.float32, torch.float16):
        for kind in ("odd", "channels-last", "expanded"):
            inputs = [images(dtype)[kind], where, torch.tensor(0.3)]
            for options in ({}, {"interpolation": "nearest"}):
                short = found(function, inputs, again, **options)
                with monkeypatch.context() as patch:
                    # warps alone have more than two tensors
                    patch.setattr(operator, "is_eager", lambda *tensors: len(tensors) < 3)
                    long = found(function, inputs, again, **options)
                for mine, theirs in zip(short, long, strict=True):
                    assert mine.dtype == theirs.dtype, (dtype, kind)
                    assert torch.equal(mine, theirs), (dtype, kind)


@pytest.mark.parametrize("rows", [2, 3])
@pytest.mark.parametrize("batch", [(), (1,), (40,), (2, 3)])
def test_the_gradient_through_an_inverse_has_the_same_bits(rows, batch):
    matrices, grad = noise(*batch, rows, 3), noise(*batch, rows, 3, seed=1)
    matrices.view(-1)[0] = 1e200  # its gradient would overflow
    source = invert(matrices)
    found = inverse_vjp(source, grad, torch.float64)
    assert torch.equal(found, maps.inverse_vjp(source, grad))


def test_a_result_and_its_matrix_may_be_modified_in_place():
    image, matrix = noise(1, 3, 6, 7).requires_grad_(), TURNS[0].clone().requires_grad_()
    wanted = torch.autograd.grad(wk.warp_affine(image, matrix).sum(), (image, matrix))
    result = wk.warp_affine(image, matrix)
    result += 1  # a view of internal memory would raise
    with torch.no_grad():
        matrix *= 3  # as an optimizer's step does; only the inverse is saved
        assert not wk.warp_affine(image, matrix)._is_view()
    for got, want in zip(torch.autograd.grad(result.sum(), (image, matrix)), wanted, strict=True):
        assert torch.equal(got, want)


@pytest.mark.parametrize("where", [TURNS[0], TURNS[:1]], ids=["one matrix", "a batch of one"])
def test_a_second_derivative_rejects_a_matrix_modified_in_place(where):
    for _ in range(2):
        image, matrix = noise(1, 3, 6, 7), where.clone().requires_grad_()
        result = wk.warp_affine(image, matrix, inverse=True)
        with torch.no_grad():
            matrix *= 3
        with pytest.raises(RuntimeError, match=r"in.?place"):
            torch.autograd.grad(result.sum(), matrix, create_graph=True)


@pytest.mark.parametrize("last", [False, True])
def test_gradients_are_not_views(last):
    image = noise(2, 3, 6, 7)
    image = image.to(memory_format=torch.channels_last) if last else image
    image, matrix = image.requires_grad_(), TURNS.clone().requires_grad_()
    for grad in torch.autograd.grad(wk.warp_affine(image, matrix).sum(), (image, matrix)):
        grad.zero_()
        assert not grad._is_view()


def test_a_negated_view_is_read_with_its_sign():
    image = noise(1, 3, 6, 7)
    negated = torch._neg_view(image)  # pyright: ignore
    assert torch.equal(wk.warp_affine(negated, TURNS[0]), -wk.warp_affine(image, TURNS[0]))


def test_calls_in_and_after_inference_mode():
    image, matrix = noise(1, 3, 6, 7), TURNS[0].clone()
    with torch.inference_mode():
        inside = wk.warp_affine(image, matrix)
    outside = wk.warp_affine(image, matrix.requires_grad_())
    assert torch.equal(inside, outside)
    assert torch.autograd.grad(outside.sum(), matrix)[0].isfinite().all()
