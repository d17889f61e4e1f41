"""transform_patches compared with the loop that it replaces, its rules and its errors."""

from __future__ import annotations

import re

import pytest
import torch

import warpkit as wk
from tests.support.inputs import noise
from tests.support.naive_objects import (
    REFUSED,
    Scene,
    assert_same_with_gradients,
    scene,
    transform,
    transform_loop,
)
from tests.support.tolerances import TOLERANCE

LOOP = TOLERANCE["objects against the loop"]
OVERLAPS = ("last", "sequential")


@pytest.mark.parametrize("overlap", OVERLAPS)
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("seed", [0, 1])
def test_transforms_equal_the_loop(overlap, padding, seed):
    border = "reflect" if padding == "reflection" else padding
    assert_same_with_gradients(
        scene(12, seed=seed),
        lambda s: transform(s, overlap=overlap, border=border),
        lambda s: transform_loop(s, overlap=overlap, padding=padding),
    )


@pytest.mark.parametrize("overlap", OVERLAPS)
@pytest.mark.parametrize("interpolation", ["nearest", "bicubic"])
def test_other_interpolations_equal_the_loop(overlap, interpolation):
    given = scene(12, seed=3)
    ours = transform(given, overlap=overlap, interpolation=interpolation)
    theirs = transform_loop(given, overlap=overlap, mode=interpolation)
    torch.testing.assert_close(ours, theirs, atol=LOOP, rtol=0)


@pytest.mark.parametrize("overlap", OVERLAPS)
@pytest.mark.parametrize("kind", ["hard", "soft"])
def test_masks_and_opacity_equal_the_loop(overlap, kind):
    given = scene(12, seed=4)
    side = torch.tensor([7.0, 5.0], dtype=torch.float64)
    low = torch.minimum(given.boxes[:, :2], torch.tensor([14.0, 12.0]))
    given = given._replace(boxes=torch.cat((low, low + side), 1))
    mask = noise(12, 1, 5, 7, seed=5)
    if kind == "hard":
        mask = mask.round()
    assert_same_with_gradients(
        given,
        lambda s, m, o: transform(s, overlap=overlap, mask=m, opacity=o),
        lambda s, m, o: transform_loop(s, overlap=overlap, mask=m, opacity=o),
        mask,
        noise(12, seed=6),
    )


def test_the_two_overlap_modes_differ():
    given = scene(12)
    assert not torch.allclose(transform(given), transform(given, overlap="sequential"))


@pytest.mark.parametrize("overlap", OVERLAPS)
def test_pixel_matrices_mean_the_same_as_in_warp_affine_on_the_slice(overlap):
    given = scene(8, seed=7)
    matrices = torch.stack(
        [wk.affine_matrix(angle=30.0 * i, scale=1.1, translation=(0.3, -1.0)) for i in range(8)]
    ).double()
    expected = given.images
    for i, (b, (x1, y1, x2, y2)) in enumerate(
        zip(given.index.tolist(), given.boxes.long().tolist(), strict=True)
    ):
        source = given.images if overlap == "last" else expected
        slice_ = source[b, :, y1:y2, x1:x2]
        expected = expected.clone()
        expected[b, :, y1:y2, x1:x2] = wk.warp_affine(
            slice_, matrices[i], border="constant", border_value=(0.25, 0.5)
        )
    ours = wk.transform_patches(
        given.images,
        given.boxes,
        matrices,
        given.index,
        overlap=overlap,
        border_value=(0.25, 0.5),
    )
    torch.testing.assert_close(ours, expected, atol=LOOP, rtol=0)


