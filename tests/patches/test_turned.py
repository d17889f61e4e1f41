"""Rotated boxes and quads, compared with float64 numpy, numbers by hand and upright boxes."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck
from torchvision import tv_tensors
from torchvision.transforms import v2

import warpkit as wk
from tests.support import naive_turned
from tests.support.inputs import noise
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE

LOOP = TOLERANCE["objects against the loop"]
TURNED = torch.tensor(
    [[9.3, 8.1, 9.4, 6.6, 33.0], [4.0, 12.0, 14.0, 5.0, -70.0], [20.0, 3.0, 8.5, 9.5, 200.0]],
    dtype=torch.float64,
)
QUADS = torch.tensor(
    [
        [[3.2, 2.1], [14.9, 4.3], [12.2, 14.8], [1.7, 11.4]],
        [[20.0, 3.0], [8.0, 1.5], [7.5, 12.0], [22.5, 15.0]],  # counter-clockwise: mirrored
        [[-4.0, 3.0], [9.0, -2.0], [15.0, 9.0], [2.0, 18.0]],  # leaves the image
    ],
    dtype=torch.float64,
)
BOXES = {"turned": TURNED, "quads": QUADS}
INDEX = torch.tensor([1, 0, 1])
BORDERS = ["constant", "replicate", "reflect", "reflect_101", "wrap", ("constant", "wrap")]


def matrices(count: int = 3, seed: int = 3) -> torch.Tensor:
    change = 0.2 * noise(count, 2, 3, seed=seed) - 0.1
    change[:, :, 2] *= 20
    return torch.eye(2, 3, dtype=torch.float64) + change


def test_a_box_rotated_by_90_degrees_gives_a_rotated_slice():
    image = noise(3, 8, 9)
    crop = wk.crop_patches(image, [[5, 3, 4, 2, 90]], None, (2, 4))
    assert torch.equal(crop[0], image[:, 1:5, 4:6].flip(1).mT)
    corners = [[[4, 5], [4, 1], [6, 1], [6, 5]]]
    assert torch.equal(wk.crop_patches(image, corners, None, (2, 4)), crop)
    again = wk.crop_patches(image, [[5, 3, 4, 2, 450]], None, (2, 4))
    assert torch.equal(again, crop)
    half = wk.crop_patches(image, [[5, 3, 4, 2, 270]], None, (2, 4))
    assert torch.equal(half, crop.flip(2, 3))


@pytest.mark.parametrize("kind", BOXES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_crops_equal_the_definition(kind, dtype):
    images, boxes = noise(2, 3, 16, 22), BOXES[kind]
    ours = wk.crop_patches(images.to(dtype), boxes, INDEX, (5, 7))
    tolerance = LOOP if dtype == torch.float64 else 1e-5
    for found, box, b in zip(ours, boxes.numpy(), INDEX.tolist(), strict=True):
        expected = naive_turned.crop(images[b].numpy(), box, (5, 7))
        np.testing.assert_allclose(found.double(), expected, atol=tolerance, rtol=0)


@pytest.mark.parametrize("samples", [1, 2])
def test_crops_equal_roi_align_rotated(samples):
    """As in detectron2 and mmcv, away from the image's edge, where they clamp and drop samples.

    With several samples per bin, they take the samples of a crop that is `samples` times as large.
    """
    image = noise(3, 30, 34)
    boxes = torch.tensor([[15.2, 14.1, 12.0, 7.5, 25.0], [17.0, 15.0, 3.0, 14.0, -160.0]]).double()
    ours = wk.crop_patches(image, boxes, None, (4 * samples, 5 * samples))
    ours = ours.unflatten(3, (5, samples)).unflatten(2, (4, samples)).mean((3, 5))
    for found, box in zip(ours, boxes.numpy(), strict=True):
        expected = naive_turned.roi_align_rotated(image.numpy(), box, (4, 5), samples)
        np.testing.assert_allclose(found, expected, atol=1e-10, rtol=0)


def test_roi_align_rotated_differs_at_the_images_edge():
    """They clamp samples up to one pixel outside to the edge; here the border applies."""
    image, box = torch.ones(1, 8, 8), torch.tensor([[4.0, 0.2, 4.0, 1.0, 0.0]])
    theirs = naive_turned.roi_align_rotated(image.numpy(), box[0].numpy(), (1, 4), 1)
    assert (theirs == 1).all()
    held = wk.crop_patches(image, box, None, (1, 4), border="replicate")
    assert torch.equal(held, torch.ones(1, 1, 1, 4))
    assert (wk.crop_patches(image, box, None, (1, 4)) < 0.8).all()


@pytest.mark.parametrize("kind", BOXES)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_transforms_equal_the_definition(kind, masked, dtype):
    images, boxes, moves = noise(2, 2, 16, 22), BOXES[kind], matrices()
    masks = noise(3, 1, 16, 22, seed=5) if masked else None
    options = {"mask": None if masks is None else masks.to(dtype), "border_value": 0.25}
    if masked:
        options["mask_space"] = "image"
    ours = wk.transform_patches(images.to(dtype), boxes, moves, INDEX, **options)
    given = (images.numpy(), boxes.numpy(), moves.numpy(), INDEX.numpy(), 0.25)
    expected = naive_turned.transform(*given, None if masks is None else masks.numpy())
    tolerance = 1e-9 if dtype == torch.float64 else 1e-5
    np.testing.assert_allclose(ours.double(), expected, atol=tolerance, rtol=0)


@pytest.mark.parametrize("overlap", ["last", "sequential"])
def test_kernels_equal_plain_torch(overlap):
    """Forward mode does not use kernels."""
    images, moves = noise(2, 2, 16, 22), matrices()
    for boxes in BOXES.values():

        def run(images, boxes=boxes):
            return wk.transform_patches(images, boxes, moves, INDEX, overlap=overlap)

        plain, _ = torch.func.jvp(run, (images,), (torch.ones_like(images),))
        torch.testing.assert_close(run(images), plain, atol=LOOP, rtol=0)


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos4"])
def test_a_box_with_angle_0_equals_the_upright_box(border, interpolation):
    images = noise(2, 3, 20, 24, dtype=torch.float32)
    upright = torch.tensor([[3.0, 4, 12, 17], [10, 5, 20.5, 12.25], [-5, -3, 12, 10]])
    sides = upright[:, 2:] - upright[:, :2]
    middles = (upright[:, 2:] + upright[:, :2]) / 2
    turned = torch.cat((middles, sides, torch.zeros(3, 1)), 1)
    options = {"interpolation": interpolation, "border": border, "border_value": 0.3}
    for antialias in (False, True):
        crops = [
            wk.crop_patches(images, boxes, INDEX, (4, 5), antialias=antialias, **options)
            for boxes in (upright, turned)
        ]
        assert torch.equal(*crops)
    stretched = noise(3, 1, 6, 7, dtype=torch.float32)
    for space, mask in (("pixel", None), ("pixel", stretched), ("theta", None)):
        painted = [
            wk.transform_patches(
                images, boxes, matrices(), INDEX, space=space, mask=mask, **options
            )
            for boxes in (upright, turned)
        ]
        assert torch.equal(*painted)


@pytest.mark.parametrize("kind", BOXES)
@pytest.mark.parametrize("border", BORDERS)
def test_the_identity_changes_nothing(kind, border):
    images = noise(2, 3, 16, 22)
    still = torch.eye(2, 3).expand(3, 2, 3)
    for interpolation in ("nearest", "bilinear", "bicubic"):
        options = {"interpolation": interpolation, "border": border}
        found = wk.transform_patches(images, BOXES[kind], still, INDEX, **options)
        assert torch.equal(found, images)


@pytest.mark.parametrize("border", ["replicate", "reflect", "reflect_101", "wrap"])
def test_borders_apply_along_the_boxs_own_axes(border):
    """A ramp is moved along the box's own axis; the border continues it by folding."""
    y, x = torch.meshgrid(torch.arange(40.0).double(), torch.arange(40.0).double(), indexing="ij")
    cos, sin = math.cos(math.radians(30)), math.sin(math.radians(30))
    own = cos * (x - 19.5) - sin * (y - 19.5) + 9.5  # own pixel of a box of 20 x 10
    box, move = [[20, 20, 20, 10, 30]], [[[1.0, 0, 6], [0, 1, 0]]]
    found = wk.transform_patches(own[None], box, move, None, border=border)[0]
    across = sin * (x - 19.5) + cos * (y - 19.5) + 4.5
    looks = own - 6
    inside = (own > -0.5) & (own < 19.5) & (across > -0.5) & (across < 9.5)
    expected = {
        "replicate": looks.clamp(min=-0.5),
        "reflect": torch.where(looks < -0.5, -1 - looks, looks),
        "reflect_101": torch.where(looks < -0.5, -looks, looks),
        "wrap": torch.where(looks < -0.5, looks + 20, looks),
    }[border]
    torch.testing.assert_close(found[inside], expected[inside], atol=1e-9, rtol=0)
    assert torch.equal(found[~inside], own[~inside])


