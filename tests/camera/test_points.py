"""Distorted and undistorted points: numpy's definition, cv2, folds, and every gradient."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

import warpkit as wk
from tests.support import naive_lens
from tests.support.inputs import noise
from tests.support.installed_opencv import installed_opencv
from tests.support.second_order import assert_three_orders, gradgradcheck
from tests.support.tolerances import TOLERANCE
from warpkit import camera

CAMERA = np.array([[520.0, 0, 310], [0, 500, 250], [0, 0, 1]])
COUNTS = [4, 5, 8, 12, 14]
SIZES = np.array([0.3, 0.1, 0.01, 0.01, 0.05, 0.1, 0.05, 0.02, 0.01, 0.01, 0.01, 0.01, 0.05, 0.05])
FISHEYE = [0.08, -0.03, 0.01, -0.004]


def double(values):
    return torch.as_tensor(np.asarray(values, np.float64))


def lens(n, seed=0, size=1.0):
    """Coefficients of a lens that does not fold inside the image."""
    k = np.random.default_rng(seed).uniform(-1, 1, n) * SIZES[:n] * size
    k[0] = abs(k[0]) * (-0.5 if seed % 2 else 1)
    return k


def pixels(n=60, seed=0, margin=0.0):
    random = np.random.default_rng(seed)
    return random.uniform([-margin, -margin], [640 + margin, 480 + margin], (n, 2))


def directions(points):
    return (points - CAMERA[:2, 2]) / np.diag(CAMERA)[:2]


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("seed", range(3))
def test_distorted_points_match_the_definition_and_cv2(n, seed):
    cv2 = installed_opencv()
    k, points = lens(n, seed), pixels(seed=seed, margin=100)
    truth = np.array([naive_lens.shown(d, k) for d in directions(points)])
    truth = truth * np.diag(CAMERA)[:2] + CAMERA[:2, 2]
    ours = camera.distort_points(double(points), double(CAMERA), double(k)).numpy()
    assert np.abs(ours - truth).max() < TOLERANCE["pixels float64"]
    solid = np.column_stack((directions(points), np.ones(len(points))))
    theirs, _ = cv2.projectPoints(solid, np.zeros(3), np.zeros(3), CAMERA, k)
    assert np.abs(ours - theirs[:, 0]).max() < TOLERANCE["pixels float64"]


def test_fisheyes_match_the_definition_and_cv2():
    cv2 = installed_opencv()
    points = np.concatenate((pixels(margin=2000), CAMERA[None, :2, 2], CAMERA[None, :2, 2] + 1e-9))
    truth = np.array([naive_lens.shown_by_fisheye(d, FISHEYE) for d in directions(points)])
    truth = truth * np.diag(CAMERA)[:2] + CAMERA[:2, 2]
    args = (double(CAMERA), double(FISHEYE))
    ours = camera.distort_points(double(points), *args, model="fisheye").numpy()
    assert np.abs(ours - truth).max() < TOLERANCE["pixels float64"]
    theirs = cv2.fisheye.distortPoints(directions(points)[:, None], CAMERA, np.array(FISHEYE))
    assert np.abs(ours - theirs[:, 0]).max() < TOLERANCE["pixels float64"]
    back, converged = camera.undistort_points(double(ours), *args, model="fisheye")
    assert converged.all()
    assert (back - double(points)).abs().max() < TOLERANCE["solved pixels"]


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("seed", range(4))
def test_undistort_points_inverts_distort_points(n, seed):
    k, points = double(lens(n, seed, size=0.6)), double(pixels(200, seed))
    shown = camera.distort_points(points, double(CAMERA), k)
    back, converged = camera.undistort_points(shown, double(CAMERA), k)
    assert converged.all()
    assert (back - points).abs().max() < TOLERANCE["solved pixels"]


@pytest.mark.parametrize("n", COUNTS)
def test_undistorted_points_match_cv2s_converged_iteration(n):
    cv2 = installed_opencv()
    k, points = lens(n, 1, size=0.3), pixels()
    turn, _ = cv2.Rodrigues(np.array([0.1, -0.05, 0.2]))
    view = np.array([[400.0, 3, 300], [0, 410, 200], [0, 0, 1]])
    criteria = (3, 500, 1e-14)
    if cv2.__version__.startswith("4."):
        theirs = cv2.undistortPointsIter(points[:, None], CAMERA, k, turn, view, criteria)
    else:
        theirs = cv2.undistortPoints(points[:, None], CAMERA, k, None, turn, view, criteria)
    args = (double(points), double(CAMERA), double(k))
    ours, converged = camera.undistort_points(
        *args, rotation=double(turn), new_camera_matrix=double(view)
    )
    assert converged.all()
    assert np.abs(ours.numpy() - theirs[:, 0]).max() < TOLERANCE["solved pixels"]


FOLDED = {
    "barrel": [-0.4, 0, 0, 0],
    "barrel that rises again": [-0.5, 0.08, 0, 0],
    "moustache": [0.4, -0.35, 0, 0, 0.02],
    "rational": [0.1, -0.2, 0, 0, 0.01, 0.3, 0.05, 0.01],
    "with a pole": [0.0, 0, 0, 0, 0, -0.6, 0, 0],
}


@pytest.mark.parametrize("name", FOLDED)
def test_roots_beyond_the_fold_are_not_solutions(name):
    """Every direction inside the fold is recovered; points that the lens cannot show have none."""
    k = FOLDED[name]
    end = naive_lens.fold(k)
    radii = np.concatenate((np.linspace(0, min(end, 3.0) * 0.999, 300), [0.2, 0.1]))
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, len(radii))
    ideal = np.column_stack((radii * np.cos(angle), radii * np.sin(angle)))
    shown = np.array([naive_lens.shown(d, k) for d in ideal])
    eye = torch.eye(3).double()
    back, converged = camera.undistort_points(double(shown), eye, double(k))
    assert converged.all()
    # at the fold, errors are square roots of the rounding
    assert np.abs(back.numpy() - ideal).max() < 1e-6
    if name != "with a pole":  # its image is the whole plane
        reach = np.hypot(*naive_lens.shown((end, 0.0), k))
        beyond = double(np.column_stack((np.cos(angle), np.sin(angle)))) * reach
        far, converged = camera.undistort_points(
            beyond * torch.linspace(1.001, 9, len(angle))[:, None], eye, double(k)
        )
        assert not converged.any()
        assert far.isnan().all()


def test_a_fold_that_is_not_a_circle_is_respected():
    """Tangential terms deform the fold; solutions always lie on the centre's side of it."""
    k = [-0.35, 0.02, 0.03, -0.02]
    grid = wk.pixel_grid((31, 31)).double().flatten(0, 1) / 7.5 - 2
    shown = camera.distort_points(grid, torch.eye(3).double(), double(k))
    step = 1e-6

    def slope(d):
        columns = [
            (naive_lens.shown(d + e, k) - naive_lens.shown(d - e, k)) / (2 * step)
            for e in step * np.eye(2)
        ]
        return np.linalg.det(np.array(columns))

    inside = np.array(
        [all(slope(d * s) > 1e-4 for s in np.linspace(0, 1, 20)) for d in grid.numpy()]
    )
    back, converged = camera.undistort_points(shown, torch.eye(3).double(), double(k))
    near = (back - grid).norm(dim=-1) < 1e-6
    assert 75 < inside.sum() < 625
    assert near[torch.from_numpy(inside)].all()
    # some points beyond the fold coincide with images of directions on the centre's side
    other = back[converged & ~near].numpy()
    assert all(slope(d * s) > 0 for d in other[:40] for s in np.linspace(0, 1, 40))
    again = camera.distort_points(back[converged], torch.eye(3).double(), double(k))
    assert (again - shown[converged]).abs().max() < 1e-9


