"""The integer rectangles of objects, compared with loops over rectangles."""

from __future__ import annotations

import pytest
import torch

from tests.support.tolerances import TOLERANCE
from warpkit.engine.definitions.objects.canvases import Canvas, canvas_of
from warpkit.engine.definitions.objects.over import by_layer, over
from warpkit.engine.definitions.objects.rectangles import (
    Rectangles,
    levels,
    pixels_of,
    rectangles,
    topmost,
)

SHAPE = (3, 50, 60)
CANVAS = canvas_of(torch.empty(3, 1, 50, 60))
SIZES = [(50, 60), (7, 41), (90, 3)]
LIST = canvas_of(tuple(torch.empty(1, *size) for size in SIZES))


def scattered(count: int, widest: float, touched: bool, canvas: Canvas = CANVAS) -> Rectangles:
    """Fractional boxes within and beyond the images."""
    generator = torch.Generator().manual_seed(count)
    low = torch.rand(count, 2, generator=generator) * 90 - 15
    side = torch.rand(count, 2, generator=generator) * widest
    index = torch.randint(0, 3, (count,), generator=generator)
    return rectangles(torch.cat((low, low + side), 1), index, canvas, touched)


def rows(boxes: Rectangles) -> list[tuple[int, ...]]:
    return list(zip(*(side.tolist() for side in boxes), strict=True))


def meet(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return a[0] == b[0] and a[1] < b[3] and b[1] < a[3] and a[2] < b[4] and b[2] < a[4]


@pytest.mark.parametrize("touched", [False, True])
@pytest.mark.parametrize(("count", "widest"), [(0, 9), (1, 9), (150, 60), (600, 12)])
def test_the_topmost_object_and_the_list_of_pixels_match_a_loop(count, widest, touched):
    boxes = scattered(count, widest, touched)
    expected = torch.full(SHAPE, -1)
    pairs = set()
    for i, (b, left, top, right, bottom) in enumerate(rows(boxes)):
        expected[b, top:bottom, left:right] = i
        pairs |= {(i, b, y, x) for y in range(top, bottom) for x in range(left, right)}
    assert torch.equal(topmost(boxes, CANVAS).view(SHAPE).long(), expected)
    pixels = pixels_of(boxes, CANVAS)
    b, y, x = torch.unravel_index(pixels.place, SHAPE)
    assert set(zip(*(t.tolist() for t in (pixels.object, b, y, x)), strict=True)) == pairs
    assert len(pixels.x) == len(pairs)
    assert torch.equal(pixels.x + boxes.left[pixels.object], x)
    assert torch.equal(pixels.y + boxes.top[pixels.object], y)


@pytest.mark.parametrize("count", [0, 1, 150])
def test_rectangles_on_images_of_different_sizes_match_a_loop(count):
    boxes = scattered(count, 40, False, LIST)
    expected = [torch.full(size, -1) for size in SIZES]
    lengths = []
    for i, (b, left, top, right, bottom) in enumerate(rows(boxes)):
        assert right <= SIZES[b][1]
        assert bottom <= SIZES[b][0]
        expected[b][top:bottom, left:right] = i
        lengths.append((right - left) * (bottom - top))
    found = topmost(boxes, LIST).long()
    assert torch.equal(found, torch.cat([each.flatten() for each in expected]))
    pixels = pixels_of(boxes, LIST)
    assert pixels.object.bincount(minlength=count).tolist() == lengths
    begin, _, width = LIST.at(boxes.image[pixels.object])
    row, column = (pixels.place - begin) // width, (pixels.place - begin) % width
    assert torch.equal(pixels.x + boxes.left[pixels.object], column)
    assert torch.equal(pixels.y + boxes.top[pixels.object], row)


@pytest.mark.parametrize("count", [0, 1, 40, 150])
def test_levels_are_the_longest_chains_of_overlap(count):
    boxes = scattered(count, 30, False)
    places, expected = rows(boxes), []
    for j, own in enumerate(places):
        below = [expected[i] for i in range(j) if meet(places[i], own)]
        expected.append(1 + max(below, default=-1))
    assert levels(boxes).tolist() == expected


def test_levels_are_the_same_when_computed_in_chunks(monkeypatch):
    boxes = scattered(90, 40, False)
    whole = levels(boxes)
    monkeypatch.setattr("warpkit.engine.definitions.objects.rectangles.PAIRS", 200)
    assert torch.equal(levels(boxes), whole)


def test_layers_compose_in_order():
    boxes = scattered(60, 40, False)
    pixels, sizes, place = by_layer(pixels_of(boxes, CANVAS))
    generator = torch.Generator().manual_seed(1)
    shade, cover = torch.rand(2, 60, generator=generator, dtype=torch.float64)
    below = torch.rand(1, 9000, generator=generator, dtype=torch.float64)
    colour = (shade * cover)[pixels.object][None]
    ours = below.index_copy(1, place, over(below[:, place], colour, cover[pixels.object], sizes))
    expected = below.reshape(SHAPE).clone()
    for i, (b, left, top, right, bottom) in enumerate(rows(boxes)):
        part = expected[b, top:bottom, left:right]
        part += cover[i] * (shade[i] - part)
    tolerance = TOLERANCE["objects against the loop"]
    torch.testing.assert_close(ours.reshape(SHAPE), expected, atol=tolerance, rtol=0)
    assert sum(sizes) == len(pixels.x)


def test_no_number_makes_a_rectangle_leave_its_image():
    """Accelerators, where values are not checked, rely on it."""
    wild = torch.tensor(
        [
            [torch.nan, 0, 5, 5],
            [-torch.inf, -torch.inf, torch.inf, torch.inf],
            [5, 5, 2, 2],
            [1e30, 1e30, 2e30, 2e30],
            [0, 0, 5, 5],
            [0, 0, 5, 5],
        ]
    )
    boxes = rectangles(wild, torch.tensor([0, 0, 0, 0, 3, -(2**40)]), CANVAS, False)
    whole = (0, 0, 0, 60, 50)
    found = rows(boxes)
    assert found[1] == whole
    for b, left, top, right, bottom in found:
        assert 0 <= b < 3
        assert 0 <= left <= right <= 60
        assert 0 <= top <= bottom <= 50
    assert boxes.width.mul(boxes.height).count_nonzero() == 1
