"""The other transforms compared with torchvision: draws, pixels, boxes, keypoints, and `map`."""

from __future__ import annotations

import PIL.Image
import pytest
import torch
import torch.nn.functional as F
from torchvision import tv_tensors
from torchvision.transforms import v2

import warpkit as wk
from tests.support.inputs import noise
from tests.support.tolerances import TOLERANCE
from tests.transforms.test_transforms import HAS_KEYPOINTS, SMOOTH, both, filled
from warpkit import transforms
from warpkit.transforms import (
    CenterCrop,
    ElasticTransform,
    RandomAffine,
    RandomHorizontalFlip,
    RandomPerspective,
    RandomResizedCrop,
    RandomRotation,
    RandomVerticalFlip,
    Resize,
)

SIZE = tuple(SMOOTH.shape[-2:])
FAMILY = {
    "affine": (RandomAffine, {"degrees": 40, "translate": (0.1, 0.2), "scale": (0.7, 1.3)}),
    "perspective": (RandomPerspective, {"distortion_scale": 0.4, "p": 1.0}),
    "rotation": (RandomRotation, {"degrees": 50}),
    "rotation about a point": (RandomRotation, {"degrees": (20, 50), "center": (3, 7)}),
    "rotation, expanded": (RandomRotation, {"degrees": (20, 50), "expand": True}),
    "horizontal flip": (RandomHorizontalFlip, {"p": 1.0}),
    "vertical flip": (RandomVerticalFlip, {"p": 1.0}),
    "crop, resized": (RandomResizedCrop, {"size": (18, 20)}),
    "resize": (Resize, {"size": (18, 30)}),
    "resize, one side": (Resize, {"size": 12, "max_size": 16}),
    "crop": (CenterCrop, {"size": (11, 16)}),
    "crop, padded": (CenterCrop, {"size": (30, 25)}),
    "elastic": (ElasticTransform, {"alpha": 20.0, "sigma": 4.0}),
}


def pair(name: str, **options):
    """warpkit's and torchvision's transform of one name."""
    made, arguments = FAMILY[name]
    theirs = getattr(v2, made.__name__)
    takes = {**arguments, **options}
    if "interpolation" in options and made in (
        RandomHorizontalFlip,
        RandomVerticalFlip,
        CenterCrop,
    ):
        takes = arguments
    return made(**takes), theirs(**takes)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", FAMILY)
def test_pixels_match_torchvision(name: str, seed: int):
    """float64, bilinear. Without a fill, with which torchvision counts an edge's coverage twice."""
    ours, theirs = pair(name, interpolation="bilinear")
    if isinstance(ours, (RandomRotation, RandomAffine, RandomPerspective, ElasticTransform)):
        theirs._fill = v2._utils._setup_fill_arg(None)
        torch.manual_seed(seed)
        got = ours(SMOOTH)
        wanted = filled(theirs, 0.0, seed)
    else:
        got, wanted = both(ours, theirs, SMOOTH, seed=seed)
    torch.testing.assert_close(got, wanted, rtol=0, atol=TOLERANCE["torchvision float64"])


@pytest.mark.parametrize("name", FAMILY)
def test_boxes_masks_and_points_move_with_the_image(name: str):
    """One call and one draw: labels by nearest, boxes and keypoints by torchvision's code.

    On an expanded canvas torchvision misplaces them; see test_expand.
    """
    ours, theirs = pair(name, interpolation="bilinear")
    image = tv_tensors.Image(SMOOTH[0])
    mask = tv_tensors.Mask((SMOOTH[0, :1] > 0.5).byte())
    boxes = tv_tensors.BoundingBoxes(
        torch.tensor([[3.0, 4, 12, 15]]), format="XYXY", canvas_size=SIZE
    )
    inputs = {"image": image, "mask": mask, "boxes": boxes}
    if HAS_KEYPOINTS:
        inputs["points"] = tv_tensors.KeyPoints(torch.tensor([[5.0, 6.0]]), canvas_size=SIZE)
    got, wanted = both(ours, theirs, inputs, seed=3)
    assert got["mask"].shape[-2:] == got["image"].shape[-2:]
    assert got["mask"].unique().numel() <= 2
    assert isinstance(got["mask"], tv_tensors.Mask)
    assert got["boxes"].canvas_size == got["image"].shape[-2:] == wanted["image"].shape[-2:]
    if getattr(ours, "expand", False):
        return
    assert torch.equal(got["boxes"], wanted["boxes"])
    if HAS_KEYPOINTS:
        assert torch.equal(got["points"], wanted["points"])


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", FAMILY)
def test_map_gives_the_new_positions_of_pixels(name: str, seed: int):
    """A soft dot appears where the map moves it, for every transform."""
    ours, _ = pair(name, interpolation="bilinear")
    torch.manual_seed(seed)
    params = ours.make_params([SMOOTH])
    at = torch.tensor([[10.0, 11.0]], dtype=torch.float64)
    y, x = (torch.arange(n).double() for n in SIZE)
    dot = torch.exp(-((x - at[0, 0]) ** 2 + (y[:, None] - at[0, 1]) ** 2) / 8)[None]
    shown = ours.transform(dot, params)[0]
    weights = shown / shown.sum()
    y, x = (torch.arange(n).double() for n in shown.shape)
    seen = torch.stack(((weights * x).sum(), (weights * y[:, None]).sum()))
    found = ours.map(params, SIZE)
    assert found.dtype == torch.float64
    if found.shape == (3, 3):
        (there,) = wk.transform_points(found, at)
    else:
        assert found.shape == (*SIZE, 2)
        (there,), valid = wk.flow.transform_points(at, found)
        assert valid.all()
    # the centroid of a cut or bent dot differs slightly from the point
    near = 0.6 if isinstance(ours, (ElasticTransform, RandomPerspective)) else 0.05
    inside = all(4 < c < n - 5 for c, n in zip(there.flip(0), shown.shape, strict=True))
    assert not inside or (seen - there).abs().max() < near


