"""Gradients under OpenCV's arithmetics: the interpolation's at the rounded position."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad, gradcheck

import warpkit as wk
from tests.support.inputs import noise
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE
from warpkit.engine.arithmetic import opencv
from warpkit.engine.sampling import reference
from warpkit.engine.sampling.maps import inverse_map, output_points
from warpkit.engine.sampling.rules import BORDERS, INTERPOLATIONS, SamplingRule

# forward mode scripts torch's own decompositions on first use
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:FutureWarning")

ARITHMETICS = ("opencv4", "opencv5")
OPTIONS = [(a, i, b) for a in ARITHMETICS for i in INTERPOLATIONS for b in BORDERS]
SMOOTH = [
    (a, i, b)
    for a in ARITHMETICS
    for i in ("bilinear", "bicubic", "lanczos4")
    for b in ("constant", "reflect", "transparent")
]
SIZE = (6, 19)


def matrices() -> Tensor:
    return wk.rotation_matrix((3.0, 2.0), torch.tensor([33.0, -71.0]).double(), 1.1)


def rounded_to_32(matrix: Tensor) -> Tensor:
    """OpenCV 4's positions of an affine warp in numpy: rounded to 1/1024, then to 1/32 pixel."""
    inverse = inverse_map(matrix).numpy()
    x, y = np.meshgrid(np.arange(SIZE[1]), np.arange(SIZE[0]))
    axes = []
    for a, b, c in inverse.reshape(-1, 3):
        fine = np.rint(a * x * 1024) + np.rint((b * y + c) * 1024) + 16
        axes.append(np.floor(fine / 32) / 32)
    points = np.stack(axes).reshape(*inverse.shape[:-2], 2, *SIZE)
    return torch.from_numpy(points).movedim(-3, -1)


@pytest.mark.parametrize("border", ["constant", "replicate", "reflect", "reflect_101", "wrap"])
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "lanczos4"])
def test_gradients_are_taken_at_the_rounded_position(interpolation, border):
    image, value = noise(3, 7, 9).requires_grad_(), noise(3, seed=1).requires_grad_()
    matrix = matrices().requires_grad_()
    weights = noise(2, 3, *SIZE, seed=2) - 0.5
    options = {"interpolation": interpolation, "border": border}
    out = wk.warp_affine(
        image, matrix, size=SIZE, border_value=value, arithmetic="opencv4", **options
    )
    points = output_points(inverse_map(matrix), SIZE)
    points = points + (rounded_to_32(matrix.detach()) - points).detach()
    expected = reference.sample(image, points, value[:, None, None], SamplingRule(**options))
    inputs = [image, matrix, value] if border == "constant" else [image, matrix]
    got = torch.autograd.grad(out, inputs, weights)
    wanted = torch.autograd.grad(expected, inputs, weights)
    for a, b in zip(got, wanted, strict=True):
        assert b.abs().max() > 0.1
        assert (a - b).abs().max() <= TOLERANCE["reference float64"] * b.abs().max()
    # the value is close to the surrogate's, whose weights are not rounded to float32
    assert (out - expected).abs().max() < TOLERANCE["opencv weights"]


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_ramp_has_the_exact_gradient(arithmetic, dtype):
    """On a ramp the slope is the same at rounded positions; by hand."""
    y, x = torch.meshgrid(torch.arange(40.0), torch.arange(50.0), indexing="ij")
    image = (2 * x - 3 * y)[None].to(dtype)
    matrix = torch.tensor([[0.9, 0.1, 12.0], [-0.1, 0.95, 14.0]]).double().requires_grad_()
    out = wk.warp_affine(image, matrix, size=(16, 20), inverse=True, arithmetic=arithmetic)
    (got,) = torch.autograd.grad(out.double().sum(), matrix)
    row = torch.tensor([19 / 2, 15 / 2, 1.0]).double() * 320
    expected = torch.stack([2 * row, -3 * row])
    assert (got - expected).abs().max() <= TOLERANCE["opencv weights"] * expected.abs().max()


