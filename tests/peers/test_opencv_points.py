"""Expectations of OpenCV's tests of matrices, lenses, projections and points.

The facts are of its imgproc (imgwarp), geometry (homography, undistort, fisheye, cameras), calib
(cameracalibration_badarg) and core (arithm); the code is ours.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch

import warpkit.opencv as ours
from tests.support.installed_opencv import installed_opencv

cv2 = installed_opencv()
installed_is_5 = cv2.__version__.startswith("5.")
SIZE = (1280, 800)
WIDE = np.array(
    [[558.478087865323, 0, 620.458515360843], [0, 560.506767351568, 381.939424848348], [0, 0, 1]]
)
FISHEYE = np.array(
    [-0.0014613319981768, -0.00329861110580401, 0.00605760088590183, -0.00374209380722371]
)


def carried(matrix: np.ndarray, points: np.ndarray) -> np.ndarray:
    moved = np.c_[points, np.ones(len(points))] @ matrix.T
    return moved[:, :2] / moved[:, 2:]


def test_a_perspective_whose_origin_goes_to_infinity():
    src = np.array([[320, 512], [960, 512], [0, 1024], [1280, 1024]], np.float32)
    dst = np.array([[0, 0], [1280, 0], [0, 1024], [1280, 1024]], np.float32)
    matrix = ours.getPerspectiveTransform(src, dst)
    assert abs(matrix[2, 2]) <= 1e-16
    assert abs(np.linalg.norm(matrix) - 1) <= 1e-14
    assert np.abs(carried(matrix, src) - dst).max() <= 1e-10


@pytest.mark.parametrize("count", [4, 5])
def test_a_homography_whose_origin_goes_to_infinity(count: int):
    src = np.array([[-1, -1], [-2, -2], [-1, 1], [-2, 2], [-1, 0]], float)[:count]
    dst = np.array([[0, -1], [-1, -1], [0, 0], [-1, 0], [0, -0.5]])[:count]
    found, mask = ours.findHomography(src, dst)
    wanted = cv2.findHomography(src, dst)[0]
    if count == 5:
        numbers = [0.74276086, 0, 0.74276086, 0.18569022, 0.18569022, 0, -0.37138043, 0, 0]
        np.testing.assert_allclose(np.abs(wanted), np.abs(np.reshape(numbers, (3, 3))), atol=1e-8)
    found = found * np.sign(found[0, 0] * wanted[0, 0])
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-8)
    assert mask.all()
    before, after = (torch.from_numpy(points).requires_grad_() for points in (src, dst))
    matrix, _ = ours.findHomography(before, after)
    for grad in torch.autograd.grad(matrix.sum(), (before, after)):
        assert grad.isfinite().all()
        assert grad.any()


def test_a_homography_of_noisy_pairs():
    src = np.array(
        [41, -86, -87, 99, 66, -96, -86, -8, -67, 24, -87, -76, -19, 89, 37, -4, -86, -86, -66, -53]
    ).reshape(10, 2)
    dst = [
        *(0.007723226608700208, -1.177541410622515, -0.1909072353027552, -0.4247610181930323),
        *(-0.134992319993638, -0.6469949816560389, -0.3570627451405215, 0.1811469436293486),
        *(-0.3005671881038939, -0.02325733734262935, -0.4404509481789249, 0.4851526464158342),
        *(0.6343346428859541, -3.396187657072353, -0.3539383967092603, 0.1469447227353143),
        *(-0.4526924606856586, 0.5296757109061794, -0.4309974583614644, 0.4522732662733471),
    ]
    matrix, _ = ours.findHomography(src.astype(float), np.reshape(dst, (10, 2)))
    assert abs(matrix[2, 2] - 1) <= 1e-7
    left = carried(matrix, src) - np.reshape(dst, (10, 2))
    assert np.sqrt((left**2).sum(1).mean()) <= 7e-5


def test_a_dot_seen_through_a_lens():
    camera = np.array([[3217, 0, 1592], [0, 3217, 1201], [0, 0, 1]], float)
    image = np.zeros((512, 512), np.uint8)
    image[128::256, 128::256] = 255
    wanted = np.zeros_like(image)
    for x, y, *values in (
        *((24, 98, 78, 36), (24, 99, 114, 60), (27, 361, 6, 188, 44), (28, 362, 49, 16)),
        *((317, 366, 134, 40), (317, 367, 78, 29), (310, 104, 106, 112), (310, 105, 30, 38)),
    ):
        wanted[y, x : x + len(values)] = values
    out = ours.undistort(image, camera, np.array([[0.04], [-0.4], [-0.01], [0.04], [0.7]]))
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("seed", range(10))
def test_the_best_view_without_a_lens_is_the_camera(seed: int):
    random = np.random.default_rng(seed)
    width, height = (int(n) for n in random.integers(1, 2001, 2))
    focal = max(width, height) / (0.9 - random.random() * 0.6)
    camera = np.array([[focal, 0, (width - 1) / 2], [0, focal * width / height, (height - 1) / 2]])
    camera = np.vstack((camera, [0, 0, 1])).astype((np.float32, np.float64)[seed % 2])
    args = (camera, np.zeros(4), (width, height), random.random(), (width, height), seed % 3 > 0)
    np.testing.assert_allclose(ours.getOptimalNewCameraMatrix(*args)[0], camera, rtol=2e-6)


def randomly(count: int, random: np.random.Generator) -> Any:
    """A camera, a lens of `count` numbers, a rotation, and a projection without lens and camera."""
    focal, middle = random.uniform(1e-3, 100, (2, 2))
    camera = np.array([[focal[0], 0, middle[0]], [0, focal[1], middle[1]], [0, 0, 1]])
    lens, turn = random.uniform(-0.1, 0.1, (count, 1)), random.uniform(-0.2, 0.2, 3)
    scene, still = random.uniform([-1, -1, 5], [1, 1, 10], (500, 3)), np.zeros(3)
    seen = ours.projectPoints(scene, still, still, camera, lens)[0]
    return (
        camera,
        lens,
        turn,
        seen,
        lambda by: ours.projectPoints(scene, by, still, camera, None)[0],
    )


@pytest.mark.parametrize("count", [4, 5, 8])
@pytest.mark.parametrize("turned", [False, True])
def test_undistorted_points_equal_those_without_a_lens(count: int, turned: bool):
    for seed in range(5):
        camera, lens, turn, seen, shown = randomly(count, np.random.default_rng(seed))
        turn = turn if turned else np.zeros(3)
        found = ours.undistortPoints(seen, camera, lens, None, ours.Rodrigues(turn)[0], camera)
        assert np.abs(found - shown(turn)).max() <= 1e-2, seed


@pytest.mark.skipif(not installed_is_5, reason="OpenCV 4's undistortPoints has no criteria")
@pytest.mark.parametrize("seed", range(5))
def test_points_are_solved_to_the_requested_accuracy(seed: int):
    camera = np.array([[857.48296979, 0, 968.06224829], [0, 876.71824265, 556.37145899], [0, 0, 1]])
    lens = np.array([-2.57614020e-01, 8.77086999e-02, -2.56970803e-04, -5.93390389e-04])
    lens = np.append(lens, -1.52194091e-02)
    point = np.random.default_rng(seed).uniform(0, [1920, 1080], (1, 1, 2))
    turn, still = np.array([0.1, -0.2, 0.2]), np.zeros(3)
    criteria = (ours.TERM_CRITERIA_MAX_ITER + ours.TERM_CRITERIA_EPS, 100, 1e-6)
    turned = ours.Rodrigues(turn)[0]
    found = ours.undistortPoints(point, camera, lens, None, turned, None, criteria)
    solid = np.concatenate((found, np.ones((1, 1, 1))), -1)
    again = ours.projectPoints(solid, -turn, still, camera, lens)[0]
    assert np.linalg.norm(again - point) <= 1e-6


@pytest.mark.skipif(not installed_is_5, reason="OpenCV 4's undistortPoints has no criteria")
def test_points_of_a_lens_with_twelve_coefficients():
    camera = np.array([[1570.8956145992222, 0, 744.87337646727406], [0, 1570.3494207432338, 0]])
    camera = np.vstack((camera, [0, 0, 1]))
    camera[1, 2] = 575.55087456337526
    lens = np.array(
        [
            *(-2.8247717583453804, -0.80078070764368037, -0.014595359484103326),
            *(0.0018820998949700702, 1.9827795585249783, -2.7306773773930897, -1.217725820479524),
            *(2.4052243546080136, -0.0020670359760441713, 3.4660880793174063e-05),
            *(0.014100351510458799, -3.0935329736207612e-05),
        ]
    )
    points = np.stack(np.meshgrid(np.arange(50.0), np.arange(50.0)), -1).reshape(-1, 1, 2)
    ideal = ours.undistortPoints(points, camera, lens, None, None, None, (3, 100, 5e-3))
    solid, still = np.concatenate((ideal, np.ones((2500, 1, 1))), -1), np.zeros(3)
    assert np.abs(ours.projectPoints(solid, still, still, camera, lens)[0] - points).max() <= 1e-2


@pytest.mark.parametrize("seed", range(10))
def test_points_of_a_tilted_sensor_survive_a_round_trip(seed: int):
    """A lens of 16.4 mm looks at a plane 200 mm away, tilted by 55 degrees."""
    away = 16.4 * 200 / (200 - 16.4)
    tilt = np.arctan2(away * np.tan(np.radians(55)), 200)
    focal = away / 0.005
    camera = np.array([[focal, 0, 799.5], [0, focal, 599.5], [0, 0, 1]])
    spread = np.array([0.2, 0.1, *[0.01] * 6, *[0.001] * 6])
    lens = np.random.default_rng(seed).uniform(-spread, spread)
    lens[12] -= tilt
    points = np.stack(np.meshgrid(np.arange(0.0, 1600, 99), np.arange(0.0, 1200, 99)), -1)
    points = points.reshape(-1, 1, 2)
    ideal = ours.undistortPoints(points, camera, lens)
    solid, still = np.concatenate((ideal, np.ones_like(ideal[..., :1])), -1), np.zeros(3)
    again = ours.projectPoints(solid, still, still, camera, lens)[0]
    assert np.abs(again - points).max() <= 1e-5


@pytest.mark.parametrize("seed", range(5))
def test_fisheye_points_with_a_new_camera_survive_a_round_trip(seed: int):
    random = np.random.default_rng(seed)
    corners = [WIDE[:2, 2], (0, 0), (0, SIZE[1]), (SIZE[0], 0), SIZE]
    points = np.concatenate((np.array(corners, float), random.random((100, 2)) * SIZE))[:, None]
    lens = random.uniform(-0.001, 0.001, 4) if seed else FISHEYE
    points = points if seed else points[5:]
    new = ours.fisheye.estimateNewCameraMatrixForUndistortRectify(WIDE, lens, SIZE, np.eye(3))
    seen = ours.fisheye.distortPoints(points, new, WIDE, lens)
    back = ours.fisheye.undistortPoints(seen, WIDE, lens, None, np.eye(3), new)
    assert np.abs(back - points).max() <= 1e-8
    ideal = ours.fisheye.undistortPoints(points, WIDE, lens, None, np.eye(3), new)
    again = ours.fisheye.distortPoints(ideal, new, WIDE, lens)
    assert np.abs(again - points).max() <= 1e-8


def solved_one_by_one(points: np.ndarray, lens: np.ndarray, steps: int) -> np.ndarray:
    """Newton's steps to the angle, (N, 2), float64; -1e6 where the angle changes its sign."""
    rays = (points.astype(float) - WIDE[:2, 2]) / WIDE[[0, 1], [0, 1]]
    found = np.empty_like(rays)
    powers = np.arange(2, 10, 2)
    for n, ray in enumerate(rays):
        seen = angle = min(np.hypot(*ray), np.pi / 2)
        for _ in range(steps):
            bent = lens * angle**powers
            angle -= (angle * (1 + bent.sum()) - seen) / (1 + ((powers + 1) * bent).sum())
        found[n] = ray * np.tan(angle) / seen if angle * seen > 0 else -1e6
    return found


