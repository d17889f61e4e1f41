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


STEPS = np.linspace(0, 1, 2001)


def border_of(size):
    """2,001 points along each side, left, top, right and bottom: (4, 2001, 2)."""
    (height, width), zero = (n - 1 for n in size), 0 * STEPS
    sides = (zero, STEPS), (STEPS, zero), (zero + 1, STEPS), (STEPS, zero + 1)
    return np.stack([np.stack((x * width, y * height), axis=-1) for x, y in sides])


def rectangles(x, y):
    """(inner, outer) of the undistorted border (4, N)."""
    inner = x[0].max(), y[1].max(), x[2].min(), y[3].min()
    return inner, (x.min(), y.min(), x.max(), y.max())


def optimal_by_hand(x, y, new, alpha):
    mixed = np.zeros(4)
    shares = zip((1 - alpha, alpha), rectangles(x, y), strict=True)
    for share, (left, top, right, bottom) in shares:
        fx, fy = (new[1] - 1) / (right - left), (new[0] - 1) / (bottom - top)
        mixed += share * np.array([fx, fy, -fx * left, -fy * top])
    return np.array([[mixed[0], 0, mixed[2]], [0, mixed[1], mixed[3]], [0, 0, 1]])


def undistorted_border(k, size, matrix):
    """Its directions, x and y (4, N), checked by cv2's projection, which is independent of ours."""
    cv2, points = installed_opencv(), border_of(size).reshape(-1, 2)
    ideal, found = camera.undistort_points(
        double(points), double(matrix), double(k), new_camera_matrix=np.eye(3)
    )
    assert found.all()
    solid = np.column_stack((ideal.numpy(), np.ones(len(points))))
    shown, _ = cv2.projectPoints(solid, np.zeros(3), np.zeros(3), matrix, np.asarray(k))
    assert np.abs(shown[:, 0] - points).max() < TOLERANCE["solved pixels"]
    return ideal.numpy().reshape(4, -1, 2).transpose(2, 0, 1)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("n", COUNTS)
def test_the_optimal_camera_matches_its_definition_and_nearly_cv2(alpha, n):
    cv2 = installed_opencv()
    k, size, new = lens(n, 1, size=0.3), (480, 640), (400, 500)
    ours = camera.optimal_camera_matrix(double(CAMERA), double(k), size, alpha, new_size=new)
    truth = optimal_by_hand(*undistorted_border(k, size, CAMERA), new, alpha)
    assert np.abs(ours.numpy() - truth).max() < TOLERANCE["border of samples"]
    theirs, _ = cv2.getOptimalNewCameraMatrix(CAMERA, k, size[::-1], alpha, new[::-1])
    assert np.abs(ours.numpy() - theirs).max() < TOLERANCE["five steps"]


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_the_optimal_camera_of_a_fisheye_matches_its_definition(alpha):
    matrix, size, new = (
        np.array([[300.0, 0, 310], [0, 290, 250], [0, 0, 1]]),
        (480, 640),
        (400, 500),
    )
    points = border_of(size).reshape(-1, 2)
    # the definition's inverse: bisection in numpy, independent of our solvers
    far = (points - matrix[:2, 2]) / np.diag(matrix)[:2]
    bent = np.hypot(*far.T)
    low, high = np.zeros(len(points)), np.full(len(points), np.pi / 2)
    for _ in range(60):
        t = (low + high) / 2
        powers = sum(c * t ** (2 * i + 2) for i, c in enumerate(FISHEYE))
        low, high = (
            np.where(t * (1 + powers) < bent, t, low),
            np.where(t * (1 + powers) < bent, high, t),
        )
    x, y = (far * (np.tan(low) / bent)[:, None]).reshape(4, -1, 2).transpose(2, 0, 1)
    truth = optimal_by_hand(x, y, new, alpha)
    options = {"new_size": new, "model": "fisheye"}
    ours = camera.optimal_camera_matrix(double(matrix), double(FISHEYE), size, alpha, **options)
    assert np.abs(ours.numpy() - truth).max() < TOLERANCE["border of samples"]
    k = double(FISHEYE).requires_grad_()
    small = {"new_size": (20, 30), "model": "fisheye"}
    assert gradcheck(
        lambda k: camera.optimal_camera_matrix(matrix, k, size, alpha, **small),
        k,
        check_forward_ad=True,
    )
    wanted = "one is beyond the model's fold, or 90 degrees"
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
    wanted = "optimal_camera_matrix: `distortion` must be a lens that shows a part of every side"
    with pytest.raises(ValueError, match=re.escape(wanted)):
        camera.optimal_camera_matrix(SMALL, [-1.5, 0, 0, 0], SIZE, 0.0)
    # under vmap no number can be read: NaN marks the lens
    folds, some = double([-1.5, 0, 0, 0]), double([0.1, 0, 0, 0])
    found = torch.vmap(lambda k: camera.optimal_camera_matrix(double(SMALL), k, SIZE, 0.0))(
        torch.stack((folds, some))
    )
    assert found[0].isnan().all()
    torch.testing.assert_close(found[1], optimal(some, double(0.0)))


