"""The sizes, parameters, types and forms of torchvision's tests, compared with torchvision.

There torchvision computes in float64, with a float64 grid, so that nearest is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

from tests.support.inputs import noise
from warpkit.transforms import RandomAffine, RandomPerspective

SIZE = (17, 11)
LEAST: dict[str, Any] = {
    "angle": -10.9,
    "translate": [6.3, -0.6],
    "scale": 0.5,
    "shear": [5.4, 21.8],
    "center": None,
}
AFFINE = [
    LEAST,
    *({**LEAST, "angle": angle} for angle in (18.0, 15.0, 0.0)),
    *({**LEAST, "translate": pair} for pair in ([1.0, -3.0], [16.6, -6.6], [-2.0, 4.0])),
    *(
        {**LEAST, "shear": pair}
        for pair in ([35.6, 0], [-37.7, 0], [-47, 51], [-11.2, 36.7], [8, -53])
    ),
    *({**LEAST, "center": pair} for pair in ([1.2, 4.9], [-3.0, 1.0], [2.5, -4.7], [3.0, 2.0])),
    {**LEAST, "scale": 1.0, "shear": [0.0, 0.0], "translate": [0.0, 0.0], "angle": -43.0},
]
COEFFICIENTS = [
    [1.2405, 0.1772, -6.9113, 0.0463, 1.251, -5.235, 0.00013, 0.0018],
    [0.7366, -0.11724, 1.45775, -0.15012, 0.73406, 2.6019, -0.0072, -0.0063],
]
FILLS = [None, 1, 0.5, [1], [0.2], (0,), (0.7,), [1, 0, 1], [0.1, 0.2, 0.3], (0, 1, 0)]
TYPES = [
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32, torch.int64),
    *(torch.float32, torch.float64),
]
CASES = [*AFFINE, *COEFFICIENTS]
AWAY = 5
"""The case that moves the image by more than its width."""


def image_of(dtype: torch.dtype, *shape: int) -> Tensor:
    """Noise over most of the type's range; int64 within the integers of float64."""
    pixels = noise(*shape, dtype=torch.float64)
    if dtype.is_floating_point:
        return pixels.to(dtype)
    if dtype == torch.bool:
        return pixels > 0.5
    limits = torch.iinfo(dtype)
    low, high = max(limits.min, -(2**52)), min(limits.max, 2**52)
    return (low + pixels * (high - low)).round().to(dtype)


def ours(case: Any, inpt: Any, interpolation: str, fill: Any) -> Any:
    if isinstance(case, list):
        move = RandomPerspective(0.5, 1.0, interpolation, fill)
        return move.transform(inpt, {"coefficients": case})
    move = RandomAffine(10, None, None, None, interpolation, fill, case["center"])
    return move.transform(inpt, {k: v for k, v in case.items() if k != "center"})


def theirs(case: Any, inpt: Any, interpolation: str, fill: Any) -> Any:
    options: Any = {"interpolation": v2.InterpolationMode(interpolation), "fill": fill}
    options["fill"] = list(map(float, fill)) if isinstance(fill, list | tuple) else fill
    if isinstance(case, list):
        return v2.functional.perspective(inpt, None, None, coefficients=case, **options)
    return v2.functional.affine(inpt, **case, **options)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("case", range(len(CASES)))
def test_nearest_copies_the_same_pixel_in_every_type(case: int, dtype: torch.dtype):
    image = image_of(dtype, 3, *SIZE)
    expected = theirs(CASES[case], image.double(), "nearest", None).to(dtype)
    assert (expected != 0).any() or case == AWAY
    got = ours(CASES[case], image, "nearest", None)
    assert got.dtype == dtype
    assert torch.equal(got, expected)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("case", range(len(CASES)))
def test_bilinear_matches_torchvision_in_every_type(case: int, dtype: torch.dtype):
    """Integers are rounded half to even; where torchvision is at a half, either way."""
    image = image_of(dtype, 3, *SIZE)
    exact = theirs(CASES[case], image.double(), "bilinear", None)
    got = ours(CASES[case], image, "bilinear", None)
    assert got.dtype == dtype
    if dtype.is_floating_point:
        torch.testing.assert_close(got.double(), exact, rtol=0, atol=1e-6)
        return
    error = 1e-12 * exact.abs().max()
    assert ((got.double() - exact).abs() <= 0.5 + error).all()


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("case", [0, -2, -1])
def test_every_form_of_fill_appears_outside_the_image(case: int, fill: Any):
    image = image_of(torch.float64, 3, *SIZE)
    expected = theirs(CASES[case], image, "nearest", fill)
    assert torch.equal(ours(CASES[case], image, "nearest", fill), expected)


