"""Distortion formulas by the native library: values, and first gradients.

For second derivatives, tracing, transforms and forward mode, torch differentiates the formulas of
`maps` and `solver`, which are passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from warpkit.camera import models
from warpkit.camera.models import Lens
from warpkit.core.shapes import broadcast_shapes
from warpkit.core.tracing import is_eager, wants_gradient
from warpkit.engine.backends import select_lenses
from warpkit.engine.backends.again import gradients_again


class Field(NamedTuple):
    """A point field, described by everything except its tensors."""

    model: str
    size: tuple[int, int]
    opencv: bool
    by_torch: Callable[[Lens, Tensor], Tensor]
    """Computes the field from a lens, and the matrix (..., 3, 3) from pixels to rays."""


class Solution(NamedTuple):
    """The inverse of a lens, described by everything except its tensors."""

    model: str
    reach: np.ndarray
    """(..., 3): see native/lens_call.h."""
    by_torch: Callable[[Lens, Tensor, Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
    """Takes the lens, u, v, x, y and found; returns x and y with the solution's derivatives."""


def supports(*tensors: Tensor) -> bool:
    """Whether the native library supports these."""
    return select_lenses(*tensors) is not None


def field(lens: Lens, to_ray: Tensor, made: Field) -> Tensor:
    """Source positions of pixels, (..., h, w, 2); to_ray (..., 3, 3)."""
    return _EagerField.apply(made, to_ray, *lens.tensors())  # pyright: ignore


def solve(lens: Lens, u: Tensor, v: Tensor, made: Solution) -> tuple[Tensor, Tensor, Tensor]:
    """Directions x and y of the distorted u and v, and where they exist.

    u and v (..., N). The lens has a point dimension; its camera is not used.
    """
    if wants_gradient(u, v, *lens.k):
        return _EagerSolution.apply(made, u, v, *lens.k)  # pyright: ignore
    return _solved(made, u, v, lens.k)[0]


class _EagerField(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, made: Field, to_ray: Tensor, *values: Tensor) -> Tensor:
        """to_ray (..., 3, 3); values: the lens's tensors, (...)."""
        known: Any = select_lenses(to_ray)
        lens = _lens(made.model, values)
        batch = broadcast_shapes(to_ray.shape[:-2], values[0].shape)
        numbers = _numbers(known, lens.tensors(), batch)
        if len(lens.k) == known.TILTED:
            numbers[..., known.TILT : known.TILT + 9] = models.tilt(lens).flatten(-2).numpy()
        numbers[..., known.MATRIX : known.MATRIX + 9] = to_ray.detach().flatten(-2).numpy()
        ctx.save_for_backward(to_ray, *values)
        ctx.made, ctx.batch, ctx.numbers = made, batch, numbers.reshape(prod(batch), known.NUMBERS)
        ctx.kind = known.Kind(len(lens.k), made.model == "fisheye", made.opencv)
        points = known.field(ctx.numbers, made.size, ctx.kind)
        return points.view(*batch, *made.size, 2)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # pyright: ignore
        """By one launch, or by torch operations for second derivatives and under transforms."""
        to_ray, *values = ctx.saved_tensors
        made: Field = ctx.made
        lens = _lens(made.model, values)
        wanted = ctx.needs_input_grad[1:]
        if torch.is_grad_enabled() or not is_eager(grad):

            def again(to_ray: Tensor, *values: Tensor) -> tuple[Tensor]:
                """to_ray (..., 3, 3); values: the lens's tensors, (...)."""
                return (made.by_torch(_lens(made.model, values), to_ray),)

            return None, *gradients_again(again, (to_ray, *values), (grad,), wanted)
        known: Any = select_lenses(to_ray)
        flat = grad.reshape(prod(ctx.batch), *made.size, 2)
        found = known.field_backward(ctx.numbers, flat, ctx.kind).reshape(*ctx.batch, known.NUMBERS)
        sums = torch.from_numpy(found)
        to_matrix = sums[..., known.MATRIX : known.MATRIX + 9].unflatten(-1, (3, 3))
        to_values = list(sums[..., : len(values)].unbind(-1))
        if len(lens.k) == known.TILTED:
            to_tilt = sums[..., known.TILT : known.TILT + 9].unflatten(-1, (3, 3))
            to_values[-2:] = _through_tilt(lens, to_tilt)
        found = [
            g.sum_to_size(value.shape)
            for g, value in zip((to_matrix, *to_values), (to_ray, *values), strict=True)
        ]
        return None, *(g if want else None for g, want in zip(found, wanted, strict=True))


