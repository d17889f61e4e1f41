"""cartToPolar and polarToCart: cv2's bits, accuracy, and gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

import warpkit.opencv as ours
from tests.support.installed_opencv import installed_opencv
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE
from warpkit.engine.arithmetic import opencv_angles

SHAPES = [(1,), (15,), (16,), (143,), (1030,), (2050,), (9, 31), (1, 1), (40, 55, 3), (7, 9, 1)]
SHAPES += [(5, 6, 200), (11, 3, 5, 2)]


@pytest.fixture
def cv2():
    module = installed_opencv()
    used = module.ipp.useIPP()
    module.ipp.setUseIPP(False)
    yield module
    module.ipp.setUseIPP(used)


def assert_same(one, other):
    assert len(one) == len(other) == 2
    for a, b in zip(one, other, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        assert np.array_equal(a, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("degrees", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_both_have_cv2s_bits(cv2, dtype, degrees, shape):
    """Short arrays, ends of blocks and integers, for which OpenCV has other code."""
    random = np.random.default_rng(len(shape))
    for scale in (1.0, 1e-9, 1e9, 3.0):
        x, y = (random.normal(size=shape) * scale for _ in range(2))
        if scale == 3.0:
            x, y = x.round(), y.round()
        x, y = x.astype(dtype), y.astype(dtype)
        assert_same(
            ours.cartToPolar(x, y, angleInDegrees=degrees),
            cv2.cartToPolar(x, y, angleInDegrees=degrees),
        )
        turn = (random.normal(size=shape) * (400 if degrees else 7)).astype(dtype)
        if scale == 3.0:
            step = 15 if degrees else np.pi / 12
            turn = (np.rint(turn / step) * step).astype(dtype)
        for length in (x, None):
            assert_same(
                ours.polarToCart(length, turn, angleInDegrees=degrees),
                cv2.polarToCart(length, turn, angleInDegrees=degrees),
            )


def test_special_numbers_are_treated_as_by_cv2(cv2):
    values = np.float32([0, -0.0, 1, -1, np.inf, -np.inf, 1e-45, 3e38])
    x, y = (v.astype(np.float32) for v in np.meshgrid(values, values))
    both = np.isinf(x) & np.isinf(y)  # they have no angle: NaN in both
    truth, out = cv2.cartToPolar(x, y), ours.cartToPolar(x, y)
    for a, b in zip(out, truth, strict=True):
        np.testing.assert_array_equal(a[~both], b[~both])
    assert np.isnan(out[1][both]).all()
    nan = np.full((4, 4), np.nan, np.float32)
    assert all(np.isnan(v).all() for v in ours.cartToPolar(nan, np.ones_like(nan)))
    assert all(np.isnan(v).all() for v in ours.polarToCart(None, nan))
    far = np.full((4, 8), 1e12, np.float32)  # OpenCV's integers overflow there
    x, y = ours.polarToCart(None, far)
    np.testing.assert_allclose(x, np.cos(far.astype(np.float64)), atol=1e-6)
    np.testing.assert_allclose(y, np.sin(far.astype(np.float64)), atol=1e-6)


def test_the_accuracy_of_lengths_and_angles():
    random = np.random.default_rng(3)
    x, y = random.normal(size=(2, 300, 300))
    length, angle = ours.cartToPolar(x, y, angleInDegrees=True)
    np.testing.assert_allclose(length, np.hypot(x, y), rtol=3e-7)
    away = np.abs(angle - np.degrees(np.arctan2(y, x)) % 360)
    assert 0.009 < away.max() < TOLERANCE["cv2 arctangent"]
    back = ours.polarToCart(None, np.radians(angle))
    np.testing.assert_allclose(back[0], np.cos(np.radians(angle)), atol=3e-7)


def test_tensors_give_the_same_numbers_as_arrays():
    random = np.random.default_rng(4)
    x, y = random.normal(size=(2, 3, 40))
    for dtype in (np.float32, np.float64):
        arrays = [v.astype(dtype) for v in (x, y)]
        for function in (ours.cartToPolar, ours.polarToCart):
            wanted = function(*arrays)
            found = function(*map(torch.from_numpy, arrays))
            for a, b in zip(found, wanted, strict=True):
                assert np.array_equal(a.numpy(), b), (dtype, function)
            mixed = function(torch.from_numpy(arrays[0]), arrays[1])
            assert torch.equal(mixed[0], found[0]), (dtype, function)


def test_gradients_match_the_exact_formulas():
    random = np.random.default_rng(5)
    x, y = (torch.tensor(v, requires_grad=True) for v in random.normal(size=(2, 2, 3)))
    for degrees, scale in ((False, 1.0), (True, 180 / np.pi)):
        length, angle = ours.cartToPolar(x, y, angleInDegrees=degrees)
        found = torch.autograd.grad((length.sum() + angle.sum()), (x, y))
        a, b = x.detach().numpy(), y.detach().numpy()
        square = a**2 + b**2
        np.testing.assert_allclose(found[0], a / square**0.5 - scale * b / square, rtol=1e-12)
        np.testing.assert_allclose(found[1], b / square**0.5 + scale * a / square, rtol=1e-12)
        px, py = ours.polarToCart(x, y, angleInDegrees=degrees)
        found = torch.autograd.grad(px.sum() + py.sum(), (x, y))
        t = b / scale
        np.testing.assert_allclose(found[0], np.cos(t) + np.sin(t), rtol=1e-12)
        np.testing.assert_allclose(found[1], a * (np.cos(t) - np.sin(t)) / scale, rtol=1e-12)


def test_the_centre_has_gradient_zero_without_nan():
    x, y = torch.zeros(2, 3, dtype=torch.float64, requires_grad=True).unbind()
    length, angle = ours.cartToPolar(x, y)
    grads = torch.autograd.grad(length.sum() + angle.sum(), (x, y))
    assert all(g.eq(0).all() for g in grads)


def test_second_derivatives_and_forward_mode(monkeypatch):
    """With the exact formulas' values, since differences of a float32 polynomial are steps."""

    def exact_polar(x, y, single, degrees):
        scale = 180 / np.pi if degrees else 1.0
        return torch.hypot(x, y).double(), torch.atan2(y, x).double() * scale

    def exact_cart(length, angle, single, degrees):
        return length * angle.cos(), length * angle.sin()

    monkeypatch.setattr(opencv_angles, "to_polar", exact_polar)
    monkeypatch.setattr(opencv_angles, "from_polar", exact_cart)
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    random = np.random.default_rng(6)
    values = [torch.tensor(v, requires_grad=True) for v in random.normal(size=(2, 4)) + 2]
    for function in (ours.cartToPolar, ours.polarToCart):
        assert gradcheck(function, values, check_forward_ad=True)
        assert gradgradcheck(function, values)


