"""Unusual forms of arguments that cv2 accepts, each compared with cv2."""

from __future__ import annotations

import subprocess
from contextlib import nullcontext

import numpy as np
import pytest
import torch

import warpkit.opencv as ours
from tests.support.forks import python
from tests.support.installed_opencv import installed_opencv

RANDOM = np.random.default_rng(0)
IMAGE = RANDOM.integers(0, 256, (12, 15, 3), dtype=np.uint8)
TURN = np.array([[0.9, 0.3, -2.0], [-0.25, 1.1, 3.0]])
TILT = np.vstack([TURN, [0.002, -0.001, 1.0]])
X = (RANDOM.random((9, 11)) * 19 - 2).astype(np.float32)
Y = (RANDOM.random((9, 11)) * 16 - 2).astype(np.float32)
XY = np.dstack([X, Y])
CALLS = {
    "warpAffine": (IMAGE, TURN, (14, 10)),
    "warpPerspective": (IMAGE, TILT, (14, 10)),
    "remap": (IMAGE, X, Y, 1),
}


def both(name, arguments, options):
    cv2 = installed_opencv()
    return getattr(ours, name)(*arguments, **options), getattr(cv2, name)(*arguments, **options)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    "more",
    [(0,), (1,), (2,), (1.5,), (True,), ((1, 2),), ((),), (1, 2, 1), (None, None, None, None)],
)
def test_dst_is_ignored_and_none_selects_the_defaults(name, more):
    more = more[: 1 + (name != "remap")] + more[2:]  # remap's flags come before dst
    ignored = more[0] not in (None, ())
    for _ in range(2):
        with pytest.warns(UserWarning, match=f"{name}: `dst`") if ignored else nullcontext():
            out, truth = both(name, CALLS[name] + more, {})
        assert np.array_equal(out, truth)


def test_a_flag_in_the_place_of_an_output_gets_a_warning():
    """cv2 ignores it silently: this resize is bilinear."""
    calls = {
        "resize: `dst`": lambda: ours.resize(IMAGE, (5, 4), ours.INTER_AREA),
        "flip: `dst`": lambda: ours.flip(IMAGE, 1, 45),
        "pyrDown: `dst`": lambda: ours.pyrDown(IMAGE, 4),
        "undistort: `dst`": lambda: ours.undistort(IMAGE, np.eye(3), np.zeros(4), 1),
        "perspectiveTransform: `dst`": lambda: ours.perspectiveTransform(
            np.zeros((1, 2, 2)), np.eye(3), 1
        ),
    }
    for name, call in calls.items():
        for _ in range(2):
            with pytest.warns(UserWarning, match=f"{name} is the output array, and .* is ignored"):
                call()


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("option", ["flags", "borderMode", "borderValue", "dst"])
def test_none_by_keyword_selects_the_default(name, option):
    if (name, option) == ("remap", "flags"):  # it has no default; cv2 uses INTER_NEAREST
        out, truth = both(name, (IMAGE, X, Y, None), {})
        assert np.array_equal(out, truth)
        assert np.array_equal(out, ours.remap(IMAGE, X, Y, ours.INTER_NEAREST))
        return
    out, truth = both(name, CALLS[name], {option: None})
    assert np.array_equal(out, truth)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    "dst",
    [np.zeros((3, 3), np.uint8), np.zeros((10, 14, 3), np.float32), np.array([])],
    ids=["another shape", "another type", "empty"],
)
def test_a_dst_that_does_not_fit_is_left_alone(name, dst):
    out, truth = both(name, CALLS[name], {"dst": dst})
    assert np.array_equal(out, truth)
    assert out is not dst
    assert not dst.any()


@pytest.mark.parametrize("name", CALLS)
def test_the_hint_argument_changes_nothing(name):
    cv2 = installed_opencv()
    plain = getattr(ours, name)(*CALLS[name])
    for hint in (None, 0, ours.ALGO_HINT_ACCURATE, ours.ALGO_HINT_APPROX):
        assert np.array_equal(getattr(ours, name)(*CALLS[name], hint=hint), plain), hint
        if "hint" in getattr(cv2, name).__doc__:  # not every version has it
            assert np.array_equal(getattr(cv2, name)(*CALLS[name], hint=hint), plain), hint


@pytest.mark.parametrize("border", range(5))
@pytest.mark.parametrize("name", CALLS)
def test_border_isolated_changes_nothing(name, border):
    """cv2 agrees if all points are inside the image; otherwise it raises or reads other memory."""
    cv2 = installed_opencv()
    call = getattr(ours, name)
    plain = call(*CALLS[name], borderMode=border, borderValue=(9, 8, 7))
    flagged = call(*CALLS[name], borderMode=border | ours.BORDER_ISOLATED, borderValue=(9, 8, 7))
    assert np.array_equal(flagged, plain)
    x, y = np.meshgrid(np.float32([3, 4.5, 7.25]), np.float32([4, 6.75]))
    truth = cv2.remap(IMAGE, x, y, 1, borderMode=border | cv2.BORDER_ISOLATED)
    assert np.array_equal(ours.remap(IMAGE, x, y, 1, borderMode=border | 16), truth)


