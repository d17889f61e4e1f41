"""Expectations of torchvision's tests of kernels, and of pixels compared with PIL.

The facts are of its test_transforms_v2: batches, empty batches, types, fills, formats of boxes,
memory, and PIL's images; the code is ours. Draws, errors and structures are in
`test_torchvision`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

import warpkit as wk
from tests.support.tolerances import TOLERANCE
from warpkit import transforms

SIZE = (17, 11)
RANGES: dict[str, Any] = {
    "degrees": 30,
    "translate": (0.5, 0.5),
    "scale": (0.75, 1.25),
    "shear": (12, 30, -17, 5),
}
MADE: dict[str, tuple[str, dict[str, Any]]] = {
    "affine": ("RandomAffine", RANGES),
    "rotation": ("RandomRotation", {"degrees": 30, "center": (2.5, -4.7)}),
    "rotation, expanded": ("RandomRotation", {"degrees": 30, "expand": True}),
    "perspective": ("RandomPerspective", {"p": 1.0}),
    "horizontal flip": ("RandomHorizontalFlip", {"p": 1.0}),
    "vertical flip": ("RandomVerticalFlip", {"p": 1.0}),
    "resized crop": ("RandomResizedCrop", {"size": (19, 32), "scale": (0.1, 0.2)}),
    "resize": ("Resize", {"size": (12, 13)}),
    "resize, one side": ("Resize", {"size": 17, "max_size": 18}),
    "middle": ("CenterCrop", {"size": (21, 9)}),
    "elastic": ("ElasticTransform", {"alpha": 5.0, "sigma": 1.0}),
}
FORMATS = ("XYXY", "XYWH", "CXCYWH")
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def made(name: str, **options: Any) -> Any:
    kind, given = MADE[name]
    return getattr(transforms, kind)(**{**given, **options})


def noise(*shape: int, dtype: torch.dtype = torch.uint8, seed: int = 0) -> Tensor:
    """Bytes, or their levels in [0, 1]."""
    generator = torch.Generator().manual_seed(seed)
    levels = torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)
    return (levels / 255).to(dtype) if dtype.is_floating_point else levels.to(dtype)


def boxes(kind: str = "XYXY", dtype: torch.dtype = torch.float32, count: int = 5) -> Any:
    """Boxes on a canvas of SIZE, some of one pixel."""
    random = np.random.default_rng(3)
    corner = random.integers(0, [9, 15], (count, 2))
    far = corner + random.integers(1, 8, (count, 2))
    given = torch.from_numpy(np.hstack((corner, np.minimum(far, SIZE[::-1])))).float()
    plain = tv_tensors.BoundingBoxes(given, format="XYXY", canvas_size=SIZE)  # pyright: ignore
    changed = v2.functional.convert_bounding_box_format(plain, new_format=kind)
    return tv_tensors.wrap(changed.as_subclass(Tensor).to(dtype), like=changed)


KINDS: dict[str, Any] = {
    "image": lambda: tv_tensors.Image(noise(3, *SIZE)),
    "image of float32": lambda: tv_tensors.Image(noise(3, *SIZE, dtype=torch.float32)),
    "image of float16": lambda: tv_tensors.Image(noise(3, *SIZE, dtype=torch.float16)),
    "video": lambda: tv_tensors.Video(noise(2, 3, *SIZE)),
    "segmentation": lambda: tv_tensors.Mask(noise(*SIZE) % 10),
    "detections": lambda: tv_tensors.Mask(noise(5, *SIZE) > 99),
    **{
        f"boxes {kind} of {dtype}": lambda kind=kind, dtype=dtype: boxes(kind, dtype)
        for kind in FORMATS
        for dtype in (torch.float32, torch.int64)
    },
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MADE)
def test_batches_equal_their_items(name: str, kind: str, device: str):
    """Batches of any dimensions, also empty ones; types are kept, and inputs not modified."""
    transform, given = made(name), KINDS[kind]()
    torch.manual_seed(1)
    params = transform.make_params([given])
    before = given.clone()
    alone = transform.transform(given, params)
    assert torch.equal(given, before)
    assert (type(alone), alone.dtype) == (type(given), given.dtype)
    item = given.as_subclass(Tensor).to(device)
    # boxes are rows, without further dimensions
    of_rows = "boxes" in kind
    for batch in ((2,), (0,)) if of_rows else ((2,), (2, 1), (0,), (5, 0), (0, 5)):
        times = (*batch, 1) if of_rows else (*batch, *[1] * item.ndim)
        several = tv_tensors.wrap(item.repeat(*times), like=given)
        found = transform.transform(several, params).as_subclass(Tensor)
        wanted = alone.as_subclass(Tensor).repeat(*times).to(device)
        assert found.shape == wanted.shape
        if device == "cpu":
            assert torch.equal(found, wanted)
        elif found.numel():
            apart = (found.double() - wanted.double()).abs().max()
            assert apart <= (1e-3 if found.is_floating_point() else 1)


FILLS = [None, 1, 0.5, [1], [0.2], (0,), (0.7,), [1, 0, 1], [0.1, 0.2, 0.3], (0, 1, 0)]


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("name", ["rotation", "rotation, expanded", "elastic"])
def test_every_form_of_fill_is_accepted(name: str, fill: Any):
    image = noise(3, *SIZE, dtype=torch.float64)
    kind, options = MADE[name]
    given = list(map(float, fill)) if isinstance(fill, list | tuple) else fill
    found = []
    for module, value in ((transforms, fill), (v2, given)):
        torch.manual_seed(2)
        options = {**options, "interpolation": v2.InterpolationMode.NEAREST, "fill": value}
        found.append(getattr(module, kind)(**options)(image))
    assert torch.equal(*found)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
@pytest.mark.parametrize("name", [name for name in MADE if name != "elastic"])
def test_boxes_enclose_their_moved_corners(name: str, dtype: torch.dtype, kind: str):
    """Moved like pixels and clamped to the canvas; integers agree to within 1."""
    transform, given = made(name), boxes(kind, dtype)
    for seed in range(5):
        torch.manual_seed(seed)
        params = transform.make_params([given])
        found = transform.transform(given, params)
        height, width = getattr(transform, "output_size", lambda _, size: size)(params, SIZE)
        assert found.canvas_size == (height, width), seed
        wide = tv_tensors.wrap(given.as_subclass(Tensor).double(), like=given)
        plain = v2.functional.convert_bounding_box_format(wide, new_format="XYXY")
        x1, y1, x2, y2 = plain.as_subclass(Tensor).unbind(-1)
        corners = torch.stack(
            [torch.stack(p, -1) for p in ((x1, y1), (x2, y1), (x2, y2), (x1, y2))]
        )
        moved = wk.transform_points(transform.map(params, SIZE), corners - 0.5) + 0.5
        hull = torch.cat((moved.amin(0), moved.amax(0)), -1)
        limits = torch.tensor([width, height] * 2).double()
        hull = hull.clamp(torch.zeros(4).double(), limits)
        wanted = tv_tensors.BoundingBoxes(hull, format="XYXY", canvas_size=(height, width))  # pyright: ignore
        wanted = v2.functional.convert_bounding_box_format(wanted, new_format=kind)
        near = 1e-4
        if dtype == torch.int64:  # rounded before a crop is enlarged
            near = 8.0 if "crop" in name else 2.0
        apart = found.as_subclass(Tensor).double() - wanted.as_subclass(Tensor)
        assert apart.abs().max() <= near, (seed, apart)


THIN: dict[str, Any] = {
    "XYXY": [[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0], [2, 0, 1, 1], [0, 2, 1, 1], [2, 2, 1, 1]],
    "XYWH": [[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0], [0, 0, 1, -1], [0, 0, -1, 1]],
    "CXCYWH": [[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0], [0, 0, 1, -1], [0, 0, -1, 1]],
}


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", [name for name in MADE if "expanded" not in name])
def test_boxes_without_extent_match_torchvision(name: str, kind: str):
    given = tv_tensors.BoundingBoxes(THIN[kind], format=kind, canvas_size=SIZE)  # pyright: ignore
    found = []
    for module in (transforms, v2):
        torch.manual_seed(0)
        moved = getattr(module, MADE[name][0])(**MADE[name][1])(noise(3, *SIZE), given)
        found.append(moved[1].as_subclass(Tensor))
    assert torch.equal(*found)


LIMITS = {"affine": 2, "rotation": 1, "rotation, expanded": 1}
"""Levels between a mean pixel and PIL's, by nearest."""


