"""Kernels get addresses of tensors on the CPU only."""

from __future__ import annotations

import pytest
import torch

from warpkit.engine.cpu import calls, launch
from warpkit.engine.definitions.rules import SamplingRule


def test_a_tensor_of_another_device_has_no_address():
    tensor = torch.zeros(3)
    assert calls.address(tensor) == tensor.data_ptr()
    with pytest.raises(AssertionError, match="on the CPU got a tensor on meta"):
        calls.address(tensor.to("meta"))


@pytest.mark.parametrize("elsewhere", range(3))
def test_a_warp_and_its_gradient_are_not_launched_with_one(elsewhere):
    given = [torch.zeros(1, 1, 4, 5), torch.eye(2, 3).double()[None], torch.zeros(())]
    given[elsewhere] = given[elsewhere].to("meta")
    options = (4, 5), SamplingRule("bilinear", "constant")
    with pytest.raises(AssertionError, match="a kernel on the CPU got"):
        launch.forward(*given, *options)
    with pytest.raises(AssertionError, match="a kernel on the CPU got"):
        launch.backward(torch.zeros(1, 1, 4, 5), *given, *options, [True, False, True])
