"""Kernels of matching: hostile numbers, threads, memory, and derivatives beyond the first."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.camera.test_depth import LENSES, OTHER, OWN
from tests.camera.test_sweeps import POSES
from tests.engine.cpu.test_library import run
from tests.support.guarded_memory import survives
from tests.support.inputs import noise
from tests.support.tolerances import TOLERANCE
from warpkit import camera, flow
from warpkit.engine.cpu.native_library import LIBRARY

pytestmark = pytest.mark.skipif(LIBRARY is None, reason="no native library")

PROGRAM = """
import torch
from tests.support.guarded_memory import guard_what_is_made, guarded
from warpkit.engine.cpu import correlation, sweep
from warpkit.engine.definitions.correlation import Square
from warpkit.engine.definitions.sweep import MEASURES, Sweep
from warpkit.engine.definitions.rules import BORDERS
guard_what_is_made()
torch.manual_seed(0)
bad = torch.tensor([0.0, 1.0, -1.0, 0.5, 5.0, -3e9, 2.0**31, 1e300, float("nan"), float("inf")])
bad = bad.double()
pick = lambda *shape: guarded(bad[torch.randint(len(bad), shape)])
single = lambda *shape: guarded(pick(*shape).float())
borders = [b for b in BORDERS if b != "transparent"]
for n, (c, h, w, H, W) in enumerate(
    [(1, 1, 1, 1, 1), (3, 3, 17, 2, 5), (17, 2, 33, 9, 31), (16, 0, 3, 1, 2), (2, 4, 16, 1, 40)]
):
    for radius in ((0, 0), (1, 4), (3, 17)):
        for border in (*borders, "wrap,constant"):
            first, second = single(2, c, h, w), single(2, c, H, W)
            flow = pick(2, h, w, 2) if n % 2 else single(2, h, w, 2)
            for tensors in ((first, second), (first, second, flow)):
                options = Square(radius, 1.0 if len(tensors) == 3 else 1.0 + n % 3, border)
                found, _ = correlation.forward(options, *tensors)
                grads = (guarded(torch.rand_like(found)),)
                correlation.backward(options, None, grads, tensors, (True,) * len(tensors))
    for measure in (*MEASURES, "alone"):
        for border in (None, *borders, "reflect,constant"):
            for kind, pinhole, count in (("z", True, 0), ("ray", False, 4), ("inverse", True, 14)):
                alone = measure == "alone"
                model = "fisheye" if count == 4 else "brown"
                options = Sweep(
                    kind, model, pinhole, (h, w), "variance" if alone else measure, c, border
                )
                flat = n % 2 and not alone
                tensors = [
                    single(2, 3, c, H, W), pick(2, 2, *((1, 1) if flat else (h, w))),
                    pick(2, 4) if pinhole else pick(2, 3, h, w), pick(2, 3, 3, 4),
                    pick(2, 3, 4 + count), pick(2, 3),
                ]
                if n % 2 == 0:  # so that places are reached
                    tensors[3] = guarded(torch.eye(3, 4).double().expand(2, 3, 3, 4).contiguous())
                    if pinhole:
                        tensors[2] = guarded(torch.ones(2, 4).double())
                    plain = torch.zeros(2, 3, 4 + count).double()
                    plain[..., :4] = 1
                    tensors[4] = guarded(plain)
                    tensors[5] = guarded(torch.full((2, 3), 3.0).double())
                tensors += [] if alone else [single(2, c, h, w)]
                (cost, seen), kept = sweep.forward(options, *tensors)
                grads = (guarded(torch.rand_like(cost)),)
                sweep.backward(options, kept, grads, tuple(tensors), (True,) * len(tensors))
"""


def test_hostile_numbers_stay_inside_the_arrays():
    assert survives(PROGRAM)


THREADS = """
import torch
from warpkit import camera, flow
torch.manual_seed(0)
first, second = torch.randn(2, 32, 40, 60), torch.randn(1, 32, 50, 70)
by = 9 * torch.randn(2, 40, 60, 2)
matrix = torch.tensor([[50.0, 0, 31], [0, 52, 22], [0, 0, 1]]).double()
poses = torch.eye(4).double().repeat(3, 1, 1)
poses[:, 0, 3] = torch.tensor([0.2, -0.3, 0.1])
per_pixel = 1 + torch.rand(6, 40, 60)
def all_of():
    made = []
    for border in ("constant", "reflect"):
        leaves = [v.clone().requires_grad_() for v in (first, second, by)]
        found = flow.correlation(*leaves, radius=3, border=border)
        made += [found, *torch.autograd.grad(found.square().sum(), leaves)]
    for depths in (torch.linspace(1, 5, 6), per_pixel):
        values = first, second.expand(3, -1, -1, -1), depths, matrix, poses
        leaves = [v.clone().requires_grad_() for v in values]
        options = {"measure": "variance", "groups": 4}
        found = camera.plane_sweep(*leaves, leaves[3].detach()[None], **options).cost
        made += [found, *torch.autograd.grad(found.square().sum(), leaves)]
    return made
