"""The rules that choose grids of tiles, at their ties, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from warpkit.attacks.processors import grids, own_order, tiles

TILE = (40, 40)


@pytest.mark.parametrize(
    ("size", "most", "grid"),
    [
        ((40, 40), 9, (1, 1)),  # 1600 pixels: not more than half of 4 tiles, 3200
        ((56, 57), 9, (1, 1)),  # 3192 pixels, and |57 / 56 - 1| for 1, 4 and 9 tiles
        ((57, 57), 9, (2, 2)),  # 3249
        ((80, 80), 9, (2, 2)),  # 6400: not more than half of 9 tiles, 7200
        ((85, 85), 9, (3, 3)),
        ((80, 100), 6, (2, 3)),  # 5 to 4, between 1 to 1 and 3 to 2
        ((60, 75), 6, (2, 2)),  # 4500 pixels: less than half of 6 tiles, 4800
        ((100, 80), 6, (3, 2)),  # 0.8 is nearer to 2 / 3 than to 1: no tie
        ((10, 200), 6, (1, 6)),
        ((200, 10), 6, (6, 1)),
    ],
)
def test_the_nearest_aspect_grows_if_half_of_it_is_filled(
    size: tuple[int, int], most: int, grid: grids.Grid
):
    assert grids.nearest_aspect(*size, TILE, 1, most) == grid


def test_the_canvas_that_shows_most_is_the_first_of_equal_ones():
    assert grids.most_used(40, 40, [[40, 80], [80, 40]]) == (40, 80)
    assert grids.most_used(40, 40, [[80, 40], [40, 80]]) == (80, 40)
    assert grids.most_used(40, 40, [[40, 80], [40, 50]]) == (40, 50)  # least waste
    assert grids.most_used(90, 40, [[40, 80], [80, 40]]) == (80, 40)
    assert grids.inside_canvas(30, 70, (40, 80)) == (35, 80)  # 34.3 is rounded up
    assert grids.inside_canvas(33, 40, (40, 80)) == (40, 49)  # 48.5


def test_llama_takes_the_least_enlargement_and_the_smallest_area():
    options = {"size": {"height": 40}, "max_patches": 6, "resize_to_max_canvas": False}
    assert grids.grid_of_llama4(40, 40, options) == (1, 1)
    assert grids.grid_of_llama4(41, 40, options) == (2, 1)  # scale 1, less than 2 x 2's 80 / 41
    assert grids.grid_of_llama4(300, 300, options) == (2, 2)  # none holds it: the largest, 80 / 300
    assert grids.size_of_llama4(20, 30, options) == (26, 40)  # 26.67 is rounded down
    largest = {**options, "resize_to_max_canvas": True}
    assert grids.grid_of_llama4(20, 20, largest) == (2, 2)  # 4, and the smallest area of it
    assert grids.size_of_llama4(20, 20, largest) == (80, 80)
    mllama = {"size": {"height": 40}, "max_image_tiles": 4}
    assert grids.grid_of_mllama(30, 70, mllama) == (1, 2)
    assert grids.size_of_mllama(30, 70, mllama) == (30, 70)  # a longer side than a tile is kept
    assert grids.size_of_mllama(30, 35, mllama) == (34, 40)  # 30 x 40 / 35 = 34.3
    assert grids.size_of_mllama(1, 1000, mllama) == (1, 160)


def test_single_precision_decides_llama_4s_canvas():
    """A side at the canvas's limit is computed in float32, which moves some by a pixel."""
    options: dict[str, Any] = {"max_patches": 1, "resize_to_max_canvas": True}
    differ = 0
    for side in range(28, 400, 4):
        for height in range(3, 300, 7):
            made = grids.size_of_llama4(height, height, {**options, "size": {"height": side}})
            exact = int(height * (side / height))
            differ += made[1] != exact
            assert made[0] == side
            assert abs(made[1] - side) <= 1
    assert differ > 0


def test_slices_prefer_rows_and_a_number_near_the_area():
    options = {"scale_resolution": 100, "max_slice_nums": 9}
    assert grids.grid_of_slices(100, 100, options) is None
    assert grids.grid_of_slices(150, 150, options) == (2, 2)  # 2.25: 2, 3 or 4
    assert grids.grid_of_slices(130, 130, options) == (2, 1)  # 1.69: 2 or 3; 2 x 1 ties with 1 x 2
    assert grids.grid_of_slices(100, 300, options) == (1, 3)
    assert grids.grid_of_slices(2000, 2000, options) == (3, 3)


def test_ovis_keeps_nine_tenths_and_swaps_its_numbers():
    assert grids.covering(40, 40, 40, 9) == (1, 1)
    assert grids.covering(40, 80, 40, 9) == (2, 1)  # the class's slip: two columns there
    assert grids.covering(80, 80, 40, 9) == (2, 2)


def test_perception_enlarges_least_wasteful_canvas():
    options = {"tile_size": 40, "max_num_tiles": 9}
    assert grids.grid_of_perception(40, 40, {**options, "max_num_tiles": 1}) == (1, 1)
    rows, columns = grids.grid_of_perception(30, 60, options)
    assert columns * 40 >= 60
    assert rows * 40 >= 30
    assert grids.grid_of_perception(30, 2000, options) == (1, 9)
    assert grids.grid_of_perception(2000, 30, options) == (9, 1)


def test_idefics_rounds_the_shorter_side_by_the_aspect_of_tiles():
    assert grids.grid_of_idefics(80, 160, 40) == (2, 4)
    assert grids.grid_of_idefics(82, 160, 40) == (3, 4)
    assert grids.grid_of_idefics(160, 10, 40) == (4, 1)
    options = {
        "do_image_splitting": True,
        "size": {"longest_edge": 160},
        "max_image_size": {"longest_edge": 40},
    }
    assert tiles.idefics_size(80, 160, options) == (80, 160)
    assert tiles.idefics_size(80, 160, {**options, "max_image_tiles": 7}) == (60, 120)


@pytest.mark.parametrize(
    ("size", "spans"),
    [
        ((100, 119), []),  # less than 1.2
        ((100, 120), [(0, 60), (60, 120)]),
        (
            (100, 250),
            [(0, 84), (84, 168), (168, 252)],
        ),  # 2.5 is rounded up to 3; the last is smaller
        ((15, 200), []),  # crops would be smaller than 20
        ((300, 100), [(0, 100), (100, 200), (200, 300)]),
    ],
)
def test_pan_and_scan_crops_the_longer_side(size: tuple[int, int], spans: list[tuple[int, int]]):
    options = {
        "pan_and_scan_min_crop_size": 20,
        "pan_and_scan_max_num_crops": 4,
        "pan_and_scan_min_ratio_to_activate": 1.2,
    }
    assert tiles.pan_and_scan(*size, options) == spans


def test_step_3_windows():
    options = {"size": {"height": 60}, "patch_size": 40, "max_image_size": 150}
    assert own_order.step3_grid(50, 60, options) == (0, 0)  # 1.2: none
    assert own_order.step3_grid(30, 60, options) == (1, 2)  # windows of the shorter side
    assert own_order.step3_grid(100, 100, options) == (3, 3)  # a rest of 20, more than 8
    assert own_order.step3_grid(88, 88, options) == (2, 2)  # a rest of 8: not more
    assert own_order.size_of_step3(10, 100, options) == ((100, 100), (100, 100))
    assert own_order.size_of_step3(150, 300, options) == ((150, 300), (75, 150))
