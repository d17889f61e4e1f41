"""RandomRotation(expand=True): image, mask, boxes and key points on one canvas, torchvision's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

from tests.support.inputs import noise
from tests.support.runs_by_hand import carried
from tests.support.tolerances import TOLERANCE
from tests.transforms.test_transforms import HAS_KEYPOINTS, both
from warpkit.transforms import Fused, RandomRotation

SIZE = (90, 120)
BOX = (40.0, 30.0, 80.0, 50.0)
ANGLES = [10, 30, 45, 77, -100, 200]


def white() -> Tensor:
    """The box drawn as an image (1, H, W), float64."""
    image = torch.zeros(1, *SIZE, dtype=torch.float64)
    image[0, 30:50, 40:80] = 1
    return image


def centroid(image: Tensor) -> np.ndarray:
    """The centroid (x, y) of an image (1, h, w), in edge coordinates."""
    weights = image[0].as_subclass(Tensor).double().numpy()
    y, x = (np.arange(n) + 0.5 for n in weights.shape)
    middle = [(weights.sum(0) * x).sum(), (weights.sum(1) * y).sum()]
    return np.array(middle) / weights.sum()


def turned_corners(angle: float, size: tuple[int, int]) -> np.ndarray:
    """BOX's corners, rotated counter-clockwise; the image's middle moves to that of `size`."""
    a = np.radians(angle)
    turn = np.array([[np.cos(a), np.sin(a), 0], [-np.sin(a), np.cos(a), 0], [0, 0, 1]])
    back, there = np.eye(3), np.eye(3)
    back[:2, 2] = -SIZE[1] / 2, -SIZE[0] / 2
    there[:2, 2] = size[1] / 2, size[0] / 2
    x1, y1, x2, y2 = BOX
    return carried(there @ turn @ back, np.array([(x1, y1), (x2, y1), (x2, y2), (x1, y2)]))


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("angle", ANGLES)
def test_labels_move_with_the_image(angle: int, fused: bool):
    """The square's centroid, the middle of its box, the point in its middle; the mask's extent."""
    made = RandomRotation((angle, angle), "bilinear", expand=True)
    transform = Fused([made]) if fused else made
    inputs = {
        "image": tv_tensors.Image(white()),
        "mask": tv_tensors.Mask(white().byte()),
        "boxes": tv_tensors.BoundingBoxes(torch.tensor([BOX]), format="XYXY", canvas_size=SIZE),
    }
    if HAS_KEYPOINTS:
        inputs["points"] = tv_tensors.KeyPoints(torch.tensor([[60.0, 40.0]]), canvas_size=SIZE)
    got = transform(inputs)
    size = v2.RandomRotation((angle, angle), expand=True)(white()).shape[-2:]
    assert got["image"].shape[-2:] == got["mask"].shape[-2:] == got["boxes"].canvas_size == size
    seen = centroid(got["image"])
    (box,) = got["boxes"].numpy()
    # bilinear samples weight the pixels of a sharp edge slightly unevenly
    np.testing.assert_allclose((box[:2] + box[2:]) / 2, seen, rtol=0, atol=0.02)
    corners = turned_corners(angle, size)
    np.testing.assert_allclose(box, [*corners.min(0), *corners.max(0)], rtol=0, atol=1e-4)
    y, x = got["mask"][0].as_subclass(Tensor).nonzero().numpy().T
    extent = [x.min(), y.min(), x.max() + 1, y.max() + 1]
    np.testing.assert_allclose(extent, box, rtol=0, atol=1.0)
    if HAS_KEYPOINTS:
        assert got["points"].canvas_size == size
        np.testing.assert_allclose(got["points"][0].numpy(), seen, rtol=0, atol=0.02)


@pytest.mark.parametrize("kind", ["XYXY", "XYWH", "CXCYWH", "XYWHR", "CXCYWHR", "XYXYXYXY"])
@pytest.mark.parametrize("angle", [30, -100])
def test_boxes_of_every_format_keep_their_format(angle: int, kind: str):
    """Also boxes of integers; without boxes, the canvas still is the new one."""
    if not hasattr(tv_tensors.BoundingBoxFormat, kind):
        pytest.skip("this torchvision has no rotated boxes")
    made = RandomRotation((angle, angle), expand=True)
    rotated = "R" in kind or len(kind) == 8
    x1, y1, x2, y2 = BOX
    numbers = torch.tensor([[x1, y1, x2, y1, x2, y2, x1, y2] if rotated else BOX])
    between = "XYXYXYXY" if rotated else "XYXY"
    given = tv_tensors.BoundingBoxes(numbers, format=between, canvas_size=SIZE)
    given = v2.functional.convert_bounding_box_format(given, new_format=kind)
    got = made(given)
    corners = turned_corners(angle, got.canvas_size)
    assert got.format.value == kind
    assert got.dtype == torch.float32
    assert got.shape == given.shape
    if rotated:
        quad = v2.functional.convert_bounding_box_format(got, new_format="XYXYXYXY")
        np.testing.assert_allclose(quad.numpy().reshape(4, 2), corners, rtol=0, atol=2e-4)
    else:
        flat = v2.functional.convert_bounding_box_format(got, new_format="XYXY").numpy()
        np.testing.assert_allclose(flat[0], [*corners.min(0), *corners.max(0)], rtol=0, atol=2e-4)
    none = made(tv_tensors.wrap(given[:0].as_subclass(Tensor), like=given))
    assert none.shape == (0, given.shape[1])
    assert none.canvas_size == got.canvas_size
    if kind == "XYXY":
        whole = made(tv_tensors.wrap(given.as_subclass(Tensor).long(), like=given))
        assert whole.tolist() == flat.astype(int).tolist()


def test_random_draws_match_torchvision():
    """500 draws: pixels and size. Without a fill, with which torchvision counts coverage twice."""
    generator = np.random.default_rng(0)
    for seed in range(500):
        height, width = generator.integers(1, 40, 2).tolist()
        image = noise(2, 5, 5).double()
        image = torch.nn.functional.interpolate(image[None], (height, width), mode="bicubic")[0]
        angles = sorted(generator.uniform(-400, 400, 2)) if seed % 5 else [90 * (seed % 9 - 4)] * 2
        options = {"degrees": angles, "expand": True, "interpolation": "bilinear"}
        ours, theirs = RandomRotation(**options, fill=None), v2.RandomRotation(**options, fill=None)
        got, wanted = both(ours, theirs, image, seed=seed)
        assert got.shape == wanted.shape, (seed, angles, height, width)
        apart = (got - wanted).abs().max()
        assert apart <= TOLERANCE["torchvision float64"], (seed, angles, height, width)
