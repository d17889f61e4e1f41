"""Transforms compared with torchvision's: the same draws, pixels, boxes and keypoints."""

from __future__ import annotations

import importlib
import re
import sys

import numpy as np
import PIL.Image
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

from tests.support.inputs import noise
from tests.support.tolerances import TOLERANCE
from warpkit import transforms
from warpkit.transforms import RandomAffine, RandomPerspective

HAS_KEYPOINTS = hasattr(tv_tensors, "KeyPoints")
"""torchvision 0.22, that of torch 2.7, has none to move."""
NEAREST = v2.InterpolationMode.NEAREST
AFFINE = {
    "angle": {"degrees": 50},
    "fixed angle": {"degrees": (30, 30)},
    "translate": {"degrees": 0, "translate": (0.2, 0.3)},
    "scale": {"degrees": 0, "scale": (0.5, 1.7)},
    "shear x": {"degrees": 0, "shear": 30},
    "shear range": {"degrees": 0, "shear": (10, 30)},
    "shear x, y": {"degrees": 0, "shear": (-20, 30, 5, 25)},
    "all": {
        "degrees": (-90, 40),
        "translate": (0.1, 0.2),
        "scale": (0.7, 1.2),
        "shear": (-9, 9, 5, 9),
    },
    "center": {"degrees": 70, "center": (3, 11)},
}
SMOOTH = F.interpolate(noise(2, 3, 6, 5), (24, 21), mode="bicubic").clamp(0, 1)
"""Positions in float32 differ by 1e-6 of the width from ours: on noise that shows, in nearest most
of all."""


def both(ours, theirs, *inputs, seed: int = 0):
    """The results of two transforms from one seed."""
    results = []
    for transform in (ours, theirs):
        torch.manual_seed(seed)
        results.append(transform(*inputs))
    return results


def filled(theirs, fill, seed: int) -> Tensor:
    """SMOOTH under one of torchvision's transforms without a fill, composited over the fill.

    With a fill, torchvision multiplies a pixel on the edge by its coverage twice.
    """
    torch.manual_seed(seed)
    moved = theirs(torch.cat((SMOOTH, torch.ones_like(SMOOTH[:, :1])), dim=1))
    fill = torch.tensor(fill, dtype=torch.float64).reshape(-1, 1, 1)
    return moved[:, :3] + (1 - moved[:, 3:]) * fill


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("fill", [0, 0.25, (0.1, 0.5, 0.9)])
@pytest.mark.parametrize("case", AFFINE)
def test_affine_transforms_match_torchvision(case: str, fill, seed: int):
    options = {"interpolation": v2.InterpolationMode.BILINEAR, **AFFINE[case]}
    expected = filled(v2.RandomAffine(**options, fill=None), fill, seed)
    torch.manual_seed(seed)
    got = RandomAffine(**options, fill=fill)(SMOOTH)
    torch.testing.assert_close(got, expected, rtol=0, atol=TOLERANCE["torchvision float64"])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("distortion", [0.0, 0.3, 0.5, 0.9])
def test_perspective_transforms_match_torchvision(distortion: float, seed: int):
    options = {"distortion_scale": distortion, "p": 1.0}
    expected = filled(v2.RandomPerspective(**options, fill=None), 0.25, seed)
    torch.manual_seed(seed)
    got = RandomPerspective(**options, fill=0.25)(SMOOTH)
    torch.testing.assert_close(got, expected, rtol=0, atol=TOLERANCE["torchvision float64"])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "make",
    [
        lambda module: module.RandomAffine(40, scale=(0.7, 1.3)),
        lambda module: module.RandomPerspective(0.5, p=1.0, interpolation=NEAREST),
    ],
)
def test_nearest_matches_torchvision(make, seed: int):
    """The same pixels, except where rounding decides between two."""
    image = noise(3, 24, 21, dtype=torch.uint8)
    got, expected = both(make(transforms), make(v2), image, seed=seed)
    assert (got != expected).any(0).sum() <= 2


