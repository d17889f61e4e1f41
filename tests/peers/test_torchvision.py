"""Expectations of torchvision's tests of transforms, compared with torchvision.

The facts are of its test_transforms_v2; kernels and pixels are in `test_torchvision_kinds`, sizes,
types, fills and forms of images in `test_cases` and `test_family` of `tests/transforms`.
torch.jit.script is left out: torchvision's v2 transforms refuse it as well.
"""

from __future__ import annotations

import itertools
import pathlib
import pickle
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from torchvision import tv_tensors
from torchvision.transforms import v2

from tests.transforms.test_transforms import HAS_KEYPOINTS
from warpkit import transforms

IMAGE = torch.rand(3, 17, 11, generator=torch.Generator().manual_seed(0))
MADE: dict[str, dict[str, Any]] = {
    "RandomAffine": {"degrees": 30.0},
    "RandomRotation": {"degrees": 30, "expand": True},
    "RandomPerspective": {"p": 1.0},
    "RandomHorizontalFlip": {"p": 1.0},
    "RandomVerticalFlip": {"p": 1.0},
    "RandomResizedCrop": {"size": [16, 16]},
    "Resize": {"size": [16, 16]},
    "CenterCrop": {"size": [16, 16]},
    "ElasticTransform": {"sigma": 1.0},
}
REFUSED = [
    *(("RandomAffine", {"degrees": d}) for d in (-1, [1], [1, 2, 3], "a", None)),
    *(("RandomAffine", {"degrees": 0, "translate": t}) for t in ([0.0], [2.0, 0.1], [-1, 1], 0.5)),
    *(("RandomAffine", {"degrees": 0, "scale": s}) for s in ([0.5], [0.0, 1], [-1, 2], 2.0)),
    *(("RandomAffine", {"degrees": 0, "shear": s}) for s in (-7, [1], [1, 2, 3], [1, 2, 3, 4, 5])),
    *(("RandomRotation", {"degrees": d}) for d in (-3, [1], [1, 2, 3])),
    *(("RandomPerspective", {"distortion_scale": d}) for d in (1.5, -0.1)),
    *((f"Random{way}Flip", {"p": p}) for way in ("Horizontal", "Vertical") for p in (2, -0.5)),
    *(("RandomResizedCrop", {"size": s}) for s in ([1, 2, 3], ())),
    *(("RandomResizedCrop", {"size": 3, name: 0.5}) for name in ("scale", "ratio")),
    *(("Resize", {"size": s}) for s in ([1, 2, 3], (), 1.5, None)),
    *(("Resize", {"size": s, "max_size": 5}) for s in ((3, 3), 5, 6)),
    *(("CenterCrop", {"size": s}) for s in ([1, 2, 3], ())),
    *(("ElasticTransform", {name: [1, 2, 3]}) for name in ("alpha", "sigma")),
]
NAMED = {  # here torchvision fails inside torch, at the first call
    "RandomAffine: `degrees` must be (low, high)": ("RandomAffine", {"degrees": (2, 1)}),
    "RandomAffine: `scale` must": ("RandomAffine", {"degrees": 0, "scale": (2, 1)}),
    "RandomAffine: `shear` must": ("RandomAffine", {"degrees": 0, "shear": (0, 1, 2, 1)}),
    "RandomRotation: `degrees` must": ("RandomRotation", {"degrees": (float("nan"), 1)}),
    "RandomResizedCrop: `scale` must": ("RandomResizedCrop", {"size": 3, "scale": (1, 0.5)}),
    "RandomResizedCrop: `ratio` must": ("RandomResizedCrop", {"size": 3, "ratio": (2, 1)}),
    "RandomResizedCrop: `size` must be a whole": ("RandomResizedCrop", {"size": None}),
    "Resize: `size` must be a whole number": ("Resize", {"size": (0, 3)}),
    "Resize: `size` must be a whole": ("Resize", {"size": "a"}),
    "CenterCrop: `size` must be a whole number of at least 1": ("CenterCrop", {"size": -1}),
    "CenterCrop: `size` must be": ("CenterCrop", {"size": "a"}),
}


def pair(name: str, **options: Any) -> tuple[Any, Any]:
    """warpkit's and torchvision's transform."""
    return getattr(transforms, name)(**options), getattr(v2, name)(**options)


@pytest.mark.parametrize(("name", "options"), REFUSED)
@pytest.mark.filterwarnings("ignore:Scale and ratio")
def test_arguments_that_torchvision_rejects_get_its_error(name: str, options: dict[str, Any]):
    said = []
    for module in (transforms, v2):
        with pytest.raises((ValueError, TypeError)) as error:
            getattr(module, name)(**options)(IMAGE)
        said.append((type(error.value), str(error.value)))
    assert said[0] == said[1]


