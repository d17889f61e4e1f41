"""crop_patches compared with warps of single images and roi_align, and its gradients."""

from __future__ import annotations

import re

import pytest
import torch
from torch.autograd import gradcheck

import warpkit as wk
from tests.support.inputs import noise
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE

LOOP = TOLERANCE["objects against the loop"]
BOXES = torch.tensor(
    [[2.3, 1.1, 7.9, 8.4], [-3.0, 4.0, 5.5, 20.25], [0.0, 0.0, 3.0, 2.0], [30, 30, 40, 50]],
    dtype=torch.float64,
)
BOX_WANTED = "`boxes` must be finite (x1, y1, x2, y2) with x1 < x2 and y1 < y2, got"
INDEX = torch.tensor([1, 0, 1, 0])


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos4"])
@pytest.mark.parametrize("border", ["constant", "replicate", "reflect", "reflect_101", "wrap"])
def test_crops_equal_a_loop_of_warps(interpolation, border):
    images, value = noise(2, 3, 11, 13), noise(4, 3, seed=1)
    options = {"interpolation": interpolation, "border": border}
    ours = wk.crop_patches(images, BOXES, INDEX, (5, 6), border_value=value, **options)
    matrices = wk.box_to_matrix(BOXES, (5, 6))
    for i, b in enumerate(INDEX.tolist()):
        expected = wk.warp_affine(
            images[b], matrices[i], size=(5, 6), inverse=True, border_value=value[i], **options
        )
        torch.testing.assert_close(ours[i], expected, atol=LOOP, rtol=0)


def test_an_integer_box_of_the_results_size_gives_a_slice():
    images = noise(2, 3, 9, 9)
    crop = wk.crop_patches(images, [[2, 3, 7, 7]], [1], (4, 5))
    assert torch.equal(crop[0], images[1, :, 3:7, 2:7])


def test_crops_equal_roi_align_with_one_sample_per_bin():
    ops = pytest.importorskip("torchvision.ops")
    images = noise(3, 4, 20, 22).requires_grad_()
    generator = torch.Generator().manual_seed(0)
    # inside the image; outside, roi_align clamps samples and drops those farther than a pixel
    low = torch.rand(30, 2, generator=generator, dtype=torch.float64) * 12 + 1
    side = torch.rand(30, 2, generator=generator, dtype=torch.float64) * 6 + 0.5
    boxes = torch.cat((low, low + side), 1)
    index = torch.randint(0, 3, (30,), generator=generator)
    rois = torch.cat((index[:, None].double(), boxes), 1)
    theirs = ops.roi_align(images, rois, (4, 6), sampling_ratio=1, aligned=True)
    ours = wk.crop_patches(images, boxes, index, (4, 6))
    torch.testing.assert_close(ours, theirs, atol=LOOP, rtol=0)
    weight = noise(*ours.shape, seed=5)
    gradients = [torch.autograd.grad((out * weight).sum(), images)[0] for out in (ours, theirs)]
    torch.testing.assert_close(*gradients, atol=LOOP, rtol=0)


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
def test_antialiased_crops_equal_antialiased_warps(interpolation):
    """Also with boxes that need fewer samples or none, and outside the image."""
    image = noise(3, 30, 40)
    boxes = torch.tensor(
        [[2, 3, 42.5, 28], [-6, 2, 30.5, 50], [3, 3, 9, 20], [3, 3, 6, 7]]
    ).double()
    options = {"interpolation": interpolation, "antialias": True}
    crops = wk.crop_patches(image, boxes, None, (4, 5), **options)
    for crop, matrix in zip(crops, wk.box_to_matrix(boxes, (4, 5)), strict=True):
        warp = wk.warp_affine(image, matrix, size=(4, 5), inverse=True, **options)
        torch.testing.assert_close(crop, warp, atol=LOOP, rtol=0)


def test_antialias_gives_every_pixel_of_the_box_a_gradient():
    image = torch.zeros(1, 1, 30, 30, requires_grad=True)
    box = [[1.2, 2.7, 28.9, 27.5]]
    wk.crop_patches(image, box, None, (3, 4), antialias=True).sum().backward()
    assert bool((image.grad[..., 3:27, 2:28] > 0).all())


def test_no_boxes_and_rounded_integers():
    images = noise(2, 3, 6, 6).requires_grad_()
    none = wk.crop_patches(images, torch.zeros(0, 4), torch.zeros(0, dtype=torch.long), (2, 5))
    assert none.shape == (0, 3, 2, 5)
    none.sum().backward()
    assert torch.equal(images.grad, torch.zeros_like(images))
    integers = noise(1, 3, 6, 6, dtype=torch.uint8)
    crop = wk.crop_patches(integers, [[0.5, 0.5, 4, 5]], None, (3, 3), antialias=True)
    exact = wk.crop_patches(integers.double(), [[0.5, 0.5, 4, 5]], None, (3, 3), antialias=True)
    assert torch.equal(crop.double(), exact.round())


@pytest.mark.parametrize("antialias", [False, True])
def test_gradients(antialias):
    images = noise(2, 1, 6, 7).requires_grad_()
    boxes = torch.tensor([[0.7, 1.3, 6.1, 4.9], [-2.2, 0.6, 1.9, 5.3]], dtype=torch.float64)
    boxes.requires_grad_()
    value = noise(2, 1, seed=2).requires_grad_()

    def run(images, boxes, value):
        return wk.crop_patches(
            images, boxes, [1, 0], (2, 3), border_value=value, antialias=antialias
        )

    assert gradcheck(run, (images, boxes, value), check_forward_ad=True)
    assert gradgradcheck(run, (images, boxes, value))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"boxes": torch.tensor([[1.0, 3.0, 2.0, 3.0]])},
            f"{BOX_WANTED} [1.0, 3.0, 2.0, 3.0] at 0",
        ),
        (
            {"boxes": torch.tensor([[1.0, 3.0, torch.nan, 4.0]])},
            f"{BOX_WANTED} [1.0, 3.0, nan, 4.0] at 0",
        ),
        ({"image_index": [3]}, "`image_index` must be in [0, 2), the number of images, got 3 at 0"),
        ({"image_index": "0"}, "`image_index` must be a tensor of integers of shape (N,), or None"),
        ({"size": 3}, "`size` must be (H, W), two integers of at least 1, got 3"),
        (
            {"border": "transparent"},
            "`border` must be a border other than 'transparent', got 'transparent'",
        ),
        (
            {"antialias": 0},
            "`antialias` must be True, False or a number of samples along an axis, from 1 to ",
        ),
    ],
)
def test_errors_name_the_argument(change, message):
    given = {
        "images": torch.zeros(2, 1, 4, 4),
        "boxes": torch.tensor([[0.0, 0, 2, 2]]),
        "image_index": [0],
        "size": (2, 2),
    }
    with pytest.raises((ValueError, TypeError), match=re.escape(f"crop_patches: {message}")):
        wk.crop_patches(**(given | change))


def test_empty_lists_mean_no_objects():
    images = noise(2, 3, 5, 6)
    assert wk.crop_patches(images, [], [], (3, 4)).shape == (0, 3, 3, 4)
    for space in ("pixel", "theta"):
        assert torch.equal(wk.transform_patches(images, [], [], [], space=space), images)
    assert torch.equal(wk.paste_patches(images, noise(3, 2, 2), [], []), images)
    text = "transform_patches: `matrices` must be of shape (1, 2, 3), got (0, 2, 3)"
    with pytest.raises(ValueError, match=re.escape(text)):
        wk.transform_patches(images, [[0, 0, 3, 3]], [], [0])
