"""`warpkit.opencv` has cv2's names, layouts and defaults."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest
import torch

import warpkit as wk
import warpkit.opencv as ours
from tests.support.inputs import noise
from tests.support.installed_opencv import installed_opencv
from tests.support.tolerances import TOLERANCE
from warpkit.engine.arithmetic import guarantees as promises

TURN = np.array([[0.9, 0.3, -2.0], [-0.25, 1.1, 3.0]])
PREFIXES = ("INTER_", "BORDER_", "WARP_", "DECOMP_", "MOTION_", "ROTATE_", "CV_", "TERM_")
PREFIXES = (*PREFIXES, "TermCriteria_")
CONSTANTS = [n for n in vars(ours) if n.startswith(PREFIXES)]


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_are_cv2s(name):
    cv2 = installed_opencv()
    assert getattr(ours, name) == getattr(cv2, name)


@pytest.mark.parametrize("name", ["warpAffine", "warpPerspective", "remap", "findTransformECC"])
def test_arguments_are_in_cv2s_order(name):
    cv2 = installed_opencv()
    theirs = re.findall(r"\w+", getattr(cv2, name).__doc__.split(")")[0])[1:]
    names = list(inspect.signature(getattr(ours, name)).parameters)
    assert names[: len(theirs) - 1] == theirs[: len(names)][: len(theirs) - 1]


def pictures(dtype=np.float32):
    image = (np.random.default_rng(0).random((17, 23, 3)) * 255).astype(dtype)
    return {
        "HW": image[..., 0],
        "HWC": image,
        "flipped": image[::-1, :, ::-1],
        "C1": image[..., :1],
    }


FLAGS = [ours.INTER_NEAREST, ours.INTER_LINEAR, ours.INTER_CUBIC, ours.INTER_AREA, 4]


def known(version: str) -> bool:
    """Whether this version of OpenCV is reproduced bit by bit."""
    return version.startswith(tuple(f"{reproduced}." for reproduced in promises.VERSIONS))


# OpenCV 5's bicubic reads the wrong pixels of a transparent dst: docs/opencv-versions.md
RULES = [(f, b) for f in FLAGS for b in range(6) if (f, b) != (ours.INTER_CUBIC, 5)]


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize(("flags", "border"), RULES)
@pytest.mark.parametrize("inverse", [0, ours.WARP_INVERSE_MAP])
@pytest.mark.parametrize("layout", pictures())
def test_arrays_have_cv2s_bits(dtype, flags, inverse, layout, border):
    cv2 = installed_opencv()
    image = pictures(dtype)[layout]
    size = (19, 13)  # (W, H)
    perspective = np.vstack([TURN, [0.002, -0.001, 1.0]])
    for name, matrix in (("warpAffine", TURN), ("warpPerspective", perspective)):
        for given in (False, True):
            if border == ours.BORDER_TRANSPARENT and not given:
                continue
            dst = np.full((13, 19, *image.shape[2:]), 7, image.dtype)
            options = {"flags": flags | inverse, "borderMode": border, "borderValue": (9, 8, 7)}
            arguments = [(image, matrix, size, dst.copy() if given else None) for _ in range(2)]
            truth = getattr(cv2, name)(*arguments[0], **options)
            out = getattr(ours, name)(*arguments[1], **options)
            assert (out.shape, out.dtype) == (truth.shape, truth.dtype)
            # OpenCV 4.10 rounds one float channel differently from 4.14, which is reproduced
            last_bit = 0 if known(cv2.__version__) or dtype == np.uint8 else 2.0**-15
            assert np.abs(np.subtract(out, truth, dtype=np.float64)).max() <= last_bit


def test_remap_accepts_every_kind_of_map():
    cv2 = installed_opencv()
    image = pictures()["HWC"]
    random = np.random.default_rng(1)
    x = (random.random((9, 11)) * 25 - 2).astype(np.float32)
    y = (random.random((9, 11)) * 19 - 2).astype(np.float32)
    truth = cv2.remap(image, x, y, cv2.INTER_LINEAR, borderValue=(1, 2, 3))
    for maps in ((x, y), (np.dstack([x, y]), None)):
        out = ours.remap(image, *maps, ours.INTER_LINEAR, borderValue=(1, 2, 3))
        assert np.array_equal(out, truth)
    fixed = cv2.convertMaps(x, y, cv2.CV_16SC2)
    for flags in (cv2.INTER_LINEAR, cv2.INTER_CUBIC, cv2.INTER_LANCZOS4):
        assert np.array_equal(ours.remap(image, *fixed, flags), cv2.remap(image, *fixed, flags))
    exact = ours.remap(image, *fixed, ours.INTER_LINEAR, arithmetic="exact")
    truth = cv2.remap(image, *fixed, cv2.INTER_LINEAR)
    assert np.abs(exact - truth).max() < 255 * TOLERANCE["cv2 5 float32"]
    offsets = (x - np.arange(11, dtype=np.float32), y - np.arange(9, dtype=np.float32)[:, None])
    flags = ours.INTER_LINEAR | ours.WARP_RELATIVE_MAP
    truth = cv2.remap(image, *offsets, flags)
    assert (
        np.abs(ours.remap(image, *offsets, flags) - truth).max() < 255 * TOLERANCE["cv2 5 float32"]
    )


def test_auto_selects_the_installed_opencvs_arithmetic(monkeypatch):
    for versions, wanted in (
        ({"opencv-python": "4.10.0.84"}, "opencv4"),
        ({"opencv-contrib-python-headless": "5.0.0.93"}, "opencv5"),
        ({}, "opencv5"),
    ):
        monkeypatch.setattr(promises, "installed", lambda p, v=versions: v.get(p, ""))
        ours.installed_arithmetic.cache_clear()
        assert ours.installed_arithmetic() == wanted
    monkeypatch.undo()
    ours.installed_arithmetic.cache_clear()


def test_tensors_stay_tensors_with_gradients():
    image = noise(7, 9, 3).requires_grad_()
    matrix = torch.from_numpy(TURN).requires_grad_()
    value = torch.tensor([1.0, 2, 3])
    out = ours.warpAffine(image, matrix, (6, 5), borderValue=value, arithmetic="exact")
    assert out.shape == (5, 6, 3)
    assert out.dtype == torch.float64
    core = wk.warp_affine(image.permute(2, 0, 1), matrix, size=(5, 6), border_value=[1.0, 2.0, 3.0])
    assert torch.equal(out, core.permute(1, 2, 0))
    out.sum().backward()
    assert image.grad is not None
    assert matrix.grad is not None
    assert ours.warpAffine(image[..., 0], matrix, None).shape == (7, 9)
    assert ours.warpAffine(image[..., :1], matrix, (0, 0)).shape == (7, 9, 1)


def test_a_number_fills_the_first_channel_as_in_cv2():
    image = np.zeros((2, 2, 6), np.float32)
    away = np.array([[1.0, 0, 50], [0, 1, 0]])
    assert ours.warpAffine(image, away, (2, 2), borderValue=5)[0, 0].tolist() == [5, 0, 0, 0, 5, 0]
    four = ours.warpAffine(image, away, (2, 2), borderValue=(1, 2, 3, 4))
    assert four[0, 0].tolist() == [1, 2, 3, 4, 1, 2]


def test_transparent_borders_write_to_arrays_and_only_read_tensors():
    image, away = np.ones((4, 4), np.float32), np.array([[1.0, 0, 2], [0, 1, 0]])
    dst = np.full((4, 4), 7, np.float32)
    out = ours.warpAffine(image, away, (4, 4), dst, borderMode=ours.BORDER_TRANSPARENT)
    assert out is dst
    assert dst[0].tolist() == [7, 7, 1, 1]
    kept = torch.full((4, 4), 7.0)
    out = ours.warpAffine(torch.ones(4, 4), away, (4, 4), kept, borderMode=ours.BORDER_TRANSPARENT)
    assert out[0].tolist() == [7, 7, 1, 1]
    assert kept.eq(7).all()


def frozen(array):
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def unlike_torch(array):
    """Copies of an array in memory that torch cannot share."""
    record = np.zeros(array.shape, [("pad", np.uint8), ("value", array.dtype)])
    record["value"] = array
    return {
        "read-only": frozen(array),
        "foreign byte order": array.astype(array.dtype.newbyteorder()),
        "reversed": array[::-1].copy()[::-1],
        "a field of records": record["value"],
    }


@pytest.mark.parametrize("kind", unlike_torch(np.zeros((1, 1), np.float32)))
def test_arrays_in_any_memory_layout_are_accepted(kind):
    image = noise(4, 5, dtype=torch.float32).numpy()
    x, y = (a.astype(np.float32) for a in np.meshgrid([0.5, 2], [1.25, 3]))
    points = np.float32([[0, 0], [3, 1], [1, 4]])
    src, turn, column, row, corners = (unlike_torch(a)[kind] for a in (image, TURN, x, y, points))
    truth = ours.warpAffine(image, TURN, (6, 3))
    assert np.array_equal(ours.warpAffine(src, turn, (6, 3)), truth)
    truth = ours.remap(image, x, y, ours.INTER_LINEAR)
    assert np.array_equal(ours.remap(src, column, row, ours.INTER_LINEAR), truth)
    assert np.array_equal(ours.invertAffineTransform(turn), ours.invertAffineTransform(TURN))
    truth = ours.getAffineTransform(points, points[::-1])
    assert np.array_equal(ours.getAffineTransform(corners, corners[::-1]), truth)


def test_arrays_stay_on_the_cpu_under_any_default_device():
    image, points = np.ones((4, 5), np.float32), np.float32([[0, 0], [3, 1], [1, 4], [5, 5]])
    with torch.device("meta"):
        assert ours.warpAffine(image, TURN, (5, 4), borderValue=1).all()
        assert ours.remap(image, image, image, 1, borderMode=1).all()
        assert np.isfinite(ours.getRotationMatrix2D((1, 2), 30, 1.0)).all()
        assert np.isfinite(ours.getAffineTransform(points[:3], points[1:])).all()
        assert np.isfinite(ours.getPerspectiveTransform(points, points)).all()
        assert np.isfinite(ours.invertAffineTransform(TURN)).all()


@pytest.mark.parametrize("kind", [np.int64, np.uint8])
def test_numpy_integers_are_accepted_as_flags(kind):
    image = noise(4, 5, dtype=torch.float32).numpy()
    flags, border = ours.INTER_NEAREST | ours.WARP_INVERSE_MAP, ours.BORDER_WRAP
    truth = ours.warpAffine(image, TURN, (5, 4), flags=flags, borderMode=border)
    out = ours.warpAffine(image, TURN, (5, 4), flags=kind(flags), borderMode=kind(border))
    assert np.array_equal(out, truth)


GREY = np.zeros((4, 5), np.float32)
EYE = np.eye(2, 3)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: ours.warpAffine([1], EYE, (2, 2)),
            "warpAffine: `src` must be a tensor or an array",
        ),
        (
            lambda: ours.warpAffine(GREY[None, None], EYE, (2, 2)),
            "warpAffine: `src` must be of shape (H, W) or (H, W, C), got (1, 1, 4, 5)",
        ),
        (
            lambda: ours.warpAffine(GREY.astype(np.float16), EYE, (2, 2)),
            "warpAffine: `src` must be of one of the types uint8, uint16, int16, float32, float64, bool, int8, ",
        ),
        (
            lambda: ours.warpAffine(GREY, np.eye(3), (2, 2)),
            "warpAffine: `M` must be of shape (2, 3), got (3, 3)",
        ),
        (
            lambda: ours.warpPerspective(GREY, EYE, (2, 2)),
            "warpPerspective: `M` must be of shape (3, 3), got (2, 3)",
        ),
        (
            lambda: ours.warpAffine(GREY, EYE, (2, -2)),
            "warpAffine: `dsize` must be (W, H), two integers of at least 1, got (2, -2)",
        ),
        (
            lambda: ours.warpAffine(GREY, EYE, 2),  # pyright: ignore
            "warpAffine: `dsize` must be (W, H), two integers of at least 1, got 2",
        ),
        (
            lambda: ours.warpAffine(GREY, EYE, (2, 2), borderMode=[1]),  # pyright: ignore
            "warpAffine: `borderMode` must be one of BORDER_CONSTANT, _REPLICATE, _REFLECT, _WRAP, ",
        ),
        (
            lambda: ours.warpAffine(GREY, EYE, (2, 2), borderValue=(1, "a")),
            "warpAffine: `borderValue` must be a number, a sequence of numbers, an array or a tensor",
        ),
        (
            lambda: ours.warpAffine(GREY, EYE, (5, 4), frozen(GREY)),
            "warpAffine: `dst` must be an array that can be written to, got a read-only one",
        ),
        (
            lambda: ours.remap(GREY, None, GREY, 1),
            "remap: `map1` must be a number, a sequence of numbers, an array or a tensor, got None",
        ),
        (
            lambda: ours.getRotationMatrix2D((1, 2), "left", 1.0),
            "getRotationMatrix2D: `angle` must be a number, a sequence of numbers, an array or a",
        ),
        (
            lambda: ours.warpAffine(GREY, EYE, (2, 2), flags=5),
            "warpAffine: `flags` must be one of INTER_NEAREST, _LINEAR, _CUBIC, _AREA, _LANCZOS4, and",
        ),
        (
            lambda: ours.warpAffine(GREY, EYE, (2, 2), borderMode=6),
            "warpAffine: `borderMode` must be one of BORDER_CONSTANT, _REPLICATE, _REFLECT, _WRAP, ",
        ),
        (
            lambda: ours.warpAffine(GREY, EYE, (2, 2), borderMode=5),
            "warpAffine: `dst` must be of shape (2, 2) and the type of src with BORDER_TRANSPARENT, ",
        ),
        (
            lambda: ours.warpAffine(GREY, EYE, (2, 2), torch.zeros(2, 2)),  # pyright: ignore
            "warpAffine: `dst` must be a ndarray, got Tensor",
        ),
        (
            lambda: ours.warpAffine(GREY, EYE, (2, 2), borderValue=(1, 2, 3, 4, 5)),
            "warpAffine: `borderValue` must be a number or up to four, got shape (5,)",
        ),
        (
            lambda: ours.remap(GREY, GREY, None, 1),
            "remap: `map1, map2` must be two (h, w) of floats, (h, w, 2) of floats and None, or ",
        ),
        (
            lambda: ours.remap(GREY, GREY, GREY, 17),
            "remap: `interpolation` must be without WARP_INVERSE_MAP, got 17",
        ),
    ],
)
def test_errors_use_cv2s_names(call, text):
    with pytest.raises((ValueError, TypeError), match=re.escape(text)):
        call()