class _EagerSolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, made: Solution, u: Tensor, v: Tensor, *k: Tensor) -> Any:
        """u and v (..., N); k: coefficients (..., 1)."""
        roots, ctx.numbers = _solved(made, u, v, k)
        ctx.save_for_backward(u, v, *k)
        # detached, since the context would otherwise hold the results, which hold the context
        ctx.made, ctx.roots = made, tuple(root.detach() for root in roots)
        ctx.mark_non_differentiable(roots[2])
        return roots

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:  # pyright: ignore
        """By one launch, or by torch operations for second derivatives and under transforms."""
        u, v, *k = ctx.saved_tensors
        made: Solution = ctx.made
        wanted, (gx, gy) = ctx.needs_input_grad[1:], grads[:2]
        if torch.is_grad_enabled() or not is_eager(gx, gy):

            def again(u: Tensor, v: Tensor, *k: Tensor) -> tuple[Tensor, Tensor]:
                """u and v (..., N); k: coefficients (..., 1)."""
                return made.by_torch(Lens(made.model, u, u, v, v, k), u, v, *ctx.roots)

            return None, *gradients_again(again, (u, v, *k), (gx, gy), wanted)
        known: Any = select_lenses(u)
        kind, shape = known.Kind(len(k), made.model == "fisheye"), ctx.roots[0].shape
        roots = tuple(root.reshape(prod(shape[:-1]), shape[-1]) for root in ctx.roots)
        flat = gx.reshape(roots[0].shape), gy.reshape(roots[0].shape)
        gu, gv, sums = known.solve_backward(ctx.numbers, roots, flat, kind)
        sums = torch.from_numpy(sums.reshape(*shape[:-1], 1, known.NUMBERS))
        given = ((gu.view(shape), u), (gv.view(shape), v))
        given += tuple((sums[..., known.K + i], value) for i, value in enumerate(k))
        found = [g.sum_to_size(value.shape) for g, value in given]
        return None, *(g if want else None for g, want in zip(found, wanted, strict=True))


def _solved(
    made: Solution, u: Tensor, v: Tensor, k: tuple[Tensor, ...]
) -> tuple[tuple[Tensor, Tensor, Tensor], np.ndarray]:
    """x, y and found, (..., N), and the lenses' numbers."""
    known: Any = select_lenses(u)
    shape = broadcast_shapes(u.shape, v.shape, k[0].shape)
    camera = torch.zeros_like(k[0])[..., 0]
    numbers = _numbers(known, (*(camera,) * 4, *(value[..., 0] for value in k)), shape[:-1])
    reach = np.ascontiguousarray(np.broadcast_to(made.reach, (*shape[:-1], 3)))
    flat = [value.detach().expand(shape).reshape(prod(shape[:-1]), shape[-1]) for value in (u, v)]
    kind = known.Kind(len(k), made.model == "fisheye")
    numbers = numbers.reshape(prod(shape[:-1]), known.NUMBERS)
    x, y, found = (part.view(shape) for part in known.solve(numbers, reach, *flat, kind))
    return (x, y, found), numbers


def _lens(model: str, values: Sequence[Tensor]) -> Lens:
    """The lens that consists of these tensors, (...) each."""
    fx, fy, cx, cy, *k = values
    return Lens(model, fx, fy, cx, cy, tuple(k))


def _numbers(known: Any, values: tuple[Tensor, ...], batch: tuple[int, ...]) -> np.ndarray:
    """The library's rows (..., NUMBERS), which begin with these values, (...) each."""
    numbers = np.zeros((*batch, known.NUMBERS))
    for i, value in enumerate(values):
        numbers[..., i] = value.detach().numpy()
    return numbers


def _through_tilt(lens: Lens, grad: Tensor) -> tuple[Tensor, ...]:
    """The gradients of tx and ty, (...), from that of `models.tilt`, (..., 3, 3)."""
    angles = [angle.detach().requires_grad_() for angle in lens.k[12:14]]
    with torch.enable_grad():
        tilt = models.tilt(lens._replace(k=(*lens.k[:12], *angles)))
    return torch.autograd.grad(tilt, angles, grad.sum_to_size(tilt.shape))
