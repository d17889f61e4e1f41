"""Expectations of OpenCV's tests of pixels: smooth and sharp images, old bugs.

The facts are of its imgproc (imgwarp, imgwarp_strict, resize_*, pyramid) and core; the code is
ours.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import warpkit as wk
import warpkit.opencv as ours
from tests.support.installed_opencv import installed_opencv

cv2 = installed_opencv()
SLACK = {"uint8": 16.0, "uint16": 1024.0, "float32": 0.05 * 255}
"""How far from the picture a pixel may be: its slope times a rounded position."""
FUNCTIONS = ["resize", "warpAffine", "warpPerspective", "remap", "getRectSubPix"]


@pytest.fixture(autouse=True)
def ipp_as_the_wheel_has_it():
    before = cv2.ipp.useIPP()
    cv2.ipp.setUseIPP(True)
    yield
    cv2.ipp.setUseIPP(before)


def smooth(x: Any, y: Any, dtype: str) -> np.ndarray:
    """An image of slow waves, at any positions."""
    waves = np.sin((x + 1) * 0.01) * np.sin((y + 1) * 0.01)
    return (waves + 1) * (1000 if dtype == "uint16" else 127.5)


def case(name: str, random: np.random.Generator, size: tuple[int, int], flag: int) -> Any:
    """A call of `name` for an image of `size` (H, W), and the source positions of its pixels."""
    height, width = size
    w, h = (int(n) for n in random.integers(8, 100, 2))
    x, y = np.meshgrid(np.arange(w, dtype=float), np.arange(h, dtype=float))
    if name == "resize":
        looks = (x + 0.5) * width / w - 0.5, (y + 0.5) * height / h - 0.5
        return (lambda m, image: m.resize(image, (w, h), interpolation=flag)), looks
    if name == "getRectSubPix":
        w, h = min(w, width), min(h, height)
        at = random.random(2) * [width, height]
        looks = (x[:h, :w] + at[0] - (w - 1) / 2, y[:h, :w] + at[1] - (h - 1) / 2)
        return (lambda m, image: m.getRectSubPix(image, (w, h), tuple(at))), looks
    if name == "remap":
        k = random.uniform(-0.03, 0.03, 2)
        away = (x - w / 2) / w, (y - h / 2) / h
        bent = 1 + k[0] * (away[0] ** 2 + away[1] ** 2) + k[1]
        maps = tuple(
            ((d * bent + 0.5) * n).astype(np.float32) for d, n in zip(away, size[::-1], strict=True)
        )
        return (lambda m, image: m.remap(image, *maps, flag)), maps
    center = random.uniform(-0.1, 1.1, 2) * [width, height]
    scale = (h / height + w / width) / 2
    matrix = cv2.getRotationMatrix2D(tuple(center), random.uniform(0, 360), scale)
    matrix = matrix * np.clip(random.normal(1, 0.01, (2, 3)), 0.9, 1.1)
    matrix = matrix.astype(random.choice(["f4", "f8"]))
    if name == "warpPerspective":
        ends = [np.array([[0, 0], [a, 0], [a, b], [0, b]]) for a, b in ((width, height), (w, h))]
        ends = [(e + random.normal(0, 0.05, (4, 2)) * e.max(0)).astype(np.float32) for e in ends]
        matrix = cv2.getPerspectiveTransform(*ends)
    whole = np.eye(3)
    whole[: len(matrix)] = matrix
    look = np.linalg.inv(whole) @ np.stack([x, y, np.ones_like(x)]).reshape(3, -1)
    looks = tuple((look[:2] / look[2]).reshape(2, h, w))
    return (lambda m, image: getattr(m, name)(image, matrix, (w, h), flags=flag)), looks


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name in [*FUNCTIONS, "resize, exact"]
        for dtype in SLACK
        if (name, dtype) != ("getRectSubPix", "uint16")  # cv2 does not accept it
    ],
)
def test_a_smooth_image_is_sampled_at_the_expected_positions(name: str, dtype: str):
    random = np.random.default_rng(len(name))
    shown = 0
    for n in range(20):
        size: Any = tuple(int(s) for s in random.integers(8, 160, 2))
        flag = (5, 6)[n % 2] if name == "resize, exact" else n % 5
        call, (x, y) = case(name.split(",")[0], random, size, flag)
        columns, rows = np.meshgrid(np.arange(size[1]), np.arange(size[0]))
        image = smooth(columns, rows, dtype)
        image = (image if dtype == "float32" else image.round()).astype(dtype)
        out = call(ours, np.dstack([image] * 3))
        inside = (x > 4) & (x < size[1] - 5) & (y > 4) & (y < size[0] - 5)
        apart = np.abs(out[inside] - smooth(x, y, dtype)[inside][:, None])
        assert apart.max(initial=0) <= SLACK[dtype], (n, size, flag)
        shown += inside.sum()
    assert shown > 5000


def sharp(random: np.random.Generator, dtype: str, size: tuple[int, int], colours: int) -> Any:
    """Black and white: squares of 10 pixels, or lines every 10 pixels."""
    rows, columns = np.mgrid[: size[0], : size[1]]
    board = (rows // 10 + columns // 10) % 2
    lines = (rows % 10 > 0) & (columns % 10 > 0)
    image = ((board if random.random() < 0.5 else lines) * 255).astype(dtype)
    return image if colours == 1 else np.dstack([image, image // 2, 255 - image])


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
@pytest.mark.parametrize("name", FUNCTIONS[:4])
def test_a_sharp_image_has_opencvs_pixels(name: str, dtype: str):
    """Random sizes, borders, interpolations and kinds of maps."""
    random = np.random.default_rng(len(name))
    for n in range(40):
        size: Any = tuple(int(s) for s in np.exp(random.uniform(1.5, 5, 2)))
        image = sharp(random, dtype, size, (1, 3)[n % 2])
        flag, border = n % 5, (0, 1, 2, 4)[n // 5 % 4]
        if name != "remap":
            call, _ = case(name, random, size, flag | (16 if n % 3 and name != "resize" else 0))
            found, wanted = (call(m, image) for m in (ours, cv2))
        else:
            w, h = (int(s) for s in random.integers(1, 80, 2))
            pair = random.uniform(0, 1, (h, w, 2)) * [size[1] + 1, size[0] + 1]
            maps: Any = pair.astype(np.float32), None
            if n // 5 % 3 == 1:
                maps = tuple(np.ascontiguousarray(maps[0][..., i]) for i in (0, 1))
            if n // 5 % 3 == 2:
                maps = cv2.convertMaps(*maps, cv2.CV_16SC2, nninterpolation=flag == 0)
            found, wanted = (m.remap(image, *maps, flag, None, border, 77) for m in (ours, cv2))
        np.testing.assert_array_equal(found, wanted, str((n, size, flag, border)))


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_relative_maps_equal_absolute_ones(dtype: str, channels: int, fixed: bool):
    most = 255 if dtype == "uint8" else 65535
    image = np.arange(61 * 127 * channels).clip(0, most).reshape(61, 127, channels).astype(dtype)
    offset = np.full((61, 127), -0.25, np.float32)
    grid = np.meshgrid(np.arange(127, dtype=np.float32), np.arange(61, dtype=np.float32))
    for flag in (0, 1, 2, 4):
        pairs: Any = [tuple(g + offset for g in grid), (offset, offset)]
        if fixed:
            made = ours.convertMaps
            pairs = [made(x, y, ours.CV_16SC2, nninterpolation=flag == 0) for x, y in pairs]
        (x, y), (dx, dy) = pairs
        for border in range(5):
            plain = ours.remap(image, x, y, flag, None, border)
            found = ours.remap(image, dx, dy, flag | ours.WARP_RELATIVE_MAP, None, border)
            assert np.abs(plain.astype(float) - found).max() <= 1, (flag, border)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "size",
    [
        *((64, 96), (128, 48), (64, 48), (32, 24), (4, 3), (43, 48), (43, 32), (64, 32)),
        *((18, 14), (116, 87), (107, 80), (126, 94), (256, 192), (384, 288), (896, 672)),
    ],
)
def test_linear_exact_rounds_once_with_integer_weights(size: tuple[int, int], channels: int):
    """Weights are multiples of 1/256, and sums are multiples of 1/65536."""
    image = np.random.default_rng(channels).integers(0, 256, (96, 128, channels), dtype=np.uint8)
    found = ours.resize(image, size, interpolation=ours.INTER_LINEAR_EXACT)
    axes = []
    for made, given in zip(size[::-1], (96, 128), strict=True):
        places = (np.arange(made) + 0.5) * (1 / (made / given)) - 0.5
        first = np.floor(places).astype(int)
        share = np.rint((places - first) * 256).astype(int)
        weights = np.zeros((made, given), int)
        for k, part in ((0, 256 - share), (1, share)):
            np.add.at(weights, (np.arange(made), (first + k).clip(0, given - 1)), part)
        axes.append(weights)
    wanted = np.einsum("yh,hwc,xw->yxc", axes[0], image.astype(int), axes[1], optimize=True)
    np.testing.assert_array_equal(found.reshape(wanted.shape), (wanted + 2**15) >> 16)


TABLES: Any = {
    "two to one": (np.arange(6)[None], [[1, 3, 5]]),
    "five to one": (np.arange(5)[None], [[2]]),
    "five to three": (np.arange(5)[None], [[0, 2, 4]]),
    "five to two": (np.arange(5)[None], [[1, 3]]),
    "larger": (
        np.arange(15).reshape(3, 5),
        np.array([0, 0, 5, 10, 10])[:, None] + np.array([0, 1, 1, 2, 3, 3, 4]),
    ),
    "twice": (
        np.arange(6).reshape(2, 3),
        np.array([0, 0, 3, 3])[:, None] + np.array([0, 0, 1, 1, 2, 2]),
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_nearest_exact_by_hand(name: str):
    given, wanted = (np.array(table, np.uint8) for table in TABLES[name])
    for image, truth in ((given, wanted), (given.T.copy(), wanted.T)):
        size = truth.shape[::-1]
        out = ours.resize(image, size, interpolation=ours.INTER_NEAREST_EXACT)
        np.testing.assert_array_equal(out, truth)


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        *(((7, 5), (10, 7)), ((58, 40), (80, 55)), ((3, 4), (5, 6))),
        *(((15, 12), (22, 17)), ((11, 9), (80, 60)), ((20, 15), (29, 22))),
    ],
)
def test_two_channels_enlarged_by_odd_factors(before: Any, after: Any, channels: int):
    """Within one level of weights of 1/256; reads of pairs were once not aligned here."""
    image = np.random.default_rng(9).integers(0, 256, (*before[::-1], channels), dtype=np.uint8)
    out = ours.resize(image, after).reshape(*after[::-1], channels)
    exact = ours.resize(image, after, interpolation=ours.INTER_LINEAR_EXACT)
    assert np.abs(out.astype(int) - exact.reshape(out.shape)).max() <= 1


@pytest.mark.parametrize("channels", [2, 3])
def test_channels_are_independent(channels: int):
    image = np.random.default_rng(1).integers(0, 256, (780, 1040, channels), dtype=np.uint8)
    apart = [ours.resize(image[..., c].copy(), (640, 480)) for c in range(channels)]
    np.testing.assert_array_equal(ours.resize(image, (640, 480)), np.dstack(apart))


@pytest.mark.parametrize("channels", range(2, 10))
def test_a_dot_in_each_channel_stays_one_pixel(channels: int):
    dot = np.zeros((12, 12, channels), np.uint8)
    dot[5, 5] = 1
    out = ours.resize(dot, None, fx=0.9, fy=0.9, interpolation=ours.INTER_NEAREST)
    assert out.sum() == channels


NUMBERS = """
 90  94  80   3 231   2 186 245 188 165  10  19 201 169   8 228
 86   5 203 120 136 185  24  94  81 150 163 137  88 105 132 132
