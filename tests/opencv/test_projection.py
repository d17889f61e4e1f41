"""From scenes to pixels in `warpkit.opencv`: Rodrigues, projectPoints and their fisheye versions.

Values and jacobians are compared with cv2, gradients with finite differences.
"""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

import warpkit.opencv as ours
from tests.camera.test_points import COUNTS, SIZES
from tests.support.installed_opencv import installed_opencv
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE

cv2 = installed_opencv()
RANDOM = np.random.default_rng(0)
CAMERA = np.array([[520.0, 0, 310], [0, 500, 250], [0, 0, 1]])
FISHEYE = np.array([0.08, -0.03, 0.01, -0.004])
TURN, SHIFT = np.array([0.3, -0.2, 0.1]), np.array([0.1, -0.2, 3.0])
SCENE = RANDOM.normal(0, 1, (12, 1, 3))
NAMES = ["Rodrigues", "projectPoints", "fisheye.projectPoints"]
NAMES += ["fisheye.estimateNewCameraMatrixForUndistortRectify"]


@pytest.fixture
def random() -> np.random.Generator:
    """A generator that draws the same in every test, whichever tests run before it."""
    return np.random.default_rng(1)


def pair(name):
    theirs, mine = cv2, ours
    for part in name.split("."):
        theirs, mine = getattr(theirs, part), getattr(mine, part)
    return theirs, mine


def assert_form(mine, theirs):
    assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)


def relative(mine, theirs):
    return np.abs(mine - theirs).max() / max(np.abs(theirs).max(), 1e-300)


@pytest.mark.parametrize("name", NAMES)
def test_arguments_are_in_cv2s_order(name):
    theirs, mine = pair(name)
    wanted = re.findall(r"\w+", theirs.__doc__.split(")")[0])[1:]
    assert list(inspect.signature(mine).parameters) == wanted


