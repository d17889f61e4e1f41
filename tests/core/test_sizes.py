"""Sizes and counts as numpy integers, such as from np.round(...).astype(int)."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import warpkit as wk
import warpkit.opencv as cv
from tests.support.inputs import noise
from warpkit import attacks, camera, flow, nn, transforms, validation

IMAGE = noise(1, 3, 24, 24).float()
BYTES = (IMAGE * 255).byte()
ARRAY = BYTES[0].permute(1, 2, 0).numpy().copy()
EYE = torch.eye(2, 3)
LENS = [[20.0, 0, 12], [0, 20, 12], [0, 0, 1]], [0.1, 0.0, 0.0, 0.0]
ARRAYS = np.array(LENS[0]), np.array(LENS[1])
BOX = [[0.0, 0.0, 9.0, 9.0]]
CORNERS = [[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]]
MOVES = attacks.AffineDistribution(angle=(-5.0, 5.0))
FEATURES = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten())
FEW = {"samples": 2, "steps": 2, "chunk": 1}
CV_32FC1 = 5

Whole = Callable[[int], Any]
"""A whole number in one of its forms."""


def mean(images: Tensor) -> Tensor:
    return images.mean()


CASES: dict[str, Callable[[Whole], Any]] = {
    "resize": lambda n: wk.resize(IMAGE, (n(4), n(5))),
    "resize_axes": lambda n: wk.resize_axes(IMAGE, (n(4), n(5)), axes=(n(2), n(3))),
    "letterbox": lambda n: wk.letterbox(IMAGE, (n(4), n(5))),
    "resize, the reference": lambda n: wk.resize(IMAGE, (n(4), n(5)), backend="reference"),
    "resize, Pillow's": lambda n: wk.resize(BYTES, (n(4), n(5)), arithmetic="pillow"),
    "resize, OpenCV's": lambda n: wk.resize(BYTES, (n(4), n(5)), arithmetic="opencv5"),
    "warp_affine": lambda n: wk.warp_affine(IMAGE, EYE, size=(n(4), n(5))),
    "warp_affine, the reference": lambda n: wk.warp_affine(
        IMAGE, EYE, size=(n(4), n(5)), backend="reference"
    ),
    "warp_affine, OpenCV 4's": lambda n: wk.warp_affine(
        BYTES, EYE, size=(n(4), n(5)), arithmetic="opencv4"
    ),
    "warp_affine, OpenCV 5's": lambda n: wk.warp_affine(
        BYTES, EYE, size=(n(4), n(5)), arithmetic="opencv5"
    ),
    "warp_affine, by samples": lambda n: wk.warp_affine(IMAGE, EYE / 3, antialias=n(3)),
    "warp_perspective": lambda n: wk.warp_perspective(IMAGE, torch.eye(3), size=(n(4), n(5))),
    "pixel_grid": lambda n: wk.pixel_grid((n(4), n(5))),
    "image_center": lambda n: wk.image_center((n(4), n(5))),
    "resize_matrix": lambda n: wk.resize_matrix((n(4), n(5)), (n(8), n(9))),
    "box_to_matrix": lambda n: wk.box_to_matrix(BOX, (n(4), n(5))),
    "to_theta": lambda n: wk.to_theta(EYE, (n(4), n(5)), (n(3), n(2)), align_corners=True),
    "from_theta": lambda n: wk.from_theta(EYE, (n(4), n(5)), (n(3), n(2))),
    "crop_patches": lambda n: wk.crop_patches(IMAGE, BOX, None, (n(4), n(5))),
    "soft_one_hot": lambda n: wk.indexing.soft_one_hot(1.5, n(4)),
    "linear_lookup": lambda n: wk.indexing.linear_lookup(IMAGE, 1.5, dim=n(2)),
    "residual_lookup": lambda n: wk.indexing.residual_lookup(IMAGE, 1.5, dim=n(2)),
    "superposition_lookup": lambda n: wk.indexing.superposition_lookup(
        IMAGE, torch.ones(24), dim=n(2)
    ),
    "assign": lambda n: wk.indexing.assign(IMAGE, 1.5, torch.ones(1, 3, 24), dim=n(2)),
    "superposition_assign": lambda n: wk.indexing.superposition_assign(
        IMAGE, torch.ones(24), torch.ones(1, 3, 24), dim=n(2)
    ),
    "quantize": lambda n: wk.quantize(IMAGE, levels=n(200)),
    "align": lambda n: wk.align(IMAGE, IMAGE, levels=n(1), steps=n(4)).matrix,
    "flow.integrate": lambda n: flow.integrate(torch.ones(5, 5, 2), steps=n(4)),
    "flow.from_matrix": lambda n: flow.from_matrix(EYE, (n(4), n(5))),
    "flow.thin_plate_spline": lambda n: flow.thin_plate_spline(CORNERS, CORNERS, (n(4), n(5))),
    "flow.bspline": lambda n: flow.bspline(torch.ones(5, 5, 2), (n(4), n(5))),
    "flow.resize": lambda n: flow.resize(torch.ones(5, 5, 2), (n(4), n(5))),
    "flow.splat": lambda n: flow.splat(IMAGE, torch.ones(24, 24, 2), size=(n(4), n(5))).image,
    "camera.undistort": lambda n: camera.undistort(IMAGE, *LENS, size=(n(4), n(5))),
    "camera.distort": lambda n: camera.distort(IMAGE, *LENS, size=(n(4), n(5))),
    "camera.undistort_map": lambda n: camera.undistort_map(*LENS, (n(4), n(5))),
    "camera.distort_map": lambda n: camera.distort_map(*LENS, (n(4), n(5))),
    "camera.from_sphere": lambda n: camera.from_sphere(IMAGE, (n(4), n(5)), field_of_view=80.0),
    "camera.to_sphere": lambda n: camera.to_sphere(IMAGE, (n(4), n(8)), field_of_view=80.0),
    "camera.to_cube": lambda n: camera.to_cube(IMAGE, n(4)),
    "camera.from_cube": lambda n: camera.from_cube(IMAGE.expand(6, 3, 24, 24), (n(4), n(8))),
    "camera.optimal_camera_matrix": lambda n: camera.optimal_camera_matrix(
        *LENS, (n(24), n(24)), 1.0, new_size=(n(20), n(20))
    ),
    "nn.Warp": lambda n: nn.Warp(size=(n(4), n(5)))(IMAGE, EYE),
    "nn.SpatialTransformer": lambda n: nn.SpatialTransformer(
        *(FEATURES, (n(4), n(5))), features=n(48), lattice=(n(3), n(4)), transform="thin_plate"
    )(IMAGE),
    "transforms.Resize": lambda n: transforms.Resize((n(4), n(5)))(IMAGE),
    "transforms.Resize, a side": lambda n: transforms.Resize(n(4), max_size=n(8))(IMAGE),
    "transforms.RandomResizedCrop": lambda n: transforms.RandomResizedCrop((n(4), n(5)))(IMAGE),
    "transforms.RandomResizedCrop, a side": lambda n: transforms.RandomResizedCrop(n(4))(IMAGE),
    "transforms.CenterCrop": lambda n: transforms.CenterCrop((n(4), n(50)))(IMAGE),
    "transforms.CenterCrop, a side": lambda n: transforms.CenterCrop(n(4))(IMAGE),
    "attacks.AffineDistribution": lambda n: MOVES.sample(n(2), size=(n(4), n(5))),
    "attacks.PerspectiveDistribution": lambda n: attacks.PerspectiveDistribution(
        corners=(0.1, 0.2)
    ).sample(n(2), size=(n(4), n(5))),
    "attacks.Photometric": lambda n: attacks.Photometric(noise=0.1).sample(n(2)),
    "attacks.Cylinder": lambda n: attacks.Cylinder(3.0).flow((n(4), n(5))),
    "attacks.scaling_attack": lambda n: (
        attacks.scaling_attack(
            IMAGE[..., :4, :5], IMAGE, (n(4), n(5)), arithmetic="opencv5", steps=n(2)
        ).image
    ),
    "attacks.jpeg": lambda n: attacks.jpeg(n(50))(IMAGE),
    "attacks.expectation": lambda n: attacks.expectation(
        mean, IMAGE, MOVES, samples=n(2), chunk=n(1), size=(n(4), n(5))
    ),
    "attacks.optimize_perturbation": lambda n: (
        attacks.optimize_perturbation(
            mean, IMAGE, MOVES, epsilon=0.1, **{name: n(count) for name, count in FEW.items()}
        ).image
    ),
    "attacks.optimize_patch": lambda n: (
        attacks.optimize_patch(
            *(mean, IMAGE, BOX, None),
            **{name: n(count) for name, count in FEW.items()},
            patch_size=(n(4), n(5)),
            distribution=MOVES,
        ).patch
    ),
    "attacks.optimize_flow": lambda n: (
        attacks.optimize_flow(
            mean,
            IMAGE,
            epsilon=1.0,
            spacing=n(8),
            **{name: n(count) for name, count in FEW.items()},
        ).image
    ),
    "validation.compare_with_opencv": lambda n: (
        validation.compare_with_opencv(BYTES, EYE, size=(n(4), n(5))).differing
    ),
    "opencv.warpAffine": lambda n: cv.warpAffine(ARRAY, EYE.numpy(), (n(4), n(5))),
    "opencv.warpPerspective": lambda n: cv.warpPerspective(ARRAY, np.eye(3), (n(4), n(5))),
    "opencv.resize": lambda n: cv.resize(ARRAY, (n(4), n(5))),
    "opencv.resize, by factors": lambda n: cv.resize(ARRAY, (n(0), n(0)), fx=0.5, fy=0.5),
    "opencv.copyMakeBorder": lambda n: cv.copyMakeBorder(
        ARRAY, n(1), n(2), n(3), n(0), cv.BORDER_REFLECT
    ),
    "opencv.warpPolar": lambda n: cv.warpPolar(ARRAY, (n(8), n(9)), (12, 12), 10, 1),
    "opencv.warpPolar, a width": lambda n: cv.warpPolar(ARRAY, (n(8), n(0)), (12, 12), 10, 1),
    "opencv.warpPolar, no size": lambda n: cv.warpPolar(ARRAY, (n(0), n(0)), (12, 12), 10, 1),
    "opencv.getRectSubPix": lambda n: cv.getRectSubPix(ARRAY, (n(4), n(5)), (12, 12)),
    "opencv.pyrDown": lambda n: cv.pyrDown(ARRAY, dstsize=(n(12), n(12))),
    "opencv.pyrUp": lambda n: cv.pyrUp(ARRAY, dstsize=(n(48), n(48))),
    "opencv.convertMaps": lambda n: cv.convertMaps(
        np.ones((4, 5, 2), np.float32), None, n(cv.CV_16SC2)
    ),
    "opencv.initUndistortRectifyMap": lambda n: cv.initUndistortRectifyMap(
        *ARRAYS, None, ARRAYS[0], (n(4), n(5)), n(CV_32FC1)
    ),
    "opencv.getOptimalNewCameraMatrix": lambda n: cv.getOptimalNewCameraMatrix(
        *ARRAYS, (n(24), n(24)), 1.0, (n(20), n(20))
    )[0],
    "opencv.findTransformECC": lambda n: cv.findTransformECC(
        *(ARRAY[..., 0], ARRAY[..., 0], np.eye(2, 3, dtype=np.float32), cv.MOTION_AFFINE),
        *((n(3), n(5), 1e-3), None, n(5)),
    )[1],
    "opencv.fisheye.initUndistortRectifyMap": lambda n: cv.fisheye.initUndistortRectifyMap(
        *ARRAYS, np.eye(3), ARRAYS[0], (n(4), n(5)), n(CV_32FC1)
    ),
    "opencv.fisheye.estimateNewCameraMatrixForUndistortRectify": lambda n: (
        cv.fisheye.estimateNewCameraMatrixForUndistortRectify(
            *ARRAYS, (n(24), n(24)), np.eye(3), balance=0.5, new_size=(n(20), n(20))
        )
    ),
    "opencv.fisheye.undistortImage": lambda n: cv.fisheye.undistortImage(
        ARRAY, *ARRAYS, Knew=ARRAYS[0], new_size=(n(4), n(5))
    ),
}
"""By the public function, and what is special."""


def arrays_of(result: Any) -> list[np.ndarray]:
    """All numbers of a result, as arrays."""
    parts = result if isinstance(result, tuple) else (result,)
    return [np.asarray(p.detach() if isinstance(p, Tensor) else p) for p in parts]


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
@pytest.mark.parametrize("case", CASES)
def test_numpy_integers_are_accepted_as_sizes_and_counts(case, kind):
    """Also 8-bit integers, whose own arithmetic wraps around."""
    results = []
    for whole in (int, kind):
        torch.manual_seed(0)
        with warnings.catch_warnings():  # of a zero gradient, and of an empty view
            warnings.simplefilter("ignore", UserWarning)
            results.append(arrays_of(CASES[case](whole)))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_size_may_be_an_array():
    sides = np.round(np.array([24, 24]) * 0.4).astype(int)
    assert wk.resize(IMAGE, sides).shape[-2:] == (10, 10)  # pyright: ignore
    assert transforms.Resize(sides)(IMAGE).shape[-2:] == (10, 10)  # pyright: ignore
    for wrong in (np.array([1.5, 2.0]), np.ones((1, 2), int), np.array([1, 2, 3])):
        with pytest.raises(TypeError, match=r"resize: `size` must be \(H, W\), two integers"):
            wk.resize(IMAGE, wrong)  # pyright: ignore


SIZES = ("size", "size_in", "size_out", "new_size", "patch_size", "max_size", "lattice", "length")
COUNTS = ("steps", "samples", "chunk", "levels", "spacing", "features", "quality", "side", "dim")
OPENCVS = ("dsize", "dstsize", "imageSize", "newImgSize", "patchSize", "top", "gaussFiltSize")
MODULES = (wk, flow, camera, nn, transforms, attacks, validation, cv, cv.fisheye)
RESULTS = ("Alignment", "attacks.Pipeline", "validation.Preprocessing")
"""What is given back, with `size` or `steps` of another kind."""


def test_every_public_function_that_takes_a_size_is_in_cases():
    """A new function must be added to CASES, so that it is tested."""
    covered = {case.partition(",")[0] for case in CASES}
    missing = []
    for module in MODULES:
        room = module.__name__.removeprefix("warpkit").removeprefix(".")
        for name in getattr(module, "__all__", dir(module)):
            value = getattr(module, name)
            full = f"{room}.{name}" if room else name
            own = getattr(value, "__module__", None) or ""
            if name.startswith("_") or not callable(value) or not own.startswith("warpkit"):
                continue
            if own.startswith(("warpkit.core", "warpkit.engine")) or full in RESULTS:
                continue
            if own == "warpkit.opencv.sizes":  # a private module, not one of OpenCV's names
                continue
            if isinstance(value, type) and issubclass(value, Exception):
                continue
            takes = set(inspect.signature(value).parameters)
            if takes & {*SIZES, *COUNTS, *OPENCVS} and full not in covered:
                missing.append(full)
    assert not missing
