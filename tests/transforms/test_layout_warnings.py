"""Every transform warns once, at the caller's line, about an image (H, W, C)."""

from __future__ import annotations

import warnings

import pytest
import torch
from torchvision import tv_tensors
from torchvision.transforms import v2

from tests.transforms.test_family import FAMILY
from tests.transforms.test_unfused import line
from warpkit.transforms import (
    CenterCrop,
    ElasticTransform,
    Fused,
    RandomAffine,
    RandomHorizontalFlip,
    RandomPerspective,
    RandomVerticalFlip,
    Resize,
)

SHAPE = (40, 50, 3)
FLIP, TURN = RandomHorizontalFlip(1.0), RandomAffine((20, 20), interpolation="bilinear")
MADE = {
    **{name: made(**arguments) for name, (made, arguments) in FAMILY.items()},
    "resize, one side": Resize(12),  # of an image 3 pixels wide
    "elastic": ElasticTransform(alpha=2.0, sigma=0.1),  # its noise needs no wide image
    "one alone": Fused([TURN]),
    "a turn and a tilt": Fused([TURN, RandomPerspective(p=1.0)]),
    "flips": Fused([FLIP, RandomVerticalFlip(1.0)]),
    "a flip and a resize": Fused([FLIP, Resize(8)]),
    "torchvision's crop": Fused([FLIP, v2.RandomCrop(2)]),
    "a field": Fused([FLIP, ElasticTransform(alpha=2.0, sigma=0.1)]),
    "runs": Fused([FLIP, TURN, v2.Identity(), CenterCrop(30), Resize(9), v2.Identity(), TURN]),
    "a batch": Fused([TURN, Resize(20)], per_image=True),
    "a batch of kinds": Fused([RandomPerspective(p=0.5), TURN, Resize(20)], per_image=True),
}


@pytest.mark.parametrize("kind", ["tensor", "image"])
@pytest.mark.parametrize("name", MADE)
def test_each_transform_warns_once(name: str, kind: str):
    made = MADE[name]
    shape = (6, *SHAPE) if "batch" in name else SHAPE
    image = torch.rand(shape)
    given = image if kind == "tensor" else tv_tensors.Image(image)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        _, at = made(given), line()
    (warning,) = said
    function = "RandomAffine" if name == "one alone" else type(made).__name__
    text = f"{function}: `inpt` of shape {shape} is read as (..., C, H, W), and looks like "
    assert str(warning.message).startswith(text)
    assert (warning.filename, warning.lineno) == (__file__, at)


@pytest.mark.parametrize("name", MADE)
def test_a_correct_layout_gets_no_warning(name: str):
    """pytest turns warnings into errors."""
    image = torch.rand(3, 40, 50)
    MADE[name](image.expand(6, 3, 40, 50) if "batch" in name else image)
