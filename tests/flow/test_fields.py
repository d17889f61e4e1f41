"""Images warped by flows, and flows made and composed: numpy's definition, every gradient."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck
from torch.linalg import matrix_exp, matrix_power

import warpkit as wk
from tests.support.inputs import BACKENDS, RULES, bend, images, noise
from tests.support.naive_warp import sample as naive_sample
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE
from warpkit import flow
from warpkit.engine.backends import backend_module
from warpkit.engine.definitions.rules import SamplingRule

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.uint8, torch.uint16)


def linear(matrix, size, center=(0.0, 0.0)):
    """The field `matrix (p - center)`, (h, w, 2)."""
    y, x = np.mgrid[: size[0], : size[1]]
    p = np.stack((x, y), -1) - np.asarray(center)
    return torch.from_numpy(p @ np.asarray(matrix, np.float64).T)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("interpolation", "border"), RULES)
def test_a_flow_of_zeros_gives_the_image_to_the_bit(backend, interpolation, border):
    module, served = backend_module(backend), 0
    # each type and layout compiles a kernel; half types use float32's
    for dtype in DTYPES if interpolation == "bilinear" else (torch.float32, torch.uint8):
        for name, image in images(dtype).items():
            if module.unsupported_reasons(image, SamplingRule(interpolation, border, "exact")):
                continue
            if name == "channels-last" and interpolation != "bilinear":
                continue
            options = {"interpolation": interpolation, "border": border, "backend": backend}
            if border == "transparent":
                options["background"] = torch.full_like(image, 7)
            out = wk.warp_flow(image, -torch.zeros(*image.shape[-2:], 2), **options)
            assert torch.equal(out, image), (dtype, name)
            assert out.dtype == dtype
            served += 1
    assert served or backend == "grid_sample"


@pytest.mark.parametrize("arithmetic", ["opencv4", "opencv5"])
def test_a_flow_of_zeros_gives_opencvs_image(arithmetic):
    image = noise(2, 3, 7, 9, dtype=torch.uint8)
    for interpolation in ("nearest", "bilinear", "bicubic"):
        options = {"interpolation": interpolation, "arithmetic": arithmetic}
        assert torch.equal(wk.warp_flow(image, torch.zeros(7, 9, 2), **options), image)


@pytest.mark.parametrize(
    ("backend", "interpolation"),
    [
        (b, i)
        for b in BACKENDS
        for i in ("bilinear", "lanczos4")
        if (b, i[0]) != ("grid_sample", "l")
    ],
)
def test_a_flow_of_zeros_has_the_interpolations_gradient(backend, interpolation):
    """Where the offset is 0, the slope is the interpolation's, not that of a copy."""
    image = noise(1, 1, 9, 9).requires_grad_()
    field = torch.zeros(9, 9, 2).double().requires_grad_()
    options = {"interpolation": interpolation, "border": "reflect", "backend": backend}
    grads = torch.autograd.grad(wk.warp_flow(image, field, **options)[0, 0, 4, 4], [image, field])
    assert (grads[0].sum() - 1).abs() < 1e-12
    assert (grads[0][0, 0, 4, 4] - 1).abs() < 1e-12
    pixels = image.detach()[0, 0]
    step = torch.zeros(9, 9, 2).double()
    step[4, 4, 0] = 1e-6
    slope = wk.warp_flow(image.detach(), step, **options)[0, 0, 4, 4] - pixels[4, 4]
    if interpolation == "bilinear" and backend == "grid_sample":
        ends = pixels[4, 5] - pixels[4, 4], pixels[4, 4] - pixels[4, 3]
        assert min((grads[1][4, 4, 0] - end).abs() for end in ends) < 1e-9
    else:
        assert (grads[1][4, 4, 0] - slope / 1e-6).abs() < 1e-4


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_warp_by_a_flow_matches_numpy(backend):
    image, field = noise(2, 6, 8), bend(5, 7, size=3, seed=1)
    y, x = np.mgrid[:5, :7]
    points = field.numpy() + np.stack((x, y), -1)
    fill = np.full((2, 5, 7), 0.5)
    truth = naive_sample(image.numpy(), points, "bicubic", "constant", fill)
    options = {"interpolation": "bicubic", "border_value": 0.5, "backend": backend}
    out = wk.warp_flow(image, field, **options).numpy()
    assert np.abs(out - truth).max() < TOLERANCE["reference float64"]


