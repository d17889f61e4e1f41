"""Views of the sphere in the native library: positions (native/points/sphere.cpp), then a warp.

The definition computes the few pixels that read beyond a pole, from as many rows of the picture as
there are taps. Their positions are NaN in the warp, so it and its gradient skip them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.cpu import calls, launch
from warpkit.engine.cpu.memory import empty
from warpkit.engine.cpu.warp_calls import HALVES
from warpkit.engine.definitions import sphere
from warpkit.engine.definitions.labels import as_signed
from warpkit.engine.definitions.maps import rows_at
from warpkit.engine.definitions.reference import compute_dtype
from warpkit.engine.definitions.rules import TAPS, SamplingRule, pair_of
from warpkit.engine.operators.sphere import View

SPHERES = calls.Family("sphere")
MATRICES, PLACES, ROWS = (SPHERES.fields[name] for name in ("matrices", "places", "rows"))

Size = tuple[int, int]


class Cap(NamedTuple):
    """The pixels of views that read beyond a pole."""

    first: int
    """The first row of the picture that they read, and the number of rows."""
    taken: int
    height: int
    """The height of the picture."""
    x: Tensor
    """(N,), int64: pixels that read beyond the pole in at least one view."""
    y: Tensor
    mine: Tensor
    """(*P, N), bool: whether they do so in each view."""


def _rule(interpolation: str) -> SamplingRule:
    """No tap of the warp is beyond a pole; a border that keeps rows allows a split gradient."""
    return SamplingRule(interpolation, pair_of("replicate", "wrap"))


def _nothing(picture: Tensor) -> Tensor:
    """The fill for pixels without a position."""
    return torch.zeros((), dtype=compute_dtype(picture.dtype), device="cpu")


def forward(
    options: View, picture: Tensor, matrix: Tensor
) -> tuple[Tensor, tuple[Tensor, np.ndarray, list[Cap]]]:
    """As `sphere.view`; and the positions (NaN in caps), the ends of their rows, and the caps."""
    size, interpolation, wide = options
    sphere_size = (picture.shape[-2], picture.shape[-1])
    nearest = interpolation == "nearest"
    places, ends = found_places(matrix, size, sphere_size, fixed=nearest)
    places = sphere.on_grid(places) if nearest else places
    caps = _caps(places, ends, sphere_size[0], interpolation)
    for cap in caps:
        places[..., cap.y, cap.x, :] = torch.where(
            cap.mine[..., None], torch.nan, places[..., cap.y, cap.x, :]
        )
    rule, nothing = _rule(interpolation), _nothing(picture)
    result = launch.forward(picture, places, nothing, size, rule, wide=wide)
    bits = as_signed(result)
    for cap in caps:
        strip = _strip(picture, cap)
        strip = strip if nearest else strip.to(result.dtype) if wide else _read(strip)
        values = _of_cap(cap, strip, matrix, interpolation)
        others = bits[..., cap.y, cap.x]
        bits[..., cap.y, cap.x] = torch.where(cap.mine[..., None, :], as_signed(values), others)
    kind = compute_dtype(picture.dtype) if wide else picture.dtype
    return result.to(kind), (places, ends, caps)


def _read(strip: Tensor) -> Tensor:
    """Rows of halves in float32."""
    return strip.float() if strip.dtype in HALVES else strip


def _caps(places: Tensor, ends: np.ndarray, height: int, interpolation: str) -> list[Cap]:
    """The caps of positions (*P, h, w, 2), with the ends of their rows, in a picture of this
    height."""
    count = TAPS[interpolation]
    low, high = sphere.reach(interpolation)
    high = height - high
    near = ((ends[..., 0] < low) | (ends[..., 1] >= high)).reshape(-1, ends.shape[-2]).any(0)
    rows = torch.from_numpy(np.flatnonzero(near))
    if len(rows) == 0:
        return []
    row = places[..., rows, :, 1]
    sides = [(row < low, 0), (row >= high, height - count)]
    if height < 2 * count:
        sides, count = [((row < low) | (row >= high), 0)], height
    caps = []
    for beyond, first in sides:
        y, x = beyond.reshape(-1, *beyond.shape[-2:]).any(0).nonzero(as_tuple=True)
        if len(y):
            caps.append(Cap(first, count, height, x, rows[y], beyond[..., y, x]))
    return caps


def _strip(picture: Tensor, cap: Cap) -> Tensor:
    """The rows of a picture (*I, C, H, W) that a cap reads."""
    return picture.narrow(-2, cap.first, cap.taken)


def _of_cap(cap: Cap, strip: Tensor, matrix: Tensor, interpolation: str) -> Tensor:
    """The values of a cap's pixels, (*batch, C, N); strip (*I, C, n, W), matrix (*P, 3, 3).

    If a view does not read beyond the pole, the value is arbitrary and has no gradient.
    """
    x, y, z = rows_at(matrix[..., None, :, :], cap.x.double(), cap.y.double())
    points = sphere.places(x, y, z, (cap.height, strip.shape[-1]))
    pole = -0.5 if cap.first == 0 else cap.height - 0.5
    points = torch.where(cap.mine[..., None], points, pole)[..., None, :, :]
    return sphere.sample(strip, points, interpolation, (cap.first, cap.height))[..., 0, :]


def backward(
    options: View,
    kept: tuple[Tensor, np.ndarray, list[Cap]],
    grads: Sequence[Tensor],
    tensors: Sequence[Tensor],
    wanted: Sequence[bool],
) -> tuple[Tensor, Tensor | None]:
    """The gradients to the tensors of `VIEW`, by two launches, and the definition in the caps."""
    (size, interpolation, _), (places, ends, caps) = options, kept
    (grad,), (picture, matrix) = grads, tensors
    grad = grad.to(compute_dtype(picture.dtype))
    rule, needs = _rule(interpolation), [*wanted, False]
    inputs = (grad, picture, places, _nothing(picture), size, rule, needs)
    grad_picture, grad_places, _ = launch.backward(*inputs, ends=ends)
    grad_matrix = None
    if wanted[1]:
        grad_matrix = _to_matrix(matrix, grad_places, size, (picture.shape[-2], picture.shape[-1]))
    for cap in caps:
        with torch.enable_grad():
            strip = _read(_strip(picture, cap))
            strip, leaf = (t.detach().requires_grad_() for t in (strip, matrix))
            values = _of_cap(cap, strip, leaf, interpolation)
        push = torch.where(cap.mine[..., None, :], grad[..., cap.y, cap.x], 0.0)
        to_strip, to_matrix = torch.autograd.grad(values, (strip, leaf), push, allow_unused=True)
        if wanted[0]:
            _strip(grad_picture, cap).add_(to_strip)
        if grad_matrix is not None and to_matrix is not None:
            grad_matrix = grad_matrix + to_matrix
    return grad_picture.to(picture.dtype), grad_matrix


# -- the kernels of native/points/sphere.cpp --


@lru_cache(maxsize=64)
def _block(task: str, size: Size, sphere_size: Size, fixed: bool = False) -> np.ndarray:
    names = ("height", "width", "sphere_height", "sphere_width", "fixed")
    return SPHERES.block(task, dict(zip(names, (*size, *sphere_size, fixed), strict=True)))


def found_places(
    matrix: Tensor, size: Size, sphere_size: Size, fixed: bool = False
) -> tuple[Tensor, np.ndarray]:
    """As `sphere.places_of_pixels`, except for whole turns of longitude and the arctangent's last
    bits.

    It also returns the smallest and the largest source row of each row of a view, (*P, h, 2),
    infinite if there is none. matrix (*P, 3, 3), float64. fixed: without whole turns, which could
    round half a column to the other side.
    """
    batch = matrix.shape[:-2]
    found = empty((*batch, *size, 2), np.dtype(np.float64))
    ends = np.empty((*batch, size[0], 2))
    _run(_block("sphere_places", size, sphere_size, fixed), matrix, found.ctypes.data, ends)
    return torch.from_numpy(found), ends


def _to_matrix(matrix: Tensor, grad: Tensor, size: Size, sphere_size: Size) -> Tensor:
    """The gradient to matrices (*P, 3, 3) from that to positions, grad (*P, h, w, 2)."""
    grad = grad.double().contiguous()
    sums = np.empty((*matrix.shape[:-2], size[0], 9))
    _run(_block("sphere_backward", size, sphere_size), matrix, calls.address(grad), sums)
    return torch.from_numpy(np.ascontiguousarray(sums.sum(-2))).reshape(matrix.shape)


def _run(block: np.ndarray, matrix: Tensor, places: int, rows: np.ndarray) -> None:
    """Run a task for matrices (*P, 3, 3) and positions at an address; results in rows (*P, h,
    n)."""
    given, numbers = matrix.detach().contiguous(), block.copy()
    numbers[MATRICES], numbers[PLACES], numbers[ROWS] = (
        calls.address(given),
        places,
        rows.ctypes.data,
    )
    units = rows.size // rows.shape[-1]
    calls.launch(numbers, 0, units, 2 * units * int(block[SPHERES.fields["width"]]))
