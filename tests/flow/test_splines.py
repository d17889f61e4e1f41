"""B-splines and thin plates: scipy, by hand, exact interpolation, and every gradient."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

import warpkit as wk
from tests.support.inputs import noise
from tests.support.second_order import gradgradcheck
from warpkit import flow


def scattered(n=12, seed=0, size=(20, 26)):
    """Points (n, 2) in an image, away from each other and from pixel centres."""
    grid = wk.pixel_grid((4, 5)).double().flatten(0, 1)[noise(20, seed=seed).argsort()[:n]]
    return (grid + 0.6 * noise(n, 2, seed=seed)) * torch.tensor([size[1] / 5, size[0] / 4])


def pixels(h, w):
    y, x = np.mgrid[:h, :w]
    return np.stack((x, y), -1).reshape(-1, 2).astype(np.float64)


@pytest.mark.parametrize("shape", [(4, 4), (5, 9), (7, 4)])
def test_bsplines_match_scipy(shape):
    interpolate = pytest.importorskip("scipy.interpolate")
    (m, n), (h, w) = shape, (11, 13)
    control = noise(m, n, 2)
    rows, columns = (np.eye(k) for k in (m, n))
    knots = [np.arange(k + 4) - 3.0 for k in (m, n)]
    along = interpolate.BSpline(knots[0], rows, 3)((np.arange(h) + 0.5) * (m - 3) / h)
    across = interpolate.BSpline(knots[1], columns, 3)((np.arange(w) + 0.5) * (n - 3) / w)
    truth = np.einsum("hm,mnc,wn->hwc", along, control.numpy(), across)
    assert np.abs(flow.bspline(control, (h, w)).numpy() - truth).max() < 1e-14


def test_bsplines_reproduce_affine_lattices():
    """Control points on a straight ramp, 13 / 5 pixels apart, give the ramp."""
    j = torch.arange(8.0).double() - 1
    control = torch.stack((0.5 * (j * 13 / 5 - 0.5), 0 * j), -1).expand(4, 8, 2)
    truth = 0.5 * torch.arange(13.0).double()
    assert (flow.bspline(control, (6, 13))[..., 0] - truth).abs().max() < 1e-14
    small = noise(4, 5, 2).requires_grad_()
    assert gradcheck(lambda c: flow.bspline(c, (3, 4)), (small,), check_forward_ad=True)
    assert gradgradcheck(lambda c: flow.bspline(c, (3, 4)), (small,))
    assert flow.bspline(noise(2, 4, 4, 2).half(), (3, 4)).dtype == torch.float16


@pytest.mark.parametrize("smoothing", [0.0, 3.0, 200.0])
def test_thin_plates_match_scipy(smoothing):
    interpolate = pytest.importorskip("scipy.interpolate")
    target = scattered()
    source = target + 4 * noise(12, 2, seed=5) - 2
    plate = interpolate.RBFInterpolator(
        target.numpy(), source.numpy(), smoothing=smoothing, kernel="thin_plate_spline", degree=1
    )
    truth = plate(pixels(20, 26)).reshape(20, 26, 2) - pixels(20, 26).reshape(20, 26, 2)
    ours = flow.thin_plate_spline(source, target, (20, 26), smoothing=smoothing).numpy()
    assert np.abs(ours - truth).max() < 1e-10


def test_thin_plates_interpolate_their_points():
    target = scattered(9).round()
    source = target + 5 * noise(9, 2, seed=3)
    field = flow.thin_plate_spline(source, target, (20, 26))
    for (x, y), place in zip(target.long().tolist(), source, strict=True):
        assert (field[y, x] + torch.tensor([x, y]) - place).abs().max() < 1e-12
    seen, valid = flow.transform_points(source, field)
    assert (seen - target)[valid].abs().max() < 1e-9
    assert valid.any()


def test_affine_pairs_give_an_affine_flow():
    target = scattered()
    matrix = torch.tensor([[1.2, -0.3, 4.0], [0.1, 0.8, -2.0]]).double()
    source = wk.transform_points(matrix, target)
    truth = flow.from_matrix(matrix, (20, 26), inverse=True)
    for smoothing in (0.0, 50.0):
        field = flow.thin_plate_spline(source, target, (20, 26), smoothing=smoothing)
        assert (field - truth).abs().max() < 1e-11
    corners = torch.tensor([[0.0, 0], [25, 0], [0, 19]]).double()
    field = flow.thin_plate_spline(wk.transform_points(matrix, corners), corners, (20, 26))
    assert (field - truth).abs().max() < 1e-11


def test_computing_in_blocks_changes_nothing(monkeypatch):
    target = scattered()
    source = (target + noise(2, 12, 2, seed=5)).requires_grad_()
    whole = flow.thin_plate_spline(source, target, (9, 11))
    (truth,) = torch.autograd.grad(whole.square().sum(), source)
    monkeypatch.setattr("warpkit.flow.splines.AT_ONCE", 12 * 2 * 17)
    parts = flow.thin_plate_spline(source, target, (9, 11))
    (grad,) = torch.autograd.grad(parts.square().sum(), source)
    assert (parts - whole).abs().max() < 1e-13
    assert (grad - truth).abs().max() < 1e-10
    few = target[:5].clone().requires_grad_(), source.detach()[0, :5].clone().requires_grad_()
    monkeypatch.setattr("warpkit.flow.splines.AT_ONCE", 15)
    assert gradcheck(lambda t, s: flow.thin_plate_spline(s, t, (2, 4)), few)
    assert gradgradcheck(lambda t, s: flow.thin_plate_spline(s, t, (2, 4)), few)


def test_one_set_of_targets_broadcasts_over_sources():
    target, smoothing = scattered(), torch.tensor([[0.5], [2.0]]).double()
    sources = target + noise(3, 12, 2, seed=5)
    for smooth in (smoothing[0, 0], smoothing):
        fields = flow.thin_plate_spline(sources, target, (9, 11), smoothing=smooth)
        assert fields.shape == (*smooth.shape[:1], 3, 9, 11, 2)
        field = flow.thin_plate_spline(sources[2], target, (9, 11), smoothing=smooth.flatten()[-1])
        assert (fields.reshape(-1, 9, 11, 2)[-1] - field).abs().max() < 1e-11
    mapped = torch.vmap(lambda s: flow.thin_plate_spline(s, target, (9, 11), smoothing=0.5))(
        sources
    )
    truth = flow.thin_plate_spline(sources, target, (9, 11), smoothing=0.5)
    assert (mapped - truth).abs().max() < 1e-11


def test_gradients_of_thin_plates():
    target = scattered(5, size=(5, 6)).requires_grad_()
    source = (target.detach() + noise(5, 2, seed=4)).requires_grad_()
    smoothing = torch.tensor(0.3).double().requires_grad_()

    def plate(s, t, k):
        return flow.thin_plate_spline(s, t, (3, 4), smoothing=k)

    assert gradcheck(plate, (source, target, smoothing))
    assert gradgradcheck(plate, (source, target, smoothing))
    # also on a pixel, where the slope of r^2 log r is 0
    on = torch.tensor([[0.0, 0], [3, 0], [1, 2], [2, 1]]).double().requires_grad_()
    (grad,) = torch.autograd.grad(plate(source[:4], on, smoothing).sum(), on)
    assert grad.isfinite().all()


def test_degenerate_points_are_named():
    line = torch.stack((torch.arange(5.0), 2 * torch.arange(5.0) + 1), -1).double()
    twice = scattered(6)
    twice = torch.cat((twice, twice[:1]))
    moved = line + noise(5, 2)
    text = "thin_plate_spline: `target` must be points that are not all on one line"
    with pytest.raises(ValueError, match=text):
        flow.thin_plate_spline(moved, line, (8, 9))
    with pytest.raises(ValueError, match="no two are in one place"):
        flow.thin_plate_spline(twice + 1, twice, (8, 9))
    assert flow.thin_plate_spline(moved, line, (8, 9), smoothing=1.0).isfinite().all()
    # two sources at one place give the mean of their targets as smoothing goes to 0
    pull = twice.clone()
    pull[0, 0] += 2
    field = flow.thin_plate_spline(pull, twice, (20, 26), smoothing=1e-6)
    alone = twice[:6].clone()
    alone[0, 0] += 1
    truth = flow.thin_plate_spline(alone, twice[:6], (20, 26))
    assert (field - truth).abs().max() < 1e-4


def test_errors():
    points = scattered()
    with pytest.raises(
        ValueError, match=re.escape("bspline: `control` must be of shape (..., m, n, 2) with m")
    ):
        flow.bspline(torch.zeros(3, 4, 2), (5, 5))
    with pytest.raises(ValueError, match="bspline: `control` must be finite"):
        flow.bspline(torch.full((4, 4, 2), torch.nan), (5, 5))
    with pytest.raises(ValueError, match=r"`source` must be of shape .* with N of at least 3"):
        flow.thin_plate_spline(points[:2], points[:2], (5, 5))
    with pytest.raises(ValueError, match="`target` must be of as many points as `source`, 12"):
        flow.thin_plate_spline(points, points[:5], (5, 5))
    with pytest.raises(ValueError, match="`source` must be finite"):
        flow.thin_plate_spline(points * torch.nan, points, (5, 5))
    with pytest.raises(ValueError, match="`smoothing` must be at least 0, got -1"):
        flow.thin_plate_spline(points, points, (5, 5), smoothing=-1.0)
