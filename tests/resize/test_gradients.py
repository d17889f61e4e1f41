"""Gradients of `resize`: every order and mode, to image and box, and through rounded arithmetic."""

from __future__ import annotations

from functools import partial

import pytest
import torch
import torch.autograd.forward_ad as forward
from torch.autograd import gradcheck
from torch.func import grad, jacfwd, jacrev, jvp, vmap

import warpkit as wk
from tests.resize.test_resize import BACKENDS, WAYS
from tests.support.inputs import noise
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE

# forward mode loads torch's decompositions, which still use torch.jit.script
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script:FutureWarning")

BOX = torch.tensor([1.3, 0.7, 8.2, 8.1], dtype=torch.float64)
SMALL_BOX = torch.tensor([0.3, 0.7, 4.2, 4.9], dtype=torch.float64)
SMOOTH = [(n, a) for n, a in WAYS if n not in ("nearest", "box")]
SIZES = [(7, 3), (2, 8)]
"""One axis grows and the other shrinks; each is a pass of its own."""


def image_of(*shape: int) -> torch.Tensor:
    return noise(*shape, seed=5).requires_grad_()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("name", "antialias"), WAYS)
@pytest.mark.parametrize("size", SIZES)
def test_first_and_second_order_to_the_image(name, antialias, size, backend):
    function = partial(
        wk.resize, size=size, interpolation=name, antialias=antialias, backend=backend
    )
    image = image_of(1, 4, 5)
    assert gradcheck(lambda image: function(image).square(), (image,))
    assert gradgradcheck(lambda image: function(image).square(), (image,))


@pytest.mark.parametrize(("name", "antialias"), SMOOTH)
def test_first_and_second_order_to_the_box(name, antialias):
    def function(image, box):
        return wk.resize(image, (2, 8), interpolation=name, antialias=antialias, box=box)

    inputs = image_of(1, 5, 6), SMALL_BOX.clone().requires_grad_()
    assert gradcheck(partial(function, inputs[0].detach()), inputs[1:], check_forward_ad=True)
    assert gradcheck(function, inputs, check_forward_ad=True, fast_mode=True)
    assert gradgradcheck(function, inputs)
    slope = torch.autograd.grad(function(*inputs).square().sum(), inputs)[1]
    assert slope.abs().min() > 1e-3  # every edge has a slope to check


