"""The thin-plate transformer: affine motions, scipy's plate, gradients, and warnings."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.autograd import gradcheck

from tests.nn.test_layers import Given
from tests.support.inputs import noise
from tests.support.tolerances import TOLERANCE
from warpkit.nn import SpatialTransformer


def passing(n):
    """A head that passes n numbers on."""
    return {"weight": torch.eye(n), "bias": torch.zeros(n)}


def bending(moves, size, **options):
    """A transformer that moves its lattice by `moves` (2 * rows * columns,), in [-1, 1]."""
    module = SpatialTransformer(
        Given(moves), size, transform="thin_plate", features=moves.shape[-1], **options
    )
    module.head.load_state_dict(passing(len(moves)))
    return module.double()


def lattice(rows=4, columns=4):
    """The lattice's points (rows * columns, 2) in [-1, 1], row by row."""
    y, x = np.mgrid[-1 : 1 : rows * 1j, -1 : 1 : columns * 1j]
    return torch.from_numpy(np.stack((x, y), -1).reshape(-1, 2))


def test_affine_moves_equal_the_affine_transformer():
    images, numbers = noise(2, 3, 9, 12), torch.tensor([0.1, -0.2, 0.3, 0.15, 0.05, -0.1]).double()
    affine = SpatialTransformer(Given(numbers), (7, 8), features=6)
    affine.head.load_state_dict(passing(6))
    change = numbers.reshape(2, 3)
    moves = lattice(3, 5) @ change[:, :2].T + change[:, 2]
    ours = bending(moves.flatten(), (7, 8), lattice=(3, 5))
    truth = affine.double()(images)
    assert (ours(images) - truth).abs().max() < TOLERANCE["reference float64"]
    assert (ours.points(images) - affine.points(images)).abs().max() < 1e-11
    assert ours.head.out_features == 30


def test_plates_match_scipy():
    interpolate = pytest.importorskip("scipy.interpolate")
    moves, (height, width), (h, w) = 0.2 * noise(16, 2) - 0.1, (20, 30), (11, 13)
    points = bending(moves.flatten(), (h, w)).points(noise(2, 1, height, width))
    target = (lattice().numpy() + 1) * (w / 2, h / 2) - 0.5
    source = ((lattice() + moves).numpy() + 1) * (width / 2, height / 2) - 0.5
    plate = interpolate.RBFInterpolator(target, source, kernel="thin_plate_spline", degree=1)
    y, x = np.mgrid[:h, :w]
    truth = plate(np.stack((x, y), -1).reshape(-1, 2).astype(float)).reshape(h, w, 2)
    assert np.abs(points[1].detach().numpy() - truth).max() < 1e-9


def test_gradients_and_compilation(fresh_compiler: object):
    images, moves = noise(1, 1, 4, 5), 0.2 * noise(8) - 0.1
    module = bending(moves, (2, 3), lattice=(2, 2), border="replicate")

    def run(weight, images):
        return torch.func.functional_call(module, {"head.weight": weight}, (images,))

    weight = torch.eye(8).double().requires_grad_()
    assert gradcheck(run, (weight, images.requires_grad_()), check_forward_ad=True)
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    assert (compiled(images) - module(images)).abs().max() < TOLERANCE["two modes float64"]
    exported = torch.export.export(module, (images.detach(),)).module()
    assert (exported(images) - module(images)).abs().max() < TOLERANCE["two modes float64"]


def test_sampling_outside_gets_a_warning():
    images, away = noise(3, 1, 20, 24), torch.full((32,), 1.5).double()
    with pytest.warns(UserWarning, match="3 of 3 images sample mostly outside"):
        bending(away, (20, 24))(images)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bending(away / 10, (20, 24))(images)
        bending(away, (20, 24)).eval()(images)


@pytest.mark.parametrize(
    ("lattice", "text"),
    [((1, 4), "`lattice` must be at least 2 x 2 points"), (4, "(rows, columns)")],
)
def test_bad_lattices_are_rejected(lattice, text):
    with pytest.raises((ValueError, TypeError), match=re.escape(text)):
        SpatialTransformer(nn.Flatten(), (4, 4), transform="thin_plate", lattice=lattice)


def test_a_thin_plate_has_no_theta():
    with pytest.raises(ValueError, match="`transform` must be one with a matrix"):
        bending(torch.zeros(32), (4, 4)).theta(noise(1, 1, 4, 4))
