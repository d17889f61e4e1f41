"""Recipes of warps: prepared calls in which only addresses are left to fill in, see `recipes`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from warpkit.core.tracing import is_eager, wants_gradient
from warpkit.engine.backends.cpu import autograd, calls, warp_calls
from warpkit.engine.backends.cpu.inverse import inverse_vjp_numpy, invert
from warpkit.engine.backends.cpu.jobs import Image, Jobs, by_accumulator, partition
from warpkit.engine.backends.cpu.launch import as_shown
from warpkit.engine.backends.cpu.memory import LEAST, empty
from warpkit.engine.backends.cpu.operators import OPERATORS
from warpkit.engine.backends.cpu.warp_calls import FIELDS
from warpkit.engine.backends.inverse import inverse_by, inverse_vjp
from warpkit.engine.backends.recipes import Recipe
from warpkit.engine.sampling.rules import SamplingRule

BACKWARD_ARRAYS = [FIELDS[name] for name in ("grad", "image", "mapping", "grad_image")]
MATRIX_SUMS = FIELDS["grad_mapping"]
WRITTEN = "warp_affine: `matrix` was written to in place, and a gradient of its gradient needs it"
NEEDS_IMAGE, NEEDS_MATRIX = FIELDS["needs_image"], FIELDS["needs_mapping"]


class LeanBackward(NamedTuple):
    """The block of a backward pass, and the jobs whose addresses are in it."""

    numbers: np.ndarray
    jobs: Jobs


class LeanCall(NamedTuple):
    """What calls of given types and shapes have in common."""

    size: tuple[int, int]
    fill: Tensor
    rule: SamplingRule
    forward: bool
    """The matrix maps source -> destination."""
    shape: tuple[int, ...]
    dtype: torch.dtype
    call: warp_calls.WarpCall
    value: np.ndarray
    """The fill, whose address stands in the call."""
    backward: LeanBackward | None
    """None where gradients are sums over what broadcasts, or shared among threads."""


def recipe(
    image: Tensor,
    matrix: Tensor,
    size: tuple[int, int],
    fill: Tensor,
    rule: SamplingRule,
    forward: bool,
) -> Recipe | None:
    """How calls like this one are made, or None.

    image (*I, C, H, W); matrix (*M, 2, 3), source -> destination if `forward`; fill of one number.
    """
    if image.dtype not in warp_calls.TYPES:  # halves are computed with as float32
        return None
    call = warp_calls.warp_call(
        tuple(image.shape),
        tuple(image.shape[:-3]),
        image.dtype,
        False,
        tuple(matrix.shape),
        True,
        tuple(fill.shape),
        size,
        rule.interpolation,
        rule.border,
        False,
        False,
    )
    if call.shapes.values == 0:
        return None
    value = np.array([fill.numpy()])
    if not image.is_floating_point():
        value = as_shown(value, np.dtype(np.uint8))
    call = call._replace(numbers=call.numbers.copy())
    call.numbers[warp_calls.FILL] = value.ctypes.data
    backward = _backward_of(call, image, matrix)
    lean = LeanCall(
        size, fill, rule, forward, call.shapes.shape, image.dtype, call, value, backward
    )

    def make(image: Tensor, matrix: Tensor) -> Tensor:
        """image (..., C, H, W); matrix (..., 2, 3)."""
        if call.taps == 1:  # nearest has no slope, and autograd should say so
            matrix = matrix.detach()
        if not wants_gradient(image, matrix):
            return _forward(lean, image, _source(lean, matrix))
        if lean.backward is None:
            return _eager(lean, image, matrix)
        return LeanWarp.apply(image, matrix, lean)  # pyright: ignore

    return make


def _backward_of(call: warp_calls.WarpCall, image: Tensor, matrix: Tensor) -> LeanBackward | None:
    """The backward pass of a call: image (*I, C, H, W) under matrix (*M, 2, 3)."""
    shapes, batch, sizes = call.shapes, tuple(image.shape[:-3]), Image(*image.shape[-3:])
    if not image.is_floating_point() or matrix.numel() != 6 * shapes.items:
        return None
    shares = partition(batch, shapes.batch, sizes.height, shapes.values)
    if shares.bands > 1 or shares.splits > 1:
        return None
    jobs, numbers = by_accumulator(shares, sizes, shapes.tile_rows), call.numbers.copy()
    numbers[calls.TASK] = calls.TASKS["backward"]
    numbers[FIELDS["jobs"]] = jobs.jobs.ctypes.data
    numbers[FIELDS["starts"]] = jobs.starts.ctypes.data
    return LeanBackward(numbers, jobs)


def _room(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Memory of a shape: ours from where on that is the better one."""
    if prod(shape) * dtype.itemsize < LEAST:
        return torch.empty(shape, dtype=dtype, device="cpu")
    return torch.from_numpy(empty(shape, np.dtype(str(dtype).removeprefix("torch."))))


