"""What the tests of the CUDA kernels share: the device, and the comparison with the reference."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import warpkit as wk
from tests.support.inputs import noise
from tests.support.tolerances import TOLERANCE
from warpkit.engine.backends import cuda

DEVICE = "cuda" if torch.cuda.is_available() and not cuda.INTERPRETED else "cpu"
HERE = DEVICE == "cuda" or cuda.INTERPRETED
SIZE = (4, 5)

on_device = [
    pytest.mark.cuda,
    pytest.mark.skipif(not HERE, reason="needs a CUDA device, or TRITON_INTERPRET=1"),
]


@pytest.fixture(autouse=True)
def quiet_interpreter(monkeypatch):
    """A device divides by zero without a warning, and its minimum leaves a NaN out.

    numpy, which interprets, warns; Triton's interpreter up to 3.3 hands the NaN on.
    """
    if cuda.INTERPRETED:
        from triton.runtime.interpreter import InterpreterBuilder

        for name, least in (("create_minnumf", np.fmin), ("create_maxnumf", np.fmax)):
            monkeypatch.setattr(
                InterpreterBuilder, name, lambda self, a, b, f=least: self.binary_op(a, b, f)
            )
    with np.errstate(all="ignore"):
        yield


def mark_all(names):
    """Mark the tests of a module, which are tests of kernels: a device, or the interpreter."""
    for function in [value for name, value in names.items() if name.startswith("test_")]:
        for mark in on_device:
            function.pytestmark = [*getattr(function, "pytestmark", []), mark.mark]


def run(warp, backend, image, where, border_value, **options):
    """The result and the gradients to image, where (nearest has none) and what stands outside."""
    leaves = [t.detach().to(DEVICE).requires_grad_() for t in (image, where, border_value)]
    if options["border"] == "transparent":
        batch = torch.broadcast_shapes(
            image.shape[:-3], where.shape[: -3 if warp is wk.remap else -2]
        )
        size = where.shape[-3:-1] if warp is wk.remap else SIZE
        below = noise(*batch, image.shape[-3], *size, seed=40).to(leaves[0])
        leaves.append(below.requires_grad_())
        options["background"] = below
    if warp is not wk.remap:
        options["size"] = SIZE
    out = warp(*leaves[:2], border_value=leaves[2], backend=backend, **options)
    grads = torch.autograd.grad(
        out, leaves, (noise(*out.shape, seed=41) - 0.5).to(out), allow_unused=True
    )
    return [out.detach(), *grads]


def check(warp, image, where, interpolation, border):
    """Result and gradients of the kernels against the reference's, relative to the largest."""
    value = noise(image.shape[-3], seed=42).to(torch.promote_types(image.dtype, torch.float32))
    options = {"interpolation": interpolation, "border": border}
    ours = run(warp, "cuda", image, where, value, **options)
    truth = run(warp, "reference", image, where, value, **options)
    tolerance = TOLERANCE[f"cuda {str(image.dtype).removeprefix('torch.')}"]
    for mine, theirs in zip(ours, truth, strict=True):
        if theirs is None:
            assert mine is None
            continue
        assert mine.dtype == theirs.dtype
        scale = max(1.0, float(theirs.double().abs().max()))
        torch.testing.assert_close(mine.double(), theirs.double(), rtol=0, atol=tolerance * scale)


def points(dtype=torch.float64):
    """Inside, outside, whole, NaN and infinitely far."""
    where = noise(2, 3, 4, 2, seed=43) * 14 - 3
    where[0, 0, 0], where[1, 1, 1, 0], where[0, 2, 2] = torch.nan, 1e30, torch.tensor([2.0, 4.0])
    return where.to(dtype)
