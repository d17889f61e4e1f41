"""Fused: a run's map compared with matrices by hand, its sampling with the true image."""

from __future__ import annotations

import numpy as np
import PIL.Image
import pytest
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

import warpkit as wk
from tests.support.inputs import noise
from tests.support.runs_by_hand import (
    LONG,
    SMALL,
    by_hand,
    carried,
    drawn,
    long_run,
    picture,
    smooth,
)
from tests.transforms.test_transforms import HAS_KEYPOINTS, both
from warpkit import transforms
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


@pytest.mark.parametrize("seed", range(4))
def test_the_map_is_the_product_of_matrices_by_hand(seed: int):
    fused = long_run(interpolation="bilinear")
    params = drawn(fused, SMALL, seed)
    matrix, size = by_hand(fused, params["draws"], SMALL)
    assert fused.output_size(params, SMALL) == size == (14, 20)
    half = np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1]])
    expected = np.linalg.inv(half) @ matrix @ half
    got = fused.map(params, SMALL).numpy()
    np.testing.assert_allclose(got / got[2, 2], expected / expected[2, 2], rtol=0, atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_draws_labels_and_sizes_equal_composes(seed: int):
    """Key points are never clamped, so torchvision's after all steps equal ours after one.

    The first step is left out, since torchvision misplaces points on an expanded image.
    """
    steps = [*long_run(interpolation="bilinear").transforms[1:], v2.ColorJitter(0.5)]
    named = [getattr(v2, name)(**made) for name, made in LONG[1:]]
    ours, theirs = Fused(steps), v2.Compose([*named, v2.ColorJitter(0.5)])
    inputs = {
        "image": tv_tensors.Image(noise(3, *SMALL)),
        "mask": tv_tensors.Mask(torch.zeros(2, *SMALL, dtype=torch.uint8)),
        "boxes": tv_tensors.BoundingBoxes(
            torch.tensor([[0.0, 0, 28, 20]]), format="XYXY", canvas_size=SMALL
        ),
        "number": torch.tensor(3),
        "name": "a",
    }
    if HAS_KEYPOINTS:
        inputs["points"] = tv_tensors.KeyPoints(torch.rand(5, 2) * 20, canvas_size=SMALL)
    results, after = [], []
    for transform in (ours, theirs):
        torch.manual_seed(seed)
        results.append(transform(inputs))
        after.append(torch.rand(1))
    (got, wanted), (next_of_ours, next_of_theirs) = results, after
    assert torch.equal(next_of_ours, next_of_theirs)
    assert got["name"] == "a"
    assert got["number"] is inputs["number"]
    for name in inputs.keys() - {"name"}:
        assert type(got[name]) is type(wanted[name])
        assert got[name].shape == wanted[name].shape
        if name in ("boxes", "points"):
            assert got[name].canvas_size == wanted[name].canvas_size
    if HAS_KEYPOINTS:
        torch.testing.assert_close(got["points"], wanted["points"], rtol=0, atol=1e-3)


def true_mean(to_source: np.ndarray, size: tuple[int, int], n: int = 9) -> np.ndarray:
    """`smooth` under a matrix in edge coordinates, as the mean of n x n points per pixel."""
    offsets = (np.arange(n) + 0.5) / n - 0.5
    y, x = (np.arange(k)[:, None] + offsets for k in size)
    x, y = np.broadcast_arrays(x[None, None], y[:, :, None, None])
    seen = carried(to_source, np.stack((x, y), -1))
    return smooth(seen[..., 0], seen[..., 1]).mean((1, 3))


@pytest.mark.parametrize("smaller", [False, True])
def test_one_sampling_is_closer_to_the_true_image(smaller: bool):
    """Five transforms of an image with a formula, in float64, away from the border."""
    steps = [
        RandomRotation((20, 20), "bilinear"),
        RandomAffine(0, scale=(1.2, 1.2), shear=(8, 8), interpolation="bilinear"),
        RandomRotation((-33, -33), "bilinear"),
        RandomHorizontalFlip(p=1.0),
        Resize((24, 24) if smaller else (96, 96)),
    ]
    image, fused = picture(64, 64), Fused(steps)
    params = fused.make_params([image])
    to_source = np.linalg.inv(fused.map(params, (64, 64)).numpy())
    true = true_mean(to_source, (24, 24) if smaller else (96, 96), 9 if smaller else 1)
    middle = np.s_[6:-6, 6:-6] if smaller else np.s_[24:-24, 24:-24]
    got = fused(image)[0].numpy()
    in_turn = v2.Compose(steps)(image)[0].numpy()
    errors = [np.sqrt(((a - true)[middle] ** 2).mean()) for a in (got, in_turn)]
    assert errors[0] < (0.006 if smaller else 0.008)
    assert errors[1] > 2.5 * errors[0]


@pytest.mark.parametrize("name", [name for name, _ in LONG] + ["ElasticTransform"])
def test_a_single_fused_transform_equals_the_transform(name: str):
    arguments = {**dict(LONG), "ElasticTransform": {"alpha": 9.0, "sigma": 2.0}}[name]
    made = getattr(transforms, name)(**arguments)
    inputs = {
        "image": tv_tensors.Image(noise(3, *SMALL)),
        "mask": tv_tensors.Mask(noise(*SMALL, dtype=torch.uint8)),
        "boxes": tv_tensors.BoundingBoxes(
            torch.tensor([[2, 3, 9, 14]]), format="XYWH", canvas_size=SMALL
        ),
    }
    got, wanted = both(Fused([made]), made, inputs)
    assert all(torch.equal(got[name], wanted[name]) for name in inputs)
    assert got["boxes"].canvas_size == wanted["boxes"].canvas_size


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.float64])
def test_flips_crops_and_identities_copy_pixels(dtype: torch.dtype):
    """Also next to a value that is not finite, and with an interpolation that rounds."""
    image = noise(3, 12, 14, dtype=torch.uint8).to(dtype)
    if dtype == torch.int64:
        image += 2**62
    if dtype.is_floating_point:
        image[0, 3, 4] = torch.inf
    flips = RandomHorizontalFlip(1.0), RandomVerticalFlip(1.0)
    for steps, wanted in (
        ([*flips, CenterCrop((7, 9))], image.flip(-1, -2)[:, 2:9, 2:11]),
        ([CenterCrop(16), *flips], torch.nn.functional.pad(image.flip(-1, -2), (1, 1, 2, 2))),
        ([RandomAffine(0, interpolation="bicubic"), RandomRotation(0, "lanczos4")], image),
        ([RandomRotation((90, 90), "lanczos4", expand=True), *flips], image.rot90(-1, (1, 2))),
        ([RandomResizedCrop((12, 14), (1, 1), (14 / 12, 14 / 12)), *flips], image.flip(-1, -2)),
    ):
        got = Fused(steps)(image)
        assert torch.equal(got, wanted), steps
    palette = PIL.Image.new("P", (6, 5), 3)
    assert Fused([*flips, CenterCrop(4)])(palette).mode == "P"