@pytest.mark.parametrize("overlap", OVERLAPS)
@pytest.mark.parametrize("options", [{}, {"opacity": 0.5}, {"mask": torch.ones(1, 3, 4)}])
def test_boxes_beyond_the_image_equal_those_in_a_padded_image(overlap, options):
    """As in a larger image, whose added pixels no tap reads and which is then cropped."""
    given = scene(10, seed=8, beyond=6)
    identity = torch.eye(2, 3, dtype=torch.float64).expand(10, 2, 3)
    wide = torch.nn.functional.pad(given.images, (20, 20, 20, 20))
    ours = wk.transform_patches(
        given.images, given.boxes, identity, given.index, overlap=overlap, **options
    )
    theirs = wk.transform_patches(
        wide, given.boxes + 20, identity, given.index, overlap=overlap, **options
    )
    torch.testing.assert_close(ours, theirs[..., 20:-20, 20:-20], atol=LOOP, rtol=0)
    outside = torch.tensor([[30.0, 2, 40, 9], [-9, -9, -1, -1]], dtype=torch.float64)
    same = wk.transform_patches(given.images, outside, identity[:2], [0, 1], overlap=overlap)
    assert torch.equal(same, given.images)


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos4"])
@pytest.mark.parametrize("border", ["constant", "replicate", "reflect", "reflect_101", "wrap"])
def test_no_tap_leaves_the_box(border, interpolation):
    image = torch.full((1, 9, 9), 7.0)
    image[:, 3:6, 2:6] = 0.0
    turn = wk.rotation_matrix((1.5, 1.0), 40.0, 0.7)[None]
    options = {"border": border, "interpolation": interpolation}
    assert torch.equal(wk.transform_patches(image, [[2, 3, 6, 6]], turn, None, **options), image)


def test_the_whole_box_is_painted_with_the_border_value():
    away = torch.tensor([[[1.0, 0.0, 99.0], [0.0, 1.0, 0.0]]])
    result = wk.transform_patches(torch.zeros(2, 5, 6), [[1, 1, 4, 3]], away, None, border_value=3)
    expected = torch.zeros(2, 5, 6)
    expected[:, 1:3, 1:4] = 3
    assert torch.equal(result, expected)


def test_a_transparent_border_shows_what_is_below():
    image = noise(1, 2, 8, 9)
    shift = torch.tensor([[[1.0, 0, 1.5], [0, 1, 0]]], dtype=torch.float64)
    result = wk.transform_patches(image, [[2, 3, 6, 7]], shift, None, border="transparent")
    expected = image.clone()
    part = image[..., 3:7, 2:6]
    expected[..., 3:7, 2:6] = wk.warp_affine(part, shift[0], border="transparent", background=part)
    torch.testing.assert_close(result, expected, atol=LOOP, rtol=0)


def test_a_fractional_box_paints_the_pixels_whose_centres_lie_in_it():
    image = torch.zeros(1, 6, 8)
    away = torch.tensor([[[1.0, 0.0, 99.0], [0.0, 1.0, 0.0]]])
    result = wk.transform_patches(image, [[1.5, 0.51, 5.5, 3.49]], away, None, border_value=1.0)
    expected = torch.zeros(1, 6, 8)
    expected[:, 1:3, 1:5] = 1  # 1.5 <= x + 1/2 < 5.5; 0.51 <= y + 1/2 < 3.49
    assert torch.equal(result, expected)


