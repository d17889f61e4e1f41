"""Differentiable array access: lookups between rows, under distributions, and the matching writes.

An index is a position between the rows of an array, or a distribution over them: weights, which
`soft_one_hot` makes from a position. `linear_lookup` does for a row of numbers what
`warpkit.sample_pixels` does for an image, with the same two neighbours and weights
(`definitions.rules`). This module validates arguments; `rows` reads and writes.

Rules, for every function here:

- The index's own dimensions take the place of `dim` in the result.
- Floating index: clamped to the ends; beyond them its gradient is 0. At an integer the
  derivative is the one from the right. NaN reads NaN and writes nothing, with gradient 0.
- Integer index: a row; a negative one counts from the end, as in torch; clamped beyond.
  Boolean: raises an error, because torch would read it as a mask.
- Weights: (..., n) for the n rows along `dim`; their leading dimensions are the index's own, and
  they apply to all other dimensions of the array.
- A value to write has the shape of what the same index reads, or broadcasts to it.
- Several writes happen in order, as in a loop: later ones cover earlier ones.
- The result has the array's type; integers of any kind become torch's default type first.
- Gradients: all orders, forward and reverse, to every floating argument, bitwise repeatable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import torch
from torch import Tensor

from warpkit.core import checks, sharding
from warpkit.core.integers import WHOLE_NUMBERS, plain_integer
from warpkit.core.mistakes import warn_if_16_bits
from warpkit.core.public import listing
from warpkit.core.sharding import shardable
from warpkit.engine.definitions import rules
from warpkit.engine.definitions.reference import compute_dtype
from warpkit.indexing import rows
from warpkit.types import ArrayLike, Continuation

__all__ = [
    "assign",
    "assign_2d",
    "linear_lookup",
    "lookup_2d",
    "residual_lookup",
    "soft_one_hot",
    "superposition_assign",
    "superposition_lookup",
]
__dir__ = listing(__all__)

BORDERS: tuple[Continuation, ...] = ("replicate", "reflect", "reflect_101", "wrap")
"""The borders that continue an array with its own rows."""


@shardable(sharding.reads_rows, "array", "index")
def linear_lookup(
    array: ArrayLike, index: ArrayLike, *, dim: int = 0, border: Continuation = "replicate"
) -> Tensor:
    """Interpolate between the two rows next to each index: np.interp on tensors, with gradients.

    array (*A, n, *B), n at `dim`; index, any shape I. Returns (*A, *I, *B); memory grows only with
    the result. border: "replicate" clamps; "reflect", "reflect_101" and "wrap" (periodic tables)
    continue the array, for negative integers too, and read NaN at positions of 2^31 and beyond.

    Raises ValueError or TypeError for an invalid `dim`, border or type.

    >>> linear_lookup([1.0, 2.0, 3.0, 4.0, 5.0], [1.25, 9.0])
    tensor([2.2500, 5.0000])
    """
    name = "linear_lookup"
    array, dim = _array(name, array, dim, index)
    index = _index(name, index, array)
    warn_if_16_bits(name, "index", index, (array.shape[dim],), "array")
    border = _border(name, border)
    values, length = array.to(compute_dtype(array.dtype)), array.shape[dim]
    flat = index.reshape(-1)
    if not flat.is_floating_point():
        result = rows.take(values, dim, rows.whole_rows(flat, length, border))
    else:
        (lower, upper), (_, far), valid = rows.neighbours(flat, length, border)
        each = (-1,) + (1,) * (array.ndim - 1 - dim)  # one weight for each index
        below, above = rows.take(values, dim, lower), rows.take(values, dim, upper)
        result = torch.lerp(below, above, far.to(values.dtype).reshape(each))
        result = torch.where(valid.reshape(each), result, torch.nan)
    return _unflatten(result, dim, index.shape).to(array.dtype)


@shardable(sharding.weighs_positions, "index")
def soft_one_hot(index: ArrayLike, length: int, *, border: Continuation = "replicate") -> Tensor:
    """The weights of the rows that `linear_lookup` reads: one, or two that add up to one.

    index (...). Returns (..., length), of the index's type; an integer index gives one 1, a NaN
    weights NaN. Dense: `linear_lookup` and `assign` do not need it. border as in `linear_lookup`.

    >>> soft_one_hot(2.25, 5)
    tensor([0.0000, 0.0000, 0.7500, 0.2500, 0.0000])
    """
    name = "soft_one_hot"
    if not isinstance(length, WHOLE_NUMBERS) or isinstance(length, bool):
        checks.fail(name, "length", "an integer of at least 1", repr(length), TypeError)
    if length < 1:
        checks.fail(name, "length", "an integer of at least 1", length)
    if length >= checks.MAX_SIDE:
        checks.fail(name, "length", "an integer below 2^31", f"{length!r:.40}")
    length = plain_integer(length)
    index = _index(name, index)
    warn_if_16_bits(name, "index", index, (length,), "array")
    border = _border(name, border)
    if not index.is_floating_point():
        row = rows.whole_rows(index, length, border)[..., None]
        one = torch.ones(row.shape, device=index.device)
        return one.new_zeros((*index.shape, length)).scatter(-1, row, one)
    targets, weights, valid = rows.neighbours(index, length, border)
    result = weights[0].new_zeros((*index.shape, length))
    result = result.scatter_add(-1, torch.stack(targets, -1), torch.stack(weights, -1))
    return torch.where(valid[..., None], result, torch.nan).to(index.dtype)


@shardable(sharding.reads_rows, "array", "weights")
def superposition_lookup(array: ArrayLike, weights: ArrayLike, *, dim: int = 0) -> Tensor:
    """The weighted sum of the rows along `dim`, as after a softmax: torch.tensordot's contraction.

    array (*A, n, *B); weights (*I, n). Returns (*A, *I, *B). With `soft_one_hot(index, n)` for
    weights this is `linear_lookup(array, index)`, by a matrix product.

    Raises ValueError if the last dimension of the weights is not n.

    >>> superposition_lookup([1.0, 2.0, 3.0, 5.0, 4.0], [0.5, 0.0, 0.0, 0.25, 0.25])
    tensor(2.7500)
    """
    name = "superposition_lookup"
    array, dim = _array(name, array, dim, weights)
    weights = _weights(name, "weights", weights, array, dim)
    flat = weights.reshape(-1, weights.shape[-1])
    first = array.movedim(dim, 0)
    result = (flat @ _table(first)).reshape(flat.shape[0], *first.shape[1:]).movedim(0, dim)
    return _unflatten(result, dim, weights.shape[:-1]).to(array.dtype)


@shardable(sharding.reads_rows, "array", "index")
def residual_lookup(array: ArrayLike, index: ArrayLike, *, dim: int = 0) -> tuple[Tensor, Tensor]:
    """The nearest row (ties to even), and the index's distance from it: (value, residual).

    array (*A, n, *B); index I. Returns (*A, *I, *B) and I. The value is always a row of the array,
    with a gradient only to the array; the residual, of the index's type, has the gradient to the
    index.

    >>> residual_lookup([1.0, 2.0, 3.0, 4.0, 5.0], 1.5)
    (tensor(3.), tensor(-0.5000))
    """
    name = "residual_lookup"
    array, dim = _array(name, array, dim, index)
    index = _index(name, index, array)
    warn_if_16_bits(name, "index", index, (array.shape[dim],), "array")
    length, flat = array.shape[dim], index.reshape(-1)
    if not flat.is_floating_point():
        value = rows.take(array, dim, rows.whole_rows(flat, length, "replicate"))
        residual = torch.zeros(index.shape, device=index.device)
        return _unflatten(value, dim, index.shape), residual
    at, valid = rows.position(flat, length, "replicate")
    nearest = at.detach().round()
    value = rows.take(array, dim, rows.whole_rows(nearest.long(), length, "replicate"))
    value = torch.where(valid.reshape(-1, *[1] * (array.ndim - 1 - dim)), value, torch.nan)
    residual = torch.where(valid, at - nearest, torch.nan).reshape(index.shape)
    return _unflatten(value, dim, index.shape), residual


@shardable(sharding.writes_rows, "array", "index", "value")
def assign(array: ArrayLike, index: ArrayLike, value: ArrayLike, *, dim: int = 0) -> Tensor:
    """A copy of the array with rows replaced: `array[index] = value`, with gradients.

    array (*A, n, *B); index I; value (*A, *I, *B) or broadcasting to it. Returns the array's shape.
    A floating index shares each write between its two neighbours: row <- (1 - w) row + w value,
    where w is its `soft_one_hot`, in O(K log K) for K indices. If an integer index repeats, its
    last value counts.

    >>> assign([1.0, 2.0, 3.0], [0, -1], [7.0, 9.0])
    tensor([7., 2., 9.])
    >>> assign([0.0, 0.0, 0.0], 0.25, 8.0)
    tensor([6., 2., 0.])
    """
    name = "assign"
    array, dim = _array(name, array, dim, index, value)
    index = _index(name, index, array)
    warn_if_16_bits(name, "index", index, (array.shape[dim],), "array")
    values = _value(name, value, array, (dim, dim + 1), index.shape)
    if index.numel() == 0:
        return array.clone()
    first = array.movedim(dim, 0)
    write = rows.write_between if index.is_floating_point() else rows.replace
    result = write(_table(first), index.reshape(-1), values)
    return result.reshape(first.shape).movedim(0, dim).to(array.dtype)


@shardable(sharding.writes_rows, "array", "weights", "value")
def superposition_assign(
    array: ArrayLike, weights: ArrayLike, value: ArrayLike, *, dim: int = 0
) -> Tensor:
    """A copy of the array with rows moved towards a value: row <- (1 - w) row + w value.

    array (*A, n, *B); weights (*I, n), each row's w for each write; value (*A, *I, *B) or
    broadcasting to it. Returns the array's shape.

    >>> superposition_assign([1.0, 2.0, 3.0], [0.5, 0.5, 0.0], 4.0)
    tensor([2.5000, 3.0000, 3.0000])
    """
    name = "superposition_assign"
    array, dim = _array(name, array, dim, weights, value)
    weights = _weights(name, "weights", weights, array, dim)
    values = _value(name, value, array, (dim, dim + 1), weights.shape[:-1])
    first = array.movedim(dim, 0)
    result = rows.blend(_table(first), weights.reshape(-1, first.shape[0]), values)
    return result.reshape(first.shape).movedim(0, dim).to(array.dtype)


@shardable(sharding.reads_2d, "array", "row_weights", "column_weights")
def lookup_2d(array: ArrayLike, row_weights: ArrayLike, column_weights: ArrayLike) -> Tensor:
    """The sum of row weight x column weight x entry over the first two dimensions.

    array (H, W, *B); row_weights (*I, H) and column_weights (*I, W), whose leading dimensions
    broadcast. Returns (*I, *B). With two `soft_one_hot`s this is bilinear interpolation.

    >>> lookup_2d([[1.0, 2.0], [3.0, -4.0]], [0.0, 1.0], [0.5, 0.5])
    tensor(-0.5000)
    """
    name = "lookup_2d"
    array, (row, column) = _array_2d(name, array, row_weights, column_weights)
    height, width = array.shape[:2]
    rest = math.prod(array.shape[2:])
    along = row @ array.to(row.dtype).reshape(height, width * rest)
    along = along.reshape(*row.shape[:-1], width, rest)
    result = (column.unsqueeze(-2) @ along).squeeze(-2)
    return result.reshape((*result.shape[:-1], *array.shape[2:])).to(array.dtype)


@shardable(sharding.writes_2d, "array", "value", "row_weights", "column_weights")
def assign_2d(
    array: ArrayLike, value: ArrayLike, row_weights: ArrayLike, column_weights: ArrayLike
) -> Tensor:
    """A copy of the array with entries moved towards a value by w = row weight x column weight.

    array (H, W, *B); weights as in `lookup_2d`; value (*I, *B) or broadcasting to it. Returns the
    array's shape, entry <- (1 - w) entry + w value.

    >>> assign_2d([[1.0, 2.0], [3.0, 4.0]], 9.0, [0.0, 1.0], [1.0, 0.0])
    tensor([[1., 2.],
            [9., 4.]])
    """
    name = "assign_2d"
    array, (row, column) = _array_2d(name, array, row_weights, column_weights, value)
    weights = (row.unsqueeze(-1) * column.unsqueeze(-2)).flatten(-2)
    values = _value(name, value, array, (0, 2), weights.shape[:-1])
    table = _table(array.flatten(0, 1))
    result = rows.blend(table, weights.reshape(-1, table.shape[0]), values)
    return result.reshape(array.shape).to(array.dtype)


def _table(array: Tensor) -> Tensor:
    """The rows of the array, flat, in the type of the computation."""
    rest = math.prod(array.shape[1:])
    return array.reshape(array.shape[0], rest).to(compute_dtype(array.dtype))


def _unflatten(result: Tensor, dim: int, shape: Sequence[int]) -> Tensor:
    """Restore the index's own shape in the flat dimension `dim` of the result."""
    return result.reshape((*result.shape[:dim], *shape, *result.shape[dim + 1 :]))


