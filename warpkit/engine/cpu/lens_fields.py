"""Point fields of undistorted images in the native library: native/points/lens_fields.cpp.

A lens is a row of numbers, and so are its gradients: `LensNumbers` of native/points/maps_call.h.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit.core.shapes import broadcast_shapes
from warpkit.engine.cpu.calls import Family, address, launch
from warpkit.engine.cpu.memory import empty
from warpkit.engine.definitions import lens_models

LENSES = Family("lens")

NUMBERS = 46
"""Numbers per lens."""

K, TILT, MATRIX = 4, 18, 36
"""The first positions of a lens's coefficients, after its camera; its tilt; and the matrix from
pixels to directions."""

WIDE = np.dtype(np.float64)


def forward(options: Any, numbers: Tensor, to_ray: Tensor) -> tuple[Tensor, Tensor]:
    """As `lens_fields.field`; also the rows that the kernel reads.

    options: model, size, opencv. numbers (..., 4 + n) of `lens_models.packed`; to_ray (..., 3, 3).
    """
    batch = broadcast_shapes(numbers.shape[:-1], to_ray.shape[:-2])
    rows = rows_of(numbers, batch)
    rows[..., MATRIX : MATRIX + 9] = to_ray.flatten(-2)
    count = numbers.shape[-1] - K
    if count == lens_models.TILTED:
        rows[..., TILT : TILT + 9] = tilt(numbers[..., -2:]).flatten(-2)
    points = torch.from_numpy(empty((*batch, *options.size, 2), WIDE))
    _run("lens_field", options, count, rows, out_x=points)
    return points, rows


def backward(
    options: Any,
    rows: Tensor,
    grads: tuple[Tensor, ...],
    tensors: tuple[Tensor, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor, Tensor]:
    """The gradients of `forward`'s numbers and matrices from that of its points."""
    numbers, to_ray = tensors
    count, height = numbers.shape[-1] - K, options.size[0]
    sums = torch.empty((*rows.shape[:-1], height, NUMBERS), dtype=torch.float64, device="cpu")
    _run("lens_field_backward", options, count, rows, grad_x=grads[0].contiguous(), sums=sums)
    # numpy's order of sums, which does not depend on the number of threads
    total = torch.from_numpy(sums.numpy().sum(-2))
    to_matrix = total[..., MATRIX : MATRIX + 9].unflatten(-1, (3, 3))
    to_numbers = total[..., : K + count].clone()
    if count == lens_models.TILTED:
        to_tilt = total[..., TILT : TILT + 9].unflatten(-1, (3, 3))
        to_numbers[..., -2:] = lens_models.through_tilt(numbers[..., -2:], to_tilt)
    return to_numbers.sum_to_size(numbers.shape), to_matrix.sum_to_size(to_ray.shape)


def rows_of(numbers: Tensor, batch: tuple[int, ...]) -> Tensor:
    """Rows (*batch, NUMBERS) that begin with these numbers (..., n)."""
    rows = torch.zeros((*batch, NUMBERS), dtype=torch.float64, device="cpu")
    rows[..., : numbers.shape[-1]] = numbers
    return rows


def _run(task: str, options: Any, count: int, rows: Tensor, **arrays: Tensor) -> None:
    height, width = options.size
    items = prod(rows.shape[:-1])
    codes = {"coefficients": count, "fisheye": int(options.model == "fisheye")}
    codes |= {"opencv": int(options.opencv), "height": height, "width": width}
    codes |= {name: address(array) for name, array in arrays.items()}
    block = LENSES.block(task, codes | {"numbers": address(rows)})
    launch(block, 0, items * height, 2 * items * height * width)


def tilt(angles: Tensor) -> Tensor:
    """The perspectives (..., 3, 3) of tilts by angles (..., 2)."""
    return lens_models.tilt_by(*angles.unbind(-1))
