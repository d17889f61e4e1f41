"""Points, pixels and lenses without a solution: NaN, no gradient, and no effect on others.

Each case is computed twice, with and without the unsolvable items: values and gradients of the
others are the same.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.func import jvp

import warpkit.opencv as wcv2
from tests.support.inputs import noise
from tests.support.tolerances import TOLERANCE
from warpkit import camera

NAN, INF = math.nan, math.inf
CAMERA = torch.tensor([[80.0, 0, 63.5], [0, 80, 47.5], [0, 0, 1]], dtype=torch.float64)
GOOD = [[100.0, 47.5], [30.0, 20.0], [63.5, 47.5]]
NOWHERE = [[120.0, 47.5], [NAN, 3.0], [4.0, INF], [1e300, -1e300]]
LENSES = {
    "barrel": ([-0.4, 0.0, 0.0, 0.0], "brown"),
    "tangential": ([-0.4, 0.02, 0.01, -0.01, 0.0], "brown"),
    "rational": ([-0.5, 0.1, 0.0, 0.0, 0.0, 0.1, 0.0, 0.0], "brown"),
    "tilted": ([-0.4, *[0.0] * 11, 0.02, -0.03], "brown"),
    "fisheye": ([-0.4, 0.0, 0.0, 0.0], "fisheye"),
}


def double(values) -> Tensor:
    return torch.as_tensor(np.asarray(values, np.float64))


def turned(angle: float) -> Tensor:
    c, s = math.cos(angle), math.sin(angle)
    return double([[c, 0, s], [0, 1, 0], [-s, 0, c]])


def first_and_second(function, inputs):
    """First gradients of a weighted sum of the finite results, and second ones through these."""
    inputs = [value.detach().clone().requires_grad_() for value in inputs]
    result = function(*inputs)
    weights = torch.linspace(0.5, 1.5, len(GOOD), dtype=torch.float64)[:, None]
    total = (result[: len(GOOD)] * weights).sum()
    first = torch.autograd.grad(total, inputs, create_graph=True)
    mixed = sum(grad.sin().sum() for grad in first)
    second = torch.autograd.grad(mixed, inputs, allow_unused=True, materialize_grads=True)
    return result.detach(), first, second


def back(model, with_turn, with_view):
    def function(points, matrix, k, turn, view):
        options = {"rotation": turn} if with_turn else {}
        options |= {"new_camera_matrix": view} if with_view else {}
        moved, found = camera.undistort_points(points, matrix, k, model=model, **options)
        assert found.tolist() == [True] * 3 + [False] * (len(points) - 3)
        return moved + 0 * (turn.sum() + view.sum())

    return function


@pytest.mark.parametrize("name", LENSES)
@pytest.mark.parametrize("with_turn", [False, True])
@pytest.mark.parametrize("with_view", [False, True])
def test_unsolvable_points_do_not_affect_other_gradients(name, with_turn, with_view):
    k, model = LENSES[name]
    others = [CAMERA, double(k), turned(0.1), CAMERA * double([[1.1], [0.9], [1.0]])]
    function = back(model, with_turn, with_view)
    value, first, second = first_and_second(function, [double(GOOD + NOWHERE), *others])
    assert value[len(GOOD) :].isnan().all()
    alone, *truth = first_and_second(function, [double(GOOD), *others])
    assert torch.equal(value[: len(GOOD)], alone)
    for mine, wanted in zip((first, second), truth, strict=True):
        assert not mine[0][len(GOOD) :].any()
        torch.testing.assert_close(mine[0][: len(GOOD)], wanted[0], rtol=1e-12, atol=1e-12)
        for a, b in zip(mine[1:], wanted[1:], strict=True):
            torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", LENSES)
def test_nonfinite_points_do_not_affect_other_gradients_of_distort_points(name):
    k, model = LENSES[name]

    def function(points, matrix, k):
        return camera.distort_points(points, matrix, k, model=model)

    bad = [[NAN, 3.0], [4.0, INF], [1e300, 2.0]]
    value, *orders = first_and_second(function, [double(GOOD + bad), CAMERA, double(k)])
    assert value[len(GOOD) :].isnan().all()
    alone, *truth = first_and_second(function, [double(GOOD), CAMERA, double(k)])
    assert torch.equal(value[: len(GOOD)], alone)
    for mine, wanted in zip(orders, truth, strict=True):
        assert not mine[0][len(GOOD) :].any()
        for a, b in zip(mine[1:], wanted[1:], strict=True):
            torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


def test_a_pole_does_not_affect_other_gradients():
    """The lens has a pole at radius 1, where the denominator of one pixel's direction is 0."""
    k = double([0.1, 0, 0, 0, 0, -1.0, 0, 0]).requires_grad_()
    matrix = torch.eye(3).double().requires_grad_()
    shown = camera.distort_points([[0.5, 0.0], [1.0, 0.0]], matrix, k)
    assert shown[1, 0].abs() > 1e90
    grads = torch.autograd.grad(shown[0].sum(), (matrix, k), create_graph=True)
    for grad in (*grads, *torch.autograd.grad(sum(g.sum() for g in grads), (matrix, k))):
        assert grad.isfinite().all()


