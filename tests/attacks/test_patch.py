"""`optimize_patch`: the patch's place, views, chunks, limits, OpenCV's pixels, and errors."""

from __future__ import annotations

import re

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor

import warpkit as wk
from tests.support.inputs import noise, seeded
from tests.support.installed_opencv import compares_with_opencv
from tests.support.tolerances import TOLERANCE
from warpkit.attacks import AffineDistribution, Patch, optimize_patch

IMAGES = noise(2, 3, 12, 14, seed=1)
BOXES = torch.tensor([[1.0, 2, 7, 8], [6, 4, 12, 10], [3, 1, 9.5, 11]], dtype=torch.float64)
INDEX = torch.tensor([0, 0, 1])
TURNS = AffineDistribution(angle=(-30, 30), scale=(0.8, 1.2), translation=(-1.0, 1.0))


def bright(x: Tensor) -> Tensor:
    return -x.square().mean()


def run(**options) -> Patch:
    given = {
        "objective": bright,
        "images": IMAGES,
        "boxes": BOXES,
        "image_index": INDEX,
        "patch_size": (4, 5),
        "distribution": TURNS,
        "steps": 4,
        "samples": 3,
        "generator": seeded(),
        **options,
    }
    return optimize_patch(**given)


def first_views(**options) -> Tensor:
    """The views that the objective gets at the first step."""
    seen: list[Tensor] = []
    run(objective=lambda x: seen.append(x.detach()) or x.mean(), steps=1, **options)
    return seen[0]


def test_views_are_transformed_about_the_boxes_centres():
    start, mask = noise(3, 4, 5, seed=3), noise(1, 4, 5, seed=4)
    views = first_views(start=start, mask=mask)
    moves = TURNS.sample(9, size=(4, 5), generator=seeded()).double().unflatten(0, (3, 3))
    center = torch.tensor(wk.image_center((4, 5)), dtype=torch.float64)
    expected = []
    for image in range(2):
        for sample in range(3):
            own = [k for k in range(3) if INDEX[k] == image]
            matrices = []
            for k in own:
                x1, y1, x2, y2 = BOXES[k]
                middle = torch.stack(((x1 + x2) / 2, (y1 + y2) / 2)) - 0.5
                linear = moves[sample, k, :, :2]
                to_box = wk.box_to_matrix(BOXES[k], (4, 5))
                by = moves[sample, k, :, 2] - (center - linear @ center)  # the drawn translation
                move = torch.cat((linear, (middle - linear @ middle + by)[:, None]), 1)
                matrices.append(wk.compose(to_box, move))
            pasted = wk.paste_patches(IMAGES[image], start, torch.stack(matrices), None, mask=mask)
            expected.append(pasted)
    torch.testing.assert_close(
        views, torch.stack(expected), rtol=0, atol=TOLERANCE["objects against the loop"]
    )


def test_without_a_distribution_the_patch_fills_its_boxes():
    views = first_views(distribution=None, start=torch.ones(3, 4, 5).double(), boxes=BOXES.round())
    expected = IMAGES.clone()
    for (x1, y1, x2, y2), i in zip(BOXES.round().long().tolist(), INDEX, strict=True):
        expected[i, :, y1:y2, x1:x2] = 1.0
    inner = ((views - expected).abs() < TOLERANCE["objects against the loop"]).all(1)
    assert views.shape == IMAGES.shape
    for (x1, y1, x2, y2), i in zip(BOXES.round().long().tolist(), INDEX, strict=True):
        assert inner[i, y1 + 1 : y2 - 1, x1 + 1 : x2 - 1].all()
    assert inner[0, 0].all()  # half a pixel of the patch, 0.75 pixels here, is soft at an edge


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_chunks_change_nothing(chunk: int):
    whole, pieces = (run(chunk=size, optimizer=torch.optim.SGD) for size in (None, chunk))
    torch.testing.assert_close(pieces.patch, whole.patch, rtol=0, atol=TOLERANCE["pieces"])
    assert pieces.history == pytest.approx(whole.history, rel=TOLERANCE["pieces"])


def test_the_patch_minimizes_the_objective():
    found = run(steps=40, samples=2)
    assert found.history[-1] < found.history[0]
    assert len(found.history) == 40
    assert found.patch.shape == (3, 4, 5)
    assert not found.patch.requires_grad
    assert str(found).startswith("patch of (3, 4, 5): 40 steps, objective ")
    assert "state" not in repr(found)
    assert (found.patch > 0.99).all()


def test_limits_also_hold_after_rounding_to_8_bits():
    found = run(limits=(0.1003, 0.7), steps=60, quantize=True, images=IMAGES.float())
    levels = found.patch * 255
    torch.testing.assert_close(levels, levels.round(), rtol=0, atol=TOLERANCE["levels"])
    assert found.patch.max() == pytest.approx(178 / 255)  # 0.7 is 178.5
    dark = run(objective=torch.mean, limits=(0.1003, 0.7), steps=60, quantize=True)
    assert dark.patch.min() == pytest.approx(26 / 255)  # 0.1003 is 25.6
    assert run(limits=(0.1, 0.7), steps=60).patch.max() <= 0.7


def test_masked_pixels_of_a_patch_stay_as_they_were():
    mask = torch.zeros(1, 4, 5)
    mask[:, 1:3, 1:4] = 1
    found = run(mask=mask, steps=3)
    assert (found.patch[:, mask[0] == 0] == 0.5).all()
    assert (found.patch[:, mask[0] == 1] > 0.5).all()


