"""scaling_attack: one resize sees the hidden image, and no other does."""

from __future__ import annotations

import pytest
import torch

import warpkit as wk
from tests.support.inputs import noise
from warpkit.attacks import scaling_attack


@pytest.mark.parametrize("arithmetic", ["opencv5", "torchvision"])
def test_a_resize_that_skips_pixels_can_be_made_to_show_anything(arithmetic):
    shown, target = torch.full((3, 32, 40), 0.75), noise(3, 8, 10).float()
    how = {"interpolation": "bilinear", "arithmetic": arithmetic}
    how |= {} if arithmetic == "opencv5" else {"antialias": False}
    found = scaling_attack(target, shown, (8, 10), steps=200, **how)
    bytes_ = (found.image * 255).round()
    torch.testing.assert_close(found.image, bytes_ / 255, rtol=0, atol=1e-6)
    seen = wk.resize(bytes_.byte(), (8, 10), **how)
    assert torch.equal((found.seen * 255).round(), seen.float())
    assert found.missed < 2
    off = (found.seen - wk.quantize(target)).square().mean().sqrt() * 255
    assert found.missed == pytest.approx(float(off), rel=1e-4)
    changed = (found.image - shown).square().mean().sqrt() * 255
    assert found.changed == pytest.approx(float(changed), rel=1e-4)
    assert len(found.history) == 200
    assert found.history[-1] < found.history[0] / 10
    assert "levels" in str(found)
    # a resize by means still shows the original; only a quarter of the pixels changed
    mean = wk.resize(found.image, (8, 10), interpolation="area")
    assert (mean - 0.75).abs().mean() < (mean - target).abs().mean() / 2
    assert ((found.image - shown).abs() < 2 / 255).float().mean() > 0.7


def test_targets_of_other_sizes_and_batches_are_accepted():
    target = noise(2, 1, 16, 16).float()
    found = scaling_attack(target, torch.zeros(2, 1, 24, 24), (6, 6), steps=3, antialias=False)
    assert found.image.shape == (2, 1, 24, 24)
    assert found.seen.shape == (2, 1, 6, 6)


def test_rounding_errors_above_one_are_clamped():
    """A resize of ones is 1.0000001 where its weights sum to that."""
    just = torch.full((1, 8, 8), 1.0000001)
    assert just.max() > 1
    found, wanted = (
        scaling_attack(-1e-7 * shown, shown, (4, 4), steps=3) for shown in (just, just.clamp(max=1))
    )
    torch.testing.assert_close(found.image, wanted.image, rtol=0, atol=0)
    assert found.changed == wanted.changed


@pytest.mark.parametrize(
    ("target", "image", "words"),
    [
        (torch.ones(3, 4, 4), torch.ones(1, 8, 8), "`target` must be of the image's batch"),
        (torch.ones(1, 4, 4), torch.ones(1, 8, 8) * 2, "`image` must be in [0, 1]"),
        (torch.ones(1, 4, 4), torch.ones(1, 8, 8) * 1.002, "`image` must be in [0, 1]"),
        (torch.ones(1, 4, 4) * torch.nan, torch.ones(1, 8, 8), "`target` must be in [0, 1]"),
        (torch.ones(1, 4, 4), torch.ones(1, 8, 8).byte(), "`image` must be floating"),
    ],
)
def test_errors(target, image, words):
    with pytest.raises((ValueError, TypeError)) as raised:
        scaling_attack(target, image, (4, 4))
    assert str(raised.value).startswith(f"scaling_attack: {words}")
    with pytest.raises(ValueError, match="scaling_attack: `steps` must be"):
        scaling_attack(torch.ones(1, 4, 4), torch.ones(1, 8, 8), (4, 4), steps=0)