results = []
for count in (1, 2, 5):
    torch.set_num_threads(count)
    results.append(all_of())
print(all(torch.equal(a, b) for other in results[1:] for a, b in zip(results[0], other)))
"""


def test_any_number_of_threads_gives_the_same_bits():
    assert run(THREADS).stdout.strip() == "True"


PEAK = """
import resource, sys, torch
from warpkit import camera, flow
from warpkit.engine.cpu import memory
torch.set_num_threads(1)
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
def correlated(size):
    leaves = [torch.rand(1, 64, *size, requires_grad=True) for _ in range(2)]
    flow.correlation(*leaves, torch.rand(1, *size, 2)).sum().backward()
def swept(size, planes):
    view = torch.rand(32, *size, requires_grad=True)
    sources = torch.rand(2, 32, *size, requires_grad=True)
    matrix = torch.tensor([[50.0, 0, size[1] / 2], [0, 50, size[0] / 2], [0, 0, 1]])
    poses = torch.eye(4).repeat(2, 1, 1)
    poses[:, 0, 3] = torch.tensor([0.2, -0.2])
    depths = torch.linspace(1, 9, planes)
    camera.plane_sweep(view, sources, depths, matrix, poses).cost.sum().backward()
correlated((9, 9)), swept((9, 9), 2)
before = peak()
correlated((96, 128)) if sys.argv[1] == "correlation" else swept((96, 128), 64)
print(peak() - before)
"""


@pytest.mark.parametrize(("name", "most"), [("correlation", 45), ("sweep", 40)])
def test_nothing_of_the_size_of_all_samples_is_kept(name, most):
    """64 channels x 81 offsets and 32 x 64 depths of 96 x 128 pixels are 255 and 101 MB."""
    assert float(run(PEAK, name).stdout) < most


def test_second_derivatives_of_float32_are_those_of_float64():
    first, second, by = noise(3, 4, 18), noise(3, 5, 17, seed=1), 2 * noise(4, 18, 2, seed=2)
    view, sources = noise(4, 4, 18), noise(2, 4, 5, 17, seed=1)
    depths = 1 + noise(2, 4, 18, seed=3)

    def twice(dtype: torch.dtype) -> list[Tensor]:
        a, b = (v.to(dtype).requires_grad_() for v in (first, second))
        found = flow.correlation(a, b, by, radius=1)
        (grad,) = torch.autograd.grad(found.square().sum(), b, create_graph=True)
        results = list(torch.autograd.grad(grad.square().sum(), (a, b)))
        a, b = (v.to(dtype).requires_grad_() for v in (view, sources))
        d = depths.clone().requires_grad_()
        found = camera.plane_sweep(a, b, d, OWN, POSES, OTHER[None], measure="variance").cost
        grads = torch.autograd.grad(found.sum(), (b, d), create_graph=True)
        total = sum(grad.square().sum() for grad in grads)
        assert isinstance(total, Tensor)
        return results + list(torch.autograd.grad(total, (a, b, d)))

    for found, truth in zip(twice(torch.float32), twice(torch.float64), strict=True):
        assert (found - truth).abs().max() <= TOLERANCE["matching gradient"] * truth.abs().max()


@pytest.mark.parametrize("own", ["pinhole", "brown 5", "fisheye"])
@pytest.mark.parametrize("other", ["pinhole", "brown 14", "fisheye"])
@pytest.mark.parametrize("kind", ["z", "ray", "inverse"])
def test_gradients_to_lenses_are_the_definitions(own, other, kind):
    (k, model), (other_k, other_model) = LENSES[own], LENSES[other]
    numbers = [OWN, OTHER, POSES[:, :3].clone(), 1 + 2 * noise(3, 5, 18, seed=3)]
    numbers += [torch.tensor(v).double() for v in (k, other_k) if v is not None]

    def grads(dtype: torch.dtype) -> tuple[Tensor, ...]:
        view, sources = noise(8, 5, 18).to(dtype), noise(2, 8, 9, 17, seed=1).to(dtype)
        values = [v.clone().requires_grad_() for v in numbers]
        mine, there, poses, depths, *lenses = values
        found = camera.plane_sweep(
            view, sources, depths, mine, poses, there[None], kind=kind, model=model,
            distortion=None if k is None else lenses[0], source_model=other_model,
            source_distortions=None if other_k is None else lenses[-1][None], measure="squared",
        ).cost  # fmt: skip
        return torch.autograd.grad((found * noise(*found.shape, seed=7).to(dtype)).sum(), values)

    for found, truth in zip(grads(torch.float32), grads(torch.float64), strict=True):
        assert (found - truth).abs().max() <= TOLERANCE["matching gradient"] * truth.abs().max()
