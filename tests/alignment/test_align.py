"""`align` recovers the matrices that its images were made with."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

import warpkit as wk
from tests.support.scenes import Scene, corner_error
from tests.support.tolerances import TOLERANCE
from warpkit.alignment import solver

MOVING, FIXED = (47, 66), (52, 61)
"""Odd sides and even ones, and different ones."""

LINEAR = {
    "translation": ((1.0, 0.0), (0.0, 1.0)),
    "euclidean": ((math.cos(0.1), -math.sin(0.1)), (math.sin(0.1), math.cos(0.1))),
    "similarity": ((1.07, 0.09), (-0.09, 1.07)),
    "affine": ((1.06, 0.11), (-0.04, 0.93)),
    "perspective": ((1.06, 0.11), (-0.04, 0.93)),
}


def matrix_of(model: str, shift: tuple[float, float] = (2.3, -3.4)) -> Tensor:
    """A motion that the model can express, moving -> fixed, (2 or 3, 3)."""
    (a, b), (c, d) = LINEAR[model]
    rows = [[a, b, shift[0]], [c, d, shift[1]]]
    if model == "perspective":
        rows.append([6e-4, -4e-4, 1.0])
    return torch.tensor(rows, dtype=torch.float64)


def pair(matrix: Tensor, seed: int = 0, channels: int = 1) -> tuple[Tensor, Tensor]:
    """A moving and a fixed image, float64."""
    scene = Scene(seed, channels=channels)
    return scene.at(wk.pixel_grid(MOVING).double()), scene.seen(matrix, FIXED)


@pytest.mark.parametrize("loss", ["ecc", "ssd", "robust"])
@pytest.mark.parametrize("model", LINEAR)
def test_align_recovers_the_matrix(model, loss):
    true = matrix_of(model)
    moving, fixed = pair(true)
    if loss != "ssd":
        fixed = 0.6 * fixed + 0.3
    found = wk.align(moving, fixed, model=model, loss=loss)
    assert bool(found.converged)
    assert found.score > 0.999
    assert found.matrix.shape == true.shape
    assert found.matrix.dtype == torch.float64
    assert corner_error(found.matrix, true, MOVING) < TOLERANCE["align pixels"]
    # a translation or rotation comes back without any other motion
    linear = found.matrix[:2, :2]
    if model == "translation":
        assert torch.equal(linear, torch.eye(2, dtype=torch.float64))
    if model in ("euclidean", "similarity"):
        scale = 1.0 if model == "euclidean" else linear.det().item()
        torch.testing.assert_close(linear @ linear.T, scale * torch.eye(2, dtype=torch.float64))


def test_a_true_first_guess_is_kept_on_every_level():
    """A level's first guess is as accurate as the level above it can measure."""
    true = matrix_of("similarity")
    moving, fixed = pair(true)
    for levels in (1, 2, 3):
        found = wk.align(moving, fixed, model="similarity", levels=levels, init=true)
        assert corner_error(found.matrix, true, MOVING) < TOLERANCE["align pixels"]
        # started at the true matrix on any level, the finest level only confirms it
        assert found.steps <= 4 * levels


def test_every_type_layout_and_channel_gain_is_aligned():
    true = matrix_of("affine")
    moving, fixed = pair(true, channels=3)
    eight = (fixed * 255).round().clamp(0, 255).to(torch.uint8)
    for one, other in ((moving.half(), eight), (moving.float(), fixed), (eight, eight)):
        found = wk.align(one, other)
        target = torch.eye(2, 3, dtype=torch.float64) if one is eight else true
        assert bool(found.converged)
        assert corner_error(found.matrix, target, MOVING) < TOLERANCE["align pixels"]
    # every memory format gives the same bits
    last = (image[None].contiguous(memory_format=torch.channels_last) for image in (moving, fixed))
    assert torch.equal(wk.align(*last).matrix[0], wk.align(moving, fixed).matrix)
    # each channel has its own gain and bias
    changed = (
        fixed * torch.tensor((0.5, 1.0, 2.0))[:, None, None] + torch.arange(3.0)[:, None, None]
    )
    found = wk.align(moving, changed)
    assert found.score > 0.999
    assert corner_error(found.matrix, true, MOVING) < TOLERANCE["align pixels"]