@pytest.mark.parametrize("text", NAMED)
@pytest.mark.filterwarnings("ignore:Scale and ratio")
def test_errors_that_torchvision_raises_late_are_raised_at_once(text: str):
    name, options = NAMED[text]
    with pytest.raises((ValueError, TypeError)) as error:
        getattr(transforms, name)(**options)
    assert str(error.value).startswith(text)


def test_draws_stay_in_their_ranges():
    torch.manual_seed(0)
    affine = transforms.RandomAffine((-7, 20), (0.1, 0.3), (0.5, 0.9), (1, 2, -4, -3))
    crop = transforms.RandomResizedCrop(5, scale=(0.3, 0.5), ratio=(0.8, 1.5))
    bend = transforms.RandomPerspective(0.4, p=1.0)
    image = torch.empty(1, 200, 300)
    for _ in range(100):
        drawn = affine.make_params([image])
        assert -7 <= drawn["angle"] <= 20
        assert abs(drawn["translate"][0]) <= 30
        assert abs(drawn["translate"][1]) <= 60
        assert 0.5 <= drawn["scale"] <= 0.9
        assert 1 <= drawn["shear"][0] <= 2
        assert -4 <= drawn["shear"][1] <= -3
        box = crop.make_params([image])
        # sides are whole pixels
        assert 0.29 < box["height"] * box["width"] / image.numel() < 0.51
        assert 0.78 < box["width"] / box["height"] < 1.53
        assert 0 <= box["top"] <= 200 - box["height"]
        assert 0 <= box["left"] <= 300 - box["width"]
        corners = torch.tensor([[-0.5, -0.5, 1], [299.5, -0.5, 1], [299.5, 199.5, 1]]).double()
        moved = corners @ bend.matrix(bend.make_params([image]), (200, 300)).mT
        # torchvision moves corners by whole pixels, within 0 to side - 1
        apart = (moved[:, :2] / moved[:, 2:] - corners[:, :2]).abs().amax(0)
        assert apart[0] <= 0.2 * 300 + 1.5
        assert apart[1] <= 0.2 * 200 + 1.5


def sample() -> dict[str, Any]:
    """Everything that a data set may hold, on one canvas."""
    size = (18, 21)
    noise = torch.Generator().manual_seed(1)
    levels = torch.randint(0, 256, (3, *size), generator=noise, dtype=torch.uint8)
    made: dict[str, Any] = {
        "image": tv_tensors.Image(levels),
        "video": tv_tensors.Video(levels.expand(2, 3, *size)),
        "picture": PIL.Image.fromarray(levels.permute(1, 2, 0).numpy()),
        "masks": tv_tensors.Mask(levels > 99),
        "segmentation": tv_tensors.Mask(levels[0].long()),
        "int": 0,
        "float": 0.0,
        "bool": True,
        "none": None,
        "str": "str",
        "path": pathlib.Path.cwd(),
        "object": object(),
        "tensor": torch.empty(5),
        "array": np.empty(5),
    }
    thin = torch.tensor([[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0], [2.0, 3, 5, 7]])
    for kind in ("XYXY", "XYWH", "CXCYWH"):
        made[kind] = tv_tensors.BoundingBoxes(thin, format=kind, canvas_size=size)  # pyright: ignore
    if HAS_KEYPOINTS:
        points = torch.tensor([[3.0, 4.0], [0.0, 17.0]])
        made["points"] = tv_tensors.KeyPoints(points, canvas_size=size)  # pyright: ignore
    return made


@pytest.mark.parametrize(
    ("name", "kind"),
    [*((name, dict) for name in (*MADE, "Fused")), ("CenterCrop", list), ("Fused", tuple)],
)
def test_nested_samples_keep_their_structure_and_types(name: str, kind: Any):
    made = sample()
    if name == "Fused":
        ours = transforms.Fused([transforms.RandomAffine(30), transforms.Resize((16, 16))])
    else:
        ours = getattr(transforms, name)(**MADE[name])
    ours = pickle.loads(pickle.dumps(ours))
    given = made if kind is dict else kind(made.values())
    out = ours(given)
    assert type(out) is kind
    outputs = list(out.values() if kind is dict else out)
    sizes = set()
    for before, after in zip(made.values(), outputs, strict=True):
        moves = isinstance(before, (tv_tensors.TVTensor, PIL.Image.Image))
        assert type(after) is type(before) if moves else after is before
        if isinstance(before, torch.Tensor):
            assert after.dtype == before.dtype
        if isinstance(before, tv_tensors.BoundingBoxes):
            assert after.format == before.format
        if moves:
            sizes.add(tuple(v2.functional.get_size(after)))
    assert len(sizes) == 1


