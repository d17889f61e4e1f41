"""cv2.resize of bytes in ONNX operations with float32: its integer and its float path.

Sums of integers are matrix products. Sums of floats go tap by tap, with each product and sum
rounded, because a matrix product has its own order and may fuse operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from warpkit.engine.arithmetic.opencv_resize import UINT8_ONE, VECTORS, cuts_cells, in_vectors, plan
from warpkit.engine.arithmetic.resize_tables import Table, table
from warpkit.engine.definitions.resize import ResizeRule
from warpkit.engine.onnx.blocks import EXACT, WHOLE_BYTE, Blocks, blocks_of
from warpkit.engine.onnx.passes import (
    as_images,
    as_planes,
    chosen,
    constant,
    joined,
    moved,
    sums,
    to_bytes,
    turned,
)

LINE_STEP = 10
"""The bits of a bicubic line that belong to the low one of two sums."""


def resize(
    image: Tensor, size: Sequence[int], rule: ResizeRule, factors: tuple[float, float] | None
) -> Tensor | None:
    """The pixels (..., C, h, w) of cv2.resize; None if the reference must be used."""
    way, across, down = plan(image.shape, image.dtype, size, rule, factors)
    make = WAYS.get(way)
    if make is None or (way == "cells" and (cuts_cells(across) or cuts_cells(down))):
        return None
    return make(image, table(*across), table(*down))


def _move(image: Tensor, x: Table, y: Table) -> Tensor:
    return as_images(moved(as_planes(image), x.pixel[:, 0], y.pixel[:, 0]), image)


def _bilinear(image: Tensor, x: Table, y: Table) -> Tensor | None:
    """Lines with 11 bits lose 4, each product with an 11-bit weight loses 16, and their sum loses
    2."""
    planes, height, rows = as_planes(image), image.shape[-2], len(y.pixel)
    apart = image.shape[-1] > 1.5 * len(x.pixel)  # most weights of a wider window would be 0
    lines = _whole_blocks(x, planes.shape[2], bits=4, count=1 if apart else None)
    if lines is None:
        return None
    few = 2 * rows < height  # for tall images only the rows that are read
    if few:
        planes = chosen(planes, y.pixel.T.ravel())
    made = joined((sums(turned(planes), lines) * 2.0**-lines.bits).floor(), lines.size)
    weights = _whole(y)
    if few:
        pairs = made.reshape(-1, lines.size, 2, rows)
        return as_images(turned(_quarters(_shifted(pairs, weights.T).sum(2))), image)
    made = turned(made)
    upper, lower = (_shifted(chosen(made, y.pixel[:, k]), weights[:, k : k + 1]) for k in (0, 1))
    return as_images(_quarters(upper + lower), image)


def _shifted(line: Tensor, weight: NDArray[np.int64]) -> Tensor:
    """floor(line weight / 2^16) for numbers below 2^15 and up to 2^11, whose product has 26 bits.

    weight = 4 high + low: floor((line high + floor(line low / 4)) / 2^14).
    """
    high = constant((weight >> 2).astype(np.float32) / 2**14, line)
    low = constant((weight & 3).astype(np.float32) / 4, line)
    return (line * high + (line * low).floor() * 2.0**-14).floor()


def _quarters(total: Tensor) -> Tensor:
    return (total * 0.25 + 0.5).to(torch.uint8)


def _exact(image: Tensor, x: Table, y: Table) -> Tensor | None:
    """cv2.INTER_LINEAR_EXACT: 8 and 8 bits, rounded once."""
    planes = as_planes(image)
    lines = _whole_blocks(x, image.shape[-1], one=1 << 8)
    columns = _whole_blocks(y, image.shape[-2], one=1 << 8, bits=16, largest=WHOLE_BYTE << 8)
    if lines is None or columns is None:
        return None
    made = turned(joined(sums(turned(planes), lines), lines.size))
    made = sums(made, columns) * 2.0**-columns.bits + 0.5
    return as_images(joined(made.to(torch.uint8), columns.size), image)


def _bicubic(image: Tensor, x: Table, y: Table) -> Tensor | None:
    """Integer lines; along y floats in OpenCV's vectors, and integers for the remaining columns."""
    planes, lines = as_planes(image), _whole_blocks(x, image.shape[-1])
    if lines is None:
        return None
    made = turned(joined(sums(turned(planes), lines), lines.size))
    weights = (_whole(y) * 2.0**-22).astype(np.float32)
    total = None
    for k in reversed(range(4)):
        line = chosen(made, y.pixel[:, k]) * constant(weights[:, k : k + 1], made)
        total = line if total is None else line + total
    assert total is not None
    found = as_images(to_bytes(total.round()), image)
    step, channels = VECTORS["bicubic", torch.uint8], image.shape[-3]
    rest = -(-(lines.size * channels % step) // channels)
    if not rest:
        return found
    numbers = _bicubic_numbers(made[..., lines.size - rest :], y)
    if numbers is None:
        return None
    first, last = found[..., : lines.size - rest], found[..., lines.size - rest :]
    vectors = in_vectors(image, lines.size, step)[..., lines.size - rest :]
    return torch.cat([first, torch.where(vectors, last, as_images(numbers, image))], -1)


def _bicubic_numbers(lines: Tensor, y: Table) -> Tensor | None:
    """The sums along y of 20-bit integers (P, H, k): high and low ones, with 12 bits truncated."""
    high = (lines * 2.0**-LINE_STEP).floor()
    low = lines - high * 2.0**LINE_STEP
    made = [_whole_blocks(y, lines.shape[1], largest=1 << n) for n in (LINE_STEP + 1, LINE_STEP)]
    if made[0] is None or made[1] is None:
        return None
    size = made[0].size
    carried = (joined(sums(low, made[1]), size) * 2.0**-LINE_STEP).floor()
    total = joined(sums(high, made[0]), size) + carried
    return to_bytes(total * 2.0 ** (LINE_STEP - 22) + 0.5)


def _cells(image: Tensor, x: Table, y: Table) -> Tensor | None:
    """Means of whole cells: exact sums times a float32; 2 x 2 rounds half up, except two
    channels."""
    (h, rows), (w, columns) = y.pixel.shape, x.pixel.shape
    if WHOLE_BYTE * rows * columns >= EXACT:
        return None
    planes = as_planes(image)[:, : h * rows, : w * columns].to(torch.float32)
    down = planes.reshape(-1, h, rows, w * columns).sum(2)
    total = turned(turned(down).reshape(-1, w, columns, h).sum(2))
    if rows == columns == 2 and image.shape[-3] in (1, 3, 4):
        made = _quarters(total)
    else:
        made = (total * float(np.float32(1) / np.float32(rows * columns))).round().to(torch.uint8)
    return as_images(made, image)


def _area(image: Tensor, x: Table, y: Table) -> Tensor:
    """Means over intervals that include fractions of pixels, rounded half to even."""
    made = _tap_by_tap(turned(as_planes(image).to(torch.float32)), x)
    return as_images(to_bytes(_tap_by_tap(turned(made), y).round()), image)


def _tap_by_tap(planes: Tensor, taps: Table) -> Tensor:
    """(P, n, k) to (P, m, k); a missing tap has weight 0, which changes no sum."""
    total = None
    for k in range(taps.weight.shape[1]):
        weight = np.where(taps.inside[:, k], taps.weight[:, k], 0).astype(np.float32)
        term = chosen(planes, taps.pixel[:, k]) * constant(weight[:, None], planes)
        total = term if total is None else total + term
    assert total is not None
    return total


def _whole(taps: Table, one: int = UINT8_ONE) -> NDArray[np.int64]:
    """The weights as 16-bit integers, rounded separately: their sum may be off."""
    return np.clip(np.rint(taps.weight * one), -(1 << 15), (1 << 15) - 1).astype(np.int64)


def _whole_blocks(taps: Table, length: int, one: int = UINT8_ONE, **options: Any) -> Blocks | None:
    return blocks_of(taps.pixel, _whole(taps, one), length, **options)


Way = Callable[[Tensor, Table, Table], Tensor | None]
WAYS: dict[str, Way] = {
    "move": _move,
    "bilinear": _bilinear,
    "exact": _exact,
    "bicubic": _bicubic,
    "cells": _cells,
    "area": _area,
}
"""By the algorithms that `opencv_resize.plan` names; the reference has lanczos4 and IPP's."""