def test_a_fisheye_ends_at_90_degrees_or_at_its_fold():
    eye = torch.eye(3).double()
    angles = torch.linspace(0, 1.55, 50).double()
    ideal = torch.stack((angles.tan(), torch.zeros(50)), -1)
    shown = camera.distort_points(ideal, eye, double(FISHEYE), model="fisheye")
    back, converged = camera.undistort_points(shown, eye, double(FISHEYE), model="fisheye")
    assert converged.all()
    assert ((back - ideal) / (1 + ideal.square())).abs().max() < 1e-12
    behind = double([[1.72, 0.0], [0, 5.0]])  # the image of 90 degrees is at 1.71
    assert not camera.undistort_points(behind, eye, double(FISHEYE), model="fisheye")[1].any()
    folded = double([-0.2, 0, 0, 0])  # folds at the angle sqrt(1 / 0.6) = 1.29, shown at 0.8607
    edge = double([[0.86, 0.0], [0.861, 0.0]])
    assert camera.undistort_points(edge, eye, folded, model="fisheye")[1].tolist() == [True, False]


def test_points_without_a_solution_are_marked():
    points = double([[400.0, 300.0], [np.nan, 1], [np.inf, 2], [1e30, 3]])
    back, converged = camera.undistort_points(points, double(CAMERA), double([-0.2, 0, 0, 0]))
    assert converged.tolist() == [True, False, False, False]
    assert back[1:].isnan().all()
    turn = np.diag([1.0, -1.0, -1.0])  # faces backwards
    _, converged = camera.undistort_points(
        points[:1], double(CAMERA), double([0.0] * 4), rotation=double(turn)
    )
    assert not converged.any()


