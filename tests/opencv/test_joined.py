"""hconcat and vconcat: cv2's pixels, all types, gradients, and errors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

import warpkit.opencv as ours
from tests.support.inputs import noise
from tests.support.installed_opencv import installed_opencv

TYPES = ("uint8", "int8", "uint16", "int16", "int32", "float32", "float64", "float16")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("channels", [(), (1,), (3,), (5,)])
def test_arrays_are_joined_as_by_cv2(dtype, channels):
    cv2 = installed_opencv()
    random = np.random.default_rng(1)
    for name, axis in (("hconcat", 1), ("vconcat", 0)):
        for count in (1, 2, 4):
            shapes = [[4, 4, *channels] for _ in range(count)]
            for k, shape in enumerate(shapes):
                shape[axis] = k + 1
            parts = [(random.normal(size=shape) * 50).astype(dtype) for shape in shapes]
            truth, out = getattr(cv2, name)(parts), getattr(ours, name)(tuple(parts))
            assert (out.shape, out.dtype) == (truth.shape, truth.dtype), (name, axis, count)
            assert np.array_equal(out, truth), (name, axis, count)
            dst = np.zeros((*truth.shape[:2], *channels), dtype)
            assert getattr(ours, name)(parts, dst) is dst, (name, axis, count)


def test_a_stacked_array_and_one_channel_are_accepted():
    stack = np.arange(24).reshape(2, 3, 4)
    assert np.array_equal(ours.hconcat(stack), np.hstack(list(stack)))
    assert np.array_equal(ours.vconcat(stack), np.vstack(list(stack)))
    mixed = ours.hconcat([stack[0], stack[1][..., None]])
    assert np.array_equal(mixed, np.hstack(list(stack)))


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint64, torch.bfloat16, torch.int64])
def test_tensors_of_every_type_are_joined(dtype):
    parts = [torch.ones(2, 3, dtype=dtype), torch.zeros(2, 1, dtype=dtype)]
    out = ours.hconcat(parts)
    assert out.dtype == dtype
    assert out.float().tolist() == [[1, 1, 1, 0]] * 2


def test_gradients_reach_every_part():
    parts = [noise(2, 3, 2).requires_grad_(), noise(2, 1, 2).requires_grad_()]
    assert gradcheck(lambda *p: ours.hconcat(p), parts, check_forward_ad=True)
    parts = [noise(1, 3).requires_grad_(), noise(2, 3).requires_grad_()]
    assert gradcheck(lambda *p: ours.vconcat(p), parts, check_forward_ad=True)


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: ours.hconcat([]), "hconcat: `src` must be a sequence of images, got []"),
        (lambda: ours.hconcat(3), "hconcat: `src` must be a sequence of images, got 3"),
        (lambda: ours.vconcat([np.ones(3)]), "vconcat: `src[0]` must be of shape (H, W)"),
        (
            lambda: ours.hconcat([np.ones((2, 3)), np.ones((3, 3))]),
            "hconcat: `src[1]` must be a ndarray of float64 of the height and channels of src[0]",
        ),
        (
            lambda: ours.vconcat([np.ones((2, 3)), np.ones((2, 3), np.float32)]),
            "vconcat: `src[1]` must be a ndarray of float64 of the width and channels of src[0]",
        ),
        (
            lambda: ours.vconcat([torch.ones(2, 3), np.ones((2, 3), np.float32)]),
            "vconcat: `src[1]` must be a Tensor of torch.float32 of the width",
        ),
    ],
)
def test_errors(build, text):
    with pytest.raises((ValueError, TypeError)) as error:
        build()
    assert str(error.value).startswith(text)
