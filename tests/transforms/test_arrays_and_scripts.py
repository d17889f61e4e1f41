"""NumPy images are rejected by name; torch.jit.script gives torchvision's transform or fails."""

from __future__ import annotations

import re

import numpy as np
import PIL.Image
import pytest
import torch
from torchvision import transforms as v1
from torchvision import tv_tensors
from torchvision.transforms import v2

from tests.support.inputs import noise
from tests.transforms.test_family import FAMILY
from warpkit.transforms import CenterCrop, Fused, RandomAffine, RandomHorizontalFlip, Resize

IMAGE = noise(30, 33, 3, dtype=torch.uint8).numpy()
WANTED = "`inpt` must be a tensor (..., C, H, W), a PIL image or one of torchvision's tv_tensors"
GOT = "got a NumPy array of shape (30, 33, 3)"
MADE = {
    **{name: made(**arguments) for name, (made, arguments) in FAMILY.items()},
    "run": Fused([RandomHorizontalFlip(), CenterCrop(4)]),
    "run of torchvision's": Fused([v2.RandomCrop(4)]),
    "batch": Fused([CenterCrop(4)], per_image=True),
}


BOX = tv_tensors.BoundingBoxes(torch.ones(1, 4), format="XYWH", canvas_size=IMAGE.shape[:2])
INPUTS = {
    "alone": (IMAGE,),
    "with a label": (IMAGE, torch.tensor(3)),
    "with a tensor": (IMAGE, torch.ones(2, 4)),
    "with boxes": ({"image": IMAGE, "boxes": BOX},),
    "with a mask": (IMAGE, tv_tensors.Mask(torch.zeros(IMAGE.shape[:2], dtype=torch.uint8))),
}


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("name", MADE)
def test_arrays_are_rejected(name: str, inputs: str):
    made = MADE[name]
    text = f"^{re.escape(f'{type(made).__name__}: {WANTED}')}.*{re.escape(GOT)}$"
    with pytest.raises(TypeError, match=text):
        made(*INPUTS[inputs])


@pytest.mark.parametrize("name", sorted(MADE.keys() - {"batch"}))
def test_arrays_are_rejected_without_a_draw(name: str):
    made = MADE[name]
    text = f"^{re.escape(f'{type(made).__name__}: {WANTED}')}.*{re.escape(GOT)}$"
    params = made.make_params([torch.from_numpy(IMAGE).movedim(-1, 0)])
    with pytest.raises(TypeError, match=text):
        made.transform(IMAGE, params)


def test_arrays_beside_an_image_are_passed_through():
    """torchvision passes them through, also next to boxes whose canvas has another size."""
    data = np.arange(6.0).reshape(2, 3)
    flip, pil = RandomHorizontalFlip(1.0), PIL.Image.fromarray(IMAGE)
    tensor = torch.from_numpy(IMAGE).movedim(-1, 0)
    box = tv_tensors.BoundingBoxes(torch.ones(1, 4), format="XYWH", canvas_size=(30, 33))
    for made in (flip, Fused([flip, CenterCrop(8)])):
        for image in (tensor, tv_tensors.Image(tensor), pil, box):
            assert made(image, data)[1] is data
        assert made(tensor, IMAGE)[1] is IMAGE
        assert made(3) == 3


def test_a_barrier_may_convert_arrays():
    """Each run checks its own input."""
    made = Fused([v2.ToImage(), RandomHorizontalFlip(1.0), CenterCrop(IMAGE.shape[:2])])
    assert np.array_equal(made(IMAGE).movedim(0, -1).numpy(), IMAGE[:, ::-1])


@pytest.mark.parametrize("name", FAMILY)
def test_scripts_give_torchvisions_results(name: str):
    made, arguments = FAMILY[name]
    old = getattr(v1, made.__name__)(**arguments)
    scripted = torch.jit.script(made(**arguments))
    image = noise(3, 24, 21)
    torch.manual_seed(2)
    got = scripted(image)
    torch.manual_seed(2)
    assert torch.equal(got, old(image))


def test_scripts_keep_nearest_exact():
    image = noise(3, 11, 13, dtype=torch.float32)
    made = Resize((5, 4), "nearest")
    assert torch.equal(torch.jit.script(made)(image), made(image))


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (RandomAffine(3, border="reflect"), "`border` must be 'constant' {}, got 'reflect'"),
        (RandomAffine(3, center=(1, 2.5)), "`center` must be two whole numbers {}, got [1.0, 2.5]"),
        (
            Resize(3, "area"),
            (
                "`interpolation` must be one of 'nearest', 'nearest-exact', 'bilinear', 'bicubic', "
                "'box', 'hamming', 'lanczos' {}, got 'area'"
            ),
        ),
    ],
)
def test_scripts_reject_options_that_torchvision_lacks(made, text: str):
    name = type(made).__name__
    text = text.format(f"under torch.jit.script, which runs torchvision.transforms.{name}")
    with pytest.raises(ValueError, match=f"^{name}: {re.escape(text)}$"):
        torch.jit.script(made)


def test_torchs_name_for_the_default_border_can_be_scripted():
    assert torch.jit.script(RandomAffine(3, border="zeros"))(torch.ones(1, 3, 3)).shape == (1, 3, 3)