def test_images_and_flows_broadcast():
    image, field = noise(2, 1, 3, 6, 8), bend(5, 6, 8, seed=1)
    out = wk.warp_flow(image, field)
    assert out.shape == (2, 5, 3, 6, 8)
    assert torch.equal(out[1, 3], wk.warp_flow(image[1, 0], field[3]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "lanczos4"])
def test_flows_stored_as_planes_give_the_same_bits(interpolation, dtype):
    """Also in a cached call; 35 columns do not fill whole registers."""
    image = noise(2, 3, 33, 20).to(dtype)
    pairs = bend(2, 33, 35, size=5.0).to(dtype)
    planes = pairs.movedim(-1, 1).contiguous().movedim(1, -1)
    found = []
    for field in (pairs, planes, planes):
        i, f = image.clone().requires_grad_(), field.detach().requires_grad_()
        out = wk.warp_flow(i, f, interpolation=interpolation)
        leaves = (i,) if interpolation == "nearest" else (i, f)
        found.append((out, *torch.autograd.grad(out, leaves, torch.ones_like(out).cumsum(-1))))
        plain = wk.warp_flow(image, field, interpolation=interpolation)
        assert torch.equal(plain, out)
    for other in found[1:]:
        assert all(map(torch.equal, found[0], other))


def test_gradients_of_the_warp():
    image, field = noise(2, 5, 6).requires_grad_(), bend(4, 5, seed=1).requires_grad_()

    def warp(i, f):
        return wk.warp_flow(i, f, interpolation="bicubic", border="reflect")

    assert gradcheck(warp, (image, field), check_forward_ad=True)
    assert gradgradcheck(warp, (image, field))


def test_the_flow_of_a_matrix_warps_as_the_matrix():
    image = noise(2, 9, 11)
    matrix = wk.rotation_matrix((4.0, 3.0), torch.tensor([20.0, -50.0]).double(), 1.2)
    for inverse in (False, True):
        field = flow.from_matrix(matrix, (7, 8), inverse=inverse)
        truth = wk.warp_affine(image, matrix, size=(7, 8), inverse=inverse)
        assert (wk.warp_flow(image, field) - truth).abs().max() < 1e-12
    lean = torch.tensor([[1.1, 0.2, -1], [-0.1, 0.9, 0.5], [0.01, -0.02, 1]]).double()
    field = flow.from_matrix(lean, (9, 11))
    u, v, w = np.linalg.inv(lean.numpy()) @ (3, 5, 1)
    assert np.abs(field[5, 3].numpy() - (u / w - 3, v / w - 5)).max() < 1e-12
    assert flow.from_matrix(torch.eye(2, 3), (4, 5)).count_nonzero() == 0
    assert flow.from_matrix(torch.zeros(2, 3), (4, 5)).isnan().all()
    assert gradcheck(lambda m: flow.from_matrix(m, (3, 4)), (lean.requires_grad_(),))
    assert gradgradcheck(lambda m: flow.from_matrix(m, (3, 4)), (lean,))


def test_points_of_a_flow_are_grid_plus_offsets():
    field = bend(2, 5, 6, size=4)
    assert (flow.to_points(field)[1, 3, 2] - field[1, 3, 2]).tolist() == pytest.approx([2, 3])
    assert (flow.from_points(flow.to_points(field)) - field).abs().max() < 1e-15 * 8
    assert flow.from_points(wk.pixel_grid((5, 6))).count_nonzero() == 0
    assert flow.to_points(field.half()).dtype == torch.float16


def test_compose_matches_numpy():
    first, second = bend(2, 5, 6, size=2), bend(4, 7, size=3, seed=1)
    composed = flow.compose(first, second).numpy()
    y, x = np.mgrid[:4, :7]
    points = second.numpy() + np.stack((x, y), -1)
    for item in range(2):
        channels = np.moveaxis(first[item].numpy(), -1, 0)
        moved = naive_sample(channels, points, "bilinear", "replicate", np.zeros((2, 4, 7)))
        truth = second.numpy() + np.moveaxis(moved, 0, -1)
        assert np.abs(composed[item] - truth).max() < TOLERANCE["reference float64"]