@pytest.mark.parametrize("kind", BOXES)
@pytest.mark.parametrize("antialias", [False, True])
def test_gradients_of_crops(kind, antialias):
    images = noise(2, 1, 5, 6).requires_grad_()
    boxes = BOXES[kind][:2] * (torch.tensor([1, 1, 1, 1, 2.0]) if kind == "turned" else 1) / 2
    boxes = boxes.clone().requires_grad_()

    def run(images, boxes):
        return wk.crop_patches(images, boxes, [1, 0], (2, 3), antialias=antialias, border_value=0.2)

    assert gradcheck(run, (images, boxes), check_forward_ad=True)
    assert gradgradcheck(run, (images, boxes))


@pytest.mark.parametrize("kind", BOXES)
@pytest.mark.parametrize("masked", [False, True])
def test_gradients_of_transforms(kind, masked):
    images = noise(2, 1, 5, 6).requires_grad_()
    boxes = BOXES[kind][:2] * (torch.tensor([1, 1, 1, 1, 2.0]) if kind == "turned" else 1) / 2
    boxes, moves = boxes.clone().requires_grad_(), matrices(2).requires_grad_()
    mask = noise(2, 1, 3, 4, seed=8) if masked else None

    def run(images, boxes, moves):
        return wk.transform_patches(images, boxes, moves, [1, 0], mask=mask, border_value=0.2)

    # crops are checked entry by entry above; here that takes 3 s instead of 0.3
    assert gradcheck(run, (images, boxes, moves), check_forward_ad=True, fast_mode=True)
    assert gradgradcheck(run, (images, boxes, moves))


