"""Resizes, lenses and OpenCV's other geometry with any arguments: right, or a clear error.

`FUZZ_EXAMPLES=10000 pytest tests/fuzz/test_pipeline.py` runs other and more cases of each function.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import strategies as st

import warpkit as wk
import warpkit.opencv as wcv
from tests.fuzz.test_images import check_warp, picture
from tests.support import hostile_arguments as wild
from tests.support.fuzzing import Case, check_result, fuzz, twice
from warpkit import camera
from warpkit.engine.arithmetic.resize import (
    EXACT_FILTERS,
    OPENCV_FILTERS,
    PILLOW_FILTERS,
    RESIZE_ARITHMETICS,
)

FILTERS = tuple(dict.fromkeys((*EXACT_FILTERS, *OPENCV_FILTERS, *PILLOW_FILTERS, "linear")))
RESIZE = Case(
    wk.resize,
    {"image": wild.images(), "size": wild.sizes},
    {
        "interpolation": st.sampled_from((*EXACT_FILTERS * 2, *FILTERS)),
        "antialias": st.sampled_from((None, None, True, False)),
        "box": st.one_of(
            st.none(),
            st.sampled_from(((0, 0, 1, 1), (0.2, 0.1, 0.9, 1.0), (0, 0, 3, 2))),
            wild.tensors((4,), high=4.0),
        ),
        "arithmetic": st.sampled_from((*("exact",) * 6, *RESIZE_ARITHMETICS)),
        "backend": st.sampled_from(("auto",) * 4 + ("cpu", "reference", "cuda")),
    },
)

lens = st.sampled_from((4, 5, 8, 12, 14, 4, 3)).flatmap(
    lambda n: wild.tensors((n,), low=-0.3, high=0.3)
)
views = st.one_of(
    st.just(torch.tensor([[6.0, 0, 2.5], [0, 7.0, 2], [0, 0, 1]])),
    wild.batches.flatmap(lambda b: wild.tensors((*b, 3, 3), low=0.5, high=6.0)),
)
models = st.sampled_from(("brown", "brown", "fisheye", "pinhole"))
of_lens = {"camera_matrix": views, "distortion": lens}
turned = {
    "rotation": st.one_of(st.none(), wild.tensors((3, 3), low=-1.0)),
    "new_camera_matrix": st.one_of(st.none(), views),
}
sampling = {
    "interpolation": st.sampled_from(("nearest", "bilinear", "bicubic", "area")),
    "border": st.sampled_from(("constant", "replicate", "reflect")),
}
LENSES = {
    "undistort": Case(
        camera.undistort,
        {"image": wild.images(), **of_lens},
        {"model": models, "size": wild.sizes, **turned, **sampling},
    ),
    "distort": Case(
        camera.distort,
        {"image": wild.images(), **of_lens},
        {"model": models, "size": wild.sizes, **sampling},
    ),
    "undistort_map": Case(
        camera.undistort_map, {**of_lens, "size": wild.sizes}, {"model": models, **turned}
    ),
    "distort_map": Case(camera.distort_map, {**of_lens, "size": wild.sizes}, {"model": models}),
    "distort_points": Case(
        camera.distort_points, {"points": wild.points(3), **of_lens}, {"model": models, **turned}
    ),
    "undistort_points": Case(
        camera.undistort_points, {"points": wild.points(3), **of_lens}, {"model": models, **turned}
    ),
    "optimal_camera_matrix": Case(
        camera.optimal_camera_matrix,
        {**of_lens, "size": wild.sizes, "alpha": wild.numbers},
        {"new_size": wild.sizes},
    ),
    "similarity_from_points": Case(
        wk.similarity_from_points,
        {"src": wild.points(3), "dst": wild.points(3)},
        {"weights": wild.tensors((3,))},
    ),
    "affine_from_points": Case(
        wk.affine_from_points,
        {"src": wild.points(5), "dst": wild.points(5)},
        {"weights": wild.tensors((5,))},
    ),
    "perspective_from_points": Case(
        wk.perspective_from_points,
        {"src": wild.points(6), "dst": wild.points(6)},
        {"weights": wild.tensors((6,))},
    ),
    "pixel_grid": Case(wk.pixel_grid, {"size": wild.sizes}, {}),
}

whole = st.integers(-2, 8)
cv2_points = st.one_of(wild.tensors((4, 1, 2), high=5.0), wild.tensors((4, 2), high=5.0))
cv2_lens = {"cameraMatrix": views, "distCoeffs": lens}
fisheye_lens = {"K": views, "D": wild.tensors((4,), low=-0.1, high=0.1)}
criteria = st.sampled_from(
    (None, (3, 5, 1e-3), (1, 2, 0.0), (2, 0, 1e-9), (1, -1, 0.0), (1, "a", 0), (2, 0, None), (3, 1))
)
kinds = st.sampled_from((-1, wcv.CV_32FC1, wcv.CV_32FC2, wcv.CV_16SC2, 7))
floats32 = (torch.float32,)
maps = st.one_of(
    st.tuples(*[wild.tensors((3, 4), floats32, -9, 9)] * 2),
    st.tuples(wild.tensors((3, 4, 2), floats32, -9, 9), st.none()),
    st.tuples(
        wild.tensors((3, 4, 2), (torch.int16,), -9, 9), wild.tensors((3, 4), (torch.uint16,))
    ),
)
large = st.one_of(
    wild.tensors((17, 16), (torch.float32, torch.uint8)), wild.tensors((16, 16, 3), floats32)
)


def converted(pair: Any, **options: Any) -> Any:
    """convertMaps of two maps, the second of which may be None."""
    pair = pair if isinstance(pair, tuple) and len(pair) == 2 else (pair, None)
    return wcv.convertMaps(*pair, **options)[0]


def found_by_ecc(**arguments: Any) -> Any:
    """The matrix, or None where cv2 raises its own error."""
    try:
        return wcv.findTransformECC(**({"criteria": (1, 2, 0.0)} | arguments))[1]
    except wcv.error:
        return None


FACE = {
    "resize": Case(
        wcv.resize,
        {"src": picture, "dsize": st.one_of(wild.sizes, st.none())},
        {"fx": wild.numbers, "fy": wild.numbers, "interpolation": st.integers(-1, 8)},
    ),
    "undistort": Case(wcv.undistort, {"src": picture, **cv2_lens}, {"newCameraMatrix": views}),
    "undistortPoints": Case(
        wcv.undistortPoints,
        {"src": cv2_points, **cv2_lens},
        {"R": turned["rotation"], "P": views, "criteria": criteria},
    ),
    "initUndistortRectifyMap": Case(
        wcv.initUndistortRectifyMap,
        {
            **cv2_lens,
            "R": turned["rotation"],
            "newCameraMatrix": views,
            "size": wild.sizes,
            "m1type": st.sampled_from((wcv.CV_32FC1, wcv.CV_32FC2, wcv.CV_16SC2, 7)),
        },
        {},
    ),
    "warpPolar": Case(
        wcv.warpPolar,
        {
            "src": picture,
            "dsize": st.one_of(wild.sizes, st.sampled_from(((0, 0), (2, 0), (0, 2), None))),
            "center": wild.pairs,
            "maxRadius": wild.numbers,
            "flags": st.sampled_from((0, 1, 2, 256, 257, 16, 273, 999)),
        },
        {},
    ),
    "getRectSubPix": Case(
        wcv.getRectSubPix, {"image": picture, "patchSize": wild.sizes, "center": wild.pairs}, {}
    ),
    "pyrDown": Case(wcv.pyrDown, {"src": picture}, {"dstsize": wild.sizes, "borderType": whole}),
    "pyrUp": Case(wcv.pyrUp, {"src": picture}, {"dstsize": wild.sizes, "borderType": whole}),
    "copyMakeBorder": Case(
        wcv.copyMakeBorder,
        {"src": picture, **dict.fromkeys(("top", "bottom", "left", "right", "borderType"), whole)},
        {"value": wild.numbers},
    ),
    "flip": Case(wcv.flip, {"src": picture, "flipCode": whole}, {}),
    "rotate": Case(wcv.rotate, {"src": picture, "rotateCode": whole}, {}),
    "transpose": Case(wcv.transpose, {"src": picture}, {}),
    "transform": Case(
        wcv.transform,
        {"src": picture, "m": st.sampled_from(((3, 3), (2, 4), (1, 1))).flatmap(wild.tensors)},
        {},
    ),
    "convertMaps": Case(
        converted, {"pair": maps, "dstmap1type": kinds}, {"nninterpolation": st.booleans()}
    ),
    "getOptimalNewCameraMatrix": Case(
        lambda **arguments: wcv.getOptimalNewCameraMatrix(**arguments)[0],
        {**cv2_lens, "imageSize": wild.sizes, "alpha": wild.numbers},
        {"newImgSize": wild.sizes, "centerPrincipalPoint": st.booleans()},
    ),
    "findTransformECC": Case(
        found_by_ecc,
        {
            "templateImage": large,
            "inputImage": large,
            "warpMatrix": st.one_of(st.none(), wild.matrices(batch=())),
        },
        {
            "motionType": st.integers(-1, 4),
            "criteria": criteria,
            "inputMask": wild.tensors((17, 16), (torch.uint8,)),
            "gaussFiltSize": whole,
        },
    ),
    "fisheye.undistortImage": Case(
        wcv.fisheye.undistortImage,
        {"distorted": picture, **fisheye_lens},
        {"Knew": views, "new_size": wild.sizes},
        says=("fisheye.undistortImage: ",),
    ),
    "fisheye.undistortPoints": Case(
        wcv.fisheye.undistortPoints,
        {"distorted": cv2_points, **fisheye_lens},
        {"R": turned["rotation"], "P": views, "criteria": criteria},
        says=("fisheye.undistortPoints: ",),
    ),
    "fisheye.distortPoints": Case(
        wcv.fisheye.distortPoints,
        {"undistorted": cv2_points, **fisheye_lens},
        {"alpha": wild.numbers, "Kundistorted": views},
        says=("fisheye.distortPoints: ",),
    ),
    "fisheye.initUndistortRectifyMap": Case(
        lambda **arguments: wcv.fisheye.initUndistortRectifyMap(**arguments)[0],
        {
            **fisheye_lens,
            "R": st.one_of(turned["rotation"], wild.tensors((3,))),
            "P": views,
            "size": wild.sizes,
            "m1type": kinds,
        },
        {},
        says=("fisheye.initUndistortRectifyMap: ",),
    ),
    "perspectiveTransform": Case(
        wcv.perspectiveTransform, {"src": cv2_points, "m": wild.matrices((3,), batch=())}, {}
    ),
}


def check_lens(name: str, case: Case, values: dict[str, Any]) -> None:
    """Check that points marked as converged are solutions, and that others are NaN."""
    made = twice(name, case, values)
    if made is None or name != "undistort_points":
        return
    points, converged = made.result
    assert points.shape[:-1] == converged.shape
    if points.device.type != "meta":
        assert torch.equal(points.isfinite().all(-1), converged)


def test_resizes_are_right_or_rejected():
    fuzz("resize", RESIZE, check_warp)


@pytest.mark.parametrize("name", LENSES)
def test_lenses_are_right_or_rejected(name):
    fuzz(name, LENSES[name], check_lens, least=20)


@pytest.mark.parametrize("name", FACE)
def test_cv2s_functions_work_or_reject_any_arguments(name):
    fuzz(name, FACE[name], check_result, least=20)
