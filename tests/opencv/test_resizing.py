"""`warpkit.opencv.resize`: cv2.resize's names, sizes, forms and pixels."""

from __future__ import annotations

import inspect
import re

import cv2
import numpy as np
import pytest
import torch

import warpkit as wk
import warpkit.opencv as ours
from tests.support.installed_opencv import compares_with_opencv
from tests.support.resize_cases import FLAGS, call_cv2, differing, fits, random_call
from warpkit.engine.arithmetic import guarantees
from warpkit.engine.binding import plan

IMAGE = (np.random.default_rng(0).random((17, 23, 3)) * 255).astype(np.uint8)


@pytest.fixture(autouse=True)
def ipp_as_the_wheel_has_it():
    before = cv2.ipp.useIPP()
    cv2.ipp.setUseIPP(True)
    yield
    cv2.ipp.setUseIPP(before)


def test_arguments_are_in_cv2s_order():
    theirs = re.findall(r"\w+", cv2.resize.__doc__.split(")")[0])[1:]
    names = list(inspect.signature(ours.resize).parameters)
    assert names == [*theirs, "arithmetic"]


@compares_with_opencv
@pytest.mark.parametrize("name", FLAGS)
def test_the_default_gives_the_installed_opencvs_pixels(name):
    """With IPP as in its wheel, and also with fx and fy where they are guaranteed."""
    assert guarantees.installed_resize_arithmetic().endswith("_ipp") == cv2.ipp.useIPP()
    random, checked = np.random.default_rng(FLAGS[name]), 0
    for dtype in ("uint8", "uint16", "int16", "float64"):
        for channels in (1, 3, 5):
            for _ in range(5):
                call = random_call(random, name, dtype, channels)
                wanted = call_cv2(cv2, call)
                if wanted is None:
                    continue
                flag = FLAGS[name]
                got = ours.resize(call.image, call.dsize, None, call.fx, call.fy, flag)
                assert got.shape == (wanted.shape if channels > 1 else wanted.shape[:2])
                promised = guarantees.guaranteed_resize(
                    guarantees.installed_resize_arithmetic(),
                    interpolation=name,
                    channels=channels,
                    dtype=dtype,
                    fits=fits(call, wanted),
                )
                if promised.where == "everywhere":
                    checked += 1
                    assert differing(got.reshape(wanted.shape), wanted) == 0, call[1:]
    assert checked > 20


@pytest.mark.parametrize("factor", [0.5, 1 / 3, 0.37, 1.5, 2, 0.1])
def test_sizes_by_factors_match_cv2(factor):
    for height in range(5, 24):
        image = IMAGE[:height]
        if round(height * factor) and round(23 * factor):
            wanted = cv2.resize(image, None, fx=factor, fy=factor)
            assert ours.resize(image, None, fx=factor, fy=factor).shape == wanted.shape, height
            assert ours.resize(image, (0, 0), fx=factor, fy=factor).shape == wanted.shape, height
            assert ours.resize(image, (0, 7), fx=factor, fy=factor).shape == wanted.shape, height


@compares_with_opencv
def test_views_outputs_and_types_as_in_cv2():
    grey = IMAGE[..., 0]
    assert (ours.resize(grey, (9, 8)) == cv2.resize(grey, (9, 8))).all()
    assert ours.resize(IMAGE[..., :1], (9, 8)).shape == cv2.resize(IMAGE[..., :1], (9, 8)).shape
    flipped = IMAGE[::-1, :, ::-1]
    assert (ours.resize(flipped, (9, 8)) == cv2.resize(flipped, (9, 8))).all()
    out = np.zeros((8, 9, 3), np.uint8)
    assert ours.resize(IMAGE, (9, 8), out) is out
    assert (out == cv2.resize(IMAGE, (9, 8))).all()
    for dtype in (np.int8, np.int32, np.float16, bool):
        labels = (IMAGE > 100).astype(dtype) if dtype is bool else IMAGE.astype(dtype)
        got = ours.resize(labels, (9, 8), interpolation=ours.INTER_NEAREST, arithmetic="exact")
        assert got.dtype == dtype