@pytest.mark.parametrize("kind", BOXES)
def test_vmap_over_boxes(kind):
    images, shifts = noise(2, 2, 16, 22), torch.tensor([0.0, 0.7, -1.3]).double()

    def run(shift):
        return wk.crop_patches(images, BOXES[kind] + shift, INDEX, (4, 5))

    together = torch.vmap(run)(shifts)
    for found, shift in zip(together, shifts, strict=True):
        torch.testing.assert_close(found, run(shift), atol=LOOP, rtol=0)


@pytest.mark.parametrize("border", ["replicate", "reflect", "wrap"])
@pytest.mark.parametrize("angle", [0.0, 20.0])
def test_gradients_under_borders_that_fold(border, angle):
    """Also at angle 0, where the values are those of the upright box."""
    images = noise(1, 1, 6, 7).requires_grad_()
    boxes = torch.tensor([[3.3, 2.9, 4.1, 3.2, angle]], dtype=torch.float64).requires_grad_()
    moves = matrices(1).requires_grad_()

    def run(images, boxes, moves):
        return wk.transform_patches(images, boxes, moves, None, border=border)

    if angle:
        assert gradcheck(run, (images, boxes, moves), check_forward_ad=True, fast_mode=True)
        return
    still = boxes.detach()  # the value jumps there, by half a pixel at an edge
    assert gradcheck(lambda images, moves: run(images, still, moves), (images, moves))
    (grad,) = torch.autograd.grad(run(images, boxes, moves).square().sum(), boxes)
    assert grad.isfinite().all()
    assert grad.all()


