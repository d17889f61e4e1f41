"""Exports to ONNX: one sentence for each unsupported call, and the results of the others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

import warpkit as wk
import warpkit.opencv as cv2
from tests.support.inputs import noise
from warpkit import attacks, camera, flow, indexing, transforms
from warpkit.core import exports

CAMERA = torch.tensor([[40.0, 0.0, 15.0], [0.0, 40.0, 12.0], [0.0, 0.0, 1.0]])
LENS = torch.tensor([-0.1, 0.02, 0.0, 0.0])
IMAGE = noise(1, 3, 9, 12).float()
PAIRS = noise(5, 2).float() * 9
BOX, TURN = torch.tensor([[2.0, 3.0, 7.0, 8.0]]), torch.eye(2, 3)[None]
FIRST = torch.tensor([0])

REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "distort": (lambda: camera.distort(IMAGE, CAMERA, LENS), "by distort_map or undistort_points"),
    "undistort_points": (
        lambda: camera.undistort_points(PAIRS, CAMERA, LENS),
        "pass them to remap",
    ),
    "a fisheye": (
        lambda: camera.distort_map(CAMERA, LENS, (4, 5), model="fisheye"),
        "make the points before",
    ),
    "optimal": (
        lambda: camera.optimal_camera_matrix(CAMERA, LENS, (9, 12), 0.5),
        "inverting a lens",
    ),
    "flow.invert": (lambda: flow.invert(torch.zeros(4, 5, 2)), "call flow.invert or"),
    "flow.transform_points": (
        lambda: flow.transform_points(PAIRS, torch.zeros(9, 9, 2)),
        "pass the result to the model",
    ),
    "perspective": (lambda: wk.perspective_from_points(PAIRS, PAIRS), "take four pairs, or"),
    "transform_patches": (
        lambda: wk.transform_patches(IMAGE, BOX, TURN, FIRST),
        "warp each patch and its mask to the image's size by warp_affine",
    ),
    "paste_patches": (lambda: wk.paste_patches(IMAGE, IMAGE, TURN, FIRST), "and blend: image +"),
    "assign": (lambda: indexing.assign(torch.zeros(3), 0.5, 1.0), "with the weights of soft_one"),
    "Pipeline": (
        lambda: attacks.Pipeline(lambda x: x / 2)(IMAGE),
        "call it once before the export",
    ),
    "Photometric": (lambda: attacks.Photometric()(IMAGE), "pass the draws to the model"),
    "RandomAffine": (lambda: transforms.RandomAffine(5)(IMAGE), "RandomAffine: cannot be exported"),
    "a flip": (lambda: transforms.RandomHorizontalFlip()(IMAGE), "transform the images before"),
    "Fused": (
        lambda: transforms.Fused([transforms.CenterCrop((3, 4))])(IMAGE),
        "export the transforms one after another",
    ),
}


@pytest.fixture
def in_an_export(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "exports_to_onnx", lambda: True)


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.usefixtures("in_an_export")
def test_calls_without_a_graph_say_what_to_do_instead(name: str):
    call, instead = REFUSED[name]
    with pytest.raises(RuntimeError, match="cannot be exported to ONNX ") as raised:
        call()
    assert instead in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.usefixtures("in_an_export")
def test_value_dependent_functions_are_rejected_for_tensors_only():
    turn = np.array([0.1, -0.2, 0.3])
    assert cv2.Rodrigues(turn)[0].shape == (3, 3)
    with pytest.raises(RuntimeError, match=r"opencv\.Rodrigues: .*: call it before the export"):
        cv2.Rodrigues(torch.from_numpy(turn))


@pytest.mark.usefixtures("in_an_export")
def test_calls_without_random_draws_are_not_rejected():
    resize, crop = transforms.Resize((5, 6)), transforms.CenterCrop((3, 4))
    assert resize(IMAGE).shape[-2:] == (5, 6)
    assert crop(IMAGE).shape[-2:] == (3, 4)
    assert wk.perspective_from_points(PAIRS[:4], PAIRS[:4]).shape == (3, 3)


def plane() -> tuple[Tensor, Tensor]:
    """Short and long vectors in all directions, with the axes and the origin."""
    angle = torch.linspace(-4, 4, 2001, dtype=torch.float64)
    x = torch.cat((angle.cos(), angle.cos() * 1e-20, torch.tensor([0.0, 1, -1, 0, 0])))
    y = torch.cat((angle.sin(), angle.sin() * 1e-20, torch.tensor([0.0, 0, 0, 1, -1])))
    return x, y


def test_arctangents_are_accurate_to_float64(in_an_export: None):
    x, y = plane()
    torch.testing.assert_close(exports.atan2(y, x), torch.atan2(y, x), rtol=0, atol=1e-13)
    torch.testing.assert_close(exports.atan(y), y.atan(), rtol=0, atol=1e-13)
    single = exports.atan2(y.float(), x.float())
    assert torch.equal(single, torch.atan2(y.float(), x.float()))


def test_lengths_match_hypot(in_an_export: None):
    x, y = plane()
    torch.testing.assert_close(exports.hypot(x, y), torch.hypot(x, y), rtol=1e-15, atol=0)
