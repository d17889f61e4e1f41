"""Whatever outlives a call inside torch.inference_mode() works in later calls with gradients."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import warpkit as wk
from tests.support.every_call import assert_equal, results_in
from warpkit.core.lasting import lasting


def test_all_functions_train_after_calls_inside_inference_mode(tmp_path: Path):
    """As in a process without these calls, the first and the second time."""
    fresh, after = results_in("plain", tmp_path), results_in("inference_mode", tmp_path)
    assert after.keys() == fresh.keys()
    assert_equal(after, fresh)


def test_kept_tensors_are_ordinary_ones():
    make = lasting(torch.zeros)
    with torch.inference_mode():
        assert torch.zeros(2).is_inference()
        assert not make(2).is_inference()
        assert torch.is_inference_mode_enabled()
        with pytest.raises(TypeError):
            make("2")  # pyright: ignore
        assert torch.is_inference_mode_enabled()


def test_a_parameter_is_warped_in_training_after_a_validation():
    image = torch.nn.Parameter(torch.arange(6.0).reshape(1, 2, 3))
    shift = torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    with torch.inference_mode():
        wk.warp_affine(image, shift, border_value=2.5)
    for _ in range(2):
        out = wk.warp_affine(image, shift, border_value=2.5)
        assert out.tolist() == [[[2.5, 0.0, 1.0], [2.5, 3.0, 4.0]]]
        (gradient,) = torch.autograd.grad(out.sum(), image)
        assert gradient.tolist() == [[[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]]]
