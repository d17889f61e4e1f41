"""Splats: numpy's definition pixel by pixel, the warp's adjoint, holes, and every gradient."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

import warpkit as wk
from tests.support.inputs import noise
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE
from warpkit import flow
from warpkit.engine.definitions import reference
from warpkit.engine.definitions.rules import SamplingRule


def landing(field, size):
    """(row, column, target row, target column, weight) of each pixel of field (H, W, 2)."""
    for i, j in np.ndindex(field.shape[:2]):
        x, y = j + field[i, j, 0], i + field[i, j, 1]
        for v in (math.floor(y), math.floor(y) + 1):
            for u in (math.floor(x), math.floor(x) + 1):
                share = max(0.0, 1 - abs(x - u)) * max(0.0, 1 - abs(y - v))
                if 0 <= v < size[0] and 0 <= u < size[1]:
                    yield i, j, v, u, share


def naive(image, field, size, factors):
    """Sums of weight x factor x image and of weight x factor, in numpy; factors (H, W)."""
    total, weight = np.zeros((image.shape[0], *size)), np.zeros(size)
    for i, j, v, u, share in landing(field, size):
        total[:, v, u] += share * factors[i, j] * image[:, i, j]
        weight[v, u] += share * factors[i, j]
    return total, weight


def scene(seed=0, size=(6, 7), spread=2.0):
    """An image (2, H, W), a field (H, W, 2) within `spread` pixels, and weights (1, H, W)."""
    field = spread * (2 * noise(*size, 2, seed=seed) - 1)
    return noise(2, *size, seed=seed + 1), field, 3 * noise(1, *size, seed=seed + 2)


def test_sums_and_means_match_numpy():
    image, field, weights = scene()
    for size in ((6, 7), (4, 9)):
        total, weight = naive(image.numpy(), field.numpy(), size, weights[0].numpy())
        ours = flow.splat(image, field, size=size, weights=weights)
        assert np.abs(ours.image.numpy() - total).max() < TOLERANCE["reference float64"]
        assert np.abs(ours.weight[0].numpy() - weight).max() < TOLERANCE["reference float64"]
        mean = flow.splat(image, field, size=size, mode="average", weights=weights)
        seen = weight > 0
        truth = total[:, seen] / weight[seen]
        assert np.abs(mean.image.numpy()[:, seen] - truth).max() < 1e-10
        assert np.array_equal(mean.weight[0] == 0, ~seen)
        assert mean.image.numpy()[:, ~seen].any() == 0
        assert not seen.all()
    plain = flow.splat(image, field, weights=torch.ones(1, 6, 7).double())
    assert torch.equal(plain.image, flow.splat(image, field).image)


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_softmax_matches_numpy_with_a_shift_for_each_target(scale):
    image, field, weights = scene(3)
    logits = scale * (weights - 1.5) / 0.5
    top, share_sum = np.full((6, 7), -np.inf), np.zeros((6, 7))
    for i, j, v, u, share in landing(field.numpy(), (6, 7)):
        top[v, u] = max(top[v, u], logits[0, i, j]) if share else top[v, u]
        share_sum[v, u] += share
    total, weight = np.zeros((2, 6, 7)), np.zeros((6, 7))
    for i, j, v, u, share in landing(field.numpy(), (6, 7)):
        factor = share * np.exp(logits[0, i, j].item() - top[v, u])
        total[:, v, u] += factor * image[:, i, j].numpy()
        weight[v, u] += factor
    options = {"mode": "softmax", "weights": scale * (weights_shift := weights - 1.5)}
    assert weights_shift.abs().max() > 1
    ours = flow.splat(image, field, temperature=0.5, **options)
    truth = np.where(share_sum > 0, total / np.where(share_sum > 0, weight, 1), 0)
    assert np.abs(ours.image.numpy() - truth).max() < 1e-10
    assert np.abs(ours.weight[0].numpy() - share_sum).max() < TOLERANCE["reference float64"]
    single = flow.splat(
        image.float(), field.float(), temperature=0.5, mode="softmax",
        weights=(scale * weights_shift).float(),
    )  # fmt: skip
    assert single.image.isfinite().all()
    assert np.array_equal(single.weight[0] == 0, share_sum == 0)


def test_a_single_pixel_of_low_weight_is_visible_and_a_heavier_one_covers_it():
    image = torch.tensor([[[1.0, 2.0, 4.0, 8.0]]])
    field = torch.zeros(1, 4, 2)
    field[0, 1, 0] = -1  # moves onto the first pixel
    weights = torch.tensor([[[-1e4, 1e4, 0.0, -1e4]]])
    ours = flow.splat(image, field, mode="softmax", weights=weights)
    assert ours.image.tolist() == [[[2, 0, 4, 8]]]
    assert ours.weight.tolist() == [[[2, 0, 1, 1]]]
    weights[0, 0, 3] = -torch.inf
    assert flow.splat(image, field, mode="softmax", weights=weights).weight[0, 0, 3] == 0


def test_a_zero_flow_gives_the_image_to_the_bit():
    image = noise(2, 3, 7, 9, dtype=torch.float32)
    still, weights = torch.zeros(7, 9, 2), 1e4 * noise(1, 7, 9)
    for mode in ("sum", "average", "softmax"):
        ours = flow.splat(image, still, mode=mode, weights=weights if mode == "softmax" else None)
        assert torch.equal(ours.image, image)
        assert torch.equal(ours.weight, torch.ones(2, 1, 7, 9))


def test_a_sum_is_the_adjoint_of_the_warp():
    field, other = scene(spread=4.0, size=(9, 8))[1], noise(3, 5, 6, seed=9)
    image = noise(3, 9, 8, seed=4)
    there = (flow.splat(image, field, size=(5, 6)).image * other).sum()
    back = (image * wk.warp_flow(other, field)).sum()
    assert (there - back).abs() < 1e-12


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
def test_kernels_agree_with_the_reference(interpolation):
    from warpkit.engine import cpu

    rule = SamplingRule(interpolation, "constant", "exact")
    image, points = noise(2, 1, 3, 6, 7), flow.to_points(scene(spread=4.0)[1]).expand(4, 6, 7, 2)
    points = (points + noise(4, 1, 1, 2)).requires_grad_()
    ours, truth = (m.splat(image, points, (5, 8), rule) for m in (cpu, reference))
    assert ours.shape == (2, 4, 3, 5, 8)
    assert (ours - truth).abs().max() < TOLERANCE["reference float64"]
    push = noise(2, 4, 3, 5, 8, seed=3)
    if interpolation == "bilinear":
        grads = [torch.autograd.grad((out * push).sum(), points)[0] for out in (ours, truth)]
        assert (grads[0] - grads[1]).abs().max() < TOLERANCE["reference float64"]


def test_the_same_bits_for_any_number_of_threads():
    image, field = noise(3, 300, 310, dtype=torch.float32), 30 * noise(300, 310, 2)
    weights, before, found = noise(1, 300, 310), torch.get_num_threads(), []
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        found.append(
            [flow.splat(image, field, mode=m, weights=weights) for m in ("sum", "softmax")]
        )
    torch.set_num_threads(before)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            assert torch.equal(a.image, b.image)
            assert torch.equal(a.weight, b.weight)


@pytest.mark.parametrize("mode", ["sum", "average", "softmax"])
def test_gradients(mode):
    image, field, weights = (t.requires_grad_() for t in scene(5, size=(2, 3), spread=1.0))
    cool = torch.tensor(0.7).double().requires_grad_(mode == "softmax")

    def splat(i, f, w, t):
        temperature = t if mode == "softmax" else 1.0
        return tuple(flow.splat(i, f, mode=mode, weights=w, temperature=temperature))

    inputs = (image, field, weights, cool)
    assert gradcheck(splat, inputs, check_forward_ad=mode == "sum")
    assert gradgradcheck(splat, inputs)


def test_gradients_are_finite_where_the_weight_is_tiny():
    """A pixel reaches a target with weight 1e-30; a division by it would overflow."""
    image, weights = noise(1, 2, 3, dtype=torch.float32), torch.full((1, 2, 3), 1e4)
    field = torch.zeros(2, 3, 2).double()
    field[0, 0, 0], field[1, 0, 1] = 1e-30, 1e-16
    field = field.requires_grad_()
    for mode in ("average", "softmax"):
        ours = flow.splat(image.requires_grad_(), field, mode=mode, weights=weights)
        grads = torch.autograd.grad(ours.image.sum(), (image, field))
        assert all(grad.isfinite().all() for grad in grads)


def test_every_type_is_splatted():
    image, field, _ = scene()
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        ours = flow.splat(image.to(dtype), field.half(), mode="average")
        truth = flow.splat(image.to(dtype).double(), field.half(), mode="average")
        assert ours.image.dtype == ours.weight.dtype == dtype
        assert (ours.image - truth.image).abs().max() <= torch.finfo(dtype).eps
    bytes_ = (255 * image).byte()
    ours, truth = flow.splat(bytes_, field), flow.splat(bytes_.double(), field)
    assert torch.equal(ours.image.double(), truth.image.round().clamp(max=255))
    assert truth.image.max() > 255


def test_batches_vmap_compile_and_forward_mode():
    image, fields, weights = noise(2, 1, 3, 5, 6), noise(4, 5, 6, 2), noise(3, 1, 1, 1, 5, 6)
    for mode in ("average", "softmax"):
        many = flow.splat(image, fields, mode=mode, weights=weights)
        assert many.image.shape == (3, 2, 4, 3, 5, 6)
        one = flow.splat(image[1, 0], fields[2], mode=mode, weights=weights[2, 0, 0])
        assert (many.image[2, 1, 2] - one.image).abs().max() < 1e-14
        assert (many.weight.expand(3, 2, 4, 1, 5, 6)[2, 1, 2] - one.weight).abs().max() < 1e-14

        def splat(f, mode=mode):
            return flow.splat(image[0, 0], f, mode=mode, weights=weights[0, 0, 0]).image

        mapped, truth = torch.vmap(splat)(fields), torch.stack([splat(f) for f in fields])
        assert (mapped - truth).abs().max() < 1e-14
        if mode == "average":
            continue
        compiled = torch.compile(splat, fullgraph=True, backend="aot_eager")
        leaf, leaf2 = (fields[0].clone().requires_grad_() for _ in range(2))
        compiled(leaf).square().sum().backward()
        splat(leaf2).square().sum().backward()
        assert leaf.grad is not None
        assert leaf2.grad is not None
        assert (leaf.grad - leaf2.grad).abs().max() < TOLERANCE["two modes float64"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"flow": torch.zeros(4, 6, 2)}, "`flow` must be of shape (..., 4, 5, 2), an offset for"),
        ({"flow": torch.zeros(2, 4, 5)}, "(..., 2, h, w) is flow.movedim(-3, -1)"),
        ({"mode": "max"}, "`mode` must be one of 'sum', 'average', 'softmax', 'front', got 'max'"),
        ({"weights": torch.zeros(4, 5)}, "`weights` must be of shape (..., 1, 4, 5), got (4, 5)"),
        ({"weights": -torch.ones(1, 4, 5), "mode": "average"}, "`weights` must be at least 0 with"),
        ({"weights": torch.full((1, 4, 5), torch.nan)}, "`weights` must be other than NaN"),
        ({"temperature": 0.5}, "`temperature` must be 1 with mode='sum', got 0.5"),
        ({"temperature": 0.0, "mode": "softmax"}, "`temperature` must be above 0, got 0.0"),
        ({"size": 5}, "`size` must be (H, W)"),
        ({"weights": torch.zeros(2, 1, 4, 5), "flow": torch.zeros(3, 4, 5, 2)}, "must broadcast"),
    ],
    ids=["flow", "planar flow", "mode", "weights", "negative weights", "NaN", "temperature",
         "temperature 0", "size", "batches"],
)  # fmt: skip
def test_errors(options, text):
    with pytest.raises((ValueError, TypeError), match=re.escape(text)):
        flow.splat(torch.zeros(3, 4, 5), **{"flow": torch.zeros(4, 5, 2), **options})


def test_an_exported_splat_gives_the_same_result():
    class Module(torch.nn.Module):
        def forward(self, image, field, weights):
            mean = flow.splat(image, field, mode="average", weights=weights)
            return flow.splat(mean.image, field, mode="softmax", weights=weights).image

    inputs = scene()[0], scene()[1], scene()[2]
    program = torch.export.export(Module(), inputs).module()
    assert (program(*inputs) - Module()(*inputs)).abs().max() < TOLERANCE["two modes float64"]
