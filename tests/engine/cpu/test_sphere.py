"""Positions and pixels on the sphere by the native library, compared with the definition."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.engine.cpu.test_library import available, run
from tests.support.guarded_memory import survives
from tests.support.inputs import noise
from tests.support.naive_sphere import turn
from tests.support.tolerances import TOLERANCE
from warpkit import camera
from warpkit.engine.cpu import sphere as kernels
from warpkit.engine.definitions import sphere as definition
from warpkit.engine.operators.sphere import view

SIZES = [((37, 53), (1080, 2160)), ((1, 1), (7, 15)), ((5, 9), (4096, 8192)), ((3, 64), (8, 16))]
TURNS = [turn(), turn(180), turn(10, 89.9), turn(-100, -50, 20), turn(0, -90).round()]


def matrices(size, focal=20.0):
    height, width = size
    pixels = [[1 / focal, 0, -(width - 1) / 2 / focal], [0, 1 / focal, -(height - 1) / 2 / focal]]
    return torch.from_numpy(np.stack([t.T @ np.array([*pixels, [0, 0, 1]]) for t in TURNS]))


@pytest.mark.parametrize(("size", "sphere_size"), SIZES)
def test_positions_match_the_definition_up_to_whole_turns(size, sphere_size):
    matrix = matrices(size)
    found, ends = kernels.found_places(matrix, size, sphere_size)
    truth = definition.places_of_pixels(matrix, size, sphere_size)
    off = found - truth
    turns = (off[..., 0] / sphere_size[1]).round()
    assert set(turns.unique().tolist()) <= {-1.0, 0.0, 1.0}
    off[..., 0] -= turns * sphere_size[1]
    # the arctangent is accurate to two units in the last place of up to half the width
    assert off.abs().max() < 1e-15 * sphere_size[1]
    assert np.array_equal(ends[..., 0], found[..., 1].amin(-1).numpy())
    assert np.array_equal(ends[..., 1], found[..., 1].amax(-1).numpy())


@pytest.mark.parametrize(("size", "sphere_size"), SIZES)
def test_the_gradient_matches_the_definition(size, sphere_size):
    matrix = matrices(size).requires_grad_()
    truth = definition.places_of_pixels(matrix, size, sphere_size)
    push = noise(*truth.shape)
    (wanted,) = torch.autograd.grad(truth, matrix, push)
    found = kernels._to_matrix(matrix.detach(), push, size, sphere_size)
    assert (found - wanted).abs().max() < TOLERANCE["pieces"] * wanted.abs().max()
    again = kernels._to_matrix(matrix.detach()[1], push[1], size, sphere_size)
    assert torch.equal(found[1], again)


def test_nonfinite_directions_have_no_position():
    matrix = matrices((3, 5))
    matrix[0, 1, 2], matrix[1, 0, 0], matrix[2, 2, 2] = torch.nan, torch.inf, 1e200
    matrix[3] = 0
    found, ends = kernels.found_places(matrix, (3, 5), (8, 16))
    assert found[0].isnan().all()
    assert found[1].isnan().all()
    assert found[2].isnan().all()
    assert (found[3] == torch.tensor([7.5, 3.5])).all()
    assert np.isinf(ends[:3]).all()
    grad = kernels._to_matrix(matrix, torch.ones(5, 3, 5, 2, dtype=torch.float64), (3, 5), (8, 16))
    assert (grad[:4] == 0).all()


@pytest.mark.parametrize("size", [(6, 12), (40, 81), (9, 3)], ids=str)
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos4"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_views_and_their_gradients_match_the_definition(interpolation, dtype, size):
    picture = noise(3, *size, dtype=dtype).requires_grad_()
    matrix = matrices((37, 53))[:4].requires_grad_()  # the last one looks exactly at a pole
    found = view(picture, matrix, (37, 53), interpolation)
    points = definition.places_of_pixels(matrix, (37, 53), size)
    truth = definition.sample(picture, points, interpolation)
    near = TOLERANCE[f"cpu {dtype}"]
    assert (found - truth).abs().max() <= near
    push = noise(*truth.shape).to(dtype)
    wanted = [picture] if interpolation == "nearest" else [picture, matrix]
    ours, theirs = (torch.autograd.grad(seen, wanted, push) for seen in (found, truth))
    for mine, definitions in zip(ours, theirs, strict=True):
        assert (mine - definitions).abs().max() <= near * definitions.abs().max()


CALLS = """
import sys, torch
from tests.engine.cpu.test_sphere import matrices
from tests.support.inputs import noise
from warpkit.engine.cpu import sphere as kernels
from warpkit.engine.cpu.native_library import LIBRARY
assert LIBRARY.isa == sys.argv[2]
matrix = matrices((37, 53))
places, ends = kernels.found_places(matrix, (37, 53), (1080, 2160))
sums = kernels._to_matrix(matrix, noise(*places.shape), (37, 53), (1080, 2160))
torch.save((places, torch.from_numpy(ends), sums), sys.argv[1])
"""


def test_instruction_sets_give_the_same_positions(tmp_path):
    found = {}
    for isa in available():
        run(CALLS, str(tmp_path / isa), isa, WARPKIT_ISA=isa)
        found[isa] = torch.load(tmp_path / isa)
    if "avx512" in found and "avx2" in found:
        for one, other in zip(found["avx512"][:2], found["avx2"][:2], strict=True):
            assert torch.equal(one, other)
    for places, _, sums in found.values():
        first = next(iter(found.values()))
        assert (places - first[0]).abs().max() < 1e-15 * 2160
        assert (sums - first[2]).abs().max() < TOLERANCE["pieces"] * first[2].abs().max()


HOSTILE = """
import torch
from tests.support.guarded_memory import guard_what_is_made, guarded
from warpkit import camera
guard_what_is_made()
torch.manual_seed(0)
big = [0.0, 1.0, -1.0, 0.5, 1e5, -3e9, 2.0**31, 1e100, 1e300, float("inf"), float("nan")]
import warnings; warnings.simplefilter("ignore")
for size in ((9, 14), (3, 5)):
    for n in range(40):
        turn = torch.tensor(big, dtype=torch.float64)[torch.randint(len(big), (2, 3, 3))]
        leaves = [guarded(t).requires_grad_() for t in (torch.rand(2, 3, *size), turn)]
        for interpolation in ("nearest", "bilinear", "lanczos4"):
            seen = camera.from_sphere(
                leaves[0], (17, 19), field_of_view=90.0, rotation=leaves[1],
                interpolation=interpolation,
            )
            seen.backward(guarded(torch.rand_like(seen)))
"""


def test_hostile_rotations_stay_inside_the_arrays():
    assert survives(HOSTILE)


def test_results_have_the_same_bits_for_any_number_of_threads():
    sphere = noise(3, 200, 400, dtype=torch.float32).requires_grad_()
    rotation = torch.from_numpy(turn(30, 80)).requires_grad_()
    before, seen = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            view = camera.from_sphere(sphere, (400, 500), field_of_view=90.0, rotation=rotation)
            grads = torch.autograd.grad(view.square().sum(), (sphere, rotation))
            seen.append([view.detach(), *grads])
    finally:
        torch.set_num_threads(before)
    for other in seen[1:]:
        assert all(map(torch.equal, seen[0], other))
