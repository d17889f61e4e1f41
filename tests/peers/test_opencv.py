"""Expectations of OpenCV's tests of these functions: sizes, types, known faults, memory.

The facts are of its imgproc (imgwarp), geometry (undistort, fisheye) and core; the code is ours.
Images and numbers by hand are in `test_opencv_images`, points and matrices in
`test_opencv_points`. Alignment by correlation is in `tests/opencv/test_alignment.py`; OpenCV tests
it with its own images.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpkit.opencv as ours
from tests.support.installed_opencv import installed_opencv
from tests.support.tolerances import TOLERANCE

cv2 = installed_opencv()
RANDOM = np.random.default_rng(0)
COLOUR = RANDOM.integers(0, 256, (24, 30, 3), dtype=np.uint8)
MATRIX = np.array([[0.9, 0.2, 1.3], [-0.2, 1.1, 0.4]])
TURN = np.array([[20.0, 0, 15], [0, 20, 12], [0, 0, 1]], float)
installed_is_5 = cv2.__version__.startswith("5.")


@pytest.fixture
def random() -> np.random.Generator:
    """A generator that draws the same in every test, whichever tests run before it."""
    return np.random.default_rng(1)


def test_means_of_four_pixels_are_rounded_up():
    rows = np.arange(32 * 32).reshape(32, 32)
    image = (rows % 2 + 253 + rows // 512).astype(np.uint8)
    half = ours.resize(image, None, fx=0.5, fy=0.5, interpolation=ours.INTER_AREA)
    np.testing.assert_array_equal(half, (254 + np.arange(256) // 128).reshape(16, 16))
    quarter = ours.resize(image, None, fx=0.25, fy=0.25, interpolation=ours.INTER_AREA)
    assert (quarter == 254).all()


@pytest.mark.parametrize(
    ("dtype", "channels"),
    [
        *((np.uint8, 1), (np.uint8, 4), (np.uint16, 1), (np.uint16, 4), (np.int16, 1)),
        *((np.int16, 3), (np.int16, 4), (np.float32, 1), (np.float32, 4)),
    ],
)
def test_area_resizes_to_half_the_size(dtype, channels, random):
    low, high = (0, 1000) if np.dtype(dtype).kind == "u" else (-1000, 1000)
    image = random.uniform(low, min(high, 256 if dtype == np.uint8 else high), (34, 26, channels))
    image = image.astype(dtype)
    wide: Any = image.astype(np.float64 if dtype == np.float32 else np.int64)
    total = wide[::2, ::2] + wide[1::2, ::2] + wide[::2, 1::2] + wide[1::2, 1::2]
    wanted = total / 4 if dtype == np.float32 else (total + 2) >> 2
    out = ours.resize(image, (13, 17), interpolation=ours.INTER_AREA).reshape(wanted.shape)
    most = 1000 * TOLERANCE["order of sums"] if dtype == np.float32 else 0
    assert np.abs(out - wanted).max() <= most


def test_resizes_that_failed_in_old_versions(random):
    plain = np.full((17, 11, 3), 128, np.uint8)
    assert (ours.resize(plain, (11, 153), interpolation=ours.INTER_LANCZOS4) == 128).all()
    dot = np.zeros((12, 12, 5), np.uint8)
    dot[5, 5] = 1
    assert ours.resize(dot, (11, 11), interpolation=ours.INTER_NEAREST).sum() == 5
    deep = random.integers(0, 256, (16, 16)).astype(np.uint16)
    options: dict[str, Any] = {"fx": 0.3, "fy": 0.3, "interpolation": cv2.INTER_AREA}
    np.testing.assert_array_equal(
        ours.resize(deep, None, **options), cv2.resize(deep, None, **options)
    )


def test_black_stays_black_in_any_number_of_channels():
    for n, channels in enumerate((1, 2, 4, 5, 9, 14)):
        image = np.zeros((3 + 7 * n, 5 + n, channels), np.uint8)
        turn = ours.getRotationMatrix2D((0, 0), 1.0, 1.0)
        square = np.concatenate((turn, [[0, 0, 1]]))
        size = (image.shape[1], image.shape[0])
        for inter in (0, 1, 2, 3, 4):
            border = (n + inter) % 5
            assert not ours.warpAffine(image, turn, size, None, inter, border).any(), inter
            assert not ours.warpPerspective(image, square, size, None, inter, border).any(), inter


def test_a_strip_rotated_by_45_degrees_reads_no_memory_beside_it(random):
    strip = random.integers(0, 256, (8, 8192, 4), dtype=np.uint8)
    matrix = ours.getRotationMatrix2D((4096.0, 4.0), 45.0, 1.0)
    options = (8192, 8), None, 1, 0, (0, 0, 0, 255)
    out = ours.warpAffine(strip, matrix, *options)
    np.testing.assert_array_equal(out, cv2.warpAffine(strip, matrix, *options))
    assert (out[0, 0] == (0, 0, 0, 255)).all()


MAP = np.stack(np.meshgrid(np.arange(24), np.arange(24)), -1).astype(np.float32) * 0.9 + 0.7
IN_PLACE = {
    "flip": lambda m, a: m.flip(a, -1, a),
    "transpose": lambda m, a: m.transpose(a, a),
    "rotate": lambda m, a: m.rotate(a, 0, a),
    "warpAffine": lambda m, a: m.warpAffine(a, MATRIX, (24, 24), a),
    "warpPerspective": lambda m, a: m.warpPerspective(
        a, np.vstack((MATRIX, [0, 0, 1])), (24, 24), a
    ),
    "remap": lambda m, a: m.remap(a, MAP, None, 1, a),
    "resize": lambda m, a: m.resize(a, (24, 24), a),
    "transform": lambda m, a: m.transform(a, np.eye(3) * 0.5, a),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_a_source_that_is_also_the_destination(name):
    found = []
    for module in (ours, cv2):
        image = COLOUR[:, :24].copy()
        result = IN_PLACE[name](module, image)
        found.append((np.array(result), image))
        assert np.array_equal(*found[-1])
    np.testing.assert_array_equal(found[0], found[1])


IN_PART = {
    "warpAffine": lambda m, s, d: m.warpAffine(s, MATRIX, (10, 9), d),
    "flip": lambda m, s, d: m.flip(s[:9, :10], 1, d),
    "resize": lambda m, s, d: m.resize(s, (10, 9), d),
    "copyMakeBorder": lambda m, s, d: m.copyMakeBorder(s[:7, :8], 1, 1, 1, 1, 4, d),
    "getRectSubPix": lambda m, s, d: m.getRectSubPix(s, (10, 9), (7.3, 30.1), d),
}


@pytest.mark.parametrize("name", IN_PART)
@pytest.mark.parametrize("turned", [False, True])
def test_slices_as_source_and_destination(name, turned):
    """From a slice of one array into a slice of another, whose other elements stay unchanged."""
    source = COLOUR[::-1, ::-2] if turned else COLOUR[2:, 3:]
    wanted = IN_PART[name](cv2, np.ascontiguousarray(source), None)
    around = np.full((20, 22, 3), 7, np.uint8)
    part = around[4:13, 15:5:-1] if turned else around[4:13, 5:15]  # cv2 accepts no reversed dst
    out = IN_PART[name](ours, source, part)
    np.testing.assert_array_equal(out, wanted)
    np.testing.assert_array_equal(part, wanted)
    part[:] = 7
    assert (around == 7).all()


@pytest.mark.parametrize("center", [(7.25, 9.5), (-40.25, 90.5), (29.0, 23.0)], ids=str)
def test_rectangles_of_all_types_and_places(center):
    for kind in (-1, cv2.CV_32F):
        truth = cv2.getRectSubPix(COLOUR, (5, 4), center, None, kind)
        out = ours.getRectSubPix(COLOUR, (5, 4), center, None, kind)
        assert out.dtype == truth.dtype
        np.testing.assert_array_equal(out, truth)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("kind", ["CV_32FC1", "CV_32FC2", "CV_16SC2"])
def test_maps_of_every_pair_of_types_agree_within_a_pixel(kind, whole):
    """If whole pixels are requested from a fixed-point map, its 1/32 fractions do not count."""
    random = np.random.default_rng(2)
    xy = (random.random((21, 21, 2)) * 21).astype(np.float32)
    pixels, parts = cv2.convertMaps(xy, None, cv2.CV_16SC2)
    number = getattr(cv2, kind)
    for pair in (
        (xy, None),
        (xy[..., 0].copy(), xy[..., 1].copy()),
        (pixels, parts),
        (pixels, parts.view(np.int16)),
        *([(pixels, None)] if whole else []),
    ):
        first, second = ours.convertMaps(*pair, number, nninterpolation=whole)
        places = np.stack((first, second), -1) if kind == "CV_32FC1" else first.astype(float)
        if kind == "CV_16SC2" and not whole:
            places = places + np.stack((second & 31, second >> 5), -1) / 32
        assert np.abs(places - xy).max() <= 1
        is_fixed, is_signed = pair[0] is pixels, pair[1] is not None and pair[1].dtype == np.int16
        # cv2 crashes for two planes of whole pixels, and misreads an int16 table that it keeps
        told = kind != ("CV_32FC1" if whole else "CV_16SC2" if is_signed else "")
        if told and (is_fixed or kind == "CV_16SC2"):
            for a, b in zip(
                (first, second), cv2.convertMaps(*pair, number, None, None, whole), strict=True
            ):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("log", [0, ours.WARP_POLAR_LOG])
def test_polar_images_survive_five_round_trips(log):
    side = 33
    image = np.zeros((side, side, 3), np.uint8)
    image[..., 0] = 255
    image[11:22, 11:22] = 255
    image = cv2.blur(cv2.blur(image, (5, 5)), (5, 5))
    shown = image
    place = (side, side), (16.0, 16.0), side * 0.5
    flags = ours.WARP_FILL_OUTLIERS | ours.INTER_LINEAR | log
    for _ in range(5):
        back = ours.warpPolar(shown, *place, flags | ours.WARP_INVERSE_MAP)
        shown = ours.warpPolar(back, *place, flags)
        assert cv2.PSNR(image[:, :-2].copy(), shown[:, :-2].copy()) >= 25


def test_points_of_a_tilted_sensor_are_undistorted():
    camera = np.array([[6200, 0, 257.5], [0, 6200, 256], [0, 0, 1]], float)
    lens = np.zeros(14)
    lens[12] = 0.09
    grid, _ = ours.initUndistortRectifyMap(camera, lens, None, camera, (515, 512), ours.CV_32FC2)
    y, x = np.mgrid[:512:64, :515:64]
    found = ours.undistortPoints(grid[y, x].reshape(-1, 1, 2), camera, lens, None, None, camera)
    wanted = np.stack((x, y), -1).reshape(-1, 1, 2)
    # near 512, a float32 map is off by 3e-5
    assert np.abs(found - wanted).max() < 1e-4


@pytest.mark.skipif(not installed_is_5, reason="OpenCV 4's undistortPoints has no criteria")
@pytest.mark.parametrize("seed", range(4))
def test_points_whose_iteration_overshoots(seed):
    """If an error is requested, OpenCV 5 halves steps that diverge; otherwise they continue."""
    random = np.random.default_rng(seed)
    camera = np.array([[437.8995, 0, 342.9241], [0, 438.8216, 273.7163], [0, 0, 1]], float)
    known = np.array([-0.34329, 0.11431, 0, 0, -0.017375], float)
    wild = random.uniform(-0.4, 0.4, (4, 5, 8, 12)[seed])
    corners = np.array([[[720.0, 60.0]], [[0.0, 0.0]]])
    points = np.concatenate((corners, random.uniform(-100, 800, (20, 1, 2))))
    for lens in (known, wild):
        for criteria in ((3, 100, 1e-6), (3, 5, 1e-3), (1, 20, 0.0)):
            call = points, camera, lens, None, None, camera, criteria
            out, truth = ours.undistortPoints(*call), cv2.undistortPoints(*call)
            most = TOLERANCE["cv2 points float64"]  # NaN where the steps diverged
            np.testing.assert_allclose(out, truth, rtol=most, atol=most)


def test_far_and_central_points_of_fisheyes(random):
    camera = np.array([[558.478, 0, 620.4585], [0, 560.5068, 381.9394], [0, 0, 1]], float)
    lens = np.array([-0.0014613, -0.0032986, 0.0060576, -0.0037421], float)
    seen = np.array([[[620.4585, 381.9394]], [[0, 0]], [[1279, 799]], [[-3000, 5000]]], float)
    np.testing.assert_allclose(
        ours.fisheye.undistortPoints(seen, camera, lens),
        cv2.fisheye.undistortPoints(seen, camera, lens),
        rtol=TOLERANCE["pixels float64"],
    )
    rays = np.array([[[0, 0]], [[1e-9, 0]], [[1e3, -1e4]], [[1, 2]]], float)
    np.testing.assert_allclose(
        ours.fisheye.distortPoints(rays, camera, lens, alpha=0.3),
        cv2.fisheye.distortPoints(rays, camera, lens, alpha=0.3),
        rtol=TOLERANCE["pixels float64"],
    )
    inside = random.uniform(100, 700, (30, 1, 2))
    ideal = ours.fisheye.undistortPoints(inside, camera, lens, criteria=(1, 30, 0.0))
    again = ours.fisheye.distortPoints(ideal, camera, lens)
    np.testing.assert_allclose(again, inside, atol=TOLERANCE["solved pixels"])


def test_points_at_infinity_show_the_border_or_the_origin():
    matrix = np.array([[1, 0, 0], [0, 1, 0], [1, 0, -1]], float)
    points = np.array([[[1, 1], [2, 3]]], float)
    out = ours.perspectiveTransform(points, matrix)
    np.testing.assert_array_equal(out, cv2.perspectiveTransform(points, matrix))
    assert (out[0, 0] == 0).all()
    line = np.array([[8, 9], [40, 41], [47, 48]], np.float32)
    there = np.array([[7.37465, 11.8295], [15.0113, 12.8994], [38.9943, 9.56297]], np.float32)
    assert not ours.getAffineTransform(line, there).any()
    for size in ((9, 7), (1, 1)):
        for zero in (np.zeros((2, 3)), np.zeros((3, 3))):
            name = "warpAffine" if len(zero) == 2 else "warpPerspective"
            out, truth = (getattr(m, name)(COLOUR, zero, size) for m in (ours, cv2))
            np.testing.assert_array_equal(out, truth)