def test_a_tensor_has_gradients():
    image = torch.from_numpy(IMAGE).float().requires_grad_()
    result = ours.resize(image, (9, 8), interpolation=ours.INTER_AREA)
    assert result.shape == (8, 9, 3)
    result.sum().backward()
    assert image.grad is not None
    torch.testing.assert_close(image.grad.sum(), torch.tensor(8.0 * 9 * 3))


def test_exact_arithmetic_equals_wk_resize():
    planes = torch.from_numpy(IMAGE).permute(2, 0, 1)
    for flag, name in ((ours.INTER_LINEAR, "bilinear"), (ours.INTER_CUBIC, "bicubic")):
        got = ours.resize(IMAGE, (9, 8), interpolation=flag, arithmetic="exact")
        wanted = wk.resize(planes, (8, 9), interpolation=name, antialias=False)
        assert (got == wanted.permute(1, 2, 0).numpy()).all()
    got = ours.resize(IMAGE, (9, 8), interpolation=ours.INTER_AREA, arithmetic="exact")
    assert (got == wk.resize(planes, (8, 9), interpolation="area").permute(1, 2, 0).numpy()).all()


WRONG = [
    ({"dsize": (9, -1)}, "`dsize` must be (W, H), two integers of at least 1, got (9, -1)"),
    ({"dsize": 5}, "`dsize` must be (W, H), two integers of at least 1, got 5"),
    ({"dsize": None}, "`fy` must be a number above 0 if dsize is None or has a 0, got 0"),
    ({"dsize": None, "fx": -1, "fy": 1}, "`fx` must be a number above 0 if dsize is None"),
    ({"dsize": None, "fx": 0.01, "fy": 1}, "`fx` must be a factor that gives at least 1"),
    ({"interpolation": 7}, "`interpolation` must be one of INTER_NEAREST, _LINEAR, _CUBIC, _AREA"),
    ({"arithmetic": "pillow"}, "`arithmetic` must be one of 'auto', 'exact', 'opencv4'"),
    ({"src": [1]}, "`src` must be a tensor or an array, got list"),
    ({"src": IMAGE[0, 0]}, "`src` must be of shape (H, W) or (H, W, C), got (3,)"),
    ({"src": IMAGE.astype(np.float16)}, "`image` must be of one of the types uint8, uint16"),
    ({"src": IMAGE.astype(np.int64)}, "`interpolation` must be 'nearest' or 'nearest_exact' for"),
]


@pytest.mark.parametrize(("options", "text"), WRONG)
def test_errors(options, text):
    call = {"src": IMAGE, "dsize": (9, 8), **options}
    with pytest.raises((ValueError, TypeError), match=re.escape(f"resize: {text}")):
        ours.resize(**call)


@compares_with_opencv
@pytest.mark.parametrize("shape", [(31, 44), (31, 44, 1), (31, 44, 2), (31, 44, 3)])
def test_a_cached_call_also_matches_cv2(shape):
    """It skips the checks that the first call with its shapes and options has passed."""
    plan._plans.clear()
    random = np.random.default_rng(4)
    for name, flag in FLAGS.items():
        for n in range(3):
            image = random.integers(0, 256, shape, dtype=np.uint8)
            got, wanted = (m.resize(image, (29, 17), interpolation=flag) for m in (ours, cv2))
            assert got.shape == wanted.shape
            assert np.array_equal(got, wanted), (name, n)
            got[:] = 0  # the result belongs to the caller
    assert len(plan._plans) == len(FLAGS)


def test_only_plain_calls_are_cached():
    plan._plans.clear()
    ours.resize(IMAGE[::2], (9, 9))
    ours.resize(IMAGE, (23, 17))
    ours.resize(IMAGE, None, fx=0.5, fy=0.5)
    ours.resize(IMAGE, (9, 9), arithmetic="exact")
    ours.resize(torch.from_numpy(IMAGE).double().requires_grad_(), (9, 9))
    ours.resize(IMAGE.astype(">u2"), (9, 9))
    assert not plan._plans
    for _ in range(2):
        ours.resize(IMAGE, (9, 9))
        with pytest.raises(ValueError, match="interpolation"):
            ours.resize(IMAGE, (9, 9), interpolation=99)
        with pytest.raises(ValueError, match="dsize"):
            ours.resize(IMAGE, (9, -9))
    assert len(plan._plans) == 1