@pytest.mark.parametrize("expand", [False, True])
@pytest.mark.parametrize("angle", [90, 180, 270, -90])
def test_rotations_by_multiples_of_90_degrees_copy_pixels(angle: int, expand: bool):
    image = noise(1, 3, 6, 8 if expand else 6, dtype=torch.uint8)
    turned = RandomRotation((angle, angle), "bilinear", expand=expand)(image)
    assert torch.equal(turned, image.rot90(angle // 90, (-2, -1)))


def test_resizes_equal_wk_resize_and_nearest_reads_pixel_centres():
    image = noise(3, 21, 33, dtype=torch.float32)  # to 8 x 10: no position is halfway
    assert torch.equal(Resize((8, 10))(image), wk.resize(image, (8, 10)))
    plain = Resize((8, 10), "bicubic", antialias=False)(image)
    assert torch.equal(plain, wk.resize(image, (8, 10), interpolation="bicubic", antialias=False))
    assert torch.equal(
        Resize((8, 10), "nearest")(image),
        F.interpolate(image[None], (8, 10), mode="nearest-exact")[0],
    )
    area = Resize((8, 10), "area")(image)
    assert torch.equal(area, wk.resize(image, (8, 10), interpolation="area"))


def test_every_kind_of_image_is_kept():
    for made in (
        Resize((5, 6)),
        RandomResizedCrop((5, 6)),
        RandomRotation(30),
        ElasticTransform(sigma=1),
    ):
        picture = PIL.Image.fromarray(noise(12, 14, 3, dtype=torch.uint8).numpy())
        assert made(picture).mode == "RGB"
        video = tv_tensors.Video(noise(2, 3, 12, 14, dtype=torch.uint8))
        assert isinstance(made(video), tv_tensors.Video)
        labels = torch.randint(0, 9, (12, 14))
        assert made(tv_tensors.Mask(labels)).dtype == torch.int64
        assert made(tv_tensors.Mask(torch.zeros(0, 12, 14))).shape[0] == 0


def test_gradients_reach_the_image():
    for made in (
        Resize((5, 6)),
        RandomResizedCrop((5, 6)),
        RandomRotation(30),
        ElasticTransform(sigma=1),
    ):
        image = noise(3, 12, 14).requires_grad_()
        made(image).sum().backward()
        assert image.grad.abs().sum() > 0


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: Resize(5, "linear"), "Resize: `interpolation` must be one of"),
        (lambda: Resize(5, antialias="yes"), "Resize: `antialias` must be"),
        (lambda: RandomRotation(3, center=3), "RandomRotation: `center` must be (x, y)"),
        (lambda: RandomRotation(3, expand=1), "RandomRotation: `expand` must be"),
        (lambda: RandomRotation(3, fill="x"), "RandomRotation: `fill` must be"),
        (lambda: ElasticTransform(border="zero"), "ElasticTransform: `border` must be one of"),
        (
            lambda: ElasticTransform()(torch.ones(3, 20, 30)),
            "ElasticTransform: `inpt` must be of more than 20 pixels a side",
        ),
        (
            lambda: ElasticTransform(sigma=1, fill=[1, 2])(torch.ones(3, 9, 9)),
            "ElasticTransform: `fill` must be a number, or 3",
        ),
    ],
)
def test_arguments_are_checked(build, text: str):
    with pytest.raises((ValueError, TypeError)) as error:
        build()
    assert str(error.value).startswith(text)


def test_all_transforms_are_subclasses_of_torchvisions():
    for name in set(transforms.__all__) - {"Fused"}:
        assert issubclass(getattr(transforms, name), getattr(v2, name))
        assert callable(getattr(transforms, name).map)
