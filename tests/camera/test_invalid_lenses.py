"""Lens fields and undistorted points: gradients of the public functions, and invalid items."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck

from tests.support.second_order import gradgradcheck
from warpkit import camera
from warpkit.camera import maps
from warpkit.camera.arguments import as_lens

NAN = float("nan")


def double(rows):
    return torch.tensor(rows, dtype=torch.float64)


def made(n, turn=0.3, scale=0.05):
    """Cameras (3, 1, 3, 3), coefficients (2, n) and a view (3, 3), all requiring gradients."""
    generator = torch.Generator().manual_seed(n)
    k = scale * torch.randn(2, n, generator=generator, dtype=torch.float64)
    matrix = double([[50, 0, 10], [0, 55, 7], [0, 0, 1]])
    axis = double([[0, -0.1, turn], [0.1, 0, -0.1], [-turn, 0.1, 0]])
    view = double([[30, 0, 10], [0, 35, 7], [0, 0, 1]]) @ torch.linalg.matrix_exp(axis)
    cameras = matrix.expand(3, 1, 3, 3).clone()
    return [value.requires_grad_() for value in (cameras, k, view)]


def test_an_undefined_item_gets_no_gradient_and_does_not_affect_others():
    bad = double([[0.1, 0, 0, 0], [NAN, 0, 0, 0]]).requires_grad_()
    matrix = double([[50, 0, 10], [0, 55, 7], [0, 0, 1]]).requires_grad_()
    lens = as_lens("f", matrix, bad, "brown", None)
    field = maps.undistorting(lens, matrix, (4, 5))
    assert field[1].isnan().all()
    to_matrix, to_bad = torch.autograd.grad(field, (matrix, bad), torch.ones_like(field))
    assert to_matrix.isfinite().all()
    assert to_bad[0].any()
    assert not to_bad[1].any()
    empty = maps.undistorting(as_lens("f", matrix, bad[:0], "brown", None), matrix, (4, 5))
    assert empty.shape == (0, 4, 5, 2)
    assert not torch.autograd.grad(empty.sum(), matrix)[0].any()


@pytest.mark.parametrize(("model", "n"), [("brown", 14), ("brown", 8), ("fisheye", 4)])
def test_gradients_of_both_orders(model, n):
    cameras, k, view = made(n)
    points = double([[12.0, 9.0], [3.0, 2.0], [30.0, 20.0]]).requires_grad_()

    def field(cameras, k, view):
        options = {"new_camera_matrix": view, "model": model}
        return camera.undistort_map(cameras, k, (3, 4), **options)

    def solved(points, cameras, k):
        return camera.undistort_points(points, cameras, k, model=model)[0]

    one = cameras[0, 0].detach().requires_grad_()
    for function, inputs in ((field, (one, k, view)), (solved, (points, one, k))):
        assert gradcheck(camera_entries(function, inputs), reals(inputs), check_batched_grad=True)
        assert gradgradcheck(camera_entries(function, inputs), reals(inputs))


def reals(inputs):
    """Replace the camera matrix by its four free numbers; the other entries are fixed."""
    found = [value.detach().clone() for value in inputs]
    at = [value.shape == (3, 3) for value in found].index(True)
    matrix = found[at]
    found[at] = torch.stack((matrix[0, 0], matrix[1, 1], matrix[0, 2], matrix[1, 2]))
    return tuple(value.requires_grad_() for value in found)


def camera_entries(function, inputs):
    at = [value.shape == (3, 3) for value in inputs].index(True)

    def by_entries(*values):
        fx, fy, cx, cy = values[at].unbind()
        zero, one = torch.zeros_like(fx), torch.ones_like(fx)
        rows = ((fx, zero, cx), (zero, fy, cy), (zero, zero, one))
        matrix = torch.stack([torch.stack(row) for row in rows])
        return function(*values[:at], matrix, *values[at + 1 :])

    return by_entries


def test_gradients_have_the_same_bits_for_any_number_of_threads():
    cameras, k, view = made(14)
    lens = as_lens("f", cameras, k, "brown", None)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            field = maps.undistorting(lens, view, (150, 170))
            grads = torch.autograd.grad(field.nan_to_num().square().sum(), (cameras, k, view))
            found.append((field, *grads))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize(("model", "n"), [("brown", 5), ("brown", 14), ("fisheye", 4)])
def test_huge_coefficients_are_no_error(model, n):
    """LAPACK finds no eigenvalues of some of them."""
    matrix, points = double([[50, 0, 10], [0, 55, 7], [0, 0, 1]]), double([[3.0, 2.0]])
    generator = torch.Generator().manual_seed(0)
    for _ in range(40):
        k = torch.randn(n, generator=generator, dtype=torch.float64)
        k[torch.rand(n, generator=generator) < 0.4] = -1e300
        found, there = camera.undistort_points(points, matrix, k, model=model)
        assert found.isfinite().all(-1).equal(there)
        again, still = camera.undistort_points(points, matrix, k, model=model)
        torch.testing.assert_close((again, still), (found, there), rtol=0, atol=0, equal_nan=True)