def test_a_barrier_runs_in_its_place():
    """It gets a sampled image, and the following transforms are sampled again."""
    given = []

    def barrier(image: Tensor) -> Tensor:
        given.append(image)
        return image + 1

    image = picture(20, 20)
    one = [RandomAffine(0, scale=(0.5, 0.5), interpolation="bilinear"), RandomHorizontalFlip(1.0)]
    two = [RandomVerticalFlip(1.0), CenterCrop(16)]
    got = Fused([*one, barrier, *two])(image)
    assert torch.equal(given[0], Fused(one)(image))
    assert torch.equal(got, Fused(two)(given[0] + 1))
    assert got[0, 0, 0] == 1  # the fill of the first run, plus 1
    assert Fused([barrier])(image).shape == image.shape


def test_a_single_sampling_shows_pixels_that_a_canvas_between_would_cut():
    image = torch.ones(1, 40, 40)
    steps = [CenterCrop(20), RandomRotation((45, 45), "bilinear")]
    assert (Fused(steps)(image) == 1).all()
    assert v2.Compose(steps)(image)[0, 0, 0] == 0
    # an enlarged image that fills the canvas does not fade into the fill at its edge
    steps = [Resize(120), RandomAffine(0, interpolation="bilinear"), RandomHorizontalFlip(1.0)]
    assert (Fused(steps)(image) == 1).all()
    assert Fused([Resize(60), RandomRotation((45, 45), "bilinear", fill=3)])(image)[0, 0, 0] == 3