def test_a_composed_flow_equals_two_warps_in_a_row():
    """An image of x, y and x y has no resampling error under bilinear affine warps."""
    y, x = torch.meshgrid(torch.arange(40.0).double(), torch.arange(50.0).double(), indexing="ij")
    image = torch.stack((0.3 * x - 0.2 * y, 5 + 0.1 * x + y))
    turn, shear = wk.rotation_matrix((25, 20), 12.0, 1.1), [[1, 0.1, -2], [0.05, 0.95, 1]]
    exact = [flow.from_matrix(torch.as_tensor(m).double(), (40, 50)) for m in (turn, shear)]
    first, second = exact
    twice = wk.warp_flow(wk.warp_flow(image, first), second)
    once = wk.warp_flow(image, flow.compose(first, second))
    assert (once - twice)[:, 12:28, 15:35].abs().max() < 1e-11
    matrices = wk.compose(torch.as_tensor(turn).double(), torch.as_tensor(shear).double())
    truth = flow.from_matrix(matrices, (40, 50))
    assert (flow.compose(first, second) - truth)[8:32, 10:40].abs().max() < 1e-11
    zero = torch.zeros(40, 50, 2).double()
    assert torch.equal(flow.compose(first, zero), first)
    assert torch.equal(flow.compose(zero, second), second)


def test_nonfinite_offsets_do_not_affect_other_pixels():
    first, second = bend(5, 6), bend(5, 6, seed=1)
    second[2, 3], second[1, 1, 0] = torch.nan, torch.inf
    second = second.requires_grad_()
    composed = flow.compose(first, second)
    finite = composed.isfinite().all(-1)
    assert not finite[2, 3]
    assert not finite[1, 1]
    assert finite.sum() == 28
    (grad,) = torch.autograd.grad(composed[finite].sum(), second)
    assert grad.isfinite().all()


def test_determinants_match_numpy():
    field = bend(3, 6, 7, size=2)
    truth = []
    for f in field.numpy():
        (uy, ux), (vy, vx) = np.gradient(f[..., 0]), np.gradient(f[..., 1])
        truth.append((1 + ux) * (1 + vy) - uy * vx)
    assert np.abs(flow.jacobian_determinant(field).numpy() - np.array(truth)).max() < 1e-14
    matrix = [[0.3, -0.2], [0.5, -1.7]]
    ours = flow.jacobian_determinant(linear(matrix, (5, 6)))
    assert (ours - np.linalg.det(np.eye(2) + matrix)).abs().max() < 1e-13
    for shape in ((1, 4), (4, 1), (1, 1), (2, 2)):
        assert (
            flow.jacobian_determinant(torch.zeros(*shape, 2)).tolist()
            == [[1.0] * shape[1]] * shape[0]
        )


def test_integration_gives_the_matrix_exponential():
    constant = torch.tensor([1.25, -0.5]).double().expand(6, 7, 2)
    assert (flow.integrate(constant) - constant).abs().max() < 1e-14
    turn, center = torch.tensor([[0.02, -0.3], [0.3, -0.01]]).double(), (20.0, 20.0)
    velocity = linear(turn, (41, 41), center)
    inner = np.s_[12:29, 12:29]
    for steps in (0, 3, 7, 12):
        ours = flow.integrate(velocity, steps=steps)[inner]
        eye = torch.eye(2).double()
        euler = matrix_power(eye + turn / 2**steps, 2**steps) - eye
        assert (ours - linear(euler, (41, 41), center)[inner]).abs().max() < 1e-11, steps
        truth = linear(matrix_exp(turn) - eye, (41, 41), center)[inner]
        # |A|^2 / 2^(steps + 1) of 12 pixels from the centre, and a little for the higher terms
        assert (ours - truth).abs().max() < 1.5 * 0.3**2 / 2 ** (steps + 1) * 12, steps
    back = flow.compose(flow.integrate(velocity), flow.integrate(-velocity))
    assert back[inner].abs().max() < 0.01


def test_an_integrated_field_does_not_fold():
    waves = torch.sin(torch.arange(40.0).double() / 4)
    velocity = 6 * torch.stack((waves[:, None] * waves, waves[:, None] - waves), -1)
    assert flow.jacobian_determinant(velocity).min() < 0
    assert flow.jacobian_determinant(flow.integrate(velocity)).min() > 0


