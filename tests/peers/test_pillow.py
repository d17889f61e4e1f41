"""Expectations of Pillow's tests of resize, for `arithmetic="pillow"`.

The facts are of its test_image_resample, test_image_resize and test_image_transform; the code is
ours. Numbers that Pillow reads from a table are written out here.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch

import warpkit as wk
from tests.support import ROOT

Filter = str
FILTERS = ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")
QUARTERS: dict[str, tuple[int, int, Filter, str]] = {
    "reduce box": (8, 4, "box", "e1 e1 / e1 e1"),
    "reduce bilinear": (8, 4, "bilinear", "e1 c9 / c9 b7"),
    "reduce hamming": (8, 4, "hamming", "e1 da / da d3"),
    "reduce bicubic": (12, 6, "bicubic", "e1 e3 d4 / e3 e5 d6 / d4 d6 c9"),
    "reduce lanczos": (16, 8, "lanczos", "e1 e0 e4 d7 / e0 df e3 d6 / e4 e3 e7 da / d7 d6 d9 ce"),
    "enlarge box": (2, 4, "box", "e1 e1 / e1 e1"),
    "enlarge bilinear": (2, 4, "bilinear", "e1 b0 / b0 98"),
    "enlarge hamming": (2, 4, "hamming", "e1 d2 / d2 c5"),
    "enlarge bicubic": (4, 8, "bicubic", "e1 e5 ee b9 / e5 e9 f3 bc / ee f3 fd c1 / b9 bc c1 a2"),
    "enlarge lanczos": (
        6,
        12,
        "lanczos",
        (
            "e1 e0 db ed f5 b8 / e0 df da ec f3 b7 / db db d6 e7 ee b5 / "
            "ed ec e6 fb ff bf / f5 f4 ee ff ff c4 / b8 b7 b4 bf c4 a0"
        ),
    ),
}
"""From, to, filter, and the upper left quarter of the result, of a board of 2 x 2 squares.

The lower right quarter is its mirror image; the two others are 255 less it.
"""


def pillow(image: Any, size: tuple[int, int], filter: Filter = "bicubic", box: Any = None) -> Any:
    """The resize under test, of a tensor or an array (C, H, W)."""
    options: dict[str, Any] = {"interpolation": filter, "box": box, "arithmetic": "pillow"}
    return wk.resize(torch.as_tensor(image), size, **options)


def noise(height: int = 128, width: int = 128, channels: int = 3) -> torch.Tensor:
    """An image of bytes, smooth enough that a crop and a box give similar results."""
    coarse = np.random.default_rng(0).uniform(0, 255, (channels, 9, 9))
    smooth = wk.resize(torch.from_numpy(coarse), (height, width), interpolation="bicubic")
    return smooth.clamp(0, 255).round().to(torch.uint8)


def photograph() -> torch.Tensor:
    """(3, 256, 384), bytes."""
    with PIL.Image.open(ROOT / "data" / "images" / "coffee.png") as file:
        return torch.from_numpy(np.array(file.convert("RGB"))).movedim(-1, 0)


def mean_difference(one: torch.Tensor, other: torch.Tensor) -> float:
    """Pillow's measure of similarity: the mean absolute difference, summed over the channels."""
    apart = (one.double() - other.double()).abs()
    return float(apart.mean((-1, -2)).sum())


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("name", QUARTERS)
def test_filters_on_a_board_of_four_squares(name: str, channels: int):
    before, after, filter, text = QUARTERS[name]
    board = np.full((before, before), 255 - 0xE1, np.uint8)
    half = before // 2
    board[:half, :half] = board[half:, half:] = 0xE1
    quarter = np.array([[int(n, 16) for n in row.split()] for row in text.split("/")])
    wanted = np.block(
        [[quarter, 255 - quarter[:, ::-1]], [255 - quarter[::-1], quarter[::-1, ::-1]]]
    )
    found = pillow(np.stack([board] * channels), (after, after), filter).numpy()
    for channel in found:
        np.testing.assert_array_equal(channel, wanted)


