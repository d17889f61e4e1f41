"""Photometric's JPEG files: a quality for every view, drawn before the first chunk."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.support.inputs import noise, seeded
from tests.support.pillow_files import by_pillow
from warpkit.attacks import (
    AffineDistribution,
    Photometric,
    expectation,
    optimize_patch,
    optimize_perturbation,
)

LIGHT = {"brightness": (-0.1, 0.1), "contrast": (0.7, 1.2), "noise": 0.02}
TILT = AffineDistribution(angle=(-10, 10))
IMAGES = noise(2, 3, 24, 20, dtype=torch.float32, seed=1)


def test_a_file_follows_light_and_noise_and_has_pillows_bytes():
    light, both = Photometric(**LIGHT), Photometric(**LIGHT, jpeg=(10, 60))
    views = noise(5, 3, 24, 20, dtype=torch.float32, seed=1)
    draws = both.sample(5, generator=seeded())
    assert draws.shape == (5, 5)
    shown, before = both.apply(views, draws), light.apply(views, draws[:, :4])
    for view, lit, quality in zip(shown, before, draws[:, 4].tolist(), strict=True):
        expected = by_pillow((lit * 255).round().byte(), int(quality), "4:2:0")
        assert torch.equal((view * 255).round().byte(), expected)
    assert torch.equal(both.apply(views, draws), shown)
    assert torch.equal(both(views, generator=seeded()), shown)


def test_qualities_are_whole_and_include_both_ends():
    qualities = Photometric(jpeg=(30, 33)).sample(400, generator=seeded())[:, 4]
    assert qualities.unique().tolist() == [30, 31, 32, 33]
    assert min((qualities == q).sum() for q in range(30, 34)) > 70  # of 100, with deviation 9
    assert Photometric().sample(3, generator=seeded()).shape == (3, 4)
    assert Photometric(jpeg=(7, 7)).sample(3)[:, 4].tolist() == [7, 7, 7]


@pytest.mark.parametrize("chunk", [1, 3])
def test_chunks_change_no_view(chunk: int):
    def views(size: int | None) -> list[Tensor]:
        light = Photometric(**LIGHT, jpeg=(20, 90))
        options: dict[str, Any] = {"photometric": light, "samples": 4, "chunk": size}
        seen: list[Tensor] = []

        def objective(x: Tensor) -> Tensor:
            seen.append(x.detach())
            return x.mean()

        expectation(objective, IMAGES[:1], TILT, generator=seeded(), **options)
        optimize_perturbation(
            objective, IMAGES[:1], TILT, generator=seeded(), epsilon=0.1, steps=1, **options
        )
        made = torch.cat(seen)
        return [made[:4], made[4:8]]

    for one, whole in zip(views(chunk), views(None), strict=True):
        assert torch.equal(one, whole)
        assert len(whole.flatten(1).unique(dim=0)) == 4


def test_the_whole_view_is_a_file_and_the_patch_on_its_box_is_none():
    seen: list[Tensor] = []

    def objective(views: Tensor) -> Tensor:
        seen.append(views.detach())
        return views.mean()

    boxes = torch.tensor([[4.0, 4, 14, 16]])
    images = IMAGES[:1]
    options: dict[str, Any] = {"patch_size": (6, 6), "steps": 1, "generator": seeded()}
    index = torch.zeros(1, dtype=torch.int64)
    light = Photometric(jpeg=(5, 5))
    found = optimize_patch(objective, images, boxes, index, photometric=light, samples=1, **options)
    assert found.patch.shape == (3, 6, 6)
    views = seen[0]
    plain = Photometric()  # the view with a patch that went through no file
    options["generator"] = seeded()
    seen.clear()
    optimize_patch(objective, images, boxes, index, photometric=plain, samples=1, **options)
    levels = (seen[0][0] * 255).round().byte()
    assert torch.equal((views[0] * 255).round().byte(), by_pillow(levels, 5, "4:2:0"))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: Photometric(jpeg=75), "`jpeg` must be None or (low, high), two integers with"),
        (lambda: Photometric(jpeg=(30.0, 95)), "1 <= low <= high <= 100, got (30.0, 95)"),
        (lambda: Photometric(jpeg=(0, 95)), "1 <= low <= high <= 100, got (0, 95)"),
        (lambda: Photometric(jpeg=(95, 30)), "1 <= low <= high <= 100, got (95, 30)"),
        (lambda: Photometric(jpeg=(True, 30)), "1 <= low <= high <= 100, got (True, 30)"),
        (
            lambda: Photometric(jpeg=(30, 95))(torch.zeros(1, 2, 8, 8)),
            "Photometric.apply: `views` must be of 1 or 3 channels for `jpeg`, got (1, 2, 8, 8)",
        ),
    ],
)
def test_ranges_and_channels_are_checked(call: Any, text: str):
    with pytest.raises((ValueError, TypeError), match=re.escape(text)):
        call()