def test_points_and_lenses_broadcast_and_types_are_kept():
    points, cameras = noise(5, 1, 7, 2) * 100 + 250, double(CAMERA).expand(3, 3, 3)
    k = double(np.stack([lens(5, s) for s in range(3)]))
    shown = camera.distort_points(points, cameras, k)
    back, converged = camera.undistort_points(shown, cameras, k)
    assert shown.shape == back.shape == (5, 3, 7, 2)
    assert converged.shape == (5, 3, 7)
    for j in range(3):
        one = camera.distort_points(points[2, 0], CAMERA, k[j])
        torch.testing.assert_close(one, shown[2, j], rtol=0, atol=1e-12)
    assert (back - points).abs().max() < TOLERANCE["solved pixels"]
    assert camera.distort_points((3.0, 4.0), CAMERA.tolist(), [0.1, 0, 0, 0]).shape == (2,)
    point, found = camera.undistort_points(torch.ones(2), torch.eye(3), torch.zeros(4))
    assert (point.tolist(), bool(found), point.dtype) == ([1, 1], True, torch.float32)
    assert camera.undistort_points(torch.zeros(0, 2), CAMERA, k[0])[0].shape == (0, 2)


def inputs(n=14, model="brown"):
    k = double(FISHEYE if model == "fisheye" else lens(n, 3, size=0.5))
    view = double([[1.1, 0.02, 0.1], [0, 0.9, 0.2], [0, 0, 1]])
    turn = double([[0.99, -0.1, 0.05], [0.1, 0.98, 0.02], [-0.05, -0.03, 1]])
    focal = double([1.2, 1.1, 0.05, -0.1])
    return [0.8 * noise(2, 2) - 0.4, focal, k, turn, view]


def matrix(focal):
    fx, fy, cx, cy = focal.unbind(-1)
    one, zero = torch.ones_like(fx), torch.zeros_like(fx)
    rows = (fx, zero, cx), (zero, fy, cy), (zero, zero, one)
    return torch.stack([torch.stack(row, -1) for row in rows], -2)


def solve(points, focal, k, turn, view, model="brown"):
    return camera.undistort_points(
        points, matrix(focal), k, rotation=turn, new_camera_matrix=view, model=model
    )[0]


MODELS = [(5, "brown"), (14, "brown"), (4, "fisheye")]
"""The other counts are these with zeros."""


@pytest.mark.parametrize(("n", "model"), MODELS)
def test_gradients_through_the_lens_and_through_the_solver(n, model):
    arguments = inputs(n, model)
    # rotation and view are applied in the same way for every model
    traced = [a.requires_grad_() for a in arguments[: None if n == 14 else 3]]

    def show(points, focal, k):
        return camera.distort_points(points, matrix(focal), k, model=model)

    def back(*given):
        return solve(*given, *arguments[len(given) :], model=model)

    for function, given in ((show, traced[:3]), (back, traced)):
        assert gradcheck(function, given, check_forward_ad=True, check_batched_grad=True)
        assert gradgradcheck(function, given)


def test_gradients_at_the_centre_of_a_fisheye():
    points, k = torch.zeros(1, 2).double().requires_grad_(), double(FISHEYE).requires_grad_()
    eye = torch.eye(3).double()
    for function in (
        lambda p, c: camera.distort_points(p, eye, c, model="fisheye"),
        lambda p, c: camera.undistort_points(p, eye, c, model="fisheye")[0],
    ):
        assert gradcheck(function, (points, k), check_forward_ad=True)
        assert gradgradcheck(function, (points, k))