@pytest.mark.parametrize("fill", [None, 127, [255, 0, 255], [25, 51, 76]])
@pytest.mark.parametrize(
    ("name", "center"),
    [
        *((name, None) for name in LIMITS),
        *((name, at) for name in ("affine", "rotation") for at in ((1.2, 4.9), (-3.0, 1.0))),
    ],
)
def test_rotated_pixels_are_close_to_pils(name: str, center: Any, fill: Any):
    """With bilinear they are closer than torchvision's, which counts an edge's coverage twice."""
    kind, options = MADE[name]
    image = noise(3, *SIZE)
    picture = v2.functional.to_pil_image(image)
    for interpolation in ("nearest", "bilinear"):
        mode = v2.InterpolationMode(interpolation)
        given = {**options, "interpolation": mode, "fill": fill, "center": center}
        for seed in range(5):
            shown = []
            for module, inpt in ((v2, picture), (v2, image), (transforms, image)):
                torch.manual_seed(seed)
                moved = getattr(module, kind)(**given)(inpt)
                shown.append(v2.functional.to_image(moved).double())
            theirs, mine = ((shown[0] - other).abs().mean() for other in shown[1:])
            close = mine < LIMITS[name] if interpolation == "nearest" else mine <= theirs + 0.5
            assert close, (interpolation, seed, mine, theirs)


