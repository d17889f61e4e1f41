"""Flows resized, checked for consistency and drawn: by hand, and torchvision's colours."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck
from torchvision.utils import flow_to_image

import warpkit as wk
from tests.support.inputs import noise
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE
from warpkit import flow


def test_a_resized_flow_warps_a_resized_image():
    """For a scaling about the corner, which is exact, since its flow is linear."""
    y, x = np.mgrid[:12, :16]
    scaled = torch.tensor(np.stack((0.2 * (x + 0.5), -0.1 * (y + 0.5)), -1))
    out = flow.resize(scaled, (24, 8))
    y, x = np.mgrid[:24, :8]
    truth = np.stack((0.2 * (x + 0.5), -0.1 * (y + 0.5)), -1)
    inside = np.s_[2:-2, 1:-1]  # beyond its edges a flow is constant
    np.testing.assert_allclose(out[inside], truth[inside], atol=TOLERANCE["reference float64"])


def test_a_resized_flow_is_both_components_resized():
    field = noise(2, 3, 7, 9, 2)
    out = flow.resize(field, (5, 13))
    for axis, scale in ((0, 13 / 9), (1, 5 / 7)):
        wanted = wk.resize(field[..., axis], (5, 13)) * scale
        np.testing.assert_allclose(out[..., axis], wanted, atol=TOLERANCE["reference float64"])
    assert torch.equal(flow.resize(field, (7, 9)), field)
    assert flow.resize(field.half(), (2, 2)).dtype == torch.float16


def test_gradients_of_a_resized_flow():
    field = noise(4, 5, 2).requires_grad_()
    assert gradcheck(lambda f: flow.resize(f, (3, 7)), field, check_forward_ad=True)
    assert gradgradcheck(lambda f: flow.resize(f, (3, 7)), field)


def test_consistency_by_hand():
    """Three pixels: one comes back, one comes back 1.5 pixels off, one leaves the image."""
    forward = torch.tensor([[[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]])
    backward = torch.tensor([[[0.0, 0.0], [-1.0, 0.0], [0.5, 0.0]]])
    assert flow.consistency(forward, backward).tolist() == [[True, False, False]]
    assert flow.consistency(forward, backward, tolerance=1.5).tolist() == [[True, True, False]]
    assert flow.consistency(forward, backward, tolerance=1.49).tolist() == [[True, False, False]]


def test_the_image_ends_half_a_pixel_beyond_its_centres():
    """An offset of 0.5 reaches the second image's end, which counts as inside."""
    for offset, inside in ((0.5, True), (0.5001, False)):
        for axis in (0, 1):
            for sign in (-1, 1):
                step = torch.zeros(1, 1, 2)
                step[..., axis] = sign * offset
                assert flow.consistency(step, -step).item() is inside, (offset, inside, axis, sign)
    wide = torch.zeros(1, 1, 2)
    wide[..., 0] = 2.4
    assert flow.consistency(wide, -wide.expand(1, 3, 2)).item() is True


def test_hidden_pixels_are_not_consistent():
    """A bar of 4 columns moves 6 to the right over a still background."""
    forward, backward = torch.zeros(1, 20, 2), torch.zeros(1, 20, 2)
    forward[:, 4:8, 0], backward[:, 10:14, 0] = 6.0, -6.0
    agree = flow.consistency(forward, backward)[0]
    assert (~agree).nonzero().flatten().tolist() == [10, 11, 12, 13]  # pixels that the bar covers
    agree = flow.consistency(backward, forward)[0]
    assert (~agree).nonzero().flatten().tolist() == [4, 5, 6, 7]  # pixels that it uncovers