def test_outputs_are_written():
    x, y = np.float32([[3, 0]]), np.float32([[4, 2]])
    length, angle = np.zeros((1, 2), np.float32), np.zeros((1, 2), np.float32)
    found = ours.cartToPolar(x, y, length, angle)
    assert found[0] is length
    assert found[1] is angle
    assert length.tolist() == [[5, 2]]


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: ours.cartToPolar(3.0, 4.0), "cartToPolar: `x` must be a tensor or an array"),
        (
            lambda: ours.cartToPolar(np.ones(3), np.ones(4)),
            "cartToPolar: `y` must be (3,) torch.float64 as `x`, got (4,) torch.float64",
        ),
        (
            lambda: ours.cartToPolar(np.ones(3, int), np.ones(3, int)),
            "cartToPolar: `x` must be of one of the types float32, float64",
        ),
        (
            lambda: ours.polarToCart(np.ones(3), np.ones(3, np.float32)),
            "polarToCart: `angle` must be (3,) torch.float64 as `magnitude`",
        ),
        (
            lambda: ours.polarToCart(np.ones(3), np.ones(3), None, None, "yes"),
            "polarToCart: `angleInDegrees` must be True or False",
        ),
    ],
)
def test_errors(build, text):
    with pytest.raises((ValueError, TypeError)) as error:
        build()
    assert str(error.value).startswith(text)
