"""Lenses in `warpkit.opencv`: cv2's maps, pixels and points, and exact gradients."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

import warpkit.opencv as ours
from tests.camera.test_points import CAMERA, COUNTS, FISHEYE, lens, pixels
from tests.support.inputs import noise
from tests.support.installed_opencv import installed_opencv
from tests.support.opencv_cases import assert_same_arrays
from tests.support.tolerances import TOLERANCE
from warpkit import camera

SMALL = np.array([[52.0, 0, 31], [0, 50, 25], [0, 0, 1]])
VIEW = np.array([[45.0, 0, 30], [0, 46, 22], [0, 0, 1]])
SIZE = (64, 48)
TYPES = ["uint8", "uint16", "int16", "float32", "float64"]


@pytest.fixture
def cv2():
    return installed_opencv()


def turn(cv2):
    return cv2.Rodrigues(np.array([0.1, -0.05, 0.2]))[0]


def picture(dtype, channels=3, size=SIZE):
    values = np.random.default_rng(0).random((size[1], size[0], channels)) * 255
    values = values.astype(dtype)
    return values[..., 0] if channels == 1 else values


NAMES = ["undistort", "initUndistortRectifyMap", "getOptimalNewCameraMatrix", "undistortPoints"]
NAMES += ["fisheye.undistortImage", "fisheye.initUndistortRectifyMap"]


@pytest.mark.parametrize("name", NAMES)
def test_arguments_are_in_cv2s_order(cv2, name):
    theirs, mine = cv2, ours
    for part in name.split("."):
        theirs, mine = getattr(theirs, part), getattr(mine, part)
    wanted = re.findall(r"\w+", theirs.__doc__.split(")")[0])[1:]
    assert list(inspect.signature(mine).parameters)[: len(wanted)] == wanted


@pytest.mark.parametrize("n", [0, *COUNTS])
@pytest.mark.parametrize("kind", ["CV_32FC1", "CV_32FC2", "CV_16SC2"])
def test_maps_match_cv2(cv2, n, kind):
    k = lens(n, 1) if n else None
    for rotation, view in ((None, SMALL), (turn(cv2), VIEW), (None, None)):
        args = (SMALL, k, rotation, view, SIZE, getattr(cv2, kind))
        for mine, theirs in zip(
            ours.initUndistortRectifyMap(*args), cv2.initUndistortRectifyMap(*args), strict=True
        ):
            assert_same_arrays(mine, theirs)


@pytest.mark.parametrize("kind", ["CV_32FC1", "CV_16SC2"])
def test_fisheye_maps_match_cv2(cv2, kind):
    k = np.array(FISHEYE)
    far = cv2.Rodrigues(np.array([0.1, 1.2, 0.2]))[0]  # some pixels look backwards
    wide = np.array([[20.0, 0, 30], [0, 20, 22], [0, 0, 1]])
    projection = np.hstack((VIEW, np.ones((3, 1))))
    for rotation, view in (
        (None, SMALL),
        (turn(cv2), VIEW),
        (None, None),
        (far, wide),
        (np.array([0.1, 0.2, 0.3]), projection),
    ):
        args = (SMALL, k, rotation, view, SIZE, getattr(cv2, kind))
        theirs = cv2.fisheye.initUndistortRectifyMap(*args)
        for mine, truth in zip(ours.fisheye.initUndistortRectifyMap(*args), theirs, strict=True):
            assert_same_arrays(mine, truth)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_images_match_cv2(cv2, dtype, channels):
    image = picture(dtype, channels)
    for n in (0, *COUNTS):
        k = lens(n, 1) if n else None
        for view in (None, VIEW):
            assert_same_arrays(
                ours.undistort(image, SMALL, k, None, view),
                cv2.undistort(image, SMALL, k, None, view),
            )
    k = np.array(FISHEYE)
    for view, size in ((None, None), (SMALL, None), (VIEW, (50, 40))):
        args = (image, SMALL, k, None, view, size)
        assert_same_arrays(ours.fisheye.undistortImage(*args), cv2.fisheye.undistortImage(*args))
    dst = np.zeros_like(image)
    assert ours.undistort(image, SMALL, k, dst) is dst


@pytest.mark.parametrize("n", [0, *COUNTS])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_points_match_cv2(cv2, n, dtype):
    k, points = (lens(n, 1, size=0.3) if n else None), pixels().astype(dtype)
    most = TOLERANCE[f"cv2 points {np.dtype(dtype)}"]
    for rotation, view in (
        (None, None),
        (turn(cv2), VIEW),
        (None, np.hstack((CAMERA, np.ones((3, 1))))),
    ):
        for form in (points, points[:, None], points[None]):
            truth = cv2.undistortPoints(form, CAMERA, k, None, rotation, view)
            out = ours.undistortPoints(form, CAMERA, k, None, rotation, view)
            assert (out.shape, out.dtype) == (truth.shape, truth.dtype)
            assert np.abs(out - truth).max() <= np.abs(truth).max() * most
    if cv2.__version__.startswith("5."):
        for criteria in ((1, 20, 0.0), (3, 50, 1e-6), (2, 0, 1e-5)):
            truth = cv2.undistortPoints(points, CAMERA, k, None, None, CAMERA, criteria)
            out = ours.undistortPoints(points, CAMERA, k, None, None, CAMERA, criteria)
            assert np.abs(out - truth).max() <= 700 * most


@pytest.mark.parametrize("seed", range(5))
def test_fisheye_points_match_cv2(cv2, seed):
    k = np.random.default_rng(seed).normal(0, 1, 4) * [0.3, 0.2, 0.1, 0.05]
    points = np.concatenate((pixels(margin=300), CAMERA[None, :2, 2]))[:, None]
    for rotation, view in ((None, None), (turn(cv2), VIEW), (np.array([0.1, 0.2, 0.3]), None)):
        args = (points, CAMERA, k, None, rotation, view)
        truth, out = cv2.fisheye.undistortPoints(*args), ours.fisheye.undistortPoints(*args)
        missing = truth[..., 0] == -1e6
        assert np.array_equal(out[missing], truth[missing])
        near = np.abs(truth).max(-1) < 1e5  # near a projection's horizon, rounding errors grow
        assert np.abs(out - truth)[near].max() < TOLERANCE["pixels float64"]
    flat = points[:40] / 300 - 1
    for skew in (0, 0.1):
        truth = cv2.fisheye.distortPoints(flat, CAMERA, k, None, skew)
        out = ours.fisheye.distortPoints(flat, CAMERA, k, None, skew)
        assert np.abs(out - truth).max() < TOLERANCE["pixels float64"]
        # pixels of another camera, whose matrix precedes the lens's or is a keyword
        other = VIEW + np.array([[0, 3.0, 0], [0, 0, 0], [0, 0, 0]])
        seen = points[:40] / 2
        truth = cv2.fisheye.distortPoints(seen, other, CAMERA, k, None, skew)
        out = ours.fisheye.distortPoints(seen, other, CAMERA, k, None, skew)
        assert np.abs(out - truth).max() < TOLERANCE["pixels float64"]
        named = {"K": CAMERA, "D": k, "alpha": skew, "Kundistorted": other}
        assert np.array_equal(ours.fisheye.distortPoints(seen, **named), out)
    # cv2 reads these as (undistorted, K, D, distorted), and raises
    truth = cv2.fisheye.distortPoints(seen, other, CAMERA, k, None, 0)
    out = ours.fisheye.distortPoints(seen, other, CAMERA, k)
    assert np.abs(out - truth).max() < TOLERANCE["pixels float64"]


@pytest.mark.parametrize("n", [0, *COUNTS])
@pytest.mark.parametrize("centred", [False, True])
def test_optimal_cameras_match_cv2(cv2, n, centred):
    for seed in range(4):
        k = lens(n, seed) if n else None
        for alpha, new in ((0.0, None), (0.4, (500, 400)), (1.0, (0, 0))):
            args = (CAMERA, k, (640, 480), alpha, new, centred)
            matrix, roi = ours.getOptimalNewCameraMatrix(*args)
            truth, theirs = cv2.getOptimalNewCameraMatrix(*args)
            np.testing.assert_allclose(matrix, truth, rtol=1e-9, atol=1e-7)
            assert roi == tuple(theirs), (seed, alpha, new)


def test_tensors_have_the_exact_lens_models_gradients(cv2):
    image = noise(48, 64, 3).requires_grad_()
    k = torch.tensor(lens(5, 1)).requires_grad_()
    out = ours.undistort(image, SMALL, k)
    truth = cv2.undistort(image.detach().numpy(), SMALL, k.detach().numpy())
    assert np.array_equal(out.detach().numpy(), truth)
    weight = noise(48, 64, 3, seed=1)
    grads = torch.autograd.grad((out * weight).sum(), (image, k))
    exact = ours.undistort(image, SMALL, k, arithmetic="exact")
    core = camera.undistort(image.permute(2, 0, 1), SMALL, k).permute(1, 2, 0)
    assert torch.equal(exact, core)
    for found, wanted in zip(
        grads, torch.autograd.grad((exact * weight).sum(), (image, k)), strict=True
    ):
        assert torch.equal(found, wanted)
    alone = ours.undistort(image, SMALL, k.detach(), arithmetic="opencv4")
    assert torch.equal(torch.autograd.grad((alone * weight).sum(), image)[0], grads[0])
    round_lens, found = torch.tensor(FISHEYE).double().requires_grad_(), []
    for chosen in ("exact", "opencv4", "opencv5"):
        flat = ours.fisheye.undistortImage(image, SMALL, round_lens, None, SMALL, arithmetic=chosen)
        found.append(torch.autograd.grad((flat * weight).sum(), (image, round_lens)))
    for exact, *others in zip(*found, strict=True):
        assert exact.any()
        assert all(torch.equal(exact, other) for other in others)


def test_gradients_of_maps_and_points():
    k = torch.tensor(lens(5, 1, size=0.3)).requires_grad_()
    view = torch.from_numpy(VIEW).requires_grad_()

    def maps(k, view):
        return ours.initUndistortRectifyMap(SMALL, k, None, view, (5, 4), ours.CV_32FC2)[0].double()

    out, truth = maps(k, view), camera.undistort_map(SMALL, k, (4, 5), new_camera_matrix=view)
    for a, b in zip(
        torch.autograd.grad(out.sum(), (k, view)),
        torch.autograd.grad(truth.sum(), (k, view)),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)
    points = torch.from_numpy(pixels(3)).requires_grad_()
    # converged, so that differences of the value give the solution's slope
    criteria = (1, 500, 0.0)

    def solve(points, k):
        return ours.undistortPoints(points, CAMERA, k, None, None, VIEW, criteria)

    assert gradcheck(solve, (points, k))
    fisheye = torch.tensor(FISHEYE).double().requires_grad_()
    assert gradcheck(lambda p, d: ours.fisheye.undistortPoints(p, CAMERA, d), (points, fisheye))
    assert gradcheck(lambda p, d: ours.fisheye.distortPoints(p / 400, CAMERA, d), (points, fisheye))
    alpha = torch.tensor(0.3).double().requires_grad_()
    matrix, _ = ours.getOptimalNewCameraMatrix(CAMERA, k, (640, 480), alpha)
    for grad in torch.autograd.grad(matrix.sum(), (k, alpha)):
        assert grad.isfinite().all()
        assert grad.any()


BAD = [
    (
        lambda: ours.undistort(np.zeros((4, 4)), np.eye(2), None),
        ValueError,
        "undistort: `cameraMatrix` must be of shape (3, 3), got (2, 2)",
    ),
    (
        lambda: ours.undistort(np.zeros((4, 4)), np.eye(3), np.zeros(3)),
        ValueError,
        "undistort: `distCoeffs` must be None, or of 4, 5, 8, 12, 14 numbers, got shape (3,)",
    ),
    (
        lambda: ours.undistort(np.zeros((4, 4), np.int32), np.eye(3), None),
        TypeError,
        "undistort: `src` must be of one of the types uint8, uint16, int16, float32, float64, got",
    ),
    (
        lambda: ours.initUndistortRectifyMap(np.eye(3), None, None, None, (4, 4), 6),
        ValueError,
        "initUndistortRectifyMap: `m1type` must be one of CV_32FC1, CV_32FC2, CV_16SC2, got 6",
    ),
    (
        lambda: ours.fisheye.initUndistortRectifyMap(
            np.eye(3), None, None, None, (4, 4), ours.CV_32FC2
        ),
        ValueError,
        "fisheye.initUndistortRectifyMap: `m1type` must be one of CV_32FC1, CV_16SC2",
    ),
    (
        lambda: ours.initUndistortRectifyMap(np.eye(3), None, np.zeros(3), None, (4, 4), 5),
        ValueError,
        "initUndistortRectifyMap: `R` must be of shape (3, 3), got (3,)",
    ),
    (
        lambda: ours.undistortPoints(np.zeros((3, 3)), np.eye(3), None),
        ValueError,
        "undistortPoints: `src` must be of shape (N, 2), (N, 1, 2), (1, N, 2) or (2, N), got",
    ),
    (
        lambda: ours.undistortPoints(np.zeros((3, 2)), np.eye(3), None, criteria=5),
        ValueError,
        "undistortPoints: `criteria` must be (type, steps, error)",
    ),
]


@pytest.mark.parametrize("case", range(len(BAD)))
def test_errors(case):
    call, error, message = BAD[case]
    with pytest.raises(error, match=re.escape(message)):
        call()