@pytest.mark.parametrize("flags", [ours.INTER_LINEAR, ours.INTER_CUBIC])
def test_remap_accepts_two_maps_of_one_channel(flags):
    for maps in ((X[..., None], Y[..., None]), (X[..., None], Y), (X, Y[..., None])):
        out, truth = both("remap", (IMAGE, *maps, flags), {})
        assert np.array_equal(out, truth)
    points = torch.from_numpy(X[..., None]).requires_grad_()
    image = torch.rand(12, 15)
    out = ours.remap(image, points, torch.from_numpy(Y), flags)
    assert torch.autograd.grad(out.sum(), points)[0].any()


@pytest.mark.parametrize("flags", [ours.INTER_LINEAR, ours.INTER_CUBIC, ours.INTER_LANCZOS4])
def test_fixed_point_maps_in_cv2s_forms(flags):
    cv2 = installed_opencv()
    pixels, parts = cv2.convertMaps(X, Y, cv2.CV_16SC2)
    truth = cv2.remap(IMAGE, pixels, parts, flags)
    for maps in (
        (pixels, parts),
        (parts, pixels),
        (pixels, parts[..., None]),
        (parts[..., None], pixels),
        (pixels, parts.astype(np.int16)),
    ):
        if flags != ours.INTER_CUBIC or maps[0] is pixels:  # OpenCV 5.0's bicubic needs the order
            assert np.array_equal(cv2.remap(IMAGE, *maps, flags), truth)
        assert np.array_equal(ours.remap(IMAGE, *maps, flags), truth)
    with pytest.raises(ValueError, match="remap: `map1, map2` must be two"):
        ours.remap(IMAGE, pixels, X, flags)


@pytest.mark.parametrize(
    "empty", [None, (), np.array([]), np.zeros((0, 0), np.float32), np.zeros((0, 5, 2), np.int16)]
)
@pytest.mark.parametrize("flags", [ours.INTER_LINEAR, ours.INTER_CUBIC])
def test_an_empty_second_map_counts_as_none(flags, empty):
    """Compared with cv2 and None, since 5.0 reads an empty second map under nearest and linear."""
    cv2 = installed_opencv()
    truth = cv2.remap(IMAGE, XY, None, flags)
    assert np.array_equal(ours.remap(IMAGE, XY, empty, flags), truth)
    pixels = cv2.convertMaps(X, Y, cv2.CV_16SC2)[0]
    truth = cv2.remap(IMAGE, pixels, None, ours.INTER_NEAREST)
    assert np.array_equal(ours.remap(IMAGE, pixels, empty, ours.INTER_NEAREST), truth)


@pytest.mark.parametrize("name", ["GaussianBlur", "imread", "cvtColor", "Canny", "INTER_BITS"])
def test_missing_names_say_where_they_are(name):
    text = f"module 'warpkit.opencv' has no attribute '{name}': warpkit.opencv has only"
    with pytest.raises(AttributeError, match=f"{text} a part of cv2; import cv2 for the rest"):
        getattr(ours, name)
    assert not hasattr(ours, name)


@pytest.mark.parametrize(
    "slip", ["warpAfine", "getPerspectivTransform", "BORDER_REFLECT_10", "__path", "_options"]
)
def test_misspelt_names_get_the_usual_attribute_error(slip):
    with pytest.raises(AttributeError) as raised:
        getattr(ours, slip)
    assert str(raised.value) == f"module 'warpkit.opencv' has no attribute '{slip}'"


def test_missing_names_cannot_be_imported():
    with pytest.raises(ImportError, match="cannot import name 'GaussianBlur'"):
        from warpkit.opencv import GaussianBlur  # pyright: ignore  # noqa: F401


def test_looking_up_a_name_does_not_import_cv2():
    code = (
        "import sys, warpkit.opencv as c; hasattr(c, 'GaussianBlur'); print('cv2' in sys.modules)"
    )
    done = subprocess.run([*python(), "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_all_lists_existing_names_once():
    assert len(ours.__all__) == len(set(ours.__all__))  # ruff checks their order
    assert all(hasattr(ours, name) for name in ours.__all__)
    own = {
        n
        for n, v in vars(ours).items()
        if str(getattr(v, "__module__", "")).startswith("warpkit.opencv")
    }
    constants = {n for n in vars(ours.constants) if n.isupper() or n.startswith("INTER_")}
    own = {name for name in own | constants if not name.startswith("_")}
    assert own <= set(ours.__all__)
