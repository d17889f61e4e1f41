"""cv2.transform and cv2.perspectiveTransform, in OpenCV's order of operations.

Vectors are (H, W, C) of any type that OpenCV accepts; `transform` has no gradient.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from warpkit.engine.arithmetic.processor import VECTOR_BYTES
from warpkit.engine.definitions.rounding import fma32, fma64, to_int32

FIXED_BITS = 10
"""Fraction bits of the matrix from three 8-bit channels to three."""
FIXED_BOUNDS = (32.0, 32.0, 8192.0, 8192.0)
"""Bounds on its columns; other matrices are computed in floats."""
SMALL = torch.finfo(torch.float32).eps
"""Divisors of at most this magnitude count as 0."""


def transform(values: Tensor, matrix: Tensor, arithmetic: str) -> Tensor:
    """matrix (R, C + 1), float64, times (values, 1): (H, W, R) of the values' type."""
    rows, columns = matrix.shape[0], matrix.shape[1] - 1
    double = values.dtype == torch.float64
    m = matrix if double else matrix.float()
    channels = (values if double else values.float()).unbind(-1)
    if _is_diagonal(m):
        results = [_fma(v, m[i, i], m[i, -1].expand(v.shape)) for i, v in enumerate(channels)]
    elif (columns, rows) == (3, 3):
        return _three(values, m, arithmetic)
    elif (columns, rows) == (4, 4) and values.dtype == torch.float32:
        results = [_by_pairs(channels, row) for row in m]
    elif (columns, rows) in ((2, 2), (3, 1), (4, 4)):
        results = [_fused(channels, row) for row in m]
    elif values.is_floating_point() and not (double and columns > 3):
        results = [_in_order_fused(channels, row) for row in m]
    else:
        results = [_in_order(channels, row) for row in m]
    return _rounded(torch.stack(results, dim=-1), values.dtype)


def _three(values: Tensor, m: Tensor, arithmetic: str) -> Tensor:
    """Three channels to three channels.

    values (H, W, 3); m (3, 4), the bias last.
    """
    if values.dtype == torch.uint8 and bool((m.abs() < m.new_tensor(FIXED_BOUNDS)).all()):
        return _in_fixed_point(values, m, arithmetic)
    channels = values.to(m.dtype).unbind(-1)
    results = torch.stack([_fused(channels, row) for row in m], dim=-1)
    if values.dtype == torch.uint8:
        return _rounded(results, values.dtype)
    line = line_of(values.shape, values.stride())
    vectors, pairs = in_vectors(line, str(values.dtype).removeprefix("torch."), arithmetic)
    if values.dtype == torch.uint16:
        # vectors are signed: 32768 is subtracted before the sum is rounded, and added afterwards
        for first, sums in ((pairs, _by_halves), (vectors, _chain)):
            outputs = [sums(channels, row, row[-1] - 32768).round() + 32768 for row in m]
            results = torch.where(_first(first, values), torch.stack(outputs, dim=-1), results)
    else:
        chains = [_chain(channels, row, row[-1]) for row in m]
        results = torch.where(_first(vectors, values), torch.stack(chains, dim=-1), results)
    return _rounded(results, values.dtype)


def line_of(shape: Sequence[int], strides: Sequence[int]) -> int:
    """How many pixels OpenCV processes at a time: all of (H, W, C), or one row of a view.

    strides: in numbers. If the numbers of pixels are not adjacent, OpenCV gets a copy.
    """
    (rows, columns), row = shape[:2], shape[1] * shape[2]
    one = (shape[2] == 1 or strides[2] == 1) and strides[1] == shape[2]
    return columns if rows > 1 and one and strides[0] > row else rows * columns