@pytest.mark.parametrize("count", [1, 2, 3, 7, 33, 129, 257])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fisheye_points_are_solved_the_same_alone_and_together(count: int, dtype: Any):
    points = (np.random.default_rng(count).random((count, 1, 2)) * SIZE).astype(dtype)
    args = (WIDE, FISHEYE, None, None, None, (ours.TERM_CRITERIA_MAX_ITER, 10, 0.0))
    found = ours.fisheye.undistortPoints(points, *args)
    wanted = solved_one_by_one(points[:, 0], FISHEYE, 10)
    apart = np.abs(found[:, 0] - wanted) / np.maximum(np.abs(wanted), 1)
    assert apart.max() < (1e-12 if dtype == np.float64 else 1e-6)
    # the fast path of OpenCV 5 divides 0 by 0 there
    middle = WIDE[:2, 2].reshape(1, 1, 2)
    assert not ours.fisheye.undistortPoints(middle, *args).any()


def test_fisheye_points_beyond_the_fold():
    lens, n = np.array([-0.5, 0.05, -0.01, 0.002]), np.arange(129)
    radius = 40.0 * (n + 1)
    points = WIDE[:2, 2] + radius[:, None] * np.stack((np.cos(0.37 * n), np.sin(0.37 * n)), -1)
    criteria = (ours.TERM_CRITERIA_MAX_ITER, 10, 0.0)
    found = ours.fisheye.undistortPoints(points[:, None], WIDE, lens, criteria=criteria)[:, 0]
    wanted = solved_one_by_one(points, lens, 10)
    lost = wanted[:, 0] == -1e6
    assert 0 < lost.sum() < len(lost)
    np.testing.assert_array_equal(found[:, 0] == -1e6, lost)
    np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("degrees", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_polar_coordinates_survive_a_round_trip_and_in_place_calls(dtype: Any, degrees: bool):
    given = np.random.default_rng(0).uniform(-1000, 1000, (2, 10, 10)).astype(dtype)
    polar = ours.cartToPolar(*given, angleInDegrees=degrees)
    back = ours.polarToCart(*polar, angleInDegrees=degrees)
    assert max(np.abs(a - b).max() for a, b in zip(back, given, strict=True)) < 0.5
    for function in (ours.cartToPolar, ours.polarToCart):
        wanted = function(*given, angleInDegrees=degrees)
        for order in ((0, 1), (1, 0)):
            used = [given[0].copy(), given[1].copy()]
            function(used[0], used[1], used[order[0]], used[order[1]], degrees)
            for which, truth in zip(order, wanted, strict=True):
                np.testing.assert_array_equal(used[which], truth)


CAMERA = np.array([[150.0, 0, 400], [0, 300, 300], [0, 0, 1]])
LENS = np.array([0.01, 0.02, 0.001, 0.0005])
VIEW = np.array([[155.0, 0, 416], [0, 310, 312], [0, 0, 1]])
ONE, SCENE, NONE = np.eye(3), np.ones((10, 1, 3), np.float32), np.zeros(3)
ARGUMENTS: Any = {
    "undistortPoints": [np.ones((4, 1, 2)), CAMERA, LENS, None, ONE, VIEW],
    "initUndistortRectifyMap": [CAMERA, LENS, ONE, VIEW, (8, 6), ours.CV_32FC1],
    "undistort": [np.ones((6, 8), np.float32), CAMERA, LENS, None, VIEW],
    "Rodrigues": [NONE],
    "projectPoints": [SCENE, NONE, NONE, ONE, np.zeros(5)],
}
BAD: Any = {
    "undistortPoints": {"src": (0, np.ones((2, 2, 2), np.float32)), "src, none": (0, None)},
    "initUndistortRectifyMap": {
        "m1type": (5, ours.CV_64F),
        "cameraMatrix": (0, CAMERA[:, :2]),
        "R": (2, np.ones((4, 3))),
        "distCoeffs": (1, np.ones(6)),
    },
    "undistort": {"cameraMatrix": (1, np.eye(5))},
    "Rodrigues": {"src": (0, np.ones((1, 1))), "src, none": (0, None)},
    "projectPoints": {
        "objectPoints": (0, None),
        "rvec": (1, np.ones((2, 2))),
        "rvec, none": (1, None),
        "tvec": (2, np.ones((3, 3))),
        "tvec, none": (2, None),
        "cameraMatrix": (3, np.ones((2, 2))),
        "cameraMatrix, none": (3, None),
        "distCoeffs": (4, np.ones((3, 3))),
    },
}


@pytest.mark.parametrize(("name", "what"), [(n, what) for n, all_ in BAD.items() for what in all_])
def test_arguments_that_opencv_rejects_are_rejected(name: str, what: str):
    place, value = BAD[name][what]
    given = list(ARGUMENTS[name])
    getattr(ours, name)(*given)
    given[place] = value
    text = re.escape(f"{name}: `{what.split(',')[0]}` must be")
    with pytest.raises((ValueError, TypeError), match=text):
        getattr(ours, name)(*given)


def test_integers_are_accepted():
    """OpenCV requires floats for vectors and points."""
    for kind in (np.uint8, np.int64):
        turn, shift = np.array([0, 1, 0], kind), np.array([0, 0, 4], kind)
        wanted = ours.Rodrigues(turn.astype(float))[0]
        np.testing.assert_array_equal(ours.Rodrigues(turn)[0], wanted)
        found = ours.projectPoints(SCENE, turn, shift, ONE, None)[0]
        wanted = ours.projectPoints(SCENE, turn.astype(float), shift.astype(float), ONE, None)[0]
        np.testing.assert_array_equal(found, wanted)
