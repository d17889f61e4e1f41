"""paste_patches with a flow: it warps the patch, the matrix places it, sampled once."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

import warpkit as wk
from tests.support.inputs import bend, noise
from tests.support.naive_warp import sample as naive_sample
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE


def tilted(count=2):
    """Matrices (N, 2, 3) that lay 6 x 7 pixels on an image of 12 x 14, partly beyond it."""
    angle = torch.tensor([25.0, -140.0, 80.0]).double()[:count]
    boxes = torch.tensor([[1.3, 2.1, 9.0, 8.8], [-2.0, 3.0, 6.5, 13.0], [5, 5, 13, 10]])
    return wk.box_to_matrix(boxes[:count].double(), (6, 7), angle=angle)


def test_a_bent_patch_matches_numpy():
    """Each pixel of the image is mapped to the patch's frame, clamped, and moved by the flow."""
    image, patch, mask = noise(1, 2, 12, 14), noise(2, 4, 5, seed=1), noise(1, 4, 5, seed=2)
    field, matrix = bend(6, 7, size=1.5, seed=5), tilted(1)
    ours = wk.paste_patches(image, patch, matrix, None, mask=mask, opacity=0.7, flow=field)
    full = np.vstack((matrix[0].numpy(), (0, 0, 1)))
    y, x = np.mgrid[:12, :14]
    place = (np.stack((x, y, np.ones_like(x)), -1) @ np.linalg.inv(full).T)[..., :2]
    held = np.clip(place, 0, (6, 5))
    share = np.clip(1 - np.abs(place - held), 0, None).prod(-1)
    channels = np.moveaxis(field.numpy(), -1, 0)
    move = naive_sample(channels, held, "bilinear", "replicate", np.zeros((2, 12, 14)))
    look = held + np.moveaxis(move, 0, -1)
    source = np.concatenate(((patch * mask).numpy(), mask.numpy()))
    found = naive_sample(source, look, "bilinear", "constant", np.zeros((3, 12, 14)))
    alpha = 0.7 * share * found[2]
    truth = image[0].numpy() * (1 - alpha) + 0.7 * share * found[:2]
    assert np.abs(ours[0].numpy() - truth).max() < TOLERANCE["objects against the loop"]
    assert (alpha > 0).sum() > 20


def test_at_whole_pixels_a_bent_patch_equals_the_warped_patch():
    image, patches = noise(1, 1, 12, 14), noise(2, 1, 5, 5, seed=1)
    fields = bend(2, 6, 7, size=3, seed=5)
    matrices = torch.tensor([[[1.0, 0, 3], [0, 1, 2]], [[1, 0, 6], [0, 1, 4]]]).double()
    ours = wk.paste_patches(image, patches, matrices, [0, 0], flow=fields)
    truth = image.clone()
    for patch, field, (x, y) in zip(patches, fields, ((3, 2), (6, 4)), strict=True):
        colour, alpha = (wk.warp_flow(t, field) for t in (patch, torch.ones_like(patch)))
        part = truth[0, :, y : y + 6, x : x + 7]
        part.copy_(colour + (1 - alpha) * part)
    assert (ours - truth).abs().max() < 1e-13


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
def test_a_flow_of_zeros_changes_nothing(interpolation):
    image, patches = noise(2, 3, 12, 14), noise(3, 3, 6, 7, seed=1)
    options = {"interpolation": interpolation, "mask": noise(3, 1, 6, 7, seed=2)}
    plain = wk.paste_patches(image, patches, tilted(3), [0, 1, 1], **options)
    still = wk.paste_patches(
        image, patches, tilted(3), [0, 1, 1], flow=torch.zeros(6, 7, 2), **options
    )
    assert (still - plain).abs().max() < TOLERANCE["objects against the loop"]
    labels = torch.arange(12 * 14).reshape(1, 12, 14).int()
    patch = torch.full((1, 6, 7), 2**31 - 1).int()
    results = [
        wk.paste_patches(labels, patch, tilted(), [0, 0], interpolation="nearest", **flow)
        for flow in ({}, {"flow": torch.zeros(2, 6, 7, 2)})
    ]
    assert torch.equal(*results)


def test_gradients():
    """Matrices below one pixel per step keep the lookups in the flow away from its pixels."""
    image, patch = noise(1, 1, 6, 7), noise(1, 3, 3, seed=1)
    fields = bend(2, 3, 4, size=0.6, seed=5)
    boxes = torch.tensor([[0.6, 1.3, 5.2, 5.1], [2.2, 0.4, 6.3, 4.7]]).double()
    matrices = wk.box_to_matrix(boxes, (3, 4), angle=torch.tensor([20.0, -65.0]).double())
    leaves = tuple(t.clone().requires_grad_() for t in (image, patch, matrices, fields))

    def run(i, p, m, f):
        return wk.paste_patches(i, p, m, [0, 0], flow=f)

    assert gradcheck(run, leaves, check_forward_ad=True)
    assert gradgradcheck(run, leaves)
    holes = fields.clone()
    holes[0, 1, 1], holes[1, 0, 0] = torch.nan, 1e300
    holes = holes.requires_grad_()
    out = run(image, patch, matrices, holes)
    assert out.isfinite().all()
    assert torch.autograd.grad(out.sum(), holes)[0].isfinite().all()


@pytest.mark.parametrize(
    ("shape", "got"),
    [
        ((2, 3, 3, 2), "(2, 3, 3, 2)"),
        ((3, 2), "(3, 2)"),
        ((1, 2, 3, 3), "(1, 2, 3, 3): (..., 2, h, w) is flow.movedim(-3, -1)"),
    ],
    ids=["two flows", "points", "channels first"],
)
def test_errors(shape, got):
    images, patches, matrices = torch.zeros(1, 1, 4, 4), torch.zeros(1, 3, 3), torch.eye(2, 3)[None]
    text = "paste_patches: `flow` must be of shape (1, h, w, 2), or (h, w, 2) for all objects, got "
    with pytest.raises(ValueError, match=re.escape(text + got)):
        wk.paste_patches(images, patches, matrices, None, flow=torch.zeros(shape))
