"""Flows in other conventions: one warning at the caller's line, and no false ones."""

from __future__ import annotations

import warnings

import pytest
import torch
import torch.nn.functional as F

import warpkit as wk
from tests.support.inputs import noise
from warpkit import flow
from warpkit.attacks import optimize_patch

IMAGE, EYE = torch.zeros(1, 3, 32, 48), torch.eye(2, 3)[None]
GRID = F.affine_grid(EYE, [1, 1, 32, 48], align_corners=False)
POINTS = wk.pixel_grid((32, 48))
STILL = torch.zeros(32, 48, 2)
SHARES = torch.tensor([[0.0, 0], [1, 0], [0, 1], [1, 1], [0.4, 0.5]])
BOX = (0.1, 0.2, 0.5, 1.0)

RUNS = "` runs from -1 to 1 over 32 x 48 pixels, as a grid of F.grid_sample does"
IS_POINTS = "` runs over the pixels from first to last, as a field of points does, and leads off"
PIXELS = "all `points` lie within [-1, 1], the first pixel of an image of (32, 48): they are (x, y)"
PAIRS = "all points of `source` and `target` lie within "

TAKE_A_FLOW = {
    "warp_flow: `flow": lambda field: wk.warp_flow(IMAGE, field),
    "splat: `flow": lambda field: flow.splat(IMAGE, field),
    "to_points: `flow": flow.to_points,
    "compose: `first": lambda field: flow.compose(field, field),
    "compose: `second": lambda field: flow.compose(STILL, field),
    "integrate: `velocity": flow.integrate,
    "jacobian_determinant: `flow": flow.jacobian_determinant,
    "invert: `flow": flow.invert,
    "transform_points: `flow": lambda field: flow.transform_points([3.0, 4.0], field),
    "paste_patches: `flow": lambda field: wk.paste_patches(
        IMAGE, IMAGE, EYE, None, flow=field.reshape(32, 48, 2)
    ),
    "optimize_patch: `flow": lambda field: optimize_patch(
        torch.mean, IMAGE, [[1, 2, 20, 20]], None, patch_size=(32, 48), steps=2, samples=2,
        surface=field.reshape(32, 48, 2),
    ),
}  # fmt: skip
SLIPS = [
    *((lambda call=call: call(GRID), name + RUNS) for name, call in TAKE_A_FLOW.items()),
    *((lambda call=call: call(POINTS), name + IS_POINTS) for name, call in TAKE_A_FLOW.items()),
    (lambda: wk.warp_flow(IMAGE, POINTS + noise(32, 48, 2)), "warp_flow: `flow" + IS_POINTS),
    (lambda: flow.from_points(GRID), f"from_points: {PIXELS}"),
    (
        lambda: flow.thin_plate_spline(SHARES, SHARES * 0.9, (32, 48)),
        f"thin_plate_spline: {PAIRS}[0, 1], the first pixel of an image of (32, 48): they are",
    ),
    (
        lambda: flow.thin_plate_spline(2 * SHARES - 1, SHARES, (32, 48)),
        f"thin_plate_spline: {PAIRS}[-1, 1], the first pixel of an image of (32, 48): they are",
    ),
    (
        lambda: wk.resize(IMAGE, (4, 5), box=BOX),
        "resize: `box` lies within [0, 1], the first pixel of an image of (32, 48): it is in pix",
    ),
    (lambda: wk.resize(IMAGE, (4, 5), box=torch.tensor(BOX)), "resize: `box` lies within [0, 1]"),
]


@pytest.mark.parametrize(("call", "text"), SLIPS)
def test_other_conventions_get_one_warning(call, text):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert [str(warning.message)[: len(text)] for warning in caught] == [text]
    assert caught[0].filename == __file__


def test_a_warning_converts_fractions_to_the_right_pixels():
    """x * W - 1 / 2: the fraction 0 is the left edge, half a pixel before the first centre."""
    sides = torch.tensor([48.0, 32.0])
    source, target = SHARES * sides - 0.5, SHARES.flip(0) * 0.9 * sides - 0.5
    field = flow.thin_plate_spline(source, target, (32, 48))
    assert field.abs().max() > 1
    again = ((2 * SHARES - 1 + 1) * sides - 1) / 2
    assert torch.equal(again, source)


def test_arguments_that_may_be_intended_get_no_warning():
    """Every warning is an error in these tests."""
    small = torch.zeros(1, 8, 8)
    wk.warp_flow(small, wk.pixel_grid((8, 8)))  # tiny images
    flow.invert(wk.pixel_grid((15, 20)) * 0.1)
    flow.from_points(GRID[:, :8, :8])
    flow.thin_plate_spline(SHARES, SHARES * 0.9, (8, 9))
    wk.resize(small, (2, 2), box=BOX)
    flow.from_points(GRID * 20)
    flow.from_points(POINTS)
    flow.to_points(GRID * 20)
    wk.resize(IMAGE, (4, 5), box=(0, 0, 1, 1))  # the box of the first pixel
    wk.resize(IMAGE, (4, 5), box=(0.2, 0.2, 3.9, 0.9))
    flow.thin_plate_spline(SHARES * 20, SHARES, (32, 48))
    wk.warp_flow(IMAGE, noise(32, 48, 2) * 2 - 1)
    wk.warp_flow(IMAGE, torch.full((32, 48, 2), torch.nan))
    center = wk.image_center((32, 48))
    for scale in (0.5, 0.3, 2.0):  # about the middle, and of half the pixels
        matrix = wk.rotation_matrix(center, 20.0, scale)
        wk.warp_flow(IMAGE, flow.from_matrix(matrix, (32, 48)))
    half = torch.tensor([[0.5, 0.0, 0.0], [0.0, 0.5, 0.0]])
    wk.warp_flow(IMAGE, flow.from_matrix(half, (16, 24)))
    flow.invert(flow.from_matrix([[-1.0, 0, 47], [0, -1, 31]], (32, 48)))


def test_values_are_not_checked_where_there_are_none():
    torch.vmap(lambda f: wk.warp_flow(IMAGE[0], f))(POINTS.expand(2, -1, -1, -1))
    torch.compile(lambda f: wk.warp_flow(IMAGE, f), backend="eager", fullgraph=True)(POINTS)
    flow.from_points(GRID.to("meta"))
    wk.warp_flow(IMAGE.to("meta"), POINTS.to("meta"))


def test_warnings_of_consistency_name_its_own_arguments():
    grid = torch.stack(
        torch.meshgrid(torch.linspace(-1, 1, 32), torch.linspace(-1, 1, 32), indexing="xy"), -1
    )
    text = "consistency: `forward` runs from -1 to 1 over 32 x 32 pixels"
    with pytest.warns(UserWarning, match=text) as caught:
        wk.flow.consistency(grid, torch.zeros(32, 32, 2))
    assert len(caught) == 1
