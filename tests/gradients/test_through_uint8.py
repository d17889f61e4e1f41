"""`through_uint8`: the value of the 8-bit program, the gradient of the same steps on floats."""

from __future__ import annotations

import re
from functools import partial

import pytest
import torch
from torch.autograd import gradcheck
from torch.func import grad, jvp, vmap

import warpkit as wk
from tests.support.inputs import noise

MATRIX = torch.tensor([[0.9, 0.2, 1.3], [-0.1, 1.1, 0.4]], dtype=torch.float64)
POINTS = noise(5, 6, 2, seed=3) * 8
STEPS = {
    "pillow": partial(wk.resize, size=(5, 6), arithmetic="pillow", interpolation="bicubic"),
    "opencv": partial(wk.resize, size=(5, 6), arithmetic="opencv5", interpolation="area"),
    "opencv with IPP": partial(
        wk.resize, size=(5, 6), arithmetic="opencv5_ipp", interpolation="bicubic"
    ),
    "warp": partial(wk.warp_affine, matrix=MATRIX, arithmetic="opencv5"),
    "remap": partial(wk.remap, points=POINTS, arithmetic="opencv4"),
}


def chain(image):
    return STEPS["remap"](STEPS["warp"](STEPS["pillow"](image)))


@pytest.mark.parametrize("name", [*STEPS, "chain"])
def test_the_value_is_the_8_bit_programs_and_the_gradient_the_floats(name):
    function = STEPS.get(name, chain)
    image = noise(2, 3, 9, 11).float().requires_grad_()
    result = wk.through_uint8(function, image)
    levels = (image.detach() * 255).round().to(torch.uint8)
    assert torch.equal(result, function(levels).float() / 255)
    other = noise(*result.shape, seed=4).float()
    (got,) = torch.autograd.grad(result, image, other)
    (wanted,) = torch.autograd.grad(function(image), image, other)
    assert torch.equal(got, wanted)
    assert got.abs().sum() > 0


def test_every_type_and_autograd_mode():
    function = partial(wk.resize, size=(4, 5), interpolation="bicubic")  # accepts every type
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        image = noise(1, 7, 8).to(dtype)
        wanted = function((image.double() * 255).round().to(torch.uint8)).double() / 255
        got = wk.through_uint8(function, image)
        assert got.dtype == dtype
        assert torch.equal(got, wanted.to(dtype)), dtype
    image, tangent = noise(1, 7, 8), noise(1, 7, 8, seed=5)
    through = partial(wk.through_uint8, function)
    assert torch.equal(jvp(through, (image,), (tangent,))[1], function(tangent))
    images = noise(3, 1, 7, 8)
    each = vmap(grad(lambda image: through(image).square().sum()))(images)
    loop = torch.stack([grad(lambda image: through(image).square().sum())(i) for i in images])
    torch.testing.assert_close(each, loop)
    with torch.no_grad():
        assert torch.equal(through(image), through(image.clone().requires_grad_()).detach())


def test_tensors_in_the_functions_closure_get_a_gradient():
    image = (noise(1, 9, 10) * 255).round() / 255  # whole levels: one function of the matrix
    matrix = MATRIX.clone().requires_grad_()

    def function(image):
        held = matrix if image.is_floating_point() else matrix.detach()
        return wk.warp_affine(image, held)

    (got,) = torch.autograd.grad(wk.through_uint8(function, image).sum(), matrix)
    (wanted,) = torch.autograd.grad(wk.warp_affine(image, matrix).sum(), matrix)
    assert torch.equal(got, wanted)


def test_the_gradient_agrees_with_differences_of_the_float_function():
    function = partial(wk.resize, size=(3, 4))
    image = noise(1, 5, 6).requires_grad_()
    assert gradcheck(function, (image,))
    (got,) = torch.autograd.grad(wk.through_uint8(function, image).sum(), image)
    (wanted,) = torch.autograd.grad(function(image).sum(), image)
    assert torch.equal(got, wanted)


def test_compile_makes_one_graph():
    def run(image):
        return wk.through_uint8(STEPS["pillow"], image)

    compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
    image = noise(2, 3, 9, 11).float()
    assert torch.equal(compiled(image), run(image))


ONE = torch.rand(1, 4, 4)
WRONG = [
    (lambda i: i, ONE + 1, "`image` must be in [0, 1], got"),
    (lambda i: i, ONE * 255, "`image` must be in [0, 1], got"),
    (lambda i: i, ONE - torch.nan, "`image` must be in [0, 1], got nan at (0, 0, 0)"),
    (lambda i: i, ONE.byte(), "`image` must be of a floating type: integers carry no gradient"),
    ("resize", ONE, "`function` must be a function of an image, got str"),
    (lambda i: i.float(), ONE, "`function` must be one that makes uint8 of a uint8 image, got"),
    (lambda i: i.byte(), ONE, "`function` must be one that makes floats of a floating image"),
    (
        lambda i: i if i.dtype == torch.uint8 else i[:, :2],
        ONE,
        "`function` must be one that makes the shape that it makes of 8 bits, (1, 4, 4), got (1, 2",
    ),
]


@pytest.mark.parametrize(("function", "image", "text"), WRONG)
def test_wrong_arguments_are_named(function, image, text):
    with pytest.raises((ValueError, TypeError), match=re.escape(f"through_uint8: {text}")):
        wk.through_uint8(function, image)


def test_half_a_level_beyond_0_1_is_accepted_as_rounding():
    image = torch.tensor([[[-1e-7, 1 + 1e-7]]])
    assert wk.through_uint8(lambda i: i, image).tolist() == [[[0.0, 1.0]]]
