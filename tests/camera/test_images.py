"""Maps and images of lenses: cv2's maps bit for bit, and the round trip."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

import warpkit as wk
from tests.camera.test_points import CAMERA, COUNTS, FISHEYE, double, lens, pixels
from tests.support.inputs import noise
from tests.support.installed_opencv import installed_opencv
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE
from warpkit import camera

SIZE = (48, 64)
SMALL = np.array([[52.0, 0, 31], [0, 50, 25], [0, 0, 1]])
VIEW = np.array([[45.0, 0, 30], [0, 46, 22], [0, 0, 1]])


def turn():
    cv2 = installed_opencv()
    return cv2.Rodrigues(np.array([0.1, -0.05, 0.2]))[0]


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("turned", [False, True])
def test_maps_have_cv2s_bits(n, turned):
    cv2 = installed_opencv()
    for seed in range(3):
        k = lens(n, seed)
        rotation, view = (turn(), VIEW) if turned else (None, SMALL)
        truth = cv2.initUndistortRectifyMap(SMALL, k, rotation, view, SIZE[::-1], cv2.CV_32FC2)[0]
        options = {"rotation": rotation, "new_camera_matrix": view}
        ours = camera.undistort_map(double(SMALL), double(k), SIZE, **options)
        assert np.array_equal(ours.numpy().astype(np.float32), truth)


@pytest.mark.parametrize("turned", [False, True])
def test_fisheye_maps_have_cv2s_bits(turned):
    cv2 = installed_opencv()
    rotation, view = (turn(), VIEW) if turned else (None, SMALL)
    args = (SMALL, np.array(FISHEYE), rotation, view, SIZE[::-1], cv2.CV_32FC1)
    truth = np.dstack(cv2.fisheye.initUndistortRectifyMap(*args))
    options = {"rotation": rotation, "new_camera_matrix": view, "model": "fisheye"}
    ours = camera.undistort_map(SMALL, double(FISHEYE), SIZE, **options)
    assert np.array_equal(ours.numpy().astype(np.float32), truth)


def test_pixels_that_look_backwards_have_no_source():
    points = camera.undistort_map(
        double(SMALL), double([0.0] * 4), SIZE, rotation=np.diag([1.0, -1.0, -1.0])
    )
    assert points.isnan().all()


def test_the_two_maps_are_inverses_of_each_other():
    k = double(lens(5, 1, size=0.5))
    there, back = (f(double(SMALL), k, SIZE) for f in (camera.distort_map, camera.undistort_map))
    ideal, converged = camera.undistort_points(back.flatten(0, 1), double(SMALL), k)
    assert converged.all()
    grid = wk.pixel_grid(SIZE).double()
    assert (ideal.unflatten(0, SIZE) - grid).abs().max() < TOLERANCE["solved pixels"]
    shown = camera.distort_points(there.flatten(0, 1), double(SMALL), k)
    assert (shown.unflatten(0, SIZE) - grid).abs().max() < TOLERANCE["solved pixels"]


def test_images_are_sampled_by_the_maps():
    image, cameras = noise(2, 3, *SIZE), double(SMALL).expand(2, 3, 3)
    k = double(np.stack([lens(5, s, size=0.5) for s in (1, 2)]))
    options = {"interpolation": "bicubic", "border": "reflect"}
    view = double(VIEW)
    flat = camera.undistort(image, cameras, k, size=(30, 40), new_camera_matrix=view, **options)
    points = camera.undistort_map(cameras, k, (30, 40), new_camera_matrix=view)
    assert torch.equal(flat, wk.remap(image, points, **options))
    bent = camera.distort(image, cameras, k, size=(30, 40), **options)
    assert torch.equal(bent, wk.remap(image, camera.distort_map(cameras, k, (30, 40)), **options))
    assert camera.undistort(image[0, 0, None], cameras, k).shape == (2, 1, *SIZE)
    labels = (image > 0.5)[:1]
    moved = camera.undistort(labels, cameras, k, interpolation="nearest")
    assert moved.dtype == torch.bool
    small = camera.undistort(
        image, cameras, k, size=(12, 16), new_camera_matrix=np.diag([13.0, 12, 1]), antialias=True
    )
    assert small.shape == (2, 3, 12, 16)


def test_undistort_restores_a_smooth_image():
    y, x = torch.meshgrid(*(torch.arange(n).double() for n in SIZE), indexing="ij")
    image = ((x / 9).sin() * (y / 7).cos())[None]
    k = double(lens(5, 1, size=0.5))
    back = camera.undistort(
        camera.distort(image, SMALL, k, interpolation="bicubic"), SMALL, k, interpolation="bicubic"
    )
    assert (back - image)[..., 8:-8, 8:-8].abs().max() < TOLERANCE["there and back"]


@pytest.mark.parametrize("model", ["brown", "fisheye"])
def test_gradients_to_the_image_and_the_lens(model):
    k = double(FISHEYE if model == "fisheye" else lens(5, 1, size=0.3))
    image = noise(1, 4, 5)
    focal = double([3.8, 3.4, 2.05, 1.6])

    def both(image, focal, k):
        fx, fy, cx, cy = focal.unbind(-1)
        one, zero = torch.ones_like(fx), torch.zeros_like(fx)
        rows = (fx, zero, cx), (zero, fy, cy), (zero, zero, one)
        matrix = torch.stack([torch.stack(row, -1) for row in rows], -2)
        options = {"model": model, "interpolation": "bicubic", "border": "reflect"}
        flat = camera.undistort(image, matrix, k, size=(2, 3), **options)
        return flat, camera.distort(image, matrix, k, size=(2, 3), **options)

    inputs = [a.requires_grad_() for a in (image, focal, k)]
    assert gradcheck(both, inputs)
    forward = {"check_forward_ad": True, "check_backward_ad": False}  # remap has the image's
    assert gradcheck(lambda *lens: both(image.detach(), *lens), inputs[1:], **forward)
    assert gradgradcheck(both, inputs)


def rectangles(k, size, matrix):
    """(inner, outer) rectangles of an image's 9 x 9 points, by a converged iteration in numpy."""
    cv2 = installed_opencv()
    steps = np.linspace(0, 1, 9)
    points = np.array([(x * (size[1] - 1), y * (size[0] - 1)) for y in steps for x in steps])
    ideal, found = camera.undistort_points(
        double(points), double(matrix), double(k), new_camera_matrix=np.eye(3)
    )
    assert found.all()
    solid = np.column_stack((ideal.numpy(), np.ones(81)))
    shown, _ = cv2.projectPoints(solid, np.zeros(3), np.zeros(3), matrix, np.asarray(k))
    assert np.abs(shown[:, 0] - points).max() < TOLERANCE["solved pixels"]  # an independent check
    x, y = ideal.numpy().reshape(9, 9, 2).transpose(2, 0, 1)
    inner = x[:, 0].max(), y[0].max(), x[:, -1].min(), y[-1].min()
    return inner, (x.min(), y.min(), x.max(), y.max())


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("n", COUNTS)
def test_the_optimal_camera_matches_its_definition_and_nearly_cv2(alpha, n):
    cv2 = installed_opencv()
    k, size, new = lens(n, 1, size=0.3), (480, 640), (400, 500)
    ours = camera.optimal_camera_matrix(double(CAMERA), double(k), size, alpha, new_size=new)
    mixed = np.zeros(4)
    for share, (left, top, right, bottom) in zip(
        (1 - alpha, alpha), rectangles(k, size, CAMERA), strict=True
    ):
        fx, fy = (new[1] - 1) / (right - left), (new[0] - 1) / (bottom - top)
        mixed += share * np.array([fx, fy, -fx * left, -fy * top])
    truth = np.array([[mixed[0], 0, mixed[2]], [0, mixed[1], mixed[3]], [0, 0, 1]])
    assert np.abs(ours.numpy() - truth).max() < TOLERANCE["pixels float64"]
    theirs, _ = cv2.getOptimalNewCameraMatrix(CAMERA, k, size[::-1], alpha, new[::-1])
    assert np.abs(ours.numpy() - theirs).max() < TOLERANCE["five steps"]


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_the_optimal_camera_of_a_fisheye_matches_its_definition(alpha):
    matrix, size, new = (
        np.array([[300.0, 0, 310], [0, 290, 250], [0, 0, 1]]),
        (480, 640),
        (400, 500),
    )
    steps = np.linspace(0, 1, 9)
    points = np.array([(x * (size[1] - 1), y * (size[0] - 1)) for y in steps for x in steps])
    # the definition's inverse: bisection in numpy, independent of our solvers
    far = (points - matrix[:2, 2]) / np.diag(matrix)[:2]
    bent = np.hypot(*far.T)
    low, high = np.zeros(81), np.full(81, np.pi / 2)
    for _ in range(60):
        t = (low + high) / 2
        powers = sum(c * t ** (2 * i + 2) for i, c in enumerate(FISHEYE))
        low, high = (
            np.where(t * (1 + powers) < bent, t, low),
            np.where(t * (1 + powers) < bent, high, t),
        )
    x, y = (far * (np.tan(low) / bent)[:, None]).reshape(9, 9, 2).transpose(2, 0, 1)
    inner = x[:, 0].max(), y[0].max(), x[:, -1].min(), y[-1].min()
    outer = x.min(), y.min(), x.max(), y.max()
    mixed = np.zeros(4)
    for share, (left, top, right, bottom) in zip((1 - alpha, alpha), (inner, outer), strict=True):
        fx, fy = (new[1] - 1) / (right - left), (new[0] - 1) / (bottom - top)
        mixed += share * np.array([fx, fy, -fx * left, -fy * top])
    options = {"new_size": new, "model": "fisheye"}
    ours = camera.optimal_camera_matrix(double(matrix), double(FISHEYE), size, alpha, **options)
    truth = np.array([[mixed[0], 0, mixed[2]], [0, mixed[1], mixed[3]], [0, 0, 1]])
    assert np.abs(ours.numpy() - truth).max() < TOLERANCE["pixels float64"]
    k = double(FISHEYE).requires_grad_()
    small = {"new_size": (20, 30), "model": "fisheye"}
    assert gradcheck(
        lambda k: camera.optimal_camera_matrix(matrix, k, size, alpha, **small),
        k,
        check_forward_ad=True,
    )
    wanted = "it reaches beyond the model's fold, or 90 degrees"
    with pytest.raises(ValueError, match=wanted):
        camera.optimal_camera_matrix(
            matrix / [[2], [2], [1]], FISHEYE, (960, 1280), 0.0, model="fisheye"
        )


