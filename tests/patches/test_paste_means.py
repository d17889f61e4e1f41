"""paste_patches(antialias=): means over each pixel's square, beside brute-force sampling."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

import warpkit as wk
from tests.support.inputs import bend, noise
from tests.support.naive_warp import sample as naive_sample
from tests.support.tolerances import TOLERANCE

FINE = 48
"""Samples along each axis of a pixel in the truth."""


def truth(
    image: Tensor, patch: Tensor, mask: Tensor, matrix: Tensor, opacity: float, flow=None
) -> np.ndarray:
    """The mean over FINE x FINE places in each pixel, premultiplied, then "over"; in numpy."""
    height, width = image.shape[-2:]
    full = np.vstack((matrix.numpy(), (0, 0, 1))) if len(matrix) == 2 else matrix.numpy()
    inside = (np.arange(FINE) + 0.5) / FINE - 0.5
    x, y = (np.arange(n)[:, None] + inside for n in (width, height))
    x, y = np.meshgrid(x.ravel(), y.ravel())
    place = np.stack((x, y, np.ones_like(x)), -1) @ np.linalg.inv(full).T
    place = place[..., :2] / place[..., 2:]
    share = 1.0
    if flow is not None:
        held = np.clip(place, 0, (flow.shape[1] - 1, flow.shape[0] - 1))
        share = np.clip(1 - np.abs(place - held), 0, None).prod(-1)
        channels = np.moveaxis(flow.numpy(), -1, 0)
        move = naive_sample(channels, held, "bilinear", "replicate", np.zeros((2, *x.shape)))
        place = held + np.moveaxis(move, 0, -1)
    layers = np.concatenate(((patch * mask).numpy(), mask.numpy()))
    found = naive_sample(layers, place, "bilinear", "constant", np.zeros((len(layers), *x.shape)))
    means = (share * found).reshape(-1, height, FINE, width, FINE).mean((2, 4)) * opacity
    return means[:-1] + (1 - means[-1:]) * image.numpy()


def shrunk(scale: float, angle: float = 25.0) -> Tensor:
    """A patch of 20 x 24 pixels, made smaller and turned, onto an image of 9 x 11."""
    matrix = wk.affine_matrix(angle=angle, scale=1 / scale, center=(11.5, 9.5))
    return wk.compose(matrix, wk.affine_matrix(translation=(-6.2, -5.3))).double()


SLANTED = torch.tensor([[0.3, 0.05, 1.0], [0.02, 0.32, 0.7], [0.004, 0.01, 1.0]]).double()


@pytest.mark.parametrize("kind", ["affine", "perspective", "bent"])
def test_a_shrunk_patch_is_the_mean_over_each_pixels_square(kind: str):
    image, patch, mask = noise(2, 9, 11), noise(2, 20, 24, seed=1), noise(1, 20, 24, seed=2)
    matrix = SLANTED if kind == "perspective" else shrunk(3.4)
    flow = bend(20, 24, size=1.5, seed=5) if kind == "bent" else None
    expected = truth(image, patch, mask, matrix, 0.7, flow)
    options = {"mask": mask, "opacity": 0.7, "flow": flow}
    plain = wk.paste_patches(image, patch, matrix[None], None, **options)
    error_of_plain = np.square(plain.numpy() - expected).mean()
    for _ in range(2):
        for samples in (True, 24):
            found = wk.paste_patches(image, patch, matrix[None], None, antialias=samples, **options)
            # the module's own figure at s = 3.4, for noise: 100 to 3000 times at 4.8, 70 at 2.2
            limit = 1 / 50 if samples is True else 1e-4
            assert np.square(found.numpy() - expected).mean() < limit * error_of_plain


def test_objects_of_all_sizes_keep_their_order_and_their_images():
    """Each object beside the truth for it alone, one over the other; also in a list of images."""
    images, patches = noise(3, 2, 9, 11), noise(4, 2, 20, 24, seed=1)
    masks = noise(4, 1, 20, 24, seed=2)
    matrices = torch.stack([shrunk(3.4), shrunk(2.1, -70), shrunk(0.8, 10), shrunk(5.0, 200)])
    index = torch.tensor([2, 0, 2, 2])
    expected = images.clone()
    for patch, mask, matrix, i in zip(patches, masks, matrices, index.tolist(), strict=True):
        layers = torch.cat((patch * mask, mask))
        warped = wk.warp_affine(layers, matrix, size=(9, 11), antialias=True)
        expected[i] = warped[:-1] + (1 - warped[-1:]) * expected[i]
    for _ in range(2):
        found = wk.paste_patches(images, patches, matrices, index, mask=masks, antialias=True)
        assert (found - expected).abs().max() < TOLERANCE["objects against the loop"]
        listed = wk.paste_patches(
            list(images), patches, matrices, index, mask=masks, antialias=True
        )
        assert (torch.stack(listed) - expected).abs().max() < TOLERANCE["objects against the loop"]
        assert listed[1] is images[1] or torch.equal(listed[1], images[1])


def test_a_patch_that_is_not_made_smaller_is_the_plain_one():
    image, patch = noise(2, 9, 11), noise(2, 4, 5, seed=1)
    matrices = wk.box_to_matrix(torch.tensor([[1.0, 2, 9, 8]]).double(), (4, 5), angle=20.0)
    plain = wk.paste_patches(image, patch, matrices, None)
    for antialias in (True, 3):
        assert torch.equal(
            wk.paste_patches(image, patch, matrices, None, antialias=antialias), plain
        )
        straight = torch.cat((matrices, torch.tensor([[[0.0, 0, 1]]]).double()), 1)
        found = wk.paste_patches(image, patch, straight, None, antialias=antialias)
        assert (found - plain).abs().max() < TOLERANCE["objects against the loop"]
        flow = torch.zeros(4, 5, 2)
        bent = wk.paste_patches(image, patch, matrices, None, antialias=antialias, flow=flow)
        assert (bent - plain).abs().max() < TOLERANCE["objects against the loop"]


def test_every_pixel_of_a_large_patch_gets_a_gradient():
    image, patch = torch.zeros(1, 3, 40, 40), noise(3, 300, 300, dtype=torch.float32)
    patch.requires_grad_()
    matrix = wk.box_to_matrix(torch.tensor([[5.0, 5, 35, 35]]), (300, 300), angle=12.0)
    for antialias, least, most in ((False, 0.0, 0.05), (True, 1.0, 1.0)):
        found = wk.paste_patches(image, patch, matrix, None, antialias=antialias)
        (grad,) = torch.autograd.grad(found.sum(), patch)
        share = float((grad != 0).double().mean())
        assert least <= share <= most
        # a sum over the image: each patch pixel covers 1 / 100 of a pixel
    assert grad[:, 20:-20, 20:-20].mean() == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("kind", ["affine", "perspective", "bent"])
def test_gradients(kind: str):
    image, patch, mask = noise(1, 4, 5), noise(1, 7, 8, seed=1), noise(1, 7, 8, seed=2)
    matrix = torch.tensor([[0.4137, 0.0621, 0.3713], [-0.0719, 0.3911, 0.6177]]).double()
    flow = bend(7, 8, size=0.5, seed=5) if kind == "bent" else None
    if kind == "perspective":
        matrix = torch.cat((matrix, torch.tensor([[0.003, 0.002, 1.0]]).double()))

    def pasted(image: Tensor, patch: Tensor, mask: Tensor, matrix: Tensor, alpha: Tensor) -> Tensor:
        options = {"mask": mask, "opacity": alpha, "flow": flow, "antialias": 3}
        return wk.paste_patches(image, patch, matrix[None], None, **options)

    leaves = image, patch, mask, matrix, torch.tensor(0.6).double()
    assert gradcheck(pasted, [leaf.clone().requires_grad_() for leaf in leaves])


def test_bytes_are_rounded_once():
    image, patch = noise(2, 9, 11, dtype=torch.uint8), noise(2, 20, 24, dtype=torch.uint8, seed=1)
    matrix = shrunk(3.4)[None]
    found = wk.paste_patches(image, patch, matrix, None, antialias=True)
    exact = wk.paste_patches(image.double(), patch.double(), matrix, None, antialias=True)
    assert found.dtype == torch.uint8
    assert torch.equal(found.double(), exact.round())


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"antialias": 0}, "`antialias` must be True, False or a number of samples along an axis"),
        ({"antialias": "yes"}, "`antialias` must be True, False or a number of samples along an"),
    ],
)
def test_antialias_is_checked(options, text: str):
    with pytest.raises((TypeError, ValueError), match=re.escape(f"paste_patches: {text}")):
        wk.paste_patches(noise(1, 4, 5), noise(1, 3, 3), torch.eye(2, 3)[None], None, **options)
    labels = torch.zeros(1, 4, 5, dtype=torch.int64)
    with pytest.raises((TypeError, ValueError), match="antialias"):
        wk.paste_patches(
            labels, labels, torch.eye(2, 3)[None], None, interpolation="nearest", antialias=True
        )


def test_nothing_is_pasted_by_no_objects_and_by_matrices_without_an_inverse():
    image, patch = noise(2, 9, 11), noise(2, 20, 24, seed=1)
    none = wk.paste_patches(image, patch, torch.zeros(0, 2, 3), None, antialias=True)
    assert torch.equal(none, image)
    both = torch.stack((torch.zeros(2, 3).double(), shrunk(3.4)))
    found = wk.paste_patches(image, patch, both, [0, 0], antialias=True)
    assert torch.equal(found, wk.paste_patches(image, patch, both[1:], [0], antialias=True))
