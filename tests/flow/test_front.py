"""`splat(mode="front")`: a loop's z-buffer, ties, holes, every type, and the image's gradient."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from tests.support.inputs import noise
from tests.support.second_order import gradgradcheck
from warpkit import flow
from warpkit.engine.operators.front import FRONT

NAN, INF = float("nan"), float("inf")


def naive(image, field, depth, size):
    """The image in front and where there is one, in numpy; depth (H, W)."""
    shown, nearest = np.zeros((image.shape[0], *size), image.dtype), np.full(size, NAN)
    filled = np.zeros(size, bool)
    for i, j in np.ndindex(depth.shape):
        x, y = np.rint(j + float(field[i, j, 0])), np.rint(i + float(field[i, j, 1]))
        if math.isnan(depth[i, j]) or not (0 <= x < size[1] and 0 <= y < size[0]):
            continue
        v, u = int(y), int(x)
        if not filled[v, u] or depth[i, j] < nearest[v, u]:
            shown[:, v, u], nearest[v, u], filled[v, u] = image[:, i, j], depth[i, j], True
    return shown, filled


def scene(*batch: int, dtype: torch.dtype = torch.float64):
    """Few depths, so that many are equal; some are special, and so are some offsets."""
    field = 3 * (2 * noise(*batch, 8, 9, 2, seed=1) - 1)
    depth = (3 * noise(*batch, 1, 8, 9, seed=2)).floor()
    depth[..., 0, 0, :4] = torch.tensor([NAN, INF, -INF, -0.0]).double()
    field[..., 1, :4, :] = torch.tensor([NAN, INF, 1e300, 0.5]).double()[:, None]
    return noise(*batch, 2, 8, 9), field.to(dtype), depth.to(dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("size", [(8, 9), (5, 14), (1, 1)])
def test_the_nearest_is_shown_as_in_a_loop(size, dtype):
    image, field, depth = scene(3, dtype=dtype)
    for _ in range(2):
        found = flow.splat(image, field, size=size, mode="front", depth=depth)
        for n in range(3):
            shown, filled = naive(image[n].numpy(), field[n].numpy(), depth[n, 0].numpy(), size)
            assert np.array_equal(found.image[n].numpy(), shown)
            assert np.array_equal(found.weight[n, 0].numpy(), filled.astype(float))
    formula = FRONT.formula(size, image, field, depth[..., 0, :, :])
    assert torch.equal(found.image, formula[0])
    assert torch.equal(found.weight[..., 0, :, :] > 0, formula[1])


def test_equal_depths_show_the_first_and_whole_numbers_are_half_to_even():
    image = torch.arange(1.0, 5.0).reshape(1, 1, 4)
    together = torch.tensor([[[1.0, 0], [0, 0], [-1, 0], [-2, 0]]])
    for depth, first in (
        ([0.0, -0.0, 0.0, 0.0], 1),
        ([2.0, 1.0, 1.0, 3.0], 2),
        ([INF, INF, INF, INF], 1),
        ([NAN, INF, 5.0, -INF], 4),
    ):
        found = flow.splat(image, together, mode="front", depth=torch.tensor([[depth]]))
        assert found.image.tolist() == [[[0, first, 0, 0]]]
        assert found.weight.tolist() == [[[0, 1, 0, 0]]]
    halves = torch.tensor([[[0.5, 0], [0.5, 0], [0.5, 0], [9.0, 0]]])
    found = flow.splat(image, halves, mode="front", depth=torch.ones(1, 1, 4))
    assert found.image.tolist() == [[[1, 0, 2, 0]]]  # 0.5, 1.5 and 2.5 go to 0, 2 and 2
    none = flow.splat(image, halves + NAN, mode="front", depth=torch.ones(1, 1, 4))
    assert not none.image.any()
    assert not none.weight.any()


TYPES = [
    torch.uint8, torch.int16, torch.uint16, torch.int8, torch.int32, torch.int64, torch.bool,
    torch.float16, torch.bfloat16, torch.float32,
]  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_is_moved_and_not_changed(dtype):
    _, field, depth = scene()
    bits = torch.randint(0, 100, (2, 8, 9), generator=torch.Generator().manual_seed(0))
    image = bits.to(dtype)
    if dtype == torch.int64:
        image = image + 2**62 + 1
    found = flow.splat(image, field, mode="front", depth=depth)
    assert found.image.dtype == dtype
    plain = image.float() if dtype == torch.bfloat16 else image
    shown, _ = naive(plain.numpy(), field.numpy(), depth[0].numpy(), (8, 9))
    assert np.array_equal(found.image.to(plain.dtype).numpy(), shown)
    assert found.weight.dtype == (dtype if dtype.is_floating_point else torch.float32)


def test_the_same_bits_for_any_number_of_threads_and_any_strides():
    image, field, depth = scene(4)
    large = [v.repeat_interleave(30, -3 + k) for v, k in ((image, 1), (field, 0), (depth, 1))]
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(flow.splat(large[0], large[1], mode="front", depth=large[2]))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(found[0].image, other.image) for other in found[1:])
    strided = [v.repeat_interleave(2, -1)[..., ::2] for v in (image, field, depth)]
    plain = flow.splat(image, field, mode="front", depth=depth)
    again = flow.splat(strided[0], strided[1], mode="front", depth=strided[2])
    assert torch.equal(plain.image, again.image)
    # crops of a larger image, a flipped one, channels last, and one pixel for all
    wide = noise(4, 2, 11, 13)
    views = wide[..., 1:9, 2:11], wide[..., 1:9, 2:11].flip(-1), wide[..., :1, :1].expand_as(image)
    for view in (*views, image.contiguous(memory_format=torch.channels_last)):
        found = flow.splat(view, field, mode="front", depth=depth)
        same = flow.splat(view.clone(), field, mode="front", depth=depth)
        assert torch.equal(found.image, same.image)
        shown, _ = naive(view[1].numpy(), field[1].numpy(), depth[1, 0].numpy(), (8, 9))
        assert np.array_equal(found.image[1].numpy(), shown)


def test_batches_broadcast():
    image, field, depth = noise(2, 1, 3, 8, 9), scene(4)[1], scene(5, 1, 1)[2]
    found = flow.splat(image, field, mode="front", depth=depth)
    assert found.image.shape == (5, 2, 4, 3, 8, 9)
    assert found.weight.shape == (5, 2, 4, 1, 8, 9)
    one = flow.splat(image[1, 0], field[2], mode="front", depth=depth[3, 0, 0])
    assert torch.equal(found.image[3, 1, 2], one.image)
    empty = flow.splat(image[:0], field, mode="front", depth=depth)
    assert empty.image.shape == (5, 0, 4, 3, 8, 9)


def test_gradients_reach_the_image_alone():
    image, field, depth = scene(2)
    leaf = image.requires_grad_()

    def shown(image):
        return flow.splat(image, field, mode="front", depth=depth).image

    assert gradcheck(shown, leaf, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(lambda image: shown(image.sin()), leaf)
    for name in ("flow", "depth"):
        given = {"flow": field, "depth": depth}
        given[name] = given[name].clone().requires_grad_()
        with pytest.warns(UserWarning, match=f"splat: no gradient reaches `{name}` under nearest"):
            found = flow.splat(image, given["flow"], mode="front", depth=given["depth"])
        (grad,) = torch.autograd.grad(found.image.sum(), leaf)
        assert grad.sum() == 2 * found.weight.sum()


def test_vmap_and_compiled_code(fresh_compiler):
    image, field, depth = scene(3)

    def shown(*given):
        found = flow.splat(given[0], given[1], mode="front", depth=given[2])
        return found.image, found.weight

    wanted = shown(image, field, depth)
    for found in (
        torch.func.vmap(shown)(image, field, depth),
        torch.compile(shown, backend="aot_eager", fullgraph=True)(image, field, depth),
    ):
        assert torch.equal(found[0], wanted[0])
        assert torch.equal(found[1], wanted[1])


BAD = {
    "no depth": ({"mode": "front"}, "`depth` must be given with mode='front'"),
    "depth": (
        {"mode": "sum", "depth": torch.ones(1, 8, 9)},
        "`depth` must be None with mode='sum'",
    ),
    "shape": (
        {"mode": "front", "depth": torch.ones(8, 9)},
        "`depth` must be of shape (..., 1, 8, 9), got (8, 9)",
    ),
    "weights": (
        {"mode": "front", "depth": torch.ones(1, 8, 9), "weights": torch.ones(1, 8, 9)},
        "`weights` must be None with mode='front', got Tensor",
    ),
    "temperature": (
        {"mode": "front", "depth": torch.ones(1, 8, 9), "temperature": 2.0},
        "`temperature` must be 1 with mode='front', got 2.0",
    ),
    "batches": (
        {"mode": "front", "depth": torch.ones(3, 1, 8, 9)},
        "the batch dimensions of `image`",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_errors(name):
    options, text = BAD[name]
    image, field, _ = scene(2)
    with pytest.raises((ValueError, TypeError), match=re.escape(text)):
        flow.splat(image, field, **options)