def test_each_pair_of_a_batch_converges_by_itself(monkeypatch):
    trues = [matrix_of("affine", shift) for shift in ((0.0, 0.0), (1.0, 0.5), (2.0, -1.5))]
    pairs = [pair(true, seed) for seed, true in enumerate(trues)]
    pairs.append((pairs[0][0], pair(trues[0], 9)[1]))  # unrelated images never converge
    moving, fixed = (torch.stack(images) for images in zip(*pairs, strict=True))
    computed = []
    equations = solver.equations

    def counted(level, *rest):
        computed.append(len(level.fixed))
        return equations(level, *rest)

    eye = torch.eye(2, 3)
    monkeypatch.setattr(solver, "equations", counted)
    monkeypatch.setattr(solver, "select_descent", lambda *tensors: None)  # it hides its steps
    together = wk.align(moving, fixed, init=eye, levels=2)
    in_batch, computed[:] = sum(computed), []
    for k, (one, other) in enumerate(pairs):
        alone = wk.align(one, other, init=eye, levels=2)
        assert torch.equal(alone.converged, together.converged[k])
        assert torch.equal(alone.steps, together.steps[k])
        torch.testing.assert_close(alone.matrix, together.matrix[k], rtol=0, atol=1e-9)
    assert together.converged.tolist() == [True, True, True, False]
    assert len(set(together.steps.tolist())) > 1
    # one step per pair at a time, and one evaluation of the first matrix on each of two levels and
    # of the unsmoothed images
    assert in_batch == sum(computed) == int(together.steps.sum()) + 3 * len(pairs)


def test_batches_broadcast():
    moving, fixed = pair(matrix_of("translation"))
    found = wk.align(
        moving.expand(2, 1, 1, *MOVING), fixed.expand(3, 1, *FIXED), model="translation"
    )
    assert found.matrix.shape == (2, 3, 2, 3)
    assert found.score.shape == (2, 3)
    assert (found.matrix == found.matrix[0, 0]).all()
    for init in (None, "search"):
        nothing = wk.align(moving[None][:0], fixed, init=init)
        assert nothing.matrix.shape == (0, 2, 3)
        assert "0 pairs" in str(nothing)


def with_object(image: Tensor, corner: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """An image with a flat bright square on it, and the mask of all other pixels."""
    y, x = corner
    image, mask = image.clone(), torch.ones(1, *image.shape[-2:], dtype=torch.bool)
    image[:, y : y + 10, x : x + 12] = 2.0
    mask[:, y : y + 10, x : x + 12] = False
    return image, mask


def test_masked_pixels_and_outliers_are_ignored():
    """A square moves differently from the rest of the image."""
    true = torch.tensor(((1.02, 0.03, 1.2), (-0.03, 1.02, -1.8)), dtype=torch.float64)
    moving, fixed = pair(true)
    (moving, moving_mask), (fixed, fixed_mask) = (
        with_object(moving, (8, 8)),
        with_object(fixed, (25, 30)),
    )
    options = {"model": "similarity", "init": torch.eye(2, 3)}

    def error(**more: object) -> float:
        found = wk.align(moving, fixed, **options, **more)
        return corner_error(found.matrix, true, MOVING)

    masks = {"moving_mask": moving_mask, "fixed_mask": fixed_mask.double()}
    for loss in ("ecc", "ssd"):
        assert error(loss=loss) > 1
        assert error(loss=loss, **masks) < TOLERANCE["align pixels"]
    assert error(loss="robust") < TOLERANCE["align pixels"]
    # masked pixels may hold any values
    moving[:, ~moving_mask[0]] = torch.nan
    assert error(**masks) < TOLERANCE["align pixels"]


@pytest.mark.parametrize(("turn", "scale"), [(140.0, 0.7), (-75.0, 1.4)])
def test_search_finds_large_rotations_and_scales(turn, scale):
    center = torch.tensor(wk.image_center(MOVING), dtype=torch.float64)
    true = wk.affine_matrix(angle=turn, scale=scale, translation=(3.0, -4.0), center=center)
    moving, fixed = pair(true.double(), 4)
    near = wk.align(moving, fixed, model="similarity")
    found = wk.align(moving, fixed, model="similarity", init="search")
    assert not near.converged
    assert found.converged
    assert corner_error(found.matrix, true, MOVING) < TOLERANCE["align pixels"]


def test_str_is_one_line():
    moving, fixed = pair(matrix_of("translation"))
    one = wk.align(moving, fixed, model="translation")
    assert str(one).startswith(
        f"Alignment: converged in {int(one.steps)} steps, score 0.9999, [[1,"
    )
    many = wk.align(torch.stack((moving, 0 * moving)), fixed, model="translation")
    assert str(many).startswith("Alignment of 2 pairs: 1 converged, scores 0.0000 to 0.9999, ")
    assert "\n" not in str(one) + str(many)
