"""getOptimalNewCameraMatrix has cv2's bits: weak lenses, and lenses that fold.

The last bit matters: it decides whether a region's corner on a whole pixel is rounded up or down.
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
    RELEASE < (4, 12), reason="before 4.12, OpenCV also uses points inside the image"
)
CALLS = 600


def cases(seed):
    """Typical arguments: integers, fractions, different sizes and strong lenses."""
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


def test_random_calls_have_cv2s_bits():
    given_up = 0
    for args in cases(0):
        matrix, region = ours.getOptimalNewCameraMatrix(*args)
        truth, theirs = cv2.getOptimalNewCameraMatrix(*args)
        np.testing.assert_array_equal(matrix, truth, err_msg=str(args))
        assert region == tuple(theirs), args
        given_up += theirs == (0, 0, 0, 0)
    assert 0 < given_up < CALLS / 4


def test_points_of_the_same_lenses_have_cv2s_bits():
    for matrix, k, (width, height), *_ in cases(1):
        points = np.random.default_rng(0).random((30, 1, 2)) * (width, height)
        for view in (None, matrix):
            truth = cv2.undistortPoints(points, matrix, k, None, None, view)
            out = ours.undistortPoints(points, matrix, k, None, None, view)
            np.testing.assert_array_equal(out, truth)


def test_the_region_depends_only_on_the_border():
    """The lens folds inside the image, where old versions of cv2 also used inner points."""
    folding = np.array([-0.00174836, -0.05206808, 0.00013347, 0.00227692])
    args = (np.array([[350.0, 0, 483], [0, 341, 506], [0, 0, 1]]), folding, (981, 959), 0.44)
    matrix, _ = ours.getOptimalNewCameraMatrix(*args)
    np.testing.assert_allclose(matrix, args[0], rtol=1e-12)  # the whole border is discarded


def test_points_of_a_tilted_sensor_match_the_core():
    """The core's exact inverse of the tilt and the one by C's sines differ only by rounding."""
    k = np.zeros(14)
    k[12:] = 0.05, -0.03
    matrix = np.array([[520.0, 0, 310], [0, 500, 250], [0, 0, 1]])
    points = np.random.default_rng(2).random((20, 2)) * (640, 480)
    exact, found = camera.undistort_points(torch.from_numpy(points), matrix, k)
    assert found.all()
    out = ours.undistortPoints(points, matrix, k, None, None, matrix)[:, 0]
    assert np.abs(out - exact.numpy()).max() < TOLERANCE["pixels float64"]
