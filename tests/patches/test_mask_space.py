"""Masks of whole images: transform_patches compared with a loop over pixels."""

from __future__ import annotations

import re

import pytest
import torch

import warpkit as wk
from tests.support.inputs import noise
from tests.support.naive_objects import (
    Scene,
    assert_same_with_gradients,
    scene,
    transform,
    transform_by_pixels,
)
from tests.support.tolerances import TOLERANCE

LOOP = TOLERANCE["objects against the loop"]
OVERLAPS = ("last", "sequential")


def objects() -> Scene:
    """Four fractional boxes, one partly and one far beyond its image, under pixel matrices."""
    boxes = [
        [0.7, 1.2, 6.1, 6.9],
        [3.5, 2.5, 8.4, 5.1],
        [-2.3, -1.6, 4.2, 3.8],
        [5.6, 3.3, 14.0, 12.0],
    ]
    angle = torch.tensor([20.0, -35.0, 70.0, 10.0], dtype=torch.float64)
    matrices = wk.rotation_matrix((2.3, 2.1), angle, 1.1)
    return Scene(
        noise(2, 2, 7, 9, seed=30),
        torch.tensor(boxes, dtype=torch.float64),
        matrices,
        torch.tensor([0, 0, 1, 0]),
    )


@pytest.mark.parametrize("overlap", OVERLAPS)
@pytest.mark.parametrize(
    ("edge", "border"), [("hard", "zeros"), ("hard", "border"), ("soft", "zeros")]
)
def test_masks_over_the_image_are_read_at_each_taps_place(overlap, edge, border):
    """Values and gradients to images, matrices, boxes (with soft edges), masks and opacity."""
    masks, opacity = noise(4, 1, 7, 9, seed=31), noise(4, seed=32)
    given = objects()

    def ours(s, boxes, m, o):
        return wk.transform_patches(
            s.images,
            boxes,
            s.theta,
            s.index,
            mask=m,
            mask_space="image",
            opacity=o,
            overlap=overlap,
            edge=edge,
            border=border,
        )

    def loop(s, boxes, m, o):
        s = s._replace(boxes=boxes)
        return transform_by_pixels(s, m, o, overlap=overlap, edge=edge, padding=border)

    assert_same_with_gradients(given, ours, loop, given.boxes, masks, opacity)


def mirrored(image: torch.Tensor, masks: torch.Tensor, **options) -> torch.Tensor:
    """The image (1, H, 12) with its columns 1 to 8 mirrored, rows 1 to 4."""
    mirror = torch.tensor([[[-1.0, 0.0, 7.0], [0.0, 1.0, 0.0]]])
    return wk.transform_patches(
        image, [[1, 1, 9, 5]], mirror, None, mask=masks, interpolation="nearest", **options
    )


def test_an_instance_mask_by_hand():
    """Columns 1 to 4 of the box belong to the object; mirrored, they paint columns 5 to 8."""
    image = torch.zeros(1, 6, 12)
    image[:, 1:5, 1:9] = torch.arange(1.0, 9)
    mask = torch.zeros(1, 1, 6, 12)
    mask[..., :5] = 1  # pixels outside the box do not count
    expected = image.clone()
    expected[:, 1:5, 5:9] = torch.tensor([4.0, 3, 2, 1])
    for one in (mask, mask[0], mask.bool(), mask.byte(), mask.double()):
        assert torch.equal(mirrored(image, one, mask_space="image"), expected)
    squeezed = mirrored(image, mask, mask_space="box")  # columns 0 to 4 of 12 become 3 of 8
    assert torch.equal(squeezed[:, 1:5, 6:9], torch.tensor([3.0, 2, 1]).expand(1, 4, 3))
    assert torch.equal(squeezed[:, 1:5, 5], torch.full((1, 4), 5.0))


@pytest.mark.parametrize("overlap", OVERLAPS)
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic"])
def test_a_mask_over_the_image_equals_its_crop_at_the_box(overlap, interpolation):
    """For integer boxes of one size and thetas, the bits are those of each box's own part."""
    given = scene(12, seed=4)
    side = torch.tensor([7.0, 5.0], dtype=torch.float64)
    low = torch.minimum(given.boxes[:, :2], torch.tensor([14.0, 12.0]))
    given = given._replace(boxes=torch.cat((low, low + side), 1))
    masks = noise(12, 1, 17, 21, seed=5)
    parts = [
        m[:, y1:y2, x1:x2] for m, (x1, y1, x2, y2) in zip(masks, given.boxes.int(), strict=True)
    ]
    options = {"overlap": overlap, "interpolation": interpolation}
    whole = transform(given, mask=masks, mask_space="image", **options)
    assert torch.equal(whole, transform(given, mask=torch.stack(parts), **options))
    one = transform(given, mask=masks[0], mask_space="image", **options)
    all_ = transform(given, mask=masks[:1].expand(12, -1, -1, -1), mask_space="image", **options)
    assert torch.equal(one, all_)


IMAGE, BOX, EYE = torch.zeros(1, 4, 6), torch.tensor([[0.0, 0, 2, 2]]), torch.eye(2, 3)[None]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"mask": torch.ones(1, 1, 4, 6)},
            "`mask_space` must be 'image' (a mask over the whole image) or 'box' (one stretched",
        ),
        (
            {"mask": torch.ones(1, 4, 6)},
            "each box) for a mask of the images' size, (4, 6), got None",
        ),
        (
            {"mask": torch.ones(1, 2, 2), "mask_space": "image"},
            "`mask` must be of shape (1, 1, 4, 6), or (1, 4, 6) for all objects, got (1, 2, 2)",
        ),
        ({"mask_space": "images"}, "`mask_space` must be one of 'box', 'image', got 'images'"),
    ],
)
def test_errors_name_the_argument(options, message):
    with pytest.raises(ValueError, match=f"transform_patches: .*{re.escape(message)}"):
        wk.transform_patches(IMAGE, BOX, EYE, None, **options)
