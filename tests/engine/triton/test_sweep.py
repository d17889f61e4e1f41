"""Plane sweeps by the CUDA kernels, against the definition."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.support.cuda_comparison import DEVICE, mark_all, quiet_interpreter  # noqa: F401
from tests.support.inputs import noise
from tests.support.tolerances import TOLERANCE
from warpkit import camera
from warpkit.engine.definitions import lens_models, lens_rays
from warpkit.engine.definitions import sweep as definition
from warpkit.engine.definitions.depth import KINDS
from warpkit.engine.definitions.sweep import MEASURES, Sweep
from warpkit.engine.operators.sweep import SWEEP

NAN, INF = float("nan"), float("inf")
SIZE = (4, 7)
BORDERS = [None, "constant", "replicate", "reflect", "reflect_101", "wrap", "wrap,constant"]


def options_of(measure="squared", border=None, groups=3, kind="z", model="brown", pinhole=True):
    return Sweep(kind, model, pinhole, SIZE, measure, groups, border)


def scene(options: Sweep, channels=6, planes=3, count=0, flat=False, alone=False) -> list[Tensor]:
    """Two items of two views each, whose features are shared, and depths of all kinds."""
    sources = noise(1, 2, channels, 5, 8).float() - 0.5
    depths = 0.6 + noise(2, planes, *((1, 1) if flat else SIZE), seed=1)
    if not flat:
        depths[0, 0, 0, :6] = torch.tensor([NAN, INF, 0.0, -1.0, 1e-300, 1e300])
    rays = torch.tensor([9.0, 8, 3, 1.5], dtype=torch.float64)
    if not options.pinhole:
        y, x = torch.meshgrid(*(torch.arange(n).double() for n in SIZE), indexing="ij")
        rays = torch.stack(((x - 3) / 9, (y - 1.5) / 8, torch.ones_like(x) - x / 50))
        rays[:, 1, 2] = NAN
    turn = camera.rotation(vector=0.05 * (noise(2, 2, 3, seed=2) - 0.5))
    poses = torch.cat((turn, 0.4 * (noise(2, 2, 3, 1, seed=3) - 0.5)), -1).double()
    poses[1, 1, :, :3], poses[1, 1, :, 3] = torch.eye(3), 0  # places on the edges exactly
    k = 0.1 * (noise(count, seed=4) - 0.4)
    numbers = torch.cat((torch.tensor([9.0, 8, 3.4, 2]).double(), k))[None]
    ends = lens_rays.end_of(lens_models.unpacked(options.model, numbers))
    tensors = [sources, depths, rays, poses, numbers, ends]
    if not alone:
        tensors.append(noise(1, channels, *SIZE, seed=5).float())
    return [t.to(DEVICE) for t in tensors]


def results(call, options, tensors, skipped=()) -> tuple[Tensor, Tensor, list[Tensor]]:
    leaves = [t.detach().requires_grad_(n not in (5, *skipped)) for n, t in enumerate(tensors)]
    cost, seen = call(options, *leaves)
    used = [leaf for leaf in leaves if leaf.requires_grad]
    return cost, seen, list(torch.autograd.grad(cost, used, noise(*cost.shape, seed=9).to(cost)))


def compare(options, tensors, skipped=()):
    """The kernels' costs and gradients with the definition's; every call is made twice."""
    cost, seen, slopes = results(definition.cost, options, tensors, skipped)
    kernels = lambda *given: SWEEP(*given, device="triton")  # noqa: E731
    calls = [results(kernels, options, tensors, skipped) for _ in range(2)]
    assert calls[0][0].grad_fn.name() == "NodeBackward"  # pyright: ignore
    for mine, same in zip(calls[0][2], calls[1][2], strict=True):
        assert torch.equal(mine, same)
    assert torch.equal(calls[0][0], calls[1][0])
    assert torch.equal(calls[1][1], seen)
    assert (calls[1][0] - cost).abs().max() <= 4 * TOLERANCE["matching torch.float32"]
    for mine, theirs in zip(calls[1][2], slopes, strict=True):
        assert mine.dtype == theirs.dtype
        limit = TOLERANCE["matching gradient"] * max(1.0, float(theirs.abs().max()))
        assert (mine - theirs).abs().max() <= limit


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("border", [None, "constant"])
def test_all_measures(measure, border):
    options = options_of(measure, border)
    compare(options, scene(options))


@pytest.mark.parametrize("border", BORDERS[2:])
def test_all_borders(border):
    options = options_of("variance", border, groups=6)
    compare(options, scene(options, alone=border in ("wrap", "reflect")))


def test_the_variance_of_sources_alone():
    options = options_of("variance")
    compare(options, scene(options, alone=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("model", "count"), [("brown", 5), ("brown", 14), ("fisheye", 4)])
def test_lenses_and_kinds(kind, model, count):
    options = options_of("correlation", None, 2, kind, model, pinhole=count == 5)
    compare(options, scene(options, 4, 1, count, flat=count == 14))


@pytest.mark.parametrize(("channels", "groups"), [(40, 1), (40, 2), (34, 34), (1, 1)])
def test_groups_of_all_sizes_and_more_planes_than_a_program_has(channels, groups):
    options = options_of("difference", None, groups)
    compare(options, scene(options, channels, 1 if channels > 1 else 9, flat=channels == 1))


@pytest.mark.parametrize("skipped", [(0,), (1, 2, 3, 4), (0, 6)])
def test_some_gradients_alone(skipped):
    options = options_of("absolute")
    compare(options, scene(options), skipped)


def test_what_is_not_finite_spoils_what_reads_it():
    for border in (None, "constant"):
        options = options_of("variance", border)
        tensors = scene(options)
        tensors[0][0, 0, 1, 2, 2], tensors[6][0, 2, 1, 1] = NAN, INF
        tensors[3][0, 1, 1, 1] = NAN
        found = results(lambda *given: SWEEP(*given, device="triton"), options, tensors)
        truth = results(definition.cost, options, tensors)
        for mine, theirs in zip((found[0], *found[2]), (truth[0], *truth[2]), strict=True):
            assert torch.equal(mine.isfinite(), theirs.isfinite())


def test_empty_batches_and_planes():
    options = options_of()
    tensors = scene(options)
    tensors[1] = tensors[1][:, :0]
    cost, seen, slopes = results(lambda *given: SWEEP(*given, device="triton"), options, tensors)
    assert cost.shape == (2, 3, 0, *SIZE)
    assert seen.shape == (2, 0, *SIZE)
    assert not any(slope.any() for slope in slopes)
    tensors[1], tensors[3] = tensors[1][:0], tensors[3][:0]
    cost, _, slopes = results(lambda *given: SWEEP(*given, device="triton"), options, tensors)
    assert cost.shape == (0, 3, 0, *SIZE)


mark_all(globals())