@pytest.mark.parametrize("kind", ["lens", "camera", "turn", "view"])
def test_one_bad_item_of_a_batch_does_not_affect_shared_arguments(kind):
    """A diverged camera gives NaN in its own item only, with shared points and matrices."""
    bad = {name: torch.zeros(2, 1, dtype=torch.float64) for name in ("lens", "camera")}
    bad |= {name: torch.zeros(2, 1, 1, dtype=torch.float64) for name in ("turn", "view")}
    bad["camera"] = bad["camera"][..., None]
    bad[kind][1] = NAN
    points, k = double(GOOD).requires_grad_(), double(LENSES["barrel"][0]).requires_grad_()
    matrix, view = CAMERA.clone().requires_grad_(), CAMERA.clone().requires_grad_()
    turn = turned(0.1).requires_grad_()
    given = [matrix + bad["camera"] * torch.eye(3)[:2].sum(0), k + bad["lens"]]
    if kind == "camera":
        given[0] = torch.stack((matrix, matrix * double([[NAN, 1, 1], [1, 1, 1], [1, 1, 1]])))
    options = {"rotation": turn + bad["turn"], "new_camera_matrix": view + bad["view"]}
    moved, found = camera.undistort_points(points, *given, **options)
    field = camera.undistort_map(*given, (4, 5), **options)
    shown = camera.distort_points(points, *given)
    assert found[0].all()
    assert not found[1].any()
    assert moved[1].isnan().all()
    assert field[1].isnan().all()
    inputs = [points, turn, view]
    inputs += [] if kind == "lens" else [k]  # its NaN is an addend, and so in its gradient's graph
    inputs += [] if kind == "camera" else [matrix]
    total = moved[0].sum() + field[0].sum() + shown[0].sum()
    for grad in torch.autograd.grad(total, inputs):
        assert grad.isfinite().all()
        assert grad.any()


def test_maps_have_exact_gradients_beside_pixels_that_look_backwards():
    matrix, k = CAMERA.clone().requires_grad_(), double([-0.1, 0.01, 0, 0]).requires_grad_()
    turn, view = turned(1.5).requires_grad_(), CAMERA.clone().requires_grad_()
    inputs = matrix, k, turn, view

    def field(matrix, k, turn, view):
        options = {"rotation": turn, "new_camera_matrix": view}
        return camera.undistort_map(matrix, k, (96, 128), **options)

    points = field(*inputs)
    ahead = points.isfinite().all(-1)
    assert 0.2 < ahead.float().mean() < 0.8
    near = ahead & (points.detach().abs().amax(-1) < 200)
    first = torch.autograd.grad(points[near].sum(), inputs, create_graph=True)
    second = torch.autograd.grad(sum(g.sin().sum() for g in first), inputs)
    for grad in (*first, *second):
        assert grad.isfinite().all()
        assert grad.any()
    # the same sum over the same pixels, from the formula
    rows, columns = near.nonzero().T
    pixels = torch.stack((columns, rows), -1).double()
    rays = torch.linalg.inv(view @ turn) @ torch.cat((pixels, torch.ones(len(pixels), 1)), -1).mT
    ideal = (rays[:2] / rays[2]).mT * torch.stack((matrix[0, 0], matrix[1, 1])) + matrix[:2, 2]
    shown = camera.distort_points(ideal, matrix, k)
    for mine, wanted in zip(first, torch.autograd.grad(shown.sum(), inputs), strict=True):
        torch.testing.assert_close(mine, wanted, rtol=1e-8, atol=1e-8)


def test_images_have_finite_gradients_beside_pixels_that_see_nothing():
    image = noise(1, 24, 32).requires_grad_()
    matrix = double([[20.0, 0, 15.5], [0, 20, 11.5], [0, 0, 1]]).requires_grad_()
    k, turn = double([-0.6, 0, 0, 0]).requires_grad_(), turned(1.2).requires_grad_()
    field = camera.distort_map(matrix, k, (24, 32))
    assert 0.1 < field.isnan().float().mean() < 0.9
    for made, inputs in (
        (field[field.isfinite()], (matrix, k)),
        (camera.distort(image, matrix, k), (image, matrix, k)),
        (camera.undistort(image, matrix, k, rotation=turn), (image, matrix, k, turn)),
    ):
        assert made.isfinite().all()
        for grad in torch.autograd.grad(made.sum(), inputs):
            assert grad.isfinite().all()
            assert grad.any()