@pytest.mark.parametrize("kind", BOXES)
def test_box_to_matrix_maps_corners_to_rotated_boxes(kind):
    boxes = BOXES[kind]
    found = wk.box_to_matrix(boxes, (5, 7), translation=(0.5, -2.0))
    ends = torch.tensor([[-0.5, -0.5], [6.5, -0.5], [6.5, 4.5], [-0.5, 4.5]]).double()
    corners = wk.transform_points(found, ends) + 0.5 - torch.tensor([0.5, -2.0])
    expected = np.stack([naive_turned.corners(box) for box in boxes.numpy()])
    np.testing.assert_allclose(corners, expected, atol=1e-12)
    given = boxes.clone().requires_grad_()
    assert gradcheck(lambda b: wk.box_to_matrix(b, (5, 7)), (given,), check_forward_ad=True)
    assert gradgradcheck(lambda b: wk.box_to_matrix(b, (5, 7)), (given,))


def test_box_to_matrix_adds_angles_and_refuses_them_for_corners():
    own = wk.box_to_matrix(TURNED, (4, 6), angle=15.0, scale=1.5)
    added = TURNED.clone()
    added[:, 4] += 15
    torch.testing.assert_close(own, wk.box_to_matrix(added, (4, 6), scale=1.5))
    for options in ({"angle": 3.0}, {"scale": 2.0}, {"angle": torch.zeros(3)}):
        (name,) = options
        text = (
            f"box_to_matrix: `{name}` must be {0 if name == 'angle' else 1}, the default, for four"
        )
        with pytest.raises(ValueError, match=re.escape(text)):
            wk.box_to_matrix(QUADS, (4, 6), **options)


@pytest.mark.parametrize("e", [0.1, 1e-3, 1e-6])
def test_gradients_stay_tame_where_a_quad_nearly_folds(e):
    """On a ramp, the middle of a square moves by at most half as much as a corner."""
    ramp = torch.arange(40.0).double().expand(1, 40, 40)
    corners = torch.tensor([[10.0, 10], [30, 10], [30, 30], [10, 30]]).double()
    sunk = corners.clone()
    sunk[0] += (1 - e) * (corners[2] + corners[0] - 2 * corners[0]) / 2
    sunk = sunk[None].requires_grad_()
    value = wk.crop_patches(ramp, sunk, None, (1, 1))
    (grad,) = torch.autograd.grad(value.sum(), sunk, create_graph=True)
    assert grad.abs().max() <= 0.5 + 1e-9
    (second,) = torch.autograd.grad(grad.square().sum(), sunk)
    assert second.abs().max() < 1
    matrix = wk.box_to_matrix(sunk, (5, 5))
    (grad,) = torch.autograd.grad(matrix.sum(), sunk)
    assert grad.abs().max() < 100


