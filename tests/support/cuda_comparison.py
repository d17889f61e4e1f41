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
from warpkit.engine import triton as cuda

DEVICE = "cuda" if torch.cuda.is_available() and not cuda.INTERPRETED else "cpu"
HERE = DEVICE == "cuda" or cuda.INTERPRETED
SIZE = (4, 5)


def combinations(*factors):
    """All combinations on a device; under the slow interpreter, a few that cover every pair."""
    return list(product(*factors)) if DEVICE == "cuda" else pairs_of_values(*factors)


on_device = [
    pytest.mark.cuda,
    pytest.mark.skipif(not HERE, reason="needs a CUDA device, or TRITON_INTERPRET=1"),
]


@pytest.fixture(autouse=True)
def quiet_interpreter(monkeypatch):
    """A device divides by zero without a warning, and its minimum ignores NaN.

    numpy, which the interpreter uses, warns; up to 3.3, Triton's interpreter returns the NaN.
    """
    if cuda.INTERPRETED:
        from triton.runtime.interpreter import InterpreterBuilder

        for name, least in (("create_minnumf", np.fmin), ("create_maxnumf", np.fmax)):
            monkeypatch.setattr(
                InterpreterBuilder, name, lambda self, a, b, f=least: self.binary_op(a, b, f)
            )
        _index_by_one_value(monkeypatch)
        _spare_the_interpreter(monkeypatch)
    with np.errstate(all="ignore"):
        yield


def _index_by_one_value(monkeypatch):
    """Numbers are arrays (1,) in the interpreter.

    Up to Triton 3.6 it passes them to `int`, which numpy 2.4 refuses.
    """
    from triton.runtime import interpreter

    patch = interpreter._patch_lang_tensor

    def patched(tensor, *scope):
        patch(tensor, *scope)
        tensor.__index__ = lambda self: self.handle.data.item()

    monkeypatch.setattr(interpreter, "_patch_lang_tensor", patched)


def _spare_the_interpreter(monkeypatch):
    """Skip two useless parts of the interpreter, which take half of its time.

    It patches `triton.language` again in every call of a function inside a kernel, and it checks
    integers for overflow, but discards the result unless it debugs.
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
    """Mark a module's tests as tests of kernels, on a device or with the interpreter."""
    for function in [value for name, value in names.items() if name.startswith("test_")]:
        for mark in on_device:
            function.pytestmark = [*getattr(function, "pytestmark", []), mark.mark]


def run(warp, backend, image, where, border_value, **options):
    """The result, and the gradients to image, map (except for nearest) and border value."""
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
    """Compare results and gradients with the reference's, relative to the largest entry."""
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
    """Points inside and outside, on whole pixels, NaN and infinite."""
    where = noise(2, 3, 4, 2, seed=43) * 14 - 3
    where[0, 0, 0], where[1, 1, 1, 0], where[0, 2, 2] = torch.nan, 1e30, torch.tensor([2.0, 4.0])
    return where.to(dtype)
