"""Inverses of flows: matrices, composition, folds, and every gradient."""

from __future__ import annotations

import re

import pytest
import torch
from torch.autograd import gradcheck

import warpkit as wk
from tests.support.inputs import noise
from tests.support.second_order import gradgradcheck
from warpkit import flow

SOLVED = 1e-9
"""Pixels: the iteration stops at a residual of 1e-12, and fields here shrink by up to 1/4."""


def waves(h=24, w=30, size=1.5):
    """A smooth field (h, w, 2) of slopes up to `size` / 4."""
    y, x = torch.meshgrid(torch.arange(h).double(), torch.arange(w).double(), indexing="ij")
    return size * torch.stack((torch.sin(x / 5 + y / 7), torch.cos(y / 4 - x / 9)), -1)


def test_the_inverse_of_a_matrixs_flow_is_the_inverse_matrixs_flow():
    matrix = wk.rotation_matrix((14.0, 11.0), torch.tensor([17.0, -140.0]).double(), 1.3)
    field = flow.from_matrix(matrix, (24, 30))
    truth = flow.from_matrix(matrix, (24, 30), inverse=True)
    inverse = flow.invert(field)
    points = flow.to_points(truth)
    inside = ((points >= 0) & (points <= torch.tensor([29, 23]))).all(-1)
    assert inverse.valid[inside].all()
    # beyond the edges the flow differs from the matrix, and the image ends half a pixel out
    near = ((points >= -1) & (points <= torch.tensor([30, 24]))).all(-1)
    assert not inverse.valid[~near].any()
    assert torch.equal(inverse.valid[1], inside[1])  # rotated by 140 degrees, it folds there
    assert (inverse.flow - truth)[inside].abs().max() < SOLVED
    assert inverse.residual[inside].max() < SOLVED


@pytest.mark.parametrize("size", [0.2, 1.5, 3.0])
def test_a_flow_and_its_inverse_compose_to_the_identity(size):
    field = waves(size=size)
    assert flow.jacobian_determinant(field).min() > 0
    inverse = flow.invert(field)
    assert inverse.valid.double().mean() > 0.6
    around = flow.compose(field, inverse.flow).norm(dim=-1)
    assert around[inverse.valid].max() < SOLVED
    assert (around - inverse.residual).abs().max() < SOLVED
    single = flow.invert(field.float())
    assert single.flow.dtype == torch.float32
    assert (single.flow - inverse.flow)[inverse.valid].abs().max() < 1e-4


@pytest.mark.parametrize("shift", [2.5, 2.4, 2.6, -2.5, -2.4, -2.6])
def test_pixels_from_outside_the_image_are_invalid(shift):
    """Pixel 2 comes from -0.4, -0.5 and -0.6; the image ends at -0.5, half a pixel out."""
    field = torch.tensor([shift, -1.0]).double().expand(6, 8, 2)
    inverse = flow.invert(field)
    assert (inverse.flow + field).abs().max() < SOLVED
    wanted = torch.zeros(6, 8, dtype=torch.bool)
    wanted[:5, 2 + (abs(shift) > 2.5) :] = True
    assert torch.equal(inverse.valid, wanted if shift > 0 else wanted.flip(1))


def test_sources_in_the_last_half_pixel_are_valid():
    field = torch.tensor([2.5, 0.0]).double().expand(6, 8, 2)
    x = torch.tensor([1.9, 2.0, 2.1, 9.9, 10.0, 10.1]).double()
    wanted = [False, True, True, True, True, False]
    assert flow.transform_points(torch.stack((x, 0 * x), -1), field)[1].tolist() == wanted
    y = torch.tensor([-0.6, -0.5, 5.5, 5.6]).double()
    wanted = [False, True, True, False]
    assert flow.transform_points(torch.stack((0 * y + 4, y), -1), field)[1].tolist() == wanted


