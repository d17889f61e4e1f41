"""Arguments of cameras: cv2's coefficients, integer images, numbers in other units."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
import torch

import warpkit.opencv as wcv2
from tests.camera.test_points import COUNTS, FISHEYE, double, lens
from tests.support.inputs import noise
from warpkit import camera

CAMERA = np.array([[52.0, 0, 31], [0, 50, 25], [0, 0, 1]])
SIZE = (24, 32)
POINTS = double([[10.0, 12.0], [20.0, 3.0]])
IMAGE = noise(1, *SIZE)


def calls(k, model):
    """Every function of cameras, with one lens."""
    options = {"model": model}
    yield camera.distort_points(POINTS, CAMERA, k, **options)
    yield from camera.undistort_points(POINTS, CAMERA, k, **options)
    yield camera.undistort_map(CAMERA, k, SIZE, **options)
    yield camera.distort_map(CAMERA, k, SIZE, **options)
    yield camera.undistort(IMAGE, CAMERA, k, **options)
    yield camera.distort(IMAGE, CAMERA, k, **options)
    yield camera.optimal_camera_matrix(CAMERA, k, SIZE, 0.5, **options)


@pytest.mark.parametrize(("n", "model"), [*((n, "brown") for n in COUNTS), (4, "fisheye")])
def test_coefficients_of_every_shape_that_cv2_returns_are_accepted(n, model):
    k = np.array(FISHEYE) if model == "fisheye" else lens(n, 1, size=0.1)
    plain = list(calls(k, model))
    for form in (k[None], k[:, None], k[:, None].tolist(), double(k)[None], double(k)[:, None]):
        for mine, wanted in zip(calls(form, model), plain, strict=True):
            assert mine.shape == wanted.shape
            assert torch.equal(mine, wanted)
    names = ("fisheye.undistortImage", "fisheye.undistortPoints") if model == "fisheye" else ()
    for name in names or ("undistort", "undistortPoints"):
        function, (first, second) = wcv2, [POINTS.numpy()[:, None], IMAGE[0].numpy()]
        for part in name.split("."):
            function = getattr(function, part)
        given = first if name.endswith("Points") else second
        for form in (k[None], k[:, None]):
            assert np.array_equal(function(given, CAMERA, form), function(given, CAMERA, k))


def test_several_lenses_are_a_batch():
    k = np.stack([lens(5, s, size=0.1) for s in (1, 3)])
    assert camera.distort_points(POINTS, CAMERA, k).shape == (2, 2, 2)
    assert camera.distort_points(POINTS, CAMERA, k[:1, None]).shape == (1, 1, 2, 2)


@pytest.mark.parametrize("shape", [(6, 1), (1, 6), (1, 1), (5, 1, 1)], ids=str)
def test_coefficients_of_other_shapes_are_rejected(shape):
    with pytest.raises(ValueError, match=re.escape("`distortion` must be of shape (..., n)")):
        camera.distort_points(POINTS, CAMERA, np.zeros(shape))


def test_8_bit_images_warn_which_argument_gets_no_gradient():
    image = torch.zeros(1, *SIZE, dtype=torch.uint8)
    k, matrix = double([0.1, 0, 0, 0]).requires_grad_(), double(CAMERA).requires_grad_()
    eye = torch.eye(3).double()
    for call, names in (
        (lambda: camera.undistort(image, CAMERA, k), "`distortion`"),
        (lambda: camera.distort(image, matrix, k), "`camera_matrix` and `distortion`"),
        (
            lambda: camera.undistort(image, CAMERA, [0.0] * 4, new_camera_matrix=matrix),
            "`new_camera_matrix`",
        ),
        (
            lambda: camera.undistort(image, CAMERA, [0.0] * 4, rotation=eye.requires_grad_()),
            "`rotation`",
        ),
        (lambda: wcv2.undistort(image[0], matrix, k), "`cameraMatrix` and `distCoeffs`"),
        (lambda: wcv2.fisheye.undistortImage(image[0], CAMERA, k, None, matrix), "`D` and `Knew`"),
    ):
        wanted = f"no gradient reaches {names} through an image of torch.uint8"
        with pytest.warns(UserWarning, match=re.escape(wanted)) as caught:
            call()
        assert len(caught) == 1
        assert caught[0].filename == __file__
    with pytest.raises(ValueError, match="the batch dimensions of `image` and `camera_matrix, dis"):
        camera.undistort(noise(2, 1, *SIZE), CAMERA, np.zeros((3, 4)))


def test_8_bit_images_give_no_warning_where_no_gradient_is_required():
    image = torch.zeros(1, *SIZE, dtype=torch.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        camera.undistort(image, CAMERA, [0.1, 0, 0, 0])


SHARES = [[0.8, 0, 0.5], [0, 1.1, 0.48], [0, 0, 1]]
LENS = [0.01, 0, 0, 0]
IN_SHARES = {
    "undistort": lambda k: camera.undistort(IMAGE, k, LENS),
    "distort": lambda k: camera.distort(IMAGE, k, LENS),
    "undistort_map": lambda k: camera.undistort_map(k, LENS, SIZE),
    "distort_map": lambda k: camera.distort_map(k, LENS, SIZE, model="fisheye"),
    "optimal_camera_matrix": lambda k: camera.optimal_camera_matrix(k, [0.0] * 4, SIZE, 0.0),
}


@pytest.mark.parametrize("name", IN_SHARES)
def test_a_camera_matrix_in_fractions_of_the_image_gets_a_warning(name):
    wanted = f"{name}: `camera_matrix` has its centre within the first pixel of an image of (24, 32"
    for matrix in (SHARES, torch.tensor(SHARES).expand(3, 3, 3)):
        with pytest.warns(UserWarning, match=re.escape(wanted)) as caught:
            IN_SHARES[name](matrix)
        assert len(caught) == 1
        assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        IN_SHARES[name](CAMERA)
        IN_SHARES[name](np.diag([20.0, 20, 1]))  # a centre in the corner, as after a crop
        camera.undistort_map(np.eye(3), LENS, SIZE)  # points that are directions
        camera.undistort_map(SHARES, LENS, (4, 5))  # for so small an image it may be intended
        camera.distort_points(POINTS / 30, SHARES, LENS)
        torch.func.vmap(lambda x: camera.undistort_map(SHARES, LENS, SIZE) * x)(torch.ones(2))


def test_a_warning_is_shown_once_for_each_line():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            camera.undistort_map(SHARES, LENS, SIZE)
    assert len(caught) == 1
