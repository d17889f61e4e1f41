"""Expectations of mmcv's and detectron2's tests of RoIAlignRotated, for rotated boxes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import warpkit as wk

FOUR = torch.arange(1.0, 17).reshape(2, 2, 2, 2).transpose(1, 2).reshape(1, 4, 4).double()
"""1 2 5 6 / 3 4 7 8 / 9 10 13 14 / 11 12 15 16"""
TWO = torch.tensor([[[1.0, 2], [3, 4]], [[4, 3], [2, 1]]]).double()
ONE_BIN = torch.tensor([[3.0625, 0.4375], [0.4375, 0.0625]]).double()
ENDS = torch.tensor([0.6875, 0.625, 0.625, 0.0625]).double()
RECORDED: dict[str, Any] = {
    "upright": (TWO[:1], (0.5, 0.5, 1, 1, 0), [[1, 1.25], [1.5, 1.75]], ONE_BIN),
    "turned": (TWO[:1], (0.5, 0.5, 1, 1, 90), [[1.5, 1], [1.75, 1.25]], ONE_BIN),
    "channels": (
        TWO,
        (0.5, 0.5, 1, 1, 0),
        [[[1, 1.25], [1.5, 1.75]], [[4, 3.75], [3.5, 3.25]]],
        ONE_BIN,
    ),
    "larger": (
        FOUR,
        (1.5, 1.5, 3, 3, 0),
        [[1.9375, 4.75], [7.5625, 10.375]],
        torch.outer(ENDS, ENDS),
    ),
    "larger, turned": (
        FOUR,
        (1.5, 1.5, 3, 3, 90),
        [[7.5625, 1.9375], [10.375, 4.75]],
        torch.outer(ENDS, ENDS),
    ),
}
"""Image, box in degrees, result of 2 x 2 bins of 2 x 2 samples, the image's gradient of its sum.

What lies outside is less than a pixel away, where theirs holds a sample at the edge.
"""


@pytest.mark.parametrize("name", RECORDED)
def test_mmcvs_recorded_cases(name):
    image, box, wanted, wanted_grad = RECORDED[name]
    leaf = image.clone().requires_grad_()
    fine = wk.crop_patches(leaf, [list(box)], None, (4, 4), border="replicate")
    found = fine.unflatten(3, (2, 2)).unflatten(2, (2, 2)).mean((3, 5))[0]
    wanted = torch.tensor(wanted, dtype=torch.float64).expand_as(found)
    assert (found - wanted).abs().max() < 1e-5
    (grad,) = torch.autograd.grad(found.sum(), leaf)
    assert (grad - wanted_grad).abs().max() < 1e-5


@pytest.mark.parametrize("quarters", range(4))
def test_detectron2s_recorded_case(quarters):
    """A ramp of 5 x 5; bins are half a pixel wide, so that detectron2 takes one sample of each."""
    image = torch.arange(25.0).reshape(1, 5, 5)
    found = wk.crop_patches(image, [[2.0, 2, 2, 2, 90 * quarters]], None, (4, 4))[0, 0]
    wanted = 4.5 + 2.5 * torch.arange(4.0)[:, None] + 0.5 * torch.arange(4.0)
    assert (found - torch.rot90(wanted, -quarters)).abs().max() < 1e-5


def test_a_box_of_an_image_of_half_the_size():
    """From detectron2: bins of 2 x 2 pixels in the full image, of one pixel in the half."""
    image = torch.rand(1, 30, 30, generator=torch.Generator().manual_seed(0)).double() * 100
    half = image.unflatten(2, (15, 2)).unflatten(1, (15, 2)).mean((2, 4))
    fine = wk.crop_patches(image, [[15.0, 15, 10, 10, 0]], None, (10, 10))[0, 0]
    means = fine.unflatten(1, (5, 2)).unflatten(0, (5, 2)).mean((1, 3))
    found = wk.crop_patches(half, [[7.5, 7.5, 5, 5, 0]], None, (5, 5))[0, 0]
    torch.testing.assert_close(found, means, rtol=0, atol=1e-12)


def test_an_empty_box_is_rejected():
    """detectron2 returns 0 here."""
    image = torch.rand(1, 5, 5, generator=torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match="crop_patches: `boxes` must"):
        wk.crop_patches(image, [[2.0, 3, 0, 0, 0]], None, (7, 7))


BOXES = ((0.0, 0, 9, 9), (0, 5, 4, 9), (5, 5, 9, 9))


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_boxes_with_angle_0_equal_upright_ones(device):
    """From detectron2's GPU tests: values and gradients of three boxes."""
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    image = torch.rand(1, 10, 10, generator=torch.Generator().manual_seed(0)).double().to(device)
    turned = [((a + c) / 2, (b + d) / 2, c - a, d - b, 0.0) for a, b, c, d in BOXES]
    made = []
    for boxes in (BOXES, turned):
        leaf = image.clone().requires_grad_()
        placed = torch.tensor(boxes, dtype=torch.float64, device=device)
        fine = wk.crop_patches(
            leaf[None], placed, torch.zeros(3, dtype=torch.int64, device=device), (9, 9)
        )
        made.append((fine, *torch.autograd.grad(fine.square().sum(), leaf)))
    for upright, same in zip(*made, strict=True):
        torch.testing.assert_close(upright, same, rtol=0, atol=1e-12)