@pytest.mark.parametrize("size", [(9, 1), (9, 12)])
def test_a_flow_that_decays_at_the_edge_is_valid_there(size):
    """The first row comes from 1.3e-6 above it, the last from as much below; both are inverted."""
    y = torch.linspace(-1, 1, size[0]).double()[:, None].expand(size)
    field = torch.stack((0 * y, 0.5 * (1 - y * y) - 1.3e-6 * y), -1)
    for bent in (field, field.transpose(0, 1).flip(-1)):
        inverse = flow.invert(bent)
        assert inverse.valid.all()
        assert flow.compose(bent, inverse.flow).abs().max() < SOLVED


def test_folded_pixels_are_invalid():
    """x + flow(x) rises to 8, falls to 4 and rises again: 4 to 8 is covered three times."""
    x = torch.arange(20.0).double()
    run = torch.where(x <= 8, x, torch.where(x <= 12, 16 - x, x - 8))
    field = torch.stack((run - x, 0 * x), -1).expand(5, 20, 2)
    for rows in (5, 1):
        inverse = flow.invert(field[:rows])
        wanted = ((x < 4) | (x > 8)) & (x <= 11)
        assert torch.equal(inverse.valid, wanted.expand(rows, 20))


def test_points_are_found_where_a_drawn_dot_appears():
    field = waves()
    points = torch.tensor([[12.0, 9.0], [20.0, 14.0], [7.0, 15.0], [15.5, 12.25]]).double()
    y, x = torch.meshgrid(torch.arange(24).double(), torch.arange(30).double(), indexing="ij")
    moved, valid = flow.transform_points(points, field)
    assert valid.all()
    ramp = torch.stack((x, y))
    assert (wk.sample_pixels(field.movedim(-1, 0), moved).T + moved - points).abs().max() < SOLVED
    seen = wk.sample_pixels(wk.warp_flow(ramp, field, border="replicate"), moved).T
    assert (seen - points).abs().max() < SOLVED
    one, ok = flow.transform_points(points[0], field)
    assert torch.equal(one, moved[0])
    assert ok.shape == ()
    many, _ = flow.transform_points(points, torch.stack((field, field * 0.5)))
    assert many.shape == (2, 4, 2)
    assert (many[0] - moved).abs().max() < SOLVED
    off, valid = flow.transform_points([[-40.0, 2.0], [torch.nan, 0.0]], field)
    assert not valid.any()
    assert off[0].isfinite().all()


def test_gradients_of_inverses_and_points():
    field = waves(4, 5, 0.6).requires_grad_()
    points = torch.tensor([[2.3, 1.6], [3.1, 2.4]]).double().requires_grad_()
    valid = flow.invert(field.detach()).valid
    assert valid.sum() > 6
    assert gradcheck(lambda f: flow.invert(f).flow[valid], (field,), check_forward_ad=True)
    assert gradcheck(lambda p, f: flow.transform_points(p, f)[0], (points, field))
    assert gradgradcheck(lambda p, f: flow.transform_points(p, f)[0], (points, field))


def test_no_gradient_of_a_finite_flow_is_nan():
    fields = 30 * (2 * noise(3, 6, 7, 2) - 1)
    fields[1] = flow.from_matrix([[0.0, 0, 3], [0, 1e9, 2]], (6, 7), inverse=True)
    fields[2] *= 1e30
    fields = fields.requires_grad_()
    inverse = flow.invert(fields)
    (grad,) = torch.autograd.grad(inverse.flow.sum(), fields)
    assert inverse.flow.isfinite().all()
    assert grad.isfinite().all()
    holes = waves().index_fill(0, torch.tensor([5]), torch.nan)
    inverse = flow.invert(holes)
    assert 0.4 < inverse.valid.double().mean() < 0.9
    assert flow.compose(holes, inverse.flow)[inverse.valid].abs().max() < SOLVED