def test_consistency_of_batches_types_and_nan():
    forward = noise(2, 1, 5, 6, 2, dtype=torch.float32)
    backward = noise(3, 5, 6, 2, dtype=torch.float64)
    agree = flow.consistency(forward, backward)
    assert (agree.dtype, agree.shape) == (torch.bool, (2, 3, 5, 6))
    assert torch.equal(agree[1, 2], flow.consistency(forward[1, 0], backward[2]))
    hole = torch.zeros(3, 3, 2)
    hole[1, 1, 0] = torch.nan
    agree = flow.consistency(hole, torch.zeros(3, 3, 2))
    assert agree.sum() == 8
    assert not agree[1, 1]
    learned = torch.zeros(2, 2, 2, requires_grad=True)
    assert not flow.consistency(learned, learned).requires_grad


@pytest.mark.parametrize("size", [(1, 1), (5, 7), (40, 31)])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 300.0])
def test_colours_match_torchvision(size, scale):
    """Except bytes that wrap from 0 to 255 there, where a length of 1 is rounded up."""
    random = np.random.default_rng(3)
    for whole in (False, True):
        values = random.normal(size=(*size, 2)) * 4
        field = torch.tensor((values.round() if whole else values) * scale, dtype=torch.float32)
        truth = flow_to_image(field.movedim(-1, 0))
        out = (flow.to_image(field) * 255).floor().to(torch.uint8)
        differ = out != truth
        assert bool(((truth[differ] == 255) & (out[differ] == 0)).all())
        assert differ.sum() <= 1


def test_each_flow_of_a_batch_is_scaled_by_its_own_longest_offset():
    fields = noise(2, 3, 6, 5, 2) * torch.tensor([1.0, 9.0, 0.01]).reshape(3, 1, 1, 1)
    image = flow.to_image(fields)
    assert (image.shape, image.dtype) == ((2, 3, 3, 6, 5), torch.float64)
    assert image.min() >= 0
    assert image.max() <= 1
    for index in np.ndindex(2, 3):
        assert torch.equal(image[index], flow.to_image(fields[index]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_colour_is_below_0_where_rounding_makes_the_longest_offset_longer_than_1(dtype):
    """As it does for some 5 in 1,000 directions of float32, 1 of float64, after the division."""
    angle = torch.linspace(0, 2 * torch.pi, 20_000, dtype=dtype)
    offsets = 1e6 * torch.stack((angle.cos(), angle.sin()), -1)
    colours = flow.to_image(offsets[:, None, None])  # each is the longest of its own flow
    assert colours.min() == 0
    assert colours.max() <= 1


def test_no_motion_is_white_and_nan_is_black():
    assert (flow.to_image(torch.zeros(2, 2, 2)) == 1).all()
    field = torch.zeros(1, 3, 2)
    field[0, 0, 0], field[0, 1, 1] = 2.0, torch.inf
    image = flow.to_image(field)
    np.testing.assert_allclose(image[:, 0, 0], [1, 0, 0], atol=1e-6)  # right is red
    assert (image[:, 0, 1] == 0).all()
    assert (image[:, 0, 2] == 1).all()
    assert flow.to_image(field.bfloat16()).dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: flow.resize(torch.zeros(2, 4, 5), (2, 2)), "resize: `flow` must be of shape"),
        (lambda: flow.resize(torch.zeros(4, 5, 2), 3), "resize: `size` must be (H, W)"),
        (
            lambda: flow.consistency(torch.zeros(4, 5, 2), torch.zeros(4, 5)),
            "consistency: `backward` must be of shape (..., h, w, 2)",
        ),
        (
            lambda: flow.consistency(torch.zeros(4, 5, 2), torch.zeros(4, 5, 2), tolerance=-1),
            "consistency: `tolerance` must be a number above 0",
        ),
        (
            lambda: flow.consistency(torch.zeros(2, 4, 5, 2), torch.zeros(3, 4, 5, 2)),
            "consistency: the batch dimensions of `forward` and `backward` must broadcast",
        ),
        (lambda: flow.to_image(torch.zeros(4, 5)), "to_image: `flow` must be of shape"),
    ],
)
def test_errors(build, text):
    with pytest.raises((ValueError, TypeError)) as error:
        build()
    assert str(error.value).startswith(text)