@pytest.mark.parametrize("square", [False, True])
@pytest.mark.parametrize(
    "k", [(-0.25, 0.06, 0, 0), (-0.3, 0.1, 2e-3, -2e-3), (0.3, 0, 0, 0), (-0.14, 0, 0, 0)]
)
def test_alpha_0_shows_only_valid_pixels_and_no_fewer(k, square):
    """The last lens folds within the image's corners: the other pixels count alone."""
    size, matrix = (270, 480), double([[250.0, 0, 239.5], [0, 250, 151.5], [0, 0, 1]])
    for _ in range(2):
        view = camera.optimal_camera_matrix(matrix, double(k), size, 0.0, square=square)
    if square:
        assert view[0, 0] == view[1, 1]
    ones = torch.ones(1, *size, dtype=torch.float64)
    shown = camera.undistort(ones, matrix, double(k), new_camera_matrix=view)
    assert shown.min() > 1 - TOLERANCE["cpu torch.float32"]
    # moved by 1/20 of a pixel to one of two sides at least, it would show some that are not
    lost = 0
    for axis in (0, 1):
        for step in (-0.05, 0.05):
            moved = view.clone()
            moved[axis, 2] += step
            shown = camera.undistort(ones, matrix, double(k), new_camera_matrix=moved)
            lost += bool(shown.min() < 1 - 1e-3)
    assert lost >= 2 or k[0] > 0  # whose extremes are corners, which the rectangle may miss


def test_alpha_1_shows_all_pixels_and_square_ones_have_equal_focal_lengths():
    k, size = double(lens(5, 1, size=0.3)), (480, 640)
    x, y = undistorted_border(k.numpy(), size, CAMERA)
    for square in (False, True):
        view = camera.optimal_camera_matrix(double(CAMERA), k, size, 1.0, square=square).numpy()
        u, v = view[0, 0] * x + view[0, 2], view[1, 1] * y + view[1, 2]
        ends = np.array([u.min(), v.min(), 639 - u.max(), 479 - v.max()])
        assert ends.min() > -TOLERANCE["border of samples"]
        near = np.sort(np.abs(ends))[: 2 if square else 4]
        assert near.max() < TOLERANCE["border of samples"]
        np.testing.assert_allclose(ends[:2], ends[2:], atol=2 * TOLERANCE["border of samples"])
        assert not square or view[0, 0] == view[1, 1]


@pytest.mark.parametrize("alpha", [-0.1, 1.5, float("nan"), torch.tensor([0.5, 2.0])])
def test_alpha_is_between_0_and_1(alpha):
    with pytest.raises(ValueError, match=r"optimal_camera_matrix: `alpha` must be within \[0, 1\]"):
        camera.optimal_camera_matrix(SMALL, [0.0] * 4, SIZE, alpha)


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
