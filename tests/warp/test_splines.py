"""Splines in the warps: SciPy's, a linear system in numpy, every border and gradient, and errors."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

import warpkit as wk
from tests.support import naive_splines
from tests.support.inputs import bend, images, noise
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE

BACKENDS = ("reference", "cpu")
NAMES = ("spline3", "spline5")
SCIPY = {
    "constant": "grid-constant",
    "replicate": "nearest",
    "reflect": "reflect",
    "reflect_101": "mirror",
    "wrap": "grid-wrap",
}
MATRIX = torch.tensor([[0.9, 0.15, 2.3], [-0.2, 1.1, 1.7]], dtype=torch.float64)
"""Destination -> source."""


def rows_first(matrix: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """SciPy's matrix and offset of one that maps (x, y)."""
    numbers = matrix.numpy()
    return numbers[::-1, 1::-1], numbers[::-1, 2]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("border", SCIPY)
@pytest.mark.parametrize("name", NAMES)
def test_scipy_itself(name, border, backend):
    ndimage = pytest.importorskip("scipy.ndimage")
    order, image, size = int(name[-1]), noise(31, 44), (40, 52)
    options = {"interpolation": name, "border": border}
    for value in (0.0, 0.7) if border == "constant" else (0.0,):
        how = {"order": order, "mode": SCIPY[border], "cval": value}
        wanted = ndimage.affine_transform(image.numpy(), *rows_first(MATRIX), size, **how)
        call = {"size": size, "border_value": value, "backend": backend, **options}
        got = wk.warp_affine(image[None], MATRIX, inverse=True, **call)[0]
        np.testing.assert_allclose(got, wanted, atol=TOLERANCE["zoom float64"])
        whole = torch.cat((MATRIX, torch.tensor([[0.0, 0.0, 1.0]]).double()))
        forward = wk.invert(whole)
        for one in (
            wk.warp_affine(image[None], forward[:2], **call),
            wk.warp_perspective(image[None], forward, **call),
            wk.warp_perspective(image[None], whole * -2, inverse=True, **call),
        ):
            np.testing.assert_allclose(one[0], wanted, atol=TOLERANCE["zoom float64"])
        single = wk.warp_affine(image[None].float(), MATRIX, inverse=True, **call)[0]
        np.testing.assert_allclose(single, wanted, atol=TOLERANCE["zoom float32"])
        places = noise(2, 9, 11, seed=3) * 90 - 25
        wanted = ndimage.map_coordinates(image.numpy(), places.numpy(), **how)
        points = torch.stack((places[1], places[0]), -1)
        got = wk.remap(image[None], points, border_value=value, backend=backend, **options)[0]
        np.testing.assert_allclose(got, wanted, atol=TOLERANCE["zoom float64"])
        listed = points.reshape(-1, 2)
        got = wk.sample_pixels(image[None], listed, border_value=value, **options)[0]
        np.testing.assert_allclose(got, wanted.ravel(), atol=TOLERANCE["zoom float64"])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("along_y", "along_x"),
    [("wrap", "constant"), ("constant", "replicate"), ("reflect_101", "reflect"), ("reflect",) * 2],
)
@pytest.mark.parametrize("name", NAMES)
def test_pairs_of_borders_and_small_images_match_a_linear_system(name, along_y, along_x, backend):
    order, value = int(name[-1]), 0.3
    for image in images().values():
        height, width = image.shape[-2:]
        points = noise(5, 6, 2, seed=4) * torch.tensor([width + 30.0, height + 30.0]) - 15
        got = wk.remap(
            image,
            points,
            interpolation=name,
            border=(along_y, along_x),
            border_value=value,
            backend=backend,
        )
        x, y = points.flatten(0, 1).unbind(-1)
        across = naive_splines.samples(x, width, order, along_x)
        down = naive_splines.samples(y, height, order, along_y)
        # constant: the value is subtracted before, and added after
        wanted = np.einsum("ny,...yx,nx->...n", down, image.numpy() - value, across) + value
        if "constant" not in (along_y, along_x):
            wanted = np.einsum("ny,...yx,nx->...n", down, image.numpy(), across)
        wanted = wanted.reshape(got.shape)
        np.testing.assert_allclose(got, wanted, atol=TOLERANCE["reference float64"])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("border", SCIPY)
@pytest.mark.parametrize("name", NAMES)
def test_the_pixels_themselves_come_back(name, border, backend):
    image = noise(2, 3, 9, 14)
    options = {"interpolation": name, "border": border, "backend": backend}
    got = wk.warp_affine(image, torch.eye(2, 3), **options)
    atol = TOLERANCE["reference float64"]
    torch.testing.assert_close(got, image, rtol=0, atol=atol)
    still = wk.warp_flow(image, torch.zeros(9, 14, 2), **options)
    assert torch.equal(still, image)
    turned = wk.warp_affine(image, torch.tensor([[0.0, 1, 2], [1, 0, -1]]).double(), **options)
    torch.testing.assert_close(turned[..., 1, 4], image[..., 2, 2], rtol=0, atol=atol)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", NAMES)
