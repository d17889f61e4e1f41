"""`optimize_patch` on boxes of all kinds, lists, grey and mirrored patches, and under cameras."""

from __future__ import annotations

import re
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor

import warpkit as wk
from tests.support.inputs import noise
from tests.support.tolerances import TOLERANCE
from warpkit.attacks import AffineDistribution, Photometric, Pipeline, optimize_patch

CLOSE = TOLERANCE["reference float32"]
SIZE = (5, 7)
QUAD = [[3.0, 2], [14, 3], [13, 11], [2, 12]]


def floats(*shape: int, seed: int = 0) -> Tensor:
    return noise(*shape, dtype=torch.float32, seed=seed)


def seen(images: Any, boxes: Any, index: Any = None, start: Tensor | None = None, **options: Any):
    """What the objective sees in the first step."""
    views: list[Any] = []

    def objective(given: Any) -> Tensor:
        views.append(given)
        parts = given if isinstance(given, list) else [given]
        return torch.stack([part.sum() for part in parts]).sum()

    options = {"patch_size": SIZE, "steps": 1, **options}
    start = floats(3, *SIZE, seed=4) if start is None else start
    optimize_patch(objective, images, boxes, index, start=start, **options)
    (first,) = views[:1]
    return [v.detach() for v in first] if isinstance(first, list) else first.detach()


def pasted(image: Tensor, patch: Tensor, matrix: Any) -> Tensor:
    """The picture with the patch under a matrix made elsewhere."""
    return wk.paste_patches(image, patch, torch.as_tensor(np.array(matrix))[None], None)


def corners_of(size: tuple[int, int]) -> np.ndarray:
    """The outer corners of a patch in pixel coordinates, whose first centre is (0, 0)."""
    height, width = size
    return np.float32([[0, 0], [width, 0], [width, height], [0, height]]) - np.float32(0.5)


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("kind", ["upright", "turned", "quad"])
def test_boxes_of_every_kind_show_what_cv2s_matrix_shows(kind: str, mirrored: bool):
    image, start = floats(1, 3, 16, 18), floats(3, *SIZE, seed=4)
    if kind == "quad":
        boxes, corners = torch.tensor([QUAD]), np.float32(QUAD)
    elif kind == "turned":
        boxes, corners = torch.tensor([[8.0, 7, 9, 6, 30]]), None
        points = cv2.boxPoints(((8.0, 7.0), (9.0, 6.0), -30.0))
        # from the top left of the box before it is turned
        corners = np.float32([points[1], points[2], points[3], points[0]])
    else:
        boxes = torch.tensor([[3.0, 2, 12, 11]])
        corners = np.float32([[3, 2], [12, 2], [12, 11], [3, 11]])
    matrix = cv2.getPerspectiveTransform(corners_of(SIZE), corners - np.float32(0.5))
    expected = pasted(image, start.flip(-1) if mirrored else start, matrix)
    flags = [True] if mirrored else None
    for make in (boxes, lambda generator: boxes):  # as such, and drawn at each step
        for _ in range(2):
            got = seen(image, make, mirrored=flags)
            assert (got - expected).abs().max() < TOLERANCE["objects against the loop"] + 1e-4


def test_only_the_named_boxes_are_mirrored():
    image, start = floats(1, 3, 16, 18), floats(3, *SIZE, seed=4)
    boxes = torch.tensor([[1.0, 1, 8, 6], [9, 8, 16, 13]])
    got = seen(image, boxes, mirrored=torch.tensor([False, True]))
    expected = image.clone()
    expected[0, :, 1:6, 1:8], expected[0, :, 8:13, 9:16] = start, start.flip(-1)
    assert (got - expected).abs().max() < CLOSE


def test_moves_are_about_the_centre_of_the_box():
    """Half a turn of a turned box, and of a quad that is a rectangle: the patch upside down."""
    image, start = floats(1, 3, 16, 18), floats(3, *SIZE, seed=4)
    half = wk.rotation_matrix(wk.image_center(SIZE), 180.0)[None]
    for boxes in (
        torch.tensor([[6.5, 5.5, 7, 5, 0]]),
        torch.tensor([[[3.0, 3], [10, 3], [10, 8], [3, 8]]]),
    ):
        expected = image.clone()
        expected[0, :, 3:8, 3:10] = start.flip(-1, -2)
        assert (seen(image, boxes, distribution=half) - expected).abs().max() < CLOSE


SIZES = ((16, 18), (21, 13), (16, 18))


