"""How `align` stops: unsmoothed images, gain and bias, and early exits."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import warpkit as wk
from tests.alignment.test_align import FIXED, MOVING, matrix_of, pair, with_object
from tests.support.scenes import Scene, corner_error
from tests.support.tolerances import TOLERANCE
from warpkit.alignment import coarse_to_fine, solver


def registration_toy(seed: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """The case in kornia's tests: 16 x 18 pixels of noise warped by grid_sample, and the matrix."""
    height, width = 16, 18
    generator = torch.Generator().manual_seed(seed)
    moving = torch.rand(3, height, width, generator=generator, dtype=dtype)
    x, y = (torch.linspace(-1, 1, side, dtype=dtype) for side in (width, height))
    grid = torch.stack(
        (1.05 * x.expand(height, -1) + 0.01, (1.05 * y[:, None]).expand(-1, width)), -1
    )
    fixed = F.grid_sample(moving[None], grid[None], align_corners=False)[0]
    # in pixels, fixed -> moving: the grid puts its corners at pixel centres, the image at its edges
    rows = [
        (1.05 * n / (n - 1), (1 - 1.05 + shift) * n / 2 - 0.5)
        for n, shift in ((width, 0.01), (height, 0.0))
    ]
    (a, e), (b, f) = rows
    to_source = torch.tensor([[a, 0, e], [0, b, f]], dtype=torch.float64)
    return moving, fixed, wk.invert(to_source)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("loss", ["ecc", "ssd", "robust"])
def test_a_motion_made_by_interpolation_is_found_exactly(loss, dtype):
    """With smoothing before sampling, the result was up to 0.08 pixels off."""
    for seed in range(5):
        moving, fixed, true = registration_toy(seed, dtype)
        found = wk.align(moving, fixed, loss=loss)
        assert found.converged, seed
        assert corner_error(found.matrix, true, (16, 18)) < TOLERANCE["align exact pixels"], seed
        assert found.gain.sub(1).abs().max() < 1e-5, seed
        assert found.bias.abs().max() < 1e-5, seed


@pytest.mark.parametrize("model", ["translation", "euclidean", "similarity", "perspective"])
def test_every_model_converges_to_the_exact_matrix(model):
    true = matrix_of(model, (0.6, -0.4))
    generator = torch.Generator().manual_seed(4)
    moving = torch.rand(2, *MOVING, generator=generator, dtype=torch.float64)
    warp = wk.warp_perspective if model == "perspective" else wk.warp_affine
    fixed = 0.7 * warp(moving, true) + 0.2
    found = wk.align(moving, fixed, model=model, init=true)
    assert found.converged
    assert corner_error(found.matrix, true, MOVING) < TOLERANCE["align exact pixels"]
    torch.testing.assert_close(found.gain, torch.full((2,), 0.7).double(), rtol=0, atol=1e-5)
    torch.testing.assert_close(found.bias, torch.full((2,), 0.2).double(), rtol=0, atol=1e-5)