def test_types_layouts_and_integers(name, backend):
    options = {"interpolation": name, "backend": backend, "border_value": 3}
    for dtype in (torch.uint8, torch.int16, torch.uint16):
        image = noise(2, 3, 12, 15, dtype=dtype)
        exact = wk.warp_affine(image.double(), MATRIX, inverse=True, **options)
        got = wk.warp_affine(image, MATRIX, inverse=True, **options)
        assert got.dtype == dtype
        limits = torch.iinfo(dtype)
        wanted = exact.round().clamp(limits.min, limits.max)
        near_a_tie = (exact - exact.floor() - 0.5).abs() < 1e-7
        assert ((got.double() == wanted) | near_a_tie).all()
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        image = noise(2, 3, 12, 15).to(dtype)
        got = wk.warp_affine(image, MATRIX, inverse=True, **options)
        assert got.dtype == dtype
        wanted = wk.warp_affine(image.double(), MATRIX, inverse=True, **options)
        kind = {torch.float32: "reference float32"}.get(dtype, str(dtype).removeprefix("torch."))
        torch.testing.assert_close(got.double(), wanted, rtol=0, atol=4 * TOLERANCE[kind])
    last = noise(2, 3, 12, 15).to(memory_format=torch.channels_last)
    got = wk.warp_affine(last, MATRIX, inverse=True, **options)
    assert got.is_contiguous(memory_format=torch.channels_last)
    plain = wk.warp_affine(last.contiguous(), MATRIX, inverse=True, **options)
    torch.testing.assert_close(got, plain, rtol=0, atol=TOLERANCE["reference float64"])


@pytest.mark.parametrize("name", NAMES)
def test_a_value_for_each_channel_and_item(name):
    image, values = noise(2, 3, 9, 8), noise(2, 3, seed=5)
    options = {"interpolation": name, "size": (15, 16)}
    got = wk.warp_affine(image, MATRIX, border_value=values, **options)
    for n in range(2):
        for c in range(3):
            one = wk.warp_affine(
                image[n, c][None], MATRIX, border_value=float(values[n, c]), **options
            )
            atol = TOLERANCE["reference float64"]
            torch.testing.assert_close(got[n, c], one[0], rtol=0, atol=atol)
    nowhere = wk.remap(
        image, torch.full((2, 2, 2), torch.nan), border_value=values, interpolation=name
    )
    assert torch.equal(nowhere, values[..., None, None].expand(2, 3, 2, 2))


@pytest.mark.parametrize("name", NAMES)
def test_one_image_under_many_matrices_and_antialias(name):
    image, turns = (
        noise(3, 20, 24),
        wk.rotation_matrix((10.0, 9.0), torch.tensor([10.0, 70.0]), 0.4),
    )
    options = {"interpolation": name, "border": "reflect"}
    got = wk.warp_affine(image, turns.double(), antialias=3, **options)
    fine = wk.pixel_grid((20, 24)).double()
    steps = (torch.arange(3, dtype=torch.float64) - 1) / 3
    inverse = wk.invert(turns.double())
    total = torch.zeros_like(got)
    for dx in steps:
        for dy in steps:
            points = wk.transform_points(inverse[:, None], fine + torch.stack((dx, dy)))
            total += wk.remap(image, points, **options)
    torch.testing.assert_close(got, total / 9, rtol=0, atol=TOLERANCE["mean of warps float64"])
    assert torch.equal(
        wk.warp_affine(image, turns, antialias=True, **options),
        wk.warp_affine(image, turns, antialias=True, **options),
    )


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("border", ["constant", "replicate", "reflect", "reflect_101", "wrap"])
@pytest.mark.parametrize("name", NAMES)
def test_every_gradient_of_a_warp(name, border, backend):
    image, matrix = noise(1, 2, 4, 5).requires_grad_(), MATRIX.clone().requires_grad_()
    value = noise(1, 2, seed=6).requires_grad_()
    options = {"interpolation": name, "border": border, "backend": backend}

    def function(image, matrix, value):
        return wk.warp_affine(image, matrix, size=(4, 4), border_value=value, **options)

    inputs = (image, matrix, value) if border == "constant" else (image, matrix)
    call = function if border == "constant" else partial(function, value=0.2)
    # entry by entry once, and along random directions elsewhere: 0.3 s instead of 2
    fast = (name, border) != ("spline3", "constant")
    assert gradcheck(call, inputs, check_forward_ad=True, fast_mode=fast)
    assert gradgradcheck(call, inputs)
    slopes = torch.autograd.grad(call(*inputs).square().sum(), inputs)
    assert all(slope.abs().max() > 1e-3 for slope in slopes)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", NAMES)
