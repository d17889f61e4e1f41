"""Recipes of warps: all that is not in the kernel is worked out once, see `recipes`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from warpkit.core.tracing import is_eager, wants_gradient
from warpkit.engine.backends.cpu.runtime.result_memory import LEAST, empty
from warpkit.engine.backends.cpu.warps import eager, nearest_launch, pairs_launch
from warpkit.engine.backends.cpu.warps.inverse import inverse_vjp_numpy, invert
from warpkit.engine.backends.cpu.warps.operators import OPERATORS
from warpkit.engine.backends.cpu.warps.pair_jobs import by_accumulator
from warpkit.engine.backends.cpu.warps.work import (
    broadcast_index,
    partition,
    warp_shapes,
)
from warpkit.engine.backends.inverse import inverse_by, inverse_vjp
from warpkit.engine.backends.recipes import Recipe
from warpkit.engine.sampling.rules import TAPS, SamplingRule


class LeanCall(NamedTuple):
    """What calls of given types and shapes have in common."""

    size: tuple[int, int]
    fill: Tensor
    rule: SamplingRule
    forward: bool
    """The matrix maps source -> destination."""
    shape: tuple[int, ...]
    dtype: torch.dtype
    launch: Callable[[int, int, int], None]
    """Fills a result, given the addresses of image, map and result."""
    back: pairs_launch.BackwardCall | None
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
    shapes = warp_shapes(image.shape, matrix.shape, fill.shape, size, rule.border)
    taps = TAPS[rule.interpolation]
    moved = taps == 1 and image.dtype is torch.uint8
    if not (moved or pairs_launch.takes_pairs(image.dtype, shapes, taps)) or shapes.values == 0:
        return None
    images = broadcast_index(image.shape[:-3], shapes.batch)
    value, back = np.array([fill.numpy()]), None
    value = nearest_launch.as_shown(value, np.dtype(np.uint8)) if moved else value
    given = shapes, image.numel(), matrix.numel(), True, value, images
    if taps == 1:
        launch = partial(nearest_launch.launch, nearest_launch.prepare(*given))
    else:
        launch = partial(pairs_launch.launch, pairs_launch.prepare(*given, taps=taps))
    shares = partition(image.shape[:-3], shapes.batch, shapes.plan.height, shapes.values)
    if not moved and shares.bands == shares.splits == 1 and matrix.shape[:-2] == shapes.batch:
        jobs = by_accumulator(shares, shapes.plan, shapes.tile_rows)
        numbers = (
            shapes.values,
            image.numel(),
            matrix.numel(),
            image.numel(),
            3 * matrix.numel() // 2,
        )
        sizes = dict(zip(pairs_launch.CHANGING, (*numbers, 0), strict=True))
        back = pairs_launch.prepare_backward(shapes, jobs, sizes, True, value, images, taps=taps)
    lean = LeanCall(size, fill, rule, forward, shapes.shape, image.dtype, launch, back)

    def make(image: Tensor, matrix: Tensor) -> Tensor:
        """image (..., C, H, W); matrix (..., 2, 3)."""
        matrix = matrix.detach() if taps == 1 else matrix  # as `eager.call` has it
        if not wants_gradient(image, matrix):
            return _forward(lean, image, _source(lean, matrix))
        if lean.back is None:
            return _eager(lean, image, matrix)
        return LeanWarp.apply(image, matrix, lean)  # pyright: ignore

    return make


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
    lean.launch(image.data_ptr(), source.data_ptr(), out.data_ptr())
    return out


def _eager(lean: LeanCall, image: Tensor, matrix: Tensor) -> Tensor:
    """The same call on the longer way: image (*I, C, H, W) under matrix (*M, 2, 3)."""
    matrix = matrix if lean.forward else matrix.double()
    return eager.call(image, matrix, lean.size, lean.fill, lean.rule, lean.forward)


class LeanWarp(torch.autograd.Function):
    """The kernels' result, and gradients to image and matrix by one launch."""

    @staticmethod
    def forward(ctx: Any, image: Tensor, matrix: Tensor, lean: LeanCall) -> Tensor:
        """image (*I, C, H, W) under matrix (*M, 2, 3)."""
        source = _source(lean, matrix)
        # the image's pixels serve the gradient to the map alone
        kept = image if ctx.needs_input_grad[1] else image.new_empty(()).expand(image.shape)
        ctx.save_for_backward(kept, matrix)
        ctx.source, ctx.lean = source, lean
        return _forward(lean, image, source)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """By the operator where it is to be differentiated, or is a batch."""
        (grad,), lean, wanted = grads, ctx.lean, ctx.needs_input_grad[:2]
        image, matrix = ctx.saved_tensors
        if torch.is_grad_enabled() or not is_eager(grad):
            source = matrix.double()
            source = inverse_by(source, invert) if lean.forward else source
            options = (list(lean.size), lean.rule.interpolation, lean.rule.border, [*wanted, False])
            found: Any = OPERATORS.call_backward(grad, image, source, lean.fill, *options)
            grad_image, grad_matrix = (
                g if w else None for g, w in zip(found, wanted, strict=False)
            )
            if grad_matrix is not None and lean.forward:
                grad_matrix = inverse_vjp(source, grad_matrix)
            return grad_image, None if grad_matrix is None else grad_matrix.to(matrix.dtype), None
        grad = grad.contiguous()
        grad_image = _room(image.shape, lean.dtype) if wanted[0] else None
        sums = np.zeros((*matrix.shape[:-2], 3, 3))  # torch's zeros and slices take 10 us more
        tensors = (grad, image, ctx.source, grad if grad_image is None else grad_image)
        assert lean.back is not None
        addresses = [tensor.data_ptr() for tensor in tensors] + [sums.ctypes.data] * 2
        pairs_launch.launch_backward(lean.back, addresses, (*wanted, False))
        if not wanted[1]:
            return grad_image, None, None
        grad_matrix = sums[..., :2, :]
        if lean.forward:
            grad_matrix = inverse_vjp_numpy(ctx.source, grad_matrix)
        return grad_image, torch.from_numpy(grad_matrix).to(matrix.dtype), None
