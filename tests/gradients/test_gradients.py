"""Surrogate gradients, gradient support, and the check by finite differences."""

from __future__ import annotations

import contextlib
import io
import re

import pytest
import torch
from torch.autograd.gradcheck import GradcheckError
from torch.func import grad, jvp, vmap

import warpkit as wk
from tests.support import ROOT
from tests.support.inputs import BACKENDS, RULES, noise
from tests.support.second_order import gradgradcheck

MOVE = [[1, 0, 10], [0, 1, 20]]
"""A known case: 64 x 64 x 3, moved by (10, 20), mean of the result as the loss."""


def seeded_image() -> torch.Tensor:
    torch.manual_seed(42)
    return torch.rand(64, 64, 3, requires_grad=True)


# straight_through


def test_straight_through_has_the_values_bits_and_the_surrogates_gradient():
    value = torch.tensor([0.1, -0.0, 0.0, torch.inf, torch.nan], requires_grad=True)
    surrogate = torch.tensor([1e8, 1e-8, 3.0, 2.0, 5.0], requires_grad=True)
    result = wk.straight_through(value, surrogate * surrogate)
    assert torch.equal(result.view(torch.int32), value.view(torch.int32))  # also the sign of 0
    result.backward(torch.ones(5))
    assert value.grad is None
    torch.testing.assert_close(surrogate.grad, 2 * surrogate, rtol=0, atol=0)


def test_straight_through_is_finite_where_the_surrogate_is_not():
    surrogate = torch.tensor([torch.inf, torch.nan, 1.0], requires_grad=True)
    result = wk.straight_through(torch.zeros(3), surrogate)
    assert result.tolist() == [0, 0, 0]
    result.sum().backward()
    assert surrogate.grad.tolist() == [0, 0, 1]


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:FutureWarning")
def test_straight_through_works_in_every_autograd_mode():
    x = noise(5)

    def f(x):
        return wk.straight_through(x.round(), x**3)

    torch.testing.assert_close(grad(lambda x: f(x).sum())(x), 3 * x**2)
    torch.testing.assert_close(jvp(f, (x,), (torch.ones_like(x),))[1], 3 * x**2)
    torch.testing.assert_close(vmap(grad(f))(x), 3 * x**2)
    second = torch.autograd.functional.hessian(lambda x: f(x).sum(), x)
    torch.testing.assert_close(second.diagonal(), 6 * x)


def test_straight_through_has_the_values_type():
    surrogate = torch.ones(2, dtype=torch.float64, requires_grad=True)
    result = wk.straight_through(torch.zeros(2, dtype=torch.float16), surrogate)
    assert result.dtype == torch.float16
    result.sum().backward()
    assert surrogate.grad.dtype == torch.float64


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (
            (torch.zeros(2), torch.zeros(3)),
            ValueError,
            "straight_through: `surrogate` must be of the shape of `value`, (2,), got (3,)",
        ),
        (
            (torch.zeros(2, dtype=torch.uint8), torch.zeros(2)),
            TypeError,
            "`value` must be of a floating type: integers carry no gradient, got torch.uint8",
        ),
        ((torch.zeros(2), 1.0), TypeError, "`surrogate` must be a tensor, got float"),
    ],
)
def test_errors_of_straight_through(arguments, error, text):
    with pytest.raises(error, match=re.escape(text)):
        wk.straight_through(*arguments)


# quantize


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_quantize_gives_the_values_of_an_8_bit_file(dtype):
    image = noise(3, 40, 50, dtype=dtype) * 1.2 - 0.1
    result = wk.quantize(image)
    # through real bytes; numpy also rounds ties to even
    wide = image.double() if dtype == torch.float64 else image.float()
    held = torch.from_numpy((wide.clamp(0, 1) * 255).numpy().round().astype("uint8"))
    assert result.dtype == dtype
    assert torch.equal(result, (held.to(wide.dtype) / 255).to(dtype))
    assert torch.equal(wk.quantize(result), result)


def test_quantize_passes_the_gradient_everywhere():
    image = torch.tensor([-0.5, 0.0, 0.2, 0.501, 1.0, 2.0], requires_grad=True)
    weight = torch.arange(6.0)
    (wk.quantize(image, levels=4) * weight).sum().backward()
    assert torch.equal(image.grad, weight)
    assert wk.quantize(torch.tensor([torch.nan, 0.4]), levels=2).isnan().tolist() == [True, False]


