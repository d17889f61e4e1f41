"""Calls on a device never synchronise: their code runs here on tensors without memory.

No value is read back, and none is copied from the host: either would stop the device's queue and
end the capture of a graph.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import warpkit as wk
from warpkit.engine import triton as cuda
from warpkit.engine.definitions.rules import SamplingRule

pytest.importorskip("triton")

from warpkit.engine.triton import image_gradient as to_image
from warpkit.engine.triton import inverse as invert
from warpkit.engine.triton import launch

CALLS = {
    "affine": lambda image, m: wk.warp_affine(image, m[:, :2]),
    "affine (3, 3)": lambda image, m: wk.warp_affine(image, m),
    "numbers": lambda image, m: wk.warp_affine(
        image + m.sum(), [[1, 0, 2.5], [0, 1, 0]], border_value=(0.1, 0.2, 0.3)
    ),
    "inverse": lambda image, m: wk.warp_affine(image, m, inverse=True, border="wrap"),
    "perspective": lambda image, m: wk.warp_perspective(image, m, interpolation="bicubic"),
    "straight through": lambda image, m: wk.warp_affine(
        image, m, image_gradient="straight_through"
    ),
    "antialias": lambda image, m: wk.warp_affine(image, m, antialias=2),
    "points": lambda image, m: wk.remap(image, m[:, None, :, :2], border="reflect_101"),
    "second order": lambda image, m: torch.autograd.grad(
        wk.warp_affine(image, m).square().sum(), image, create_graph=True
    )[0],
}


class NoWaiting(TorchDispatchMode):
    """Refuses operations that read a value back or move one between devices."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert "_local_scalar" not in str(func)
        assert "nonzero" not in str(func)
        given = [t.device.type for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        result = func(*args, **(kwargs or {}))
        made = [t.device.type for t in tree_leaves(result) if isinstance(t, Tensor)]
        assert set(given + made) <= {"meta"}, f"{func} leaves the device"
        return result


def refuse(*_, **__):
    raise AssertionError("a copy from the host")


@pytest.fixture
def _no_launch(monkeypatch):
    """Run everything except kernels, and accept this device in this backend."""
    monkeypatch.setattr(cuda, "unsupported_reasons", lambda *_: [])
    for owner, name in ((torch, "tensor"), (torch, "as_tensor"), (Tensor, "new_tensor")):
        # they copy numbers from the host
        monkeypatch.setattr(owner, name, refuse)
    for module in (invert, launch, to_image):
        monkeypatch.setattr(module, "launch", lambda *_, **__: None)


def make(*shape: int) -> Tensor:
    return torch.empty(*shape, device="meta", requires_grad=True)


@pytest.mark.usefixtures("_no_launch")
@pytest.mark.parametrize("name", CALLS)
def test_calls_and_their_gradients_stay_on_the_device(name):
    image, matrix = make(2, 3, 8, 9), make(2, 3, 3)
    with NoWaiting():
        CALLS[name](image, matrix).sum().backward()
    assert image.grad is not None
    assert matrix.grad is not None


@pytest.mark.usefixtures("_no_launch")
@pytest.mark.parametrize("border", ["constant", "reflect"])
@pytest.mark.parametrize("where", [(2, 3), (3, 3), (4, 5, 2)])
@pytest.mark.parametrize("batch", [(4,), (2, 1)])
def test_launches_stay_on_the_device(where, border, batch):
    """The functions that operators call; the fake implementations above skip them."""
    with NoWaiting():
        inputs = [make(*batch, 3, 8, 9).detach(), make(1, 4, *where).detach(), make(3, 1, 1)]
        rule = SamplingRule("bilinear", border)
        out = launch.forward(*inputs, (4, 5), rule)
        found = launch.backward(torch.empty_like(out), *inputs, (4, 5), rule, [True] * 3)
    for gradient, tensor in zip(found, inputs, strict=True):
        assert gradient.shape == tensor.shape