@pytest.mark.parametrize(("arithmetic", "interpolation", "border"), OPTIONS)
def test_the_backward_pass_is_the_adjoint(arithmetic, interpolation, border):
    """The result is linear in image, border value and background: <A x, y> = <x, A' y>."""
    rule = {"arithmetic": arithmetic, "interpolation": interpolation, "border": border}

    def whole(*shape: int, seed: int = 0) -> Tensor:  # OpenCV 5's bicubic truncates fractions
        return noise(*shape, seed=seed).mul(255).floor().requires_grad_()

    image, value = whole(3, 7, 9), whole(3, seed=1)
    inputs = [image, value]
    if border == "transparent":
        rule["background"] = whole(2, 3, *SIZE, seed=3)
        inputs = [image, rule["background"]]
    out = wk.warp_affine(image, matrices(), size=SIZE, border_value=value, **rule)
    weights = noise(2, 3, *SIZE, seed=2) - 0.5
    grads = torch.autograd.grad(out, inputs, weights, allow_unused=True)
    back = sum((x * g).sum() for x, g in zip(inputs, grads, strict=True) if g is not None)
    scale = 255 * weights.abs().sum()
    assert abs((out * weights).sum() - back) < TOLERANCE["opencv weights"] * scale


@pytest.mark.parametrize(("arithmetic", "interpolation", "border"), SMOOTH)
def test_points_and_matrices_have_gradients_in_both_modes(arithmetic, interpolation, border):
    """Every input gets a first and a second gradient, and forward mode agrees with reverse."""
    options = {"arithmetic": arithmetic, "interpolation": interpolation, "border": border}
    if border == "transparent":
        options["background"] = noise(3, *SIZE, seed=3)
    image, points = noise(3, 7, 9), noise(*SIZE, 2, seed=4) * 8 - 0.5
    perspective = torch.tensor([[1.1, 0.2, -1], [-0.1, 0.9, 0.5], [0.01, -0.02, 1]]).double()
    for call, second in ((wk.remap, points), (wk.warp_perspective, perspective)):
        size = {} if call is wk.remap else {"size": SIZE}

        def function(image: Tensor, second: Tensor, call=call, size=size) -> Tensor:
            return call(image, second, **size, **options).sin().sum()

        inputs = (image.requires_grad_(), second.requires_grad_())
        grads = torch.autograd.grad(function(*inputs), inputs, create_graph=True)
        assert all(grad.abs().max() > 0.01 for grad in grads)
        assert all(grad.requires_grad for grad in grads)
        tangents = tuple(noise(*x.shape, seed=5) for x in inputs)
        along = sum((g * t).sum() for g, t in zip(grads, tangents, strict=True))
        (curved,) = torch.autograd.grad(along, inputs[:1])
        assert curved.abs().max() > 0.01
        with forward_ad.dual_level():
            duals = [
                forward_ad.make_dual(x.detach(), t) for x, t in zip(inputs, tangents, strict=True)
            ]
            tangent = forward_ad.unpack_dual(function(*duals)).tangent
        assert abs(tangent - along) < 1e-9 * max(abs(along), 1)


@pytest.mark.parametrize(
    ("interpolation", "border"),
    [
        ("nearest", "constant"),
        ("bilinear", "reflect"),
        ("bilinear", "transparent"),
        ("bicubic", "constant"),
        ("bicubic", "transparent"),
        ("lanczos4", "reflect"),
    ],
)
def test_gradcheck_of_the_linear_inputs(interpolation, border):
    """By finite differences of the value itself, which is linear in these inputs."""
    rule = {"arithmetic": "opencv4", "interpolation": interpolation, "border": border}
    size = (2, 3)
    below = noise(1, *size, seed=1).requires_grad_()
    value = noise(1, seed=2).requires_grad_()
    matrix = torch.tensor([[1.1, 0.2, -1], [-0.1, 0.9, 0.5]]).double()

    def warp(image: Tensor, outside: Tensor) -> Tensor:
        name = "background" if border == "transparent" else "border_value"
        return wk.warp_affine(image, matrix, size=size, **{name: outside}, **rule)

    inputs = (noise(1, 3, 2).requires_grad_(), below if border == "transparent" else value)
    used = inputs if border in ("constant", "transparent") else (inputs[0], inputs[1].detach())
    assert gradcheck(warp, used, check_forward_ad=True)
    assert gradgradcheck(lambda *x: warp(*x).square(), used)


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "lanczos4"])
def test_gradcheck_of_the_surrogate_at_rounded_points(interpolation):
    """Between multiples of 1/32 the gradient is the surrogate's at the rounded position."""
    image = noise(2, 7, 9)
    points = ((noise(3, 4, 2, seed=1) * 5 * 32).floor() + 0.25) / 32
    points.requires_grad_()
    rule = SamplingRule(interpolation, "reflect")

    def surrogate(points: Tensor) -> Tensor:
        return reference.sample(image, points, torch.zeros(()).double(), rule)

    shifted = (points - 0.25 / 32).detach().requires_grad_()
    assert gradcheck(surrogate, (shifted,))
    weights = noise(2, 3, 4, seed=2)
    out = wk.remap(
        image, points, interpolation=interpolation, border="reflect", arithmetic="opencv4"
    )
    (got,) = torch.autograd.grad(out, points, weights)
    (expected,) = torch.autograd.grad(surrogate(shifted), shifted, weights)
    assert torch.equal(got, expected)


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_nearest_has_no_gradient_to_the_matrix(arithmetic):
    image, matrix = noise(3, 7, 9).requires_grad_(), matrices().requires_grad_()
    out = wk.warp_affine(image, matrix, interpolation="nearest", arithmetic=arithmetic)
    to_image, to_matrix = torch.autograd.grad(out.sum(), (image, matrix), allow_unused=True)
    assert to_image.sum() > 1
    assert to_matrix is None or not to_matrix.any()


