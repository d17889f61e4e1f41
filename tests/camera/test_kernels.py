"""Compiled lenses, compared with the torch operations that define them, and invalid items."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck

from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE
from warpkit import camera
from warpkit.camera import kernels, maps, solver
from warpkit.camera.arguments import as_lens
from warpkit.engine.sampling.maps import inverse_map

MODELS = [("brown", n) for n in (4, 5, 8, 12, 14)] + [("fisheye", 4)]
SIZES = [(13, 21), (1, 1), (7, 3), (1, 40)]
NAN = float("nan")


@pytest.fixture(autouse=True)
def library():
    assert kernels.supports(torch.zeros(1))


def double(rows):
    return torch.tensor(rows, dtype=torch.float64)


def made(model, n, turn=0.3, scale=0.05):
    """Cameras (3, 1, 3, 3), coefficients (2, n) and a view (3, 3), all requiring gradients."""
    generator = torch.Generator().manual_seed(n)
    k = scale * torch.randn(2, n, generator=generator, dtype=torch.float64)
    matrix = double([[50, 0, 10], [0, 55, 7], [0, 0, 1]])
    axis = double([[0, -0.1, turn], [0.1, 0, -0.1], [-turn, 0.1, 0]])
    view = double([[30, 0, 10], [0, 35, 7], [0, 0, 1]]) @ torch.linalg.matrix_exp(axis)
    cameras = matrix.expand(3, 1, 3, 3).clone()
    return [value.requires_grad_() for value in (cameras, k, view)]


def close(mine, wanted):
    """Equal up to rounding relative to the largest entry; sums of hundreds of products."""
    for a, b in zip(mine, wanted, strict=True):
        limit = TOLERANCE["lens kernels"] * float(b.detach().nan_to_num().abs().max())
        torch.testing.assert_close(a, b, rtol=0, atol=limit, equal_nan=True)


@pytest.mark.parametrize("turn", [0.3, 2.6, 3.14159])
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("opencv", [False, True])
@pytest.mark.parametrize(("model", "n"), MODELS)
def test_kernels_and_torch_agree_on_maps_and_their_gradients(model, n, opencv, size, turn):
    inputs = made(model, n, turn)
    lens = as_lens("f", inputs[0], inputs[1], model, None)
    mine = maps.undistorting(lens, inputs[2], size, opencv=opencv)
    wanted = maps._undistorting(lens, inverse_map(inputs[2]), size, opencv)
    assert type(mine.grad_fn).__name__ == "_EagerFieldBackward"
    assert torch.equal(mine.isnan(), wanted.isnan())
    if model == "brown":  # a fisheye calls the C library's arctangent
        assert torch.equal(mine.nan_to_num(), wanted.nan_to_num())
    close([mine], [wanted])
    grad = torch.where(mine.isnan(), 0.0, torch.randn_like(mine))
    close(*(torch.autograd.grad(f, inputs, grad) for f in (mine, wanted)))


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


@pytest.mark.parametrize(("model", "n"), MODELS)
def test_kernels_and_torch_agree_on_undistorted_points_and_their_gradients(model, n):
    _, k, _ = made(model, n)
    lens = as_lens("f", torch.eye(3).double(), k, model, None).beside(1)
    generator = torch.Generator().manual_seed(1)
    for count in (1, 7, 1500):
        u, v = 0.6 * torch.randn(2, 3, 1, count, generator=generator, dtype=torch.float64)
        u[..., 0] = NAN
        given = [u.requires_grad_(), v.requires_grad_(), k]
        x, y, found = solver.unbend(lens, *given[:2])
        with torch.no_grad():
            by_torch = solver._solve(lens.detach(), *(value.detach() for value in given[:2]))
        assert torch.equal(found, by_torch[2])
        assert not found[..., 0].any()
        assert not x[..., 0].any()
        close([x, y], [torch.where(found, value, 0.0) for value in by_torch[:2]])
        exact = solver._with_gradient(lens, *given[:2], *by_torch)
        weights = [torch.where(found, w, 0.0) for w in torch.randn(2, *x.shape).double()]
        mine = torch.autograd.grad((x, y), given, weights)
        wanted = torch.autograd.grad(exact, given, weights)
        limit = TOLERANCE["lens kernels"] * 100  # near a fold the inverse of the slopes is large
        for a, b in zip(mine, wanted, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=limit * (1 + float(b.abs().max())))


@pytest.mark.parametrize(("model", "n"), [("brown", 14), ("brown", 8), ("fisheye", 4)])
def test_gradients_pass_gradcheck_and_fail_it_when_scaled_by_1_01(model, n, monkeypatch):
    cameras, k, view = made(model, n)
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
    known = kernels.select_lenses(one)
    for name in ("field_backward", "solve_backward"):
        exact = getattr(known, name)

        def off(*given, exact=exact):
            made = exact(*given)
            return tuple(1.01 * g for g in made) if isinstance(made, tuple) else 1.01 * made

        monkeypatch.setattr(known, name, off)
    for function, inputs in ((field, (one, k, view)), (solved, (points, one, k))):
        with pytest.raises(RuntimeError, match="Jacobian mismatch"):
            gradcheck(camera_entries(function, inputs), reals(inputs))


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
    cameras, k, view = made("brown", 14)
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
