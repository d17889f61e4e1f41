"""Weighted sums of OpenCV's fixed-point path, bit for bit.

8-bit images are summed in integers; the others in float32, or float64 for float64, in OpenCV's
order of operations.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from warpkit.engine.arithmetic.opencv4_positions import FixedGrid
from warpkit.engine.arithmetic.opencv4_tables import ONE, STEPS, axis_table, integer_table
from warpkit.engine.arithmetic.processor import VECTOR_BYTES
from warpkit.engine.definitions.reference import convert, reader
from warpkit.engine.definitions.rounding import fma32
from warpkit.engine.definitions.rules import TAPS, SamplingRule, resolve

WORKING = {torch.uint8: torch.int32, torch.float64: torch.float64}
"""The type of the sums, by the image's type; float32 for all other types."""

VECTOR_TYPES = (torch.uint16, torch.int16, torch.float32)
"""Types for which OpenCV 4.14 sums one-channel images in vector registers, in another order."""


OPENCV_VECTOR_FLOATS = VECTOR_BYTES // 4
"""The number of float32 values in a vector register of this machine.

It affects OpenCV 4.14's last bits for bilinear images of one channel: the start of a row is summed
in registers, in another order than the rest that does not fill a register.
"""


def values(
    image: Tensor, grid: FixedGrid, fill: Tensor, sum_start: Tensor, rule: SamplingRule, lanes: int
) -> Tensor:
    """Sample `image` (*I, C, H, W) at the grid, without gradients.

    fill: the border's value or the background. sum_start: the border's value, whether transparent
    or not; under every border, bicubic and lanczos4 start sums near the edge with it. lanes:
    float32 numbers in a vector register (see `OPENCV_VECTOR_FLOATS`).
    """
    work = WORKING.get(image.dtype, torch.float32)
    fill, sum_start = fill.to(work), sum_start.to(work)
    near = Neighbours(image, grid, fill, rule)
    vector = rule.arithmetic == "opencv4" and image.shape[-3] == 1 and image.dtype in VECTOR_TYPES
    if rule.interpolation == "nearest":
        total = near.filled(0, 0)
    elif work == torch.int32:
        total = _integer_sum(near, grid, rule)
    elif rule.interpolation == "bilinear":
        total = _bilinear_sum(near, grid, rule, lanes if vector else 0)
    else:
        vector = vector and (rule.interpolation == "bicubic" or image.dtype != torch.float32)
        total = _wide_sum(near, grid, rule, sum_start, vector)
    if rule.border == "transparent":
        total = torch.where(near.on_image, total, fill)
    return convert(total, image.dtype)


