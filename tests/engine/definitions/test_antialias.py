"""Antialiased warps, compared with a mean of 15 x 15 samples per pixel."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from torch.autograd import gradcheck
from torch.func import jacfwd, jacrev, vmap

import warpkit as wk
from tests.support import ROOT
from tests.support.inputs import BACKENDS, RULES, images, noise
from tests.support.tolerances import TOLERANCE
from warpkit.engine.definitions import antialias


def supersampled(image: Tensor, matrix: Tensor, size: tuple[int, int], n: int = 15) -> Tensor:
    """The mean of n x n samples over each output pixel's square, from the definition."""
    y, x = torch.meshgrid(*(torch.arange(s, dtype=torch.float64) for s in size), indexing="ij")
    pixels = torch.stack((x, y), dim=-1)
    inverse, total = wk.invert(matrix.double()), torch.zeros(())
    for dy in range(n):
        for dx in range(n):
            offset = torch.tensor([(dx + 0.5) / n - 0.5, (dy + 0.5) / n - 0.5]).double()
            points = wk.transform_points(inverse, (pixels + offset).reshape(-1, 2))
            total = total + wk.sample_pixels(image.double(), points)
    return (total / n**2).unflatten(-1, size)


def shrinking(size: tuple[int, int], angle: float, scale: float) -> tuple[Tensor, tuple[int, int]]:
    """A rotation about the centre, and the size of the output that the shrunk image fills."""
    out = (int(size[0] * scale), int(size[1] * scale))
    (cx, cy), (x, y) = wk.image_center(size), wk.image_center(out)
    angle_scale = {"angle": torch.tensor(angle).double(), "scale": scale}
    return wk.affine_matrix(**angle_scale, center=(cx, cy), translation=(x - cx, y - cy)), out


IMAGES = ROOT / "data" / "images"


def picture(name: str) -> Tensor:
    """A photograph of the data folder in [0, 1], or noise."""
    if name == "noise":
        return noise(3, 150, 200)
    with Image.open(IMAGES / f"{name}.png") as file:
        pixels = torch.from_numpy(np.array(file))
    return (pixels[None] if pixels.ndim == 2 else pixels.movedim(-1, 0)) / 255


@pytest.mark.parametrize("angle", [17.0, 45.0])
@pytest.mark.parametrize("name", ["noise", "astronaut", "brick", "coffee", "text"])
def test_the_error_is_100_times_below_that_of_the_plain_warp(name, angle):
    image = picture(name)
    matrix, size = shrinking(image.shape[-2:], angle, 0.21)
    truth = supersampled(image, matrix, size)

    def error(antialias: bool) -> float:
        result = wk.warp_affine(image, matrix, size=size, antialias=antialias)
        return float((result - truth).square().mean())

    assert error(antialias=True) * 100 < error(antialias=False)


@pytest.mark.parametrize(("interpolation", "border"), RULES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_rule_takes_the_mean_of_plain_warps(backend, interpolation, border):
    if backend == "grid_sample" and (interpolation == "lanczos4" or border == "wrap"):
        with pytest.raises(
            ValueError, match="`backend` must be one that can do this, got 'grid_sample':\n"
        ):
            wk.warp_affine(
                noise(1, 4, 4),
                torch.eye(2, 3),
                interpolation=interpolation,
                border="replicate" if border == "transparent" else border,
                antialias=True,
                backend=backend,
            )
        return
    image, matrix = noise(2, 9, 11), torch.tensor([[0.4, 0.1, 1.0], [-0.1, 0.5, 0.3]]).double()
    options = {"interpolation": interpolation, "border": border, "border_value": (0.3, 0.7)}
    if border == "transparent":
        options["background"] = noise(2, 4, 5, seed=1)
    result = wk.warp_affine(image, matrix, size=(4, 5), antialias=True, backend=backend, **options)
    # the inverse's columns are 2.3 and 1.9 source pixels long; nearest needs spacing 1 / sqrt(2)
    across, down = (4, 3) if interpolation == "nearest" else (3, 2)
    expected = torch.zeros(())
    for i in range(across):
        for j in range(down):
            dx, dy = (i + 0.5) / across - 0.5, (j + 0.5) / down - 0.5
            offset = torch.tensor([[1, 0, -dx], [0, 1, -dy]], dtype=torch.float64)
            moved = wk.compose(matrix, offset)
            expected = expected + wk.warp_affine(image, moved, size=(4, 5), **options)
    torch.testing.assert_close(
        result, expected / (across * down), rtol=0, atol=TOLERANCE["mean of warps float64"]
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64, torch.uint8])
@pytest.mark.parametrize("kind", ["odd", "strided", "channels-last", "one for all", "no batch"])
def test_without_minification_the_bits_are_the_plain_warps(kind, dtype):
    image = images(dtype)[kind]
    for matrix in (
        wk.rotation_matrix(
            (3.0, 2.0), 33.0, 1.0
        ),  # a float32 rotation: its singular values are 1 +- eps
        wk.rotation_matrix((3.0, 2.0), 20.0, 2.5),
        torch.eye(2, 3),
        torch.zeros(2, 3),  # a singular map
    ):
        plain = wk.warp_affine(image, matrix, antialias=False)
        assert torch.equal(wk.warp_affine(image, matrix, antialias=True), plain)
        assert torch.equal(wk.warp_affine(image, matrix, antialias=3), plain)


