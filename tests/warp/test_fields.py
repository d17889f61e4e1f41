"""Fields of points: the grid that changes nothing, offsets from it, and fields that shrink."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

import warpkit as wk
from tests.support.inputs import noise
from tests.support.installed_opencv import installed_opencv
from tests.support.naive_warp import sample as naive_sample
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE


def test_the_grid_holds_every_pixels_position():
    grid = wk.pixel_grid((2, 3))
    assert grid.tolist() == [[[0, 0], [1, 0], [2, 0]], [[0, 1], [1, 1], [2, 1]]]
    assert wk.pixel_grid((2, 3), dtype=torch.float64).dtype == torch.float64
    with pytest.raises(TypeError, match=re.escape("pixel_grid: `size` must be (H, W)")):
        wk.pixel_grid(3)  # pyright: ignore
    with pytest.raises(TypeError, match="pixel_grid: `dtype` must be one of float16"):
        wk.pixel_grid((2, 3), dtype=torch.int64)


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos4"])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float64])
def test_offsets_of_zero_change_no_bit(interpolation, dtype):
    image = noise(2, 3, 7, 9, dtype=dtype)
    options = {"interpolation": interpolation, "border": "reflect"}
    for antialias in (False, True, 3):
        out = wk.remap(image, wk.pixel_grid((7, 9)), antialias=antialias, **options)
        assert torch.equal(out, image)
        out = wk.remap(image, torch.zeros(7, 9, 2), relative=True, antialias=antialias, **options)
        assert torch.equal(out, image)


def test_offsets_are_added_to_each_pixel():
    image, offsets = noise(1, 2, 6, 8), 3 * noise(4, 5, 7, 2, seed=1) - 1.5
    y, x = np.mgrid[:5, :7]
    points = offsets + torch.from_numpy(np.stack((x, y), -1))
    assert torch.equal(wk.remap(image, offsets, relative=True), wk.remap(image, points))
    # float32 offsets stay exact at distant pixels, while 4096.1 in float32 is off by 2e-4
    wide = torch.arange(4200.0).double().reshape(1, 1, -1)
    moved = wk.remap(wide, torch.tensor([0.1, 0.0]).expand(1, 4199, 2), relative=True)
    assert (moved - wide[..., :-1] - float(np.float32(0.1))).abs().max() < 1e-9
    with pytest.raises(TypeError, match="remap: `relative` must be"):
        wk.remap(image, points, relative=1)  # pyright: ignore


def test_relative_maps_match_opencv():
    cv2 = installed_opencv()
    image = noise(1, 1, 40, 50, dtype=torch.float32)
    offsets = (6 * noise(30, 35, 2, seed=2) - 3).float()
    flags = cv2.INTER_LINEAR | cv2.WARP_RELATIVE_MAP
    truth = cv2.remap(image[0, 0].numpy(), offsets.numpy(), None, flags)
    out = wk.remap(image, offsets, relative=True)
    assert np.abs(out[0, 0].numpy() - truth).max() < TOLERANCE["cv2 5 float32"]


def bent(scale=2.6, size=(6, 7)):
    """A field that shrinks by `scale` on the left and less to the right, and bends."""
    y, x = np.mgrid[: size[0], : size[1]].astype(float)
    points = np.stack((1 + scale * x - 0.12 * x * x, 0.7 + 0.8 * y + 0.2 * x + 0.05 * y * x), -1)
    return torch.from_numpy(points)


def mean_by_definition(image, points, n, interpolation, border):
    """Each pixel's mean over n x n samples of its square, one sample at a time, in numpy."""
    h, w = points.shape[:2]
    result = naive_sample(image, points, interpolation, border, np.zeros((2, h, w)))
    for i in range(h):
        for j in range(w):
            sides = []
            for axis, k, size in ((1, j, w), (0, i, h)):
                near = [q for q in (k - 1, k + 1) if 0 <= q < size]
                ends = [points[i, q] if axis == 1 else points[q, j] for q in (k, *near)]
                if len(near) == 2:
                    sides.append((ends[2] - ends[1]) / 2)
                elif near:
                    sides.append((ends[1] - ends[0]) * (near[0] - k))
                else:
                    sides.append(np.zeros(2))
            if np.linalg.svd(np.array(sides))[1].max() <= 1:
                continue
            steps = [(q + 0.5) / n - 0.5 for q in range(n)]
            at = [points[i, j] + sides[0] * dx + sides[1] * dy for dx in steps for dy in steps]
            nothing = np.zeros((2, 1, n * n))
            values = naive_sample(image, np.array(at)[None], interpolation, border, nothing)
            result[..., i, j] = values.mean(-1)[..., 0]
    return result


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
@pytest.mark.parametrize("border", ["constant", "reflect"])
def test_means_match_the_definition(interpolation, border):
    image, points = noise(2, 12, 15), bent()
    options = {"interpolation": interpolation, "border": border}
    out = wk.remap(image, points, antialias=3, **options)
    truth = mean_by_definition(image.numpy(), points.numpy(), 3, interpolation, border)
    assert np.abs(out.numpy() - truth).max() < TOLERANCE["mean of warps float64"]
    # 2.6 per pixel: floor + 1 = 3 along x; along y, which shrinks by less than 1.2, 2
    automatic = wk.remap(image, points, antialias=True, **options)
    assert not torch.equal(automatic, wk.remap(image, points, **options))


