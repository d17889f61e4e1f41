"""Integer filters along an axis as products of small matrices that float32 represents exactly.

B adjacent output pixels read a window of L input pixels: (blocks, B, L) weights times (blocks, L,
k) pixels. float32 holds every integer up to 2^24, so such a product is the same number for any
order of its sums, with or without fused multiply-adds. Weights of 22 bits are split into digits of
s bits, starting with the low one; each is a separate product:

    floor(sum p w / 2^s) = sum p high + floor(sum p low / 2^s)  where  w = high 2^s + low
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

EXACT = 1 << 24
"""float32 holds every integer up to this one."""

WHOLE_BYTE = 255

SHRINKING, ENLARGING = 4, 8
"""Output pixels per block: onnxruntime's times hardly differ between 2 and 8."""

Indices = NDArray[np.int64]


class Blocks(NamedTuple):
    """A filter along an axis that is resized from `length` to `size` pixels."""

    rows: Indices
    """(blocks L,): the pixels of the windows."""
    digits: tuple[NDArray[np.float32], ...]
    """Each (blocks, B, L), the low ones first; all except the last in units of 2^-step."""
    step: int
    bits: int
    """The last digit's sum is in units of 2^-bits."""
    length: int
    size: int


def blocks_of(
    index: Indices,
    weight: NDArray[Any],
    length: int,
    *,
    bits: int = 0,
    largest: int = WHOLE_BYTE,
    count: int | None = None,
) -> Blocks | None:
    """The blocks of a table of taps (m, K); None if float32 cannot hold the sums.

    weight: integers in units of 2^-bits, 0 for missing taps. largest: of the pixels' magnitudes.
    count: output pixels per block.
    """
    size = len(index)
    count = count or (SHRINKING if size < length else ENLARGING)
    rows, whole = _windows(index, weight.astype(np.int64), length, min(count, size))
    common = int(np.bitwise_or.reduce(np.abs(whole), axis=None)) or 1
    shared = min((common & -common).bit_length() - 1, bits)  # zero bits at the end of all of them
    found = _digits(whole >> shared, bits - shared, largest)
    return found and Blocks(rows, *found, length, size)


def _windows(
    index: Indices, weight: NDArray[np.int64], length: int, count: int
) -> tuple[Indices, NDArray[np.int64]]:
    """The pixels of all windows, and the weights (blocks, count, L)."""
    size, there = len(index), weight != 0
    ends = np.where(there, index, length).min(1), np.where(there, index, -1).max(1)
    starts = np.arange(0, size, count)
    first = np.minimum(np.minimum.reduceat(ends[0], starts), length - 1)
    longest = max(int((np.maximum.reduceat(ends[1], starts) - first).max()) + 1, 1)
    first = np.minimum(first, length - longest)
    whole = np.zeros((len(starts) * count, longest), np.int64)
    at, tap = np.nonzero(there)
    np.add.at(whole, (at, index[at, tap] - first[at // count]), weight[at, tap])
    rows = (first[:, None] + np.arange(longest)).ravel()
    return rows, whole.reshape(len(starts), count, longest)


def _digits(
    whole: NDArray[np.int64], bits: int, largest: int
) -> tuple[tuple[NDArray[np.float32], ...], int, int] | None:
    """The fewest digits whose sums, with carry and half, are exact."""
    for number in range(1, 5):
        for step in range(11, 3, -1) if number > 1 else (0,):
            rest, parts, carry, fits = whole, [], 0, True
            for _ in range(number - 1):
                part = rest & ((1 << step) - 1)
                highest = largest * int(part.sum(-1).max()) + carry
                fits, carry = fits and highest < EXACT, (highest >> step) + 1
                parts.append((part / 2.0**step).astype(np.float32))
                rest = rest >> step
            left = bits - step * (number - 1)
            half = 1 << max(left - 1, 0)
            if left < 0 or largest * int(np.abs(rest).sum(-1).max()) + carry + half >= EXACT:
                continue
            if fits:
                return (*parts, rest.astype(np.float32)), step, left
    return None