@pytest.mark.parametrize("antialias", [True, 5])
def test_each_item_of_a_batch_has_its_own_scale(antialias):
    matrices = torch.stack(
        [shrinking((20, 20), 30.0, scale)[0] for scale in (0.21, 1.0, 0.5, 1.7, 0.21)]
    )
    each = noise(5, 2, 20, 20)
    values = noise(5, 2, seed=3)
    for image, pick in ((each, lambda k: each[k]), (each[:1], lambda _: each[0])):
        result = wk.warp_affine(image, matrices, border_value=values, antialias=antialias)
        for k, matrix in enumerate(matrices):
            one = wk.warp_affine(pick(k), matrix, border_value=values[k], antialias=antialias)
            torch.testing.assert_close(
                result[k], one, rtol=0, atol=TOLERANCE["mean of warps float64"]
            )
        for k in (1, 3):
            plain = wk.warp_affine(pick(k), matrices[k], border_value=values[k])
            assert torch.equal(result[k], plain)


def test_an_image_shared_by_some_items_is_warped_without_copies():
    image = noise(2, 1, 2, 20, 20)
    matrices = torch.stack([shrinking((20, 20), 30.0, scale)[0] for scale in (0.3, 1.0, 0.5)])
    result = wk.warp_affine(image, matrices, antialias=True)
    assert result.shape == (2, 3, 2, 20, 20)
    for i in range(2):
        for k in range(3):
            one = wk.warp_affine(image[i, 0], matrices[k], antialias=True)
            torch.testing.assert_close(result[i, k], one)


ROUNDING = {
    torch.float64: TOLERANCE["mean of warps float64"],
    torch.float32: TOLERANCE["reference float32"],
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64, torch.uint8])
def test_a_constant_image_stays_constant(dtype):
    image = torch.full((2, 40, 30), 0.7 if dtype.is_floating_point else 77, dtype=torch.float64)
    image = image.to(dtype)
    matrix, size = shrinking((40, 30), 25.0, 0.21)
    for border in ("replicate", "reflect", "reflect_101", "wrap"):
        result = wk.warp_affine(image, matrix, size=size, border=border, antialias=True)
        error = (result.double() - image[0, 0, 0].double()).abs().max()
        assert error <= ROUNDING.get(dtype, 0), border
    value = float(image[0, 0, 0])
    result = wk.warp_affine(image, matrix, size=size, border_value=value, antialias=True)
    torch.testing.assert_close(result, image[:, :8, :6], rtol=0, atol=ROUNDING.get(dtype, 0))


def test_every_visible_pixel_gets_a_gradient():
    image = noise(1, 30, 40).requires_grad_()
    for interpolation in ("nearest", "bilinear", "bicubic"):
        for angle in (0.0, 30.0, 45.0):
            matrix = wk.rotation_matrix(wk.image_center((30, 40)), angle, 0.21)
            result = wk.warp_affine(image, matrix, antialias=True, interpolation=interpolation)
            assert wk.gradient_support(result, image).fraction == 1, (interpolation, angle)
            plain = wk.warp_affine(image, matrix, interpolation=interpolation)
            assert wk.gradient_support(plain, image).fraction < 1, (interpolation, angle)


