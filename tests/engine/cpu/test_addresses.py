"""The addresses of arrays that kernels get."""

from __future__ import annotations

import ctypes
import gc

import numpy as np
import pytest
import torch

import warpkit as wk
from warpkit.engine.cpu.native_library import LIBRARY
from warpkit.engine.definitions.rules import SamplingRule

pytestmark = pytest.mark.skipif(LIBRARY is None, reason="no native library")


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64, ">f8", np.bool_])
def test_addresses_equal_numpys(dtype):
    from warpkit.engine.cpu.calls import address_of

    whole = np.zeros((6, 8, 3), dtype)
    still = whole.copy()
    still.flags.writeable = False
    views = (
        whole,
        still,
        whole[2:],
        whole[:, 1::2],
        whole[::-1],
        whole.T,
        whole[:0],
        whole[0, 0, 0:1],
    )
    for array in views:
        assert address_of(array) == array.ctypes.data


def indices_of(call) -> np.ndarray:
    """The numbers that a call's block points to: its items' images and matrices."""
    from warpkit.engine.cpu.warp_calls import FIELDS

    found = []
    for field in ("image_of", "mapping_of"):
        address = int(call.numbers[FIELDS[field]])
        found.append(np.ctypeslib.as_array((ctypes.c_int64 * 2).from_address(address)).copy())
    return np.array(found)


def test_a_gradients_block_keeps_the_arrays_that_it_points_to():
    """As after validation on pictures of many sizes, when the forward's call has been forgotten."""
    from warpkit.engine.cpu import launch, warp_calls

    image, matrix = torch.rand(2, 1, 5, 6), torch.eye(2, 3).double().expand(2, 2, 3).contiguous()
    zero, rule = torch.zeros(()), SamplingRule("bilinear", "constant")
    grad, wanted = torch.rand(2, 1, 5, 6), [True, True, False]
    first = launch.backward(grad, image, matrix, zero, (5, 6), rule, wanted)
    held = launch.prepared(image, matrix, zero, (5, 6), rule).backward[True, True, False]
    for cache in (warp_calls.warp_call, warp_calls.warp_shapes):
        cache.cache_clear()
    call = launch.prepared(image, matrix, zero, (5, 6), rule)
    others = [np.array([1, 0]) for _ in range(1000)]  # in memory that was freed
    again = launch.backward(grad, image, matrix, zero, (5, 6), rule, wanted)
    assert (indices_of(call.backward[True, True, False]) == [[0, 30], [0, 1]]).all()
    assert len(others) == 1000
    assert call.backward[True, True, False] is not held
    for one, other in zip(first[:2], again[:2], strict=True):
        assert torch.equal(one, other)
    assert torch.equal(first[0], grad)  # under the identity


def test_training_after_pictures_of_more_sizes_than_are_kept(monkeypatch):
    from warpkit.engine.binding import plan
    from warpkit.engine.cpu import warp_calls

    monkeypatch.setattr(plan, "_plans", {})
    image, grad = torch.rand(4, 1, 5, 6, requires_grad=True), torch.rand(4, 1, 5, 6)
    matrix = torch.eye(2, 3).repeat(4, 1, 1)
    for _ in range(3):
        assert torch.equal(torch.autograd.grad(wk.warp_affine(image, matrix), image, grad)[0], grad)
        for n in range(40):
            picture = torch.rand(4, 1, 3, 3 + n)
            assert torch.equal(wk.warp_affine(picture, matrix), picture)
        warp_calls.warp_call.cache_clear()
        warp_calls.warp_shapes.cache_clear()
        plan._plans.clear()
        gc.collect()
        assert [np.full(4, n % 4) for n in range(1000)]