def test_a_box_filter_makes_no_new_colour():
    colour = torch.tensor([0x16, 0x88, 0xFF], dtype=torch.uint8)[:, None, None]
    found = pillow(colour.expand(3, 8, 8), (100, 100), "box")
    assert torch.equal(found, colour.expand(3, 100, 100))


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (torch.uint8, 0),
        (torch.uint8, 12),
        (torch.uint8, 64),
        (torch.uint8, 255),
        (torch.float32, 1.0),
        (torch.float32, 3.40282306074e38),
        (torch.float32, 1.175494e-38),
        (torch.float32, 1.192093e-07),
    ],
)
def test_a_uniform_colour_is_kept(dtype: torch.dtype, value: float):
    image = torch.full((1, 9, 512), value, dtype=dtype)
    assert torch.equal(pillow(image, (512, 9), "lanczos"), image[:, :1, :1].expand(1, 512, 9))


@pytest.mark.parametrize("size", range(400000, 400010, 2))
def test_coefficients_of_a_long_row(size: int):
    row = torch.zeros(1, 1, size, dtype=torch.uint8)
    row[..., : size // 2] = 254
    assert pillow(row, (1, 5))[0, 0, 2] == 127


def test_no_coefficient_is_rounded_to_zero():
    colours = torch.tensor([0x20, 0x40, 0x60, 0xFF], dtype=torch.uint8)[:, None, None]
    found = pillow(colours.expand(4, 1280, 1280), (256, 256))
    assert torch.equal(found, colours.expand(4, 256, 256))


@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize(
    "box", [(-20, 20, 100, 100), (20, -20, 100, 100), (0, 0, 129, 128), (0, 0, 128, 129)]
)
def test_boxes_outside_the_image_are_refused(filter: Filter, box: Any):
    with pytest.raises(ValueError, match="box"):
        pillow(noise(), (32, 32), filter, box)


@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize(
    "box", [(20.1, 20, 20, 100), (20, 20.1, 100, 20), (20.1, 20.1, 20, 20), (128, 128)]
)
def test_invalid_boxes_are_rejected(filter: Filter, box: Any):
    with pytest.raises((ValueError, TypeError), match="box"):
        pillow(noise(), (32, 32), filter, box)


@pytest.mark.parametrize("size", [(-100, 100), (100, -100)])
def test_sizes_below_zero_are_refused(size: tuple[int, int]):
    with pytest.raises(ValueError, match="size"):
        pillow(noise(), size)


@pytest.mark.parametrize("tiles", [(1, 1), (3, 3), (9, 7), (30, 40)])
def test_tiles_by_boxes_make_the_whole_image(tiles: tuple[int, int]):
    image = photograph()
    size = (134, 201)
    scale_y, scale_x = (n / m for n, m in zip(image.shape[-2:], size, strict=True))
    rows, columns = (
        [round(length / count * i) for i in range(count + 1)]
        for length, count in zip(size, tiles, strict=True)
    )
    whole = pillow(image, size)
    tiled = torch.empty_like(whole)
    for y0, y1 in itertools.pairwise(rows):
        for x0, x1 in itertools.pairwise(columns):
            box = (x0 * scale_x, y0 * scale_y, x1 * scale_x, y1 * scale_y)
            tiled[:, y0:y1, x0:x1] = pillow(image, (y1 - y0, x1 - x0), box=box)
    assert mean_difference(whole, tiled) < 0.01


def test_a_box_between_pixels_after_supersampling():
    image = photograph()
    wanted = pillow(image[:, :249, :377], (25, 38))
    small = pillow(image, (32, 48), "box")
    with_box = pillow(small, (25, 38), box=(0, 0, 377 / 8, 249 / 8))
    without = pillow(small, (25, 38))
    assert 4 * mean_difference(wanted, with_box) < mean_difference(wanted, without)


@pytest.mark.parametrize("filter", ["nearest", "bilinear"])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.uint16, torch.float32])
def test_a_box_is_nearly_a_crop(filter: Filter, dtype: torch.dtype):
    image = noise().to(dtype)
    found = pillow(image, (32, 32), filter, (20, 20, 108, 108))
    assert mean_difference(found, pillow(image[:, 20:108, 20:108], (32, 32), filter)) < 0.4