@pytest.mark.parametrize("levels", [1, 0, 2.0, True, "256"])
def test_errors_of_quantize(levels):
    text = f"quantize: `levels` must be an integer of at least 2, got {levels!r}"
    with pytest.raises(ValueError, match=re.escape(text)):
        wk.quantize(torch.zeros(2), levels=levels)


# image_gradient


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("image_gradient", "expected"), [("exact", 7128), ("straight_through", 7425)]
)
def test_the_documented_figures_of_gradient_support(image_gradient, expected, backend):
    image = seeded_image()
    options = {"image_gradient": image_gradient, "backend": backend}
    result = wk.warp_affine(image.permute(2, 0, 1), MOVE, **options)
    support = wk.gradient_support(result.mean(), image)
    assert (support.nonzero, support.total) == (expected, 12288)
    assert support.fraction == expected / 12288
    assert support.mask.shape == image.shape
    assert int(support.mask.sum()) == expected


@pytest.mark.filterwarnings("ignore:.*under nearest interpolation")
@pytest.mark.parametrize(("interpolation", "border"), RULES)
def test_straight_through_image_gradient_counts_every_neighbour_once(interpolation, border):
    """Compared with a plain loop over output pixels and taps."""
    image = noise(2, 4, 5).requires_grad_()
    matrix = torch.tensor([[1.0, 0, 1], [0, 1, -1.5]], dtype=torch.float64, requires_grad=True)
    options = {"interpolation": interpolation, "border": border}
    if border == "transparent":
        options["background"] = noise(2, 4, 5, seed=1)
    plain = wk.warp_affine(image, matrix, **options)
    result = wk.warp_affine(image, matrix, image_gradient="straight_through", **options)
    assert torch.equal(result, plain)
    cotangent = noise(2, 4, 5, seed=2)
    inputs = (image,) if interpolation == "nearest" else (image, matrix)
    grads = torch.autograd.grad(result, inputs, cotangent)
    expected = torch.zeros_like(image)
    for row in range(4):
        for column in range(5):
            for y in _taps(row + 1.5, 4, interpolation, border):
                for x in _taps(column - 1, 5, interpolation, border):
                    if x is not None and y is not None:
                        expected[:, y, x] += cotangent[:, row, column]
    torch.testing.assert_close(grads[0], expected)
    if interpolation != "nearest":  # the other gradients are exact
        torch.testing.assert_close(
            grads[1], torch.autograd.grad(plain, matrix, cotangent)[0], rtol=0, atol=0
        )