def test_a_plain_tensor_is_an_image_only_without_other_images():
    """Of several plain tensors only the first counts as an image."""
    plain = torch.arange(12.0).reshape(1, 3, 4)
    others = (tv_tensors.Image(plain), tv_tensors.Video(plain[None]))
    picture = PIL.Image.fromarray(np.zeros((3, 4), np.uint8))
    flip, theirs = pair("RandomHorizontalFlip", p=1.0)
    both = transforms.Fused([flip, transforms.RandomVerticalFlip(1.0)])
    for given in itertools.permutations((plain, plain + 1, *others, picture), 3):
        wanted = theirs(*given)
        for out, truth in zip(flip(*given), wanted, strict=True):
            assert type(out) is type(truth)
            assert np.array_equal(np.asarray(out), np.asarray(truth))
        for out, truth, before in zip(both(*given), wanted, given, strict=True):
            assert (out is before) == (truth is before)


@pytest.mark.parametrize(
    ("size", "most"),
    [
        (17, None),
        ([16], None),
        (11, None),
        (5, 7),
        ([30], 50),
        (None, 9),
        (None, 40),
        ((9, 30), None),
    ],
)
@pytest.mark.parametrize("canvas", [(17, 11), (11, 17), (11, 11), (6, 40)])
def test_sizes_by_one_side_and_by_the_longest_side(size: Any, most: Any, canvas: tuple[int, int]):
    ours, theirs = pair("Resize", size=size, max_size=most)
    image = torch.zeros(1, *canvas)
    assert ours(image).shape == theirs(image).shape
    assert ours.output_size({}, canvas) == tuple(theirs(image).shape[1:])


def test_resizing_to_the_same_size_changes_no_bit():
    image = IMAGE.clone()
    image[0, 0, 0] = torch.nan
    for given in (image, tv_tensors.Image(image), (image * 255).to(torch.uint8)):
        for name in ("bilinear", "bicubic", "nearest"):
            out = transforms.Resize((17, 11), name)(given)
            assert torch.equal(out.nan_to_num(), given.nan_to_num())


@pytest.mark.parametrize("size", [(4, 2), (4,), [5], 5, (4, 3), 1, (30, 5), (5, 31), 60])
def test_center_crops_match_torchvision(size: Any):
    ours, theirs = pair("CenterCrop", size=size)
    boxes = tv_tensors.BoundingBoxes(  # pyright: ignore
        [[1.0, 2, 6, 9], [0, 0, 11, 17]], format="XYXY", canvas_size=(17, 11)
    )
    picture = PIL.Image.fromarray((IMAGE * 255).byte().permute(1, 2, 0).numpy())
    for given in (IMAGE, tv_tensors.Mask(IMAGE > 0.5), boxes):
        assert torch.equal(ours(given), theirs(given))
    assert np.array_equal(np.asarray(ours(picture)), np.asarray(theirs(picture)))


@pytest.mark.parametrize("alpha", [10, 10.0, [10.0], (3.0, 9.0)])
@pytest.mark.parametrize("sigma", [1, 0.7, [0.5], (1.0, 0.4)])
def test_elastic_fields_match_torchvisions_draw(alpha: Any, sigma: Any):
    drawn = []
    for transform in pair("ElasticTransform", alpha=alpha, sigma=sigma):
        torch.manual_seed(3)
        drawn.append(transform.make_params([torch.empty(3, 17, 11)])["displacement"])
    assert drawn[0].shape == (1, 17, 11, 2)
    assert torch.equal(*drawn)


@pytest.mark.parametrize("p", [0.0, 1.0])
@pytest.mark.parametrize(
    "name", ["RandomHorizontalFlip", "RandomVerticalFlip", "RandomPerspective"]
)
def test_probabilities_of_0_and_1(name: str, p: float):
    ours = getattr(transforms, name)(p=p)
    for seed in range(5):
        torch.manual_seed(seed)
        assert (ours(IMAGE) is IMAGE) == (p == 0.0), seed


@pytest.mark.parametrize("padding", [None, 1, (1, 1), (1, 1, 1, 1)])
def test_a_crop_that_is_larger_than_the_image_is_rejected(padding: Any):
    """torchvision's own, in a run."""
    fused = transforms.Fused([v2.RandomCrop((20, 14), padding=padding)])
    with pytest.raises(ValueError, match=r"larger than (padded )?input image size"):
        fused(IMAGE)
    assert transforms.Fused([v2.RandomCrop((20, 14), 2)])(IMAGE).shape == (3, 20, 14)
