"""The kernels that read pairs of neighbours, against the reference."""

from __future__ import annotations

import math
import random

import pytest
import torch

import warpkit as wk
from tests.support.inputs import noise
from tests.support.tolerances import TOLERANCE
from warpkit.engine.backends.cpu.warps import pairs_launch
from warpkit.engine.sampling.rules import BORDERS

FILLED = [border for border in BORDERS if border != "transparent"]


def drawn_points(draw: random.Random, size: tuple[int, int], scale: float, dtype: torch.dtype):
    """A turned, shaken field of points, some of which are nowhere."""
    angle, (h, w) = draw.uniform(0, 7), size
    turn = torch.tensor([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    points = wk.pixel_grid(size).double() @ (scale * turn.double()).T
    points = points + draw.uniform(-20, 60) + noise(h, w, 2, seed=draw.randrange(99))
    odd = torch.tensor([math.nan, math.inf, -(2.0**31), 2.0**31 - 1, 1e20])
    if draw.random() < 0.3:
        points.view(-1)[torch.randint(0, points.numel(), (5,))] = odd.double()
    return points.to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_agrees_over_tiles_of_all_kinds(dtype):
    # whole tiles, those over a border, boxes too large for a window, ends of rows of every length
    draw = random.Random(5)
    for n in range(60):
        border, scale = FILLED[n % len(FILLED)], draw.choice([0.3, 1, 1, 5, 200, 1e4])
        shape = [draw.choice([1, 2, 15, 33, 70, 130]) for _ in range(2)]
        image = noise(draw.choice([1, 2]), draw.choice([1, 3, 4]), *shape, dtype=dtype, seed=n)
        size = draw.choice([1, 20, 33, 70]), draw.choice([1, 9, 16, 32, 47, 100])
        value = draw.choice([0.25, math.nan, math.inf])
        points = drawn_points(draw, size, scale, torch.float32 if n % 2 else torch.float64)
        options = {"border": border, "border_value": value}
        got = wk.remap(image, points, backend="cpu", **options)
        wanted = wk.remap(image, points, backend="reference", **options)
        atol = TOLERANCE[f"cpu {dtype}"]
        torch.testing.assert_close(got, wanted, atol=atol, rtol=atol, equal_nan=True)


@pytest.mark.parametrize("border", FILLED)
def test_affine_and_perspective_agree_over_many_tiles(border):
    image = noise(2, 3, 90, 140, dtype=torch.float32)
    tilt = torch.eye(3, dtype=torch.float64)
    tilt[2, 0] = 2e-3
    for scale in (0.4, 1.1, 3.0):
        turn = wk.rotation_matrix((60.0, 40.0), torch.tensor([20.0, 140.0]).double(), scale)
        for warp, matrix in (
            (wk.warp_affine, turn),
            (wk.warp_perspective, wk.compose(turn, tilt)),
        ):
            got = warp(image, matrix, border=border, border_value=0.5, backend="cpu")
            wanted = warp(image, matrix, border=border, border_value=0.5, backend="reference")
            assert (got - wanted).abs().max() <= TOLERANCE["cpu torch.float32"]


def test_streamed_results_are_the_same(monkeypatch):
    image = noise(1, 3, 70, 300, dtype=torch.float32)
    matrix = wk.rotation_matrix((150.0, 30.0), 10.0)
    for size in ((600, 1024), (600, 1021)):  # a row of the second begins where it may
        kept = wk.warp_affine(image, matrix, size=size)
        monkeypatch.setattr(pairs_launch, "STREAMED", 0)
        streamed = wk.warp_affine(image, matrix, size=size)
        monkeypatch.undo()
        assert torch.equal(kept, streamed)