def _taps(position, length, interpolation, border):
    if interpolation == "nearest":
        indices = [round(position)]  # Python also rounds ties to even
    else:
        half = {"bilinear": 1, "bicubic": 2, "lanczos4": 4}[interpolation]
        first = int(position // 1) - half + 1
        indices = range(first, first + 2 * half)
    return [_index(i, length, border) for i in indices]


def _index(i, length, border):
    if 0 <= i < length:
        return i
    if border in ("constant", "transparent"):
        return None
    if border == "replicate":
        return min(max(i, 0), length - 1)
    if border == "wrap":
        return i % length
    while not 0 <= i < length:  # reflect, as often as needed
        if i < 0:
            i = -i - 1 if border == "reflect" else -i
        else:
            i = 2 * length - 1 - i if border == "reflect" else 2 * length - 2 - i
    return i


def test_straight_through_of_a_perspective_keeps_the_value():
    image = noise(2, 6, 7).requires_grad_()
    matrix = torch.tensor([[1.1, 0.2, -1.0], [-0.1, 0.9, 0.5], [0.01, -0.02, 1.0]])
    plain = wk.warp_perspective(image, matrix)
    result = wk.warp_perspective(image, matrix, image_gradient="straight_through")
    assert torch.equal(result, plain)
    exact, through = (wk.gradient_support(r, image).nonzero for r in (plain, result))
    assert through >= exact > 0


def test_errors_of_image_gradient():
    image = torch.zeros(1, 3, 3)
    text = "warp_affine: `image_gradient` must be one of 'exact', 'straight_through', got 'ste'"
    with pytest.raises(ValueError, match=re.escape(text)):
        wk.warp_affine(image, MOVE, image_gradient="ste")
    text = (
        "warp_affine: `image_gradient` must be 'exact' for an image of torch.uint8, which carries "
        "no gradient, got 'straight_through'"
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        wk.warp_affine(image.to(torch.uint8), MOVE, image_gradient="straight_through")


# gradient_support


def test_support_sees_through_a_cancelling_sum():
    x = torch.tensor([0.3, 0.1, 2.0], requires_grad=True)
    assert wk.gradient_support(x.softmax(0), x).nonzero == 3  # the plain sum is constant
    y = torch.zeros(2, requires_grad=True)
    assert wk.gradient_support((x * x)[:2], x).mask.tolist() == [True, True, False]
    assert wk.gradient_support(x.sum(), y).nonzero == 0  # the sum does not depend on y


def test_support_is_found_under_any_default_device():
    x = torch.ones(3, requires_grad=True)
    with torch.device("meta"):
        assert wk.gradient_support((x * x)[:2], x).nonzero == 2


def test_support_does_not_change_the_graph_or_the_random_state():
    x = torch.ones(2, requires_grad=True)
    state = torch.get_rng_state()
    output = x * x
    wk.gradient_support(output, x)
    assert torch.equal(torch.get_rng_state(), state)
    output.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_support_rejects_tensors_without_a_graph():
    text = "gradient_support: `output` must be part of an autograd graph, got requires_grad=False"
    with pytest.raises(ValueError, match=re.escape(text)):
        wk.gradient_support(torch.zeros(2), torch.zeros(2, requires_grad=True))
    image = torch.zeros(1, 3, 3, dtype=torch.uint8)
    matrix = torch.eye(2, 3, requires_grad=True)
    with pytest.warns(UserWarning, match="no gradient reaches `matrix`"):
        output = wk.warp_affine(image, matrix)
    text = "`output` must be of a floating type: integers carry no gradient, got torch.uint8"
    with pytest.raises(TypeError, match=re.escape(text)):
        wk.gradient_support(output, matrix)


NO_POINT = "0 have no source point (NaN, or 2^31 and beyond)"


def explain(image, where, loss=lambda x: x, warp=wk.warp_affine, **options) -> str:
    image = image.clone().requires_grad_()
    support = wk.gradient_support(loss(warp(image, where, **options)), image)
    return support.explain(where, **options)


def test_explain_gives_the_documented_figures():
    image = seeded_image().detach().permute(2, 0, 1)
    assert explain(image, MOVE).splitlines() == [
        "7,128 of 12,288 entries (58.0%) get a gradient",
        "   4,863  are not visible: no output pixel reads them",
        '     297  are read with weight 0 only: image_gradient="straight_through" reaches them',
        f"4,096 output pixels: 1,720 show the border alone, {NO_POINT}",
    ]
    text = explain(image, MOVE, image_gradient="straight_through")
    assert "7,425 of 12,288 entries (60.4%) get a gradient\n   4,863  are not visible" in text
    assert "weight 0" not in text


def test_explain_nearest_nan_loss_and_antialias():
    image = noise(1, 8, 8)
    half = [[0.5, 0, 0], [0, 0.5, 0]]
    # nearest reads 2 x: every other pixel; bilinear's right-hand neighbour is the pixel after it
    text = explain(image, half, size=(4, 4), interpolation="nearest")
    assert text.splitlines()[:2] == [
        "16 of 64 entries (25.0%) get a gradient",
        "      48  lie between the pixels that nearest picks: bilinear reads them",
    ]
    text = explain(image, half, size=(4, 4), antialias=True)
    assert text.startswith("64 of 64 entries (100.0%) get a gradient\n16 output pixels: 0 show")
    text = explain(image, [[1, 0, 0], [0, 1, 0]], loss=lambda x: x[..., :4, :])
    assert "      32  are read, but the output does not depend on them" in text
    points = torch.zeros(2, 2, 2)
    points[0, 0], points[0, 1] = torch.nan, 2.0**31
    text = explain(image, points, warp=wk.remap)
    assert "63  are" not in text
    assert text.endswith(
        "0 show the border alone, 2 have no source point (NaN, or 2^31 and beyond)"
    )


def test_explain_accepts_a_perspective_a_batch_and_an_inverse():
    image = noise(2, 1, 5, 6)
    inverse = torch.tensor([[2.0, 0, 0], [0, 2, 0], [0, 0, 1]])
    text = explain(image, inverse, warp=wk.warp_perspective, inverse=True)
    assert text.splitlines()[0] == "18 of 60 entries (30.0%) get a gradient"
    support = wk.gradient_support(*(lambda x: (x * 2, x))(torch.zeros(3, requires_grad=True)))
    with pytest.raises(ValueError, match=re.escape("explain: `mask` must be of an image (..., C")):
        support.explain(inverse)


# check_gradients


def test_check_gradients_agrees_with_a_warp_and_catches_a_factor():
    image, matrix = noise(1, 4, 5), torch.tensor([[0.9, 0.2, 0.3], [-0.15, 1.1, -0.4]])
    report = wk.check_gradients(wk.warp_affine, image, matrix)
    assert report.passed
    assert (report.checked, report.wrong, report.error) == (26, 0, None)
    assert str(report).startswith("gradients agree at all 26 entries; worst: input ")

    def wrong(image, matrix):
        value = wk.warp_affine(image, matrix)
        return value.detach() + 1.01 * (value - value.detach())

    report = wk.check_gradients(wrong, image, matrix)
    assert not report.passed
    assert abs(report.worst.analytic / report.worst.numeric - 1.01) < 1e-4
    assert str(report).startswith(f"gradients differ at {report.wrong} of 26 entries; worst: input")


def test_check_gradients_names_the_worst_entry():
    def f(x, n, y):
        assert n == 3
        return x.sum() + (y * y).sum() + (y[1, 0] - y.detach()[1, 0])

    report = wk.check_gradients(f, torch.ones(2), 3, torch.tensor([[1.0, 2.0], [4.0, 8.0]]))
    assert not report.passed
    assert (report.wrong, report.checked) == (1, 6)
    assert (report.worst.input, report.worst.index) == (2, (1, 0))
    assert report.worst.analytic == 9
    assert abs(report.worst.numeric - 8) < 1e-6


def test_check_gradients_reports_errors_and_missing_gradients():
    def in_place(x):
        y = x.exp()
        y.mul_(2)
        return y

    report = wk.check_gradients(in_place, torch.ones(2))
    assert not report.passed
    assert str(report).startswith("gradients cannot be computed: one of the variables needed")
    report = wk.check_gradients(lambda x: x.detach() * 3, torch.ones(1))
    assert not report.passed
    assert report.worst.analytic == 0
    report = wk.check_gradients(lambda x: (x / 0).nan_to_num(0) * x.sqrt(), torch.zeros(1))
    assert not report.passed
    assert wk.check_gradients(lambda x: x * 2, torch.zeros(0)).worst is None


def test_check_gradients_accepts_tuples_and_no_grad():
    with torch.no_grad():
        report = wk.check_gradients(lambda x: (x.sin(), (x * x).sum().float()), noise(3))
    assert report.checked == 3
    assert wk.check_gradients(lambda x: (x.sin(), x * x), noise(3)).passed


def test_errors_of_check_gradients():
    text = "check_gradients: `inputs` must be at least one floating tensor, got int"
    with pytest.raises(TypeError, match=re.escape(text)):
        wk.check_gradients(lambda n: n, 3)
    text = "`function` must be a function that returns floating tensors, got torch.int64"
    with pytest.raises(TypeError, match=re.escape(text)):
        wk.check_gradients(lambda x: x.long(), torch.ones(2))


def test_the_example_in_the_docs():
    text = (ROOT / "docs" / "gradients.md").read_text()
    _, code, _, printed, _ = text.split("## Where is my gradient?")[1].split("```", 4)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(code.removeprefix("python"), {"torch": torch, "wk": wk})
    assert output.getvalue().strip() == printed.strip()


@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_gradgradcheck_of_the_tests_notices_one_percent(factor):
    """Every test of second derivatives relies on it."""

    class Cube(torch.autograd.Function):
        """x^3, with a second derivative that is wrong by a factor."""

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, *grads):
            (x,) = ctx.saved_tensors
            wrong = x + (factor - 1) * (x - x.detach())
            return 3 * wrong**2 * grads[0]

    x = (noise(3, 4) + 0.5).requires_grad_()
    if factor == 1:
        assert gradgradcheck(Cube.apply, (x,))
        return
    with pytest.raises(GradcheckError):
        gradgradcheck(Cube.apply, (x,))