def test_an_elastic_field_is_composed_with_matrices():
    """ElasticTransform between matrices, by hand with numpy's interpolation, at every pixel."""
    fused = Fused(
        [
            RandomRotation((25, 25), "bilinear"),
            ElasticTransform(60.0, 3.0),
            RandomHorizontalFlip(1.0),
            Resize((30, 20)),
        ]
    )
    size = (26, 32)
    params = drawn(fused, size, 0)
    turn, elastic, flip, resize = (
        t.map(p, s).numpy()
        for t, p, s in zip(fused.transforms, params["draws"], [size] * 4, strict=True)
    )
    y, x = np.mgrid[:30, :20].astype(float)
    bent = carried(np.linalg.inv(resize @ flip), np.stack((x, y), -1))
    left, top = (np.clip(np.floor(bent[..., k]), 0, size[1 - k] - 2).astype(int) for k in (0, 1))
    u, v = (np.clip(bent[..., k] - at, 0, 1)[..., None] for k, at in enumerate((left, top)))
    upper = (1 - u) * elastic[top, left] + u * elastic[top, left + 1]
    lower = (1 - u) * elastic[top + 1, left] + u * elastic[top + 1, left + 1]
    seen = carried(np.linalg.inv(turn), bent + (1 - v) * upper + v * lower)
    flow = fused.map(params, size)
    assert flow.shape == (30, 20, 2)
    np.testing.assert_allclose(flow.numpy() + np.stack((x, y), -1), seen, rtol=0, atol=1e-10)
    image = picture(*size)
    interior = (torch.from_numpy(seen) > 1).all(-1) & (torch.from_numpy(seen) < 24).all(-1)
    true = torch.from_numpy(smooth(seen[..., 0], seen[..., 1]))
    error = fused.transform(image, params)[0] - true
    assert interior.sum() > 150
    assert error[interior].abs().max() < 0.06
    if not HAS_KEYPOINTS:
        return
    # a point moves to the pixel that reads it; without the flip, which uses pixel centres
    at = flow[12, 8] + torch.tensor([8.0, 12.0]) + 0.5
    points = tv_tensors.KeyPoints(at[None], canvas_size=size)
    (turned, bent, _, resized) = params["draws"]
    moved = fused.transform(points, {"draws": [turned, bent, None, resized]})
    expected = torch.tensor([20 - 8.5, 12.5], dtype=torch.float64)
    torch.testing.assert_close(moved[0].as_subclass(Tensor), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("tilt", [0.0, 0.3])
def test_minified_parts_are_averaged_as_by_antialias(tilt: float):
    """Half of the image is minified and half magnified, or all is minified by 2.6 and 1.7."""
    turn = RandomAffine((20, 20), scale=(0.5, 0.5), interpolation="bilinear")
    fused = Fused([turn, RandomPerspective(tilt, 1.0), Resize((20, 30))])
    params = {"draws": [*drawn(fused, (26, 26), 2)["draws"]]}
    if tilt:  # from 0.4 to 1.6 times the size
        params["draws"][1] = {"coefficients": [0.5, 0.0, 5, 0, 0.5, 4, 0.0, -0.025]}
        params["draws"][0] = None
    image = noise(3, 26, 26)
    matrix = fused.map(params, (26, 26))
    options = {"size": (20, 30), "antialias": True}
    wanted = wk.warp_perspective(image, matrix, **options)
    plain = wk.warp_perspective(image, matrix, size=(20, 30))
    torch.testing.assert_close(fused.transform(image, params), wanted, rtol=0, atol=1e-9)
    changed = (wanted != plain).double().mean()
    assert (0.1 < changed < 0.9) if tilt else changed > 0.2


def test_gradients_reach_the_image():
    steps = [
        RandomRotation((20, 20), "bilinear"),
        RandomAffine(0, shear=9, interpolation="bilinear"),
    ]
    fused = Fused([*steps, Resize((6, 5))])
    params = drawn(fused, (7, 8), 0)
    image = noise(1, 7, 8).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: fused.transform(x, params), image)
