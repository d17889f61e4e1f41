"""OpenCV's pixels on the CPU: no value differs from the reference or from OpenCV."""

from __future__ import annotations

import random
import re
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

import warpkit as wk
import warpkit.opencv as wcv
from tests.support.guarded_memory import survives
from tests.support.inputs import affine_matrices, images, noise, perspective_matrices
from tests.support.installed_opencv import installed_opencv
from tests.support.opencv_cases import GOLDEN, call_warpkit, cases
from warpkit.engine import backends as kernels
from warpkit.engine.arithmetic import opencv
from warpkit.engine.arithmetic.opencv_lenses import from_fixed_map
from warpkit.engine.cpu import opencv as cpu_opencv
from warpkit.engine.definitions.rules import BORDERS, SamplingRule
from warpkit.opencv.values import INTERPOLATIONS

FILLED = tuple(border for border in BORDERS if border != "transparent")
ARITHMETICS = ("opencv4", "opencv5")

HOSTILE = {
    "NaN": torch.tensor([[1.0, 0, torch.nan], [0, 1, 0]]),
    "infinite": torch.tensor([[1.0, torch.inf, 0], [0, 1, 0]]),
    "huge": torch.tensor([[1e300, 0, 0], [0, 1e-3, 0]], dtype=torch.float64),
    "tiny": torch.tensor([[1e-300, 0, 0], [0, 1e-300, 0]], dtype=torch.float64),
    "singular": torch.tensor([[1.0, 2, 3], [2, 4, 1]]),
    "beyond 2^31": torch.tensor([[1.0, 0, 3e9], [0, 1, -3e9]], dtype=torch.float64),
    "at 2^31": torch.tensor([[1.0, 0, 2.0**31 - 3], [0, 1, 0]], dtype=torch.float64),
}


def assert_same(
    function, image: Tensor, where: Tensor, interpolation: str, case: object = None, **options
) -> None:
    """The kernels support the call, and the reference gives the same bits.

    case: names the call of a loop in the error.
    """
    rule = SamplingRule(interpolation, options["border"], options["arithmetic"])
    assert kernels.select_backend("warp", "auto", image, rule) is kernels.opencv_backend("cpu")
    value = torch.tensor(([10.0, 200.6, 300.0, 77.0] * 2)[: image.shape[-3]])
    options |= {"interpolation": interpolation, "border_value": value}
    got = function(image, where, backend="cpu", **options)
    wanted = function(image, where, backend="reference", **options)
    assert got.dtype == wanted.dtype
    assert torch.equal(got, wanted), case


def layouts(dtype: torch.dtype) -> dict[str, Tensor]:
    """The table's images, and wider ones whose channels are contiguous."""
    wide = noise(2, 9, 80, 3, dtype=dtype)
    return images(dtype) | {
        "RGB": noise(2, 3, 9, 40, dtype=dtype).to(memory_format=torch.channels_last),
        "RGBA": noise(1, 4, 9, 140, dtype=dtype).to(memory_format=torch.channels_last),
        "part of RGB rows": wide[:, :, 3:70].movedim(-1, 1),
        "gray": noise(1, 1, 30, 150, dtype=dtype),
    }


@pytest.mark.parametrize(("arithmetic", "border"), list(product(ARITHMETICS, FILLED)))
def test_8_bit_images_agree_with_the_reference(arithmetic, border):
    options = {"arithmetic": arithmetic, "border": border}
    for name, image in layouts(torch.uint8).items():
        for matrix in affine_matrices().values():
            matrix = matrix[:, None] if name == "deep batch" and matrix.ndim == 3 else matrix
            assert_same(wk.warp_affine, image, matrix, "bilinear", **options)
    for matrix in perspective_matrices().values():
        image = layouts(torch.uint8)["RGB"]
        assert_same(wk.warp_perspective, image, matrix, "bilinear", **options)


