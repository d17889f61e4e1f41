"""`optimize_patch` with minibatches, extra arguments of the objective, and surfaces."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

import warpkit as wk
from tests.support.inputs import noise, seeded
from tests.support.tolerances import TOLERANCE
from warpkit.attacks import (
    Cylinder,
    Patch,
    PerspectiveDistribution,
    Photometric,
    Pipeline,
    nonprintability,
    optimize_patch,
    optimize_perturbation,
    total_variation,
)

IMAGES = noise(6, 3, 12, 14, seed=1)
BOX = torch.tensor([3.0, 2, 9, 10], dtype=torch.float64)
TILT = PerspectiveDistribution(corners=(0, 0.1), angle=(-20, 20))


class Photographs(Dataset[tuple[Tensor, ...]]):
    """Items that a DataLoader stacks; its transform draws from torch's global generator."""

    def __len__(self) -> int:
        return len(IMAGES)

    def __getitem__(self, i: int) -> tuple[Tensor, ...]:
        box = BOX + torch.rand(1, dtype=torch.float64)
        return IMAGES[i], box, torch.tensor(i / 10)


def in_order(items: list[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """A batch: one box and one number for each image."""
    images, boxes, numbers = (torch.stack(part) for part in zip(*items, strict=True))
    return images, boxes, torch.arange(len(images)), numbers


def loader(**options) -> DataLoader:
    return DataLoader(Photographs(), batch_size=4, collate_fn=in_order, **options)


def weighted(views: Tensor, numbers: Tensor) -> Tensor:
    weights = numbers.repeat_interleave(len(views) // len(numbers))
    return (views.square().mean((1, 2, 3)) * (weights + 0.1)).mean()


def attack(batches, objective=weighted, **options) -> Patch:
    given = {
        "patch_size": (4, 5),
        "distribution": TILT,
        "photometric": Photometric(brightness=(-0.1, 0.1), noise=0.01),
        "pipeline": Pipeline(),
        "surface": Cylinder(4.0),
        "steps": 7,
        "samples": 2,
        "generator": seeded(),
        **options,
    }
    return optimize_patch(objective, batches, None, None, **given)


def test_each_step_gets_the_next_batch():
    seen: list[tuple[Tensor, Tensor]] = []

    def objective(views: Tensor, numbers: Tensor) -> Tensor:
        seen.append((views.detach(), numbers))
        return views.mean()

    plain = {"distribution": None, "photometric": None, "pipeline": None, "surface": None}
    attack(loader(), objective, steps=5, **plain)
    assert [len(views) for views, _ in seen] == [4, 2, 4, 2, 4]
    for step, (views, numbers) in enumerate(seen):
        rows = slice(0, 4) if step % 2 == 0 else slice(4, 6)
        assert torch.equal(views[:, :, 0], IMAGES[rows, :, 0])  # above the patch
        assert torch.equal(numbers, torch.arange(6)[rows] / 10)
    moved = {
        float((views[0] - IMAGES[0]).abs().sum(0).mv(torch.arange(14.0).double()).sum())
        for views, _ in seen[::2]
    }
    assert len(moved) == 3  # the boxes are drawn anew in each pass


def test_a_list_of_one_batch_equals_fixed_tensors():
    fixed = (IMAGES[:2], BOX.expand(2, 4), torch.arange(2))
    objective = lambda x: x.square().mean()  # noqa: E731
    options = {"patch_size": (4, 5), "steps": 5, "samples": 2, "distribution": None}
    expected = optimize_patch(objective, *fixed, **options).patch
    assert torch.equal(optimize_patch(objective, [fixed], None, None, **options).patch, expected)
    endless = (fixed for _ in iter(int, 1))
    assert torch.equal(optimize_patch(objective, endless, None, None, **options).patch, expected)


MANY = {
    "list": lambda: list(loader()),
    "shuffled": lambda: loader(shuffle=True),
    "of its own generator": lambda: loader(shuffle=True, generator=seeded(8)),
    "an iterator": lambda: iter([batch for _ in range(4) for batch in LIST]),
}
torch.manual_seed(3)
LIST = list(loader())


@pytest.mark.parametrize("case", MANY)
@pytest.mark.parametrize("stop", [2, 3, 5])
def test_a_resumed_run_equals_an_uninterrupted_one(case: str, stop: int):
    torch.manual_seed(4)
    batches = LIST if case == "list" else MANY[case]()
    whole = attack(batches)
    state = attack(LIST if case == "list" else MANY[case](), steps=stop).state
    torch.manual_seed(9)  # nothing is drawn from torch's global generator
    rest = attack(LIST if case == "list" else MANY[case](), resume=state, generator=seeded(7))
    assert torch.equal(rest.patch, whole.patch)
    assert rest.history == whole.history
    assert len({round(value, 12) for value in whole.history}) == 7


def test_random_boxes_continue_after_a_resume():
    def run(**options) -> Patch:
        boxes = lambda g: BOX + 3 * torch.rand(6, 1, generator=g)  # noqa: E731
        given = {"patch_size": (4, 5), "steps": 4, "samples": 2, "generator": seeded(), **options}
        objective = lambda x: x.square().mean()  # noqa: E731
        return optimize_patch(objective, IMAGES, boxes, torch.arange(6), **given)

    whole = run()
    assert torch.equal(run(resume=run(steps=2).state, generator=seeded(3)).patch, whole.patch)
    assert not torch.equal(run(generator=seeded(3)).patch, whole.patch)


def test_the_objective_gets_the_patch_as_a_keyword():
    seen: list[Tensor] = []
    ink = torch.tensor([[0.2, 0.2, 0.2], [0.9, 0.9, 0.9]], dtype=torch.float64)

    def objective(views: Tensor, numbers: Tensor, *, patch: Tensor) -> Tensor:
        seen.append(patch.detach().clone())
        assert len(numbers) in (2, 4)
        return 0 * views.mean() + total_variation(patch) + nonprintability(patch, ink)

    start = 0.6 + 0.1 * noise(3, 4, 5, seed=2)
    found = attack(loader(), objective, steps=60, start=start, quantize=True, chunk=1)
    assert torch.equal(seen[0], (start * 255).round() / 255)  # rounded as in the printed file
    assert (found.patch - 0.9).abs().max() < 0.05
    assert len(seen) == 120  # one call for each chunk

    def named(patch: Tensor) -> Tensor:  # another callable with the same parameter
        return patch.mean()

    attack([LIST[0][:3]], named, steps=1)


def test_total_variation_and_nonprintability_by_hand():
    patch = noise(3, 4, 5, seed=3).requires_grad_()
    steps = [(patch[:, :, 1:] - patch[:, :, :-1]), (patch[:, 1:] - patch[:, :-1])]
    expected = sum(step.abs().sum() / step.numel() for step in steps)
    torch.testing.assert_close(total_variation(patch), expected)
    assert total_variation(torch.full((2, 3, 1, 1), 0.5)) == 0
    colours = noise(7, 3, seed=4)
    distances = [
        min(math.dist(pixel, colour) for colour in colours.tolist())
        for pixel in patch.detach().flatten(1).T.tolist()
    ]
    got = nonprintability(patch, colours)
    assert got.item() == pytest.approx(sum(distances) / 20, rel=TOLERANCE["reference float64"])
    assert torch.autograd.gradcheck(lambda p: nonprintability(p, colours), patch)
    assert torch.autograd.gradcheck(total_variation, patch)
    printed = colours[:2].T[:, None].clone().requires_grad_()
    assert (torch.autograd.grad(nonprintability(printed, colours).sum(), printed)[0] == 0).all()


def test_a_cylinder_shows_half_of_the_patch_wrapped_around_it():
    radius, width = 6.0, 41
    flow = Cylinder(radius).flow((3, width))
    x = torch.arange(width) - 20.0
    for row in flow[..., 0]:
        for u, offset in zip(x.tolist(), row.tolist(), strict=True):
            if abs(u) <= radius:
                assert u + offset == pytest.approx(
                    radius * math.asin(u / radius), abs=TOLERANCE["reference float64"]
                )
            else:
                assert abs(u + offset) > width
    assert (flow[..., 1] == 0).all()
    assert Cylinder(1e6).flow((3, width)).abs().max() < 1e-8  # nearly flat


@pytest.mark.parametrize("arithmetic", ["exact", "opencv5"])
def test_a_surface_bends_the_patch_before_it_is_placed(arithmetic: str):
    dtype = torch.float64 if arithmetic == "exact" else torch.float32
    start, seen = noise(3, 6, 9, dtype=dtype, seed=5), []
    images, boxes = torch.zeros(1, 3, 20, 24, dtype=dtype), torch.tensor([[4.0, 3, 13, 9]])
    for surface in (Cylinder(3.5), Cylinder(3.5).flow((6, 9))):
        optimize_patch(
            lambda x: seen.append(x.detach()) or x.mean(),
            images,
            boxes,
            None,
            patch_size=(6, 9),
            start=start,
            steps=1,
            surface=surface,
            arithmetic=arithmetic,
        )
    assert torch.equal(*seen)
    flow = Cylinder(3.5).flow((6, 9))
    bent = wk.warp_flow(torch.cat((start, torch.ones_like(start[:1]))), flow)
    inner = seen[0][0, :, 4:8, 4:13]  # the box has the patch's size, pixel by pixel
    atol = TOLERANCE[f"reference float{64 if arithmetic == 'exact' else 32}"]
    torch.testing.assert_close(inner, bent[:3, 1:5], rtol=0, atol=atol)
    assert (inner[:, :, 0] == 0).all()  # outside the cylinder
    assert (inner[:, :, 4] > 0).all()


def once() -> Iterator[tuple[Tensor, ...]]:
    yield from LIST


ERRORS = [
    (
        lambda: attack(once()),
        (
            "optimize_patch: `images` must be an iterable with a batch for each of the 7 steps, or "
            "one that can be gone through again (a list, a DataLoader), got one that ended after 2"
        ),
    ),
    (lambda: attack([]), "got one that ended after 0"),
    (lambda: attack([LIST[0][:2]]), "a list of (C, H, W), or an iterable of "),
    (lambda: attack(iter([IMAGES])), "or (images, boxes, image_index, extra), got one of Tensor"),
    (
        lambda: optimize_patch(weighted, LIST, [BOX], None, patch_size=(2, 2)),
        "`boxes` must be None if `images` is an iterable of batches, which hold them, got list",
    ),
    (
        lambda: attack([(IMAGES[:2] + 1, *LIST[0][1:])]),
        "optimize_patch: `images` must be in [0, 1], got values from 1",
    ),
    (
        lambda: attack([LIST[0], (IMAGES[:4, :1], *LIST[0][1:])]),
        "`images` must be of 3 channels and torch.float64, as in the first batch, got (4, 1, 12",
    ),
    (
        lambda: attack(LIST, lambda views: views.mean()),
        "`objective` must be a function that takes images and extra and returns a scalar tensor",
    ),
    (
        lambda: attack(LIST, resume=attack(LIST, steps=1).state | {"batches": 3}),
        "`resume` must be the state of an earlier result of the same call, with batches, got 3",
    ),
    (
        lambda: attack(LIST[:1], resume={"variable": 0, "history": [], "optimizer": 0}),
        "`resume` must be the state of an earlier result of the same call, got a dict of",
    ),
    (
        lambda: attack(once(), steps=7, resume=attack(LIST, steps=6).state),
        "`images` must be an iterable with a batch for each",
    ),
    (
        lambda: optimize_perturbation(lambda views, patch: views.mean(), IMAGES, epsilon=0.1),
        (
            "`objective` must be a function that takes images and returns a scalar tensor, got one "
            "that takes (views, patch)"
        ),
    ),
    (lambda: Cylinder(0.0), "Cylinder: `radius` must be a number above 0, got 0.0"),
    (lambda: Cylinder(-3), "Cylinder: `radius` must be a number above 0, got -3"),
    (
        lambda: attack(LIST, surface=Cylinder),
        "`surface` must be a Cylinder, or a flow (h, w, 2) of the patch's size (4, 5), got the",
    ),
    (lambda: attack(LIST, surface=torch.zeros(5, 4, 2)), "size (4, 5), got (5, 4, 2)"),
    (lambda: total_variation(IMAGES.byte()), "total_variation: `patch` must be of a floating"),
    (
        lambda: nonprintability(IMAGES, [[0.0, 1.0]]),
        "nonprintability: `colours` must be of shape (K, 3), at least one colour",
    ),
]


@pytest.mark.parametrize(("call", "text"), ERRORS)
def test_arguments_are_checked(call, text: str):
    with pytest.raises((ValueError, TypeError), match=re.escape(text)):
        call()


def test_patches_move_by_more_than_the_tolerance():
    """Otherwise `test_a_resumed_run_equals_an_uninterrupted_one` could not fail."""
    short, long = attack(LIST, steps=2).patch, attack(LIST, steps=7).patch
    assert (short - long).abs().max() > 1e3 * TOLERANCE["pieces"]
