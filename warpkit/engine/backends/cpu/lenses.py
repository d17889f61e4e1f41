"""Lens distortion by the native library: point fields, undistorted points, first gradients.

`warpkit.camera` has the formulas in torch operations; native/lens_call.h describes the numbers of a
block. Everything is float64. An item's numbers form a row of `NUMBERS`, and so do its gradients.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.backends.cpu.calls import KEPT, Family, launch
from warpkit.engine.backends.cpu.memory import empty

LENSES = Family("lens")
FIELDS = LENSES.fields

NUMBERS = 46
"""Numbers per item, in the order of `LensNumbers` in native/maps_call.h."""

CAMERA, K, TILT, MATRIX = 0, 4, 18, 36
"""The first positions of an item's fx, fy, cx and cy, its coefficients, its tilt, and the
matrix."""

TILTED = 14
"""The number of coefficients of a lens whose sensor may be tilted."""

PLACES_AT_ONCE = 1024
"""The size of a unit of a list."""

WIDE = np.dtype(np.float64)


class Kind(NamedTuple):
    """The properties of a block's lens."""

    coefficients: int
    fisheye: bool
    opencv: bool = False
    """A field as in OpenCV, including points behind the camera."""


@lru_cache(maxsize=KEPT)
def _block(task: str, kind: Kind, *numbers: tuple[str, int]) -> np.ndarray:
    codes = {name: int(value) for name, value in kind._asdict().items()}
    return LENSES.block(task, codes | dict(numbers))


def field(numbers: np.ndarray, size: tuple[int, int], kind: Kind) -> Tensor:
    """The source positions of pixels (h, w) of undistorted images: (B, h, w, 2), for numbers (B,
    NUMBERS)."""
    out = empty((len(numbers), *size, 2), WIDE)
    block = _field_block("lens_field", numbers, size, kind)
    block[FIELDS["out_x"]] = out.ctypes.data
    launch(block, 0, len(numbers) * size[0], 2 * out.size)
    return torch.from_numpy(out)


def field_backward(numbers: np.ndarray, grad: Tensor, kind: Kind) -> np.ndarray:
    """The gradients (B, NUMBERS) of `field`'s numbers from that of its points, (B, h, w, 2)."""
    grad, size = grad.contiguous(), (grad.shape[1], grad.shape[2])
    sums = np.empty((len(numbers), size[0], NUMBERS))
    block = _field_block("lens_field_backward", numbers, size, kind)
    block[FIELDS["grad_x"]], block[FIELDS["sums"]] = grad.data_ptr(), sums.ctypes.data
    launch(block, 0, len(numbers) * size[0], 2 * grad.numel())
    return sums.sum(1)


def _field_block(task: str, numbers: np.ndarray, size: tuple[int, int], kind: Kind) -> np.ndarray:
    block = _block(task, kind, ("height", size[0]), ("width", size[1])).copy()
    block[FIELDS["numbers"]] = numbers.ctypes.data
    return block


def solve(
    numbers: np.ndarray, reach: np.ndarray, u: Tensor, v: Tensor, kind: Kind
) -> tuple[Tensor, Tensor, Tensor]:
    """The directions x and y of distorted points u and v, (B, N) each, and whether they exist.

    numbers (B, NUMBERS); reach (B, 3), see native/lens_call.h.
    """
    u, v = u.contiguous(), v.contiguous()
    x, y, found = torch.empty_like(u), torch.empty_like(v), torch.empty_like(u, dtype=torch.bool)
    given = {"x": u, "y": v, "out_x": x, "out_y": y, "found": found}
    block = _list_block("lens_inverse", numbers, u.shape[1], kind, given)
    block[FIELDS["reach"]] = reach.ctypes.data
    launch(block, 0, len(numbers) * _units(u.shape[1]), 8 * u.numel())
    return x, y, found


def solve_backward(
    numbers: np.ndarray, roots: tuple[Tensor, ...], grads: tuple[Tensor, Tensor], kind: Kind
) -> tuple[Tensor, Tensor, np.ndarray]:
    """The gradients of `solve` to u and v, (B, N) each, and to the numbers, (B, NUMBERS).

    roots: the results of `solve`; grads: those of x and y, (B, N) each.
    """
    (x, y, found), (gx, gy) = roots, (grad.contiguous() for grad in grads)
    gu, gv = torch.empty_like(x), torch.empty_like(y)
    given = {"x": x, "y": y, "found": found, "grad_x": gx, "grad_y": gy, "out_x": gu, "out_y": gv}
    block = _list_block("lens_inverse_backward", numbers, x.shape[1], kind, given)
    sums = np.empty((len(numbers), _units(x.shape[1]), NUMBERS))
    block[FIELDS["sums"]] = sums.ctypes.data
    launch(block, 0, len(numbers) * sums.shape[1], 2 * x.numel())
    return gu, gv, sums.sum(1)


def _units(count: int) -> int:
    return -(-count // PLACES_AT_ONCE)


def _list_block(
    task: str, numbers: np.ndarray, count: int, kind: Kind, given: dict[str, Tensor]
) -> np.ndarray:
    block = _block(task, kind, ("count", count)).copy()
    block[FIELDS["numbers"]] = numbers.ctypes.data
    for name, tensor in given.items():
        block[FIELDS[name]] = tensor.data_ptr()
    return block
