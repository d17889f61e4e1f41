"""Pictures of the sphere by the backends: `sampling.sphere`, faster."""

from __future__ import annotations

import torch
from torch import Tensor

from warpkit.core.tracing import is_eager
from warpkit.engine.backends import backend_module, select_backend
from warpkit.engine.sampling import sphere
from warpkit.engine.sampling.labels import as_bits, as_labels, as_signed, from_signed
from warpkit.engine.sampling.layout import restore_memory_format
from warpkit.engine.sampling.reference import compute_dtype
from warpkit.engine.sampling.rules import SamplingRule


def places(matrix: Tensor, size: tuple[int, int], sphere_size: tuple[int, int]) -> Tensor:
    """Where pixels of `size` (h, w) look in a picture of the sphere: (..., h, w, 2), float64.

    matrix (..., 3, 3), float64, carries (x, y, 1) to directions.
    """
    height = size[0]
    y, x = (torch.arange(n, dtype=torch.float64, device=matrix.device) for n in size)
    # a copy of the matrix for every row, as for all maps: its gradient is summed by rows first
    rows = matrix[..., None, None, :, :].expand(*matrix.shape[:-2], height, 1, 3, 3)
    a, b, c = (
        rows[..., k, 0] * x + rows[..., k, 1] * y[:, None] + rows[..., k, 2] for k in range(3)
    )
    return sphere.places(a, b, c, sphere_size)


def sample(function: str, picture: Tensor, points: Tensor, interpolation: str) -> Tensor:
    """As `sphere.sample`, for a public function; labels as they are.

    picture (*I, C, H, W); points (*P, h, w, 2).
    """
    rule = SamplingRule(interpolation, "wrap")
    backend = select_backend(function, "auto", picture, rule)
    bits = as_bits(picture)
    eager = picture.device.type == "cpu" and is_eager(picture, points)
    even = picture.shape[-1] % 2 == 0
    if backend is backend_module("reference") or not (eager or even):
        result = sphere.sample(bits, points, interpolation)
    else:
        fill = torch.zeros((), dtype=compute_dtype(bits.dtype), device=bits.device)
        read = bits if eager else from_signed(sphere.both_sides(as_signed(bits)), bits.dtype)
        result = backend.sample(read, points, fill, rule)
        if eager:
            result = _beyond_poles(result, bits, points, interpolation)
    return as_labels(restore_memory_format(result, picture), picture.dtype)


def _beyond_poles(result: Tensor, bits: Tensor, points: Tensor, interpolation: str) -> Tensor:
    """What was read of other rows there, put right: few pixels, of which the definition makes them.

    result (*batch, C, h, w), whose rows wrap; bits (*I, C, H, W); points (*P, h, w, 2).
    """
    low, high = sphere.reach(interpolation)
    row = points.detach()[..., 1]
    beyond = (row < low) | (row >= bits.shape[-2] - high)
    beyond = beyond.flatten(-2)
    index = beyond.reshape(-1, beyond.shape[-1]).any(0).nonzero().flatten()
    if len(index) == 0:
        return result
    some = points.flatten(-3, -2).index_select(-2, index)
    values = sphere.sample(bits, some[..., None, :, :], interpolation)[..., 0, :]
    flat, values = as_signed(result).flatten(-2), as_signed(values)
    # an item of a batch does not depend on where the others look
    mine = beyond.index_select(-1, index)[..., None, :]
    values = torch.where(mine, values, flat.index_select(-1, index))
    found = flat.index_copy(-1, index, values).unflatten(-1, result.shape[-2:])
    return from_signed(found, result.dtype)