@pytest.mark.parametrize("case", [0, -2, -1])
@pytest.mark.parametrize("shape", [(1,), (3,), (2, 3), (4, 2, 3), (2, 0, 3)])
def test_all_images_of_a_batch_move_alike(case: int, shape: tuple[int, ...]):
    image = tv_tensors.Image(image_of(torch.uint8, *shape, *SIZE))
    expected = theirs(CASES[case], image.double(), "nearest", None).to(torch.uint8)
    got = ours(CASES[case], image, "nearest", None)
    assert type(got) is tv_tensors.Image
    assert torch.equal(got, expected)


@pytest.mark.parametrize("case", [0, -2, -1])
@pytest.mark.parametrize("shape", [(), (1,), (5,), (0,)])
@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64])
def test_masks_are_always_sampled_by_nearest(case: int, shape: tuple[int, ...], dtype: Any):
    mask = tv_tensors.Mask(image_of(dtype, *shape, *SIZE))
    expected = theirs(CASES[case], tv_tensors.Mask(mask.double()), "bilinear", None).to(dtype)
    got = ours(CASES[case], mask, "bilinear", None)
    assert (type(got), got.dtype) == (tv_tensors.Mask, dtype)
    assert torch.equal(got, expected)


def test_labels_beyond_float64_are_kept_exactly():
    label = 2**53 + 1
    mask = tv_tensors.Mask(torch.full((1, 9, 9), label))
    assert RandomAffine(0, scale=(2.0, 2.0))(mask).unique().tolist() == [label]
    assert RandomAffine(0, scale=(2.0, 2.0))(mask.as_subclass(Tensor)).unique().tolist() == [label]


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [(torch.int8, -128, 127), (torch.int32, -(2**31), 2**31 - 1)]
)
def test_bicubics_overshoot_is_clamped(dtype: torch.dtype, low: int, high: int):
    image = torch.full((1, 16, 16), low, dtype=dtype)
    image[..., 8:] = high
    found = RandomAffine(0, scale=(2.0, 2.0), interpolation="bicubic")(image)
    assert {low, high} == {found.min().item(), found.max().item()}
    signs = found[0].double().sign()
    assert (signs[:, :7] < 0).all()
    assert (signs[:, 9:] > 0).all()


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "CMYK", "YCbCr", "LA", "F", "I"])
@pytest.mark.parametrize("case", [0, -2, -1])
def test_pil_images_of_each_mode(case: int, mode: str):
    array = (noise(*SIZE, 3) * 255).byte().numpy()
    image = PIL.Image.fromarray(array)
    if mode in "IF":
        image = PIL.Image.fromarray(array[..., 0].astype(f"{mode.lower()}4") * 300)
    image = image.convert(mode)
    pixels = v2.functional.pil_to_tensor(image)
    expected = theirs(CASES[case], pixels.double(), "nearest", None).to(pixels.dtype)
    got = ours(CASES[case], image, "nearest", None)
    assert (got.mode, got.size) == (image.mode, image.size)
    assert np.array_equal(v2.functional.pil_to_tensor(got), expected)


RANGES = [
    {"degrees": 30, "translate": (0.5, 0.5), "scale": (0.75, 1.25), "shear": (12, 30, -17, 5)},
    {"degrees": (-15, 20), "shear": 10},
    {"degrees": 30, "shear": (-5, 12), "center": (2.5, -4.7)},
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("format", [f.name for f in tv_tensors.BoundingBoxFormat])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
@pytest.mark.parametrize("options", [*RANGES, {"distortion_scale": 0.5, "p": 1.0}])
def test_boxes_and_points_match_torchvision(options: Any, format: str, dtype: Any, seed: int):
    """Every format, including rotated ones, which cannot hold integers."""
    numbers = {4: [3, 2, 5, 6], 5: [3, 2, 5, 6, 30], 8: [3, 2, 8, 3, 7, 9, 2, 8]}
    count = {"XYXYXYXY": 8}.get(format, 5 if format.endswith("R") else 4)
    kind = torch.float32 if count > 4 else dtype
    boxes = tv_tensors.BoundingBoxes([numbers[count]], format=format, canvas_size=SIZE, dtype=kind)
    points = tv_tensors.KeyPoints([[3.0, 2.0], [9.0, 14.0]], canvas_size=SIZE)
    modules = (RandomPerspective, v2.RandomPerspective)
    found = []
    for make in (RandomAffine, v2.RandomAffine) if "degrees" in options else modules:
        torch.manual_seed(seed)
        found.append(make(**options)({"boxes": boxes, "points": points}))
    got, expected = found
    assert torch.equal(got["points"], expected["points"])
    assert torch.equal(got["boxes"], expected["boxes"])
    assert got["boxes"].format == expected["boxes"].format