def in_vectors(count: int, dtype: str, arithmetic: str) -> tuple[int, int]:
    """Of `count` pixels of 3 numbers, how many OpenCV sums in vectors, and in vectors or in pairs.

    The rest are the last few. Four pixels of floats take four vectors, the last of which overlaps
    the next pixel; vectors that would extend beyond the end are not used.
    """
    if arithmetic == "opencv4" and dtype in ("int16", "float64"):
        return 0, 0
    lanes = VECTOR_BYTES // torch.empty(0, dtype=getattr(torch, dtype), device="cpu").element_size()
    if dtype == "float32":
        at_once = lanes // 4
        return max(0, (3 * count - lanes) // (3 * at_once) + 1) * at_once, 0
    rest = count % lanes
    return count - rest, count - (rest - 1) % 2 - 1 if rest else count


def _rounded(results: Tensor, dtype: torch.dtype) -> Tensor:
    """Rounds to the type through int32, whose smallest value stands for NaN and numbers out of
    range.

    results (..., R).
    """
    if dtype.is_floating_point:
        return results.to(dtype)
    limits = torch.iinfo(dtype)
    return to_int32(results).clamp(limits.min, limits.max).to(dtype)


def _in_fixed_point(values: Tensor, m: Tensor, arithmetic: str) -> Tensor:
    """Three 8-bit channels to three channels, in integers that wrap around.

    values (H, W, 3); m (3, 4), the bias last.
    """
    scaled = (m * 2**FIXED_BITS).round().long()
    # the versions differ in adding half a level before or after the bias is rounded
    alone = ((m[:, 3] + 0.5) * 2**FIXED_BITS).round().long()
    vectors, _ = in_vectors(line_of(values.shape, values.stride()), "uint8", arithmetic)
    halves = torch.where(_first(vectors, values), scaled[:, 3] + 2 ** (FIXED_BITS - 1), alone)
    sums = (values.long()[..., None, :] * scaled[:, :3]).sum(-1) + halves
    return (sums.int() >> FIXED_BITS).clamp(0, 255).to(values.dtype)


def _first(count: int, values: Tensor) -> Tensor:
    """Whether each pixel is among the first of its line, (H, W, 1); values (H, W, C)."""
    places = torch.arange(values[..., 0].numel(), device=values.device)
    first = places % line_of(values.shape, values.stride()) < count
    return first.reshape(values.shape[:-1])[..., None]


def _is_diagonal(m: Tensor) -> bool:
    if m.shape[0] != m.shape[1] - 1:
        return False
    square = m[:, :-1]
    return not bool(((square - square.diag().diag()).abs() > torch.finfo(m.dtype).eps).any())


def _fma(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """a b + c, rounded once; a (...), b and c that broadcast."""
    return fma64(a, b, c) if a.dtype == torch.float64 else fma32(a, b, c)


def _fused(channels: tuple[Tensor, ...], row: Tensor) -> Tensor:
    """m0 v0 + m1 v1 + ... + bias, fused from the left as by a compiler; two channels or more.

    Each channel (...); row (C + 1,), the bias last.
    """
    total = _fma(channels[0], row[0], channels[1] * row[1])
    for value, factor in zip(channels[2:], row[2:-1], strict=True):
        total = _fma(value, factor, total)
    return total + row[-1]


def _chain(channels: tuple[Tensor, ...], row: Tensor, bias: Tensor) -> Tensor:
    """fma(v0, m0, fma(v1, m1, fma(v2, m2, bias))).

    Each channel (...); row (C,) and bias ().
    """
    total = bias.expand(channels[0].shape)
    for value, factor in zip(reversed(channels), reversed(row[:-1].unbind()), strict=True):
        total = _fma(value, factor, total)
    return total


def _by_halves(channels: tuple[Tensor, ...], row: Tensor, bias: Tensor) -> Tensor:
    """fma(v0, m0, v1 m1) + fma(v2, m2, bias), for three channels.

    Each channel (...); row (4,) and bias ().
    """
    first = _fma(channels[0], row[0], channels[1] * row[1])
    return first + _fma(channels[2], row[2], bias.expand(channels[2].shape))


def _by_pairs(channels: tuple[Tensor, ...], row: Tensor) -> Tensor:
    """(v0 m0 + v1 m1) + (v2 m2 + v3 m3) + bias; every product and sum is rounded.

    Each channel (...); row (5,), the bias last.
    """
    a, b, c, d = (value * factor for value, factor in zip(channels, row[:-1], strict=True))
    return ((a + b) + (c + d)) + row[-1]


def _in_order_fused(channels: tuple[Tensor, ...], row: Tensor) -> Tensor:
    """The bias, to which one product after the other is added, fused.

    Each channel (...); row (C + 1,), the bias last.
    """
    total = row[-1].expand(channels[0].shape)
    for value, factor in zip(channels, row[:-1], strict=True):
        total = _fma(value, factor, total)
    return total


def _in_order(channels: tuple[Tensor, ...], row: Tensor) -> Tensor:
    """The bias, to which one rounded product after the other is added.

    Each channel (...); row (C + 1,), the bias last.
    """
    total = row[-1].expand(channels[0].shape)
    for value, factor in zip(channels, row[:-1], strict=True):
        total = total + value * factor
    return total


def perspective(values: Tensor, matrix: Tensor) -> Tensor:
    """matrix (R + 1, C + 1), float64, times (values, 1), divided by its last entry: (..., R).

    The result is 0 if the divisor is 0 within the rounding of float32.
    """
    channels = values.double().unbind(-1)
    sums = []
    for row in matrix:
        total = channels[0] * row[0]
        for value, factor in zip(channels[1:], row[1:-1], strict=True):
            total = total + value * factor
        sums.append(total + row[-1])
    good = sums[-1].abs() > SMALL
    per = 1 / torch.where(good, sums[-1], 1.0)
    moved = torch.stack([total * per for total in sums[:-1]], dim=-1)
    return torch.where(good[..., None], moved, 0.0).to(values.dtype)
