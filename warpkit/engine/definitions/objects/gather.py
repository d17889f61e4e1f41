"""Samples flat images at lists of points, each in its own window.

The taps and weights are those of the reference, in another order of work: the taps of all points
are read in one gather. Missing taps read the border's value, which is stored after the last pixel.
So the gradient is computed in one pass, in a fixed order: the same bits in every run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.engine.definitions.rules import (
    LIMIT,
    SamplingRule,
    any_inside,
    axis_rules,
    both_inside,
    taps,
)

GROUP = 4
"""The number of taps read together: bilinear's four; more would only need memory."""

Lookup = Callable[[Tensor, Tensor], Tensor]
"""A function of a tap's row and column in its window, int64; the result broadcasts to S."""


class Points(NamedTuple):
    """Points, float64, and the (H, W) of the window of each; all broadcast to a shape S."""

    x: Tensor
    y: Tensor
    size: Sequence[int | Tensor]


class Lines(NamedTuple):
    """Rows of points that cross adjacent columns."""

    begins: Tensor
    """(R,), int64: the start of each row's window."""
    step: int
    """The offset from one row of a window to the next."""
    y: Tensor
    """(R,), float64 and finite."""
    x: Tensor
    """(K,), the positions of all columns."""
    size: tuple[int, int]
    """(H, W) of all windows."""
    first: Tensor
    """(R,), int64: the first column that each row crosses, and how many it crosses."""
    runs: Tensor


AT_ONCE = 1 << 15
"""The number of points that are sampled together, so that intermediate values stay in the cache."""


class _Axis(NamedTuple):
    """One neighbour along one axis, its tensors as in `rules.AxisTap`."""

    at: Tensor
    weight: Tensor
    inside: Tensor


class _Tap(NamedTuple):
    """One neighbour of every point; all broadcast to S."""

    row: Tensor
    column: Tensor
    inside: Tensor
    weight: Tensor


def sample_opaque(
    flat: Tensor,
    fill: Tensor,
    fill_number: Tensor,
    index_of: Lookup,
    points: Points,
    rule: SamplingRule,
    within: Lookup | None = None,
) -> Tensor:
    """The values (C, *S) of `flat` (C, M) at the points.

    index_of: the index of a tap in `flat`. fill (C or 1, K): border values, of which each point
    uses the one with index `fill_number`, int64, which broadcasts to S. within: which taps of a
    window are not missing; None for all.
    """
    fill = fill.expand(len(flat), -1)
    store, fill_index = torch.cat((flat, fill), dim=1), flat.shape[1] + fill_number
    rows, columns_ = _axes(points, rule, flat.dtype)
    total = flat.new_zeros(())
    insides = []
    for group in _groups(rows, columns_, within):
        indices = [
            torch.where(tap.inside, index_of(tap.row, tap.column), fill_index) for tap in group
        ]
        total = total + (_read(store, indices) * torch.stack([tap.weight for tap in group])).sum(1)
        insides += [tap.inside for tap in group] if within is not None else []
    reached = any_inside(insides)
    if reached is None:
        reached = both_inside(
            any_inside(y.inside for y in rows), any_inside(x.inside for x in columns_)
        )
    assert reached is not None  # a point without a position has no tap inside, under any border
    # without taps inside, use the border's value: the sum of weights may differ in the last bit
    return torch.where(reached, total, columns(fill, fill_number))