def _array(name: str, array: Any, dim: object, *others: Any) -> tuple[Tensor, int]:
    """A floating array with at least one row along `dim`, which becomes non-negative.

    If it is none of torch's, it is put where the first tensor among the other arguments is.
    """
    array = checks.as_float(name, "array", array, checks.result_kind(array, *others)[0])
    if array.ndim == 0:
        checks.fail(name, "array", "of at least one dimension", "a number")
    wanted = f"an integer from {-array.ndim} to {array.ndim - 1} for {array.ndim} dimensions"
    if not isinstance(dim, Integral) or isinstance(dim, bool):
        checks.fail(name, "dim", wanted, repr(dim), TypeError)
    if not -array.ndim <= dim < array.ndim:
        checks.fail(name, "dim", wanted, dim)
    along = int(dim) % array.ndim
    if array.shape[along] == 0:
        wanted = f"at least one row long along dim {along}"
        checks.fail(name, "array", wanted, checks.shape_of(array))
    return array, along


def _index(name: str, index: Any, array: Tensor | None = None) -> Tensor:
    """An int64 tensor of rows, or a floating tensor of positions."""
    device = None if array is None else array.device
    dtype = None if array is None else compute_dtype(array.dtype)  # for Python numbers
    index = checks.as_exact(name, "index", index, device)
    if isinstance(index, Tensor) and index.dtype == torch.bool:
        wanted = "integers or floating positions (torch.where and array[mask] take masks)"
        checks.fail(name, "index", wanted, "booleans", TypeError)
    if not isinstance(index, Tensor) or index.is_complex():
        index = checks.as_float(name, "index", index, device, dtype)
    checks.check_dense(name, "index", index)
    if array is not None:
        checks.check_device(name, "index", index, array.device, "`array`")
    if not index.is_floating_point():
        return index.long()
    if index.dtype not in checks.FLOATS:
        wanted = f"integers or of one of the types {checks.names_of(checks.FLOATS)}"
        checks.fail(name, "index", wanted, index.dtype, TypeError)
    return index