@pytest.mark.parametrize("backend", ["cpu", "grid_sample", "reference"])
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic"])
def test_the_field_of_a_matrix_gives_the_matrixs_result(backend, interpolation):
    image = noise(2, 3, 24, 30)
    matrix = wk.affine_matrix(angle=20.0, scale=0.31, translation=(2.0, 3.0)).double()
    options = {"interpolation": interpolation, "border": "reflect", "backend": backend}
    truth = wk.warp_affine(image, matrix, size=(9, 11), antialias=True, **options)
    points = wk.transform_points(wk.invert(matrix), wk.pixel_grid((9, 11)).double())
    out = wk.remap(image, points, antialias=True, **options)
    assert (out - truth).abs().max() < TOLERANCE["mean of warps float64"]


def test_every_visible_pixel_gets_a_gradient():
    image = noise(1, 40, 40).requires_grad_()
    points = 5 * wk.pixel_grid((8, 8)).double() + 2
    for antialias, whole in ((False, False), (True, True)):
        (grad,) = torch.autograd.grad(wk.remap(image, points, antialias=antialias).sum(), image)
        assert bool((grad > 0).all()) == whole


def test_an_item_does_not_change_with_its_batch():
    image = noise(2, 1, 3, 20, 20)
    fields = torch.stack([bent(1.0), bent(2.6), bent(7.0)])
    out = wk.remap(image, fields, antialias=True, border="reflect")
    assert out.shape == (2, 3, 3, 6, 7)
    for i in range(2):
        for j in range(3):
            one = wk.remap(image[i, 0], fields[j], antialias=True, border="reflect")
            assert torch.equal(out[i, j], one), (i, j)


def test_a_nonfinite_point_does_not_affect_its_neighbours():
    image, points = noise(1, 20, 20), bent(2.6)
    hole = points.clone()
    hole[2, 3] = torch.nan
    out = wk.remap(image, hole, antialias=3, border_value=7.0)
    assert out[0, 2, 3] == 7
    assert out.isfinite().all()
    far = [(0, 0), (2, 5), (4, 3), (5, 6)]  # not neighbours of it
    whole = wk.remap(image, points, antialias=3, border_value=7.0)
    assert all(out[0, i, j] == whole[0, i, j] for i, j in far)
    hole.requires_grad_()
    wk.remap(image, hole, antialias=3).sum().backward()
    assert hole.grad is not None
    assert hole.grad.isfinite().all()


def test_gradients_to_image_and_points():
    image, points = noise(1, 4, 6).requires_grad_(), bent(2.6, (2, 3)).requires_grad_()

    def mean(image, points):
        return wk.remap(image, points, antialias=2, interpolation="bicubic", border="reflect")

    assert gradcheck(mean, (image, points), check_forward_ad=True)
    assert gradgradcheck(mean, (image, points))


def test_integers_are_rounded_once():
    image = noise(1, 20, 20, dtype=torch.uint8)
    out = wk.remap(image, bent(), antialias=True)
    exact = wk.remap(image.double(), bent(), antialias=True)
    assert torch.equal(out, exact.round().to(torch.uint8))


def test_errors_of_antialias():
    image, points = noise(1, 20, 20), bent()
    wanted = "remap: `antialias` must be False with arithmetic='opencv5', got True"
    with pytest.raises(ValueError, match=re.escape(wanted)):
        wk.remap(image, points, antialias=True, arithmetic="opencv5")
    with pytest.raises(ValueError, match=r"remap: `antialias` must be False for torch\.bool"):
        wk.remap(image > 0.5, points, antialias=2, interpolation="nearest")
    wanted = "remap: `antialias` must be a number of samples along an axis where the points cannot"
    with pytest.raises(ValueError, match=re.escape(wanted)):
        torch.func.vmap(lambda p: wk.remap(image, p, antialias=True))(points[None])
    mapped = torch.func.vmap(lambda p: wk.remap(image, p, antialias=2))(points[None])
    assert torch.equal(mapped[0], wk.remap(image, points, antialias=2))
