"""The other geometric functions of `warpkit.opencv`, compared with cv2."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

import warpkit as wk
import warpkit.opencv as ours
from tests.support.inputs import noise
from tests.support.installed_opencv import installed_opencv
from tests.support.opencv_cases import assert_same_arrays
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE
from warpkit.engine.cpu import launch

SIZES = [(9, 11), (1, 1), (1, 6), (7, 1), (2, 3), (32, 40)]
TYPES = ["uint8", "uint16", "int16", "float32", "float64"]
ALL_TYPES = [*TYPES, "int8", "int32"]


@pytest.fixture
def cv2():
    return installed_opencv()


@pytest.fixture
def without_ipp(cv2):
    """Switch IPP off: beyond the top right corner it reads wrong pixels in one channel."""
    used = cv2.ipp.useIPP()
    cv2.ipp.setUseIPP(False)
    yield
    cv2.ipp.setUseIPP(used)


def picture(dtype, size=(9, 11), channels=1, seed=0, whole=False):
    random = np.random.default_rng(seed)
    shape = size if channels == 1 else (*size, channels)
    if np.dtype(dtype).kind == "f" and not whole:
        return random.random(shape).astype(dtype)
    kind = np.int16 if np.dtype(dtype).kind == "f" else dtype
    limits = np.iinfo(kind)
    return random.integers(limits.min, limits.max + 1, shape).astype(dtype)


def near(ours, theirs):
    """Equal for integers, and within 1e-6 of the largest entry for floats."""
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    scale = max(float(np.abs(theirs).max()), 1.0)
    assert np.abs(ours - theirs).max() <= TOLERANCE["order of sums"] * scale


NAMES = ["convertMaps", "warpPolar", "getRectSubPix", "pyrDown", "pyrUp", "copyMakeBorder"]
NAMES += ["flip", "rotate", "transpose", "transform", "perspectiveTransform"]
NAMES += ["boxPoints", "cartToPolar", "polarToCart", "findHomography", "hconcat", "vconcat"]


@pytest.mark.parametrize("name", NAMES)
def test_arguments_are_in_cv2s_order(cv2, name):
    wanted = re.findall(r"\w+", getattr(cv2, name).__doc__.split(")")[0])[1:]
    assert list(inspect.signature(getattr(ours, name)).parameters)[: len(wanted)] == wanted


@pytest.mark.parametrize("dtype", ALL_TYPES)
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("size", SIZES)
def test_pixels_are_moved_as_by_cv2(cv2, dtype, channels, size):
    image = picture(dtype, size, channels)
    for code in (-1, 0, 1):
        assert_same_arrays(ours.flip(image, code), cv2.flip(image, code))
    for code in (cv2.ROTATE_90_CLOCKWISE, cv2.ROTATE_180, cv2.ROTATE_90_COUNTERCLOCKWISE):
        assert_same_arrays(ours.rotate(image, code), cv2.rotate(image, code))
    assert_same_arrays(ours.transpose(image), cv2.transpose(image))
    for border in range(5):
        for value in (None, 7, (300.5, -2, 1.5), (1, 2, 3, 4)):
            args = (image, 3, 2, 1, 4, border)
            assert_same_arrays(
                ours.copyMakeBorder(*args, value=value),
                cv2.copyMakeBorder(*args, value=value if value is not None else 0),
                (border, value),
            )
    assert_same_arrays(
        ours.copyMakeBorder(image, 0, 0, 0, 0, 20), cv2.copyMakeBorder(image, 0, 0, 0, 0, 20)
    )
    dst = np.zeros_like(image)
    assert ours.flip(image, 1, dst) is dst


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("size", SIZES)
def test_pyramids_match_cv2(cv2, dtype, channels, size):
    whole = picture(dtype, size, channels, whole=True)
    height, width = size
    half = ((width + 1) // 2, (height + 1) // 2)
    for border in (1, 2, 3, 4):
        for dx, dy in ((0, 0), (1, 0), (0, 1), (-1, -1)):
            to = (half[0] + dx, half[1] + dy)
            if abs(2 * to[0] - width) <= 2 and abs(2 * to[1] - height) <= 2 and min(to) > 0:
                args = (whole, None, to, border)
                assert_same_arrays(ours.pyrDown(*args), cv2.pyrDown(*args), (border, to))
    for dx, dy in ((0, 0), (1, 1), (-1, 1), (0, -1)):
        if width > 1 or dx < 1:  # cv2 reads uninitialised memory
            to = (2 * width + dx, 2 * height + dy)
            assert_same_arrays(ours.pyrUp(whole, None, to), cv2.pyrUp(whole, None, to), to)
    assert_same_arrays(ours.pyrDown(whole), cv2.pyrDown(whole))
    assert_same_arrays(ours.pyrUp(whole), cv2.pyrUp(whole))
    if np.dtype(dtype).kind == "f":
        parts = picture(dtype, size, channels)
        near(ours.pyrDown(parts), cv2.pyrDown(parts))
        near(ours.pyrUp(parts), cv2.pyrUp(parts))


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("step", [0, 1, 2, 16], ids=["anywhere", "whole", "halves", "sixteenths"])
def test_rectangles_match_cv2(cv2, dtype, channels, size, step, without_ipp):
    """Inside, across the borders and far outside; at whole pixels, halves and other fractions."""
    image = picture(dtype, size, channels)
    random = np.random.default_rng(1 + step)
    for reach in (3, 14, 1000):
        for _ in range(20):
            patch = tuple(int(n) for n in random.integers(1, 6, 2))
            x, y = random.uniform(-reach, reach, 2) + np.array(size[::-1]) / 2
            center = (round(x * step) / step, round(y * step) / step) if step else (x, y)
            for kind in (-1, cv2.CV_32F):
                truth = cv2.getRectSubPix(image, patch, center, patchType=kind)
                out = ours.getRectSubPix(image, patch, center, patchType=kind)
                assert_same_arrays(out, truth, (patch, center, kind))


def test_columns_beyond_the_image_are_summed_with_two_weights(cv2, without_ipp):
    """With fractions of 1/5 their sums are ties, which four rounded weights would miss."""
    column = np.random.default_rng(0).integers(0, 256, (40, 3)).astype(np.uint8)
    for x in (-4.46, 5.55, 5.79, 300.1):
        for y in (20.2, 20.4, 20.8, 20.95):
            args = (column, (1, 30), (x, y))
            assert_same_arrays(ours.getRectSubPix(*args), cv2.getRectSubPix(*args), (x, y))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [2, 3])
def test_points_in_perspective_match_cv2(cv2, dtype, columns):
    random = np.random.default_rng(3)
    points = (random.random((200, 1, columns)) * 100).astype(dtype)
    for _ in range(3):
        matrix = random.normal(0, 1, (columns + 1, columns + 1))
        matrix[-1] = [0.01] * columns + [1.0]
        truth, out = (
            cv2.perspectiveTransform(points, matrix),
            ours.perspectiveTransform(points, matrix),
        )
        (assert_same_arrays if dtype == np.float32 else near)(out, truth)
        stored = np.asfortranarray(matrix), matrix.T.copy().T, torch.from_numpy(matrix.T.copy()).mT
        for same_numbers in stored:
            again = np.asarray(ours.perspectiveTransform(points, same_numbers))
            assert_same_arrays(again, out)
    horizon = np.eye(columns + 1)
    horizon[-1, 0], horizon[-1, -1] = 1, -1
    ones = np.ones((1, 1, columns), dtype)
    assert_same_arrays(
        ours.perspectiveTransform(ones, horizon), cv2.perspectiveTransform(ones, horizon)
    )


def test_maps_are_converted_as_by_cv2(cv2):
    random = np.random.default_rng(4)
    pairs = np.concatenate(
        (random.random((7, 9, 2)) * 60 - 9, random.random((2, 9, 2)) * 9e4 - 4e4)
    ).astype(np.float32)
    pairs[0, 0], pairs[0, 1] = (0.015625, 0.046875), (np.nan, 1e12)  # ties of the 1/32 parts
    planes = tuple(np.ascontiguousarray(pairs[..., i]) for i in (0, 1))
    fixed = cv2.convertMaps(pairs, None, cv2.CV_16SC2)
    for maps in ((pairs, None), planes):
        for kind in (cv2.CV_16SC2, -1, cv2.CV_32FC1, cv2.CV_32FC2):
            if kind == (cv2.CV_32FC1 if maps is planes else cv2.CV_32FC2):
                continue  # cv2 returns these unchanged
            # cv2 ignores the second of two float maps if whole pixels are requested
            for whole in (False,) if kind == cv2.CV_32FC1 else (False, True):
                truth = cv2.convertMaps(*maps, kind, nninterpolation=whole)
                out = ours.convertMaps(*maps, kind, nninterpolation=whole)
                for a, b in zip(out, truth, strict=True):
                    assert (a is None) == (b is None), kind
                    if a is not None:
                        assert np.array_equal(a, b, equal_nan=True), kind
                        assert a.dtype == b.dtype, kind
    for kind in (cv2.CV_32FC1, cv2.CV_32FC2, -1):
        for a, b in zip(ours.convertMaps(*fixed, kind), cv2.convertMaps(*fixed, kind), strict=True):
            assert_same_arrays(a, b)


POLAR = [
    (size, center, radius)
    for size in ((40, 30), (31, 17))
    for center, radius in (((20.0, 15.0), 14.0), ((7.3, 25.1), 30.5))
]


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("mode", ["WARP_POLAR_LINEAR", "WARP_POLAR_LOG"])
@pytest.mark.parametrize("case", range(len(POLAR)))
def test_polar_images_match_cv2(cv2, dtype, mode, case):
    size, center, radius = POLAR[case]
    image = picture(dtype, (33, 45), 3)
    for interpolation in (cv2.INTER_NEAREST, cv2.INTER_LINEAR, cv2.INTER_CUBIC):
        flags = interpolation | getattr(cv2, mode)
        args = (image, size, center, radius, flags | cv2.WARP_FILL_OUTLIERS)
        assert_same_arrays(ours.warpPolar(*args), cv2.warpPolar(*args))
        if interpolation != cv2.INTER_CUBIC:  # OpenCV 5's bicubic reads the wrong pixels of dst
            dst = np.full((size[1], size[0], 3), 7, dtype)
            assert_same_arrays(
                ours.warpPolar(image, size, center, radius, flags, dst.copy()),
                cv2.warpPolar(image, size, center, radius, flags, dst.copy()),
            )
    flags = cv2.INTER_LINEAR | getattr(cv2, mode) | cv2.WARP_INVERSE_MAP | cv2.WARP_FILL_OUTLIERS
    args = (image, (60, 50), center, radius, flags)
    out, truth = ours.warpPolar(*args), cv2.warpPolar(*args)
    assert (out.shape, out.dtype) == (truth.shape, truth.dtype)
    apart = np.abs(out.astype(float) - truth)
    if mode == "WARP_POLAR_LINEAR":
        assert_same_arrays(out, truth)
    elif dtype == "uint8":
        assert apart.max() <= 1
        assert (apart > 0).mean() <= TOLERANCE["polar bytes"]
    else:
        assert apart.max() < TOLERANCE["polar float32"]
    for dsize in ((0, 0), (9, 0)):
        args = (image, dsize, center, radius, 1 | cv2.WARP_FILL_OUTLIERS)
        assert_same_arrays(ours.warpPolar(*args), cv2.warpPolar(*args))


def test_inverse_polar_maps_restore_an_image():
    """A smooth image, by the exact maps."""
    y, x = np.mgrid[:61, :61]
    image = np.sin(x / 9) * np.cos(y / 7)
    flags = ours.INTER_CUBIC | ours.WARP_FILL_OUTLIERS
    polar = ours.warpPolar(image, (80, 240), (30, 30), 30, flags, arithmetic="exact")
    back = ours.warpPolar(
        polar, (61, 61), (30, 30), 30, flags | ours.WARP_INVERSE_MAP, arithmetic="exact"
    )
    inside = np.hypot(x - 30, y - 30) < 27
    assert np.abs(back - image)[inside].max() < TOLERANCE["there and back"]


GRADIENTS = {
    "pyrDown": (lambda a: ours.pyrDown(a, borderType=ours.BORDER_REFLECT), [(5, 6, 2)]),
    "pyrUp": (ours.pyrUp, [(3, 4)]),
    "getRectSubPix": (lambda a: ours.getRectSubPix(a, (3, 2), (2.3, 3.4)), [(6, 7)]),
    "copyMakeBorder": (
        lambda a, v: ours.copyMakeBorder(a, 1, 2, 3, 0, 0, value=v),
        [(3, 4, 2), (2,)],
    ),
    "copyMakeBorder wrapped": (
        lambda a: ours.copyMakeBorder(a, 1, 2, 3, 0, ours.BORDER_WRAP),
        [(3, 4)],
    ),
    "flip": (lambda a: ours.flip(a, -1), [(3, 4)]),
    "rotate": (lambda a: ours.rotate(a, ours.ROTATE_90_CLOCKWISE), [(3, 4, 2)]),
    "transpose": (ours.transpose, [(3, 4)]),
    "transform": (ours.transform, [(3, 4, 2), (3, 3)]),
    "perspectiveTransform": (lambda a, m: ours.perspectiveTransform(a, m + 1), [(5, 1, 2), (3, 3)]),
    "warpPolar": (
        lambda a, c: ours.warpPolar(a, (3, 4), c + 2, 1.5, ours.INTER_CUBIC, arithmetic="exact"),
        [(5, 6), (2,)],
    ),
    "warpPolar inverse": (
        lambda a, c: ours.warpPolar(
            a,
            (4, 3),
            c + 1,
            3.0,
            ours.INTER_CUBIC | ours.WARP_INVERSE_MAP | ours.WARP_FILL_OUTLIERS,
            arithmetic="exact",
        ),
        [(4, 5), (2,)],
    ),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_tensors_have_gradients(name):
    function, shapes = GRADIENTS[name]
    inputs = [noise(*shape, seed=i + 1).requires_grad_() for i, shape in enumerate(shapes)]
    assert isinstance(function(*inputs), torch.Tensor)
    assert gradcheck(function, inputs, check_forward_ad=True)
    assert gradgradcheck(function, inputs)


def test_a_rectangles_center_has_the_exact_gradient():
    """The value rounds it to float32, which finite differences would see."""
    image, center = noise(6, 7), torch.tensor([2.3, 3.4]).double().requires_grad_()
    weight = noise(2, 3, seed=1)
    out = ours.getRectSubPix(image, (3, 2), center)
    points = wk.pixel_grid((2, 3)).double() + center - torch.tensor([1.0, 0.5])
    exact = wk.remap(image[None], points, border="replicate")[0]
    assert (out - exact).abs().max() < 1e-6
    grads = [torch.autograd.grad((x * weight).sum(), center)[0] for x in (out, exact)]
    assert torch.equal(*grads)


def test_a_rectangles_gradient_computes_no_exact_result(monkeypatch):
    """The kernel of "exact" runs only in the backward pass."""

    def fail(*_, **__):
        raise AssertionError("a result of `exact` was computed")

    image, center = noise(6, 7), torch.tensor([2.3, 3.4]).double().requires_grad_()
    plain = ours.getRectSubPix(image, (3, 2), center.detach())
    monkeypatch.setattr(launch, "forward", fail)
    monkeypatch.setattr(launch, "result", fail)
    for _ in range(2):
        out = ours.getRectSubPix(image, (3, 2), center)
        assert torch.equal(out, plain)
        (slope,) = torch.autograd.grad(out.sum(), center)
        assert slope.all()


@pytest.mark.parametrize("flags", [0, 16, 256, 16 + 256])
@pytest.mark.parametrize("arithmetic", ["opencv4", "opencv5"])
def test_opencvs_polar_pixels_have_the_exact_gradient(arithmetic, flags):
    """Linear and logarithmic, there and back: also the second gradient, and to one alone."""
    center = torch.tensor([20.2, 15.7]).double()
    flags, weight = flags | ours.INTER_LINEAR | ours.WARP_FILL_OUTLIERS, noise(20, 24, seed=3)
    for wanted in ((True, True), (True, False), (False, True)):
        found = []
        for chosen in ("exact", arithmetic):
            inputs = [
                x.clone().requires_grad_(w)
                for x, w in zip((noise(33, 45), center), wanted, strict=True)
            ]
            followed = [x for x in inputs if x.requires_grad]
            out = ours.warpPolar(inputs[0], (24, 20), inputs[1], 14.0, flags, arithmetic=chosen)
            first = torch.autograd.grad((out * weight).sum(), followed, create_graph=True)
            total = sum(slope.square().sum() for slope in first)
            second = torch.autograd.grad(total, inputs[1]) if wanted[1] else ()
            found.append([*first, *second])
        for a, b in zip(*found, strict=True):
            assert torch.equal(a, b)
            assert a.any()


def test_tensors_stay_tensors():
    image = torch.arange(12, dtype=torch.uint8).reshape(3, 4)
    for out in (
        ours.flip(image, 1),
        ours.pyrDown(image),
        ours.transpose(image),
        ours.copyMakeBorder(image, 1, 1, 1, 1, 4),
    ):
        assert isinstance(out, torch.Tensor)
        assert out.dtype == torch.uint8
    moved = ours.perspectiveTransform(np.ones((1, 1, 2)), torch.eye(3))
    assert isinstance(moved, torch.Tensor)
    x, y = ours.convertMaps(torch.zeros(3, 4, 2), None, ours.CV_32FC1)
    assert x.shape == y.shape == (3, 4)
    assert ours.flip(image > 3, 0).dtype == torch.bool
    wide = torch.arange(6).reshape(2, 3)
    assert ours.rotate(wide, ours.ROTATE_180).tolist() == [[5, 4, 3], [2, 1, 0]]


BAD = [
    (lambda: ours.flip([1], 0), TypeError, "flip: `src` must be a tensor or an array, got list"),
    (
        lambda: ours.rotate(np.zeros((2, 2)), 3),
        ValueError,
        "rotate: `rotateCode` must be ROTATE_90_CLOCKWISE, ROTATE_180 or",
    ),
    (
        lambda: ours.copyMakeBorder(np.zeros((2, 2)), -1, 0, 0, 0, 0),
        ValueError,
        "copyMakeBorder: `top` must be a whole number of at least 0, got -1",
    ),
    (
        lambda: ours.copyMakeBorder(np.zeros((2, 2)), 1, 0, 0, 0, 5),
        ValueError,
        "copyMakeBorder: `borderType` must be one of BORDER_CONSTANT, _REPLICATE",
    ),
    (
        lambda: ours.copyMakeBorder(np.zeros((2, 2, 5)), 1, 0, 0, 0, 0, value=(1, 2)),
        ValueError,
        "copyMakeBorder: `value` must be four equal numbers for 5 channels",
    ),
    (
        lambda: ours.pyrDown(np.zeros((4, 4)), borderType=0),
        ValueError,
        "pyrDown: `borderType` must be one of BORDER_REPLICATE",
    ),
    (
        lambda: ours.pyrDown(np.zeros((4, 4)), dstsize=(4, 4)),
        ValueError,
        "pyrDown: `dstsize` must be (W, H) within a pixel of half of (4, 4)",
    ),
    (
        lambda: ours.pyrUp(np.zeros((4, 4)), dstsize=(4, 4)),
        ValueError,
        "pyrUp: `dstsize` must be (W, H) within a pixel of twice (4, 4)",
    ),
    (
        lambda: ours.pyrUp(np.zeros((4, 4), np.int32)),
        TypeError,
        "pyrUp: `src` must be of one of the types uint8, uint16, int16",
    ),
    (
        lambda: ours.getRectSubPix(np.zeros((4, 4)), (2, 2), (np.nan, 1)),
        ValueError,
        "getRectSubPix: `center` must be finite",
    ),
    (
        lambda: ours.transform(np.zeros((4, 4, 2)), np.eye(4)),
        ValueError,
        "transform: `m` must be of shape (R, 2) or (R, 3) for 2 channels, got (4, 4)",
    ),
    (
        lambda: ours.perspectiveTransform(np.zeros((4, 1, 2)), np.eye(4)),
        ValueError,
        "perspectiveTransform: `m` must be of shape (3, 3) for points of 2 numbers",
    ),
    (
        lambda: ours.perspectiveTransform(np.zeros((4, 1, 2), int), np.eye(3)),
        TypeError,
        "perspectiveTransform: `src` must be of one of the types float32, float64",
    ),
    (
        lambda: ours.convertMaps(np.zeros((4, 4)), None, 5),
        ValueError,
        "convertMaps: `map1, map2` must be two (h, w) float32",
    ),
    (
        lambda: ours.warpPolar(np.zeros((4, 4)), (4, 4), (1, 1), 2, 64),
        ValueError,
        "warpPolar: `flags` must be one of INTER_NEAREST",
    ),
    (
        lambda: ours.warpPolar(np.zeros((4, 4)), (4, 0, 1), (1, 1), 2, 1),
        TypeError,
        "warpPolar: `dsize` must be (W, H)",
    ),
]


@pytest.mark.parametrize("case", range(len(BAD)))
def test_errors(case):
    call, error, message = BAD[case]
    with pytest.raises(error, match=re.escape(message)):
        call()


@pytest.mark.parametrize("name", ["GaussianBlur", "imread", "calibrateCamera"])
def test_a_missing_name_says_what_to_do(name):
    with pytest.raises(AttributeError, match=f"no attribute '{name}'.*import cv2 for the rest"):
        getattr(ours, name)


@pytest.mark.parametrize("fraction", [0.0, 1e-7, 1e-6, 1e-5, 5e-5, 9e-5, 2e-4])
def test_rectangles_at_fractions_that_cv2_does_not_divide_by(fraction):
    """cv2's recurrence divides by the fraction along x, which counts as 1e-4 at least."""
    cv2 = installed_opencv()
    cv2.ipp.setUseIPP(False)
    image = np.random.default_rng(0).integers(0, 256, (12, 14), dtype=np.uint8)
    center = (1 + fraction, 1.5)
    for kind in (-1, cv2.CV_32F):
        truth = cv2.getRectSubPix(image, (3, 3), center, patchType=kind)
        out = ours.getRectSubPix(image, (3, 3), center, patchType=kind)
        limit = 0 if kind == -1 else TOLERANCE["order of sums"]
        np.testing.assert_allclose(out, truth, rtol=limit, atol=0)
