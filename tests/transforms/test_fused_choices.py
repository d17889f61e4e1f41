"""Choices that a run makes once for its transforms: sizes to draw for, and interpolation."""

from __future__ import annotations

import itertools

import pytest
import torch
from torchvision import tv_tensors
from torchvision.transforms import v2

import warpkit as wk
from tests.support.inputs import noise
from tests.transforms.test_transforms import both
from warpkit.transforms import (
    CenterCrop,
    Fused,
    RandomAffine,
    RandomPerspective,
    RandomResizedCrop,
    RandomRotation,
    Resize,
)

SIZE = (12, 40)
ORDER = ("nearest", "bilinear", "bicubic", "lanczos4")
"""From the coarsest to the finest."""
CHANGES = {
    "resize": (Resize((50, 20)), (50, 20)),
    "crop": (CenterCrop((30, 9)), (30, 9)),
    "pad": (v2.Pad((1, 20, 2, 5)), (37, 43)),
    "random crop": (v2.RandomCrop((8, 11)), (8, 11)),
    "turn": (RandomRotation((90, 90), expand=True), (40, 12)),
}
DRAWERS = {
    "resized crop": RandomResizedCrop(8, scale=(0.2, 0.3)),
    "affine": RandomAffine(0, translate=(0.4, 0.4)),
    "perspective": RandomPerspective(0.6, p=1.0),
    "random crop": v2.RandomCrop((7, 8)),
}


@pytest.mark.parametrize("drawer", DRAWERS)
@pytest.mark.parametrize("change", CHANGES)
def test_each_transform_draws_for_the_size_of_the_one_before(change: str, drawer: str):
    """As torchvision's does from the same seed for an image of that size."""
    first, size = CHANGES[change]
    second = DRAWERS[drawer]
    theirs = getattr(v2, type(second).__name__)
    fused = Fused([first, second])
    differs = False
    for seed in range(8):
        torch.manual_seed(seed)
        draws = fused.make_params([torch.empty(1, *SIZE)])["draws"]
        torch.manual_seed(seed)
        first.make_params([torch.empty(1, *SIZE)])
        if hasattr(second, "p"):
            torch.rand(1)
        state = torch.get_rng_state()
        assert draws[1] == theirs.make_params(second, [torch.empty(1, *size)]), seed
        torch.set_rng_state(state)
        differs |= draws[1] != theirs.make_params(second, [torch.empty(1, *SIZE)])
    assert differs  # the image's own size would have given other draws


def test_a_crop_may_lie_outside_the_original_image():
    """Pixel by pixel: the second transform crops an image that the first has enlarged."""
    resize = Resize((48, 40), "nearest")
    for seed in range(8):
        steps = [resize, v2.RandomCrop((6, 38))]
        got, wanted = both(Fused(steps), v2.Compose(steps), noise(1, *SIZE), seed=seed)
        assert torch.equal(got, wanted), seed


@pytest.mark.parametrize("per_image", [False, True])
@pytest.mark.parametrize(("one", "two"), list(itertools.permutations(ORDER, 2)))
def test_the_finest_interpolation_is_used(one: str, two: str, per_image: bool):
    """In any order; the map is sampled by the public function, and masks by nearest."""
    steps = [RandomRotation((25, 25), one), RandomAffine((10, 10), interpolation=two)]
    fused = Fused(steps, per_image=per_image)
    image = noise(1, 2, 20, 22)
    params = fused.make_params([image])
    matrix = fused.map(params, (20, 22)).reshape(3, 3)[:2]
    finest = max(one, two, key=ORDER.index)
    wanted = wk.warp_affine(image, matrix, interpolation=finest, antialias=True)
    coarse = wk.warp_affine(image, matrix, interpolation=min(one, two, key=ORDER.index))
    got = fused.transform(image, params)
    torch.testing.assert_close(got, wanted, rtol=0, atol=1e-12)
    assert (got - coarse).abs().max() > 1e-2
    mask = noise(1, 2, 20, 22, dtype=torch.uint8)
    wanted = wk.warp_affine(mask, matrix, interpolation="nearest")
    assert torch.equal(fused.transform(tv_tensors.Mask(mask), params), wanted)
