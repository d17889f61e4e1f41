"""Any numbers in matrices and points: the border's value, gradient zero, never NaN."""

from __future__ import annotations

import itertools

import pytest
import torch

import warpkit as wk
from tests.support.inputs import RULES, noise
from tests.support.tolerances import TOLERANCE
from warpkit.engine import backends as kernels
from warpkit.engine.definitions.rules import SamplingRule

WILD = [float("nan"), float("inf"), -float("inf"), 1e38, -1e38, 2.0**31, -(2.0**31)]


def backends(image, rule):
    """Every backend that supports the rule; the others are checked to reject it."""
    for name in kernels.BACKENDS:
        try:
            kernels.select_backend("test", name, image, SamplingRule(*rule))
        except ValueError:
            continue
        yield name


def options(rule, value=7.0, size=(4, 5)):
    background = noise(2, *size, dtype=torch.float32, seed=5) if rule[1] == "transparent" else None
    return {
        "interpolation": rule[0],
        "border": rule[1],
        "border_value": value,
        "background": background,
    }


def shown_border(kwargs, items, size):
    """The output (items, 2, *size) where no tap reads the image."""
    if kwargs["border"] == "transparent":
        return kwargs["background"].expand(items, -1, -1, -1)
    return torch.full((items, 2, *size), 7.0)


@pytest.mark.filterwarnings("ignore:.*under nearest interpolation")
@pytest.mark.parametrize("rule", RULES)
def test_extreme_points_show_the_border_and_get_no_gradient(rule):
    """One field for each extreme value."""
    image = noise(1, 2, 5, 6, dtype=torch.float32).requires_grad_()
    fields = torch.full((len(WILD), 4, 5, 2), 2.25)
    fields[..., 0] += torch.arange(5) * 0.5
    wild = [(0, 0, 0), (1, 1, 1), (2, 2, 0), (3, 4, 1)]
    hit = torch.zeros(4, 5, dtype=torch.bool)
    for field, value in zip(fields, WILD, strict=True):
        for index in wild:
            field[index] = value
        field[0, 1] = value
    for v, u, _ in [*wild, (0, 1, 0)]:
        hit[v, u] = True
    kwargs = options(rule)
    border = shown_border(kwargs, len(WILD), (4, 5))
    for backend in backends(image, rule):
        points = fields.clone().requires_grad_()
        image.grad = None
        out = wk.remap(image, points, backend=backend, **kwargs)
        assert torch.equal(out[..., hit], border[..., hit])
        assert out.isfinite().all()
        (out * torch.where(hit, 1.0, 0.0)).sum().backward()
        assert image.grad is not None
        assert not image.grad.any()
        if points.grad is not None:
            assert not points.grad[:, hit].any()


@pytest.mark.filterwarnings("ignore:.*under nearest interpolation")
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("inverse", [False, True])
def test_a_matrix_that_is_not_finite_shows_only_the_border(rule, inverse):
    """Each of the six entries in turn, with each value; also each image gradient alone."""
    matrices = torch.eye(2, 3).repeat(18, 1, 1)
    entries = itertools.product(range(2), range(3), WILD[:3])
    for matrix, (row, column, value) in zip(matrices, entries, strict=True):
        matrix[row, column] = value
    images = noise(1, 2, 4, 5, dtype=torch.float32).expand(18, -1, -1, -1).clone().requires_grad_()
    matrices.requires_grad_()
    kwargs = options(rule)
    for backend in backends(images, rule):
        images.grad = matrices.grad = None
        out = wk.warp_affine(images, matrices, inverse=inverse, backend=backend, **kwargs)
        if (
            not inverse
        ):  # with inverse=True the other coordinate's zero row times inf is NaN as well
            assert torch.equal(out, shown_border(kwargs, 18, (4, 5)))
        assert out.isfinite().all()
        out.sum().backward()
        assert images.grad is not None
        assert images.grad.isfinite().all()
        if matrices.grad is not None:
            assert matrices.grad.isfinite().all()


@pytest.mark.filterwarnings("ignore:.*under nearest interpolation")
@pytest.mark.parametrize("rule", RULES)
def test_huge_and_singular_matrices_are_finite_everywhere(rule):
    image = noise(2, 4, 5, dtype=torch.float32).requires_grad_()
    kwargs = options(rule)
    matrices = torch.eye(3).repeat(36, 1, 1)
    entries = itertools.product(range(3), range(3), [1e38, -1e38, 1e-38, 0.0])
    for matrix, (row, column, value) in zip(matrices, entries, strict=True):
        matrix[row, column] = value
    matrices.requires_grad_()
    for backend in backends(image, rule):
        out = wk.warp_perspective(image[None], matrices, backend=backend, **kwargs)
        assert out.shape == (36, 2, 4, 5)
        assert out.isfinite().all()
        (grad,) = torch.autograd.grad(out.sum(), matrices, allow_unused=True)
        assert grad is None or not grad.isnan().any()
        singular = torch.tensor([[1.0, 2, 3], [2, 4, 1]], requires_grad=True)
        out = wk.warp_affine(image, singular, backend=backend, **kwargs)
        assert torch.equal(out, shown_border(kwargs, 1, (4, 5))[0])


