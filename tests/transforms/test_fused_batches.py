"""Fused(per_image=True): every image of a batch as if alone, in one call."""

from __future__ import annotations

import re

import PIL.Image
import pytest
import torch
from torchvision import tv_tensors
from torchvision.transforms import v2

import warpkit as wk
from tests.support.inputs import noise
from tests.support.tolerances import TOLERANCE
from tests.transforms.test_transforms import HAS_KEYPOINTS
from warpkit.transforms import (
    CenterCrop,
    ElasticTransform,
    Fused,
    RandomAffine,
    RandomHorizontalFlip,
    RandomPerspective,
    RandomResizedCrop,
    RandomRotation,
    RandomVerticalFlip,
    Resize,
)

NEAR = {"rtol": 0, "atol": TOLERANCE["torchvision float64"]}


def steps() -> list:
    """Transforms that apply to some images only, and minify some of them."""
    return [
        RandomHorizontalFlip(),
        RandomAffine(30, scale=(0.4, 1.5), interpolation="bilinear"),
        RandomPerspective(0.3),
        RandomResizedCrop((10, 12), (0.5, 1.0)),
    ]


def test_every_image_gets_its_result_alone():
    """With the same seed, images draw one after another; each has its own map and sampling."""
    batch, one = Fused(steps(), per_image=True), Fused(steps())
    images = noise(5, 3, 20, 22)
    inputs = {
        "images": tv_tensors.Image(images),
        "videos": tv_tensors.Video(images[:, None].expand(5, 2, 3, 20, 22)),
        "planes": tv_tensors.Mask((images[:, 0] * 5).to(torch.uint8)),
        "masks": tv_tensors.Mask((images[:, :2] * 5).to(torch.uint8)),
        "labels": torch.arange(5),
    }
    if HAS_KEYPOINTS:
        inputs["points"] = tv_tensors.KeyPoints(torch.rand(5, 4, 2) * 20, canvas_size=(20, 22))
    torch.manual_seed(1)
    got = batch(inputs)
    assert got["labels"] is inputs["labels"]
    torch.manual_seed(1)
    for k in range(5):
        alone = {name: x[k] for name, x in inputs.items() if name != "labels"}
        typed = {name: tv_tensors.wrap(x, like=inputs[name]) for name, x in alone.items()}
        for name, wanted in one(typed).items():
            torch.testing.assert_close(got[name][k], wanted.as_subclass(torch.Tensor), **NEAR)
    assert type(got["planes"]) is tv_tensors.Mask
    assert got["planes"].shape == (5, 10, 12)
    params = batch.make_params([images])
    matrices = batch.map(params, (20, 22))
    assert matrices.shape == (5, 3, 3)
    assert batch.output_size(params, (20, 22)) == (10, 12)
    assert len({tuple(matrix.flatten().tolist()) for matrix in matrices}) == 5


def test_the_maps_give_the_same_batch_with_warp_affine():
    made = [RandomAffine((5, 40), (0.2, 0.2), interpolation="bilinear"), RandomHorizontalFlip()]
    fused, images = Fused(made, per_image=True), noise(4, 1, 16, 18).requires_grad_()
    params = fused.make_params([images])
    got = fused.transform(images, params)
    wanted = wk.warp_affine(images, fused.map(params, (16, 18)))
    torch.testing.assert_close(got, wanted, **NEAR)
    (grad,) = torch.autograd.grad(got.square().sum(), images)
    (expected,) = torch.autograd.grad(wanted.square().sum(), images)
    torch.testing.assert_close(grad, expected, **NEAR)


def test_batches_with_elastic_fields_and_copied_images():
    images = noise(3, 2, 16, 14)
    bent = Fused([RandomRotation(20, "bilinear"), ElasticTransform(20.0, 1.0)], per_image=True)
    params = bent.make_params([images])
    flows = bent.map(params, (16, 14))
    assert flows.shape == (3, 16, 14, 2)
    assert not torch.equal(flows[0], flows[1])
    got, wanted = bent.transform(images, params), wk.warp_flow(images, flows, antialias=True)
    torch.testing.assert_close(got, wanted, **NEAR)
    flips = Fused([RandomHorizontalFlip(), RandomVerticalFlip()], per_image=True)
    images[:, 0, 3, 3] = torch.nan  # copied, not blended
    torch.manual_seed(2)
    flipped = flips(images)
    marked = flipped[:, 0].isnan().nonzero().tolist()
    ways = {(3, 3): (), (3, 10): (-1,), (12, 3): (-2,), (12, 10): (-1, -2)}
    assert len({(y, x) for _, y, x in marked}) > 1
    for image, result, (_, y, x) in zip(images, flipped, marked, strict=True):
        assert torch.equal(result.nan_to_num(-1), image.flip(ways[y, x]).nan_to_num(-1))
    still = Fused([Resize((8, 7)), CenterCrop(6)], per_image=True)
    wanted = wk.resize(images, (8, 7))[..., 1:7, 0:6]
    assert torch.equal(still(images)[:, 1], wanted[:, 1])
    assert Fused(steps(), per_image=True)(images[:0]).shape[0] == 0


def test_a_barrier_gets_the_whole_batch():
    fused = Fused([RandomHorizontalFlip(), v2.Normalize([0.5], [0.5])], per_image=True)
    images = noise(6, 1, 4, 5)
    torch.manual_seed(0)
    got = fused(images) * 0.5 + 0.5
    flipped = [bool((a != b).any()) for a, b in zip(got, images, strict=True)]
    assert 0 < sum(flipped) < 6


BATCH = tv_tensors.Image(torch.ones(2, 3, 8, 9))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (torch.ones(3, 8, 9), "`inpt` must be of shape (B, C, H, W) with per_image=True, got Ten"),
        (PIL.Image.new("RGB", (9, 8)), "`inpt` must be a tensor with per_image=True, got Image"),
        (
            (BATCH, tv_tensors.Mask(torch.ones(3, 8, 9))),
            "`inpt` must be of one batch with per_image=True, got [2, 3]",
        ),
        (
            (
                BATCH,
                tv_tensors.BoundingBoxes(torch.ones(2, 4), format="XYXY", canvas_size=(8, 9)),
            ),
            "`inpt` must be without boxes with per_image=True: torchvision's belong to one",
        ),
        (tv_tensors.Video(torch.ones(2, 3, 8, 9)), "`inpt` must be of shape (B, T, C, H, W) with"),
    ],
)
def test_inputs_without_a_batch_are_rejected(given, text: str):
    fused = Fused([RandomRotation(10), RandomHorizontalFlip()], per_image=True)
    with pytest.raises((ValueError, TypeError), match="^Fused: " + re.escape(text)):
        fused(given)


def test_different_output_sizes_are_rejected():
    turn = RandomRotation(80, expand=True)
    with pytest.raises(ValueError, match="that give every image of a batch one size"):
        Fused([turn, RandomHorizontalFlip()], per_image=True)(noise(4, 1, 9, 20))
    assert Fused([turn, Resize((5, 6))], per_image=True)(noise(4, 1, 9, 20)).shape[2:] == (5, 6)