def test_tangents_are_nan_only_where_the_value_is_nan():
    points, k = double(GOOD + NOWHERE), double(LENSES["tilted"][0])
    turn, view = turned(0.1), CAMERA

    def there(points, matrix, k):
        return camera.distort_points(points, matrix, k)

    def and_back(points, matrix, k):
        options = {"rotation": turn * k[0] / k[0].detach(), "new_camera_matrix": view}
        return camera.undistort_points(points, matrix, k, **options)[0]

    def field(points, matrix, k):
        return camera.undistort_map(matrix, k, (9, 128), rotation=turned(1.5))

    tangents = torch.ones_like(points), torch.ones_like(CAMERA), torch.ones_like(k)
    for function in (there, and_back, field):
        value, tangent = jvp(function, (points, CAMERA, k), tangents)
        assert 0 < value.isnan().sum() < value.numel()
        assert tangent[value.isfinite()].isfinite().all()
        assert tangent[value.isfinite()].any()


def test_a_lens_is_learnt_although_part_of_the_image_is_undefined():
    """f, k1 and k2 by gradient descent through `distort`, while pixels cross the fold."""
    y, x = torch.meshgrid(torch.arange(48.0), torch.arange(64.0), indexing="ij")
    ideal = (torch.sin(x / 3) * torch.cos(y / 4))[None].double()
    true = double([40.0, -0.3, 0.02])

    def shown(numbers):
        f, k1, k2 = numbers
        one, zero = torch.ones_like(f), torch.zeros_like(f)
        rows = (f, zero, 31.5 * one), (zero, f, 23.5 * one), (zero, zero, one)
        matrix = torch.stack([torch.stack(row) for row in rows])
        k = torch.stack((k1, k2, zero, zero))
        return camera.distort(ideal, matrix, k, interpolation="bicubic"), matrix, k

    target = shown(true)[0]
    unit = double([1.0, 0.05, 0.02])
    steps = (double([38.0, -0.36, 0.0]) / unit).requires_grad_()
    optimizer = torch.optim.Adam([steps], lr=0.2)
    for step in range(300):
        optimizer.zero_grad()
        optimizer.param_groups[0]["lr"] = 0.2 * (1 - step / 300)
        image, matrix, k = shown(steps * unit)
        (image - target).square().mean().backward()
        assert steps.grad is not None, step
        assert steps.grad.isfinite().all(), step
        optimizer.step()
    missing = camera.distort_map(matrix, k, (48, 64)).isnan().any(-1)
    assert 0.1 < missing.float().mean() < 0.3
    f, k1, k2 = (steps * unit).tolist()  # an image under its own matrix depends on these two alone
    for found, wanted in ((k1 / f**2, -0.3 / 40**2), (k2 / f**4, 0.02 / 40**4)):
        assert found == pytest.approx(wanted, rel=TOLERANCE["learned lens"])


def test_unsolvable_points_do_not_affect_gradients_of_cv2s_functions():
    points, matrix = double(GOOD + NOWHERE).requires_grad_(), CAMERA.clone().requires_grad_()
    k, view = double(LENSES["barrel"][0]).requires_grad_(), CAMERA.clone().requires_grad_()
    other, turn = CAMERA.clone().requires_grad_(), turned(0.1).requires_grad_()
    fish = wcv2.fisheye
    lens = (matrix, k)
    for made, inputs in (
        (wcv2.undistortPoints(points, *lens, None, turn, view)[:, 0], (turn, view)),
        (fish.undistortPoints(points, *lens, None, turn, view), (turn, view)),
        (fish.distortPoints(points / 80, *lens), ()),
        (fish.distortPoints(points, other, *lens, None, 0.1), (other,)),
    ):
        given = (points, *lens, *inputs)
        for grad in torch.autograd.grad(made[: len(GOOD)].sum(), given):
            assert grad.isfinite().all()
            assert grad.any()
    far = turned(1.5).requires_grad_()
    maps = wcv2.initUndistortRectifyMap(*lens, far, view, (128, 96), wcv2.CV_32FC2)[0]
    fisheyes = torch.stack(fish.initUndistortRectifyMap(*lens, far, view, (128, 96), 5), -1)
    for field in (maps, fisheyes):
        near = field.detach().abs().amax(-1) < 200
        assert 0 < near.sum() < near.numel()
        for grad in torch.autograd.grad(field[near].sum(), (*lens, far, view)):
            assert grad.isfinite().all()
