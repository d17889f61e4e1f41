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
from warpkit.engine.cpu.resize import launch

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


OPENCV = ("opencv4", "opencv5", "opencv4_ipp", "opencv5_ipp")
OPENCV_MEANS = ("bilinear", "bilinear_exact", "bicubic", "area", "lanczos4")
MEANS = [
    *((a, n) for a in OPENCV for n in OPENCV_MEANS),
    *(("pillow", n) for n in ("box", "bilinear", "hamming", "bicubic", "lanczos")),
]
MOVES = [
    *((a, n) for a in OPENCV for n in ("nearest", "nearest_exact")),
    ("pillow", "nearest"),
]
SCALES = (((7, 9), (4, 5)), ((6, 8), (3, 4)), ((5, 6), (9, 13)), ((6, 7), (6, 3)))


def same_of_exact(arithmetic, name):
    """The options of "exact" with the same filter; Pillow's has antialias, of cv2's only "area"."""
    antialias = arithmetic == "pillow" or name == "area"
    return {"interpolation": name.removesuffix("_exact"), "antialias": antialias}


def slopes(function, *leaves):
    """The gradients of a weighted sum, and of their own sum of squares to the pushed gradient."""
    inputs = [leaf.clone(memory_format=torch.preserve_format).requires_grad_() for leaf in leaves]
    out = function(*inputs)
    pushed = noise(*out.shape, seed=4).to(out.dtype).requires_grad_()
    first = torch.autograd.grad(out, inputs, pushed, create_graph=True)
    total = sum(slope.square().sum() for slope in first)
    found = [*first, *torch.autograd.grad(total, (pushed, *inputs[1:]), retain_graph=True)]
    several = noise(2, *out.shape, seed=6).to(out.dtype)
    found += torch.autograd.grad(out, inputs, several, is_grads_batched=True)
    return [slope.detach() for slope in found]


def weighted(function, weights, image):
    return (function(image) * weights).sum()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("arithmetic", "name"), MEANS)
def test_the_gradient_of_every_arithmetic_is_that_of_exact(arithmetic, name, backend):
    """To the bit, of every order, in both modes and under vmap, at the second call too."""
    dtypes = (torch.float32,) if arithmetic == "pillow" else (torch.float32, torch.float64)
    ours = {"interpolation": name, "arithmetic": arithmetic, "backend": backend}
    theirs = {**same_of_exact(arithmetic, name), "backend": backend}
    for dtype, (shape, size) in ((d, s) for d in dtypes for s in SCALES):
        last = noise(2, *shape, 3).to(dtype).permute(0, 3, 1, 2)
        for image in (noise(3, *shape).to(dtype), noise(1, *shape).to(dtype), last):
            function, exact = (partial(wk.resize, size=size, **o) for o in (ours, theirs))
            wanted = slopes(exact, image)
            for _ in range(2):
                for a, b in zip(slopes(function, image), wanted, strict=True):
                    assert torch.equal(a, b)
            if image is last and size != (4, 5):
                continue
            tangent = noise(*image.shape, seed=8).to(dtype)
            weights = noise(*function(image).shape, seed=9).to(dtype)
            value, slope = jvp(function, (image,), (tangent,))
            assert torch.equal(value, function(image))
            assert torch.equal(slope, jvp(exact, (image,), (tangent,))[1])
            images, found = torch.stack((image, tangent)), []
            for f in (function, exact):
                total = partial(weighted, f, weights)
                together = grad(lambda images, total=total: vmap(total)(images).sum())
                found.append((vmap(grad(total))(images), together(images)))
            for a, b in zip(*found, strict=True):
                assert torch.equal(a, b)


