"""Gradients of transform_patches: every input, both edges and overlaps, second order."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck

import warpkit as wk
from tests.support.inputs import noise
from tests.support.naive_objects import assert_same_with_gradients, scene, transform
from tests.support.second_order import gradgradcheck

OVERLAPS = ("last", "sequential")

BOXES = torch.tensor([[0.8, 1.2, 4.3, 4.9], [2.3, 0.7, 5.6, 3.8]], dtype=torch.float64)
TURNS = torch.tensor(
    [[[0.9, 0.2, 0.33], [-0.25, 0.95, 0.41]], [[1.1, -0.3, 0.21], [0.2, 0.8, -0.37]]]
).double()


@pytest.mark.parametrize(
    ("overlap", "edge", "space"),
    [  # every pair of edge and overlap
        ("last", "hard", "theta"),
        ("last", "soft", "pixel"),
        ("sequential", "hard", "pixel"),
        ("sequential", "soft", "theta"),
    ],
)
def test_gradients_to_images_boxes_and_matrices(overlap, edge, space):
    def run(images, boxes, matrices):
        return wk.transform_patches(
            images, boxes, matrices, None, space=space, overlap=overlap, edge=edge
        )

    inputs = [t.clone().requires_grad_() for t in (noise(1, 1, 6, 6), BOXES, TURNS)]
    entry_by_entry = overlap == "sequential" and edge == "soft"  # the most complicated case
    assert gradcheck(run, inputs, check_forward_ad=True, fast_mode=not entry_by_entry)
    assert gradgradcheck(run, inputs)


@pytest.mark.parametrize("overlap", OVERLAPS)
@pytest.mark.parametrize("border", ["constant", "replicate", "transparent"])
def test_gradients_to_masks_opacity_and_border_value(overlap, border):
    def run(images, boxes, mask, opacity, value):
        return wk.transform_patches(
            images,
            boxes,
            TURNS,
            None,
            overlap=overlap,
            edge="soft",
            mask=mask if value is None else None,
            opacity=opacity,
            border=border,
            border_value=0.0 if value is None else value,
        )

    inputs = [noise(1, 1, 6, 6), BOXES, noise(2, 1, 3, 4, seed=1), noise(2, seed=2)]
    inputs = [t.clone().requires_grad_() for t in inputs]
    image = inputs[0].detach()  # checked entry by entry without a mask above
    assert gradcheck(lambda *i: run(*i, None), inputs, check_forward_ad=True, fast_mode=True)
    assert gradcheck(lambda *i: run(image, *i, None), inputs[1:], fast_mode=border != "constant")
    assert gradgradcheck(lambda *i: run(*i, None), inputs)
    value = noise(2, 1, seed=3).requires_grad_()
    assert gradcheck(lambda *i: run(image, BOXES, None, *i), [inputs[3], value])


def test_the_compiled_kernel_agrees_with_plain_torch(monkeypatch):
    given = scene(30, seed=18, beyond=3)
    theta = given.theta.clone()
    theta[3] = torch.nan
    theta[4, :, 2] = 9.0  # reads beyond the box
    given = given._replace(theta=theta)
    value = noise(30, 2, seed=19)

    def run(s, value):
        return transform(s, border_value=value)

    def plain(s, value):
        with monkeypatch.context() as patch:
            patch.setattr("warpkit.engine.binding.operator.device_of", lambda tensors: "none")
            return transform(s, border_value=value)

    assert_same_with_gradients(given, run, plain, value)


@pytest.mark.parametrize(
    "needed", [(True, False, False), (False, True, False), (False, False, True)]
)
def test_the_compiled_kernel_can_compute_each_gradient_alone(needed):
    inputs = [noise(1, 1, 6, 6), TURNS, noise(2, 1, seed=3)]
    inputs = [t.clone().requires_grad_(want) for t, want in zip(inputs, needed, strict=True)]

    def run(images, matrices, value):
        return wk.transform_patches(images, BOXES, matrices, None, border_value=value)

    assert gradcheck(run, inputs)
    assert gradgradcheck(run, inputs)


def test_a_soft_edge_gives_the_box_a_gradient_of_its_own():
    """A uniform box on a uniform background: only the edges show where the box is."""
    image = torch.zeros(1, 8, 8, dtype=torch.float64)
    box = torch.tensor([[1.3, 2.2, 5.6, 6.4]], dtype=torch.float64, requires_grad=True)
    away = torch.tensor([[[1.0, 0.0, 99.0], [0.0, 1.0, 0.0]]])
    painted = wk.transform_patches(image, box, away, None, edge="soft", border_value=1.0).sum()
    (gradient,) = torch.autograd.grad(painted, box)
    # the painted area is (x2 - x1) (y2 - y1)
    torch.testing.assert_close(painted.detach(), torch.tensor(4.3 * 4.2, dtype=torch.float64))
    torch.testing.assert_close(gradient, torch.tensor([[-4.2, -4.3, 4.2, 4.3]]).double())