@pytest.mark.parametrize("edge", ["hard", "soft"])
def test_a_fractional_box_by_hand(edge):
    """One row, a shift by one pixel to the right in the box [1.25, 3.75)."""
    image = torch.tensor([[[1.0, 2.0, 4.0, 8.0, 16.0]]])
    shift = torch.tensor([[[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]])
    result = wk.transform_patches(
        image, [[1.25, 0, 3.75, 1]], shift, None, border_value=100.0, edge=edge
    )
    # centres 1.5, 2.5 and 3.5 are in the box; 3/4 of each outer pixel is covered
    first, second, third = 100.0, 2.0, 4.0
    if edge == "soft":
        first = 0.25 * 2 + 0.75 * 100
        second = 0.75 * 2 + 0.25 * 100
        third = 0.25 * 8 + 0.75 * 4
    torch.testing.assert_close(result, torch.tensor([[[1.0, first, second, third, 16.0]]]))


def test_soft_edges_of_integer_boxes_are_hard():
    given = scene(10, seed=11, beyond=4)
    torch.testing.assert_close(transform(given, edge="soft"), transform(given), atol=LOOP, rtol=0)


def test_soft_edges_are_continuous_in_the_box():
    """Also where an edge crosses a pixel's side or centre; a step of 1e-6 changes little."""
    image, turn = noise(1, 1, 12, 12), torch.tensor([[[0.9, 0.3, 0.2], [-0.3, 0.9, 1.0]]]).double()

    def run(x1, edge):
        box = torch.tensor([[x1, 2.3, 8.6, 9.1]], dtype=torch.float64)
        return wk.transform_patches(image, box, turn, None, edge=edge)

    def jump(x1, edge):
        return (run(x1 + 5e-7, edge) - run(x1 - 5e-7, edge)).abs().max()

    assert max(jump(x1, "soft") for x1 in (3.0, 3.5, 3.7)) < 1e-5
    assert jump(3.5, "hard") > 1e-2


def test_a_mask_of_another_size_is_stretched_over_the_box_and_moves_with_it():
    image = torch.zeros(1, 6, 12)
    image[:, 1:5, 1:9] = torch.arange(1.0, 9)
    left_half = torch.tensor([[[[1.0, 0.0]]]])
    mirror = torch.tensor([[[-1.0, 0.0, 7.0], [0.0, 1.0, 0.0]]])
    result = wk.transform_patches(
        image, [[1, 1, 9, 5]], mirror, None, mask=left_half, interpolation="nearest"
    )
    expected = image.clone()
    expected[:, 1:5, 5:9] = torch.tensor([4.0, 3, 2, 1])
    assert torch.equal(result, expected)


def test_one_mask_for_all_objects_and_a_mask_of_ones_under_the_identity():
    given = scene(6, seed=13)
    still = given._replace(theta=torch.eye(2, 3, dtype=torch.float64).expand(6, 2, 3))
    result = transform(still, mask=noise(1, 4, 4), overlap="sequential")
    torch.testing.assert_close(result, given.images, atol=LOOP, rtol=0)


@pytest.mark.parametrize("overlap", OVERLAPS)
def test_objects_in_any_order_of_images_and_images_without_objects(overlap):
    given = scene(10, batch=5, seed=14)
    given = given._replace(index=torch.tensor([3, 1, 3, 0, 1, 3, 0, 0, 3, 1]))
    result = transform(given, overlap=overlap)
    assert torch.equal(result[[2, 4]], given.images[[2, 4]])
    for b in (0, 1, 3):
        own = given.index == b
        alone = wk.transform_patches(
            given.images[b],
            given.boxes[own],
            given.theta[own],
            None,
            space="theta",
            overlap=overlap,
        )
        torch.testing.assert_close(alone, result[b], atol=LOOP, rtol=0)


@pytest.mark.parametrize("overlap", OVERLAPS)
@pytest.mark.parametrize("options", [{}, {"opacity": 0.5}, {"mask": torch.ones(0, 1, 2, 2)}])
def test_no_objects(overlap, options):
    images = noise(2, 3, 5, 6).requires_grad_()
    result = wk.transform_patches(
        images,
        torch.zeros(0, 4),
        torch.zeros(0, 2, 3),
        torch.zeros(0, dtype=torch.long),
        overlap=overlap,
        **options,
    )
    assert torch.equal(result, images)
    assert result is not images
    result.sum().backward()
    assert torch.equal(images.grad, torch.ones_like(images))


@pytest.mark.parametrize("overlap", OVERLAPS)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.uint16, torch.float16])
def test_types_round_as_the_loop_over_warp_affine_does(overlap, dtype):
    given = scene(10, seed=15)
    images = noise(3, 2, 17, 21, dtype=dtype)
    matrices = wk.rotation_matrix((2.0, 2.0), torch.arange(10.0) * 36, 1.1)
    expected = images.clone()
    for i, (b, (x1, y1, x2, y2)) in enumerate(
        zip(given.index.tolist(), given.boxes.long().tolist(), strict=True)
    ):
        source = images if overlap == "last" else expected.clone()
        expected[b, :, y1:y2, x1:x2] = wk.warp_affine(source[b, :, y1:y2, x1:x2], matrices[i])
    result = wk.transform_patches(images, given.boxes, matrices, given.index, overlap=overlap)
    assert result.dtype == dtype
    # 1/2 may round either way, since the loop's coordinates differ in the last bit
    difference = (result.double() - expected.double()).abs()
    assert difference.max() <= (1 if not dtype.is_floating_point else TOLERANCE["float16"])
    assert (difference > 0).double().mean() < 0.01


def test_memory_layouts_and_flat_thetas_give_the_same_bits():
    given = scene(7, seed=16)
    expected = transform(given)
    last = given._replace(images=given.images.to(memory_format=torch.channels_last))
    result = transform(last)
    assert result.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(result, expected)
    turned = given._replace(images=given.images.transpose(2, 3).contiguous().transpose(2, 3))
    assert torch.equal(transform(turned), expected)
    assert torch.equal(transform(given._replace(theta=given.theta.flatten(1))), expected)