def test_a_determinant_whose_inverse_square_overflows_has_gradient_zero():
    image = noise(1, 4, 5)
    matrix = torch.eye(2, 3, dtype=torch.float64)
    matrix[0, 2], matrix[1, 1] = 0.5, 1e-200
    matrix.requires_grad_()
    out = wk.warp_affine(image, matrix)
    assert torch.equal(out[:, 0, 1:], (image[:, 0, 1:] + image[:, 0, :-1]) / 2)  # y = 0 maps to 0
    assert not out[:, 1:].any()
    out.sum().backward()
    assert matrix.grad is not None
    assert not matrix.grad.any()


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize("seed", range(40))
def test_float64_entries_that_overflow_give_no_nan(seed, backend):
    generator = torch.Generator().manual_seed(seed)
    huge = torch.tensor([1e100, 1e155, -1e200, 1e300, 1e-200, 1e308, 0.0], dtype=torch.float64)
    matrix = torch.eye(3, dtype=torch.float64)
    matrix += 0.05 * torch.randn(3, 3, dtype=torch.float64, generator=generator)
    places = torch.randperm(9, generator=generator)[:3]
    matrix.view(-1)[places] = huge[torch.randint(7, (3,), generator=generator)]
    for rows, warp in ((2, wk.warp_affine), (3, wk.warp_perspective)):
        given = matrix[:rows].clone().requires_grad_()
        out = warp(noise(1, 4, 5), given, border="replicate", backend=backend)
        weights = torch.randn(out.shape, dtype=out.dtype, generator=generator)
        (grad,) = torch.autograd.grad((out * weights).sum(), given)
        assert out.isfinite().all()
        assert not grad.isnan().any()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos4"])
@pytest.mark.parametrize("turn", [0.1, 0.0])
def test_a_nonfinite_border_value_shows_only_at_missing_taps(interpolation, value, turn):
    matrix = [[1.0, turn, 0.37 * (turn > 0)], [-turn, 1.0, 0.71]]
    options = {"interpolation": interpolation, "size": (34, 35)}
    image = noise(2, 20, 21)
    finite = wk.warp_affine(image, matrix, backend="reference", **options)
    shown = wk.warp_affine(image, matrix, backend="reference", border_value=value, **options)
    there = shown.isfinite()
    assert there.any() != there.all()
    assert torch.equal(shown[there], finite[there])
    for backend in backends(image, (interpolation, "constant")):
        found = wk.warp_affine(image, matrix, backend=backend, border_value=value, **options)
        # elsewhere NaN or infinity, which depends on the order of the sum
        assert torch.equal(found.isfinite(), there)
        torch.testing.assert_close(
            found[there], shown[there], atol=TOLERANCE["cpu torch.float64"], rtol=0
        )
        read_alone = found[:, -1, -1]
        assert torch.allclose(read_alone, torch.tensor(value).double(), equal_nan=True)


def test_the_last_coordinate_below_the_limit_is_still_sampled():
    image = noise(1, 4, 5)
    far = torch.tensor([[[2.0**31 - 1, 0.0]]], dtype=torch.float64)
    assert torch.equal(wk.remap(image, far, border="replicate")[..., 0, 0], image[:, 0, 4])
    wrapped = wk.remap(image, far, border="wrap", border_value=9.0)
    assert torch.equal(wrapped[..., 0, 0], image[:, 0, (2**31 - 1) % 5])
    assert wk.remap(image, far + 1, border="replicate", border_value=9.0).item() == 9


FOLDED = {
    "replicate": lambda i, n: min(max(i, 0), n - 1),
    "wrap": lambda i, n: i % n,
    "reflect": lambda i, n: min(i % (2 * n), 2 * n - 1 - i % (2 * n)),
    "reflect_101": lambda i, n: min(i % (2 * n - 2), 2 * n - 2 - i % (2 * n - 2)),
}


@pytest.mark.parametrize("border", FOLDED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.uint8, torch.int64])
@pytest.mark.parametrize("length", [2, 5, 7])
def test_nearest_rounds_up_to_the_limit(length, dtype, border):
    """Half a pixel below 2^31 it reads pixel 2^31, which int32 cannot hold."""
    off = [2.0**-22, 0.25, 0.5, 0.75, 1.0, 1.5]
    at = torch.tensor([sign * (2.0**31 - n) for n in off for sign in (1, -1)], dtype=torch.float64)
    wanted = [FOLDED[border](round(p), length) for p in at.tolist()]  # half to even
    image = torch.arange(length * length).reshape(1, length, length).to(dtype)
    for backend in backends(image, ("nearest", border)):
        for axis, factor in ((0, 1), (1, length)):
            points = torch.zeros(1, len(at), 2, dtype=torch.float64)
            points[0, :, axis] = at
            call = {"interpolation": "nearest", "border": border, "backend": backend}
            for _ in range(2):
                found = wk.remap(image, points, **call)[0, 0].tolist()
                assert found == [factor * n for n in wanted], (backend, axis)
            matrix = torch.eye(2, 3, dtype=torch.float64).expand(len(at), 2, 3).clone()
            matrix[:, axis, 2] = at
            found = wk.warp_affine(image, matrix, size=(1, 1), inverse=True, **call)
            assert found.flatten().tolist() == [factor * n for n in wanted], (backend, axis)