@pytest.mark.parametrize(("arithmetic", "name"), MOVES)
def test_moved_pixels_have_the_gradient_of_the_pixels_shown(arithmetic, name):
    """Single bright pixels show where each goes."""
    for dtype, ((height, width), size) in ((torch.float32, scale) for scale in SCALES):
        function = partial(wk.resize, size=size, interpolation=name, arithmetic=arithmetic)
        bright = torch.eye(height * width, dtype=dtype).reshape(-1, 1, height, width)
        weights = function(bright).flatten(1).T
        image = noise(1, height, width).to(dtype).requires_grad_()
        for backend in BACKENDS:
            found = jacrev(partial(function, backend=backend))(image).reshape(weights.shape)
            assert torch.equal(found, weights)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["bilinear", "hamming", "bicubic", "lanczos"])
def test_pillows_box_has_the_gradient_of_exact(name, backend):
    image = noise(2, 3, 20, 31, dtype=torch.float32)
    box = torch.tensor([2.5, 1.0, 29.0, 17.25], dtype=torch.float64)
    options = {"interpolation": name, "backend": backend}

    def resized(image, box, **more):
        return wk.resize(image, (7, 9), box=box, **options, **more)

    wanted = slopes(resized, image, box)
    found = slopes(partial(resized, arithmetic="pillow"), image, box)
    for a, b in zip(found, wanted, strict=True):
        assert torch.equal(a, b)
    assert wanted[1].any()
    numbers = tuple(box.tolist())
    for a, b in zip(
        slopes(partial(resized, box=numbers, arithmetic="pillow"), image),
        slopes(partial(resized, box=numbers), image),
        strict=True,
    ):
        assert torch.equal(a, b)
    value = resized(image, box.clone().requires_grad_(), arithmetic="pillow")
    assert torch.equal(value, resized(image, numbers, arithmetic="pillow"))
    value, tangent = jvp(lambda b: resized(image, b, arithmetic="pillow"), (box,), (box.flip(0),))
    assert torch.equal(value, resized(image, numbers, arithmetic="pillow"))
    assert torch.equal(tangent, jvp(lambda b: resized(image, b), (box,), (box.flip(0),))[1])


@pytest.mark.parametrize(("arithmetic", "name"), [("pillow", "bicubic"), *MEANS[:5]])
def test_no_exact_result_is_computed(arithmetic, name, monkeypatch):
    """The kernel of "exact" runs only in the backward pass; the result can be written to."""
    ran = []

    def watched(options, image, forward=launch.forward):
        ran.append(options.adjoint)
        return forward(options, image)

    monkeypatch.setattr(launch, "forward", watched)
    image = noise(2, 3, 20, 31, dtype=torch.float32)
    plain = wk.resize(image, (7, 9), interpolation=name, arithmetic=arithmetic)
    for layout in (torch.contiguous_format, torch.channels_last):
        leaf = image.clone(memory_format=layout).requires_grad_()
        out = wk.resize(leaf, (7, 9), interpolation=name, arithmetic=arithmetic)
        assert torch.equal(out.detach(), plain)
        out[..., 0] = 0.0
        out.mul_(2).sum().backward()
        assert leaf.grad.any()
    assert ran == [True, True]


@pytest.mark.parametrize("size", [(7, 9), (41, 50), (7, 50), (20, 9), (10, 31)])
@pytest.mark.parametrize(("arithmetic", "name"), MEANS)
def test_kernels_have_the_bits_of_the_plain_arithmetic(arithmetic, name, size):
    """In planes too, of which OpenCV's order of sums knows nothing."""
    image = noise(2, 3, 20, 31, dtype=torch.float32)
    for box in (None, (2.5, 1.0, 29.0, 17.25)) if arithmetic == "pillow" else (None,):
        options = {"interpolation": name, "arithmetic": arithmetic, "box": box}
        for shown in (image, image[0], image[:, None], image.expand(2, 2, 3, 20, 31)):
            found = [wk.resize(shown, size, backend=b, **options) for b in ("cpu", "reference")]
            assert torch.equal(*found)
            assert found[0].stride() == found[1].stride()