@pytest.mark.parametrize(
    ("interpolation", "dtype"),
    [("nearest", torch.uint8), ("bilinear", torch.float32), ("lanczos4", torch.uint8)],
)
def test_planar_images_agree_with_the_reference(interpolation, dtype):
    turn = affine_matrices()["batch of turns"]
    for name, image in layouts(dtype).items():
        for arithmetic, border in product(ARITHMETICS, FILLED):
            rule = SamplingRule(interpolation, border, arithmetic)
            if kernels.opencv_backend("cpu").unsupported_reasons(image, rule):
                continue
            matrix = turn[:, None] if name == "deep batch" else turn
            options = {"arithmetic": arithmetic, "border": border}
            assert_same(wk.warp_affine, image, matrix, interpolation, **options)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_opencv5s_bicubic_agrees_with_the_reference_on_maps_of_all_kinds(dtype):
    """Points inside, across and beyond the border, ends of rows, and NaN."""
    draw = random.Random(4)
    for n in range(150):
        height, width = (draw.choice([1, 2, 7, 16, 33, 70]) for _ in range(2))
        size = draw.choice([1, 5, 17]), draw.choice([1, 7, 8, 64, 67, 130])
        image = noise(2, draw.choice([1, 2, 3, 4]), height, width, dtype=dtype, seed=n)
        if draw.random() < 0.5:
            image = image.to(memory_format=torch.channels_last)
        angles = torch.tensor([draw.uniform(-180, 180) for _ in range(2)]).double()
        center, scale = (width / 2, height / 2), draw.choice([0.2, 1.0, 3.0, 30.0])
        warp, where = wk.warp_affine, wk.rotation_matrix(center, angles, scale)
        if n % 3 == 1:
            tilt = torch.eye(3, dtype=torch.float64)
            tilt[2, :2] = torch.tensor([draw.uniform(-0.02, 0.02) for _ in range(2)])
            warp, where = wk.warp_perspective, wk.compose(where, tilt)
        elif n % 3 == 2:
            warp, where = wk.remap, noise(2, *size, 2, seed=n) * draw.choice([20, 80, 400]) - 10
        if draw.random() < 0.2:
            where.view(-1)[draw.randrange(where.numel())] = draw.choice(
                [torch.nan, torch.inf, 1e30]
            )
        options = {"arithmetic": "opencv5", "border": FILLED[n % len(FILLED)]}
        options |= {} if warp is wk.remap else {"size": size}
        assert_same(warp, image, where, "bicubic", n, **options)


@pytest.mark.parametrize("channels", [1, 3, 4, 5])
@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize("size", [(70, 145), (16, 64), (1, 17), (33, 15)])
def test_kernels_agree_with_the_reference_over_many_tiles(arithmetic, size, channels):
    """Tiles inside, outside and across the image's edge; rows of whole vectors and others."""
    image = noise(1, channels, 61, 177, dtype=torch.uint8)
    image = image.to(memory_format=torch.channels_last)
    for scale, border in product((0.3, 0.9, 5.0), ("constant", "wrap")):
        matrix = wk.rotation_matrix((80.0, 25.0), 20.0, scale)
        options = {"arithmetic": arithmetic, "border": border, "size": size}
        assert_same(wk.warp_affine, image, matrix, "bilinear", **options)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_matrices_agree_with_the_reference(name):
    image = noise(1, 3, 9, 40, dtype=torch.uint8).to(memory_format=torch.channels_last)
    for arithmetic, border in product(ARITHMETICS, FILLED):
        for inverse, pixels in product((False, True), (image, image.float())):
            options = {"arithmetic": arithmetic, "border": border, "inverse": inverse}
            assert_same(wk.warp_affine, pixels, HOSTILE[name], "bilinear", **options)


def test_remap_agrees_with_the_reference():
    points = noise(2, 6, 75, 2, seed=4) * 60 - 15
    points[0, 0] = torch.tensor([3.0, 2.5])
    points[0, 1, 0, 0], points[1, 1, 1, 1] = torch.nan, torch.inf
    points[0, 2, 0], points[0, 2, 1, 0] = 2.0**31, -(2.0**31) + 1
    image = noise(2, 3, 7, 29, dtype=torch.uint8).to(memory_format=torch.channels_last)
    for arithmetic, border in product(ARITHMETICS, FILLED):
        for field in (points, points[:1], points[0].float()):
            options = {"arithmetic": arithmetic, "border": border}
            assert_same(wk.remap, image, field, "bilinear", **options)


def test_kernels_give_opencvs_recorded_results():
    """For OpenCV 5; test_arithmetic.py compares both versions, and "auto" selects these kernels."""
    checked = 0
    with np.load(GOLDEN / "opencv-5.0.0.npz") as recorded:
        for n, case in enumerate(cases()):
            image = torch.empty(case.channels, 1, 1, dtype=getattr(torch, case.dtype))
            rule = SamplingRule(case.interpolation, case.border, "opencv5")
            assert not kernels.opencv_backend("cpu").unsupported_reasons(image, rule)
            # near the border, OpenCV 5's bicubic with a transparent border is undefined
            undefined = case.interpolation == "bicubic" and case.border == "transparent"
            if case.function == "affine" and not undefined:
                checked += 1
                assert (call_warpkit(case, "opencv5") == recorded[str(n)]).all(), case
    assert checked > 20


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
def test_kernels_give_the_installed_opencvs_pixels(channels):
    cv2 = installed_opencv()
    if not cv2.__version__.startswith("5.0"):
        pytest.skip(f"OpenCV {cv2.__version__} is not 5.0")
    rng = np.random.default_rng(channels)
    whole = rng.integers(0, 256, (211, 330, channels), np.uint8)
    for image in (whole, whole[3:150, 20:301]):
        height, width = image.shape[:2]
        for angle, flags, border in product((0, 33, 90, 181), (0, 1), (0, 1, 2, 3, 4)):
            matrix = cv2.getRotationMatrix2D((width / 2, height / 2.5), angle, 0.8)
            arguments = (image, matrix, (300, 217), None, flags, border, (9, 255, 3, 77))
            wanted, got = cv2.warpAffine(*arguments), wcv.warpAffine(*arguments)
            assert got.shape == wanted.shape, (angle, flags, border)
            assert (got != wanted).sum() == 0, (angle, flags, border)


