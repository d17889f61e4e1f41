"""Calls that fuzzing found, which failed far inside torch or under another name."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

import warpkit as wk
import warpkit.opencv as cv2
from warpkit import attacks, validation
from warpkit.nn import SpatialTransformer
from warpkit.transforms import RandomAffine, RandomPerspective

ONCE = {"steps": 1, "samples": 1}
IMAGE, EYE = torch.zeros(1, 4, 5), torch.eye(2, 3)
META = torch.zeros(1, 4, 5, device="meta")
PLANES, MAP = torch.zeros(4, 5), torch.zeros(2, 3)
SUPPORT = wk.GradientSupport(0, 20, 0.0, torch.zeros(2, 1, 4, 5, dtype=torch.bool))
SPARSE = IMAGE.to_sparse()

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
    "linear_lookup: `border` must be one of 'replicate', 'reflect',": (
        lambda: wk.linear_lookup([1.0], 0.5, border=np.array(["a", "b"]))  # pyright: ignore
    ),
    "remap: `map1` must be of one of the types float16, bfloat16, float32, float64, got": (
        lambda: cv2.remap(PLANES, MAP.to(torch.float8_e5m2), MAP, cv2.INTER_LINEAR)
    ),
}


@pytest.mark.parametrize("text", FOUND)
def test_a_call_that_fuzzing_found_is_refused(text):
    with pytest.raises((ValueError, TypeError), match=re.escape(text)):
        FOUND[text]()


def test_no_background_is_none_of_8_bits_either():
    options = {"quantize": True, "background": None}
    value = attacks.expectation(torch.mean, torch.ones(1, 4, 4), torch.eye(2, 3)[None], **options)
    torch.testing.assert_close(value, torch.tensor(1.0))
