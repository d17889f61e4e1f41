"""Helpers for tests of the CUDA kernels: the device, and the comparison with the reference."""

from __future__ import annotations

import dataclasses
from itertools import product

import numpy as np
import pytest
import torch

import warpkit as wk
from tests.support.inputs import noise
from tests.support.pairs_of_values import pairs_of_values
from tests.support.tolerances import TOLERANCE
from warpkit.engine.backends import cuda

DEVICE = "cuda" if torch.cuda.is_available() and not cuda.INTERPRETED else "cpu"
HERE = DEVICE == "cuda" or cuda.INTERPRETED
SIZE = (4, 5)


def combinations(*factors):
    """All on a device; under the interpreter, which is slow, those in which every pair occurs."""
    return list(product(*factors)) if DEVICE == "cuda" else pairs_of_values(*factors)


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
        _spare_the_interpreter(monkeypatch)
    with np.errstate(all="ignore"):
        yield


def _spare_the_interpreter(monkeypatch):
    """Half of its time goes into two things that come to nothing: leave both out.

    It replaces what is in `triton.language` again at every call of a function inside a kernel; and
    it computes whether whole numbers overflow, and drops the answer where it does not debug.
    """
    from triton import language
    from triton.runtime import interpreter

    replace = interpreter._patch_lang

    def replace_once(function):
        langs = [x for x in function.__globals__.values() if x in (language, language.core)]
        if any(language.core.is_builtin(lang.load) for lang in langs):
            return replace(function)

    monkeypatch.setattr(interpreter, "_patch_lang", replace_once)
    options = interpreter.interpreter_builder.options
    if not options.debug:
        options = dataclasses.replace(options, sanitize_overflow=False)
        monkeypatch.setattr(interpreter.interpreter_builder, "options", options)


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