def test_a_list_of_images_shows_what_each_image_shows():
    images = [floats(3, *size, seed=k) for k, size in enumerate(SIZES)]
    boxes = torch.tensor([[1.0, 1, 9, 8], [2, 3, 11, 9], [4, 2, 12, 14], [1, 2, 7, 9]])
    index = torch.tensor([1, 0, 2, 1])
    moves = torch.stack([wk.rotation_matrix(wk.image_center(SIZE), a) for a in (0.0, 20.0)])
    for _ in range(2):
        got = seen(images, boxes, index, distribution=moves)
        assert [tuple(view.shape) for view in got] == [(3, *s) for s in SIZES for _ in range(2)]
        for k, image in enumerate(images):
            alone = seen(image, boxes[index == k], torch.zeros((index == k).sum()).long(),
                         distribution=moves)  # fmt: skip
            assert torch.equal(torch.stack(got[2 * k : 2 * k + 2]), alone)
    # in minibatches: a tuple is a minibatch, a list images
    batches = [(images, boxes, index), (images[:1], boxes[:1], torch.tensor([0]))]
    in_batches = seen(batches, None, distribution=moves)
    assert all(map(torch.equal, in_batches, got))
    same = seen([images[0], images[2]], boxes[:2], torch.tensor([1, 0]), distribution=moves)
    stacked = torch.stack([images[0], images[2]])
    batch = seen(stacked, boxes[:2], torch.tensor([1, 0]), distribution=moves)
    assert torch.equal(torch.stack(same), batch)


def test_a_pipeline_makes_one_batch_of_a_list():
    images = [floats(3, *size, seed=k) for k, size in enumerate(SIZES)]
    boxes, index = torch.tensor([[1.0, 1, 9, 8]] * 3), torch.arange(3)
    resize = Pipeline(lambda x: wk.resize(x, (8, 9), arithmetic="pillow"))
    got = seen(images, boxes, index, pipeline=resize)
    assert got.shape == (3, 3, 8, 9)
    for k, image in enumerate(images):
        assert torch.equal(got[k : k + 1], seen(image, boxes[:1], pipeline=resize))
    keep = Pipeline(lambda x: x)
    assert [view.shape[1:] for view in seen(images, boxes, index, pipeline=keep)] == list(SIZES)
    with_light = seen(
        images, boxes, index, photometric=Photometric(brightness=(0.1, 0.1)), samples=2
    )
    assert len(with_light) == 6


def test_a_grey_patch_lies_on_colour_pictures():
    image, start = floats(1, 3, 16, 18), floats(1, *SIZE, seed=4)
    got = seen(image, [[3.0, 3, 10, 8]], start=start)
    expected = image.clone()
    expected[0, :, 3:8, 3:10] = start
    assert (got - expected).abs().max() < CLOSE
    found = optimize_patch(
        lambda views, *, patch: views.mean() + 0 * patch.sum(),
        image,
        [[3.0, 3, 10, 8]],
        None,
        patch_size=SIZE,
        start=start,
        steps=3,
    )
    assert found.patch.shape == (1, *SIZE)
    assert found.history[-1] < found.history[0]
    again = optimize_patch(
        torch.mean, image, [[3.0, 3, 10, 8]], None, patch_size=SIZE, start=start, steps=5,
        resume=optimize_patch(
            torch.mean, image, [[3.0, 3, 10, 8]], None, patch_size=SIZE, start=start, steps=3
        ).state,
    )  # fmt: skip
    whole = optimize_patch(
        torch.mean, image, [[3.0, 3, 10, 8]], None, patch_size=SIZE, start=start, steps=5
    )
    assert torch.equal(again.patch, whole.patch)


def test_the_camera_moves_the_picture_together_with_the_patch():
    """By whole pixels and quarter turns: the pasted picture, moved."""
    images, start = floats(2, 3, 16, 16), floats(3, *SIZE, seed=4)
    boxes, index = torch.tensor([[3.0, 3, 10, 8], [6, 7, 13, 12]]), torch.tensor([0, 1])
    still = images.clone()
    still[0, :, 3:8, 3:10], still[1, :, 7:12, 6:13] = start, start
    shift = torch.tensor([[1.0, 0, 2], [0, 1, -1]])
    turn = wk.rotation_matrix(wk.image_center((16, 16)), 90.0).float()
    cameras = torch.stack((torch.eye(2, 3), shift, turn))
    moved = torch.zeros_like(still)
    moved[..., :15, 2:] = still[..., 1:, :14]
    expected = torch.stack((still, moved, still.rot90(1, (-2, -1))), 1).flatten(0, 1)
    for given, chosen in ((images, index), (list(images), index)):
        for _ in range(2):
            got = seen(given, boxes, chosen, camera=cameras, samples=3)
            got = torch.stack(got) if isinstance(got, list) else got
            assert (got - expected).abs().max() < TOLERANCE["objects against the loop"] + 1e-5