COEFFICIENTS = [
    [1.2405, 0.1772, -6.9113, 0.0463, 1.251, -5.235, 0.00013, 0.0018],
    [0.7366, -0.11724, 1.45775, -0.15012, 0.73406, 2.6019, -0.0072, -0.0063],
]


@pytest.mark.parametrize("fill", [None, 127, [255, 0, 255], [25, 51, 76]])
@pytest.mark.parametrize("coefficients", COEFFICIENTS)
def test_pixels_in_perspective_are_close_to_pils(coefficients: list[float], fill: Any):
    image = noise(3, *SIZE)
    picture = v2.functional.to_pil_image(image)
    for interpolation in ("nearest", "bilinear"):
        options: Any = {"interpolation": v2.InterpolationMode(interpolation), "fill": fill}
        found = transforms.RandomPerspective(0.5, 1.0, **options).transform(
            image, {"coefficients": coefficients}
        )
        wanted = v2.functional.perspective(
            picture, None, None, coefficients=coefficients, **options
        )
        apart = (found.double() - v2.functional.to_image(wanted).double()).abs()
        if interpolation == "nearest":
            assert not apart.any()
        else:
            assert (apart > 1).double().mean() < 7e-2
            assert apart.mean() < 3


@pytest.mark.parametrize("interpolation", ["nearest-exact", "bilinear", "bicubic"])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        *(("Resize", {"size": size}) for size in (17, [17], (12, 13), [30, 9])),
        *(("Resize", {"size": size, "max_size": 18}) for size in (17, (17,))),
        ("RandomResizedCrop", {"size": (19, 32)}),
    ],
)
def test_resized_pixels_match_pil_to_one_level(name: str, options: Any, interpolation: str):
    image = noise(3, *SIZE)
    given = {**options, "interpolation": v2.InterpolationMode(interpolation), "antialias": True}
    ours, theirs = getattr(transforms, name), getattr(v2, name)(**given)
    torch.manual_seed(4)
    wanted = v2.functional.to_image(theirs(v2.functional.to_pil_image(image))).double()
    for arithmetic, most in (("pillow", 0), ("exact", 1)):
        torch.manual_seed(4)
        found = ours(**given, arithmetic=arithmetic)(image).double()
        assert found.shape == wanted.shape
        # Pillow clamps bicubic's overshoot after each of its two passes
        assert (found - wanted).abs().max() <= most or (most, interpolation) == (1, "bicubic")


