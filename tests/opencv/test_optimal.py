"""getOptimalNewCameraMatrix beside cv2's, to the last bit: mild lenses, and lenses that fold.

A last bit counts: a region's corner that lies on a whole pixel is rounded up or down by it.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

import warpkit.opencv as ours
from tests.camera.test_points import SIZES
from tests.support.installed_opencv import installed_opencv
from tests.support.tolerances import TOLERANCE
from warpkit import camera

cv2 = installed_opencv()
RELEASE = tuple(int(part) for part in cv2.__version__.split(".")[:2])
pytestmark = pytest.mark.skipif(
    RELEASE < (4, 12), reason="before 4.12 OpenCV looks at points inside of the image, too"
)
CALLS = 600


def cases(seed):
    """Arguments as people have them: whole numbers, fractions, sizes that differ, strong lenses."""
    random = np.random.default_rng(seed)
    for _ in range(CALLS):
        width, height = (int(n) for n in random.integers(20, 1500, 2))
        f = random.uniform(0.3, 2) * max(width, height)
        cx, cy = (width - 1, height - 1) * (0.5 + random.normal(0, 0.03, 2))
        matrix = np.array([[f, 0, cx], [0, f * random.uniform(0.9, 1.1), cy], [0, 0, 1]])
        n = random.choice([0, 4, 5, 8, 12, 14])
        k = random.normal(0, 2, n) * SIZES[:n] * random.choice([0.1, 0.5, 1, 2]) if n else None
        if random.random() < 0.3:
            matrix, k = matrix.round(), None if k is None else k.round(2)
        alpha = float(random.choice([0, 1, 0.5, *random.random(2)]))
        new = None if random.random() < 0.5 else tuple(int(s) for s in random.integers(20, 1500, 2))
        yield matrix, k, (width, height), alpha, new, bool(random.random() < 0.5)


def test_random_calls_are_cv2s_to_the_last_bit():
    given_up = 0
    for args in cases(0):
        matrix, region = ours.getOptimalNewCameraMatrix(*args)
        truth, theirs = cv2.getOptimalNewCameraMatrix(*args)
        np.testing.assert_array_equal(matrix, truth, err_msg=str(args))
        assert region == tuple(theirs), args
        given_up += theirs == (0, 0, 0, 0)
    assert 0 < given_up < CALLS / 4


def test_points_of_the_same_lenses_are_cv2s_to_the_last_bit():
    for matrix, k, (width, height), *_ in cases(1):
        points = np.random.default_rng(0).random((30, 1, 2)) * (width, height)
        for view in (None, matrix):
            truth = cv2.undistortPoints(points, matrix, k, None, None, view)
            out = ours.undistortPoints(points, matrix, k, None, None, view)
            np.testing.assert_array_equal(out, truth)


def test_the_region_needs_no_inner_points():
    """A lens that turns back inside of the image, where cv2 once looked at the points between."""
    folding = np.array([-0.00174836, -0.05206808, 0.00013347, 0.00227692])
    args = (np.array([[350.0, 0, 483], [0, 341, 506], [0, 0, 1]]), folding, (981, 959), 0.44)
    matrix, _ = ours.getOptimalNewCameraMatrix(*args)
    np.testing.assert_allclose(matrix, args[0], rtol=1e-12)  # all of the border is given up


def test_a_tilted_sensors_points_come_back_from_the_core():
    """The exact inverse of the tilt, and the face's by C's sines, are the same to rounding."""
    k = np.zeros(14)
    k[12:] = 0.05, -0.03
    matrix = np.array([[520.0, 0, 310], [0, 500, 250], [0, 0, 1]])
    points = np.random.default_rng(2).random((20, 2)) * (640, 480)
    exact, found = camera.undistort_points(torch.from_numpy(points), matrix, k)
    assert found.all()
    out = ours.undistortPoints(points, matrix, k, None, None, matrix)[:, 0]
    assert np.abs(out - exact.numpy()).max() < TOLERANCE["pixels float64"]