def test_every_gradient_of_points_and_flows(name, backend):
    image, points = noise(1, 2, 5, 6).requires_grad_(), (noise(3, 4, 2, seed=2) * 6 - 1)
    points[0, 0] = torch.tensor([2.0, 3.0])  # at a pixel the slopes are continuous, too
    points[1, 1] = torch.tensor([-0.5, 5.0])
    points.requires_grad_()
    options = {"interpolation": name, "border": "replicate", "backend": backend}
    modes = {"check_forward_ad": True, "fast_mode": name != "spline3"}
    assert gradcheck(lambda i, p: wk.remap(i, p, **options), (image, points), **modes)
    assert gradgradcheck(lambda i, p: wk.remap(i, p, **options), (image, points))
    flow = bend(5, 6, seed=3).requires_grad_()
    assert gradcheck(lambda i, f: wk.warp_flow(i, f, **options), (image, flow), fast_mode=True)
    options = {"interpolation": name, "border": "reflect"}
    listed = (noise(5, 2, seed=8) * 5).requires_grad_()
    assert gradcheck(lambda i, p: wk.sample_pixels(i, p, **options), (image, listed))
    assert gradgradcheck(lambda i, p: wk.sample_pixels(i, p, **options), (image, listed))


@pytest.mark.parametrize("border", SCIPY)
@pytest.mark.parametrize("name", NAMES)
def test_the_backward_pass_is_the_adjoint(name, border):
    image = noise(2, 3, 33, 37).requires_grad_()
    result = wk.warp_affine(image, MATRIX, interpolation=name, border=border, size=(30, 50))
    other = noise(*result.shape, seed=7)
    (back,) = torch.autograd.grad(result, image, other)
    torch.testing.assert_close((result * other).sum(), (image * back).sum(), rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", NAMES)
def test_transforms_and_autocast(name):
    batch, matrices = noise(3, 2, 9, 8), MATRIX + 0.01 * noise(3, 2, 3)
    function = partial(wk.warp_affine, interpolation=name)
    wanted = function(batch, matrices)
    mapped = torch.func.vmap(function)(batch, matrices)
    atol = TOLERANCE["reference float64"]
    torch.testing.assert_close(mapped, wanted, rtol=0, atol=atol)
    slope = torch.func.vmap(torch.func.grad(lambda i, m: function(i, m).square().sum(), argnums=1))
    each = [
        torch.func.grad(lambda m, i=i: function(i, m).square().sum())(m)
        for i, m in zip(batch, matrices, strict=True)
    ]
    torch.testing.assert_close(slope(batch, matrices), torch.stack(each), rtol=1e-12, atol=1e-12)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(function(batch, matrices), wanted)


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("name", NAMES)
def test_compiled_programs_have_the_same_numbers_and_gradients(name):
    def function(image, matrix):
        return wk.warp_affine(image, matrix, interpolation=name, border_value=0.4)

    inputs = noise(2, 3, 14, 12).requires_grad_(), MATRIX.clone().requires_grad_()
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    pair = compiled(*inputs), function(*inputs)
    torch.testing.assert_close(*pair, rtol=0, atol=TOLERANCE["reference float64"])
    slopes = [torch.autograd.grad(result.square().sum(), inputs) for result in pair]
    torch.testing.assert_close(*slopes, rtol=1e-10, atol=TOLERANCE["two modes float64"])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", NAMES)
def test_a_nan_spoils_its_channel_at_most(name, backend):
    image = noise(2, 3, 20, 21)
    clean = wk.warp_affine(image, MATRIX, interpolation=name, backend=backend)
    image[1, 1, 5, 5] = torch.nan
    got = wk.warp_affine(image, MATRIX, interpolation=name, backend=backend)
    assert got[1, 1].isnan().any()
    got[1, 1] = clean[1, 1] = 0
    assert torch.equal(got, clean)


IMAGE = torch.zeros(1, 3, 8, 10)
WRONG = [
    ({"border": "transparent"}, "`border` must be another than 'transparent' with interpolation='spline3'"),
    ({"arithmetic": "opencv5"}, "`interpolation` must be one that OpenCV has with arithmetic='opencv5', got 'spline3'"),
    ({"image_gradient": "straight_through"}, "`image_gradient` must be 'exact' with interpolation='spline3', whose filter reads all pixels, got 'straight_through'"),
    ({"interpolation": "spline4"}, "`interpolation` must be one of 'nearest', 'bilinear', 'bicubic', 'lanczos4', 'spline3', 'spline5', got 'spline4'"),
    ({"image": IMAGE.long()}, "`interpolation` must be 'nearest' for torch.int64"),
    ({"backend": "grid_sample"}, "`backend` must be one that can do this, got 'grid_sample'"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "text"), WRONG)
def test_errors(options, text):
    call = {"image": IMAGE, "interpolation": "spline3", **options}
    with pytest.raises(ValueError, match=re.escape(f"warp_affine: {text}")):
        wk.warp_affine(call.pop("image"), torch.eye(2, 3), **call)


def test_functions_without_a_filter_refuse_splines():
    with pytest.raises(ValueError, match="'lanczos4', got 'spline3'"):
        wk.crop_patches(IMAGE, [[0, 0, 4, 4]], [0], (2, 2), interpolation="spline3")  # pyright: ignore