class Neighbours:
    """The K x K neighbours of every position, read under the border's rule."""

    def __init__(self, image: Tensor, grid: FixedGrid, fill: Tensor, rule: SamplingRule) -> None:
        """image (*I, C, H, W); fill broadcasts to the result, (*batch, C, h, w)."""
        self.size = TAPS[rule.interpolation]
        self.fill = fill
        self._read = reader(image, grid.x.shape, fill.dtype)
        height, self._width = image.shape[-2:]
        # with a transparent border bicubic and lanczos4 reflect: whole pixels are kept or not
        reflects = rule.border == "transparent" and self.size > 2
        border = "reflect_101" if reflects else rule.border
        before = max(self.size // 2 - 1, 0)
        self._axes = []
        self.on_image = self.interior = torch.ones((), dtype=torch.bool, device=grid.x.device)
        for pixel, length in zip(grid.pixel(), (self._width, height), strict=True):
            first = pixel - before
            self._axes.append([resolve(first + k, length, border) for k in range(self.size)])
            self.on_image = channels((pixel >= 0) & (pixel < length)) & self.on_image
            self.interior = channels((first >= 0) & (first + self.size <= length)) & self.interior

    def tap(self, row: int, column: int) -> tuple[Tensor, Tensor | None]:
        """A neighbour's value, and whether it is inside the image (None: always)."""
        (x, x_inside), (y, y_inside) = self._axes[0][column], self._axes[1][row]
        value = self._read(y * self._width + x)
        if x_inside is None or y_inside is None:
            return value, None
        return value, channels(x_inside & y_inside)

    def filled(self, row: int, column: int) -> Tensor:
        """A neighbour's value; the fill where it is missing."""
        value, inside = self.tap(row, column)
        return value if inside is None else torch.where(inside, value, self.fill)

    def reached(self) -> Tensor | None:
        """Whether any neighbour is inside the image (None: always)."""
        masks = [[inside for _, inside in axis if inside is not None] for axis in self._axes]
        if not masks[0]:
            return None
        x, y = (torch.stack(axis).any(0) for axis in masks)
        return channels(x & y)

    def sums_on_image(self, weights: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """The sum over the neighbours inside the image, and of their weights; 1 if there are
        none."""
        share = total = self.fill.new_zeros(())
        for k, weight in enumerate(weights):
            value, inside = self.tap(*divmod(k, self.size))
            assert inside is not None
            share = torch.where(inside, share + value * weight, share)
            total = torch.where(inside, total + weight, total)
        return share, torch.where(total == 0, 1, total)


def _integer_sum(near: Neighbours, grid: FixedGrid, rule: SamplingRule) -> Tensor:
    """The sum in units of 1 / ONE, equal in any order of addition. Halves are rounded up."""
    x, y = grid.step()
    weights = [
        channels(weight[y * STEPS + x])
        for weight in integer_table(rule.interpolation, x.device).unbind(-1)
    ]
    total = near.fill.new_zeros(())
    for k, weight in enumerate(weights):
        total = total + near.filled(*divmod(k, near.size)) * weight
    if rule.border == "transparent" and near.size == 2:
        share, weight = near.sums_on_image(weights)
        mean = (share.float() * ONE / weight.float()).to(total.dtype)
        total = torch.where(near.interior, total, mean)
    return (total + ONE // 2) >> 15


def _bilinear_sum(near: Neighbours, grid: FixedGrid, rule: SamplingRule, lanes: int) -> Tensor:
    """lanes: 0 if OpenCV has no vector kernel."""
    weights = _float_weights(near, grid, rule)
    (w00, w01), (w10, w11) = weights
    p00, p01, p10, p11 = (near.filled(row, column) for row in (0, 1) for column in (0, 1))
    total = p00 * w00 + p01 * w01 + p10 * w10 + p11 * w11
    if lanes:
        fused = fma32(p00, w00, fma32(p01, w01, fma32(p10, w10, p11 * w11)))
        total = torch.where(vector_part(near.interior, grid.block, lanes), fused, total)
    if rule.border == "transparent":
        share, weight = near.sums_on_image([w00, w01, w10, w11])
        return torch.where(near.interior, total, share / weight)
    return _border_where_missed(near, total)


def _wide_sum(
    near: Neighbours, grid: FixedGrid, rule: SamplingRule, sum_start: Tensor, vector: bool
) -> Tensor:
    """Bicubic and lanczos4 sums that OpenCV 4 computes in float32, in three orders of addition.

    If all taps are inside the image (`near.interior`), the products of a row are added, and then
    the rows: (sum_i w[0, i] v[0, i]) + (sum_i w[1, i] v[1, i]) + ... OpenCV's vector code
    (`vector`: float32 images with some numbers of channels) uses four registers. Each adds every
    fourth column with fused products, and they are added crosswise at the end. Near the border
    OpenCV sums differences from the border's value c over the taps inside,
    border's value c over the taps inside,

        c + sum of (v - c) w

    In real numbers this equals the sum with c for missing taps, because the weights sum to 1; in
    float32 the last bits differ. So c is `sum_start` under every border, including transparent,
    which shows the background instead. All orders are reproduced only for their last bits.
    """
    zero = sum_start.new_zeros(())
    inner, outer = zero, sum_start
    registers = [zero, zero, zero, zero]  # each adds every fourth column
    for row, weights in enumerate(_float_weights(near, grid, rule)):
        line = None
        for column, weight in enumerate(weights):
            value, inside = near.tap(row, column)
            line = value * weight if line is None else line + value * weight
            added = outer + (value - sum_start) * weight
            outer = added if inside is None else torch.where(inside, added, outer)
            if vector:
                registers[column % 4] = fma32(value, weight, registers[column % 4])
        assert line is not None
        inner = inner + line
    if vector:
        inner = (registers[0] + registers[2]) + (registers[1] + registers[3])
    return _border_where_missed(near, torch.where(near.interior, inner, outer))


def _float_weights(near: Neighbours, grid: FixedGrid, rule: SamplingRule) -> list[list[Tensor]]:
    """The weight of every tap (row, column): the product of the axes' weights, rounded to
    float32."""
    table = axis_table(rule.interpolation, grid.x.device).unbind(-1)
    x, y = ([channels(weight[step]) for weight in table] for step in grid.step())
    return [[(row * column).to(near.fill.dtype) for column in x] for row in y]


def _border_where_missed(near: Neighbours, total: Tensor) -> Tensor:
    """Replaces sums without any neighbour inside the image by the border's value."""
    reached = near.reached()
    return total if reached is None else torch.where(reached, total, near.fill)


def vector_part(inside: Tensor, block: int, lanes: int) -> Tensor:
    """The pixels that OpenCV sums in registers: whole registers of each run of `inside`.

    Runs are parts of a row and end at the end of a block of columns.
    """
    width = inside.shape[-1]
    padded = torch.nn.functional.pad(inside, (0, -width % block)).unflatten(-1, (-1, block))
    column = torch.arange(block, device=inside.device)
    before = torch.where(padded, -1, column).cummax(-1).values
    after = torch.where(padded, block, column).flip(-1).cummin(-1).values.flip(-1)
    length, offset = after - before - 1, column - before - 1
    whole = padded & (offset < length // lanes * lanes)
    return whole.flatten(-2)[..., :width]


def channels(field: Tensor) -> Tensor:
    """(*P, h, w) with an additional dimension for channels."""
    return field[..., None, :, :]