@pytest.mark.parametrize("name", ["horizontal flip", "vertical flip", "middle"])
def test_flips_and_crops_match_pil(name: str):
    image = noise(3, *SIZE)
    kind, options = MADE[name]
    wanted = getattr(v2, kind)(**options)(v2.functional.to_pil_image(image))
    assert torch.equal(made(name)(image), v2.functional.to_image(wanted))


@pytest.mark.parametrize("size", [(163, 163), (72, 333), (313, 95)])
def test_elastic_fields_of_the_usual_strength_match_torchvision(size: tuple[int, int]):
    image = torch.nn.functional.interpolate(noise(1, 3, 9, 9, dtype=torch.float64), size)[0]
    found = []
    for module in (transforms, v2):
        torch.manual_seed(5)
        found.append(module.ElasticTransform(interpolation=v2.InterpolationMode.BILINEAR)(image))
    inside = slice(40, -40) if min(size) > 90 else slice(20, -20)
    apart = (found[0] - found[1])[:, inside, inside].abs().max()
    assert apart <= 1000 * TOLERANCE["torchvision float64"]


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("interpolation", ["nearest", "nearest-exact", "bilinear", "bicubic"])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_the_memory_format_is_kept(dtype: torch.dtype, interpolation: str, antialias: bool):
    """Channels last is kept for batches; torch cannot tell it for one image: it becomes planar."""
    options: Any = {"interpolation": v2.InterpolationMode(interpolation), "antialias": antialias}
    resize = transforms.Resize(17, **options)
    rows = noise(1, 3, *SIZE, dtype=dtype)
    columns = rows.contiguous(memory_format=torch.channels_last)
    for image, wanted in ((rows, (26 * 17, 17, 1)), (columns, (1, 17 * 3, 3))):
        out = resize(image)
        assert out.shape == (1, 3, 26, 17)
        assert out.stride()[1:] == wanted
    assert resize(columns[0]).is_contiguous()


def test_half_floats_are_not_rounded():
    out = transforms.Resize(17)(noise(3, *SIZE, dtype=torch.float16))
    assert out.dtype == torch.float16
    assert (out.round() - out).abs().sum() > 0


def test_max_size_counts_if_the_shortest_side_already_fits():
    for given in (*(KINDS[kind]() for kind in KINDS), v2.functional.to_pil_image(noise(3, *SIZE))):
        out = transforms.Resize(11, max_size=12)(given)
        assert max(v2.functional.get_size(out)) == 12


def test_pil_images_can_be_resized_without_antialias():
    """torchvision warns and antialiases anyway."""
    image = noise(3, *SIZE)
    resize = transforms.Resize((5, 6), antialias=False)
    out = resize(v2.functional.to_pil_image(image))
    assert torch.equal(v2.functional.pil_to_tensor(out), resize(image))


@pytest.mark.parametrize("degrees", [30, (-15, 20)])
@pytest.mark.parametrize("shear", [None, (12, 30, -17, 5), 10, (-5, 12)])
def test_draws_of_rotations_stay_in_their_ranges(degrees: Any, shear: Any):
    image, low_high = noise(3, *SIZE), degrees if isinstance(degrees, tuple) else (-30, 30)
    affine, turn = transforms.RandomAffine(degrees, shear=shear), transforms.RandomRotation(degrees)
    for seed in range(10):
        torch.manual_seed(seed)
        drawn = affine.make_params([image])
        assert low_high[0] <= drawn["angle"] <= low_high[1], seed
        assert low_high[0] <= turn.make_params([])["angle"] <= low_high[1], seed
        assert tuple(drawn["translate"]) == (0, 0), seed
        assert drawn["scale"] == 1.0, seed
        x, y = drawn["shear"]
        if shear is None:
            assert (x, y) == (0, 0), seed
        else:
            limits = (-10, 10) if shear == 10 else shear
            assert limits[0] <= x <= limits[1], seed
            assert (limits[2] <= y <= limits[3]) if len(limits) == 4 else y == 0, seed
