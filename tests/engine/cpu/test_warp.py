"""The CPU backend against the reference: values and every gradient, for every case."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import warpkit as wk
from tests.support.inputs import RULES, affine_matrices, images, noise, perspective_matrices
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE
from warpkit.engine.definitions import reference
from warpkit.engine.definitions.rules import BORDERS, INTERPOLATIONS, TAPS
from warpkit.engine.definitions.splines import is_spline
from warpkit.engine.operators.warp import WARP

MAPS = [(wk.warp_affine, name) for name in affine_matrices()]
MAPS += [(wk.warp_perspective, name) for name in perspective_matrices()]


def results(function: Callable[..., Tensor], backend: str, inputs: list[Tensor], **options: Any):
    """The value and the gradients to image, map, border value and background."""
    inputs = [x.detach().requires_grad_(x.is_floating_point()) for x in inputs]
    image, where, value, *background = inputs
    options |= {"background": background[0]} if background else {}
    out = function(image, where, border_value=value, backend=backend, **options)
    if not out.is_floating_point():
        return [out]
    grads = torch.autograd.grad(
        out, inputs, noise(*out.shape, dtype=out.dtype, seed=77), allow_unused=True
    )
    pairs = zip(grads, inputs, strict=True)
    return [out.detach(), *(torch.zeros_like(x) if g is None else g for g, x in pairs)]


def assert_agree(function: Callable[..., Tensor], inputs: list[Tensor], atol: float, **options):
    wanted = results(function, "reference", inputs, **options)
    got = results(function, "cpu", inputs, **options)
    shift = inputs[1].abs().nan_to_num(posinf=0).max().item()
    for n, (w, g) in enumerate(zip(wanted, got, strict=True)):
        assert g.shape == w.shape
        assert g.dtype == w.dtype
        # a gradient to a map is a sum over pixels and is compared relative to its size. Slopes that
        # cancel (all taps on one pixel) leave rounding errors, which a matrix's shift multiplies
        scale = max(1.0, w.abs().nan_to_num().max().item(), shift if n == 2 else 0.0)
        torch.testing.assert_close(g, w, atol=atol * scale, rtol=0, equal_nan=True)


def inputs_for(image: Tensor, where: Tensor, border: str, size: tuple[int, int], batch_dims: int):
    value = torch.linspace(-0.3, 0.8, image.shape[-3], dtype=image.dtype)
    inputs = [image, where, value]
    if border == "transparent":
        batch = torch.broadcast_shapes(image.shape[:-3], where.shape[:-batch_dims])
        inputs.append(noise(*batch, image.shape[-3], *size, dtype=image.dtype, seed=5))
    return inputs


@pytest.mark.parametrize(("interpolation", "border"), RULES)
@pytest.mark.parametrize(("dtype", "chosen"), [(torch.float64, None), (torch.float32, "odd")])
def test_values_and_gradients_agree_with_the_reference(interpolation, border, dtype, chosen):
    turn = RULES.index((interpolation, border))
    for n, (name, image) in enumerate(images(dtype).items()):
        # every pair of layout, type, map and taps once, not all of them
        if chosen not in (None, name) or (name == "channels-last" and interpolation != "bilinear"):
            continue
        few = name == "channels-last" or dtype == torch.float32
        for m, (function, matrix_name) in enumerate(
            MAPS[: len(affine_matrices())] if few else MAPS
        ):
            # every image and map with some rule; every image and every map with each rule
            if (n + m + turn) % 3:
                continue
            matrix = {**affine_matrices(), **perspective_matrices()}[matrix_name]
            if name == "deep batch" and matrix.ndim == 3:
                matrix = matrix[:, None]
            size = (5, 11) if matrix_name in ("mild", "grow") else tuple(image.shape[-2:])
            inputs = inputs_for(image, matrix, border, size, 2)
            options = {"interpolation": interpolation, "border": border, "size": size}
            assert_agree(function, inputs, TOLERANCE[f"cpu {dtype}"], **options)


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("wanted", [(0,), (1,), (2,), (0, 1), (0, 2)])
def test_each_gradient_computed_alone_is_the_same(border, wanted):
    image, matrix = noise(2, 3, 7, 9), affine_matrices()["batch of turns"]
    inputs = inputs_for(image, matrix, border, (7, 9), 2)
    options = {"border": border}
    all_of_them = results(wk.warp_affine, "cpu", inputs, **options)[1:]
    tensors = [x.detach().requires_grad_(n in wanted) for n, x in enumerate(inputs)]
    if border == "transparent":
        options["background"] = tensors[3]
    out = wk.warp_affine(*tensors[:2], border_value=tensors[2], backend="cpu", **options)
    if not out.requires_grad:  # a border value that is not visible
        assert wanted == (2,)
        return
    chosen = [tensors[n] for n in wanted]
    grads = torch.autograd.grad(
        out, chosen, noise(*out.shape, dtype=out.dtype, seed=77), allow_unused=True
    )
    for n, grad in zip(wanted, grads, strict=True):
        grad = torch.zeros_like(tensors[n]) if grad is None else grad
        assert torch.equal(grad, all_of_them[n])


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("border", BORDERS)
def test_remap_agrees_with_reference(interpolation, border):
    image = noise(2, 3, 7, 9)
    points = noise(2, 6, 5, 2, seed=4) * 30 - 10
    points[0, 0] = torch.tensor([3.0, 2.0])
    points[0, 1, 0, 0], points[1, 1, 1, 1] = torch.nan, torch.inf
    points[0, 2, 0], points[0, 2, 1, 0] = 2.0**31, -(2.0**31) + 1
    options = {"interpolation": interpolation, "border": border}
    for field in (points, points[:1], points[0]):
        inputs = inputs_for(image, field, border, (6, 5), 3)
        assert_agree(wk.remap, inputs, TOLERANCE["cpu torch.float64"], **options)


@pytest.mark.parametrize("interpolation", TAPS)
@pytest.mark.parametrize("size", [(70, 45), (33, 100)])
@pytest.mark.parametrize("scale", [0.13, 0.9, 6.0])
def test_values_agree_with_the_reference_over_many_tiles(interpolation, size, scale):
    image = noise(2, 5, 61, 77)
    matrix = wk.rotation_matrix((35.0, 25.0), torch.tensor([20.0, 140.0]).double(), scale)
    for border in ("constant", "reflect"):
        options = {"interpolation": interpolation, "border": border, "size": size}
        inputs = inputs_for(image, matrix, border, size, 2)
        # a spline's border value is subtracted and added again, with a gradient from every pixel
        atol = TOLERANCE["cpu torch.float64"] * (4 if is_spline(interpolation) else 1)
        assert_agree(wk.warp_affine, inputs, atol, **options)


def test_channels_last_under_a_deeper_batch_of_matrices():
    image = noise(2, 5, 6, 8).to(memory_format=torch.channels_last)
    matrix = affine_matrices()["batch of turns"].expand(3, 2, 2, 3)
    inputs = inputs_for(image, matrix, "constant", (6, 8), 2)
    assert_agree(wk.warp_affine, inputs, TOLERANCE["cpu torch.float64"])


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.uint16])
def test_integer_images_round_as_the_reference_does(dtype, interpolation):
    image = noise(2, 3, 40, 50, dtype=dtype)
    matrix = wk.rotation_matrix((20.0, 20.0), torch.tensor([33.0, 5.0]).double(), 1.1)
    for border in BORDERS:
        options: dict[str, Any] = {"interpolation": interpolation, "border": border}
        if border == "transparent":
            options["background"] = noise(2, 3, 40, 50, dtype=dtype, seed=3)
        for pixels in (image, image.to(memory_format=torch.channels_last)):
            wanted = wk.warp_affine(pixels, matrix, backend="reference", **options)
            got = wk.warp_affine(pixels, matrix, backend="cpu", **options)
            assert torch.equal(got, wanted)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_compute_in_float32(dtype):
    image, matrix = noise(1, 3, 20, 20, dtype=dtype), wk.rotation_matrix((9.0, 9.0), 33.0)
    wanted = wk.warp_affine(image.float(), matrix, backend="cpu").to(dtype)
    assert torch.equal(wk.warp_affine(image, matrix, backend="cpu"), wanted)


def test_a_nan_pixel_of_weight_0_does_not_leak():
    image = torch.ones(1, 1, 4, 4)
    image[..., 0, 0] = torch.nan
    shifted = wk.warp_affine(image, [[1.0, 0, 6], [0, 1, 0]], size=(4, 12), backend="cpu")
    wanted = wk.warp_affine(image, [[1.0, 0, 6], [0, 1, 0]], size=(4, 12), backend="reference")
    torch.testing.assert_close(shifted, wanted, equal_nan=True)
    assert shifted.isnan().sum() == wanted.isnan().sum() > 0


@pytest.mark.parametrize("shape", [(1, 3, 300, 410), (10, 3, 190, 190)])
@pytest.mark.parametrize("count", [1, 10])
def test_results_have_the_same_bits_for_any_number_of_threads(shape, count):
    image = noise(*shape, dtype=torch.float32)
    matrix = wk.rotation_matrix((100.0, 90.0), torch.linspace(0, 50, count), 1.2)
    before, seen = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            value = torch.zeros(3)
            seen.append(results(wk.warp_affine, "cpu", [image, matrix, value]))
    finally:
        torch.set_num_threads(before)
    for other in seen[1:]:
        assert all(map(torch.equal, seen[0], other))


@pytest.mark.parametrize("kind", ["affine", "perspective", "points"])
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "lanczos4"])
def test_gradcheck(kind, interpolation):
    image = noise(1, 2, 3, 4).requires_grad_()
    value = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    size = (2, 3)
    function, where = wk.remap, noise(1, *size, 2) * 5 - 1
    if kind == "affine":  # no point is on a pixel, where bilinear has a kink
        function = wk.warp_affine
        where = wk.rotation_matrix((1.7, 0.8), torch.tensor([33.0]).double(), 1.1)
    elif kind == "perspective":
        function, where = wk.warp_perspective, perspective_matrices()["mild"][:1]

    def warp(*inputs: Tensor) -> Tensor:
        options = {"border_value": inputs[2], "interpolation": interpolation, "backend": "cpu"}
        options |= {} if kind == "points" else {"size": size}
        return function(*inputs[:2], **options)

    inputs = (image, where.requires_grad_(), value)
    torch.autograd.gradcheck(warp, inputs)
    if kind != "points":
        gradgradcheck(warp, inputs)


@pytest.mark.filterwarnings("ignore:The .grad attribute")
def test_operators_pass_opcheck():
    forward, backward = WARP.traced["cpu"], WARP.gradient.traced["cpu"]
    image = noise(2, 3, 6, 7, dtype=torch.float32).requires_grad_()
    matrix = affine_matrices()["batch of turns"].requires_grad_()
    outside = torch.zeros(3, 1, 1, requires_grad=True)
    options = ([5, 6], "bilinear", "constant")
    torch.library.opcheck(forward, (image, matrix, outside, *options))
    last = image.detach().to(memory_format=torch.channels_last)
    torch.library.opcheck(forward, (last, matrix, outside, *options))
    grad = noise(2, 3, 5, 6, dtype=torch.float32)
    wanted = [True, True, True]
    torch.library.opcheck(backward, (grad, image, matrix, outside, *options, wanted))
    halves = image.detach().half()
    torch.library.opcheck(forward, (halves, matrix, outside, *options))
    torch.library.opcheck(backward, (grad.half(), halves, matrix, outside, *options, wanted))


@pytest.mark.parametrize("mapped", [(0, 0), (0, None), (None, 0), (0, 2)])
def test_vmap_folds_into_the_batch(mapped):
    image, matrix = noise(2, 3, 6, 7), affine_matrices()["batch of turns"]
    image = image if mapped[0] is None else torch.stack([image, image.flip(-1)], mapped[0])
    matrix = matrix if mapped[1] is None else torch.stack([matrix, matrix.flip(0)], mapped[1])

    def loss(backend: str) -> Callable[[Tensor, Tensor], Tensor]:
        return lambda i, m: wk.warp_affine(i, m, backend=backend).square().sum()

    for wrap in (lambda f: f, lambda f: torch.func.grad(f, (0, 1))):
        wanted = torch.vmap(wrap(loss("reference")), mapped)(image, matrix)
        got = torch.vmap(wrap(loss("cpu")), mapped)(image, matrix)
        torch.testing.assert_close(got, wanted, atol=1e-10, rtol=1e-10)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:FutureWarning")
def test_tangents_come_from_the_reference():
    image, matrix = noise(2, 3, 6, 7), affine_matrices()["batch of turns"]
    tangents = (noise(2, 3, 6, 7, seed=1), noise(2, 2, 3, seed=2))
    wanted, got = (
        torch.func.jvp(
            lambda i, m, b=backend: wk.warp_affine(i, m, backend=b), (image, matrix), tangents
        )
        for backend in ("reference", "cpu")
    )
    torch.testing.assert_close(got, wanted)


def test_compile_makes_one_graph():
    image, matrix = noise(2, 3, 6, 7), affine_matrices()["batch of turns"].requires_grad_()

    def loss(image: Tensor, matrix: Tensor) -> Tensor:
        return wk.warp_affine(image, matrix, backend="cpu").square().sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    (wanted,) = torch.autograd.grad(loss(image, matrix), matrix)
    (got,) = torch.autograd.grad(compiled(image, matrix), matrix)
    torch.testing.assert_close(got, wanted)


def test_auto_selects_it_and_other_devices_are_rejected():
    from warpkit.engine import cpu
    from warpkit.engine.backends import select_backend
    from warpkit.engine.definitions.rules import SamplingRule

    rule = SamplingRule("bilinear", "constant")
    assert select_backend("warp_affine", "auto", noise(1, 2, 3), rule) is cpu
    assert cpu.unsupported_reasons(torch.empty(1, 1, 1, device="meta"), rule) == [
        "needs a CPU tensor, got meta"
    ]
    assert reference.unsupported_reasons(noise(1, 2, 3), rule) == []


@pytest.mark.parametrize("arithmetic", ["exact", "opencv4", "opencv5"])
def test_results_are_on_the_images_device_under_any_default_device(arithmetic):
    image, matrix = noise(1, 3, 5, 6, dtype=torch.float32).requires_grad_(), torch.eye(2, 3)
    with torch.device("meta"):
        for where in (matrix, matrix.expand(2, 2, 3), matrix.clone().requires_grad_()):
            out = wk.warp_affine(image, where, arithmetic=arithmetic)
            out.sum().backward()
            out = wk.warp_affine(image.detach(), where, arithmetic=arithmetic)
            torch.testing.assert_close(out, image.expand_as(out), rtol=0, atol=0)


def test_infinite_gradients_are_summed_without_a_warning():
    """numpy, which sums them, would warn about inf - inf; torch does not."""
    image, value = noise(1, 3, 9, 9).requires_grad_(), noise(3).requires_grad_()
    shift = torch.tensor([[1.0, 0, 5], [0, 1, 5]]).double()
    out = wk.warp_affine(image, torch.stack((shift, shift)), border_value=value, backend="cpu")
    push = torch.full_like(out, torch.inf)
    push[1] = -torch.inf
    (gradient,) = torch.autograd.grad(out, value, push)
    assert gradient.isnan().all()
    patch = noise(3, 4, 4).requires_grad_()
    turned = wk.box_to_matrix([[1.2, 1.3, 6, 7], [2, 3.1, 7, 8]], (4, 4), angle=20.0)
    out = wk.paste_patches(image, patch, turned, [0, 0], opacity=torch.inf)
    (gradient,) = torch.autograd.grad(out.sum(), patch)
    assert gradient.isnan().any()