def test_the_camera_is_drawn_for_each_image_and_chunks_change_nothing():
    images, boxes = floats(2, 3, 16, 18), torch.tensor([[3.0, 3, 10, 8], [2, 2, 9, 9]])
    shake = AffineDistribution(angle=(-10, 10), translation=(-2, 2))
    kept: list[Tensor] = []

    def objective(views: Tensor) -> Tensor:
        kept.append(views.detach())
        return views.square().mean()

    options = {"patch_size": SIZE, "camera": shake, "samples": 4, "steps": 2}

    def run(chunk: int | None) -> Any:
        kept.clear()
        seed = torch.Generator().manual_seed(0)
        index = torch.tensor([0, 1])
        return optimize_patch(
            objective, images, boxes, index, chunk=chunk, generator=seed, **options
        )

    whole = run(None)
    views = kept[0].unflatten(0, (2, 4))
    assert not torch.equal(views[0, 0], views[0, 1])
    assert torch.allclose(run(1).patch, whole.patch, atol=CLOSE)
    assert torch.equal(run(None).patch, whole.patch)


def test_every_pixel_of_a_large_patch_is_optimised_with_antialias():
    image, boxes = torch.ones(1, 1, 20, 20), [[5.0, 5, 15, 15]]
    options = {"patch_size": (60, 60), "steps": 2}
    few = optimize_patch(torch.mean, image, boxes, None, **options).patch
    all_ = optimize_patch(torch.mean, image, boxes, None, antialias=True, **options).patch
    assert float((few != 0.5).float().mean()) < 0.2
    assert bool((all_ < 0.5).all())


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"mirrored": [True, False]},
            "`mirrored` must be of shape (1,), one for each box, got (2,)",
        ),
        ({"mirrored": [1]}, "`mirrored` must be booleans of shape (N,), one for each box, got"),
        ({"camera": AffineDistribution}, "`camera` must be an AffineDistribution, an object with"),
        ({"camera": torch.eye(3)}, "`camera` must be a distribution, or matrices (samples, 2, 3)"),
        ({"antialias": 0}, "`antialias` must be True, False or a number of samples along an axis"),
        (
            {"antialias": True, "arithmetic": "opencv5"},
            "`antialias` must be False with arithmetic='opencv5', got True",
        ),
        (
            {"start": torch.zeros(2, *SIZE)},
            "`start` must be a tensor of shape (3, 5, 7), or (1, 5,",
        ),
    ],
)
def test_arguments_are_checked(options: dict[str, Any], text: str):
    with pytest.raises((TypeError, ValueError), match=re.escape(f"optimize_patch: {text}")):
        seen(floats(1, 3, 16, 18), [[3.0, 3, 10, 8]], **options)


def test_a_list_of_images_is_checked_image_by_image():
    boxes = [[3.0, 3, 10, 8]]
    with pytest.raises(
        ValueError, match=re.escape("optimize_patch: `images[1]` must be in [0, 1]")
    ):
        seen([floats(3, 16, 18), floats(3, 8, 9) * 300], boxes, [0])
    with pytest.raises(ValueError, match=re.escape("`images[1]` must be of 3 channels")):
        seen([floats(3, 16, 18), floats(1, 8, 9)], boxes, [0])
    with pytest.raises(ValueError, match=re.escape("optimize_patch: `mirrored` must be None with")):
        seen([(floats(1, 3, 16, 18), boxes, [0])], None, mirrored=[True])


@pytest.mark.parametrize("arithmetic", ["opencv4", "opencv5"])
def test_opencvs_arithmetic_takes_lists_and_cameras(arithmetic: str):
    images = [floats(3, *size, seed=k) for k, size in enumerate(SIZES[:2])]
    boxes, index = torch.tensor([[1.0, 1, 9, 8], [2, 3, 11, 9]]), torch.tensor([0, 1])
    camera = wk.rotation_matrix((8.0, 8.0), 7.0)[None].float()
    got = seen(images, boxes, index, camera=camera, samples=1, arithmetic=arithmetic)
    exact = seen(images, boxes, index, camera=camera, samples=1)
    assert all((a - b).abs().max() < 0.1 for a, b in zip(got, exact, strict=True))
