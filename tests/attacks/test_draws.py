"""Random perspectives, colours and boxes: one generator draws all before the first chunk."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor

import warpkit as wk
from tests.support.inputs import noise, seeded
from tests.support.tolerances import TOLERANCE
from warpkit.attacks import (
    AffineDistribution,
    Cylinder,
    PerspectiveDistribution,
    Photometric,
    Pipeline,
    expectation,
    normalize,
    optimize_flow,
    optimize_patch,
    optimize_perturbation,
)

IMAGES = noise(2, 3, 12, 14, seed=1)
BOXES = torch.tensor([[1.0, 2, 7, 8], [6, 4, 12, 10], [3, 1, 9.5, 11]], dtype=torch.float64)
INDEX = torch.tensor([0, 0, 1])
TILT = PerspectiveDistribution(corners=(0, 0.15), angle=(-20, 20), translation=(-1.0, 1.0))
LIGHT = Photometric(brightness=(-0.1, 0.1), contrast=(0.7, 1.2), gamma=(0.8, 1.3), noise=0.02)


def corners_of(size: tuple[int, int]) -> Tensor:
    height, width = (side - 1.0 for side in size)
    return torch.tensor([[0, 0], [width, 0], [width, height], [0, height]], dtype=torch.float64)


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_corners_move_by_at_most_their_fraction_of_the_size(share: float):
    size = (21, 41)
    drawn = PerspectiveDistribution(corners=(0, share)).sample(400, size=size, generator=seeded())
    assert drawn.shape == (400, 3, 3)
    assert drawn.dtype == torch.float32
    before = corners_of(size)
    after = wk.transform_points(drawn.double(), before)
    moved = (after - before) / torch.tensor([40.0, 20.0])
    assert moved.abs().max() < share + TOLERANCE["float32 corners"]
    assert (moved.amax(0) > 0.9 * share).all()  # each corner, along both axes, both ways
    assert (moved.amin(0) < -0.9 * share).all()
    sides = after.roll(-1, 1) - after
    turns = sides[..., 0] * sides.roll(-1, 1)[..., 1] - sides[..., 1] * sides.roll(-1, 1)[..., 0]
    assert (turns > 0).all()  # no quadrangle folds
    exact = PerspectiveDistribution(corners=(0.1, 0.1)).sample(9, size=size, generator=seeded())
    moved = (wk.transform_points(exact.double(), before) - before).abs()
    expected = torch.tensor([4.0, 2.0], dtype=torch.float64).expand(9, 4, 2)
    torch.testing.assert_close(moved, expected, rtol=0, atol=TOLERANCE["float32 corners"])


def test_without_corners_the_distribution_is_affine():
    ranges = {"angle": (-9, 9), "scale": (0.5, 2), "shear": (-3, 3), "translation": (-1, 2)}
    affine = AffineDistribution(**ranges).sample(3, size=(5, 6), generator=seeded())
    same = PerspectiveDistribution(**ranges).sample(3, size=(5, 6), generator=seeded())
    assert torch.equal(same[:, :2], affine)
    assert (same[:, 2] == torch.tensor([0.0, 0, 1])).all()
    both = PerspectiveDistribution(corners=(-0.2, 0.2), **ranges)
    parts = both.sample_parts(3, size=(5, 6), generator=seeded())
    assert torch.equal(parts[1], affine)
    torch.testing.assert_close(
        both.sample(3, size=(5, 6), generator=seeded()),
        wk.compose(*parts),
        rtol=0,
        atol=TOLERANCE["float32 corners"],
    )
    assert PerspectiveDistribution(corners=(0.1, 0.1)).sample(1, size=(1, 1)).isfinite().all()


def test_a_patchs_corners_move_in_fractions_of_its_box():
    """This holds for any ratio of the box's size to the patch's."""
    patch, canvas = torch.ones(1, 5, 5).double(), torch.zeros(1, 1, 60, 80).double()
    box, seen = torch.tensor([[20.0, 10, 60, 50]]), []
    optimize_patch(
        lambda x: seen.append(x.detach()) or -x.mean(),
        canvas,
        box,
        None,
        patch_size=(5, 5),
        distribution=PerspectiveDistribution(corners=(0.2, 0.2)),
        start=patch,
        samples=8,
        steps=1,
        generator=seeded(),
    )
    drawn = PerspectiveDistribution(corners=(0.2, 0.2)).sample(8, size=(5, 5), generator=seeded())
    placed = wk.compose(drawn.double(), wk.box_to_matrix(box.double(), (5, 5)))
    expected = wk.paste_patches(canvas[0].expand(8, 1, 60, 80), patch, placed, torch.arange(8))
    torch.testing.assert_close(
        seen[0], expected, rtol=0, atol=TOLERANCE["objects against the loop"]
    )


def by_hand(x: np.ndarray, draw: np.ndarray) -> np.ndarray:
    """A view (C, H, W) without noise, computed from the definition."""
    brightness, contrast, gamma, _ = draw
    x = (x - x.mean()) * contrast + x.mean() + brightness
    return np.clip(np.clip(x, 0, 1) ** gamma, 0, 1)


def test_colours_match_the_definition():
    light = Photometric(brightness=(-0.3, 0.4), contrast=(0.4, 2), gamma=(0.5, 2))
    views = noise(6, 3, 5, 4, seed=2)
    views[0, 0, 0, :2] = torch.tensor([0.0, 1.0])
    draws = light.sample(6, generator=seeded())
    got = light(views, generator=seeded())
    expected = np.stack([by_hand(x.numpy(), d.numpy()) for x, d in zip(views, draws, strict=True)])
    np.testing.assert_allclose(got.numpy(), expected, rtol=0, atol=TOLERANCE["reference float64"])
    assert len(draws[:, 1].unique()) == 6
    for column, (low, high) in zip(draws.T, ((-0.3, 0.4), (0.4, 2), (0.5, 2)), strict=False):
        assert low <= column.min() < column.max() <= high
    still = Photometric()(views, generator=seeded())
    assert torch.equal(still, views)


def test_noise_is_normal_and_independent_for_each_view():
    views = torch.full((3, 1, 60, 60), 0.5, dtype=torch.float64)
    light = Photometric(noise=0.05)
    draws = light.sample(3, generator=seeded())
    noisy = light.apply(views, draws) - 0.5
    assert noisy.mean().abs() < 0.002  # 0.05 / sqrt(10800) is 0.0005
    assert abs(noisy.std() / 0.05 - 1) < 0.03
    assert (noisy.abs() < 0.05).double().mean() == pytest.approx(0.683, abs=0.02)
    correlation = torch.corrcoef(noisy.flatten(1)) - torch.eye(3)
    assert correlation.abs().max() < 0.06
    again = light.apply(views[1:2], draws[1:2]) - 0.5
    assert torch.equal(again[0], noisy[1])  # whatever else is in the batch


def test_colours_have_the_exact_gradient():
    light = Photometric(brightness=(0.0, 0.1), contrast=(0.8, 0.9), gamma=(0.7, 1.5), noise=0.01)
    draws = light.sample(2, generator=seeded(3))
    views = (0.3 + 0.4 * noise(2, 2, 3, 3, seed=4)).requires_grad_()
    apply = partial(light.apply, draws=draws)
    assert torch.autograd.gradcheck(apply, views)
    assert torch.autograd.gradgradcheck(apply, views)
    black = torch.zeros(1, 1, 1, 2, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(Photometric(gamma=(0.5, 0.5))(black).sum(), black)
    expected = torch.full_like(black, 0.5 * 255**0.5)  # where it is infinite, the gradient at 1/255
    torch.testing.assert_close(slope, expected, rtol=0, atol=TOLERANCE["reference float64"])
    ends = torch.tensor([0.0, 1.0]).reshape(1, 1, 1, 2).requires_grad_()
    light = Photometric(contrast=(0.999, 1.0))  # torch's clamp has a gradient at both bounds
    draws = torch.tensor([[0.0, 1.0, 1.0, 0.0]])
    assert (torch.autograd.grad(light.apply(ends, draws).sum(), ends)[0] == 1).all()


def bright(x: Tensor) -> Tensor:
    return -x.square().mean()


PROGRAM = Pipeline(partial(wk.resize, size=(6, 7), arithmetic="opencv5"), normalize([0.4], [0.3]))
ALL = {"photometric": LIGHT, "pipeline": PROGRAM, "samples": 5}


def patch_attack(**options):
    given = {
        "images": IMAGES,
        "boxes": BOXES,
        "image_index": INDEX,
        "patch_size": (4, 5),
        "distribution": TILT,
        "surface": Cylinder(3.0),
        "steps": 3,
        "generator": seeded(),
        "optimizer": torch.optim.SGD,
        **ALL,
        **options,
    }
    return optimize_patch(bright, **given)


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_chunks_change_nothing(chunk: int):
    values, gradients = [], []
    for size in (None, chunk):
        image = IMAGES.clone().requires_grad_()
        value = expectation(bright, image, TILT, chunk=size, generator=seeded(), **ALL)
        values.append(value.item())
        gradients += torch.autograd.grad(value, image)
    assert values[1] == pytest.approx(values[0], rel=TOLERANCE["pieces"])
    torch.testing.assert_close(*gradients, rtol=0, atol=TOLERANCE["pieces"])
    whole, pieces = (patch_attack(chunk=size).patch for size in (None, chunk))
    torch.testing.assert_close(pieces, whole, rtol=0, atol=TOLERANCE["pieces"])
    options = {"epsilon": 0.1, "norm": "l2", "steps": 2, **ALL}
    whole, pieces = (
        optimize_perturbation(bright, IMAGES, TILT, chunk=size, generator=seeded(), **options).image
        for size in (None, chunk)
    )
    torch.testing.assert_close(pieces, whole, rtol=0, atol=TOLERANCE["pieces"])


def test_one_generator_seeds_all_draws():
    torch.manual_seed(1)
    first = patch_attack(boxes=lambda g: BOXES + torch.rand(3, 1, generator=g))
    torch.manual_seed(2)
    state = torch.get_rng_state()
    again = patch_attack(boxes=lambda g: BOXES + torch.rand(3, 1, generator=g))
    assert torch.equal(first.patch, again.patch)
    assert torch.equal(torch.get_rng_state(), state)
    other = patch_attack(boxes=lambda g: BOXES + torch.rand(3, 1, generator=g), generator=seeded(5))
    assert not torch.equal(first.patch, other.patch)


def test_the_objective_gets_the_pipelines_values():
    seen: list[Tensor] = []
    options = {"photometric": LIGHT, "samples": 2, "generator": seeded()}
    expectation(
        lambda x: seen.append(x.detach()) or x.mean(), IMAGES, TILT, pipeline=PROGRAM, **options
    )
    generator = seeded()
    matrices = TILT.sample(2, size=(12, 14), generator=generator)
    colours = LIGHT.sample(4, generator=generator).unflatten(0, (2, 2))
    expected = []
    for i in range(2):  # image by image
        for view in range(2):
            warped = wk.warp_perspective(IMAGES[i], matrices[view])
            lit = LIGHT.apply(warped[None], colours[view, i][None])
            expected.append(PROGRAM((lit * 255).round().byte())[0].double())
    torch.testing.assert_close(
        seen[0], torch.stack(expected), rtol=0, atol=TOLERANCE["reference float32"]
    )


def test_without_a_distribution_every_view_still_has_its_own_colours():
    seen: list[Tensor] = []
    light = Photometric(brightness=(-0.2, 0.2))
    grey = torch.full((2, 1, 4, 4), 0.5)
    for attack in (optimize_perturbation, optimize_flow):
        seen.clear()
        attack(
            lambda x: seen.append(x.detach()) or x.mean(),
            grey + 0.1 * torch.rand(2, 1, 4, 4, generator=seeded()),
            epsilon=0.01,
            steps=1,
            samples=3,
            photometric=light,
            generator=seeded(),
        )
        assert seen[0].shape == (6, 1, 4, 4)
        assert len(seen[0].mean((1, 2, 3)).unique()) == 6
    seen.clear()
    optimize_patch(
        lambda x: seen.append(x.detach()) or x.mean(),
        grey,
        [[1, 1, 3, 3], [0, 0, 4, 4]],
        [0, 1],
        patch_size=(2, 2),
        steps=1,
        samples=3,
        photometric=light,
        generator=seeded(),
    )
    assert len(seen[0][:, 0, 0, 0].unique()) == 6
    assert len((seen[0][:3, 0, 1, 1] - seen[0][:3, 0, 0, 0]).unique()) == 3  # own lighting


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: PerspectiveDistribution(corners=(0.2, 0.1)),
            "PerspectiveDistribution: `corners` must be (low, high), two finite numbers with",
        ),
        (
            lambda: PerspectiveDistribution(corners=(0, 0.6)),
            "`corners` must be shares of the side within [-0.5, 0.5], got (0, 0.6)",
        ),
        (lambda: PerspectiveDistribution(scale=(0, 1)), "PerspectiveDistribution: `scale` must be"),
        (
            lambda: Photometric(brightness=(0.1, -0.1)),
            "Photometric: `brightness` must be (low, high), two finite numbers with low <= high, ",
        ),
        (lambda: Photometric(contrast=(1.2, 0.8)), "Photometric: `contrast` must be (low, high)"),
        (lambda: Photometric(contrast=(-1, 1)), "Photometric: `contrast` must be at least 0"),
        (lambda: Photometric(gamma=(2, 0.5)), "Photometric: `gamma` must be (low, high), two"),
        (lambda: Photometric(gamma=(0, 1)), "Photometric: `gamma` must be positive, got (0, 1)"),
        (lambda: Photometric(noise=-0.1), "`noise` must be a number of at least 0, got -0.1"),
        (lambda: Photometric(noise=(0, 1)), "`noise` must be a number of at least 0, got (0, 1)"),
        (lambda: Photometric().sample(0), "Photometric.sample: `n` must be an integer of at least"),
        (
            lambda: Photometric().apply(IMAGES, torch.zeros(3, 4)),
            "Photometric.apply: `draws` must be of shape (2, 4), one for each view, got (3, 4)",
        ),
        (
            lambda: Photometric().apply(IMAGES[0], torch.zeros(3, 4)),
            "Photometric.apply: `views` must be of shape (N, C, H, W) and a floating type",
        ),
        (
            lambda: expectation(bright, IMAGES, TILT, samples=1, photometric=Photometric),
            "expectation: `photometric` must be None or a Photometric, got the class Photometric",
        ),
        (
            lambda: expectation(bright, IMAGES, TILT, samples=1, pipeline=3),
            "expectation: `pipeline` must be None, a Pipeline, or a function of images",
        ),
        (
            lambda: expectation(bright, IMAGES.byte(), TILT, samples=1, photometric=LIGHT),
            "`image` must be of a floating type, in [0, 1], with a photometric, got torch.uint8",
        ),
    ],
)
def test_arguments_are_checked(call, text: str):
    with pytest.raises((ValueError, TypeError), match=re.escape(text)):
        call()