def test_results_have_the_same_bits_for_any_number_of_threads():
    before = torch.get_num_threads()
    image = noise(1, 3, 300, 410, dtype=torch.uint8).to(memory_format=torch.channels_last)
    matrix, seen = wk.rotation_matrix((100.0, 90.0), 33.0, 1.2), []
    try:
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            seen.append(wk.warp_affine(image, matrix, arithmetic="opencv5", backend="cpu"))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(seen[0], other) for other in seen[1:])


def test_channels_last_is_kept():
    image = torch.zeros(40, 50, 3, dtype=torch.uint8).permute(2, 0, 1)[None]
    identity, nothing = torch.eye(2, 3).double(), torch.zeros((), dtype=torch.float64)
    rule = SamplingRule("bilinear", "constant", "opencv5")
    out = cpu_opencv.warp(image, identity, (40, 50), nothing, rule)
    assert out.is_contiguous(memory_format=torch.channels_last)


def test_types_that_opencv_cannot_warp_are_rejected():
    image, rule = torch.zeros(1, 4, 5).half(), SamplingRule("bilinear", "wrap", "opencv5")
    text = "warp_affine: `backend` must be one that can do this, got 'cpu':\n  cpu: OpenCV warps "
    with pytest.raises(ValueError, match=re.escape(text)):
        kernels.select_backend("warp_affine", "cpu", image, rule)


PROGRAM = """
import torch, warpkit as wk
from tests.support.guarded_memory import guard_what_is_made, guarded
guard_what_is_made()
torch.manual_seed(0)
big = [0.0, 1.0, -1.0, 0.5, 7.5, 1e5, -3e9, 2.0**31, 2.0**31 - 1, -2.0**31, 1e300]
big += [float("inf"), float("nan")]
big = torch.tensor(big, dtype=torch.float64)
pick = lambda *shape: big[torch.randint(len(big), shape)]
image = (torch.rand(1, 3, 9, 11) * 255).contiguous(memory_format=torch.channels_last)
bytes_ = image.byte()
for border in ("constant", "replicate", "reflect", "reflect_101", "wrap"):
    rules = ("opencv4", bytes_, "bilinear"), ("opencv5", bytes_, "bilinear")
    rules += ("opencv5", image, "bilinear"), ("opencv5", bytes_, "bicubic")
    for arithmetic, pixels, interpolation in rules:
        options = {"border": border, "arithmetic": arithmetic, "interpolation": interpolation}
        for trial in range(6):
            given = guarded(pixels)
            wk.warp_affine(given, pick(2, 3), inverse=True, size=(20, 70), **options)
            turn = wk.rotation_matrix((5.0, 5.0), 40.0 * trial, 2.0 - trial / 3)
            wk.warp_affine(given, turn, size=(20, 70), **options)
    wk.remap(guarded(bytes_), guarded(pick(20, 70, 2)), border=border, arithmetic="opencv5")
"""


def test_hostile_maps_stay_inside_the_arrays():
    assert survives(PROGRAM)


@pytest.mark.parametrize("width", [1, 16, 37])
@pytest.mark.parametrize("flags", [0, 1, 2, 4])
@pytest.mark.parametrize("kind", ["planes", "pixels and parts", "pixels"])
def test_maps_are_read_in_place(kind, flags, width):
    rng = np.random.default_rng(width)
    image = rng.integers(0, 256, (20, 30, 3), dtype=np.uint8)
    points = (rng.random((9, width, 2)) * (34, 24) - 2).astype(np.float32)
    first, second = np.ascontiguousarray(points[..., 0]), np.ascontiguousarray(points[..., 1])
    if kind != "planes":
        first, second = points.astype(np.int16), rng.integers(0, 1024, (9, width), dtype=np.uint16)
        points = from_fixed_map(*map(torch.from_numpy, (first, second)))
    if kind == "pixels":
        second, points = None, torch.from_numpy(first).double()
    points, planes = torch.as_tensor(points), torch.from_numpy(image).permute(2, 0, 1)[None]
    rule = SamplingRule(INTERPOLATIONS[flags], "constant", "opencv5")
    fixed = kind == "pixels and parts"
    wanted = opencv.sample(planes, points, torch.zeros(1, 1, 1), rule, fixed_map=fixed)
    found = wcv.remap(image, first, second, flags, arithmetic="opencv5")
    np.testing.assert_array_equal(found, wanted[0].permute(1, 2, 0).numpy())
