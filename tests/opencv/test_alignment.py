"""findTransformECC, compared with cv2 and with the true matrices."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import warpkit as wk
import warpkit.opencv as ours
from tests.support.installed_opencv import installed_opencv
from tests.support.scenes import Scene, corner_error
from tests.support.tolerances import TOLERANCE

SIZE = (60, 72)
TRUE = torch.tensor([[1.01, 0.02, 1.3], [-0.02, 0.99, -0.8]], dtype=torch.float64)
"""Template -> input, small enough for cv2's one level."""


def pictures() -> tuple[np.ndarray, np.ndarray]:
    """Template and input, 8 bits."""
    scene = Scene(1, finest=10.0)
    both = scene.seen(wk.invert(TRUE), SIZE), scene.at(wk.pixel_grid(SIZE).double())
    return tuple((image[0] * 255).clamp(0, 255).round().to(torch.uint8).numpy() for image in both)


@pytest.mark.parametrize("motion", [ours.MOTION_AFFINE, ours.MOTION_HOMOGRAPHY])
def test_matrices_are_close_to_cv2s_and_to_the_truth(motion):
    cv2 = installed_opencv()
    template, image = pictures()
    rows = 3 if motion == ours.MOTION_HOMOGRAPHY else 2
    start = np.eye(rows, 3, dtype=np.float32)
    criteria = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 100, 1e-8)
    score, matrix = ours.findTransformECC(template, image, start, motion, criteria, None, 5)
    assert matrix is start
    assert matrix.dtype == np.float32
    begin = np.eye(rows, 3, dtype=np.float32)
    theirs, other = cv2.findTransformECC(template, image, begin, motion, criteria, None, 5)
    assert score == pytest.approx(theirs, abs=0.01)
    assert corner_error(torch.from_numpy(matrix).double(), TRUE, SIZE) < TOLERANCE["align pixels"]
    apart = corner_error(*(torch.from_numpy(m).double() for m in (matrix, other)), SIZE)
    assert apart < 0.4  # cv2 stops 0.1 to 0.3 pixels from the truth


def test_tensors_masks_and_gradients_are_supported():
    template, image = (torch.from_numpy(picture).double() for picture in pictures())
    mask = torch.ones(SIZE, dtype=torch.uint8)
    image[:14, :14], mask[:14, :14] = 255.0, 0
    image.requires_grad_()
    start = torch.eye(2, 3)
    _, matrix = ours.findTransformECC(template, image, start, inputMask=mask)
    assert corner_error(matrix.detach().double(), TRUE, SIZE) < TOLERANCE["align pixels"]
    (grad,) = torch.autograd.grad(matrix.sum(), image)
    assert grad.abs().sum() > 0
    assert not grad[:10, :10].any()


def test_images_that_do_not_converge_raise_an_error():
    template, _ = pictures()
    noise = np.random.default_rng(0).integers(0, 256, SIZE, dtype=np.uint8)
    with pytest.raises(ours.error, match="stopped before its convergence") as caught:
        ours.findTransformECC(template, noise, np.eye(2, 3, dtype=np.float32))
    assert caught.value.code == -7
    with pytest.raises(ValueError, match=r"^findTransformECC: `inputImage` must be of at least 16"):
        ours.findTransformECC(template, noise[:8], None)
    with pytest.raises(ValueError, match=r"`warpMatrix` must be of shape \(3, 3\), got \(2, 3\)"):
        ours.findTransformECC(template, noise, np.eye(2, 3), ours.MOTION_HOMOGRAPHY)