def test_perspective_takes_the_mean_where_it_minifies_and_the_plain_warp_elsewhere():
    image = noise(1, 24, 24)
    # to source: x / w, y / w with w = 1.6 - 0.1 x: magnifies on the left, minifies on the right
    inverse = torch.tensor([[1.0, 0, 0], [0, 1, 0], [-0.1, 0, 1.6]]).double()
    options = {"size": (12, 12), "inverse": True}
    plain = wk.warp_perspective(image, inverse, **options)
    result = wk.warp_perspective(image, inverse, antialias=True, **options)
    x = torch.arange(12.0)
    stretch = 1.6 / (1.6 - 0.1 * x) ** 2  # along x; along y it is 1 / w, with shear
    assert torch.equal(result[..., 0, stretch < 1], plain[..., 0, stretch < 1])
    truth = supersampled(image, wk.invert(inverse), (12, 12))
    right = stretch > 2
    errors = [(r - truth)[..., right].square().mean() for r in (plain, result)]
    assert errors[1] * 20 < errors[0]
    assert torch.equal(wk.warp_perspective(image, torch.eye(3), antialias=True), image)
    shrunk, size = shrinking((24, 24), 20.0, 0.3)
    whole = torch.cat((shrunk, torch.tensor([[0.0, 0, 1]]).double()))
    torch.testing.assert_close(
        wk.warp_perspective(image, whole, size=size, antialias=True),
        wk.warp_affine(image, shrunk, size=size, antialias=True),
    )


def test_a_horizon_is_bounded_and_finite():
    image = noise(1, 12, 12).requires_grad_()
    matrix = torch.tensor([[1.0, 0, 0], [0, 1, 0], [-0.15, 0.05, 1]]).double().requires_grad_()
    result = wk.warp_perspective(image, matrix, inverse=True, antialias=True)
    assert result.isfinite().all()
    grads = torch.autograd.grad(result.square().sum(), (image, matrix))
    assert all(g.isfinite().all() for g in grads)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:FutureWarning")
def test_gradients_to_image_and_matrix():
    matrix, size = shrinking((8, 9), 20.0, 0.3)
    image = noise(1, 8, 9)

    def warp(image: Tensor, matrix: Tensor) -> Tensor:
        return wk.warp_affine(image, matrix, size=size, antialias=True)

    inputs = (image.requires_grad_(), matrix.requires_grad_())
    assert gradcheck(warp, inputs, check_forward_ad=True)
    reverse, forth = (j(warp, 1)(image.detach(), matrix.detach()) for j in (jacrev, jacfwd))
    torch.testing.assert_close(reverse, forth, rtol=0, atol=TOLERANCE["two modes float64"])


def test_vmap_over_matrices_needs_a_number_of_samples():
    matrices = torch.stack([shrinking((9, 9), 10.0, scale)[0] for scale in (0.3, 1.2)])
    image = noise(2, 1, 9, 9)
    text = (
        "warp_affine: `antialias` must be a number of samples along an axis where the matrix "
        "cannot be read, got True under vmap, torch.compile, export or on the meta device"
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        vmap(lambda m: wk.warp_affine(image[0], m, antialias=True))(matrices)
    torch.testing.assert_close(
        vmap(lambda i, m: wk.warp_affine(i, m, antialias=4))(image, matrices),
        wk.warp_affine(image, matrices, antialias=4),
    )
    torch.testing.assert_close(  # vmap over images alone works
        vmap(lambda i: wk.warp_affine(i, matrices, antialias=True))(image),
        torch.stack([wk.warp_affine(i, matrices, antialias=True) for i in image]),
    )


@pytest.mark.parametrize(
    ("value", "error"),
    [(0, ValueError), (-2, ValueError), (257, ValueError), (2.0, TypeError), ("yes", TypeError)],
)
def test_errors(value, error):
    text = (
        "warp_affine: `antialias` must be True, False or a number of samples along an axis, from 1 "
        f"to 256, got {value!r}"
    )
    with pytest.raises(error, match=re.escape(text)):
        wk.warp_affine(torch.zeros(1, 3, 3), torch.eye(2, 3), antialias=value)


def test_an_empty_batch_stays_empty():
    result = wk.warp_affine(torch.zeros(0, 3, 5, 5), torch.zeros(0, 2, 3), antialias=True)
    assert result.shape == (0, 3, 5, 5)


@pytest.mark.parametrize("function", [wk.warp_affine, wk.warp_perspective])
def test_limited_memory_changes_no_value(function, monkeypatch):
    """Samples are computed some rows at a time, down to one, with a background too."""
    image, background = noise(2, 1, 6, 5), noise(2, 1, 9, 8, seed=1)
    matrix = torch.tensor([[0.5, 0.1, 1.0], [-0.1, 0.4, 2.0], [0.0, 0.001, 1.0]])
    matrix = matrix if function is wk.warp_perspective else matrix[:2]
    options = {"size": (9, 8), "border": "transparent", "background": background}
    for samples in (4, 30, True):
        options["antialias"] = samples
        wanted = function(image, matrix, **options)
        with monkeypatch.context() as patch:
            patch.setattr(antialias, "AT_ONCE", 1)
            got = function(image, matrix, **options)
        torch.testing.assert_close(got, wanted, rtol=0, atol=TOLERANCE["two modes float64"])
        assert (wanted - background).abs().max() > 0.1