236  48 250 218  19  52  54 221 159 112  45  11 152 153 112 134
 78 133 136  83  65  76  82 250   9 235 148  26 236 179 200  50
 99  51 103 142 201  65 176  33  49 226 177 109  46  21  67 130
 54 125 107 154 145  51 199 189 161 142 231 240 139 162 240  22
231  86  79 106  92  47 146 156  36 207  71  33   2 244 221  71
 44 127  71 177  75 126  68 119 200 129 191 251   6 236 247   6
133 175  56 239 147 221 243 154 242  82 106  99  77 158  60 229
  2  42  24 174  27 198  14 204 246 251 141  31 114 163  29 147
121  53  74  31 147 189  42  98 202  17 228 123 209  40  77  49
112 203  30  12 205  25  19 106 145 185 163 201 237 223 247  38
 33 105 243 117  92 179 204 248 160  90  73 126   2  41 213 204
  6 124 195 201 230 187 210 167  48  79 123 159 145 218 105 209
240 152 136 235 235 164 157   9 152  38  27 209 120  77 238 196
240 233  10 241  90  67  12  79   0  43  58  27  83 199 190 182
"""


def test_area_resizes_by_a_factor_of_0_3():
    image = np.array(NUMBERS.split(), np.uint16).reshape(16, 16)
    out = ours.resize(image, None, fx=0.3, fy=0.3, interpolation=ours.INTER_AREA)
    assert out.tolist() == [
        [120, 100, 151, 101, 130],
        [106, 115, 141, 130, 127],
        [91, 136, 170, 114, 140],
        [104, 122, 131, 147, 133],
        [161, 163, 70, 107, 182],
    ]


def test_a_float32_matrix_and_a_border_of_zeros():
    empty = np.zeros((100, 100), np.uint8)
    turn = ours.getRotationMatrix2D((50.0, 50.0), 45.0, 1.0).astype(np.float32)
    assert not ours.warpAffine(empty, turn, (100, 100)).any()
    wide = np.eye(2, 3)
    wide[:, 2] = 64
    ones = np.ones((128, 128), np.int16)
    out = ours.warpAffine(ones, wide, (256, 256), flags=ours.INTER_NEAREST)
    wanted = np.pad(ones, 64)
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_a_transparent_border_keeps_the_last_row_and_column(channels: int):
    x, y = np.meshgrid(*[np.arange(3, dtype=np.float32)] * 2)
    border = ours.BORDER_TRANSPARENT
    image = np.random.default_rng(0).uniform(-1, 1, (3, 3, channels)).astype(np.float32)
    out = ours.remap(image, x, y, ours.INTER_LINEAR, np.zeros_like(image), border)
    np.testing.assert_array_equal(out.reshape(image.shape), image)
    y[2, 2] = 1.5
    image = np.repeat(10 * np.mgrid[:3, :3][0] + np.mgrid[:3, :3][1], channels).astype(np.float32)
    image = image.reshape(3, 3, channels)
    wanted = image.copy()
    wanted[2, 2] = (image[1, 2] + image[2, 2]) / 2
    out = ours.remap(image, x, y, ours.INTER_LINEAR, np.full_like(image, 10), border)
    np.testing.assert_array_equal(out.reshape(image.shape), wanted)


def test_pyramids_of_odd_sizes():
    plain = np.full((100, 100, 3), 255, np.uint16)
    assert ours.pyrUp(plain, None, (201, 201)).min() > 0
    counted = (np.arange(13 * 39) % 10).astype(np.uint16).reshape(13, 13, 3)
    assert ours.pyrUp(counted, None, (25, 25))[-1, 0].tolist() == [6, 6, 1]


TURNS: Any = {
    "2 x 2": ((2, 2), [[3, 1], [4, 2]], [[4, 3], [2, 1]], [[2, 4], [1, 3]]),
    "3 x 3": (
        (3, 3),
        [[7, 4, 1], [8, 5, 2], [9, 6, 3]],
        [[9, 8, 7], [6, 5, 4], [3, 2, 1]],
        [[3, 6, 9], [2, 5, 8], [1, 4, 7]],
    ),
    "4 x 4": (
        (4, 4),
        [[13, 9, 5, 1], [14, 10, 6, 2], [15, 11, 7, 3], [16, 12, 8, 4]],
        [[16, 15, 14, 13], [12, 11, 10, 9], [8, 7, 6, 5], [4, 3, 2, 1]],
        [[4, 8, 12, 16], [3, 7, 11, 15], [2, 6, 10, 14], [1, 5, 9, 13]],
    ),
    "2 x 3": ((2, 3), [[4, 1], [5, 2], [6, 3]], [[6, 5, 4], [3, 2, 1]], [[3, 6], [2, 5], [1, 4]]),
}


@pytest.mark.parametrize("name", TURNS)
def test_rotations_by_multiples_of_90_degrees_by_hand(name: str):
    shape, *wanted = TURNS[name]
    numbers = np.arange(1, shape[0] * shape[1] + 1, dtype=np.int32).reshape(shape)
    for code, truth in enumerate(wanted):
        assert ours.rotate(numbers, code).tolist() == truth


def test_a_reflected_border_mirrors_pixels_next_to_the_edge():
    image = np.random.default_rng(0).integers(10, 100, (4, 4), dtype=np.uint8)
    out = ours.copyMakeBorder(image, 1, 1, 1, 1, ours.BORDER_REFLECT_101)
    np.testing.assert_array_equal(out[[0, 5], 1:5], image[[1, 2]])
    np.testing.assert_array_equal(out[1:5, [0, 5]], image[:, [1, 2]])


def test_positions_two_billion_pixels_away_wrap():
    image = torch.arange(269.0)[None, None].double()
    for x in (-(2**31) + 65, *range(-807, 807, 7)):
        for name in ("nearest", "bilinear"):
            points = torch.tensor([[[float(x), 0.0]]], dtype=torch.float64)
            out = wk.remap(image, points, interpolation=name, border="wrap")
            assert out.item() == x % 269


@pytest.mark.parametrize("name", ["hconcat", "vconcat", "rotate"])
def test_empty_images_are_rejected(name: str):
    """OpenCV's test skips them."""
    some, none = np.ones((5, 10), np.uint8), np.ones((5, 0), np.uint8)
    if name == "vconcat":
        some, none = some.T.copy(), none.T.copy()
    calls = [(none, 0)] if name == "rotate" else [([some, none],), ([none, some],), ([none],)]
    for call in calls:
        with pytest.raises(ValueError, match=rf"{name}: `src.*` must be of shape \(H, W\)"):
            getattr(ours, name)(*call)