def test_the_solvers_gradient_has_a_third_order():
    start = inputs(5)
    direction = [noise(*a.shape, seed=i) - 0.5 for i, a in enumerate(start)]

    def along(t):
        return solve(*(a + 0.3 * t * d for a, d in zip(start, direction, strict=True)))[1, 0]

    assert_three_orders(along, 2e-3)


def test_a_point_without_a_solution_has_no_gradient_and_does_not_affect_others():
    points = double([[0.3, 0.1], [0.9, 0.4], [np.nan, 0.0]]).requires_grad_()
    k = double([-0.4, 0.0, 0.0, 0.0]).requires_grad_()
    back, converged = camera.undistort_points(points, torch.eye(3).double(), k)
    assert converged.tolist() == [True, False, False]
    back[converged].sum().backward()
    assert points.grad is not None
    assert k.grad is not None
    assert points.grad[0].abs().min() > 0
    assert not points.grad[1:].any()
    assert k.grad.isfinite().all()
    alone = double([[0.3, 0.1]]).requires_grad_()
    camera.undistort_points(alone, torch.eye(3).double(), k.detach())[0].sum().backward()
    assert torch.equal(alone.grad[0], points.grad[0])  # pyright: ignore


def test_the_solver_works_under_vmap_and_compile(monkeypatch):
    points, focal, k, *_ = inputs(8)
    whole = camera.undistort_points(points, matrix(focal), k)[0]

    def solve_one(p):
        return camera.undistort_points(p, matrix(focal), k)[0]

    mapped = torch.func.vmap(solve_one)(points)
    torch.testing.assert_close(mapped, whole, rtol=0, atol=1e-12)
    jacobian = torch.func.vmap(torch.func.jacrev(solve_one))(points)
    truth = torch.autograd.functional.jacobian(solve_one, points)
    for i in range(len(points)):
        torch.testing.assert_close(jacobian[i], truth[i, :, i], rtol=0, atol=1e-12)
    compiled = torch.compile(
        lambda p: camera.distort_points(p, matrix(focal), k), fullgraph=True, backend="eager"
    )
    torch.testing.assert_close(
        compiled(points), camera.distort_points(points, matrix(focal), k), rtol=0, atol=0
    )
    # all steps are the same operations, of which Dynamo traces 20 in 13 s; these points take 5
    monkeypatch.setattr("warpkit.engine.definitions.lens_inverse.TRACED_STEPS", 6)
    compiled = torch.compile(solve_one, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(points), whole, rtol=0, atol=1e-12)


BAD = {
    "`model` must be one of 'brown', 'fisheye', got 'pinhole'": {"model": "pinhole"},
    "`distortion` must be of shape (..., n) with n of 4, 5, 8, 12 or 14 for model='brown', got": {
        "distortion": [0.0] * 6
    },
    "`distortion` must be of shape (..., n) with n of 4 for model='fisheye', got (5,)": {
        "distortion": [0.0] * 5,
        "model": "fisheye",
    },
    "`camera_matrix` must be of shape (..., 3, 3), got (2, 3)": {"camera_matrix": CAMERA[:2]},
    "`camera_matrix` must be (fx, 0, cx), (0, fy, cy), (0, 0, 1) with fx and fy other than 0": {
        "camera_matrix": CAMERA + np.eye(3)[::-1]
    },
    "`points` must be of shape (..., 2), got (3, 3)": {"points": np.zeros((3, 3))},
    "the batch dimensions of `points` and `camera_matrix` must broadcast": {
        "points": np.zeros((3, 7, 2)),
        "camera_matrix": np.stack([CAMERA] * 2),
    },
}


@pytest.mark.parametrize("message", BAD)
@pytest.mark.parametrize("name", ["distort_points", "undistort_points"])
def test_errors_say_what_is_wanted(name, message):
    good = {"points": np.zeros((3, 2)), "camera_matrix": CAMERA, "distortion": [0.0] * 4}
    with pytest.raises(ValueError, match=re.escape(f"{name}: {message}")):
        getattr(camera, name)(**(good | BAD[message]))
