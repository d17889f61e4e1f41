"""Images of any strides: kernels read them in place, with the values of a dense image.

The bytes that a call allocates are counted; times are in the benchmarks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

import warpkit as wk
from tests.support.allocations import allocated
from tests.support.views import TYPES, VIEWS, rows

HEIGHT, WIDTH = 600, 801
SMALL = 300_000
"""Bytes: more than a result of 3 x 32 x 32 and what a call needs beside it (50,000), and fewer than
the smallest picture has (355,000)."""

MATRIX = torch.tensor([[6.1, 0.3, 3.2], [0.1, 6.3, 4.1]])
SHRINKING = torch.tensor([[0.6, 0.05, 3.2], [0.1, 0.7, -20.0]])
HOMOGRAPHY = torch.cat((MATRIX, torch.tensor([[1e-6, 2e-6, 1.0]])))
CAMERA = torch.tensor([[500.0, 0, 16], [0, 500, 16], [0, 0, 1]])
FLOW = torch.randn(32, 32, 2, generator=torch.Generator().manual_seed(4)) + 9
POINTS = 500 * torch.rand(32, 32, 2, generator=torch.Generator().manual_seed(1)) + 20


WARPS: dict[str, Callable[[Tensor], Tensor]] = {
    "affine": lambda x: wk.warp_affine(x, MATRIX, size=(32, 32)),
    "affine, nearest": lambda x: wk.warp_affine(x, MATRIX, size=(32, 32), interpolation="nearest"),
    "affine, bicubic": lambda x: wk.warp_affine(x, MATRIX, size=(32, 32), interpolation="bicubic"),
    "affine, enlarged": lambda x: wk.warp_affine(x, MATRIX / 8, size=(32, 32), border="reflect"),
    "affine, antialias": lambda x: wk.warp_affine(x, SHRINKING, size=(16, 16), antialias=True),
    "remap, antialias": lambda x: wk.remap(x, POINTS[:4, :4] / 50, antialias=True),
    "perspective, antialias": lambda x: wk.warp_perspective(
        x, torch.cat((SHRINKING, HOMOGRAPHY[2:])), size=(16, 16), antialias=2
    ),
    "affine, opencv5": lambda x: wk.warp_affine(x, MATRIX, size=(32, 32), arithmetic="opencv5"),
    "perspective": lambda x: wk.warp_perspective(x, HOMOGRAPHY, size=(32, 32)),
    "remap": lambda x: wk.remap(x, POINTS),
    "camera.from_sphere": lambda x: wk.camera.from_sphere(
        x[..., :200, :400], (32, 32), field_of_view=60.0
    ),
    "crop_patches": lambda x: wk.crop_patches(
        x.reshape(-1, *x.shape[-3:]), [[7.0, 9.0, 59.0, 49.0]], [0], (32, 32)
    ),
    "warp_flow": lambda x: wk.warp_flow(x, FLOW),
    "camera.undistort": lambda x: wk.camera.undistort(x, CAMERA, (-0.2, 0.05, 0, 0), size=(32, 32)),
    "sample_pixels": lambda x: wk.sample_pixels(x, POINTS[0]),
    "camera.from_sphere, antialias": lambda x: wk.camera.from_sphere(
        x[..., :200, :400], (16, 16), field_of_view=60.0, antialias=2
    ),
    "warp_perspective, opencv4": lambda x: wk.warp_perspective(
        x, HOMOGRAPHY, size=(32, 32), arithmetic="opencv4"
    ),
}


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", WARPS)
def test_a_view_is_read_in_place(name, view, dtype):
    if "opencv" in name and dtype in TYPES[2:]:
        return  # OpenCV warps no halves
    call, image = WARPS[name], VIEWS[view](rows(HEIGHT, WIDTH, dtype))
    first = call(image)
    assert torch.equal(call(image), first)
    assert torch.equal(first, call(image.contiguous()))
    assert allocated(lambda: call(image)) < SMALL


def test_a_copy_would_be_counted():
    image = VIEWS["transposed planes"](rows(HEIGHT, WIDTH, torch.uint8))
    assert allocated(lambda: image.contiguous()) >= image.numel() > 4 * SMALL


@pytest.mark.parametrize("view", VIEWS)
def test_gradients_of_a_view_are_those_of_a_dense_image(view):
    """The gradient to the matrix reads the image in place; only the image's own is as large."""
    image = VIEWS[view](rows(HEIGHT, WIDTH, torch.float32))
    weight = torch.randn((*image.shape[:-2], 32, 32), generator=torch.Generator().manual_seed(3))

    def gradients(image: Tensor, to_image: bool) -> tuple[Tensor, ...]:
        image, matrix = image.detach().requires_grad_(to_image), MATRIX.clone().requires_grad_()
        made = wk.warp_affine(image, matrix, size=(32, 32))
        return torch.autograd.grad((made * weight).sum(), [matrix, image][: 1 + to_image])

    for one, other in zip(gradients(image, True), gradients(image.contiguous(), True), strict=True):
        assert torch.equal(one, other)
    assert allocated(lambda: gradients(image, False)) < 2 * SMALL
    both = allocated(lambda: gradients(image, True))
    assert both < 1.1 * image.numel() * image.element_size() + 2 * SMALL


BOX = torch.tensor([[100.0, 40, 180, 100]])
TURN = torch.tensor([[[0.9, 0.2, 8.3], [-0.2, 0.9, 9.1]]])

PAINTERS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "paste_patches": lambda x, index: wk.paste_patches(
        x, torch.ones(x.shape[-3], 40, 50) / 3, TURN, index, opacity=0.75
    ),
    "transform_patches": lambda x, index: wk.transform_patches(x, BOX, TURN, index),
    "transform_patches, transparent": lambda x, index: wk.transform_patches(
        x, BOX, TURN, index, border="transparent"
    ),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", PAINTERS)
def test_a_view_is_painted_on_in_place(name, view):
    image = VIEWS[view](rows(HEIGHT, WIDTH, torch.float32))
    if image.ndim == 5:
        return  # refused
    index = torch.tensor([0]) if image.ndim == 4 else None
    call = PAINTERS[name]
    results, slopes = [], []
    for given in (image, image.contiguous(), image):
        leaf = given.detach().requires_grad_()
        made = call(leaf, index)
        assert allocated(partial(call, given, index)) < 4 * image.numel() + SMALL
        results.append(made.detach())
        slopes += torch.autograd.grad((made * made).sum(), leaf)
    assert not torch.equal(results[0], image)
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])
    assert torch.equal(slopes[0], slopes[1])
    assert torch.equal(slopes[0], slopes[2])
    one = image[:1]
    last = image.ndim == 4 and one.stride() != one.contiguous().stride()
    last = last and one.movedim(1, -1).is_contiguous()
    assert results[0].movedim(-3, -1 if last else -3).is_contiguous()