def test_bad_matrices_paint_the_border_value_and_give_no_gradient():
    images = noise(1, 1, 6, 6).requires_grad_()
    matrices = torch.stack((torch.zeros(2, 3), torch.full((2, 3), torch.nan))).double()
    matrices.requires_grad_()
    boxes = torch.tensor([[0.0, 0, 3, 6], [3, 0, 6, 3]])
    result = wk.transform_patches(images, boxes, matrices, None, border_value=2.0)
    assert bool((result[..., :3] == 2).all())
    assert bool((result[..., :3, 3:] == 2).all())
    result.sum().backward()
    assert torch.equal(matrices.grad, torch.zeros_like(matrices))
    assert images.grad.isfinite().all()


def test_results_have_the_same_bits_at_every_run():
    given = scene(60, seed=17)
    given = Scene(*(t.float() if t.is_floating_point() else t for t in given))
    for options in ({}, {"opacity": 0.5}, {"overlap": "sequential"}):
        runs = []
        for _ in range(3):
            images, theta = given.images.clone().requires_grad_(), given.theta.clone()
            theta.requires_grad_()
            result = transform(given._replace(images=images, theta=theta), **options)
            result.square().sum().backward()
            runs.append((result.detach(), images.grad, theta.grad))
        for run in runs[1:]:
            assert all(torch.equal(a, b) for a, b in zip(run, runs[0], strict=True))


# errors

IMAGES, BOX, MATRIX = torch.zeros(2, 1, 4, 4), torch.tensor([[0.0, 0, 2, 2]]), torch.eye(2, 3)[None]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *REFUSED,
        (
            {"image_index": torch.tensor([2])},
            "`image_index` must be in [0, 2), the number of images, got 2 at 0",
        ),
        (
            {"image_index": torch.tensor([-1])},
            "`image_index` must be in [0, 2), the number of images, got -1 at 0",
        ),
        ({"image_index": None}, "`image_index` must be given for 2 images, got None"),
        (
            {"image_index": torch.tensor([0, 1])},
            "`image_index` must be of shape (1,), one for each object, got (2,)",
        ),
        (
            {"image_index": torch.tensor([0.0])},
            "`image_index` must be a tensor of integers of shape (N,), or None for one image",
        ),
        (
            {"boxes": torch.tensor([[3.0, 0, 2, 2]])},
            "`boxes` must be finite (x1, y1, x2, y2) with x1 < x2 and y1 < y2, got [3.0, 0.0",
        ),
        (
            {"boxes": torch.zeros(4)},
            "`boxes` must be of shape (N, 4), (N, 5) or (N, 4, 2), got (4,)",
        ),
        (
            {"matrices": torch.zeros(2, 2, 3)},
            "`matrices` must be of shape (1, 2, 3), got (2, 2, 3)",
        ),
        ({"matrices": torch.zeros(1, 6)}, "`matrices` must be of shape (1, 2, 3), got (1, 6)"),
        (
            {"matrices": torch.zeros(1, 5), "space": "theta"},
            "`matrices` must be of shape (1, 2, 3) or (1, 6), got (1, 5)",
        ),
        (
            {"mask": torch.zeros(1, 2, 4, 4)},
            "`mask` must be of shape (1, 1, h, w), or (1, h, w) for all objects, got (1, 2, 4, 4)",
        ),
        ({"opacity": torch.ones(3)}, "`opacity` must be a number or of shape (1,), got (3,)"),
        ({"space": "box"}, "`space` must be one of 'pixel', 'theta', got 'box'"),
        ({"overlap": "first"}, "`overlap` must be one of 'last', 'sequential', got 'first'"),
        ({"edge": "round"}, "`edge` must be one of 'hard', 'soft', got 'round'"),
        (
            {"images": torch.zeros(1, 1, 1, 4, 4)},
            "`images` must be of shape (B, C, H, W) or (C, H, W), got (1, 1, 1, 4, 4)",
        ),
    ],
)
def test_errors_name_the_argument(change, message):
    given = {"images": IMAGES, "boxes": BOX, "matrices": MATRIX, "image_index": torch.tensor([0])}
    with pytest.raises((ValueError, TypeError), match=re.escape(f"transform_patches: {message}")):
        wk.transform_patches(**(given | change))