@pytest.mark.parametrize("name", ["XYWHR", "CXCYWHR", "XYXYXYXY"])
def test_torchvisions_rotated_boxes_are_accepted(name):
    form = tv_tensors.BoundingBoxFormat
    if not hasattr(form, name):
        pytest.skip("this torchvision has no rotated boxes")
    image, plain = noise(3, 16, 22), TURNED
    boxes = tv_tensors.BoundingBoxes(plain, format="CXCYWHR", canvas_size=(16, 22))
    boxes = v2.functional.convert_bounding_box_format(boxes, new_format=name)
    crops = [
        wk.crop_patches(image, b, None, (5, 6), interpolation="bilinear") for b in (boxes, plain)
    ]
    torch.testing.assert_close(*crops, atol=1e-9, rtol=0)
    moved = [wk.transform_patches(image, b, matrices(), None) for b in (boxes, plain)]
    torch.testing.assert_close(*moved, atol=1e-9, rtol=0)
    laid = [
        wk.transform_points(wk.box_to_matrix(b, (5, 6)), torch.rand(3, 4, 2).double())
        for b in (boxes, plain)
    ]
    assert laid[0].shape == laid[1].shape


def bad(box: list[float]) -> torch.Tensor:
    return torch.stack((TURNED[0], torch.tensor(box, dtype=torch.float64)))


KIND = "`boxes` must be finite (cx, cy, w, h, angle) with w > 0 and h > 0, got"
CONVEX = "`boxes` must be finite convex quads, four corners (x, y) clockwise from the box's own "
CONVEX += "top left, got"
ERRORS = [
    (bad([1, 2, 3, 4, math.nan]), f"{KIND} [1.0, 2.0, 3.0, 4.0, nan] at 1"),
    (bad([1, 2, 0, 4, 3]), f"{KIND} [1.0, 2.0, 0.0, 4.0, 3.0] at 1"),
    (bad([1, 2, 3, -4, 3]), f"{KIND} [1.0, 2.0, 3.0, -4.0, 3.0] at 1"),
    (
        torch.tensor([[[0.0, 0], [4, 0], [0, 4], [4, 4]]]),
        f"{CONVEX} [[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 4.0]] at 0, whose",
    ),
    (
        torch.tensor([[[0.0, 0], [4, 0], [1, 1], [0, 4]]]),
        f"{CONVEX} [[0.0, 0.0], [4.0, 0.0], [1.0, 1.0], [0.0, 4.0]] at 0, which",
    ),
    (
        torch.tensor([[[0.0, 0], [4, 0], [8, 0], [0, 4]]]),
        f"{CONVEX} [[0.0, 0.0], [4.0, 0.0], [8.0, 0.0], [0.0, 4.0]] at 0, with three",
    ),
    (torch.zeros(2, 6), "`boxes` must be of shape (N, 4), (N, 5) or (N, 4, 2), got (2, 6)"),
    (torch.zeros(4, 2), "`boxes` must be of shape (N, 4), (N, 5) or (N, 4, 2), got (4, 2)"),
]


@pytest.mark.parametrize(("boxes", "message"), ERRORS)
def test_errors_name_the_box(boxes, message):
    image, moves = noise(1, 8, 8), torch.eye(2, 3).expand(len(boxes), 2, 3)
    calls = {
        "crop_patches": lambda: wk.crop_patches(image, boxes, None, (2, 2)),
        "transform_patches": lambda: wk.transform_patches(image, boxes, moves, None),
    }
    for function, call in calls.items():
        with pytest.raises(ValueError, match=re.escape(f"{function}: {message}")):
            call()


def test_soft_edges_are_only_for_upright_boxes():
    text = "transform_patches: `edge` must be 'hard' for rotated boxes and four corners, got"
    with pytest.raises(ValueError, match=re.escape(text)):
        wk.transform_patches(noise(2, 3, 16, 22), TURNED, matrices(), INDEX, edge="soft")


def test_no_rotated_boxes_give_empty_results():
    images = noise(2, 3, 6, 6)
    for none in (torch.zeros(0, 5), torch.zeros(0, 4, 2)):
        assert wk.crop_patches(images, none, [], (2, 5)).shape == (0, 3, 2, 5)
        assert wk.crop_patches(images, none, [], (2, 5), antialias=True).shape == (0, 3, 2, 5)
        assert torch.equal(wk.transform_patches(images, none, torch.zeros(0, 2, 3), []), images)
