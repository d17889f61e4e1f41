"""torchvision's BoundingBoxes with their formats, in every argument that takes boxes."""

from __future__ import annotations

import subprocess

import pytest
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

import warpkit as wk
from tests.support.forks import python
from tests.support.inputs import noise

IMAGE = noise(3, 20, 30)
CORNERS = torch.tensor([[2.0, 3.0, 10.0, 9.0], [5.5, 1.0, 21.0, 18.25]])
FORMATS = ["XYXY", "XYWH", "CXCYWH"]


def as_boxes(name: str, corners: Tensor = CORNERS) -> tv_tensors.BoundingBoxes:
    boxes = tv_tensors.BoundingBoxes(corners, format="XYXY", canvas_size=(20, 30))
    return v2.functional.convert_bounding_box_format(boxes, new_format=name)


def pasted(boxes: Tensor) -> Tensor:
    found = wk.attacks.optimize_patch(
        lambda images: images.mean(), IMAGE[None], boxes, None, patch_size=(4, 4), steps=2
    )
    return found.patch


CALLS = {
    "crop_patches": lambda boxes: wk.crop_patches(IMAGE, boxes, None, size=(5, 6)),
    "transform_patches": lambda boxes: wk.transform_patches(
        IMAGE, boxes, wk.rotation_matrix((4.0, 5.0), 20.0).expand(len(boxes), 2, 3), None
    ),
    "box_to_matrix": lambda boxes: wk.box_to_matrix(boxes, (5, 6), angle=10.0),
    "optimize_patch": pasted,
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("function", CALLS)
def test_boxes_are_read_by_their_own_format(function: str, name: str):
    boxes = as_boxes(name)
    found, expected = CALLS[function](boxes), CALLS[function](CORNERS)
    assert type(found) is Tensor
    assert torch.equal(found, expected)
    assert boxes.format.name == name
    assert torch.equal(boxes, as_boxes(name))  # not modified


@pytest.mark.parametrize("name", FORMATS)
def test_whole_numbers_are_converted_as_torchvision_does(name: str):
    numbers = [4, 5, 8, 9] if name == "XYXY" else [9, 8, 5, 4]
    boxes = tv_tensors.BoundingBoxes([numbers], format=name, canvas_size=(20, 30))
    corners = v2.functional.convert_bounding_box_format(boxes, new_format="XYXY")
    expected = wk.crop_patches(IMAGE, corners.as_subclass(Tensor), None, size=(3, 3))
    assert torch.equal(wk.crop_patches(IMAGE, boxes, None, size=(3, 3)), expected)


@pytest.mark.parametrize("name", FORMATS)
def test_gradients_reach_the_numbers_of_boxes(name: str):
    """A change of a box's width moves its right edge by half as much."""
    numbers = as_boxes(name).as_subclass(Tensor).clone().requires_grad_()
    boxes = tv_tensors.BoundingBoxes._wrap(numbers, format=name, canvas_size=(20, 30))
    matrix = wk.box_to_matrix(boxes, (5, 6))
    (grad,) = torch.autograd.grad(matrix[:, 0, 0].sum(), numbers)  # the box's width over 6
    per_number = {"XYXY": (-1, 0, 1, 0), "XYWH": (0, 0, 1, 0), "CXCYWH": (0, 0, 1, 0)}[name]
    torch.testing.assert_close(grad, torch.tensor(per_number).expand(2, 4) / 6)


@pytest.mark.skipif(
    not hasattr(tv_tensors.BoundingBoxFormat, "XYWHR"), reason="this torchvision has none"
)
def test_optimize_patch_takes_rotated_boxes():
    """A box about (8, 7) of 6 x 4, by 0 degrees, in three formats."""
    formats = {
        "CXCYWHR": [8.0, 7, 6, 4, 0],
        "XYWHR": [5.0, 5, 6, 4, 0],
        "XYXYXYXY": [5.0, 5, 11, 5, 11, 9, 5, 9],
    }
    seen = []
    for name, numbers in formats.items():
        boxes = tv_tensors.BoundingBoxes(torch.tensor([numbers]), format=name, canvas_size=(20, 30))

        def objective(views: Tensor) -> Tensor:
            seen.append(views.detach())
            return views.mean()

        wk.attacks.optimize_patch(
            objective, torch.ones(1, 20, 30), boxes, None, patch_size=(4, 6), steps=1
        )
    expected = torch.ones(1, 1, 20, 30)
    expected[..., 5:9, 5:11] = 0.5
    for views in seen:
        torch.testing.assert_close(views, expected)


def test_torchvision_is_not_loaded_for_plain_boxes():
    code = (
        "import sys, torch, warpkit as wk\n"
        "wk.crop_patches(torch.ones(1, 8, 8), [[1.0, 2.0, 5.0, 6.0]], None, size=(2, 2))\n"
        "assert 'torchvision' not in sys.modules"
    )
    subprocess.run([*python(), "-c", code], check=True)
