"""paste_patches compared with a loop of whole-image warps, and its gradients."""

from __future__ import annotations

import re

import pytest
import torch
from torch.autograd import gradcheck

import warpkit as wk
from tests.support.inputs import noise
from tests.support.naive_objects import REFUSED, paste_loop
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE

LOOP = TOLERANCE["objects against the loop"]


def placed(count: int, *, size=(4, 5), seed: int = 0) -> torch.Tensor:
    """Matrices that rotate and scale patches onto boxes that extend beyond a 15 x 18 image."""
    generator = torch.Generator().manual_seed(seed)
    low = torch.rand(count, 2, generator=generator, dtype=torch.float64) * 20 - 4
    side = torch.rand(count, 2, generator=generator, dtype=torch.float64) * 8 + 0.5
    angle = torch.rand(count, generator=generator, dtype=torch.float64) * 360
    return wk.box_to_matrix(torch.cat((low, low + side), 1), size, angle=angle)


@pytest.mark.filterwarnings("ignore:.*under nearest interpolation")
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos4"])
@pytest.mark.parametrize("kind", ["one", "each", "masks", "one mask", "opacity"])
def test_pastes_equal_the_loop(interpolation, kind):
    count, index = 9, torch.tensor([2, 0, 2, 2, 0, 0, 2, 0, 2])
    images, matrices = noise(3, 2, 15, 18), placed(count)
    patches = noise(2, 4, 5, seed=1) if kind == "one" else noise(count, 2, 4, 5, seed=1)
    mask = {"masks": noise(count, 1, 4, 5, seed=2), "one mask": noise(1, 4, 5, seed=2)}.get(kind)
    opacity = noise(count, seed=3) if kind == "opacity" else None
    inputs = [t for t in (images, patches, matrices, mask, opacity) if t is not None]
    results = []
    for run in ("ours", "loop"):
        leaves = [t.clone().requires_grad_() for t in inputs]
        rest = iter(leaves[3:])
        options = {"mask": mask if mask is None else next(rest)}
        options["opacity"] = opacity if opacity is None else next(rest)
        if run == "ours":
            options["opacity"] = 1.0 if opacity is None else options["opacity"]
            value = wk.paste_patches(*leaves[:3], index, interpolation=interpolation, **options)
        else:
            value = paste_loop(*leaves[:3], index, interpolation=interpolation, **options)
        total = (value * noise(*value.shape, seed=9)).sum()
        gradients = torch.autograd.grad(total, leaves, allow_unused=interpolation == "nearest")
        results.append([value.detach(), *gradients])
    for ours, theirs in zip(*results, strict=True):
        ours, theirs = (torch.zeros(()) if t is None else t for t in (ours, theirs))
        torch.testing.assert_close(*torch.broadcast_tensors(ours, theirs), atol=LOOP, rtol=0)
    assert torch.equal(results[0][0][1], images[1])


def test_perspectives_that_cross_the_horizon_equal_the_loop():
    images, patch = noise(1, 1, 12, 14), noise(1, 5, 5, seed=1)
    matrices = torch.tensor(
        [
            [[1.2, 0.1, 2.0], [0.2, 1.1, 1.0], [0.02, 0.03, 1.0]],
            [[1.0, 0.0, 3.0], [0.0, 1.0, 4.0], [-0.3, 0.05, 1.0]],  # w = 0 at x = 3.3 of the patch
            [[-1.0, 0.0, -2.0], [0.0, -1.0, -3.0], [0.0, 0.0, -1.0]],  # w < 0: a shift by (2, 3)
        ],
        dtype=torch.float64,
    )
    index = torch.zeros(3, dtype=torch.long)
    ours = wk.paste_patches(images, patch, matrices, index)
    expected = images
    for matrix in matrices:
        both = wk.warp_perspective(
            torch.cat((patch, torch.ones_like(patch))), matrix, size=(12, 14)
        )
        expected = both[:1] + (1 - both[1:]) * expected
    torch.testing.assert_close(ours, expected, atol=LOOP, rtol=0)


def test_a_patch_replaces_a_whole_box():
    images, patch = noise(1, 2, 8, 9), noise(2, 3, 4, seed=1)
    matrix = wk.box_to_matrix(torch.tensor([[2.0, 4.0, 6.0, 7.0]]), (3, 4))
    result = wk.paste_patches(images, patch, matrix, None)
    expected = images.clone()
    expected[0, :, 4:7, 2:6] = patch
    torch.testing.assert_close(result, expected, atol=LOOP, rtol=0)


def test_edges_do_not_darken():
    """White on white with a soft mask stays white under any rotation."""
    images = torch.ones(1, 1, 20, 20, dtype=torch.float64)
    patch = torch.zeros(1, 8, 8, dtype=torch.float64)
    patch[:, 2:6, 2:6] = 1
    result = wk.paste_patches(images, patch, placed(5, size=(8, 8)), [0] * 5, mask=patch)
    torch.testing.assert_close(result, images, atol=LOOP, rtol=0)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16, torch.bfloat16, torch.float32])
