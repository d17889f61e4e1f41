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
from warpkit.engine.sampling.reference import convert, reader
from warpkit.engine.sampling.rounding import fma32
from warpkit.engine.sampling.rules import TAPS, SamplingRule, resolve

WORKING = {torch.uint8: torch.int32, torch.float64: torch.float64}
"""The type of the sums, by the image's type; float32 for every other."""

VECTOR_TYPES = (torch.uint16, torch.int16, torch.float32)
"""Types whose images of one channel OpenCV 4.14 sums in vector registers, in another order."""


OPENCV_VECTOR_FLOATS = VECTOR_BYTES // 4
"""float32 numbers in a vector register of this machine.

OpenCV 4.14's last bits depend on it for bilinear images of one channel: the head of a row is summed
in registers, in another order than the rest that does not fill one.
"""


def values(
    image: Tensor, grid: FixedGrid, fill: Tensor, sum_start: Tensor, rule: SamplingRule, lanes: int
) -> Tensor:
    """Sample `image` (*I, C, H, W) at the grid, without gradient.

    fill: the border's value or the background. sum_start: the border's value, transparent or not;
    the sums of bicubic and lanczos4 near the border begin with it, whatever the border.
    lanes: float32 numbers in a vector register (see `OPENCV_VECTOR_FLOATS`).
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
        # bicubic and lanczos4 reflect where transparent: a pixel is kept or not as a whole
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
        """A neighbour's value, and whether it is on the image (None: it always is)."""
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
        """Whether any neighbour is on the image (None: it always is)."""
        masks = [[inside for _, inside in axis if inside is not None] for axis in self._axes]
        if not masks[0]:
            return None
        x, y = (torch.stack(axis).any(0) for axis in masks)
        return channels(x & y)

    def sums_on_image(self, weights: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """The sum over the neighbours on the image, and of their weights; 1 where there is none."""
        share = total = self.fill.new_zeros(())
        for k, weight in enumerate(weights):
            value, inside = self.tap(*divmod(k, self.size))
            assert inside is not None
            share = torch.where(inside, share + value * weight, share)
            total = torch.where(inside, total + weight, total)
        return share, torch.where(total == 0, 1, total)


def _integer_sum(near: Neighbours, grid: FixedGrid, rule: SamplingRule) -> Tensor:
    """In units of 1 / ONE; any order gives the same sum. A half is rounded up."""
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
    """lanes: 0 where OpenCV has no vector kernel."""
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
    """Bicubic and lanczos4 of what OpenCV 4 sums in float32, which has three orders of addition.

    Where all taps lie in the image (`near.interior`) the products are added up row by row, and then
    the rows: (sum_i w[0, i] v[0, i]) + (sum_i w[1, i] v[1, i]) + ... With vector code (`vector`:
    float32 images of some channels) four registers add every fourth column instead, with fused
    products, and are added crosswise at the end. Near the border OpenCV sums differences from the
    border's value c over the taps inside,

        c + sum of (v - c) w

    which in real numbers is the sum with c in the place of missing taps, as the weights sum to 1;
    in float32 its last bits differ. So c is `sum_start` under every border, transparent too, where
    the background is what shows. Each order is kept for its bits alone.
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
    """The weight of every tap (row, column): the product of the axes', rounded to float32."""
    table = axis_table(rule.interpolation, grid.x.device).unbind(-1)
    x, y = ([channels(weight[step]) for weight in table] for step in grid.step())
    return [[(row * column).to(near.fill.dtype) for column in x] for row in y]


def _border_where_missed(near: Neighbours, total: Tensor) -> Tensor:
    """The border's value itself where no neighbour is on the image."""
    reached = near.reached()
    return total if reached is None else torch.where(reached, total, near.fill)


def vector_part(inside: Tensor, block: int, lanes: int) -> Tensor:
    """The pixels that OpenCV sums in registers: of every run of `inside`, whole registers.

    Runs lie in a row and end where a block of columns ends.
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
    """(*P, h, w) with a dimension for the channels."""
    return field[..., None, :, :]
