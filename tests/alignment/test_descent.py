"""The compiled steps of an alignment, compared with the torch operations that define them."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch

import warpkit as wk
from tests.support.tolerances import TOLERANCE
from warpkit.alignment import equations, pyramid, solver
from warpkit.alignment.models import MODELS
from warpkit.engine import backends


def pictures(count, dtype, channels=2):
    """Smooth noise, and copies of it under small affine motions, with gain, bias and some noise."""
    generator = torch.Generator().manual_seed(3)
    noise = torch.rand(count, channels, 24, 28, generator=generator, dtype=torch.float64)
    moving = wk.resize(noise, (64, 75), interpolation="bicubic")
    turn = 0.03 * torch.randn(count, 2, 2, generator=generator, dtype=torch.float64)
    shift = torch.randn(count, 2, 1, generator=generator, dtype=torch.float64)
    matrix = torch.cat((torch.eye(2).double() + turn, shift), -1)
    fixed = wk.warp_affine(moving, matrix, border="reflect")
    grains = torch.randn(fixed.shape, generator=generator, dtype=torch.float64)
    return moving.to(dtype), (1.1 * fixed + 0.05 + 0.01 * grains).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("loss", ["ecc", "ssd"])
@pytest.mark.parametrize("model", MODELS)
def test_kernels_take_the_same_steps_as_torch(model, loss, dtype, monkeypatch):
    moving, fixed = pictures(4, dtype)
    options = {"model": model, "loss": loss}
    assert backends.select_descent(moving, fixed) is None  # gradients may be required
    with torch.no_grad():
        assert backends.select_descent(moving, fixed) is not None
    fast = wk.align(moving, fixed, **options)
    alone = wk.align(moving[1], fixed[1], **options)
    monkeypatch.setattr(solver, "select_descent", lambda *tensors: None)
    slow = wk.align(moving, fixed, **options)
    assert torch.equal(fast.converged, slow.converged)
    assert torch.equal(fast.steps, slow.steps)
    limit = TOLERANCE["align steps float64" if dtype == torch.float64 else "align steps float32"]
    for mine, wanted in zip((fast.matrix, fast.gain), (slow.matrix, slow.gain), strict=True):
        torch.testing.assert_close(mine, wanted, rtol=0, atol=limit)
    assert torch.equal(fast.matrix[1], alone.matrix)


def test_pairs_without_detail_or_overlap_do_not_converge():
    flat = torch.zeros(2, 1, 32, 40)
    found = wk.align(flat, torch.rand(2, 1, 32, 40, generator=torch.Generator().manual_seed(0)))
    assert not found.converged.any()
    assert found.matrix.isfinite().all()
    none = wk.align(flat[:0], flat[:0])
    assert none.matrix.shape == (0, 2, 3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [(8, 8), (9, 31), (2, 5), (3, 2), (40, 3), (37, 70)], ids=str)
def test_kernels_and_torch_run_the_same_levels(size, dtype):
    generator = torch.Generator().manual_seed(0)
    image = 3 + 2 * torch.rand(3, 2, *size, generator=generator).to(dtype)
    weights = torch.rand(3, 1, *size, generator=generator).to(dtype)
    mean, deviation = image.mean((2, 3), keepdim=True), image[:, :1, :1, :1]
    limit = TOLERANCE["align sums float64" if dtype == torch.float64 else "align sums float32"]
    with torch.no_grad():
        fast = backends.select_levels(image)
    assert fast is not None
    for given in (None, weights, weights[:1].expand(3, 1, *size)):
        for units in (None, (mean, deviation)):
            wanted = pyramid._level(None, image, given, units, slopes=True, half=True)
            found = pyramid._level(fast, image, given, units, slopes=True, half=True)
            if units is None:
                found = found._replace(whole=wanted.whole)
            for mine, truth in zip(found, wanted, strict=True):
                torch.testing.assert_close(mine, truth, rtol=0, atol=5 * limit)
            if given is not None:
                assert torch.equal(found.smooth[:, -1:], given)
    with torch.no_grad():
        for mine, truth in zip(pyramid._slopes(image), equations.slopes(image), strict=True):
            assert torch.equal(mine, truth)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [(8, 8), (9, 31), (1, 1), (37, 70)], ids=str)
def test_kernels_and_torch_have_the_same_statistics(size, dtype):
    image = 3 + 2 * torch.rand(4, 2, *size, generator=torch.Generator().manual_seed(0)).to(dtype)
    image[1] = 7  # constant
    with torch.no_grad():
        fast = backends.select_levels(image)
    wanted = pyramid._statistics(None, image, None)
    found = pyramid._statistics(fast, image, None)
    limit = TOLERANCE["align sums float64" if dtype == torch.float64 else "align sums float32"]
    for mine, truth in zip(found[2], wanted[2], strict=True):
        torch.testing.assert_close(mine, truth, rtol=limit, atol=0)
    assert torch.equal(found[3], wanted[3])
    assert found[3].tolist() == [size == (1, 1), True, size == (1, 1), size == (1, 1)]
    for place in (0, size[0] * size[1] // 2, -1):
        image[2] = 3
        image[2, 1].view(-1)[place] = torch.inf if place else torch.nan
        _, mask, _, bad = pyramid._statistics(fast, image, None)
        assert mask is not None
        assert bad[2]


def interpolated(dtype, model):
    """A blurred noise picture, and what cv2 interpolates from it: unsmoothed images agree best."""
    moving = torch.rand(3, 2, 24, 28, generator=torch.Generator().manual_seed(5))
    moving = wk.resize(moving, (96, 110), interpolation="bicubic")
    true = cv2.getRotationMatrix2D((54.5, 47.5), 3.0, 1.02)
    true[:, 2] += (2.3, -1.7)
    if model == "perspective":
        true = np.concatenate((true, [[1e-5, -2e-5, 1.0]]))
    warp = cv2.warpAffine if len(true) == 2 else cv2.warpPerspective
    fixed = [
        [warp(plane.numpy(), true, (110, 96), borderMode=cv2.BORDER_REPLICATE) for plane in image]
        for image in moving
    ]
    return moving.to(dtype), torch.tensor(np.array(fixed)).to(dtype), torch.from_numpy(true)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("model", ["affine", "perspective"])
def test_kernels_and_torch_take_the_same_steps_on_unsmoothed_images(model, dtype, monkeypatch):
    moving, fixed, true = interpolated(dtype, model)
    taken = []
    refine = solver.refine

    def noted(*given):
        taken.append(given[6] if len(given) > 6 else "search")
        return refine(*given)

    monkeypatch.setattr(solver, "refine", noted)
    fast = wk.align(moving, fixed, model=model)
    assert taken[-1] == "sharp"
    again = wk.align(moving, fixed, model=model)
    assert torch.equal(fast.matrix, again.matrix)
    monkeypatch.setattr(solver, "select_descent", lambda *tensors: None)
    slow = wk.align(moving, fixed, model=model)
    assert fast.converged.all()
    assert torch.equal(fast.steps, slow.steps)
    limit = TOLERANCE["align steps float64" if dtype == torch.float64 else "align steps float32"]
    for mine, wanted in zip((fast.matrix, fast.gain), (slow.matrix, slow.gain), strict=True):
        torch.testing.assert_close(mine, wanted, rtol=0, atol=limit)
    # cv2 places its bilinear pixels to 1/32
    corners = torch.tensor([[0.0, 0], [109, 0], [0, 95], [109, 95]], dtype=torch.float64)
    apart = wk.transform_points(fast.matrix, corners) - wk.transform_points(true, corners)
    assert apart.abs().max() < TOLERANCE["align pixels"]


@pytest.mark.parametrize("loss", ["ecc", "ssd"])
@pytest.mark.parametrize("native", [True, False])
def test_a_step_that_leaves_too_little_overlap_is_rejected(loss, native, monkeypatch):
    """Of a limit that no step reaches, nothing moves."""
    moving, fixed = pictures(2, torch.float32)
    if not native:
        monkeypatch.setattr(solver, "select_descent", lambda *tensors: None)
    start = torch.eye(2, 3).double()
    options = {"loss": loss, "model": "affine", "levels": 1, "init": start}
    moved = wk.align(moving, fixed, **options).matrix
    monkeypatch.setattr(solver, "LEAST_OVERLAP", 10.0)
    still = wk.align(moving, fixed, **options).matrix
    assert torch.equal(still, start.expand(2, 2, 3))
    assert not torch.equal(moved, still)