def test_inverses_under_vmap_and_forward_mode():
    fields = torch.stack((waves(8, 9, 0.7), waves(8, 9, 1.2)))
    many = torch.vmap(lambda f: flow.invert(f).flow)(fields)
    truth = flow.invert(fields)
    assert (many - truth.flow)[truth.valid].abs().max() < SOLVED


def test_errors():
    with pytest.raises(ValueError, match=re.escape("invert: `flow` must be of shape")):
        flow.invert(torch.zeros(2, 4, 5))
    with pytest.raises(ValueError, match=re.escape("transform_points: `points` must be of shape")):
        flow.transform_points(torch.zeros(4, 3), torch.zeros(4, 5, 2))
    with pytest.raises(ValueError, match="batch dimensions of `points` and `flow`"):
        flow.transform_points(torch.zeros(2, 4, 2), torch.zeros(3, 4, 5, 2))


def test_inverses_and_plates_compile_and_export(monkeypatch):
    class Module(torch.nn.Module):
        def forward(self, field, points):
            plate = flow.thin_plate_spline(points + 0.2, points, (8, 9), smoothing=0.1)
            moved = flow.compose(flow.integrate(field, steps=2), plate)
            return moved + flow.bspline(plate[:5, :5], (8, 9))

    class Inverse(torch.nn.Module):
        def forward(self, field):
            return flow.invert(field).flow

    inputs = waves(8, 9, 0.7), torch.tensor([[1.0, 1], [7, 2], [3, 6], [6, 6]]).double()
    truth = Module()(*inputs)
    compiled = torch.compile(Module(), fullgraph=True, backend="aot_eager")
    assert (compiled(*inputs) - truth).abs().max() < SOLVED
    # all steps are the same operations, of which torch exports 20 in 10 s; this field takes 8
    monkeypatch.setattr("warpkit.flow.inverse.BLIND_STEPS", 8)
    program = torch.export.export(Inverse(), inputs[:1]).module()
    assert (program(inputs[0]) - Inverse()(inputs[0])).abs().max() < SOLVED


@pytest.mark.parametrize("size", [(5, 6), (1, 6), (5, 1)])
def test_a_flow_that_mirrors_does_not_fold(size):
    height, width = size
    rows = [[1.0, 0, 0], [0, -1, height - 1]] if width == 1 else [[-1.0, 0, width - 1], [0, 1, 0]]
    mirrored = flow.from_matrix(torch.tensor(rows).double(), size)
    turned = flow.from_matrix([[-1.0, 0, width - 1], [0, -1, height - 1]], size).double()
    found = flow.invert(torch.stack((mirrored, turned, 0 * turned)))
    assert found.valid.all()
    torch.testing.assert_close(found.flow[0], mirrored)
    torch.testing.assert_close(found.flow[1], turned)


def test_a_bent_mirror_image_is_inverted_with_gradients():
    mirrored = flow.from_matrix([[-1.0, 0, 19], [0, 1, 0]], (6, 20)).double()
    y, x = torch.meshgrid(torch.arange(6).double(), torch.arange(20).double(), indexing="ij")
    bend = torch.stack((0.4 * torch.sin(x / 2 + y), 0.2 * torch.sin(x / 3)), -1)
    bent = (mirrored + bend).requires_grad_()
    found = flow.invert(bent)
    inner = found.valid[1:-1, 1:-1]
    assert inner.float().mean() > 0.9
    assert flow.compose(bent, found.flow)[found.valid].abs().max() < SOLVED
    points = torch.tensor([[4.3, 2.2], [11.6, 3.7]]).double().requires_grad_()
    valid = flow.transform_points(points, bent)[1]
    assert valid.all()
    # 240 numbers: along random directions, for the reason in tests/support/second_order.py
    assert gradcheck(lambda p, f: flow.transform_points(p, f)[0], (points, bent), fast_mode=True)
    half = torch.where((x < 9)[..., None], mirrored, 0 * mirrored)  # a crease is also a fold
    assert not flow.invert(half).valid.all()