def test_the_optimal_camera_has_gradients_and_rejects_lenses_that_fold():
    k, alpha = double(lens(5, 1, size=0.3)).requires_grad_(), double(0.4).requires_grad_()

    def optimal(k, alpha):
        return camera.optimal_camera_matrix(double(SMALL), k, SIZE, alpha)

    assert gradcheck(optimal, (k, alpha), check_forward_ad=True)
    assert camera.optimal_camera_matrix(SMALL, np.zeros((3, 5)), SIZE, [0.0, 0.5, 1]).shape == (
        3,
        3,
        3,
    )
    wanted = "optimal_camera_matrix: `distortion` must be a lens that shows all of the image"
    with pytest.raises(ValueError, match=re.escape(wanted)):
        camera.optimal_camera_matrix(SMALL, [-1.5, 0, 0, 0], SIZE, 0.0)


def test_errors_of_remap_name_the_called_function():
    image = noise(1, *SIZE)
    for name in ("undistort", "distort"):
        function = getattr(camera, name)
        with pytest.raises(ValueError, match=f"{name}: `border` must be one of"):
            function(image, SMALL, [0.0] * 4, border="none")
        with pytest.raises(TypeError, match=re.escape(f"{name}: `image` must be a tensor")):
            function(image.numpy(), SMALL, [0.0] * 4)
        with pytest.raises(TypeError, match=re.escape(f"{name}: `size` must be (H, W)")):
            function(image, SMALL, [0.0] * 4, size=3)
        with pytest.raises(ValueError, match="the batch dimensions of"):
            function(noise(2, 1, *SIZE), SMALL, np.zeros((3, 4)))
    with pytest.raises(
        ValueError, match=re.escape("undistort: `rotation` must be of shape (..., 3, 3)")
    ):
        camera.undistort(image, SMALL, [0.0] * 4, rotation=np.zeros(3))


def test_points_and_maps_agree():
    """`distort_points` finds an ideal point where the map reads it in the distorted image."""
    k, points = double(lens(8, 1)), double(np.floor(pixels(20)))
    field = camera.undistort_map(double(CAMERA), k, (480, 640))
    shown = camera.distort_points(points, double(CAMERA), k)
    rows, columns = points[:, 1].long(), points[:, 0].long()
    assert (field[rows, columns] - shown).abs().max() < TOLERANCE["pixels float64"]
