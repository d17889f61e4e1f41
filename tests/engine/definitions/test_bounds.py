"""Gradients at the bound of a clamp, where versions of torch differ."""

from __future__ import annotations

import pytest
import torch

import warpkit as wk
from tests.support.inputs import noise
from warpkit.engine.definitions.bounds import at_least_zero, clamped


def test_values_at_the_bounds_have_a_gradient_and_nan_is_kept():
    x = torch.tensor([-1.0, 0.0, 0.5, 2.0, 3.0, torch.nan], requires_grad=True)
    result = clamped(x, 0, 2)
    torch.testing.assert_close(result.detach(), x.detach().clamp(0, 2), equal_nan=True)
    (grad,) = torch.autograd.grad(result.nansum(), x)
    assert grad[:5].tolist() == [0, 1, 1, 1, 0]
    edge = torch.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    (grad,) = torch.autograd.grad(at_least_zero(edge).sum(), edge)
    assert grad.tolist() == [0, 1, 1]


@pytest.mark.parametrize("overlap", ["last", "sequential"])
def test_a_soft_box_on_whole_pixels_has_the_inward_slope(overlap):
    """An edge that moves inwards uncovers this pixel; outwards, it would cover the next one."""
    image = noise(1, 8, 9)
    box = torch.tensor([[2.0, 1.0, 6.0, 5.0]], dtype=torch.float64, requires_grad=True)
    away = torch.tensor([[[1.0, 0.0, 99.0], [0.0, 1.0, 0.0]]])

    def painted(box):
        options = {"edge": "soft", "border_value": 2.0, "overlap": overlap}
        return wk.transform_patches(image, box, away, None, **options).sum()

    (grad,) = torch.autograd.grad(painted(box), box)
    value, step = painted(box.detach()), 1e-6
    for k in range(4):
        move = torch.zeros(1, 4, dtype=torch.float64)
        move[0, k] = step
        out, back = painted(box.detach() + move) - value, value - painted(box.detach() - move)
        assert abs(out - back) > 1e-7, k  # the function has a kink here
        inwards = (out if k < 2 else back) / step
        assert grad[0, k].item() == pytest.approx(inwards.item(), abs=1e-6), k


def test_a_resized_box_on_whole_pixels_has_the_right_hand_slope():
    """As a warp has on a pixel: the triangle's peak is on this pixel, its end on the next."""
    image = noise(1, 1, 9)
    box = torch.tensor([3.0, 0.0, 6.0, 1.0], dtype=torch.float64, requires_grad=True)
    result = wk.resize(image, (1, 3), box=box, antialias=True)
    torch.testing.assert_close(result, image[..., 3:6])
    (grad,) = torch.autograd.grad(result[0, 0, 1], box)
    shift = grad[0] + grad[2]  # both edges together; one alone also changes the scale
    torch.testing.assert_close(shift, image[0, 0, 5] - image[0, 0, 4])
