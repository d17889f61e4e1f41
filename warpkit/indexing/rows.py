"""Reads and writes rows of an array at fractional positions: one axis of a sampling rule.

The weights and borders are those of `rules`, as in an image, which is read along two axes.

Gradients are bitwise repeatable. On the CPU, `index_select` and `index_add` run in a fixed order,
while the backward of `array[index]` adds from several threads (1e6 reads of 100 rows differ in the
last bits from run to run). On CUDA it is the other way round: see
torch.use_deterministic_algorithms.
"""

from __future__ import annotations

import torch
from torch import Tensor

from warpkit.core import exports
from warpkit.engine.definitions.rules import LIMIT, axis_weights, resolve


def whole_rows(index: Tensor, length: int, border: str) -> Tensor:
    """The rows of an integer index; under "replicate", negative ones count from the end."""
    if border == "replicate":
        index = torch.where(index < 0, index + length, index)
    return resolve(index, length, border)[0]


def position(index: Tensor, length: int, border: str) -> tuple[Tensor, Tensor]:
    """A valid position for `taps`, and where the index was one: not NaN, and not too large."""
    if border == "replicate":
        # clamp is not used for gradients: at the limits, its own depends on torch's version
        limited = index.detach().clamp(0, length - 1).nan_to_num(0.0)
        return torch.where(limited == index, index, limited), ~index.isnan()
    valid = index.abs() < LIMIT  # false for NaN
    return torch.where(valid, index, 0.0), valid


def neighbours(
    index: Tensor, length: int, border: str
) -> tuple[list[Tensor], list[Tensor], Tensor]:
    """The two rows next to a floating index, their weights, and where the index is valid."""
    if index.dtype in (torch.float16, torch.bfloat16):
        index = index.float()
    at, valid = position(index, length, border)
    base = at.detach().floor()
    below = base.long()
    rows = [resolve(row, length, border)[0] for row in (below, below + 1)]
    return rows, axis_weights(at - base, "bilinear"), valid


def take(array: Tensor, dim: int, rows: Tensor) -> Tensor:
    """The rows of `array` along `dim`, in the order of the flat `rows`."""
    if array.is_cuda:
        return array[(*[slice(None)] * dim, rows)]
    return array.index_select(dim, rows)


def add(length: int, rows: Tensor, values: Tensor) -> Tensor:
    """The sum of each row's `values` (K, ...), for `length` rows: the adjoint of `take`."""
    total = values.new_zeros((length, *values.shape[1:]))
    if values.is_cuda:
        return total.index_put((rows,), values, accumulate=True)
    return total.index_add(0, rows, values)


def replace(table: Tensor, index: Tensor, values: Tensor) -> Tensor:
    """`table` (n, B) with rows replaced by `values` (K, B); a row gets the last of its values."""
    length = table.shape[0]
    target = whole_rows(index, length, "replicate")
    order = torch.arange(target.shape[0], device=target.device)
    last = target.new_full((length,), -1).scatter_reduce(0, target, order, "amax")
    last_values = take(values, 0, last.clamp(min=0))
    # a selection, not a sum with weights 0 and 1, in which an overwritten NaN would remain
    return torch.where((last >= 0)[:, None], last_values, table)


def write_between(table: Tensor, index: Tensor, values: Tensor) -> Tensor:
    """`table` (n, B) with `values` (K, B) written in order to the two rows next to each index."""
    length = table.shape[0]
    (lower, upper), (_, far), valid = neighbours(index, length, "replicate")
    # at the last row both taps are the same row, whose weight of 1 does not depend on the index
    part = torch.where(valid & (upper > lower), far, 0.0)
    whole = torch.where(valid, 1 - part, 0.0)
    target = torch.stack((lower, upper), -1).reshape(-1)
    exports.refuse(
        "indexing.assign",
        "because it sorts writes between rows",
        "write at whole numbers, or by superposition_assign with the weights of soft_one_hot",
    )
    target, order = torch.sort(target, stable=True)
    weights = take(torch.stack((whole, part), -1).reshape(-1).to(table.dtype), 0, order)
    share = final_weights(weights, target)
    remainder = 1 - add(length, target, share)
    shares = take(values, 0, order // 2) * share[:, None]
    return table * remainder[:, None] + add(length, target, shares)


def blend(table: Tensor, weights: Tensor, values: Tensor) -> Tensor:
    """`table` (n, B) with `values` (K, B) written in order to all rows, by `weights` (K, n)."""
    share = final_weights(weights)
    return table * (1 - share.sum(0))[:, None] + share.mT @ values


def final_weights(weights: Tensor, rows: Tensor | None = None) -> Tensor:
    """The final weight of each v in K writes x <- (1 - w) x + w v, done in order.

    weights (K, ...), one column for each x; or (K,), with the sorted rows that the writes go to. A
    write's final weight is its w times the (1 - w) of all later writes; x keeps 1 - their sum. The
    products are computed by doubling, in log2(K) steps: their derivatives of every order are right
    even where a weight is 1, as at integer indices, unlike those of a quotient of cumulative
    products.
    """
    later = 1 - weights
    step, count = 1, weights.shape[0]
    while step < count:
        following = _later_products(later, rows, step)
        later = torch.cat((later[:-step] * following, later[-step:]))
        step *= 2
    if count < 2:
        return weights
    return weights * torch.cat((_later_products(later, rows, 1), torch.ones_like(later[:1])))


def _later_products(later: Tensor, rows: Tensor | None, step: int) -> Tensor:
    """The products of the writes `step` later; 1 if these go to another row.

    later (N, K); rows (N,), int64.
    """
    if rows is None:
        return later[step:]
    return torch.where(rows[step:] == rows[:-step], later[step:], 1.0)
