"""Local correlation against formulas in numpy, published layers, and by hand."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import gradcheck

from tests.support import naive_matching
from tests.support.inputs import noise
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE
from warpkit import flow

NAN, INF = float("nan"), float("inf")


def flows(*batch: int, size: tuple[int, int] = (5, 6), reach: float = 3.0) -> Tensor:
    return (noise(*batch, *size, 2, seed=7) - 0.5) * 2 * reach


BORDERS = [
    "constant", "replicate", "reflect", "reflect_101", "wrap", "zeros", "border",
    ("replicate", "constant"), ("constant", "wrap"), ["reflect", "reflect_101"],
]  # fmt: skip
OPENCVS = {"zeros": "constant", "border": "replicate"}


def pair(border: Any) -> tuple[str, str]:
    along = (border, border) if isinstance(border, str) else tuple(border)
    y, x = (OPENCVS.get(name, name) for name in along)
    return y, x


@pytest.mark.parametrize("border", BORDERS, ids=str)
@pytest.mark.parametrize(
    ("radius", "step", "size"),
    [(0, 1.0, (4, 5)), (1, 1.0, (1, 1)), (2, 0.75, (3, 7)), ((0, 3), 2.0, (6, 2)), ((2, 1), 1, (1, 4))],
)  # fmt: skip
@pytest.mark.parametrize("moved", [True, False])
def test_values_are_numpys(border, radius, step, size, moved):
    first, second = noise(3, 5, 6), noise(3, *size, seed=1)
    offsets = flows(reach=9.0) if moved else None
    if offsets is not None:
        offsets[0, 0], offsets[1, 2, 0], offsets[2, 3, 1] = NAN, INF, 2.0**31
        offsets[3, 3] = torch.tensor([-3.0, -3.0])
    by = np.zeros((5, 6, 2)) if offsets is None else offsets.numpy()
    both = radius if isinstance(radius, tuple) else (radius, radius)
    truth = naive_matching.correlation(first.numpy(), second.numpy(), by, both, step, pair(border))
    for dtype in (torch.float64, torch.float32):
        for _ in range(2):
            found = flow.correlation(
                first.to(dtype), second.to(dtype), offsets, radius=radius, step=step, border=border
            )
            assert found.dtype == dtype
            off = np.abs(found.double().numpy() - truth).max()
            assert off <= TOLERANCE[f"matching {dtype}"]


@pytest.mark.parametrize("radius", range(9))
def test_every_radius_with_and_without_a_flow(radius):
    """A square of every side: a kernel that lacks one would return memory as it was."""
    first, second = noise(5, 4, 21), noise(5, 6, 19, seed=1)
    offsets = flows(size=(4, 21), reach=4.0)
    for by in (None, offsets):
        moved = np.zeros((4, 21, 2)) if by is None else offsets.numpy()
        truth = naive_matching.correlation(
            first.numpy(), second.numpy(), moved, (radius, radius), 1, ("constant",) * 2
        )
        found = flow.correlation(first.float(), second.float(), by, radius=radius).double()
        assert np.abs(found.numpy() - truth).max() <= TOLERANCE["matching torch.float32"]


def test_pwc_net_flownet_and_raft():
    first, second = noise(2, 24, 10, 14).float(), noise(2, 24, 10, 14, seed=1).float()
    close = TOLERANCE["matching torch.float32"]
    pad = F.pad(second, (4,) * 4)
    shifted = [
        (first * pad[..., j : j + 10, i : i + 14]).mean(1) for j in range(9) for i in range(9)
    ]
    assert (flow.correlation(first, second) - torch.stack(shifted, 1)).abs().max() <= close
    pad = F.pad(second, (20,) * 4)
    shifted = [
        (first * pad[..., j : j + 10, i : i + 14]).mean(1)
        for j in range(0, 41, 2)
        for i in range(0, 41, 2)
    ]
    found = flow.correlation(first, second, radius=10, step=2)
    assert (found - torch.stack(shifted, 1)).abs().max() <= close
    # RAFT: the volume of all pairs over sqrt(C), looked up with dx slowest
    volume = torch.einsum("bchw,bcij->bhwij", first, second).reshape(-1, 1, 10, 14) / 24**0.5
    y, x = torch.meshgrid(torch.arange(10.0), torch.arange(14.0), indexing="ij")
    at = torch.stack((x, y), -1)
    places = at + 4 * (noise(2, 10, 14, 2, seed=2).float() - 0.5)
    d = torch.arange(-4.0, 5)
    square = torch.stack(torch.meshgrid(d, d, indexing="ij"), -1)  # (dx, dy), dx slowest
    grid = (places.reshape(-1, 1, 1, 2) + square) / torch.tensor([13.0, 9.0]) * 2 - 1
    truth = F.grid_sample(volume, grid, align_corners=True).reshape(2, 10, 14, 81)
    found = flow.correlation(first, second, places - at).unflatten(1, (9, 9)).transpose(1, 2)
    found = found.flatten(1, 2) * 24**0.5
    assert (found - truth.permute(0, 3, 1, 2)).abs().max() <= 5 * close


def test_steps_that_leave_every_picture():
    """Of offsets too far for kernels, the centre alone is inside."""
    first, second = noise(3, 4, 5).float(), noise(3, 4, 5, seed=1).float()
    for step in (100, 1e9, 3e9):
        found = flow.correlation(first, second, radius=1, step=step)
        centre = flow.correlation(first, second, radius=0)[0]
        assert (found[4] - centre).abs().max() <= TOLERANCE["matching torch.float32"]
        assert not found[[0, 1, 2, 3, 5, 6, 7, 8]].any()


def test_batches_broadcast_and_any_strides_are_read():
    first = noise(2, 1, 5, 3, 4)[..., ::2, :].float()
    second, offsets = noise(3, 5, 4, 4, seed=1).float(), flows(2, 1, size=(2, 4)).float()
    found = flow.correlation(first, second, offsets, radius=1)
    assert found.shape == (2, 3, 9, 2, 4)
    for i, j in np.ndindex(2, 3):
        one = flow.correlation(first[i, 0], second[j], offsets[i, 0], radius=1)
        assert torch.equal(one, found[i, j])
    last = second.to(memory_format=torch.channels_last)
    planes = offsets.movedim(-1, -3).contiguous().movedim(-3, -1)
    assert torch.equal(found, flow.correlation(first, last, planes, radius=1))
    assert torch.equal(found[0, :1], flow.correlation(first[0], second[:1], offsets[0], radius=1))


@pytest.mark.parametrize(
    ("first", "second", "offsets"),
    [((0, 3, 4, 5), (3, 4, 5), None), ((3, 0, 5), (3, 4, 5), (0, 5, 2)), ((3, 4, 0), (3, 2, 2), None)],
)  # fmt: skip
def test_empty_pictures_have_empty_results(first, second, offsets):
    left, right = torch.rand(first, requires_grad=True), torch.rand(second, requires_grad=True)
    by = None if offsets is None else torch.rand(offsets, requires_grad=True)
    found = flow.correlation(left, right, by, radius=1)
    assert found.shape == (*first[:-3], 9, *first[-2:])
    found.sum().backward()
    assert right.grad is not None
    assert not right.grad.any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_rounded_once(dtype):
    first, second = noise(9, 5, 6).to(dtype), noise(9, 5, 6, seed=1).to(dtype)
    truth = flow.correlation(first.float(), second.float(), flows(), radius=1).to(dtype)
    on = torch.autocast("cpu", torch.bfloat16)
    for context in (nullcontext(), on):
        with context:
            assert torch.equal(flow.correlation(first, second, flows(), radius=1), truth)


def test_places_are_exact_far_from_the_origin():
    width, column = 9_001, 9_000
    second = torch.arange(float(width)).double()[None, None]
    first = torch.zeros(1, 1, width).double()
    first[..., column] = 1
    by = torch.full((1, width, 2), -0.1)
    by[..., 1] = 0
    found = flow.correlation(first, second, by, radius=0)[0, 0, column]
    assert found.item() == pytest.approx(column - float(by[0, 0, 0]) * -1, abs=1e-9)


def test_a_feature_that_is_not_finite_spoils_only_what_reads_it():
    for bad in (NAN, INF):
        first, second = noise(4, 6, 20).float(), noise(4, 6, 20, seed=1).float()
        clean = [flow.correlation(first, second, radius=1)]
        clean.append(flow.correlation(first, second, flows(size=(6, 20)) + 0.03, radius=1))
        second[1, 2, 3] = bad
        found = flow.correlation(first, second, radius=1)
        for n, (dy, dx) in enumerate((j, i) for j in (-1, 0, 1) for i in (-1, 0, 1)):
            assert not found[n, 2 - dy, 3 - dx].isfinite()
        assert (~found.isfinite()).sum() == 9
        moved = flow.correlation(first, second, flows(size=(6, 20)) + 0.03, radius=1)
        same = moved.isfinite()
        assert torch.equal(moved[same], clean[1][same])
        # the constant border reads nothing outside: places beyond the edge stay 0
        edge = noise(4, 6, 20).float()
        edge[:, 0] = bad
        by = torch.tensor([0.0, -8.0]).expand(6, 20, 2)
        assert not flow.correlation(first, edge, by, radius=1).any()
    first = noise(4, 2, 2)
    first[:, 0, 0] = NAN
    by = torch.zeros(2, 2, 2)
    by[0, 0] = NAN
    assert flow.correlation(first, first.nan_to_num(), by, radius=1).isfinite().all()


@pytest.mark.parametrize("border", ["constant", "replicate", ("wrap", "reflect")], ids=str)
@pytest.mark.parametrize("moved", [True, False])
def test_gradients_of_all_orders_and_modes(border, moved):
    inputs = [noise(2, 1, 2, 2, 3), noise(2, 2, 3, 2, seed=1)]
    inputs += [flows(size=(2, 3), reach=1.7) + 0.01] if moved else []
    inputs = [value.requires_grad_() for value in inputs]

    def of(*tensors: Tensor) -> Tensor:
        return flow.correlation(*tensors, radius=1, step=0.8, border=border)

    # entry by entry once, and along random directions elsewhere: 1 s, not 9
    modes = {"check_forward_ad": True, "check_batched_grad": True}
    assert gradcheck(of, inputs, fast_mode=moved or border != "constant", **modes)
    assert gradgradcheck(of, inputs)


@pytest.mark.parametrize("moved", [True, False])
def test_gradients_are_adjoint(moved):
    """<g, correlation(a, b)> is linear in a and in b."""
    first, second = noise(19, 7, 21).float(), noise(19, 6, 23, seed=1).float()
    by = flows(size=(7, 21), reach=5.0).float() if moved else None
    for border in ("constant", "replicate", "reflect", ("wrap", "reflect_101")):
        left, right = first.clone().requires_grad_(), second.clone().requires_grad_()
        found = flow.correlation(left, right, by, radius=2, border=border)
        weights = noise(*found.shape, seed=3).float()
        for _ in range(2):
            grads = torch.autograd.grad(found, (left, right), weights, retain_graph=True)
            product = (found.detach().double() * weights.double()).sum()
            for value, grad in zip((first, second), grads, strict=True):
                inner = (value.double() * grad.double()).sum()
                assert float(inner) == pytest.approx(float(product), rel=1e-5)


def test_no_gradient_comes_from_a_place_that_is_none():
    by = flows()
    by[1, 2], by[2, 2, 0], by[3, 3, 1] = NAN, INF, 2.0**40
    inputs = [noise(3, 5, 6).float(), noise(3, 5, 6, seed=1).float(), by.float()]
    inputs = [value.requires_grad_() for value in inputs]
    grads = torch.autograd.grad(flow.correlation(*inputs).sum(), inputs)
    assert all(grad.isfinite().all() for grad in grads)
    for y, x in ((1, 2), (2, 2), (3, 3)):
        assert not grads[0][:, y, x].any()
        assert not grads[2][y, x].any()


def test_under_vmap_and_compile():
    first, second, by = noise(3, 4, 5, 6), noise(4, 5, 6, seed=1), flows(3)

    def of(first: Tensor, second: Tensor, by: Tensor) -> Tensor:
        return flow.correlation(first, second, by, radius=1)

    close = TOLERANCE["matching torch.float64"]
    batched = torch.vmap(of, (0, None, 0))(first, second, by)
    assert (batched - of(first, second, by)).abs().max() <= close
    grads = torch.vmap(torch.func.grad(lambda *a: of(*a).sum(), (0, 1, 2)), (0, None, 0))(
        first, second, by
    )
    assert grads[1].shape == (3, 4, 5, 6)
    compiled = torch.compile(of, fullgraph=True, backend="aot_eager")
    assert (compiled(first, second, by) - of(first, second, by)).abs().max() <= close


P = torch.rand(2, 3, 4)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((P.numpy(), P), {}, "`first` must be a tensor of shape (..., C, H, W), got ndarray"),
        ((P, P.long()), {}, "`second` must be of one of the types float16, bfloat16, float32, float64"),
        ((P, P.double()), {}, "`second` must be of the type of `first`, torch.float32, got torch.float64"),
        ((P, P[:1]), {}, "`second` must be of as many channels as `first`, 2, got (1, 3, 4)"),
        ((P[0], P), {}, "`first` must be of shape (..., C, H, W), got (3, 4)"),
        ((P[:0], P[:0]), {}, "`first` must be of shape (..., C, H, W) with at least a channel"),
        ((P, P[:, :0]), {}, "`second` must be of shape (..., C, H, W) with at least a channel and a pixel"),
        ((P.expand(2, 2, 3, 4), P.expand(3, 2, 3, 4)), {}, "the batch dimensions of `first` and `second`"),
        ((P, P, torch.zeros(4, 3, 2)), {}, "`flow` must be of shape (..., 3, 4, 2)"),
        ((P, P, torch.zeros(2, 3, 4)), {}, "(..., 2, h, w) is flow.movedim(-3, -1)"),
        ((P, P), {"radius": -1}, "`radius` must be a whole number from 0, or a pair, (rows, columns), got -1"),
        ((P, P), {"radius": 1.5}, "`radius` must be a whole number from 0"),
        ((P, P), {"radius": True}, "`radius` must be a whole number from 0"),
        ((P, P), {"radius": (1, 2, 3)}, "`radius` must be a whole number from 0"),
        ((P, P), {"step": 0}, "`step` must be a finite number above 0, got 0"),
        ((P, P), {"step": INF}, "`step` must be a finite number above 0, got inf"),
        ((P, P), {"step": "1"}, "`step` must be a finite number above 0"),
        ((P, P), {"border": "transparent"}, "`border` must be a border other than 'transparent'"),
        ((P, P), {"border": "reflection"}, "`border` must be 'reflect'"),
    ],
)  # fmt: skip
def test_errors_say_what_was_wanted(arguments, options, message):
    with pytest.raises((TypeError, ValueError)) as caught:
        flow.correlation(*arguments, **options)
    assert message in str(caught.value)
    assert str(caught.value).startswith("correlation: ")


def test_coordinates_in_place_of_a_flow_cause_a_warning():
    picture = torch.rand(3, 32, 40)
    y, x = torch.meshgrid(torch.arange(32.0), torch.arange(40.0), indexing="ij")
    with pytest.warns(UserWarning, match="correlation: `flow` runs over the pixels"):
        flow.correlation(picture, picture, torch.stack((x, y), -1), radius=0)