def test_the_surrogate_is_computed_only_for_gradients(monkeypatch):
    def fail(*_):
        raise AssertionError("the surrogate was computed for nothing")

    monkeypatch.setattr(opencv, "_with_gradient", fail)
    matrix = matrices().requires_grad_()
    assert not wk.warp_affine(noise(3, 7, 9), matrices(), arithmetic="opencv4").requires_grad
    with torch.no_grad():
        wk.warp_affine(noise(3, 7, 9), matrix, arithmetic="opencv5")
    integer = noise(3, 7, 9, dtype=torch.uint8)
    with pytest.warns(UserWarning, match="no gradient reaches `matrix`"):
        assert not wk.warp_affine(integer, matrix, arithmetic="opencv4").requires_grad


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_infinite_pixels_do_not_change_the_value(arithmetic):
    image = noise(1, 7, 9, dtype=torch.float32)
    image[0, 3, 4] = torch.inf
    for matrix in ([[1.0, 0, 0], [0, 1, 0]], [[1.0, 0, 0.3], [0, 1, 0.1]]):
        plain = wk.warp_affine(image, matrix, arithmetic=arithmetic)
        tracked = wk.warp_affine(image.clone().requires_grad_(), matrix, arithmetic=arithmetic)
        assert torch.equal(plain.nan_to_num(-1), tracked.detach().nan_to_num(-1))
        tracked.sum().backward()


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_requiring_gradients_changes_no_bit(arithmetic, interpolation):
    image = noise(1, 7, 9, dtype=torch.float32)
    options = {"size": SIZE, "interpolation": interpolation, "arithmetic": arithmetic}
    plain = wk.warp_affine(image, matrices(), **options)
    tracked = wk.warp_affine(image.requires_grad_(), matrices().requires_grad_(), **options)
    assert torch.equal(plain, tracked.detach())


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_nonfinite_points_get_no_gradient(arithmetic):
    image, value = noise(1, 7, 9).requires_grad_(), torch.tensor([2.0]).double().requires_grad_()
    points = torch.full((2, 3, 2), torch.nan).double().requires_grad_()
    out = wk.remap(image, points, border="replicate", border_value=value, arithmetic=arithmetic)
    out.sum().backward()
    assert torch.equal(image.grad, torch.zeros_like(image))
    assert torch.equal(points.grad, torch.zeros_like(points))
    assert value.grad.item() == 6


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_a_saturated_position_gives_its_point_no_gradient(arithmetic):
    """OpenCV 4 holds positions in 16 bits; OpenCV 5's bicubic clamps them near the image."""
    image = noise(1, 40, 37)
    points = torch.tensor([[[50000.3, 3.2], [3.3, 4.1]]]).double().requires_grad_()
    options = {"border": "reflect", "interpolation": "bicubic", "arithmetic": arithmetic}
    wk.remap(image, points, **options).sum().backward()
    assert points.grad[0, 0, 0] == 0
    assert points.grad[0, 1].abs().min() > 0


def test_gradients_under_torch_func():
    image, matrix = noise(1, 7, 9), matrices()

    def loss(matrix: Tensor) -> Tensor:
        return wk.warp_affine(image, matrix, arithmetic="opencv4").square().sum()

    together = torch.func.vmap(torch.func.grad(loss))(matrix)
    for m, got in zip(matrix, together, strict=True):
        m = m.clone().requires_grad_()
        (expected,) = torch.autograd.grad(loss(m), m)
        assert (got - expected).abs().max() <= 1e-9 * expected.abs().max()
    _, tangent = torch.func.jvp(loss, (matrix[0],), (torch.ones(2, 3).double(),))
    assert abs(tangent - together[0].sum()) <= 1e-9 * abs(tangent)