def test_an_infinite_pixel_does_not_leak_through_a_missing_tap():
    image = torch.full((1, 1, 3), float("inf"))
    out = wk.remap(image, torch.tensor([[[-3.0, 0.0], [-1.5, 0.0]]]), border_value=2.0)
    assert torch.equal(out, torch.tensor([[[2.0, 2.0]]]))


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "lanczos4"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_point_that_reads_only_a_nonfinite_border_has_gradient_zero(interpolation, value):
    image = noise(2, 5, 6)
    rule = (interpolation, "constant")
    for backend in backends(image, rule):
        points = torch.tensor([[[20.25, 2.5], [2.5, -9.25], [4e9, 0.0]]]).double().requires_grad_()
        out = wk.remap(image, points, backend=backend, **options(rule, value))
        assert torch.allclose(out, torch.full_like(out, value), equal_nan=True)
        out.sum().backward()
        assert points.grad is not None
        assert not points.grad.any()


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
@pytest.mark.parametrize("border", ["reflect", "reflect_101", "wrap", "replicate"])
def test_two_points_at_opposite_ends_of_the_range(border, interpolation):
    """Their bounding box has 2.8e9 x 3.4e9 pixels, which exceeds 64 bits."""
    points = torch.tensor([[1494707841.0, -2020225277], [-1341095036, 1331870085]]).double()
    image = noise(1, 7, 6).requires_grad_()
    options = {"interpolation": interpolation, "border": border}
    found = wk.remap(image, points[:, None], backend="cpu", **options)
    wanted = wk.remap(image, points[:, None], backend="reference", **options)
    assert torch.equal(found, wanted)
    ours, truth = (torch.autograd.grad(out.sum(), image)[0] for out in (found, wanted))
    torch.testing.assert_close(ours, truth)


@pytest.mark.parametrize("value", [float("inf"), -float("inf"), float("nan")])
@pytest.mark.parametrize("rule", [rule for rule in RULES if rule[0] != "nearest"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_an_infinite_border_gives_the_references_result(rule, value, dtype):
    """inf times weights of both signs or 0 is NaN; -inf times only negative weights is inf.

    As the border value, or in some pixels of the background.
    """
    image = noise(2, 2, 9, 12, dtype=dtype)
    matrix = wk.affine_matrix(angle=20.0, scale=0.8, translation=(3.0, -2.5), center=(6.0, 4.0))
    whole = torch.tensor([[1.0, 0.0, 3.0], [0.0, 1.0, -2.0]])  # weights of 0 and 1
    matrices = torch.stack((matrix.float(), whole)).to(dtype)
    kwargs = options(rule, value, (40, 37))
    if rule[1] == "transparent":
        background = noise(2, 40, 37, dtype=dtype, seed=5)
        background[:, ::3, 1::4] = value
        kwargs |= {"border_value": 0.0, "background": background}
    wanted, found = (
        wk.warp_affine(image, matrices, size=(40, 37), backend=name, **kwargs)
        for name in ("reference", "cpu")
    )
    assert torch.equal(found.isnan(), wanted.isnan())
    assert torch.equal(found.isinf(), wanted.isinf())
    tolerance = TOLERANCE[f"cpu {dtype}"]
    torch.testing.assert_close(found, wanted, rtol=0, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize("border", ["constant", "replicate", "reflect_101", "wrap"])
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos4"])
@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_the_fill_gets_the_gradient_of_points_without_a_position(backend, interpolation, border):
    """One for each such point, whatever the border, and none of the others inside the image."""
    image = torch.rand(1, 2, 12, 13, dtype=torch.float64, requires_grad=True)
    points = wk.pixel_grid((3, 4)).double()[None] + 4
    for place, number in enumerate(WILD[:3] + WILD[5:]):
        points[0, place // 4, place % 4, place % 2] = number
    fill = torch.tensor([0.25, 0.5], dtype=torch.float64, requires_grad=True)
    options = {"interpolation": interpolation, "border": border, "backend": backend}
    out = wk.remap(image, points, border_value=fill, **options)
    wanted = torch.tensor([[1.0, 10.0], [2.0, 20.0]], dtype=torch.float64)
    for weights in wanted:
        grads = torch.autograd.grad(
            (out * weights[:, None, None]).sum(), (fill, image), retain_graph=True
        )
        torch.testing.assert_close(grads[0], 5 * weights)
        torch.testing.assert_close(grads[1].sum((0, 2, 3)), 7 * weights)