def _source(lean: LeanCall, matrix: Tensor) -> Tensor:
    """Matrices (*M, 2, 3), destination -> source, in float64."""
    return invert(matrix) if lean.forward else matrix.detach().double()


def _forward(lean: LeanCall, image: Tensor, source: Tensor) -> Tensor:
    """image (*I, C, H, W) under source (*M, 2, 3), destination -> source."""
    out = _room(lean.shape, lean.dtype)
    call, to = lean.call, out.data_ptr()
    numbers = warp_calls.fill_result(
        call, image.data_ptr(), source.data_ptr(), lean.value.ctypes.data, to
    )
    numbers[warp_calls.STREAM] = warp_calls.streams(call, to)
    calls.launch(numbers, 0, call.units, call.shapes.values)
    return out


def _eager(lean: LeanCall, image: Tensor, matrix: Tensor) -> Tensor:
    """The same call on the longer way: image (*I, C, H, W) under matrix (*M, 2, 3)."""
    matrix = matrix if lean.forward else matrix.double()
    return autograd.call(image, matrix, lean.size, lean.fill, lean.rule, lean.forward)


class LeanWarp(torch.autograd.Function):
    """The kernels' result, and gradients to image and matrix by one launch."""

    @staticmethod
    def forward(ctx: Any, image: Tensor, matrix: Tensor, lean: LeanCall) -> Tensor:
        """image (*I, C, H, W) under matrix (*M, 2, 3)."""
        source = _source(lean, matrix)
        # the image's pixels serve the gradient to the map alone
        kept = image if ctx.needs_input_grad[1] else image.new_empty(()).expand(image.shape)
        ctx.save_for_backward(kept)
        ctx.source, ctx.lean = source, lean
        # a gradient of the gradient alone needs the matrix: an optimizer may write to it before
        ctx.matrix = matrix if ctx.needs_input_grad[1] else None
        ctx.version = matrix._version if ctx.needs_input_grad[1] else 0
        return _forward(lean, image, source)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """By the operator where it is to be differentiated, or is a batch."""
        (grad,), lean, wanted = grads, ctx.lean, ctx.needs_input_grad[:2]
        (image,), matrix = ctx.saved_tensors, ctx.matrix
        if torch.is_grad_enabled() or not is_eager(grad):
            source = ctx.source
            if matrix is not None:
                if matrix._version != ctx.version:
                    raise RuntimeError(WRITTEN)
                source = inverse_by(matrix.double(), invert) if lean.forward else matrix.double()
            options = (list(lean.size), lean.rule.interpolation, lean.rule.border, [*wanted, False])
            found: Any = OPERATORS.call_backward(grad, image, source, lean.fill, *options)
            grad_image, grad_matrix = (
                g if w else None for g, w in zip(found, wanted, strict=False)
            )
            if grad_matrix is not None and matrix is not None:
                grad_matrix = inverse_vjp(source, grad_matrix) if lean.forward else grad_matrix
                grad_matrix = grad_matrix.to(matrix.dtype)
            return grad_image, grad_matrix, None
        grad = grad.contiguous()
        grad_image = _room(image.shape, lean.dtype) if wanted[0] else None
        sums = np.zeros((*ctx.source.shape[:-2], 3, 3))  # torch's zeros and slices take 10 us more
        assert lean.backward is not None
        numbers, jobs = lean.backward.numbers.copy(), lean.backward.jobs
        for place, tensor in zip(
            BACKWARD_ARRAYS, (grad, image, ctx.source, grad_image), strict=True
        ):
            numbers[place] = 0 if tensor is None else tensor.data_ptr()
        numbers[MATRIX_SUMS] = sums.ctypes.data
        numbers[NEEDS_IMAGE], numbers[NEEDS_MATRIX] = wanted
        for first, end in jobs.phases:
            calls.launch(numbers, first, end, lean.call.shapes.values)
        if not wanted[1]:
            return grad_image, None, None
        grad_matrix = sums[..., :2, :]
        if lean.forward:
            grad_matrix = inverse_vjp_numpy(ctx.source, grad_matrix)
        return grad_image, torch.from_numpy(grad_matrix).to(matrix.dtype), None