def test_gradients_of_fields():
    first, second = bend(4, 5).requires_grad_(), bend(3, 4, seed=1).requires_grad_()
    assert gradcheck(flow.compose, (first, second), check_forward_ad=True)
    assert gradgradcheck(flow.compose, (first, second))
    for function in (lambda v: flow.integrate(v, steps=2), flow.jacobian_determinant):
        assert gradcheck(function, (first,), check_forward_ad=True)
        assert gradgradcheck(function, (first,))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_fields_keep_their_type(dtype):
    field = bend(5, 6).to(dtype)
    functions = (flow.to_points, flow.from_points, flow.integrate, flow.jacobian_determinant)
    for function in (*functions, lambda f: flow.compose(f, f)):
        result, truth = function(field), function(field.double())
        assert result.dtype == dtype
        assert (result.double() - truth).abs().max() <= 8 * 2 * torch.finfo(dtype).eps
    image = noise(1, 5, 6, dtype=torch.float32)
    assert wk.warp_flow(image, field).dtype == torch.float32


def test_flows_under_vmap_compile_and_export():
    image, fields = noise(1, 5, 6), bend(3, 5, 6)
    many = torch.vmap(lambda f: wk.warp_flow(image, flow.integrate(f, steps=2)))(fields)
    loop = [wk.warp_flow(image, flow.integrate(f, steps=2)) for f in fields]
    assert (many - torch.stack(loop)).abs().max() < TOLERANCE["two modes float64"]
    exact = torch.vmap(lambda f: wk.warp_flow(image, f, interpolation="lanczos4"))(fields * 0)
    assert torch.equal(exact, image.expand(3, 1, 5, 6))
    compiled = torch.compile(
        lambda i, f: wk.warp_flow(i, flow.compose(f, f)), fullgraph=True, backend="aot_eager"
    )
    truth = wk.warp_flow(image, flow.compose(fields[0], fields[0]))
    assert (compiled(image, fields[0]) - truth).abs().max() < TOLERANCE["two modes float64"]


def test_errors():
    image, field = torch.zeros(3, 4, 5), torch.zeros(4, 5, 2)
    text = "warp_flow: `flow` must be of shape (..., h, w, 2), got (2, 4, 5): "
    text += "(..., 2, h, w) is flow.movedim(-3, -1)"
    with pytest.raises(ValueError, match=re.escape(text)):
        wk.warp_flow(image, torch.zeros(2, 4, 5))
    with pytest.raises(
        ValueError, match=re.escape("`flow` must be of shape (..., h, w, 2), got (4, 2)")
    ):
        wk.warp_flow(image, torch.zeros(4, 2))
    with pytest.raises(
        ValueError, match=re.escape("warp_flow: the batch dimensions of `image` and `flow`")
    ):
        wk.warp_flow(torch.zeros(2, 3, 4, 5), torch.zeros(3, 4, 5, 2))
    with pytest.raises(ValueError, match="compose: the batch dimensions of `first` and `second`"):
        flow.compose(torch.zeros(2, 4, 5, 2), torch.zeros(3, 4, 5, 2))
    with pytest.raises(ValueError, match=re.escape("from_points: `points` must be of shape")):
        flow.from_points(torch.zeros(0, 5, 2))
    with pytest.raises(ValueError, match="warp_flow: `border` must be one of"):
        wk.warp_flow(image, field, border="mirror")


@pytest.mark.parametrize(
    ("steps", "error"), [(1.0, TypeError), (True, TypeError), (-1, ValueError), (61, ValueError)]
)
def test_bad_numbers_of_steps_are_rejected(steps, error):
    with pytest.raises(error, match="integrate: `steps` must be"):
        flow.integrate(torch.zeros(4, 5, 2), steps=steps)


def test_a_normalised_grid_gets_a_warning():
    theta = torch.eye(2, 3)[None]
    image = torch.zeros(1, 1, 20, 30)
    for align in (False, True):
        grid = torch.nn.functional.affine_grid(theta, [1, 1, 20, 30], align_corners=align)
        with pytest.warns(UserWarning, match="warp_flow: `flow` runs from -1 to 1"):
            wk.warp_flow(image, grid)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for field in (bend(20, 30), torch.zeros(20, 30, 2), linear([[0.2, 0], [0, 0.2]], (20, 30))):
            wk.warp_flow(image, field)
    wk.warp_flow(image.byte(), torch.zeros(20, 30, 2))
    with pytest.warns(UserWarning, match="no gradient reaches `flow`"):
        wk.warp_flow(image.byte(), torch.zeros(20, 30, 2, requires_grad=True))