@pytest.mark.parametrize("seed", range(3))
def test_8_bit_images_match_torchvision_to_one_level(seed: int):
    image = (SMOOTH * 255).round().to(torch.uint8)
    options = {"degrees": 40, "interpolation": v2.InterpolationMode.BILINEAR, "fill": None}
    got, expected = both(RandomAffine(**options), v2.RandomAffine(**options), image, seed=seed)
    assert got.dtype == torch.uint8
    assert (got.int() - expected.int()).abs().max() <= 1


@pytest.mark.parametrize("seed", range(4))
def test_random_application_matches_torchvision(seed: int):
    options = {"distortion_scale": 0.5, "p": 0.5}
    got, expected = both(
        RandomPerspective(**options), v2.RandomPerspective(**options), SMOOTH, seed=seed
    )
    assert torch.equal(got, SMOOTH) == torch.equal(expected, SMOOTH)


def scene() -> tuple[dict, Tensor]:
    """A nested sample: a white rectangle with its mask, box and middle."""
    image = torch.zeros(1, 60, 80)
    image[:, 20:35, 30:55] = 1.0
    sample = {
        "image": tv_tensors.Image(image),
        "video": tv_tensors.Video(image.expand(2, 1, 60, 80)),
        "mask": tv_tensors.Mask(image.to(torch.int64) * 7),
        "flags": tv_tensors.Mask(image[0].bool()),
        "none": tv_tensors.Mask(torch.zeros(0, 60, 80, dtype=torch.bool)),
        "boxes": tv_tensors.BoundingBoxes(
            torch.tensor([[30.0, 20, 25, 15]]), format="XYWH", canvas_size=(60, 80)
        ),
        "label": 3,
    }
    if HAS_KEYPOINTS:
        middle = torch.tensor([[42.5, 27.5]])
        sample["points"] = tv_tensors.KeyPoints(middle, canvas_size=(60, 80))
    return sample, image


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "transform",
    [
        RandomAffine(40, translate=(0.1, 0.1), scale=(0.8, 1.2), shear=15),
        RandomPerspective(0.4, p=1.0),
    ],
)
def test_images_masks_boxes_and_points_move_together(transform, seed: int):
    sample, image = scene()
    torch.manual_seed(seed)
    moved = transform(sample)
    seen = moved["image"][0] > 0.5
    for name in sample.keys() - {"label"}:
        assert type(moved[name]) is type(sample[name])
        assert moved[name].dtype == sample[name].dtype
        assert moved[name].shape == sample[name].shape
    assert torch.equal(moved["video"][1], moved["image"])
    assert set(moved["mask"].unique().tolist()) == {0, 7}
    assert torch.equal(moved["flags"], moved["mask"][0] == 7)
    assert (moved["flags"] != seen).sum() <= 0.02 * seen.sum()  # ties on the edge
    y, x = seen.nonzero(as_tuple=True)
    left, top, width, height = moved["boxes"][0].tolist()
    hull = (x.min().item(), y.min().item(), x.max().item() + 1, y.max().item() + 1)
    # pixels at a slanted corner are less than half white, so the hull is up to a pixel smaller
    for ours, theirs in zip((left, top, left + width, top + height), hull, strict=True):
        assert abs(ours - theirs) < 1.5
    if HAS_KEYPOINTS:
        middle = torch.stack((x, y), 1).float().mean(0) + 0.5
        # in whole pixels; under a perspective the visible middle is not the moved middle
        reach = 0.4 if isinstance(transform, RandomAffine) else 2.0
        assert (moved["points"][0] - middle).abs().max() < reach
    assert moved["label"] == 3
    assert image.sum() == 375  # not modified