@pytest.mark.parametrize("size", [0, 1e-17, 1e-9, 1e-4, 0.1, 1, 3, 10], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_matrices_of_vectors_have_cv2s_bits(dtype, size, random):
    for _ in range(20):
        vector = (random.normal(0, 1, 3) * size).astype(dtype)
        for shape in ((3,), (3, 1), (1, 3), (1, 1, 3)):
            truth, out = (
                cv2.Rodrigues(vector.reshape(shape)),
                ours.Rodrigues(vector.reshape(shape)),
            )
            for mine, theirs in zip(out, truth, strict=True):
                assert_form(mine, theirs)
                assert np.array_equal(mine, theirs), shape


@pytest.mark.parametrize("angle", [0.5, 1.0, 2.0, 2.8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_vectors_of_matrices_match_cv2(dtype, angle, random):
    """From 0.5 to 2.8 radians; at angles of 1e-4 the arc cosine is off by 1e-7, also in cv2."""
    for number in range(40):
        axis = random.normal(0, 1, 3)
        matrix = cv2.Rodrigues(axis / np.linalg.norm(axis) * angle)[0]
        matrix = (matrix + random.normal(0, 0.03, (3, 3)) * (random.random() < 0.5)).astype(dtype)
        truth, out = cv2.Rodrigues(matrix), ours.Rodrigues(matrix)
        for mine, theirs in zip(out, truth, strict=True):
            assert_form(mine, theirs)
            apart = np.abs(mine - theirs).max()
            assert apart < TOLERANCE[f"cv2 vectors {np.dtype(dtype)}"], number


def test_rotations_by_zero_by_180_degrees_and_by_nan():
    axes = [*np.eye(3), *-np.eye(3), [1, 2, 3], [1, -2, 3], [0, -1, 1], [-1, 0, 2], [0.1, 2, -2]]
    matrices = [cv2.Rodrigues(np.array(a, float) / np.linalg.norm(a) * np.pi)[0] for a in axes]
    matrices += [np.eye(3), np.full((3, 3), np.nan), np.diag([100.0, 1, 1])]
    for matrix in matrices:
        for mine, theirs in zip(ours.Rodrigues(matrix), cv2.Rodrigues(matrix), strict=True):
            assert np.abs(mine - theirs).max() < TOLERANCE["cv2 half turns"]
    for wrong in (np.ones(2), np.ones((3, 2)), np.ones((2, 3, 3))):
        with pytest.raises(ValueError, match="Rodrigues: `src` must be three numbers or of shape"):
            ours.Rodrigues(wrong)
    dst, jacobian = np.zeros((3, 3)), np.zeros((3, 9))
    first, second = ours.Rodrigues(TURN, dst, jacobian)
    assert first is dst
    assert second is jacobian


@pytest.mark.parametrize("number", [np.inf, -np.inf, 1e200])
def test_rotations_without_an_angle_are_nan_as_in_cv2(number):
    scene, zeros, camera = np.ones((3, 3)), np.zeros(3), np.eye(3)
    for vector in (np.array([number, 0, 0]), np.array([0.1, number, number])):
        assert np.isnan(cv2.Rodrigues(vector)[0]).all()
        leaf = torch.from_numpy(vector).requires_grad_()
        for given in (vector, vector, leaf.detach(), leaf):
            assert np.isnan(np.asarray(torch.as_tensor(ours.Rodrigues(given)[0]).detach())).all()
            pixels = ours.projectPoints(scene, given, zeros, camera, None)[0]
            assert np.isnan(np.asarray(torch.as_tensor(pixels).detach())).all()


def test_a_vector_has_no_gradient_at_180_degrees():
    matrix = torch.diag(torch.tensor([-1.0, -1.0, 1.0], dtype=torch.float64)).requires_grad_()
    vector, jacobian = ours.Rodrigues(matrix)
    assert vector.flatten().tolist() == pytest.approx([0, 0, np.pi])
    assert not vector.requires_grad
    assert not jacobian.any()


def test_gradients_of_rotations(random):
    vector = torch.from_numpy(TURN).requires_grad_()
    for start in (vector, torch.zeros(3).double().requires_grad_()):
        assert gradcheck(lambda v: ours.Rodrigues(v)[0], start, check_forward_ad=True)
        assert gradgradcheck(lambda v: ours.Rodrigues(v)[0], start)
        matrix, jacobian = ours.Rodrigues(start)
        rows = [torch.autograd.grad(n, start, retain_graph=True)[0] for n in matrix.flatten()]
        torch.testing.assert_close(torch.stack(rows, -1), jacobian, rtol=1e-12, atol=1e-12)
    noise = torch.from_numpy(random.normal(0, 0.05, (3, 3)))
    matrix = ours.Rodrigues(TURN * 5)[0]
    for start in (torch.from_numpy(matrix), torch.from_numpy(matrix) + noise):
        given = start.clone().requires_grad_()
        value = ours.Rodrigues(given)[0]
        assert gradcheck(lambda m: ours.Rodrigues(m)[0], given, check_forward_ad=True)
        assert gradgradcheck(lambda m: ours.Rodrigues(m)[0], given)
        assert value.shape == (3, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [0, *COUNTS])
@pytest.mark.parametrize("ratio", [0, 1.3])
def test_pixels_have_cv2s_bits_and_jacobians_match(n, ratio, dtype, random):
    for number in range(15):
        k = random.normal(0, 1, n) * SIZES[:n] if n else None
        turn, shift = random.normal(0, 0.7, 3), random.normal(0, 0.3, 3) + np.array([0, 0, 4])
        args = (SCENE.astype(dtype), turn, shift, CAMERA, k, None, None, ratio)
        truth, out = cv2.projectPoints(*args), ours.projectPoints(*args)
        for mine, theirs in zip(out, truth, strict=True):
            assert_form(mine, theirs)
        assert np.array_equal(out[0], truth[0]), number
        assert relative(out[1], truth[1]) < TOLERANCE["cv2 jacobians"], number


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("skew", [0, 0.1])
def test_fisheye_pixels_match_cv2(skew, dtype, random):
    for number in range(30):
        turn, shift = random.normal(0, 0.7, 3), random.normal(0, 0.3, 3) + np.array([0, 0, 4])
        k = FISHEYE * random.normal(0, 1, 4)
        args = (SCENE.astype(dtype), turn, shift, CAMERA, k, None, skew)
        truth, out = cv2.fisheye.projectPoints(*args), ours.fisheye.projectPoints(*args)
        for mine, theirs in zip(out, truth, strict=True):
            assert_form(mine, theirs)
        assert relative(out[0], truth[0]) < TOLERANCE[f"cv2 points {np.dtype(dtype)}"], number
        assert relative(out[1], truth[1]) < TOLERANCE["cv2 jacobians"], number


def test_scenes_have_cv2s_shapes_and_types(random):
    args = (TURN, SHIFT, CAMERA, np.array([-0.2, 0.05, 0, 0]))
    for shape in ((5, 3), (5, 1, 3), (1, 5, 3), (3, 5), (3, 3), (3,), (3, 1), (1, 3), (5, 3, 1)):
        scene = random.normal(0, 1, shape)
        truth, out = cv2.projectPoints(scene, *args), ours.projectPoints(scene, *args)
        for mine, theirs in zip(out, truth, strict=True):
            assert_form(mine, theirs)
        assert np.array_equal(out[0], truth[0]), shape
    args = (TURN, SHIFT, CAMERA, FISHEYE)
    for shape in ((5, 1, 3), (1, 5, 3), (4, 2, 3)):
        scene = random.normal(0, 1, shape)
        truth, out = (
            cv2.fisheye.projectPoints(scene, *args),
            ours.fisheye.projectPoints(scene, *args),
        )
        for mine, theirs in zip(out, truth, strict=True):
            assert_form(mine, theirs)
            assert relative(mine, theirs) < TOLERANCE["cv2 jacobians"]
    matrix = cv2.Rodrigues(TURN)[0]
    truth = cv2.projectPoints(SCENE, matrix, SHIFT, CAMERA, None)
    out = ours.projectPoints(SCENE, matrix, SHIFT, CAMERA, None)
    assert np.array_equal(out[0], truth[0])
    assert relative(out[1], truth[1]) < TOLERANCE["cv2 jacobians"]
    for lens in (np.zeros(0), np.zeros((1, 14)), np.zeros((5, 1), np.float32)):
        rows = ours.projectPoints(SCENE, TURN[:, None], SHIFT[None], CAMERA, lens)[1]
        assert_form(rows, cv2.projectPoints(SCENE, TURN[:, None], SHIFT[None], CAMERA, lens)[1])
    flat = np.array([[1.0, 2, 0]]) - SHIFT  # at depth 0
    still = np.zeros(3)
    np.testing.assert_array_equal(
        ours.projectPoints(flat, still, SHIFT, CAMERA, None)[0],
        cv2.projectPoints(flat, still, SHIFT, CAMERA, None)[0],
    )


@pytest.mark.parametrize("n", [4, 14])
def test_gradients_of_pixels_equal_their_jacobian(n, random):
    k = torch.from_numpy(random.normal(0, 0.5, n) * SIZES[:n]).requires_grad_()
    scene = torch.from_numpy(SCENE[:3, 0]).requires_grad_()
    turn, shift, focal = (
        torch.tensor(v, dtype=torch.float64).requires_grad_()
        for v in (TURN, SHIFT, [520.0, 500, 310, 250])
    )

    def camera(focal):
        one, zero = torch.ones_like(focal[0]), torch.zeros_like(focal[0])
        rows = (focal[0], zero, focal[2]), (zero, focal[1], focal[3]), (zero, zero, one)
        return torch.stack([torch.stack(row) for row in rows])

    def shown(scene, turn, shift, focal, k):
        return ours.projectPoints(scene, turn, shift, camera(focal), k)[0]

    def fisheyes(scene, turn, shift, focal, skew):
        return ours.fisheye.projectPoints(
            scene, turn, shift, camera(focal), FISHEYE * 1.0, None, skew
        )[0]

    inputs = (scene, turn, shift, focal, k)
    assert gradcheck(shown, inputs, check_forward_ad=True)
    assert gradgradcheck(shown, inputs)
    pixels, jacobian = ours.projectPoints(scene, turn, shift, camera(focal), k)
    assert not jacobian.requires_grad
    rows = [
        torch.cat(torch.autograd.grad(p, (turn, shift, focal, k), retain_graph=True))
        for p in pixels.flatten()
    ]
    torch.testing.assert_close(torch.stack(rows), jacobian, rtol=1e-10, atol=1e-8)
    if n == 4:
        skew = torch.tensor(0.1).double().requires_grad_()
        assert gradcheck(fisheyes, (scene, turn, shift, focal, skew), check_forward_ad=True)


def test_undefined_points_do_not_affect_other_gradients():
    scene = torch.from_numpy(SCENE[:4, 0]).clone()
    scene[1], scene[2] = torch.nan, torch.tensor(-SHIFT)  # the latter is at the camera's position
    inputs = [
        torch.from_numpy(np.array(v, float)).requires_grad_()
        for v in (scene.numpy(), np.zeros(3), SHIFT, CAMERA, FISHEYE)
    ]
    for function in (ours.projectPoints, ours.fisheye.projectPoints):
        pixels, _ = function(inputs[0][:, None], *inputs[1:])
        for grad in torch.autograd.grad(pixels[[0, 3]].sum(), inputs):
            assert grad.isfinite().all()
            assert grad.any()


def test_new_cameras_of_fisheyes_match_cv2():
    finite = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        dtype = np.float32 if seed % 4 == 0 else np.float64
        width, height = (int(n) for n in random.integers(20, 1500, 2))
        fx, fy = width * random.uniform(0.3, 1, 2)
        matrix = np.array([[fx, 0, width / 2 + 1], [0, fy, height / 2], [0, 0, 1]], dtype)
        k = random.normal(0, 0.05, 4).astype(dtype)
        turn = (None, random.normal(0, 0.1, 3), cv2.Rodrigues(random.normal(0, 0.1, 3))[0])[
            seed % 3
        ]
        new = None if seed % 2 else (int(width * 0.7), int(height * 0.6))
        scale = (1.0, 0.7, 1.3, 0.0)[seed % 4]
        args = (matrix, k, (width, height), turn, None, random.uniform(-0.2, 1.2), new, scale)
        name = "fisheye.estimateNewCameraMatrixForUndistortRectify"
        theirs, mine = pair(name)
        truth, out = theirs(*args), mine(*args)
        assert_form(out, truth)
        most = "cv2 points float32" if dtype == np.float32 else "cv2 points float64"
        np.testing.assert_allclose(out, truth, rtol=TOLERANCE[most])  # infinite where cv2's are
        by_tensors = mine(torch.from_numpy(matrix), *args[1:]).numpy()
        np.testing.assert_allclose(by_tensors, out, rtol=TOLERANCE[most])
        finite += np.isfinite(truth).all()
    assert finite > 150
    given = np.zeros((3, 3), np.float32)
    assert mine(matrix, k, (640, 480), None, given) is given
    np.testing.assert_allclose(given, theirs(matrix, k, (640, 480), None), rtol=1e-6)


def test_gradients_of_new_cameras():
    k, share = (torch.tensor(v).double().requires_grad_() for v in (FISHEYE.tolist(), 0.3))
    focal = torch.tensor([400.0, 390, 320, 240], dtype=torch.float64).requires_grad_()

    def new(focal, k, share):
        one, zero = torch.ones_like(focal[0]), torch.zeros_like(focal[0])
        rows = (focal[0], zero, focal[2]), (zero, focal[1], focal[3]), (zero, zero, one)
        matrix = torch.stack([torch.stack(row) for row in rows])
        return ours.fisheye.estimateNewCameraMatrixForUndistortRectify(
            matrix, k, (640, 480), TURN * 0.1, None, share, None, 1.1
        )

    assert gradcheck(new, (focal, k, share))


def test_opencvs_case_of_a_fisheye_is_inverted():
    """test_fisheye.cpp: directions of a grid at depth 1 are projected back onto the grid."""
    wide = np.array(
        [
            [558.478087865323, 0, 620.458515360843],
            [0, 560.506767351568, 381.939424848348],
            [0, 0, 1],
        ]
    )
    k = np.array(
        [-0.0014613319981768, -0.00329861110580401, 0.00605760088590183, -0.00374209380722371]
    )
    x, y = np.meshgrid(np.linspace(0, 1280, 20), np.linspace(0, 800, 20))
    grid = (np.stack((x, y), -1).reshape(1, -1, 2) - wide[:2, 2]) * 0.85 + wide[:2, 2]
    ideal = ours.fisheye.undistortPoints(grid, wide, k)
    solid = np.concatenate((ideal, np.ones_like(ideal[..., :1])), -1)
    still = np.zeros(3)
    for back in (
        ours.fisheye.distortPoints(ideal, wide, k),
        ours.fisheye.projectPoints(solid, still, still, wide, k)[0],
    ):
        assert back.shape == grid.shape
        assert np.abs(back - grid).max() < 1e-10
