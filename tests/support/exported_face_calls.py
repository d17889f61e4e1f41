"""One call of every function of `warpkit.opencv` on tensors; `exported_calls` has the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import warpkit.opencv as cv2
from tests.support.exported_inputs import (
    ExportedCall,
    Input,
    floats,
    levels,
    near,
)

IMAGE, BYTES = floats(24, 31, 3), levels(24, 31, 3)
MATRIX = near([[0.9, 0.2, 0.3], [-0.15, 1.1, -0.4]], shape=())
HOMOGRAPHY = near([[1.1, 0.2, 0.3], [-0.15, 0.9, -0.4], [0.001, -0.002, 1.0]], shape=(), noise=1e-4)
QUAD = near([[2.0, 3.0], [25.0, 2.0], [27.0, 20.0], [3.0, 21.0]], shape=(), noise=0.5)
ONE = near([[40.0, 0.0, 15.0], [0.0, 40.0, 12.0], [0.0, 0.0, 1.0]], shape=(), noise=0.0)
LENS = near([-0.1, 0.02, 0.001, -0.001], shape=(), noise=0.0)
SCENE = Input(("points", 3), lambda sides, random: torch.rand(sides, generator=random) + 1)
POINTS = Input(("points", 2), lambda sides, random: torch.rand(sides, generator=random) * 20)
FIELD = Input((20, 25), lambda sides, random: torch.rand(sides, generator=random) * 20)
TURN, SHIFT = (
    near([0.1, -0.2, 0.05], shape=(), noise=0.0),
    near([0.1, 0.2, 2.0], shape=(), noise=0.0),
)


def _moved() -> list[tuple[str, str, Callable[..., Any], tuple[Input, ...]]]:
    """Functions that copy pixels, and pyramids."""
    return [
        (
            "copyMakeBorder",
            "uint8",
            lambda x: cv2.copyMakeBorder(x, 1, 2, 3, 4, cv2.BORDER_REFLECT),
            (BYTES,),
        ),
        ("flip", "uint8", lambda x: cv2.flip(x, 1), (BYTES,)),
        ("rotate", "uint8", lambda x: cv2.rotate(x, cv2.ROTATE_90_CLOCKWISE), (BYTES,)),
        ("transpose", "uint8", cv2.transpose, (BYTES,)),
        ("hconcat", "uint8", lambda x, y: cv2.hconcat([x, y]), (BYTES, BYTES)),
        ("vconcat", "uint8", lambda x, y: cv2.vconcat([x, y]), (BYTES, BYTES)),
        ("pyrDown", "uint8", cv2.pyrDown, (BYTES,)),
        ("pyrUp", "uint8", cv2.pyrUp, (BYTES,)),
        ("getRectSubPix", "uint8", lambda x: cv2.getRectSubPix(x, (7, 5), (9.3, 8.6)), (BYTES,)),
    ]


def _sampled() -> list[tuple[str, str, Callable[..., Any], tuple[Input, ...]]]:
    """Warps, remaps and resizes."""
    size = (25, 20)
    return [
        ("warpAffine", "uint8", lambda x, m: cv2.warpAffine(x, m, size), (BYTES, MATRIX)),
        (
            "warpPerspective",
            "uint8",
            lambda x, m: cv2.warpPerspective(x, m, size),
            (BYTES, HOMOGRAPHY),
        ),
        (
            "warpPolar",
            "uint8",
            lambda x: cv2.warpPolar(
                x, size, (15.0, 12.0), 10.0, cv2.INTER_LINEAR | cv2.WARP_FILL_OUTLIERS
            ),
            (BYTES,),
        ),
        (
            "remap",
            "uint8",
            lambda x, a, b: cv2.remap(x, a, b, cv2.INTER_LINEAR),
            (BYTES, FIELD, FIELD),
        ),
        (
            "convertMaps",
            "to fixed maps",
            lambda a, b: cv2.convertMaps(a, b, cv2.CV_16SC2)[0],
            (FIELD, FIELD),
        ),
        ("resize", "uint8", lambda x: cv2.resize(x, size), (BYTES,)),
        (
            "resize",
            "uint8, INTER_AREA",
            lambda x: cv2.resize(x, size, interpolation=cv2.INTER_AREA),
            (BYTES,),
        ),
        ("undistort", "uint8", cv2.undistort, (BYTES, ONE, LENS)),
        (
            "fisheye.undistortImage",
            "uint8",
            lambda x, k, d: cv2.fisheye.undistortImage(x, k, d, Knew=k),
            (BYTES, ONE, LENS),
        ),
    ]


def _numbers() -> list[tuple[str, str, Callable[..., Any], tuple[Input, ...]]]:
    """Matrices and points."""
    alone = near(3.0, shape=(), noise=0.0)
    maps = (31, 24), cv2.CV_32FC1
    return [
        (
            "getAffineTransform",
            "",
            cv2.getAffineTransform,
            (near([[2.0, 3.0], [25.0, 2.0], [27.0, 20.0]], shape=()),) * 2,
        ),
        ("getPerspectiveTransform", "", cv2.getPerspectiveTransform, (QUAD, QUAD)),
        ("invertAffineTransform", "", cv2.invertAffineTransform, (MATRIX,)),
        (
            "boxPoints",
            "",
            lambda c, s, a: cv2.boxPoints((c, s, a)),
            (near([9.0, 8.0], shape=()), near([5.0, 4.0], shape=()), alone),
        ),
        ("findHomography", "", cv2.findHomography, (POINTS, POINTS)),
        (
            "findTransformECC",
            "",
            lambda x, y: cv2.findTransformECC(x, y, None)[1],
            (floats(24, 31), floats(24, 31)),
        ),
        ("transform", "", cv2.transform, (floats("points", 1, 2), MATRIX)),
        (
            "perspectiveTransform",
            "",
            cv2.perspectiveTransform,
            (floats("points", 1, 2), HOMOGRAPHY),
        ),
        ("cartToPolar", "", cv2.cartToPolar, (floats("points"), floats("points"))),
        ("polarToCart", "", cv2.polarToCart, (floats("points"), floats("points"))),
        ("Rodrigues", "", cv2.Rodrigues, (TURN,)),
        ("projectPoints", "", lambda *x: cv2.projectPoints(*x)[0], (SCENE, TURN, SHIFT, ONE, LENS)),
        ("undistortPoints", "", cv2.undistortPoints, (POINTS, ONE, LENS)),
        (
            "initUndistortRectifyMap",
            "",
            lambda k, d: cv2.initUndistortRectifyMap(k, d, None, k, *maps),
            (ONE, LENS),
        ),
        (
            "getOptimalNewCameraMatrix",
            "",
            lambda k, d: cv2.getOptimalNewCameraMatrix(k, d, (31, 24), 0.5)[0],
            (ONE, LENS),
        ),
        (
            "fisheye.projectPoints",
            "",
            lambda *x: cv2.fisheye.projectPoints(*x)[0],
            (floats("points", 1, 3), TURN, SHIFT, ONE, LENS),
        ),
        (
            "fisheye.undistortPoints",
            "",
            cv2.fisheye.undistortPoints,
            (floats("points", 1, 2), ONE, LENS),
        ),
        (
            "fisheye.distortPoints",
            "",
            cv2.fisheye.distortPoints,
            (floats("points", 1, 2), ONE, LENS),
        ),
        (
            "fisheye.initUndistortRectifyMap",
            "",
            lambda k, d: cv2.fisheye.initUndistortRectifyMap(k, d, None, k, *maps),
            (ONE, LENS),
        ),
        (
            "fisheye.estimateNewCameraMatrixForUndistortRectify",
            "",
            lambda k, d: cv2.fisheye.estimateNewCameraMatrixForUndistortRectify(
                k, d, (31, 24), None
            ),
            (ONE, LENS),
        ),
    ]


def calls() -> list[ExportedCall]:
    """All calls of `warpkit.opencv`."""
    makers = (_moved, _sampled, _numbers)
    return [
        ExportedCall(f"opencv.{name}", words, call, inputs)
        for maker in makers
        for name, words, call, inputs in maker()
    ]
