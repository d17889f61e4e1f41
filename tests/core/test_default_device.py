"""Calls with tensors on the CPU, while torch's default device is another one."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import tv_tensors

import warpkit as wk
from tests.support import ROOT
from tests.support.argument_kinds import same
from tests.support.every_call import assert_equal, results_in
from tests.support.forks import python
from warpkit import attacks, transforms, validation

TABLES = sorted(
    path.stem
    for path in (ROOT / "tests" / "fuzz").glob("test_*.py")
    if " Case(" in path.read_text()
)


@pytest.mark.parametrize("table", TABLES)
def test_fuzzed_calls_have_the_same_results(table):
    """In another process: a kernel that gets an address of the other device ends it."""
    command = [*python(), "-m", "tests.support.another_device", f"tests.fuzz.{table}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.returncode} at {done.stdout[-60:]}: {done.stderr}"
    assert done.stdout.count("\n") > 3


def test_all_functions_have_the_same_results(tmp_path: Path):
    assert_equal(results_in("meta", tmp_path), results_in("plain", tmp_path))


def test_the_package_can_be_imported():
    code = (
        "import torch; torch.set_default_device('meta'); import warpkit as wk; "
        "import numpy as np, warpkit.opencv as cv2, warpkit.alignment, warpkit.transforms; "
        "src = torch.tensor([[0.0, 0], [1, 0], [1, 1], [0, 1]], device='cpu'); "
        "print(wk.perspective_from_points(src, src * 2)[0, 0].item(), "
        "wk.similarity_from_points(src, src * 2)[0, 0].round().item(), "
        "cv2.resize(np.ones((4, 5), np.uint8), (2, 2)).tolist())"
    )
    done = subprocess.run([*python(), "-c", code], capture_output=True, text=True)
    assert done.stdout == "2.0 2.0 [[1, 1], [1, 1]]\n", done.stderr


KINDS: dict[str, Any] = {
    "RandomAffine": lambda: transforms.RandomAffine(
        30, (0.1, 0.2), shear=9, interpolation="bilinear"
    ),
    "RandomRotation": lambda: transforms.RandomRotation((20, 40), expand=True),
    "RandomPerspective": lambda: transforms.RandomPerspective(0.4, p=1.0),
    "RandomHorizontalFlip": lambda: transforms.RandomHorizontalFlip(1.0),
    "RandomVerticalFlip": lambda: transforms.RandomVerticalFlip(1.0),
    "RandomResizedCrop": lambda: transforms.RandomResizedCrop((7, 8)),
    "Resize": lambda: transforms.Resize((7, 8)),
    "CenterCrop": lambda: transforms.CenterCrop((9, 20)),
    "ElasticTransform": lambda: transforms.ElasticTransform(9.0, 0.4),
    "Fused": lambda: transforms.Fused(
        [
            transforms.RandomAffine(30),
            transforms.ElasticTransform(9.0, 0.4),
            transforms.Resize((9, 8)),
            transforms.RandomHorizontalFlip(1.0),
        ]
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_transforms_apply_what_was_drawn(kind):
    """torchvision draws on the default device: here outside."""
    torch.manual_seed(0)
    image = torch.rand(3, 12, 15)
    boxes: Any = {"format": "XYXY", "canvas_size": (12, 15)}
    inputs = [
        image,
        (image * 255).byte(),
        tv_tensors.Mask(image[0] > 0.5),
        tv_tensors.BoundingBoxes(torch.tensor([[1.0, 2, 8, 9], [0, 0, 5, 4]]), **boxes),
        tv_tensors.KeyPoints(torch.tensor([[1.0, 2], [8, 9]]), canvas_size=(12, 15)),
        Image.fromarray(np.uint8(image.movedim(0, -1) * 255)),
    ]
    transform = KINDS[kind]()
    params = transform.make_params(inputs)
    truth = [transform.transform(x, dict(params)) for x in inputs]
    with torch.device("meta"):
        found = [transform.transform(x, dict(params)) for x in inputs]
    for one, other in zip(found, truth, strict=True):
        assert same(np.asarray(one), np.asarray(other))


def test_a_layer_that_was_made_before():
    images = torch.rand(2, 3, 8, 9)
    head = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 9, 4))
    for kind in ("affine", "similarity", "perspective", "thin_plate"):
        layer: Any = wk.nn.SpatialTransformer(head, (4, 5), features=4, transform=kind)
        with torch.device("meta"):
            found = layer(images)
        torch.testing.assert_close(found, layer(images), rtol=0, atol=0)


def test_lists_go_where_the_tensors_of_a_call_are():
    one = torch.tensor(1.0)
    with torch.device("meta"):
        assert wk.indexing.linear_lookup([10.0, 20.0], one * 0.5).item() == 15.0
        assert wk.indexing.assign([1.0, 2.0], 1, one * 9).tolist() == [1.0, 9.0]
        assert wk.invert([[2 * one, 0, 0], [0, 2, 1]]).tolist() == [[0.5, 0, 0], [0, 0.5, -0.5]]
        assert wk.rotation_matrix((one, 2.0), 180).round().tolist() == [[-1, 0, 2], [0, -1, 4]]


def test_what_is_made_of_numbers_alone_is_on_the_default_device():
    with torch.device("meta"):
        assert wk.rotation_matrix((1.0, 2.0), 30).is_meta
        assert wk.affine_matrix(angle=30).is_meta
        assert wk.pixel_grid((2, 3)).is_meta
        assert attacks.Cylinder(2.0).flow((2, 3)).is_meta
        # but draws are where the generator is
        assert attacks.AffineDistribution(angle=(-9, 9)).sample(2, size=(3, 4)).device.type == "cpu"


def test_programs_are_identified():
    def program(image: np.ndarray) -> np.ndarray:
        small = Image.fromarray(image).resize((32, 24), Image.Resampling.BICUBIC)
        return np.asarray(small, np.float32).transpose(2, 0, 1) / 255

    truth = validation.identify(program)
    with torch.device("meta"):
        found = validation.identify(program)
        assert not validation.compare_pipelines(program, program).findings
    assert str(found) == str(truth)
    assert "bicubic" in str(found)
