"""Boxes and key points use a run's one map: corners by hand, outlines by pixels."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torchvision import tv_tensors
from torchvision.transforms import v2

from tests.support.runs_by_hand import (
    SMALL,
    by_hand,
    carried,
    drawn,
    long_run,
)
from tests.transforms.test_transforms import HAS_KEYPOINTS, both
from warpkit import transforms
from warpkit.transforms import (
    ElasticTransform,
    Fused,
    RandomHorizontalFlip,
    RandomPerspective,
    RandomVerticalFlip,
    Resize,
)


@pytest.mark.parametrize("seed", range(4))
def test_boxes_and_keypoints_use_the_one_map(seed: int):
    """Corners by hand, in every format, clamped once at the end. Without flips, torchvision counts
    all key points from the corner."""
    fused = Fused([t for t in long_run(interpolation="bilinear").transforms if not hasattr(t, "p")])
    params = drawn(fused, SMALL, seed)
    matrix, (h, w) = by_hand(fused, params["draws"], SMALL)
    box = torch.tensor([[4.0, 3.0, 17.0, 15.0], [0.0, 0.0, 28.0, 20.0]], dtype=torch.float64)
    x1, y1, x2, y2 = box.numpy().T
    corners = np.stack([np.stack(p, -1) for p in ((x1, y1), (x2, y1), (x2, y2), (x1, y2))], 1)
    there = carried(matrix, corners)
    expected = np.concatenate((there.min(1), there.max(1)), -1).clip(0, [w, h, w, h])
    for kind in ("XYXY", "XYWH", "CXCYWH"):
        given = tv_tensors.BoundingBoxes(box, format="XYXY", canvas_size=SMALL)
        given = v2.functional.convert_bounding_box_format(given, new_format=kind)
        got = fused.transform(given, params)
        assert got.format.value == kind
        assert got.canvas_size == (h, w)
        back = v2.functional.convert_bounding_box_format(got, new_format="XYXY")
        np.testing.assert_allclose(back.numpy(), expected, rtol=0, atol=1e-9)
    if not HAS_KEYPOINTS:
        return
    points = torch.rand(3, 2, 2) * 18
    got = fused.transform(tv_tensors.KeyPoints(points, canvas_size=SMALL), params)
    assert got.shape == points.shape
    assert got.canvas_size == (h, w)
    np.testing.assert_allclose(got.numpy(), carried(matrix, points.double().numpy()), atol=1e-5)


def test_boxes_under_a_field_enclose_their_outline():
    """The enlarged mask of a filled box is inside the box and touches all sides."""
    size, box = (48, 60), [14.0, 12.0, 44.0, 33.0]
    fused = Fused([ElasticTransform(150.0, 4.0), Resize((192, 240)), RandomVerticalFlip(1.0)])
    params = drawn(fused, size, 1)
    given = tv_tensors.BoundingBoxes(torch.tensor([box]), format="XYXY", canvas_size=size)
    got = fused.transform(given, params)[0]
    points = fused.map(params, size) + torch.stack(
        torch.meshgrid(torch.arange(240.0), torch.arange(192.0), indexing="xy"), -1
    )
    x, y = (points + 0.5).unbind(-1)
    y_seen, x_seen = ((x > 14) & (x < 44) & (y > 12) & (y < 33)).nonzero().unbind(1)
    seen = [x_seen.min(), y_seen.min(), x_seen.max() + 1, y_seen.max() + 1]
    difference = got - torch.stack(seen)
    assert difference.abs().max() < 1.0  # in pixels a quarter as large as the image's
    assert (got[0::2] - torch.tensor([56.0, 176.0])).abs().max() > 2  # the field bends


@pytest.mark.parametrize("kind", ["XYXYXYXY", "XYWHR", "CXCYWHR"])
def test_rotated_boxes_are_rotated_and_flipped(kind: str):
    """As by torchvision step by step, without shears and cuts."""
    pytest.importorskip("torchvision", "0.23")
    make = [
        ("RandomRotation", {"degrees": 50}),
        ("RandomHorizontalFlip", {}),
        ("RandomVerticalFlip", {}),
        ("RandomAffine", {"degrees": 30, "scale": (0.6, 0.9)}),
        ("Resize", {"size": (80, 96)}),
    ]
    ours = Fused([getattr(transforms, name)(**made) for name, made in make])
    theirs = v2.Compose([getattr(v2, name)(**made) for name, made in make])
    given = tv_tensors.BoundingBoxes(
        torch.tensor([[22.0, 18, 12, 6, 25]]), format="CXCYWHR", canvas_size=(40, 48)
    )
    given = v2.functional.convert_bounding_box_format(given, new_format=kind)
    for seed in range(6):
        got, wanted = both(ours, theirs, given, seed=seed)
        got, wanted = (
            v2.functional.convert_bounding_box_format(b, new_format="XYXYXYXY").reshape(4, 2)
            for b in (got, wanted)
        )
        torch.testing.assert_close(got, wanted, rtol=0, atol=1e-3)


def test_a_box_across_the_horizon_is_clamped_to_the_canvas():
    """w = 0 at x = 10: half of the box leaves on the right, half enters from the left."""
    fused = Fused([RandomPerspective(0.5, 1.0), RandomHorizontalFlip(0.0)])
    params = {"draws": [{"coefficients": [1.0, 0, 0, 0, 1, 0, 0.1, 0]}, None]}
    given = tv_tensors.BoundingBoxes(
        torch.tensor([[8.0, 1, 12, 5]]), format="XYXY", canvas_size=(20, 20)
    )
    # x' = x / (1 - x / 10): 8 -> 40, 12 -> -60
    assert fused.transform(given, params).tolist() == [[0, 0, 20, 20]]


@pytest.mark.parametrize(
    ("slope", "bias", "left", "right"),
    # x' = (slope x + bias) / (1 - x / 10): where the two sides go, and on to both infinities
    [(1, 0, 1, 12), (1, -20, 1, 30), (-3, 31, 8, 12)],  # 1.1, -60; -21, -5; 35, 25
)
def test_a_box_across_the_horizon_reaches_both_infinities(slope, bias, left, right):
    """Its corners alone would leave out the pixels between them and the horizon."""
    fused = Fused([RandomPerspective(0.5, 1.0), RandomHorizontalFlip(0.0)])
    back = np.linalg.inv(np.array([[slope, 0, bias], [0, 1, 0], [-0.1, 0, 1]], np.float64))
    numbers = (back / back[2, 2]).ravel().tolist()[:8]
    params = {"draws": [{"coefficients": numbers}, None]}
    given = tv_tensors.BoundingBoxes(
        torch.tensor([[left, 1.0, right, 5]]), format="XYXY", canvas_size=(20, 20)
    )
    found = fused.transform(given, params)
    np.testing.assert_allclose(found.numpy(), [[0, 0, 20, 20]], atol=1e-6)
