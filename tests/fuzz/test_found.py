"""Calls found by fuzzing that failed deep inside torch or named the wrong function."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

import warpkit as wk
import warpkit.opencv as cv2
from warpkit import attacks, validation
from warpkit.nn import SpatialTransformer
from warpkit.transforms import (
    CenterCrop,
    Fused,
    RandomAffine,
    RandomHorizontalFlip,
    RandomPerspective,
    RandomResizedCrop,
    RandomRotation,
    Resize,
)

ONCE = {"steps": 1, "samples": 1}
IMAGE, EYE = torch.zeros(1, 4, 5), torch.eye(2, 3)
META = torch.zeros(1, 4, 5, device="meta")
PLANES, MAP = torch.zeros(4, 5), torch.zeros(2, 3)
SUPPORT = wk.GradientSupport(0, 20, 0.0, torch.zeros(2, 1, 4, 5, dtype=torch.bool))
SPARSE = IMAGE.to_sparse()
VIEW, LARGE, SQUARE = torch.zeros(1, 3, 8, 8), torch.zeros(16, 16), torch.eye(3)
LINE = torch.tensor([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])

FOUND = {
    "check_gradients: `function` must be a function, got NoneType": (
        lambda: wk.check_gradients(None, IMAGE)  # pyright: ignore
    ),
    "check_gradients: `inputs[0]` must be a tensor that holds values, got one on the device meta": (
        lambda: wk.check_gradients(torch.sin, META)
    ),
    "gradient_support: `output` must be a tensor that holds values, got one on the device meta": (
        lambda: wk.gradient_support(META.clone().requires_grad_(), META)
    ),
    "explain: the batch dimensions of `mask` and `where` must broadcast, got mask (2,), where (3": (
        lambda: SUPPORT.explain(EYE.expand(3, 2, 3))
    ),
    "explain: `inverse` must be True or False, got 1": (
        lambda: SUPPORT.explain(torch.zeros(1, 1, 2), inverse=1)  # pyright: ignore
    ),
    "expectation: `objective` must be a function that takes images": (
        lambda: attacks.expectation(None, IMAGE, EYE[None])  # pyright: ignore
    ),
    "optimize_perturbation: `objective` must be a function that takes images": (
        lambda: attacks.optimize_perturbation(None, IMAGE, epsilon=0.1)  # pyright: ignore
    ),
    "optimize_perturbation: `image` must be a tensor that holds values": (
        lambda: attacks.optimize_perturbation(torch.mean, META, epsilon=0.1)
    ),
    "optimize_patch: `objective` must be a function that takes images": (
        lambda: attacks.optimize_patch(None, IMAGE, [[0, 0, 1, 1]], None, patch_size=(1, 1))  # pyright: ignore
    ),
    "optimize_perturbation: `epsilon` must be a number that float64 holds, got 1000000": (
        lambda: attacks.optimize_perturbation(torch.mean, IMAGE, epsilon=10**400)
    ),
    "AffineDistribution: `angle` must be a number that float64 holds, got 10000": (
        lambda: attacks.AffineDistribution(angle=(0, 10**400))
    ),
    "expectation: `samples` must be an integer of at least 1, got tensor(indices=": (
        lambda: attacks.expectation(torch.mean, IMAGE, EYE[None], samples=SPARSE)  # pyright: ignore
    ),
    "compare_with_opencv: `image` must be a tensor that holds values": (
        lambda: validation.compare_with_opencv(META, EYE)
    ),
    "parity_suite: `images` must be tensors (C, H, W): a batch, a sequence or a mapping by name, "
    "got NoneType": lambda: validation.parity_suite(None),  # pyright: ignore
    "SpatialTransformer: `features` must be None or an integer of at least 1, got 0": (
        lambda: SpatialTransformer(torch.nn.Flatten(), (2, 2), features=0)
    ),
    "RandomPerspective: `inpt` must be large enough for its four corners to stay apart, got size "
    "(1, 1)": lambda: RandomPerspective(0.0, p=1.0)(IMAGE[..., :1, :1]),
    "RandomAffine: `inpt` must be a dense tensor, got torch.sparse_coo": (
        lambda: RandomAffine(0)(SPARSE)
    ),
    "warpAffine: `borderValue` must be on cpu, where `src` is, got meta": (
        lambda: cv2.warpAffine(PLANES, EYE, (5, 4), borderValue=META[0, 0, 0])
    ),
    "warpAffine: `borderValue` must be a number that float64 holds, got 100000000000": (
        lambda: cv2.warpAffine(PLANES, EYE, (5, 4), borderValue=10**400)
    ),
    "warpAffine: `dst` must be on cpu, where `src` is, got meta": (
        lambda: cv2.warpAffine(PLANES, EYE, (5, 4), dst=META[0], borderMode=cv2.BORDER_TRANSPARENT)
    ),
    "quantize: `levels` must be an integer of at most 2^53, got 100000000000": (
        lambda: wk.quantize(IMAGE, levels=10**400)
    ),
    "AffineDistribution.sample: `n` must be an integer below 2^31, got 100000000000": (
        lambda: attacks.AffineDistribution().sample(10**400, size=(2, 2))
    ),
    "SpatialTransformer: `features` must be an integer below 2^31, got 100000000000": (
        lambda: SpatialTransformer(torch.nn.Flatten(), (2, 2), features=10**400)
    ),
    "expectation: `quantize` must be True or False, got tensor": (
        lambda: attacks.expectation(torch.sum, IMAGE, EYE[None], quantize=IMAGE)  # pyright: ignore
    ),
    "optimize_perturbation: `optimizer` must be ": (
        lambda: attacks.optimize_perturbation(
            torch.sum,
            IMAGE,
            epsilon=0.1,
            optimizer=IMAGE,
            **ONCE,  # pyright: ignore
        )
    ),
    "expectation: `image` must be of a floating type, in [0, 1], with quantize=True, got": (
        lambda: attacks.expectation(torch.sum, IMAGE.byte(), EYE[None], quantize=True)
    ),
    "thin_plate_spline: `smoothing` must be finite, got inf": (
        lambda: wk.flow.thin_plate_spline(LINE, LINE, (2, 2), smoothing=float("inf"))
    ),
    "resize: `fy` must be a number that float64 holds, got 1000": (
        lambda: cv2.resize(torch.zeros(4, 5), None, fx=1.0, fy=10**400)
    ),
    "resize: `box` must be a number that float64 holds, got 1000": (
        lambda: wk.resize(IMAGE, (2, 2), box=(0, 0, 10**400, 1))
    ),
    "align: `tolerance` must be a number that float64 holds, got 1000": (
        lambda: wk.align(LARGE[None], LARGE[None], tolerance=10**400)
    ),
    "undistortPoints: `criteria` must be (type, steps, error) with type of": (
        lambda: cv2.undistortPoints(LINE[:, None], SQUARE, None, criteria=(3, 5, 10**400))
    ),
    "RandomAffine: `fill` must be a number that float64 holds, got 1000": (
        lambda: RandomAffine(9, fill=[10**400, 0, 0])  # pyright: ignore
    ),
    "RandomRotation: `center` must be (x, y), two numbers, got (1000": (
        lambda: RandomRotation(9, center=(10**400, 0))  # pyright: ignore
    ),
    "jpeg(75): `images` must be a tensor of shape (..., C, H, W), got NoneType": (
        lambda: attacks.jpeg()(None)  # pyright: ignore
    ),
    "jpeg(75): `images` must be floats in [0, 1], or uint8, got torch.int16": (
        lambda: attacks.jpeg()(VIEW.short())
    ),
    "jpeg: `images` must be a tensor that holds values": lambda: attacks.jpeg()(VIEW.to("meta")),
    "to_uint8: `images` must be a tensor of shape (..., C, H, W), got float": (
        lambda: attacks.to_uint8(1.5)  # pyright: ignore
    ),
    "reverse_channels: `images` must be of shape (..., C, H, W), got (4, 5)": (
        lambda: attacks.reverse_channels(PLANES)
    ),
    "normalize: `mean` must be a tensor that holds values": (
        lambda: attacks.normalize(META[0, 0, :1], [1.0])  # pyright: ignore
    ),
    "Pipeline: `images` must be a tensor that holds values": (
        lambda: attacks.Pipeline(torch.sqrt)(VIEW.to("meta"))
    ),
    "Pipeline: step 2 (jpeg(75)) must be given 8 bits, got the floats of the step before it": (
        lambda: attacks.Pipeline(attacks.normalize([0.5], [0.5]), attacks.jpeg())(VIEW)
    ),
    "Photometric: `noise` must be a number that float64 holds, got 1000000": (
        lambda: attacks.Photometric(noise=10**400)
    ),
    "Photometric.apply: `views` must be a tensor that holds values": (
        lambda: attacks.Photometric(noise=0.1)(VIEW.to("meta"))
    ),
    "expectation: `distribution` must be finite matrices, got a degenerate one at (1,)": (
        lambda: attacks.expectation(torch.mean, IMAGE, torch.stack((EYE, EYE * torch.nan)))
    ),
    "optimize_perturbation: `resume` must be ": lambda: attacks.optimize_perturbation(
        torch.mean,
        VIEW,
        epsilon=0.1,
        optimizer=torch.optim.Adam,
        resume=attacks.optimize_perturbation(torch.mean, VIEW + 0.5, epsilon=0.1, steps=1).state,
    ),
    "optimize_patch: `surface` must be a Cylinder, or a flow (h, w, 2) of the patch's size (2, 2), "
    "got 5.0": lambda: attacks.optimize_patch(
        torch.mean, VIEW, [[0, 0, 4, 4]], None, patch_size=(2, 2), surface=5.0
    ),
    "Resize: `inpt` must be of at least one pixel a side, got size (0, 5)": (
        lambda: Resize(3)(IMAGE[:, :0])
    ),
    "Resize: `inpt` must be of at least one pixel a side, got size (4, 0)": (
        lambda: Resize((3, 3))(IMAGE[..., :0])
    ),
    "Resize: `interpolation` must be one of": (
        lambda: Resize(3, np.array(["a", "b"]))  # pyright: ignore
    ),
    "RandomResizedCrop: `inpt` must be of at least one pixel a side": (
        lambda: RandomResizedCrop(3)(IMAGE[:, :0])
    ),
    "CenterCrop: `inpt` must be of at least one pixel a side": lambda: CenterCrop(3)(IMAGE[:, :0]),
    "Fused: `inpt` must be of at least one pixel a side": (
        lambda: Fused([RandomAffine(0), CenterCrop(3)])(IMAGE[:, :0])
    ),
    "RandomHorizontalFlip: `inpt` must be a dense tensor": (
        lambda: RandomHorizontalFlip(1.0)(SPARSE)
    ),
    "RandomHorizontalFlip: `inpt` must be of shape (..., H, W), got (5,)": (
        lambda: RandomHorizontalFlip(1.0)(IMAGE[0, 0])
    ),
    "RandomHorizontalFlip: `inpt` must be of one of the types float16": (
        lambda: RandomHorizontalFlip(1.0)(IMAGE.to(torch.float8_e5m2))
    ),
    "undistortPoints: `criteria` must be (type, steps, error)": (
        lambda: cv2.undistortPoints(LINE, SQUARE, None, criteria=(1, "a", 0))
    ),
    "findTransformECC: `motionType` must be one of the MOTION_* values, got ['a']": (
        lambda: cv2.findTransformECC(LARGE, LARGE, None, ["a"])  # pyright: ignore
    ),
    "findTransformECC: `criteria` must be (type, steps, error)": (
        lambda: cv2.findTransformECC(LARGE, LARGE, None, criteria=(2, 0, None))
    ),
    "findTransformECC: `warpMatrix` must be a tensor that holds values": (
        lambda: cv2.findTransformECC(LARGE, LARGE, META[0, :2, :3])
    ),
    "align: `moving` must be a tensor that holds values": (
        lambda: wk.align(LARGE[None].to("meta"), LARGE[None])
    ),
    "warpPolar: `maxRadius` must be from 1 to 2^31 / pi pixels": (
        lambda: cv2.warpPolar(PLANES, None, (0, 0), 1e30, 0)
    ),
    "warpPolar: `maxRadius` must be a tensor that holds values": (
        lambda: cv2.warpPolar(META[0], None, (0, 0), 5.0, 0)
    ),
    "convertMaps: `map2` must be on cpu, where `map1` is, got meta": (
        lambda: cv2.convertMaps(PLANES, META[0], -1)
    ),
    "getOptimalNewCameraMatrix: `centerPrincipalPoint` must be True or False, got tensor": (
        lambda: cv2.getOptimalNewCameraMatrix(SQUARE, None, (5, 4), 0.5, None, SQUARE)  # pyright: ignore
    ),
    "getOptimalNewCameraMatrix: `alpha` must be finite, got nan": (
        lambda: cv2.getOptimalNewCameraMatrix(SQUARE, None, (5, 4), float("nan"))
    ),
    "copyMakeBorder: `bottom` must be a whole number below 2^31, got 10000": (
        lambda: cv2.copyMakeBorder(PLANES, 0, 10**300, 0, 0, cv2.BORDER_CONSTANT)
    ),
    "fisheye.distortPoints: `D` must be ": (
        lambda: cv2.fisheye.distortPoints(LINE, SQUARE, [1, [2, 3]])
    ),
    "linear_lookup: `border` must be one of 'replicate', 'reflect',": (
        lambda: wk.indexing.linear_lookup([1.0], 0.5, border=np.array(["a", "b"]))  # pyright: ignore
    ),
    "remap: `map1` must be of one of the types float16, bfloat16, float32, float64, got": (
        lambda: cv2.remap(PLANES, MAP.to(torch.float8_e5m2), MAP, cv2.INTER_LINEAR)
    ),
}


@pytest.mark.parametrize("text", FOUND)
def test_a_call_that_fuzzing_found_is_rejected(text):
    with pytest.raises((ValueError, TypeError), match=re.escape(text)):
        FOUND[text]()


def test_quantized_expectations_accept_background_none():
    options = {"quantize": True, "background": None}
    value = attacks.expectation(torch.mean, torch.ones(1, 4, 4), torch.eye(2, 3)[None], **options)
    torch.testing.assert_close(value, torch.tensor(1.0))


def test_a_lens_that_leaves_no_region_has_an_empty_one():
    lens = torch.tensor([0.2, 0.2, 0.0, 0.3, torch.nan])
    assert cv2.getOptimalNewCameraMatrix(SQUARE, lens, (5, 4), 0.5)[1] == (0, 0, 0, 0)


def test_jpeg_of_an_empty_batch_is_empty():
    assert attacks.jpeg()(VIEW[:0]).shape == (0, 3, 8, 8)


def test_points_whose_squared_distance_underflows_make_a_plate():
    target = 1e-200 * torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    found = wk.flow.thin_plate_spline(target + 1, target, (1, 1))
    torch.testing.assert_close(found, torch.ones(1, 1, 2, dtype=torch.float64))


def test_integers_beyond_64_bits_are_accepted():
    large = attacks.Cylinder(2**70).flow((1, 5))
    torch.testing.assert_close(large, torch.zeros(1, 5, 2, dtype=torch.float64))
    with pytest.warns(UserWarning, match="Photometric: `noise` above 1"):
        photometric = attacks.Photometric(noise=2**70, gamma=(1, 2**70))
    assert photometric(VIEW).shape == VIEW.shape
    matrix = attacks.AffineDistribution(translation=(2**70, 2**70)).sample(1, size=(2, 2))
    assert (matrix[0, :, 2] == 2.0**70).all()