def test_a_resumed_run_equals_an_uninterrupted_one():
    whole = run()
    rest = run(resume=run(steps=2).state, generator=seeded(9))
    assert torch.equal(rest.patch, whole.patch)
    assert rest.history == whole.history


@compares_with_opencv
@pytest.mark.parametrize("arithmetic", ["opencv4", "opencv5"])
@pytest.mark.parametrize("quantize", [False, True])
def test_the_objective_gets_opencvs_pixels(arithmetic: str, quantize: bool):
    """By hand: warp the patch and its mask as four channels, and composite them over the image."""
    start = (noise(3, 4, 5, dtype=torch.float32, seed=3) * 255).round() / 255
    images = (IMAGES[:1].float() * 255).round() / 255
    options = {"boxes": BOXES[:2], "image_index": None, "images": images, "distribution": None}
    views = first_views(start=start, arithmetic=arithmetic, quantize=quantize, **options)
    expected = images[0]
    layer = torch.cat((start, torch.ones(1, 4, 5)))
    for matrix in wk.box_to_matrix(BOXES[:2], (4, 5)):
        given = (layer * 255).round().to(torch.uint8) if quantize else layer
        frame = wk.warp_affine(given, matrix, size=(12, 14), arithmetic=arithmetic)
        if arithmetic == f"opencv{cv2.__version__[0]}":
            array = np.ascontiguousarray(given.permute(1, 2, 0).numpy())
            theirs = cv2.warpAffine(array, matrix.numpy(), (14, 12))
            assert np.array_equal(frame.permute(1, 2, 0).numpy(), theirs)
        frame = frame / 255 if quantize else frame
        expected = frame[:3] + (1 - frame[3:]) * expected
    expected = (expected * 255).round() / 255 if quantize else expected
    torch.testing.assert_close(views[0], expected, rtol=0, atol=TOLERANCE["reference float32"])


def test_opencvs_arithmetic_has_a_gradient():
    found = run(arithmetic="opencv4", steps=30, images=IMAGES.float(), distribution=None)
    assert (found.patch > 0.9).all()


def test_views_under_exact_and_opencv_arithmetic_agree_roughly():
    start = noise(3, 4, 5, dtype=torch.float32, seed=3)
    images = IMAGES.float()
    exact, opencv = (
        first_views(arithmetic=name, start=start, images=images) for name in ("exact", "opencv4")
    )
    # OpenCV 4 rounds positions to 1/32 pixel: up to 1/64 of an edge's height in x and in y
    assert (exact - opencv).abs().max() < 2 / 32
    assert (exact - opencv).abs().max() > 1e-4


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"images": IMAGES + 1}, ValueError, "`images` must be in [0, 1], got values from 1"),
        (
            {"images": IMAGES.half()},
            TypeError,
            "`images` must be float32 or float64, got torch.float16",
        ),
        (
            {"image_index": None},
            ValueError,
            "`image_index` must be given for 2 images, got None",
        ),
        (
            {"boxes": BOXES[:, :3]},
            ValueError,
            "`boxes` must be of shape (N, 4), (N, 5) or (N, 4, 2), got (3, 3)",
        ),
        (
            {"boxes": BOXES[:0], "image_index": INDEX[:0]},
            ValueError,
            "`boxes` must be of shape (N, 4), (N, 5) or (N, 4, 2), at least one, got (0, 4)",
        ),
        ({"patch_size": 4}, TypeError, "`patch_size` must be (H, W), two integers of at least 1"),
        (
            {"limits": (0.5, 0.5)},
            ValueError,
            "`limits` must be (low, high) with 0 <= low < high <= 1, got (0.5, 0.5)",
        ),
        ({"limits": (0.6, 0.5)}, ValueError, "`limits` must be (low, high), two finite numbers"),
        (
            {"mask": torch.ones(1, 5, 4)},
            ValueError,
            "`mask` must be of shape (1, 1, 4, 5), or (1, 4, 5) for all objects, got (1, 5, 4)",
        ),
        (
            {"start": torch.ones(4, 5)},
            ValueError,
            "`start` must be a tensor of shape (3, 4, 5), or (1, 4, 5) for a grey one, got (4, 5)",
        ),
        ({"samples": 0}, ValueError, "`samples` must be an integer of at least 1, got 0"),
        ({"step_size": -1}, ValueError, "`step_size` must be a number above 0, got -1"),
        (
            {"arithmetic": "opencv"},
            ValueError,
            "`arithmetic` must be one of 'exact', 'opencv4', 'opencv5', got 'opencv'",
        ),
        (
            {"objective": lambda x: x.detach().mean()},
            ValueError,
            "`objective` must be differentiable in the images it is given, got no gradient",
        ),
    ],
)
def test_arguments_are_checked(arguments: dict, error: type[Exception], text: str):
    with pytest.raises(error, match=f"^{re.escape('optimize_patch: ' + text)}"):
        run(**arguments)


def test_a_gradient_step_moves_the_patch_by_its_size():
    start = torch.full((3, 4, 5), 0.5, dtype=torch.float64)
    moved = run(optimizer="gradient", step_size=0.01, steps=1, start=start).patch - start
    torch.testing.assert_close(
        moved.norm().item(), 0.01, rtol=0, atol=TOLERANCE["reference float64"]
    )