def test_noisy_images_are_aligned_on_smoothed_copies():
    """Bilinear interpolation blurs noise between pixels, which biases shifts to whole pixels."""
    scene = Scene(0)
    true = torch.tensor([[1.0, 0, 0.25], [0, 1, -0.3]], dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    moving, fixed = (
        image + 0.1 * torch.randn(image.shape, generator=generator, dtype=torch.float64)
        for image in (scene.at(wk.pixel_grid((90, 110)).double()), scene.seen(true, (90, 110)))
    )
    found = wk.align(moving, fixed, model="translation")
    assert found.converged
    assert corner_error(found.matrix, true, (90, 110)) < TOLERANCE["align pixels"]
    # the score is that of smoothed images, which noise affects less
    warped = wk.warp_affine(moving, found.matrix)
    sharp = np.corrcoef(warped[:, 5:-5, 5:-5].flatten(), fixed[:, 5:-5, 5:-5].flatten())[0, 1]
    assert found.score > sharp + 0.02


@pytest.mark.parametrize("loss", ["ecc", "ssd", "robust"])
def test_gain_and_bias_are_estimated_for_each_channel(loss):
    moving, fixed = pair(matrix_of("affine"), channels=3)
    # "ssd" compares values as they are, but still reports their gain and bias
    gain = torch.tensor((0.5, 1.0, 1.8) if loss != "ssd" else (0.97, 1.0, 1.03)).double()
    bias = torch.tensor((-3.0, 0.0, 40.0) if loss != "ssd" else (0.01, 0.0, -0.01)).double()
    changed = fixed * gain[:, None, None] + bias[:, None, None]
    found = wk.align(torch.stack((moving, moving)), torch.stack((changed, fixed)), loss=loss)
    assert found.converged.all()
    assert found.gain.dtype == found.bias.dtype == torch.float64
    for which, (a, b) in enumerate(((gain, bias), (torch.ones(3), torch.zeros(3)))):
        torch.testing.assert_close(found.gain[which], a.double(), rtol=0.01, atol=0)
        torch.testing.assert_close(found.bias[which], b.double(), rtol=0, atol=0.015)


def test_gain_and_bias_are_least_squares_over_visible_pixels():
    """Masked pixels do not count; outliers count only without Tukey's weights."""
    true = matrix_of("translation", (1.0, -2.0))
    moving, fixed = pair(true)
    fixed = 0.6 * fixed + 0.3
    (moving, moving_mask), (fixed, fixed_mask) = (
        with_object(moving, (8, 8)),
        with_object(fixed, (25, 30)),
    )
    options = {"model": "translation", "init": true}
    masks = {"moving_mask": moving_mask, "fixed_mask": fixed_mask}
    for more in ({"loss": "ecc", **masks}, {"loss": "ssd", **masks}, {"loss": "robust"}):
        found = wk.align(moving, fixed, **options, **more)
        assert float(found.gain) == pytest.approx(0.6, rel=0.02), more
        assert float(found.bias) == pytest.approx(0.3, rel=0.02), more
    spoilt = wk.align(moving, fixed, **options)
    assert abs(float(spoilt.gain) - 0.6) > 0.1


def test_gain_and_bias_are_finite_for_pairs_that_have_none():
    moving, fixed = pair(matrix_of("translation"))
    bad = torch.stack((moving, 0 * moving, moving * torch.nan))
    found = wk.align(bad, fixed.expand(3, 1, *FIXED), moving_mask=torch.zeros(1, *MOVING))
    assert not found.converged.any()
    assert found.gain.shape == found.bias.shape == (3, 1)
    assert found.gain.isfinite().all()
    assert found.bias.isfinite().all()
    for init in (None, "search"):
        nothing = wk.align(bad[:0], fixed, init=init)
        assert nothing.gain.shape == nothing.bias.shape == (0, 1)


@pytest.mark.parametrize("init", [None, "search"])
def test_unrelated_pairs_are_given_up_before_the_finest_level(init, monkeypatch):
    """If a second level's gradients agree by chance, a finer level still finds nothing."""
    size = (96, 128)
    points = wk.pixel_grid(size).double()
    moving = torch.stack([Scene(seed).at(points) for seed in range(3)])
    true = torch.tensor([[1.0, 0.02, 2.0], [-0.02, 1.0, 1.0]], dtype=torch.float64)
    fixed = torch.stack([*(Scene(seed).at(points) for seed in (7, 8)), Scene(2).seen(true, size)])
    finest = []
    equations = solver.equations

    def counted(level: object, *rest: object) -> object:
        if level.size == size:
            finest.append(len(level.fixed))
        return equations(level, *rest)

    monkeypatch.setattr(solver, "equations", counted)
    monkeypatch.setattr(solver, "select_descent", lambda *tensors: None)  # it hides its steps
    found = wk.align(moving, fixed, init=init)
    assert found.converged.tolist() == [False, False, True]
    # only the third pair took steps, and few
    assert set(finest) == {1}
    assert len(finest) < 8
    finest.clear()
    monkeypatch.setattr(coarse_to_fine, "HOPELESS", -1.0)
    stubborn = wk.align(moving, fixed, init=init)
    assert stubborn.converged.tolist() == [False, False, True]
    assert sum(finest) > 50
    torch.testing.assert_close(stubborn.matrix[2], found.matrix[2], rtol=0, atol=1e-9)
