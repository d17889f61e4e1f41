"""Gradients that many pixels add to, as sums of integers: the same bits in any order.

Each channel of each entry has a power of two as its unit, for which the largest possible sum is
2^57. What a term that is not finite spoils is marked apart: every such pixel becomes NaN.
"""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false, reportOperatorIssue=false

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from warpkit.engine.triton.kernels import kernel
from warpkit.engine.triton.scatter import collect_kernel
from warpkit.engine.triton.work import launch

BLOCK = 1024
"""Values of a program, or of one of its steps."""


@triton.jit
def finite_of(term):
    """Which terms, in units, are finite."""
    return tl.abs(term) < 4.0e18


@triton.jit
def add_units(units, spoiled, to, term, finite, some):
    """Adds terms as integers, 0 for those that are not finite; marks what these spoil."""
    count = tl.floor(tl.where(finite, term, 0.0) + 0.5).to(tl.int64)
    tl.atomic_add(units + to, count, mask=some, sem="relaxed")
    tl.store(spoiled + to, tl.full(term.shape, 1, tl.int8), mask=some & (finite == 0))


@kernel
def largest_kernel(values, out, area, BLOCK: tl.constexpr):
    """The largest finite magnitude of each run of `area` values."""
    program = tl.program_id(0)
    values += program.to(tl.int64) * area
    found = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, area, BLOCK):
        at = first + tl.arange(0, BLOCK)
        size = tl.abs(tl.load(values + at, mask=at < area, other=0.0))
        found = tl.maximum(found, tl.where(size < float("inf"), size, 0.0))
    tl.store(out + program, tl.max(found, 0))


def largest(tensor: Tensor) -> Tensor:
    """The largest finite magnitudes (...), float64, of a dense tensor (..., h, w), float32."""
    found = tensor.new_zeros(tensor.shape[:-2])
    if tensor.numel():
        area = tensor.shape[-2] * tensor.shape[-1]
        launch(largest_kernel, found.numel(), tensor, found, area=area, BLOCK=BLOCK)
    return found.double()


class Sums(NamedTuple):
    """The integers of a gradient (entries, C, H, W)."""

    scale: Tensor
    """(entries, C), float64: units of 1."""
    units: Tensor
    """int64."""
    spoiled: Tensor
    """int8: 1 where the gradient is not finite."""

    def total(self) -> Tensor:
        """The gradient, float32."""
        out = torch.empty(self.units.shape, dtype=torch.float32, device=self.units.device)
        channels, height, width = out.shape[-3:]
        if out.numel():
            launch(
                collect_kernel, triton.cdiv(out.numel(), BLOCK), self.units, self.units, self.scale,
                out, values=out.numel(), area=height * width, rest_scale=1.0, channels=channels,
                REAL=tl.float32, LAST=False, BLOCK=BLOCK,
            )  # fmt: skip
        return out.masked_fill_(self.spoiled != 0, torch.nan)


def by_entry(tensor: Tensor, turns: tuple[int, int]) -> Tensor:
    """The sums (entries, ...) of the items (items, ...) of each entry; turns as in `sums_for`."""
    div, mod = turns
    return tensor.unflatten(0, (len(tensor) // max(div * mod, 1), mod, div)).sum((0, 2))


def sums_for(most: Tensor, turns: tuple[int, int], size: tuple[int, int]) -> Sums:
    """Integers for gradients of `size`, all 0.

    most (items, C): the largest sum of magnitudes that an item adds to a pixel; turns (div, mod):
    item n adds to entry n // div % mod.
    """
    total = by_entry(most, turns)
    scale = torch.exp2((57 - torch.frexp(total).exponent.double()).clamp(-900, 900))
    shape = (*total.shape, *size)
    units = torch.zeros(shape, dtype=torch.int64, device=most.device)
    return Sums(scale, units, torch.zeros(shape, dtype=torch.int8, device=most.device))
