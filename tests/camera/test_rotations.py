"""Rotations against cv2.Rodrigues and angles by hand; lenses with a rotation and a new camera."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from tests.support.installed_opencv import installed_opencv
from tests.support.naive_sphere import turn as turned_by
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE
from warpkit import camera

CAMERA = torch.tensor([[500.0, 0, 320], [0, 480, 240], [0, 0, 1]], dtype=torch.float64)
NEW = torch.tensor([[400.0, 0, 300], [0, 410, 260], [0, 0, 1]], dtype=torch.float64)
LENSES = {
    "brown": torch.tensor([-0.2, 0.05, 1e-3, -2e-3, 0.01], dtype=torch.float64),
    "fisheye": torch.tensor([0.05, -0.01, 2e-3, 1e-4], dtype=torch.float64),
}


def degrees(*values: float) -> list[torch.Tensor]:
    return [torch.tensor(value, dtype=torch.float64) for value in values]


def test_positive_angles_look_right_and_up_and_tilt_right():
    for name, row, direction in (
        ("yaw", 2, [1, 0, 0]),
        ("pitch", 2, [0, -1, 0]),
        ("roll", 0, [0, 1, 0]),
    ):
        found = camera.rotation(**{name: torch.tensor(90.0, dtype=torch.float64)})
        np.testing.assert_allclose(found[row], direction, atol=1e-15)
    for angles in ((30, 20, 10), (-170, -80, 200)):
        yaw, pitch, roll = degrees(*angles)
        for _ in range(2):
            found = camera.rotation(yaw=yaw, pitch=pitch, roll=roll)
            np.testing.assert_allclose(found, turned_by(*angles), atol=1e-15)


def test_a_vector_gives_cv2s_matrix():
    cv2, random = installed_opencv(), np.random.default_rng(0)
    vectors = random.normal(0, 1, (20, 3))
    vectors[:3] *= [[0], [1e-9], [1e-3]]
    truth = np.stack([cv2.Rodrigues(vector)[0] for vector in vectors])
    for _ in range(2):
        found = camera.rotation(vector=torch.from_numpy(vectors))
        np.testing.assert_allclose(found, truth, atol=TOLERANCE["cv2 vectors float64"])
    assert camera.rotation(vector=vectors.astype(np.float32)).dtype == torch.float32
    assert camera.rotation(yaw=torch.zeros(2, 1), roll=torch.zeros(3)).shape == (2, 3, 3, 3)


def test_gradients_of_rotations():
    vectors = torch.tensor([[0.0, 0, 0], [0.3, -0.2, 1.5]], dtype=torch.float64).requires_grad_()
    assert gradcheck(lambda v: camera.rotation(vector=v), vectors)
    assert gradgradcheck(lambda v: camera.rotation(vector=v), vectors)
    angles = [angle.requires_grad_() for angle in degrees(20.0, -35.0, 100.0)]

    def turned(*angles):
        return camera.rotation(**dict(zip(("yaw", "pitch", "roll"), angles, strict=True)))

    assert gradcheck(turned, angles)
    assert gradgradcheck(turned, angles)


def test_rotations_name_the_wrong_argument():
    with pytest.raises(
        ValueError, match="rotation: `pitch` must be left out with a `vector`, got 3"
    ):
        camera.rotation(vector=[0.0, 0.0, 1.0], pitch=3.0)
    with pytest.raises(ValueError, match=r"rotation: `vector` must be of shape"):
        camera.rotation(vector=[0.0, 1.0])


@pytest.mark.parametrize("model", LENSES)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("new", [None, NEW])
def test_distort_points_undoes_undistort_points_with_the_same_view(new, turned, model):
    """And so it equals cv2's undistorted points, carried back."""
    cv2 = installed_opencv()
    rotation = camera.rotation(vector=torch.tensor([0.1, -0.2, 0.3]).double()) if turned else None
    pixels = torch.rand(50, 2, dtype=torch.float64) * torch.tensor([640, 480])
    view = {"rotation": rotation, "new_camera_matrix": new, "model": model}
    ideal, found = camera.undistort_points(pixels, CAMERA, LENSES[model], **view)
    assert found.all()
    for _ in range(2):
        back = camera.distort_points(ideal, CAMERA, LENSES[model], **view)
        assert (back - pixels).abs().max() <= TOLERANCE["solved pixels"]
    if model == "brown":  # by hand: the ray of the new pixel, then cv2's projection
        projection = (CAMERA if new is None else new).numpy()
        turn = np.eye(3) if rotation is None else rotation.numpy()
        rays = np.linalg.solve(projection @ turn, np.c_[ideal.numpy(), np.ones(50)].T).T
        shown = cv2.projectPoints(
            rays, np.zeros(3), np.zeros(3), CAMERA.numpy(), LENSES[model].numpy()
        )[0]
        assert np.abs(back.numpy() - shown[:, 0]).max() <= TOLERANCE["pixels float64"]


def test_a_point_behind_the_camera_is_nan_and_gives_no_nan_to_a_gradient():
    half_turn = camera.rotation(yaw=torch.tensor(120.0).double())
    points = torch.tensor([[320.0, 240.0], [-900.0, 240.0]]).double().requires_grad_()
    matrix, turn = CAMERA.clone().requires_grad_(), half_turn.requires_grad_()
    back = camera.distort_points(points, matrix, LENSES["brown"], rotation=turn)
    assert back[0].isnan().all() != back[1].isnan().all()
    grads = torch.autograd.grad(back[back.isfinite()].sum(), (points, matrix, turn))
    assert all(grad.isfinite().all() for grad in grads)
    singular = camera.distort_points(points, CAMERA, LENSES["brown"], rotation=torch.zeros(3, 3))
    assert singular.isnan().all()


@pytest.mark.parametrize("model", LENSES)
def test_gradients_of_distorted_points_with_a_view(model):
    points = torch.tensor([[100.0, 50.0], [500, 300]]).double()
    turn = camera.rotation(vector=torch.tensor([0.1, -0.2, 0.3]).double())
    inputs = [t.clone().requires_grad_() for t in (points, LENSES[model], turn, NEW)]

    def shown(points, lens, turn, new):
        return camera.distort_points(
            points, CAMERA, lens, rotation=turn, new_camera_matrix=new, model=model
        )

    assert gradcheck(shown, inputs)
    assert gradgradcheck(shown, inputs)