@pytest.mark.parametrize(
    "box", [(0, 0, 40, 50), (0, 10, 40, 60), (10, 0, 50, 50), (10, 20, 50, 70)]
)
def test_a_box_of_the_wanted_size_is_a_crop(box: tuple[int, int, int, int]):
    x1, y1, x2, y2 = box
    image = noise()
    assert torch.equal(pillow(image, (50, 40), "lanczos", box), image[:, y1:y2, x1:x2])


@pytest.mark.parametrize("start", [(0.4, 0.4), (0.4, 10.4), (10.4, 0.4), (10.4, 20.4)])
def test_a_box_between_pixels_is_not_a_crop(start: tuple[float, float]):
    image = torch.randint(0, 256, (3, 128, 128), generator=torch.Generator().manual_seed(0))
    image = image.to(torch.uint8)
    x, y = start
    found = pillow(image, (50, 40), "lanczos", (x, y, x + 40, y + 50))
    crop = image[:, int(y) : int(y) + 50, int(x) : int(x) + 40]
    assert mean_difference(found, crop) > 20


@pytest.mark.parametrize("filter", ["nearest", "bicubic"])
@pytest.mark.parametrize("upright", [False, True])
@pytest.mark.parametrize(
    "box", [(0, 0, 40, 90), (0, 20, 40, 90), (10, 0, 50, 90), (10, 20, 50, 90)]
)
def test_resizes_that_keep_one_side(filter: Filter, upright: bool, box: tuple[int, int, int, int]):
    x1, y1, x2, y2 = box
    image, size = noise(), (50, 40)
    if upright:
        box, (x1, y1, x2, y2), size = (y1, x1, y2, x2), (y1, x1, y2, x2), (40, 50)
    found = pillow(image, size, filter, box)
    assert mean_difference(found, pillow(image[:, y1:y2, x1:x2], size, filter)) < 0.4


@pytest.mark.parametrize("offset", [0, 50])
def test_16_bits_are_clamped_where_lanczos_overshoots(offset: int):
    edge = torch.zeros(1, 10, 100, dtype=torch.float32)
    edge[..., offset : offset + 50] = 65535
    floats = pillow(edge, (10, 20), "lanczos")
    assert floats.min() < 0 or floats.max() > 65535
    found = pillow(edge.to(torch.uint16), (10, 20), "lanczos")
    assert torch.equal(found.int(), floats.round().clamp(0, 65535).int())


@pytest.mark.parametrize("filter", FILTERS)
def test_channels_are_independent(filter: Filter):
    generator = torch.Generator().manual_seed(1)
    image = torch.randint(0, 256, (4, 2, 2), generator=generator).to(torch.uint8)
    together = pillow(image, (4, 4), filter)
    for channel, alone in zip(image, together, strict=True):
        assert torch.equal(pillow(channel[None], (4, 4), filter)[0], alone)


@pytest.mark.parametrize("filter", FILTERS)
def test_an_empty_image_is_refused(filter: Filter):
    """A deliberate difference: Pillow returns black, but there are no pixels to read."""
    with pytest.raises(ValueError, match="image"):
        pillow(torch.zeros(3, 0, 0, dtype=torch.uint8), (195, 212), filter)


def test_an_unknown_filter_is_named():
    with pytest.raises(ValueError, match="interpolation"):
        pillow(noise(), (10, 10), "cubic spline")


def test_modifying_a_result_does_not_change_the_image():
    image = noise()
    copy = image.clone()
    pillow(image, (128, 128)).zero_()
    assert torch.equal(image, copy)