@pytest.mark.parametrize(
    ("shape", "size"),
    [((2, 3, 17, 23), (5, 40)), ((3, 40, 5), (11, 23)), ((1, 1, 1), (3, 4))],
    ids=str,
)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("name", "antialias"), WAYS)
def test_the_backward_pass_is_the_adjoint(name, antialias, backend, shape, size):
    options = {"interpolation": name, "antialias": antialias, "backend": backend}
    image = image_of(*shape)
    result = wk.resize(image, size, **options)
    other = noise(*result.shape, seed=7)
    (back,) = torch.autograd.grad(result, image, other)
    torch.testing.assert_close((result * other).sum(), (image * back).sum(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_gradients_of_half_types_and_float32(dtype, backend):
    weights = noise(2, 3, 5, 20, seed=2)
    grads = []
    for kind in (dtype, torch.float64):
        image = noise(2, 3, 11, 13).to(dtype).to(kind).requires_grad_()
        result = wk.resize(image, (5, 20), backend=backend)
        grads += torch.autograd.grad((result * weights.to(dtype).to(kind)).sum(), image)
    assert grads[0].dtype == dtype
    name = {torch.float32: "reference float32"}.get(dtype, str(dtype).removeprefix("torch."))
    largest = grads[1].abs().max().clamp(min=1)
    assert ((grads[0].double() - grads[1]).abs().max() / largest) <= TOLERANCE[name]


@pytest.mark.parametrize("backend", BACKENDS)
def test_forward_mode_tangents(backend):
    image, tangent = noise(3, 9, 10), noise(3, 9, 10, seed=8)
    function = partial(wk.resize, size=(4, 17), interpolation="bicubic", backend=backend)
    with forward.dual_level():
        result = forward.unpack_dual(function(forward.make_dual(image, tangent)))
    torch.testing.assert_close(result.tangent, function(tangent))
    value, slope = jvp(function, (image,), (tangent,))
    torch.testing.assert_close(value, function(image))
    torch.testing.assert_close(slope, function(tangent))


@pytest.mark.parametrize("backend", BACKENDS)
def test_vmap_and_jacobians(backend):
    images = noise(4, 3, 6, 7)
    function = partial(wk.resize, size=(4, 5), backend=backend)
    torch.testing.assert_close(vmap(function)(images), function(images), rtol=0, atol=1e-15)
    per_sample = vmap(grad(lambda image: function(image).square().sum()))(images)
    loop = torch.stack([grad(lambda image: function(image).square().sum())(i) for i in images])
    torch.testing.assert_close(per_sample, loop)
    one = images[0, :1]
    torch.testing.assert_close(jacrev(function)(one), jacfwd(function)(one))
    twice = jacrev(jacrev(lambda image: function(image).pow(3).sum()))(one)
    hessian = torch.autograd.functional.hessian(lambda image: function(image).pow(3).sum(), one)
    torch.testing.assert_close(twice, hessian)


def test_boxes_under_vmap():
    image = noise(2, 9, 10)
    boxes = torch.stack([BOX, BOX * 0.9, BOX + 0.3])
    for name, antialias in WAYS:

        def crop(box, name=name, antialias=antialias):
            return wk.resize(image, (4, 5), interpolation=name, antialias=antialias, box=box)

        loop = torch.stack([crop(box) for box in boxes])
        torch.testing.assert_close(vmap(crop)(boxes), loop, rtol=1e-12, atol=1e-12)


def test_an_invalid_box_under_vmap_gives_nan():
    boxes, image = torch.stack([BOX, BOX + 2]), noise(2, 9, 10)
    got = vmap(lambda box: wk.resize(image, (4, 5), box=box))(boxes)
    assert not got[0].isnan().any()
    assert got[1].isnan().all()


def test_pillows_box_must_be_readable():
    image = noise(2, 9, 10).float()
    with pytest.raises(ValueError, match="resize: `box` must be four numbers, or a tensor that"):
        vmap(lambda box: wk.resize(image, (4, 5), box=box, arithmetic="pillow"))(BOX[None])
    got = wk.resize(image, (4, 5), box=BOX, arithmetic="pillow")
    assert torch.equal(got, wk.resize(image, (4, 5), box=BOX.tolist(), arithmetic="pillow"))


def test_integer_images_warn_that_no_gradient_reaches_a_box():
    box = BOX.clone().requires_grad_()
    with pytest.warns(UserWarning, match="no gradient reaches `box` through an image of"):
        wk.resize(noise(1, 9, 10, dtype=torch.uint8), (4, 5), box=box)
    with pytest.warns(UserWarning, match="no gradient reaches `box` under arithmetic='pillow'"):
        wk.resize(noise(1, 9, 10).float(), (4, 5), box=box, arithmetic="pillow")


ROUNDED = [
    (arithmetic, name, dtype)
    for arithmetic, names, dtypes in (
        ("opencv4", ("nearest", "nearest_exact", "bilinear", "bicubic", "area", "lanczos4"), 2),
        ("opencv5_ipp", ("bilinear", "bilinear_exact", "bicubic"), 2),
        ("pillow", ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"), 1),
    )
    for name in names
    for dtype in (torch.float32, torch.float64)[:dtypes]
]


@pytest.mark.parametrize(("arithmetic", "name", "dtype"), ROUNDED)
def test_rounded_arithmetics_have_the_gradient_of_their_weights(arithmetic, name, dtype):
    """cv2 and Pillow are linear in a float image, so single bright pixels show every weight."""
    for (height, width), size in (((7, 9), (4, 5)), ((6, 8), (3, 4)), ((5, 6), (9, 13))):
        function = partial(wk.resize, size=size, interpolation=name, arithmetic=arithmetic)
        bright = torch.eye(height * width, dtype=dtype).reshape(-1, 1, height, width)
        weights = function(bright).flatten(1).T
        image = noise(1, height, width).to(dtype).requires_grad_()
        found = jacrev(function)(image).reshape(weights.shape)
        torch.testing.assert_close(found, weights, rtol=0, atol=TOLERANCE["opencv weights"])
        assert gradient_of(function, image).equal(gradient_of(function, image))


def gradient_of(function, image):
    (found,) = torch.autograd.grad(function(image).sum(), image)
    return found


@pytest.mark.parametrize("arithmetic", ["opencv5", "opencv4_ipp", "pillow"])
def test_rounded_arithmetics_have_tangents_and_keep_their_bits(arithmetic):
    image, tangent = noise(3, 9, 10).float(), noise(3, 9, 10, seed=8).float()
    function = partial(wk.resize, size=(4, 17), interpolation="bicubic", arithmetic=arithmetic)
    value, slope = jvp(function, (image,), (tangent,))
    assert torch.equal(value, function(image))
    torch.testing.assert_close(slope, function(tangent), rtol=0, atol=TOLERANCE["opencv weights"])
    assert torch.equal(function(image.clone().requires_grad_()), function(image))


@pytest.mark.parametrize(("arithmetic", "name"), [("pillow", "bicubic"), ("opencv5", "lanczos4")])
def test_kernels_have_the_bits_and_gradients_of_rounded_arithmetics(arithmetic, name):
    """With both passes in either order, with one pass, with a box, and with batched gradients."""
    image = noise(2, 3, 20, 31, dtype=torch.float32)
    for size in ((7, 9), (41, 50), (7, 50), (20, 9), (10, 31)):
        boxes = [None] if arithmetic != "pillow" else [None, (2.5, 1.0, 29.0, 17.25)]
        for box in boxes:
            found = []
            for backend in ("cpu", "reference"):
                leaf = image.clone().requires_grad_()
                options = {"interpolation": name, "arithmetic": arithmetic, "box": box}
                out = wk.resize(leaf, size, backend=backend, **options)
                pushed = noise(2, *out.shape, dtype=torch.float32, seed=4).requires_grad_()
                (first,) = torch.autograd.grad(out, leaf, pushed[0], create_graph=True)
                (second,) = torch.autograd.grad(first.square().sum(), pushed, retain_graph=True)
                both = torch.autograd.grad(out, leaf, pushed.detach(), is_grads_batched=True)[0]
                found.append((out.detach(), first.detach(), second, both))
            assert torch.equal(found[0][0], found[1][0]), size
            for ours, theirs in zip(*found, strict=True):
                near = TOLERANCE["reference float32"] * max(1.0, theirs.abs().max().item())
                torch.testing.assert_close(ours, theirs, rtol=0, atol=near)