def test_every_type_is_composited(dtype):
    images = noise(2, 3, 9, 10, dtype=dtype)
    patch = noise(3, 4, 4, dtype=dtype, seed=1)
    matrices, index = placed(4, size=(4, 4), seed=2), torch.tensor([1, 0, 1, 1])
    result = wk.paste_patches(images, patch, matrices, index)
    assert result.dtype == dtype
    exact = wk.paste_patches(images.double(), patch.double(), matrices, index)
    if not dtype.is_floating_point:
        assert torch.equal(result.double(), exact.round())
        return
    name = "reference float32" if dtype == torch.float32 else str(dtype).removeprefix("torch.")
    torch.testing.assert_close(result.double(), exact, atol=TOLERANCE[name], rtol=0)


def test_types_with_the_same_range_can_be_mixed():
    matrices, images = torch.eye(2, 3)[None], torch.zeros(1, 4, 4)
    expected = torch.zeros(1, 4, 4)
    expected[:, :2, :2] = 1
    for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.bool):
        pasted = wk.paste_patches(images, torch.ones(1, 2, 2, dtype=dtype), matrices, None)
        assert torch.equal(pasted, expected), dtype
    for dtype in (torch.int16, torch.int64):
        patch = torch.full((1, 2, 2), 200, dtype=dtype)
        pasted = wk.paste_patches(images.byte(), patch, matrices, None)
        assert torch.equal(pasted, expected.byte() * 200)


def test_nothing_to_paste():
    images = noise(2, 1, 5, 5)
    none = torch.zeros(0, 2, 3)
    empty = torch.zeros(0, dtype=torch.long)
    assert torch.equal(wk.paste_patches(images, noise(1, 2, 2), none, empty), images)
    assert torch.equal(wk.paste_patches(images, noise(0, 1, 2, 2), none, empty), images)
    away = torch.tensor([[[1.0, 0, 50], [0, 1, 0]], [[1, 0, -3e10], [0, 1, 0]]])
    broken = torch.tensor([[[0.0, 0, 1], [0, 0, 1]], [[torch.nan, 0, 1], [0, 1, 0]]])
    for matrices in (away, broken):
        assert torch.equal(wk.paste_patches(images, noise(1, 2, 2), matrices, [0, 1]), images)


@pytest.mark.parametrize("rows", [2, 3])
def test_gradients(rows):
    boxes = torch.tensor([[0.6, 1.3, 4.2, 4.6], [1.7, 0.4, 5.4, 4.2]], dtype=torch.float64)
    matrices = wk.box_to_matrix(boxes, (3, 3), angle=torch.tensor([20.0, -65.0]).double())
    if rows == 3:
        last = torch.tensor([[[0.01, -0.02, 1.0]]], dtype=torch.float64).expand(2, 1, 3)
        matrices = torch.cat((matrices, last), 1)
    inputs = (noise(1, 1, 5, 6), noise(1, 3, 3, seed=1), matrices)
    more = (noise(2, 1, 3, 3, seed=2), noise(2, seed=3))
    inputs = tuple(t.clone().requires_grad_() for t in (*inputs, *more))

    def run(images, patches, matrices, mask, opacity):
        return wk.paste_patches(images, patches, matrices, None, mask=mask, opacity=opacity)

    assert wk.paste_patches(*inputs[:3], None).ne(inputs[0]).sum() > 10
    assert gradcheck(run, inputs, check_forward_ad=True)
    assert gradgradcheck(run, inputs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *REFUSED,
        (
            {"matrices": torch.zeros(2, 3)},
            "`matrices` must be of shape (N, 2, 3) or (N, 3, 3), got (2, 3)",
        ),
        (
            {"patches": torch.zeros(2, 3, 3)},
            "`patches` must be of shape (1, 1, h, w), or (1, h, w) for all objects, got (2, 3, 3)",
        ),
        (
            {"patches": torch.zeros(2, 1, 3, 3)},
            "`patches` must be of shape (1, 1, h, w), or (1, h, w) for all objects, got (2, 1, 3",
        ),
        (
            {"mask": torch.zeros(1, 4, 4)},
            "`mask` must be of shape (1, 1, 3, 3), or (1, 3, 3) for all objects, got (1, 4, 4)",
        ),
        (
            {"image_index": torch.tensor([7])},
            "`image_index` must be in [0, 2), the number of images, got 7 at 0",
        ),
        ({"image_index": None}, "`image_index` must be given for 2 images, got None"),
        (
            {"images": torch.zeros(2, 1, 4, 4, dtype=torch.uint8)},
            "`patches` must be integers, as the images of torch.uint8 are (1.0 in floats is 255 in",
        ),
        (
            {"patches": torch.zeros(1, 3, 3, dtype=torch.uint8)},
            (
                "`patches` must be floats, as the images of torch.float32 are (1.0 in floats is "
                "255 in bytes: convert one), got torch.uint8"
            ),
        ),
        ({"patches": None}, "`patches` must be a tensor of shape (1, 1, h, w), or (1, h, w) for"),
    ],
)
def test_errors_name_the_argument(change, message):
    given = {
        "images": torch.zeros(2, 1, 4, 4),
        "patches": torch.zeros(1, 3, 3),
        "matrices": torch.eye(2, 3)[None],
        "image_index": torch.tensor([0]),
    }
    with pytest.raises((ValueError, TypeError), match=re.escape(f"paste_patches: {message}")):
        wk.paste_patches(**(given | change))
