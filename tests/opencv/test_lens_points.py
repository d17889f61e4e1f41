"""Points of lenses in `warpkit.opencv`: cv2's shapes and types, and OpenCV's fisheye tests.

The facts are of OpenCV's test_fisheye.cpp; the code is ours.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

import warpkit.opencv as ours
from tests.support.installed_opencv import installed_opencv
from tests.support.tolerances import TOLERANCE

cv2 = installed_opencv()
K = np.array([[80.0, 0, 60], [0, 82, 40], [0, 0, 1]])
D = np.array([0.05, -0.01, 0.002, -0.001])

# the wide camera of OpenCV's tests
SIZE = (1280, 800)
WIDE = np.array(
    [[558.478087865323, 0, 620.458515360843], [0, 560.506767351568, 381.939424848348], [0, 0, 1]]
)
LENS = np.array([-0.0014613319981768, -0.00329861110580401, 0.00605760088590183, -0.00374209380722])

PLAIN = [(5, 2), (5, 1, 2), (1, 5, 2), (1, 2), (1, 1, 2), (2, 1, 2), (2, 2), (2,)]
PLAIN += [(2, 5), (2, 1), (5, 2, 1), (2, 5, 1)]


@pytest.fixture
def random() -> np.random.Generator:
    """A generator that draws the same in every test, whichever tests run before it."""
    return np.random.default_rng(1)


def check_form(mine, theirs, form):
    """Compare shape, type and values of one call in both, and with a tensor."""
    most = TOLERANCE[f"cv2 points {form.dtype}"]
    truth, out, tensor = theirs(form), mine(form), mine(torch.from_numpy(form))
    assert (out.shape, out.dtype) == (truth.shape, truth.dtype)
    assert np.abs(out - truth).max() <= np.abs(truth).max() * most
    assert np.array_equal(tensor.numpy(), out)
    assert tensor.numpy().dtype == out.dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", PLAIN)
def test_undistorted_points_have_cv2s_shape_and_type(shape, dtype, random):
    form = (random.random(shape) * 80).astype(dtype)
    for matrix in (None, K):
        check_form(
            lambda p, m=matrix: ours.undistortPoints(p, K, D, None, None, m),
            lambda p, m=matrix: cv2.undistortPoints(p, K, D, None, None, m),
            form,
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(5, 1, 2), (1, 5, 2), (3, 4, 2), (2, 2, 2), (1, 1, 2)])
def test_fisheye_points_keep_their_shape_and_type(shape, dtype, random):
    form = (random.random(shape) * 80).astype(dtype)
    mine, theirs = ours.fisheye, cv2.fisheye
    check_form(
        lambda p: mine.undistortPoints(p, K, D), lambda p: theirs.undistortPoints(p, K, D), form
    )
    check_form(
        lambda p: mine.distortPoints(p, K, D), lambda p: theirs.distortPoints(p, K, D), form / 80
    )
    out = mine.distortPoints(form, WIDE, K, D)
    truth = theirs.distortPoints(form, WIDE, K, D, None, 0)  # which converts floats to doubles
    assert (out.shape, out.dtype) == (truth.shape, truth.dtype) == (shape, np.float64)
    assert np.abs(out - truth).max() < TOLERANCE["pixels float64"]
    # cv2 rejects rows of two numbers
    flat = form.reshape(-1, 2)
    for made in (mine.undistortPoints(flat, K, D), mine.distortPoints(flat, K, D)):
        assert (made.shape, made.dtype) == (flat.shape, flat.dtype)


@pytest.mark.parametrize("shape", [(3, 4, 2), (1, 2, 5), (5, 1, 1, 2), (5,), (3, 3)], ids=str)
def test_shapes_that_cv2_rejects_are_rejected(shape):
    with pytest.raises(ValueError, match="undistortPoints: `src` must be of shape"):
        ours.undistortPoints(np.ones(shape), K, D)


@pytest.mark.parametrize("shape", [(5, 1, 1, 2), (5,), (2, 5), (3, 3)], ids=str)
@pytest.mark.parametrize("name", ["undistortPoints", "distortPoints"])
def test_shapes_that_cv2s_fisheyes_reject_are_rejected(name, shape):
    with pytest.raises(ValueError, match=rf"fisheye.{name}: `\w+` must be of shape"):
        getattr(ours.fisheye, name)(np.ones(shape), K, D)


def test_weak_lenses_are_inverted_in_both_directions(random):
    corners = [WIDE[:2, 2], (0, 0), (0, SIZE[1]), (SIZE[0], 0), SIZE]
    points = np.concatenate((np.array(corners, float), random.random((100, 2)) * SIZE))[:, None]
    for _ in range(10):
        args = (WIDE, random.uniform(-1e-5, 1e-5, (1, 4)))
        # directions up to 88 degrees, since pixels would be directions too far out
        for there, back in (
            (ours.fisheye.distortPoints, ours.fisheye.undistortPoints),
            (ours.fisheye.undistortPoints, ours.fisheye.distortPoints),
        ):
            moved = back(there(points, *args), *args)
            assert moved.shape == points.shape
            assert np.abs(moved - points).max() < 1e-7


def test_an_array_of_points_through_two_lenses_is_a_map(random):
    """Points (H, W, 2) through both functions make a map for remap; cv2 drops folded pixels."""
    x, y = np.meshgrid(*(np.arange(n, dtype=np.float32) for n in SIZE))
    pixels = np.dstack((x, y))
    folded = np.array([-1.0, 0, 0, 0])
    ideal = ours.fisheye.undistortPoints(pixels, WIDE, folded)
    assert (ideal.shape, ideal.dtype) == (pixels.shape, np.float32)
    off = np.hypot(x - SIZE[0] / 2, y - SIZE[1] / 2) > 250
    assert (ideal[off] == -1e6).all()
    truth = cv2.fisheye.undistortPoints(pixels, WIDE, folded)
    assert np.array_equal(ideal, truth)
    assert (ideal != -1e6).mean() > 0.1
    shown = ours.fisheye.distortPoints(ideal, WIDE, LENS)
    for row, column, wanted in (
        (400, 640, (640.044, 400.041)),
        (400, 440, (409.731, 403.029)),
        (200, 640, (643.341, 168.896)),
        (300, 480, (463.402, 290.317)),
        (550, 750, (797.51, 611.637)),
    ):
        assert np.abs(shown[row, column] - wanted).max() < 1e-2, (row, column, wanted)
    picture = random.integers(1, 256, (SIZE[1], SIZE[0], 3), dtype=np.uint8)
    seen = ours.remap(picture, shown, None, ours.INTER_LINEAR)
    assert not seen[off].any()
    assert np.array_equal(seen, cv2.remap(picture, shown, None, cv2.INTER_LINEAR))