def test_fills_for_each_type():
    fill = {tv_tensors.Image: 0.5, tv_tensors.Mask: 9, "others": 0}
    sample, _ = scene()
    moved = RandomAffine(0, scale=(0.5, 0.5), fill=fill)(sample)
    assert moved["image"][0, 0, 0] == 0.5
    assert moved["mask"][0, 0, 0] == 9
    assert moved["video"][0, 0, 0, 0] == 0
    assert RandomAffine(0, scale=(0.5, 0.5), fill=None)(sample)["image"][0, 0, 0] == 0


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
def test_pil_images_stay_pil_images(mode: str):
    channels = len(mode)
    array = noise(12, 15, channels, dtype=torch.uint8).numpy()
    image = PIL.Image.fromarray(array[..., 0] if mode == "L" else array)
    torch.manual_seed(3)
    got = RandomAffine(40)(image)
    assert (got.mode, got.size) == (mode, image.size)
    torch.manual_seed(3)
    expected = RandomAffine(40)(torch.from_numpy(array).permute(2, 0, 1))
    assert np.array_equal(
        np.array(got).reshape(12, 15, channels), expected.permute(1, 2, 0).numpy()
    )


@pytest.mark.parametrize("mode", ["L", "LA", "RGBX", "CMYK", "YCbCr", "HSV", "I;16", "F"])
def test_every_mode_of_pil_is_kept(mode: str):
    array = (noise(5, 6) * 60000).numpy().astype("uint16" if mode == "I;16" else "float32")
    image = PIL.Image.fromarray(array)
    if mode not in ("I;16", "F"):
        image = PIL.Image.fromarray(noise(5, 6, dtype=torch.uint8).numpy())
        image = image.convert(mode) if mode in ("L", "LA") else image.convert("RGB").convert(mode)
    turned = RandomAffine((180, 180))(image)
    assert turned.mode == mode
    assert np.array_equal(np.array(turned), np.array(image)[::-1, ::-1])


@pytest.mark.parametrize("mode", ["1", "P"])
def test_unsupported_modes_of_pil_are_rejected(mode: str):
    text = "`inpt` must be a PIL image of one of the modes L, LA, RGB"
    with pytest.raises(ValueError, match=f"^RandomAffine: {text}.*, got '{mode}'$"):
        RandomAffine(40)(PIL.Image.new(mode, (6, 5)))


def test_gradients_reach_the_image_with_a_fill():
    """Torchvision 0.28 raises an error here."""
    image = SMOOTH.clone().requires_grad_()
    RandomAffine(40, interpolation="bilinear", fill=0.5)(image).sum().backward()
    assert (image.grad != 0).float().mean() > 0.5


def test_warpkits_borders_are_accepted():
    torch.manual_seed(0)
    moved = RandomAffine(0, scale=(0.5, 0.5), border="replicate")(torch.ones(1, 8, 8))
    assert (moved == 1).all()


def test_transforms_inside_compose():
    turn = RandomAffine(10)
    pipeline = v2.Compose([RandomPerspective(p=1.0), turn, v2.Resize(8, antialias=True)])
    assert pipeline(torch.rand(3, 16, 16)).shape == (3, 8, 8)
    assert "RandomAffine(degrees=[-10.0, 10.0], interpolation=nearest, fill=0" in repr(turn)


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (
            lambda: RandomAffine(10, interpolation="lanczos"),
            (
                "RandomAffine: `interpolation` must be one of 'nearest', 'bilinear', 'bicubic', "
                "'lanczos4', got 'lanczos'"
            ),
        ),
        (
            lambda: RandomPerspective(0.5, border="transparent"),
            (
                "RandomPerspective: `border` must be one of 'constant', 'replicate', 'reflect', "
                "'reflect_101', 'wrap', 'zeros', 'border', got 'transparent'"
            ),
        ),
        (lambda: RandomAffine(10, scale=(0, 1)), "scale values should be positive"),
        (lambda: RandomAffine(-10), "If degrees is a single number, it must be positive"),
    ],
)
def test_arguments_are_checked(build, text: str):
    with pytest.raises(ValueError, match=re.escape(text)):
        build()


def test_a_missing_torchvision_is_reported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "torchvision", None)
    monkeypatch.delitem(sys.modules, "warpkit.transforms")
    needs = "warpkit.transforms needs torchvision: pip install '.[torchvision]' in a checkout"
    with pytest.raises(ModuleNotFoundError, match=re.escape(needs)):
        importlib.import_module("warpkit.transforms")
