"""Nearest in ONNX: an index gather of every type, with the elements of the same call in torch."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import warpkit as wk
from tests.support.inputs import noise
from warpkit import camera
from warpkit.core import exports

SHIFT = [[1.0, 0.0, 3.0], [0.0, 1.0, 2.0]]
TURN = [[0.913, 0.207, 0.331], [-0.157, 1.13, -0.417]]
POINTS = torch.rand(9, 10, 2, generator=torch.Generator().manual_seed(0)) * 30 - 3
BOXES = torch.tensor([[3.0, 4, 16, 14], [1, 2, 9, 9]])
NEAREST = {"interpolation": "nearest"}
CALLS = {
    "shift": partial(wk.warp_affine, matrix=SHIFT, **NEAREST),
    "turn": partial(wk.warp_affine, matrix=TURN, border_value=1, **NEAREST),
    "opencv5": partial(wk.warp_affine, matrix=TURN, arithmetic="opencv5", **NEAREST),
    "remap": partial(wk.remap, points=POINTS, border="reflect", **NEAREST),
    "crop": lambda image: wk.crop_patches(image, BOXES, [0, 1], (7, 8), **NEAREST),
    "resize": partial(wk.resize, size=(12, 40), **NEAREST),
    "letterbox": lambda image: wk.letterbox(image, (40, 40), **NEAREST).image,
    "undistort": lambda image: camera.undistort(
        image, torch.tensor([[40.0, 0, 15], [0, 40, 12], [0, 0, 1]]), [-0.1, 0.02, 0, 0], **NEAREST
    ),
}
WHOLE = (np.uint8, np.int8, np.int16, np.uint16, np.int32, np.int64, np.uint32, np.uint64)
KINDS = (*WHOLE, np.bool_, np.float16, np.float32, np.float64)


class Calls(nn.Module):
    """All calls of all images that the type has, in one model: an export takes seconds."""

    def forward(self, *images: Tensor) -> tuple[Tensor, ...]:
        return tuple(
            call(image) for image in images for name, call in CALLS.items() if has(name, image)
        )


def has(name: str, image: Tensor) -> bool:
    """Whether a call is made of images of this type: the last ones of few, as they take seconds."""
    if name in ("shift", "resize"):
        return True
    return image.dtype in (torch.bool, torch.uint16, torch.int64)


def pictures(seed: int) -> list[np.ndarray]:
    """A batch (2, 2, 24, 31) of each type, with its largest numbers."""
    random = np.random.default_rng(seed)
    found = []
    for kind in KINDS:
        if kind in WHOLE:
            ends = np.iinfo(kind)
            image = random.integers(ends.min, ends.max, (2, 2, 24, 31), kind, endpoint=True)
        else:
            image = random.normal(size=(2, 2, 24, 31))
            image = image > 0 if kind is np.bool_ else image.astype(kind)
        found.append(image)
    return found


def run(module: nn.Module, *images: np.ndarray) -> tuple[list[np.ndarray], object]:
    """What onnxruntime computes, and the model."""
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    tensors = tuple(map(torch.from_numpy, images))
    program = torch.onnx.export(
        module.eval(), tensors, dynamo=True, opset_version=20, verbose=False
    )
    assert program is not None
    session = runtime.InferenceSession(
        program.model_proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [each.name for each in session.get_inputs()]
    return session.run(None, dict(zip(names, images, strict=True))), program.model_proto


def test_every_type_keeps_its_elements():
    images = pictures(0)
    got, _ = run(Calls(), *images)
    wanted = Calls()(*map(torch.from_numpy, images))
    assert len(got) == len(wanted) == 2 * len(KINDS) + 3 * (len(CALLS) - 2)
    for made, tensor in zip(got, wanted, strict=True):
        assert made.dtype == tensor.numpy().dtype
        assert np.array_equal(made, tensor.numpy()), made.dtype
    shifted = iter(range(len(got)))
    for image in images:  # by numpy: 3 columns to the right, 2 rows down
        here = [next(shifted) for name in CALLS if has(name, torch.from_numpy(image))]
        true = np.zeros_like(image)
        true[..., 2:, 3:] = image[..., :-2, :-3]
        assert np.array_equal(got[here[0]], true), image.dtype


class Torchs(nn.Module):
    """torch's nearest, which F.interpolate alone would export as ONNX's Resize."""

    def forward(self, *images: Tensor) -> tuple[Tensor, ...]:
        resize = partial(wk.resize, size=(5, 64), arithmetic="torchvision")
        kinds = ("nearest", "nearest_exact")
        return tuple(resize(image, interpolation=kind) for image in images for kind in kinds)


def test_torchs_nearest_of_floats_reads_torchs_pixels():
    """Of 26 to 64 columns, column 32 is 13: Resize computes 12."""
    row = np.arange(26.0)
    images = [np.tile(row, (1, 1, 3, 1)).astype(kind) for kind in (np.float32, np.float64)]
    got, model = run(Torchs(), *images)
    assert [made.dtype for made in got] == [np.float32, np.float32, np.float64, np.float64]
    assert got[0][0, 0, 0, 32] == got[2][0, 0, 0, 32] == 13
    true = row[np.arange(64) * 26 // 64]
    exact = row[np.floor((np.arange(64) + 0.5) * 26 / 64).astype(int)]
    for k, made in enumerate(got):
        assert np.array_equal(made, np.broadcast_to((true, exact)[k % 2], made.shape))
    assert "Resize" not in {node.op_type for node in model.graph.node}  # pyright: ignore


def test_float64_without_a_kernel_is_refused_in_one_sentence(monkeypatch):
    monkeypatch.setattr(exports, "exports_to_onnx", lambda: True)
    image = torch.rand(1, 3, 9, 9, dtype=torch.float64)
    said = "cannot be exported to ONNX in float64, for which onnxruntime has no Resize: convert it"
    for name in ("bilinear", "bicubic"):
        with pytest.raises(RuntimeError, match=said):
            wk.resize(image, (4, 5), interpolation=name, arithmetic="torchvision")
    wk.resize(image.float(), (4, 5), arithmetic="torchvision")


class Cubes(nn.Module):
    """Cubes of nearest, whose pixels are ties on middle lines and diagonals; and matrices."""

    def __init__(self, *sides: int) -> None:
        super().__init__()
        self.sides = sides

    def forward(self, sphere: Tensor, degrees: Tensor) -> tuple[Tensor, ...]:
        cubes = [camera.to_cube(sphere, side, **NEAREST) for side in self.sides]
        view = camera.from_sphere(sphere, (6, 9), field_of_view=80.0, **NEAREST)
        turned = wk.rotation_matrix((3.0, 4.0), degrees)
        boxes = torch.stack(
            (degrees * 0 + 9, degrees * 0 + 8, degrees * 0 + 4, degrees * 0 + 3, degrees)
        )
        return (*cubes, view, turned, camera.rotation(yaw=degrees), wk.box_to_matrix(boxes, (4, 5)))


def test_spheres_and_rotations_have_the_digits_of_float64():
    """torch's exporter writes Python's numbers, such as pi / 180, as float32."""
    degrees = torch.tensor(33.3, dtype=torch.float64)
    for size, sides in (((10, 20), (5, 8)), ((15, 30), (9,))):  # an export takes 4 s for each
        sphere = noise(3, *size, dtype=torch.float32)
        got, _ = run(Cubes(*sides), sphere.numpy(), degrees.numpy())
        wanted = Cubes(*sides)(sphere, degrees)
        for made, tensor in zip(got[:-3], wanted[:-3], strict=True):
            assert np.array_equal(made, tensor.numpy()), size
        for made, tensor in zip(got[-3:], wanted[-3:], strict=True):
            assert made.dtype == np.float64
            np.testing.assert_allclose(made, tensor.numpy(), rtol=0, atol=1e-14)


def test_ties_of_a_cube_take_the_even_pixel():
    """90 degrees to the right is halfway between columns 14 and 15 of 20."""
    columns = torch.arange(20.0).expand(1, 10, 20)
    for backend in (columns, columns.to(torch.int32)):
        cube = camera.to_cube(backend, 9, **NEAREST)
        assert cube[0, 0, :, 4].tolist() == [14] * 9
        assert cube[1, 0, :, 4].tolist() == [4] * 9