def _border(name: str, border: object) -> Continuation:
    if isinstance(border, str) and border in rules.MISSING_BORDERS:
        wanted = "a border that continues the array (" + ", ".join(map(repr, BORDERS)) + ")"
        checks.fail(name, "border", wanted, repr(border))
    border = checks.check_name(name, "border", border, (*BORDERS, "border"))
    return "replicate" if border == "border" else border


def _weights(name: str, argument: str, weights: Any, array: Tensor, dim: int) -> Tensor:
    """Weights (..., n) in the type of the computation."""
    dtype = compute_dtype(array.dtype)  # for Python numbers, too: float32 might lose their digits
    weights = checks.as_float(name, argument, weights, array.device, dtype)
    checks.check_device(name, argument, weights, array.device, "`array`")
    n = array.shape[dim]
    if weights.ndim == 0 or weights.shape[-1] != n:
        wanted = f"of shape (..., {n}), for the {n} rows of `array` along dim {dim}"
        checks.fail(name, argument, wanted, checks.shape_of(weights))
    return weights.to(dtype)


def _array_2d(
    name: str, array: Any, row_weights: Any, column_weights: Any, *others: Any
) -> tuple[Tensor, list[Tensor]]:
    """An array (H, W, ...), and the weights along both dimensions."""
    array, _ = _array(name, array, 0, row_weights, column_weights, *others)
    if array.ndim < 2 or array.shape[1] == 0:
        checks.fail(name, "array", "of shape (H, W, ...), not empty", checks.shape_of(array))
    row = _weights(name, "row_weights", row_weights, array, 0)
    column = _weights(name, "column_weights", column_weights, array, 1)
    shapes = {"row_weights": row.shape[:-1], "column_weights": column.shape[:-1]}
    checks.broadcast_batch(name, **shapes)
    return array, [row, column]


def _value(
    name: str, value: Any, array: Tensor, dims: tuple[int, int], index_shape: Sequence[int]
) -> Tensor:
    """A value as (K, B): broadcast to what the index reads, the index's dimensions first."""
    dtype = compute_dtype(array.dtype)
    value = checks.as_float(name, "value", value, array.device, dtype)
    checks.check_device(name, "value", value, array.device, "`array`")
    first, last = dims
    shape = (*array.shape[:first], *index_shape, *array.shape[last:])
    try:
        value = value.expand(shape)
    except RuntimeError:
        wanted = f"of shape {tuple(shape)}, what the index reads, or broadcasting to it"
        checks.fail(name, "value", wanted, checks.shape_of(value))
    index_dims = list(range(len(index_shape)))
    value = value.movedim([first + d for d in index_dims], index_dims)
    rest = math.prod((*array.shape[:first], *array.shape[last:]))
    return value.reshape(math.prod(index_shape), rest).to(dtype)
