"""Boxes under matrices, and the matrix of a resize, by hand, in numpy and against `resize`."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

import warpkit as wk
from tests.support.inputs import noise
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE

TILT = np.array([[0.9, 0.3, 2.0], [-0.2, 1.1, 5.0], [1e-3, -2e-3, 1.0]])


def naive(boxes: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Each box corner by corner; NaN across the horizon."""
    found = []
    for x1, y1, x2, y2 in boxes:
        corners = [matrix @ (x - 0.5, y - 0.5, 1) for x in (x1, x2) for y in (y1, y2)]
        w = np.array([corner[2] for corner in corners])
        good = (w > 0).all() or (w < 0).all()
        places = np.array([corner[:2] / (corner[2] if good else 1) for corner in corners])
        ends = (*places.min(0), *places.max(0))
        found.append([n + 0.5 for n in ends] if good else [np.nan] * 4)
    return np.array(found)


@pytest.mark.parametrize("rows", [2, 3])
def test_boxes_are_around_their_mapped_corners(rows):
    boxes = np.random.default_rng(0).uniform(-50, 150, (30, 4))
    matrix = np.vstack((TILT[:2], (0, 0, 1))) if rows == 2 else TILT
    truth = naive(boxes, matrix)
    for _ in range(2):
        found = wk.transform_boxes(boxes, matrix[:rows])
        np.testing.assert_allclose(found, truth, atol=TOLERANCE["pixels float64"])
    single = wk.transform_boxes(boxes[0], matrix[:rows])
    assert single.shape == (4,)
    np.testing.assert_allclose(single, truth[0], atol=TOLERANCE["pixels float64"])


def test_a_box_at_the_horizon_is_nan_alone():
    matrix = np.array([[1.0, 0, 0], [0, 1, 0], [1, 0, -9.5]])  # w = 0 at the edge x = 10
    boxes = torch.tensor([[0.0, 0, 5, 5], [5, 0, 15, 5], [5, 0, 10, 5], [12, 0, 15, 5]]).double()
    boxes.requires_grad_()
    moving = torch.from_numpy(matrix).requires_grad_()
    found = wk.transform_boxes(boxes, moving)
    assert found.isnan().any(-1).tolist() == [False, True, True, False]
    np.testing.assert_allclose(found.detach(), naive(boxes.detach().numpy(), matrix))
    grads = torch.autograd.grad(found[[0, 3]].sum(), (boxes, moving))
    assert all(grad.isfinite().all() for grad in grads)


def test_batches_types_and_whole_pictures():
    boxes, matrices = noise(3, 1, 6, 4), torch.eye(2, 3, dtype=torch.float64).expand(2, 2, 3)
    assert wk.transform_boxes(boxes, matrices).shape == (3, 2, 6, 4)
    assert wk.transform_boxes([[0, 0, 4, 2]], [[1, 0, 0], [0, 1, 0]]).dtype == torch.float32
    # the whole picture stays the whole picture under the matrix of a resize
    whole = wk.transform_boxes([0.0, 0, 40, 30], wk.resize_matrix((30, 40), (17, 91)))
    np.testing.assert_allclose(whole, [0, 0, 91, 17], atol=TOLERANCE["float32 corners"])
    with pytest.raises(ValueError, match="transform_boxes: `boxes` must be of shape"):
        wk.transform_boxes(torch.zeros(2, 5), torch.eye(3))


def test_torchvisions_boxes_of_any_upright_format():
    tv = pytest.importorskip("torchvision.tv_tensors", reason="torchvision is not installed")
    box = tv.BoundingBoxes([[10.0, 4, 6, 2]], format="CXCYWH", canvas_size=(20, 20))
    found = wk.transform_boxes(box, [[1.0, 0, 1], [0, 1, 2]])
    assert found.tolist() == [[8, 5, 14, 7]]
    for form, width in (("CXCYWHR", 5), ("XYWHR", 5), ("XYXYXYXY", 8)):
        if hasattr(tv.BoundingBoxFormat, form):  # since torchvision 0.23
            rotated = tv.BoundingBoxes(torch.ones(1, width), format=form, canvas_size=(20, 20))
            text = f"`boxes` must be upright, .* transform_points, got BoundingBoxes of {form}"
            with pytest.raises(ValueError, match=text):
                wk.transform_boxes(rotated, torch.eye(3))


def test_gradients_to_boxes_and_matrix():
    boxes = torch.tensor([[1.0, 2, 9, 7], [20, 3, 40, 9]]).double().requires_grad_()
    matrix = torch.from_numpy(TILT).requires_grad_()
    assert gradcheck(wk.transform_boxes, (boxes, matrix))
    assert gradgradcheck(wk.transform_boxes, (boxes, matrix))


@pytest.mark.parametrize("size", [(17, 91), (60, 20), (30, 40)])
def test_the_matrix_of_a_resize_samples_where_resize_does(size):
    image = noise(2, 30, 40)
    matrix = wk.resize_matrix((30, 40), size)
    down, across = size[0] / 30, size[1] / 40
    truth = [[across, 0, 0.5 * across - 0.5], [0, down, 0.5 * down - 0.5]]
    np.testing.assert_allclose(matrix, truth, rtol=TOLERANCE["float32 matrices"], atol=1e-6)
    exact = torch.tensor(truth, dtype=torch.float64)
    warped = wk.warp_affine(image, exact, size=size, border="replicate")
    plain = wk.resize(image, size, antialias=False)
    torch.testing.assert_close(warped, plain, atol=TOLERANCE["resize warp"] * 10, rtol=0)


def test_compose_takes_matrices_apart():
    move, grow = torch.eye(3), torch.eye(3) * 2
    rows = [[1, 0, 3], [0, 1, 0]]
    for wrong in ([move, grow], (move.numpy(), grow), [rows, rows], [[torch.ones(3)] * 2] * 2):
        with pytest.raises(ValueError, match=r"compose: `matrices` must be separate arguments"):
            wk.compose(wrong)
    assert wk.compose(rows).tolist() == rows
    assert wk.compose([torch.tensor([1.0, 0, 3]), torch.tensor([0.0, 1, 0])]).tolist() == rows
    assert wk.compose(torch.eye(3).expand(4, 3, 3)).shape == (4, 3, 3)
