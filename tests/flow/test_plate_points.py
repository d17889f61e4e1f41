"""Points through thin plates: scipy, by hand, the plate's flow, and every gradient."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

import warpkit as wk
from tests.flow.test_splines import scattered
from tests.support.inputs import noise
from tests.support.second_order import gradgradcheck
from warpkit import flow


@pytest.mark.parametrize("smoothing", [0.0, 3.0, 200.0])
def test_points_match_scipy(smoothing):
    interpolate = pytest.importorskip("scipy.interpolate")
    source = scattered()
    target = source + 4 * noise(12, 2, seed=5) - 2
    points = 40 * noise(300, 2, seed=7) - 8  # some are outside the pairs
    plate = interpolate.RBFInterpolator(
        source.numpy(), target.numpy(), smoothing=smoothing, kernel="thin_plate_spline", degree=1
    )
    ours = flow.thin_plate_points(points, source, target, smoothing=smoothing).numpy()
    assert np.abs(ours - plate(points.numpy())).max() < 1e-10


def test_a_source_lands_on_its_target():
    source = scattered()
    target = source + 5 * noise(12, 2, seed=3)
    assert (flow.thin_plate_points(source, source, target) - target).abs().max() < 1e-12
    one = flow.thin_plate_points(source[3].tolist(), source.tolist(), target.tolist())
    assert one.dtype == torch.get_default_dtype()
    assert (one - target[3]).abs().max() < 1e-4
    mixed = flow.thin_plate_points(source.float(), source.half(), target.half())
    assert mixed.dtype == torch.float32


def test_the_flow_maps_targets_back_to_sources():
    """At p, the flow is the swapped pairs' plate at p, minus p."""
    source, smoothing = scattered(), torch.tensor([0.0, 2.0]).double()
    target = source + 3 * noise(12, 2, seed=3)
    field = flow.thin_plate_spline(source, target, (9, 11), smoothing=smoothing)
    pixels = wk.pixel_grid((9, 11)).double().flatten(0, 1)
    back = flow.thin_plate_points(pixels, target, source, smoothing=smoothing)
    assert (back - pixels - field.flatten(1, 2)).abs().max() < 1e-12


def test_affine_pairs_move_points_by_their_matrix():
    matrix = torch.tensor([[1.2, -0.3, 4.0], [0.1, 0.8, -2.0]]).double()
    source, points = scattered(), 50 * noise(7, 2)
    target = wk.transform_points(matrix, source)
    for smoothing in (0.0, 50.0):
        moved = flow.thin_plate_points(points, source, target, smoothing=smoothing)
        assert (moved - wk.transform_points(matrix, points)).abs().max() < 1e-11


def test_batches_broadcast():
    source, points = scattered(5), 20 * noise(3, 1, 4, 2)
    targets = source + noise(2, 5, 2, seed=5)
    smoothing = torch.tensor([[0.0], [1.0], [2.0]]).double()
    moved = flow.thin_plate_points(points, source, targets, smoothing=smoothing)
    assert moved.shape == (3, 2, 4, 2)
    for i in range(3):
        for j in range(2):
            alone = flow.thin_plate_points(points[i, 0], source, targets[j], smoothing=float(i))
            assert (moved[i, j] - alone).abs().max() < 1e-12, (i, j)
    assert flow.thin_plate_points(points[0, 0, 0], source, targets).shape == (2, 2)
    assert flow.thin_plate_points(points[0, 0, :0], source, targets).shape == (2, 0, 2)
    mapped = torch.vmap(lambda p, t: flow.thin_plate_points(p, source, t), (None, 0))(
        points[0, 0], targets
    )
    truth = flow.thin_plate_points(points[0, 0], source, targets)
    assert (mapped - truth).abs().max() < 1e-12


def test_computing_in_blocks_changes_nothing(monkeypatch):
    source = scattered(5)
    target = (source + noise(2, 5, 2, seed=5)).requires_grad_()
    points = (20 * noise(2, 9, 2)).requires_grad_()
    whole = flow.thin_plate_points(points, source, target)
    truth = torch.autograd.grad(whole.square().sum(), (points, target))
    monkeypatch.setattr("warpkit.flow.splines.AT_ONCE", 5 * 2 * 2)
    parts = flow.thin_plate_points(points, source, target)
    found = torch.autograd.grad(parts.square().sum(), (points, target))
    torch.testing.assert_close(parts, whole)
    torch.testing.assert_close(found, truth)


def test_gradients():
    source = scattered(5, size=(5, 6)).requires_grad_()
    target = (source.detach() + noise(5, 2, seed=4)).requires_grad_()
    points = (5 * noise(4, 2, seed=8)).requires_grad_()
    smoothing = torch.tensor(0.3).double().requires_grad_()

    def moved(p, s, t, k):
        return flow.thin_plate_points(p, s, t, smoothing=k)

    inputs = (points, source, target, smoothing)
    assert gradcheck(moved, inputs, check_forward_ad=True)
    assert gradgradcheck(moved, inputs)
    # the gradient is also defined at a source point
    on = source.detach().clone().requires_grad_()
    assert gradcheck(lambda p: moved(p, source.detach(), target.detach(), 0.0), (on,))


def test_a_nonfinite_point_does_not_affect_others():
    source = scattered(5).requires_grad_()
    target = (source.detach() + noise(5, 2, seed=4)).requires_grad_()
    points = torch.tensor([[1.0, 2.0], [torch.nan, 3.0], [2.0, torch.inf]]).double()
    points = points.requires_grad_()
    moved = flow.thin_plate_points(points, source, target)
    assert moved.isfinite().all(-1).tolist() == [True, False, False]
    assert moved[1:].isnan().all()
    for grad in torch.autograd.grad(moved[0].sum(), (points, source, target)):
        assert grad.isfinite().all()


def test_plate_points_compile_and_export():
    source = scattered(5)

    class Module(torch.nn.Module):
        def forward(self, points, target):
            return flow.thin_plate_points(points, source, target, smoothing=0.1)

    inputs = 20 * noise(6, 2), source + noise(5, 2, seed=4)
    truth = Module()(*inputs)
    compiled = torch.compile(Module(), fullgraph=True, backend="aot_eager")
    assert (compiled(*inputs) - truth).abs().max() < 1e-12
    program = torch.export.export(Module(), inputs).module()
    assert (program(*inputs) - truth).abs().max() < 1e-12


def test_errors():
    points, line = scattered(), torch.stack((torch.arange(5.0), torch.arange(5.0)), -1)
    text = "thin_plate_points: `source` must be points that are not all on one line"
    with pytest.raises(ValueError, match=text):
        flow.thin_plate_points(points, line, points[:5])
    flow.thin_plate_points(points, points[:5], line)  # targets may be collinear
    twice = torch.cat((points, points[:1]))
    with pytest.raises(ValueError, match="`source` must be points of which no two are in one"):
        flow.thin_plate_points(points, twice, twice)
    with pytest.raises(ValueError, match=re.escape("`points` must be of shape (..., 2), got (4")):
        flow.thin_plate_points(torch.zeros(4, 3), points, points)
    with pytest.raises(ValueError, match="batch dimensions of `points` and `source` and"):
        flow.thin_plate_points(points.expand(3, 12, 2), points, points.expand(2, 12, 2))
    with pytest.raises(ValueError, match="`smoothing` must be at least 0, got -1"):
        flow.thin_plate_points(points, points, points, smoothing=-1.0)
