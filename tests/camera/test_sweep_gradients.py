"""Gradients of plane sweeps: all orders and modes, and none that is NaN."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from tests.camera.test_depth import LENSES, OTHER, OWN
from tests.camera.test_depth_gradients import lens, matrix_of, numbers_of
from tests.camera.test_sweeps import MEASURES, POSES
from tests.support.inputs import noise
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE
from warpkit import camera

SIZE = H, W = 2, 3
SMALL = numbers_of(OWN) * torch.tensor([0.2, 0.2, 0.15, 0.1])
THERE = numbers_of(OTHER) * torch.tensor([0.2, 0.2, 0.3, 0.3])


def scene(depths: Tensor) -> list[Tensor]:
    inputs = [noise(2, *SIZE), noise(2, 2, 4, 5, seed=1), depths, SMALL.clone()]
    return [*inputs, POSES[:, :3].clone(), THERE.clone()]


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("border", [None, "constant", ("wrap", "replicate")], ids=str)
def test_gradients_of_all_orders_and_modes(measure, border):
    inputs = [value.requires_grad_() for value in scene(torch.tensor([1.3, 2.9]).double())]

    def of(view: Tensor, sources: Tensor, depths: Tensor, own: Tensor, *others: Tensor) -> Tensor:
        poses, there = others
        found = camera.plane_sweep(
            view, sources, depths, matrix_of(own), poses, matrix_of(there)[None],
            measure=measure, groups=2, border=border,
        )  # fmt: skip
        return found.cost

    assert gradcheck(of, inputs, check_forward_ad=True, fast_mode=True)
    assert gradgradcheck(of, inputs)


CASES = [
    ("ray", "pinhole", "brown 14"),
    ("inverse", "brown 5", "fisheye"),
    ("z", "fisheye", "brown 5"),
]


@pytest.mark.parametrize(("kind", "own", "other"), CASES)
def test_gradients_of_lenses_and_of_depths_for_each_pixel(kind, own, other):
    k, other_k = lens(own), lens(other)
    inputs = scene(1 + noise(2, *SIZE, seed=3))
    inputs += [value for value in (k, other_k) if value is not None]
    inputs = [value.requires_grad_() for value in inputs]

    def of(view: Tensor, sources: Tensor, depths: Tensor, mine: Tensor, *others: Tensor) -> Tensor:
        poses, there, *lenses = others
        found = camera.plane_sweep(
            view, sources, depths, matrix_of(mine), poses, matrix_of(there)[None], kind=kind,
            distortion=None if k is None else lenses.pop(0), model=LENSES[own][1],
            source_distortions=None if other_k is None else lenses.pop(0)[None],
            source_model=LENSES[other][1], measure="variance",
        )  # fmt: skip
        return found.cost

    assert gradcheck(of, inputs, fast_mode=True)
    assert gradgradcheck(of, inputs)


def test_the_slope_at_the_edge_is_that_of_the_cell_inside():
    """At the identity, rectified: a shift along y changes all rows by the cells' own slopes."""
    picture = torch.arange(20.0).double().reshape(1, 4, 5)
    camera_matrix = matrix_of(SMALL)
    shift = torch.zeros(3).double().requires_grad_()
    pose = camera.pose(torch.eye(3).double(), shift)[None]
    found = camera.plane_sweep(
        torch.ones_like(picture), picture[None], [1.0], camera_matrix, pose, kind="inverse"
    )
    assert found.seen.min() == 1
    (grad,) = torch.autograd.grad(found.cost.sum(), shift)
    assert grad[0].item() == pytest.approx(20 * float(SMALL[0]))  # x grows by 1 a pixel
    assert grad[1].item() == pytest.approx(20 * 5 * float(SMALL[1]))


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("border", [None, "constant", "reflect"])
@pytest.mark.parametrize("per_pixel", [False, True])
def test_first_gradients_in_float32_are_those_in_float64(measure, border, per_pixel):
    """float32 has kernels; the definition's float64 gradients are checked above."""
    size, channels = (9, 21), 12
    view, sources = noise(channels, *size), noise(2, channels, 11, 19, seed=1)
    depths = 1 + 3 * noise(3, *(size if per_pixel else (1, 1)), seed=2)
    depths[1, 0, 0] = torch.nan
    inputs = [view, sources, depths, numbers_of(OWN), POSES[:, :3].clone(), numbers_of(OTHER)]
    weights = noise(4, 3, *size, seed=5)

    def grads(*values: Tensor) -> Any:
        values = tuple(value.clone().requires_grad_() for value in values)
        view, sources, depths, own, poses, there = values
        found = camera.plane_sweep(
            view, sources, depths, matrix_of(own), poses, matrix_of(there)[None],
            measure=measure, groups=4, border=border,
        )  # fmt: skip
        product = (found.cost * weights.to(found.cost.dtype)).sum()
        return torch.autograd.grad(product, values)

    truth = grads(*inputs)
    for _ in range(2):
        found = grads(inputs[0].float(), inputs[1].float(), *inputs[2:])
        for a, b in zip(found, truth, strict=True):
            assert (a - b).abs().max() <= TOLERANCE["matching gradient"] * b.abs().max()


def test_a_missing_depth_and_a_hidden_view_have_no_gradient():
    inputs = scene(torch.tensor([1.3, -1.0, torch.nan, torch.inf]).double())
    inputs[1] = inputs[1].float()
    inputs[0] = inputs[0].float()
    values = [value.requires_grad_() for value in inputs]
    view, sources, depths, own, poses, there = values
    for border in (None, "constant"):
        found = camera.plane_sweep(
            view, sources, depths, matrix_of(own), poses, matrix_of(there)[None], border=border
        )
        grads = torch.autograd.grad(found.cost.sum(), values)
        assert all(grad.isfinite().all() for grad in grads)
        assert not grads[2][1:3].any()


def test_under_vmap_and_compile():
    inputs = scene(torch.tensor([1.3, 2.9]).double())
    view, sources, depths, own, poses, there = inputs

    def of(view: Tensor, depths: Tensor, poses: Tensor) -> Tensor:
        return camera.plane_sweep(
            view, sources, depths, matrix_of(own), poses, matrix_of(there)[None]
        ).cost

    close = TOLERANCE["matching torch.float64"]
    views, many = torch.stack((view, 2 * view)), torch.stack((poses, poses.flip(0)))
    batched = torch.vmap(of, (0, None, 0))(views, depths, many)
    assert (batched[1] - of(views[1], depths, many[1])).abs().max() <= close
    grads = torch.vmap(torch.func.grad(lambda *a: of(*a).sum(), (0, 1)), (0, None, 0))(
        views, depths, many
    )
    assert grads[1].shape == (2, 2)
    compiled = torch.compile(of, fullgraph=True, backend="aot_eager")
    assert (compiled(view, depths, poses) - of(view, depths, poses)).abs().max() <= close
