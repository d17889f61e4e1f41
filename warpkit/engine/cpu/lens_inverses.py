"""The inverses of lenses at lists of points, by native/points/lens_inverse.cpp."""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor

from warpkit.core.shapes import broadcast_shapes
from warpkit.engine.cpu.calls import address, launch
from warpkit.engine.cpu.lens_fields import LENSES, NUMBERS, K, rows_of

PLACES_AT_ONCE = 1024
"""The points of a unit."""

Roots = tuple[Tensor, Tensor, Tensor]


def forward(
    model: str, k: Tensor, u: Tensor, v: Tensor, reach: Tensor
) -> tuple[Roots, tuple[Tensor, ...]]:
    """As `lens_inverse.unbend`: x, y and found, (..., N); also these again, and the lenses' rows.

    k (..., 1, n); u and v (..., N); reach (..., 1, 3).
    """
    shape = broadcast_shapes(u.shape, v.shape, k.shape[:-1])
    rows = _rows(k, shape[:-1])
    reach = reach[..., 0, :].expand(*shape[:-1], 3).contiguous()
    u, v = (value.expand(shape).contiguous() for value in (u, v))
    x, y, found = torch.empty_like(u), torch.empty_like(v), torch.empty_like(u, dtype=torch.bool)
    arrays = {"x": u, "y": v, "out_x": x, "out_y": y, "found": found, "reach": reach}
    _run("lens_inverse", model, k.shape[-1], rows, shape, arrays)
    return (x, y, found), (x.detach(), y.detach(), found)


def backward(
    model: str,
    roots: Roots,
    grads: tuple[Tensor, ...],
    tensors: tuple[Tensor, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of `forward`'s coefficients, u and v; none of the reach.

    roots: its results; grads: those of x and y, (..., N).
    """
    (k, u, v, reach), (x, y, found), shape = tensors, roots, roots[0].shape
    gx, gy = (grad.contiguous() for grad in grads)
    gu, gv = torch.empty_like(x), torch.empty_like(y)
    units = _units(shape[-1])
    sums = torch.empty((*shape[:-1], units, NUMBERS), dtype=torch.float64, device="cpu")
    arrays = {"x": x, "y": y, "found": found, "grad_x": gx, "grad_y": gy}
    arrays |= {"out_x": gu, "out_y": gv, "sums": sums}
    _run("lens_inverse_backward", model, k.shape[-1], _rows(k, shape[:-1]), shape, arrays)
    total = torch.from_numpy(sums.numpy().sum(-2))
    to_k = total[..., None, K : K + k.shape[-1]]
    parts = zip((to_k, gu, gv), (k, u, v), strict=True)
    to_k, gu, gv = (grad.sum_to_size(value.shape) for grad, value in parts)
    return to_k, gu, gv, reach


def _rows(k: Tensor, batch: tuple[int, ...]) -> Tensor:
    """The rows of lenses without a camera, (*batch, NUMBERS)."""
    return rows_of(torch.nn.functional.pad(k[..., 0, :], (K, 0)), batch)


def _units(count: int) -> int:
    return -(-count // PLACES_AT_ONCE)


def _run(
    task: str,
    model: str,
    count: int,
    rows: Tensor,
    shape: tuple[int, ...],
    arrays: dict[str, Tensor],
) -> None:
    """A task for rows (..., NUMBERS) and points of `shape`, (..., N)."""
    codes = {"coefficients": count, "fisheye": int(model == "fisheye"), "count": shape[-1]}
    codes |= {name: address(array) for name, array in arrays.items()}
    block = LENSES.block(task, codes | {"numbers": address(rows)})
    launch(block, 0, prod(shape[:-1]) * _units(shape[-1]), 8 * prod(shape))
