"""Labels in `warpkit.opencv`: cv2's pixels for its types, and the same rule for others."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch

import warpkit as wk
import warpkit.opencv as face
from tests.support.installed_opencv import compares_with_opencv
from tests.warp.test_labels import LIMITS, NEAREST, TYPES, equal, labels


def pictures(dtype: str, channels: int | None) -> np.ndarray:
    shape = (23, 31) if channels is None else (23, 31, channels)
    return labels(dtype, *shape).numpy()


CALLS = {
    "warpAffine": lambda cv, a, **o: cv.warpAffine(
        a, np.array([[0.9, 0.2, -3], [-0.15, 1.1, 2]], np.float64), (33, 27), flags=0, **o
    ),
    "warpPerspective": lambda cv, a, **o: cv.warpPerspective(
        a,
        np.array([[0.9, 0.2, -3], [-0.15, 1.1, 2], [3e-3, -2e-3, 1]], np.float64),
        (33, 27),
        flags=0,
        **o,
    ),
    "remap": lambda cv, a, **o: cv.remap(a, *MAPS, 0, **o),
    "integer maps": lambda cv, a, **o: cv.remap(a, *FIXED, 0, **o),
}
MAPS = np.random.default_rng(3).uniform(-6, 34, (2, 19, 21)).astype(np.float32)
FIXED = cv2.convertMaps(MAPS[0], MAPS[1], cv2.CV_16SC2)


@compares_with_opencv
@pytest.mark.parametrize("name", list(CALLS))
@pytest.mark.parametrize("border", ["CONSTANT", "REPLICATE", "REFLECT", "WRAP", "REFLECT_101"])
@pytest.mark.parametrize("channels", [None, 1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["int8", "int32"])
def test_labels_of_cv2s_types_have_cv2s_pixels(dtype, channels, border, name):
    image, call = pictures(dtype, channels), CALLS[name]
    mode = getattr(cv2, f"BORDER_{border}")
    for value in ((7, -3, 2**31 - 1, -(2**31)), (2.5, 3e9, -3e9, 200)):
        options = {"borderMode": mode, "borderValue": value}
        expected = call(cv2, image, **options)
        found = call(face, image, **options)
        assert found.dtype == expected.dtype
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("arithmetic", ["opencv4", "opencv5", "exact"])
@pytest.mark.parametrize("name", list(CALLS))
@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_of_labels_is_warped_like_int16(dtype, name, arithmetic):
    """int16 is compared with OpenCV 4.14 and 5.0, neither of which treats it specially."""
    image, call = pictures(dtype, 3), CALLS[name]
    value = (LIMITS[dtype][1], LIMITS[dtype][0], 1, 0)
    found = call(face, image, borderValue=value, arithmetic=arithmetic)
    index = np.arange(23 * 31, dtype=np.int16).reshape(23, 31)
    at = call(face, index, borderValue=-1, arithmetic=arithmetic)
    expected = np.where((at >= 0)[..., None], image.reshape(-1, 3)[at], np.array(value[:3], dtype))
    assert found.dtype == image.dtype
    assert np.array_equal(found, expected)
    planes = torch.from_numpy(image).permute(2, 0, 1)[None]
    matrix = torch.tensor([[0.9, 0.2, -3], [-0.15, 1.1, 2]], dtype=torch.float64)
    options = {**NEAREST, "arithmetic": arithmetic, "size": (27, 33)}
    first, second = (
        wk.warp_affine(planes, matrix, backend=backend, **options)
        for backend in ("cpu", "reference")
    )
    assert equal(first, second)


def test_int64_is_kept_where_cv2_returns_int32():
    image = np.array([[2**62 + 1, -5]])
    matrix = np.array([[1, 0, 1], [0, 1, 0]], np.float64)
    assert cv2.warpAffine(image, matrix, (2, 1), flags=0).dtype == np.int32
    found = face.warpAffine(image, matrix, (2, 1), flags=0, borderValue=-(2**62) - 1)
    assert found.dtype == np.int64
    assert found.tolist() == [[-(2**62) - 1, 2**62 + 1]]


@pytest.mark.parametrize("dtype", TYPES)
def test_a_transparent_border_keeps_dst(dtype):
    image, below = pictures(dtype, None), pictures(dtype, None)[::-1].copy()
    shift = np.array([[1, 0, 4], [0, 1, 0]], np.float64)
    options = {"dst": below, "flags": 0, "borderMode": face.BORDER_TRANSPARENT}
    expected = np.concatenate([below[:, :4], image[:, :-4]], 1)
    for arithmetic in ("opencv4", "opencv5"):
        found = face.warpAffine(image, shift, (31, 23), arithmetic=arithmetic, **options)
        assert np.array_equal(found, expected)