def sample_covered(
    flat: Tensor,
    cover: Lookup | None,
    index_of: Lookup,
    points: Points,
    rule: SamplingRule,
    within: Lookup | None = None,
) -> tuple[Tensor, Tensor]:
    """The colours (C, *S) of `flat` times `cover`, and the coverages (S).

    cover: a factor for each tap, in the type of `flat`; None for 1. Missing taps have coverage 0;
    within: as in `sample_opaque`.
    """
    store, fill_index = torch.cat((flat, flat.new_zeros(len(flat), 1)), dim=1), flat.shape[1]
    colour = coverage = flat.new_zeros(())
    for group in _groups(*_axes(points, rule, flat.dtype), within):
        indices = [
            torch.where(tap.inside, index_of(tap.row, tap.column), fill_index) for tap in group
        ]
        weights = torch.stack(
            [
                torch.where(
                    tap.inside,
                    tap.weight if cover is None else tap.weight * cover(tap.row, tap.column),
                    0.0,
                )
                for tap in group
            ]
        )
        colour = colour + (_read(store, indices) * weights).sum(1)
        coverage = coverage + weights.sum(0)
    return colour, coverage


def sample_lines(flat: Tensor, lines: Lines, rule: SamplingRule) -> Tensor:
    """The values (1, P) of `flat` (1, M) where rows and columns cross, row by row.

    The border must leave no tap missing.
    """
    axes = []
    for position, length, along in zip(
        (lines.y, lines.x), lines.size, axis_rules(rule), strict=True
    ):
        one = position.new_ones(len(position))
        axes.append([
            (tap.index, (one if tap.weight is None else tap.weight).to(flat.dtype))
            for tap in taps(position, length, along)
        ])  # fmt: skip
    rows = [(lines.begins + lines.step * at, weight) for at, weight in axes[0]]
    row_of = torch.arange(len(lines.runs), device=flat.device).repeat_interleave(lines.runs)
    to_column = lines.first - (lines.runs.cumsum(0) - lines.runs)
    pieces = [flat[:, :0]]
    for start in range(0, len(row_of), AT_ONCE):
        row = row_of[start : start + AT_ONCE]
        column = to_column[row] + torch.arange(start, start + len(row), device=flat.device)
        across = [(at[column], columns(weight[None], column)) for at, weight in axes[1]]
        total = flat.new_zeros(())
        for at_row, weight_row in rows:
            begin, weight = at_row[row], columns(weight_row[None], row)
            for at_column, share in across:
                total = total + columns(flat, begin + at_column) * (weight * share)
        pieces.append(total)
    return torch.cat(pieces, dim=1)


def _axes(
    points: Points, rule: SamplingRule, dtype: torch.dtype
) -> tuple[list[_Axis], list[_Axis]]:
    """The taps along y and x, with weights in `dtype`; points without a position have none."""
    axes = []
    positions = zip((points.y, points.x), points.size, axis_rules(rule), strict=True)
    for position, length, along in positions:
        near = position.abs() < LIMIT  # false for NaN
        axes.append(
            [
                _Axis(
                    tap.index,
                    near.new_ones((), dtype=dtype) if tap.weight is None else tap.weight.to(dtype),
                    near if tap.inside is None else near & tap.inside,
                )
                for tap in taps(torch.where(near, position, 0.0), length, along)
            ]
        )
    return axes[0], axes[1]


def _groups(
    rows: list[_Axis], columns_: list[_Axis], within: Lookup | None
) -> Iterator[list[_Tap]]:
    """The taps of the points, a few at a time."""
    pairs = [(row, column) for row in rows for column in columns_]
    for offset in range(0, len(pairs), GROUP):
        group = [
            _Tap(row.at, column.at, row.inside & column.inside, row.weight * column.weight)
            for row, column in pairs[offset : offset + GROUP]
        ]
        if within is not None:
            group = [tap._replace(inside=tap.inside & within(tap.row, tap.column)) for tap in group]
        yield group


def _read(flat: Tensor, indices: Sequence[Tensor]) -> Tensor:
    """`flat` (C, M) at T positions of shape S: (C, T, *S)."""
    return columns(flat, torch.stack(list(indices)))


def columns(table: Tensor, number: Tensor) -> Tensor:
    """The columns of `table` (K, N) with indices of shape S: (K, *S)."""
    # by gather, whose gradient is summed in a fixed order, unlike that of an index
    flat = table.gather(-1, number.reshape(1, -1).expand(len(table), -1))
    return flat.unflatten(-1, number.shape)
