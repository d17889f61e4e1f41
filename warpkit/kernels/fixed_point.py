"""OpenCV's fixed-point path: all of OpenCV 4, and what OpenCV 5 has kept of it.

Positions are rounded to 1/32 pixel and held in 16 bits, weights come from `tables`. 8-bit images are
summed in integers; the others in float32, or float64 for float64, in OpenCV's order of operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.kernels import tables
from warpkit.kernels.reference import convert, reader
from warpkit.kernels.rounding import INT_MAX, INT_MIN, fma32, saturate16, to_int32, wrap32
from warpkit.kernels.rules import LIMIT, TAPS, Rule, resolve

WORKING = {torch.uint8: torch.int32, torch.float64: torch.float64}
"""The type of the sums, by the image's type; float32 for every other."""

VECTOR_TYPES = (torch.uint16, torch.int16, torch.float32)
"""Types whose images of one channel OpenCV 4.14 sums in vector registers, in another order."""


class Grid(NamedTuple):
    """Source positions, (*P, h, w)."""

    x: Tensor
    """int64, in 1/32 pixel; a multiple of 32 for nearest."""
    y: Tensor
    valid: Tensor
    """False for NaN, and for positions of 2^31 pixels and beyond: nothing is sampled there."""
    block: int
    """OpenCV cuts rows into blocks of so many columns, and vector loops end with them."""

    def pixel(self) -> tuple[Tensor, Tensor]:
        """The source pixel left of and above the position, or at it."""
        return saturate16(self.x >> 5), saturate16(self.y >> 5)

    def step(self) -> tuple[Tensor, Tensor]:
        """The rest, in 1/32 pixel."""
        return self.x & 31, self.y & 31

    def points(self) -> Tensor:
        """The positions as float64 points (*P, h, w, 2)."""
        axes = zip(self.pixel(), self.step(), strict=True)
        return torch.stack([pixel + step / tables.STEPS for pixel, step in axes], dim=-1)


def warp_grid(inverse: Tensor, size: Sequence[int], rule: Rule) -> Grid:
    """Where every pixel of an output of `size` looks; inverse (..., 2 or 3, 3), float64."""
    nearest = rule.interpolation == "nearest"
    height, width = size
    x = torch.arange(width, device=inverse.device)
    y = torch.arange(height, device=inverse.device)[:, None]
    finite = inverse.isfinite().all(-1).all(-1)[..., None, None]
    make = _affine_grid if inverse.shape[-2] == 2 else _perspective_grid
    grid = make(inverse[..., None, None], x, y, nearest)
    return grid._replace(valid=grid.valid & finite)


def _affine_grid(m: Tensor, x: Tensor, y: Tensor, nearest: bool) -> Grid:
    """Two rounded terms, in 1/1024 pixel, are added in an int32 that may overflow."""
    axes, valid = [], torch.ones((), dtype=torch.bool, device=m.device)
    for row in (m[..., 0, :, :, :], m[..., 1, :, :, :]):
        across, down = row[..., 0, :, :] * x, row[..., 1, :, :] * y + row[..., 2, :, :]
        valid = valid & ((across + down).abs() < LIMIT)
        fixed = to_int32(across * 1024) + to_int32(down * 1024)
        # nearest adds half a pixel (ties go up), the others half of a 1/32
        fixed = wrap32(fixed + (512 if nearest else 16))
        axes.append(fixed >> 10 << 5 if nearest else fixed >> 5)
    block = min(4096 // min(32, len(y)), len(x))
    return Grid(*axes, valid, block)


def _perspective_grid(m: Tensor, x: Tensor, y: Tensor, nearest: bool) -> Grid:
    """Computed in blocks of columns: what is left of the block is added first, then the rest."""
    block = min(1024 // min(16, len(y)), len(x))
    within = x % block
    start = x - within
    u, v, w = (
        (row[..., 0, :, :] * start + row[..., 1, :, :] * y + row[..., 2, :, :])
        + row[..., 0, :, :] * within
        for row in (m[..., i, :, :, :] for i in range(3))
    )
    scale = torch.where(w != 0, (1.0 if nearest else tables.STEPS) / w, 0.0)
    axes, valid = [], torch.ones((), dtype=torch.bool, device=m.device)
    for value in (u * scale, v * scale):
        valid = valid & (value.abs() < LIMIT * (1 if nearest else tables.STEPS))
        fixed = to_int32(value.clamp(INT_MIN, INT_MAX))
        axes.append(fixed << 5 if nearest else fixed)
    return Grid(*axes, valid, block)


def sample_grid(points: Tensor, rule: Rule, *, fixed_map: bool = False) -> Grid:
    """The positions of cv2.remap's maps; points (*P, h, w, 2), which become float32.

    fixed_map: the points are a CV_16SC2 map's, multiples of 1/32; nearest rounds their ties up.
    """
    points = points.float()
    height, width = points.shape[-3:-1]
    valid = (points.abs() < LIMIT).all(-1)
    if rule.interpolation == "nearest" and not fixed_map:
        fixed = to_int32(points) << 5
    else:
        fixed = to_int32(points * tables.STEPS)
        fixed = (fixed + 16) >> 5 << 5 if rule.interpolation == "nearest" else fixed
    block = min(16384 // min(128, height), width)
    return Grid(fixed[..., 0], fixed[..., 1], valid, block)


def values(
    image: Tensor, grid: Grid, outside: Tensor, start: Tensor, rule: Rule, lanes: int
) -> Tensor:
    """Sample `image` (*I, C, H, W) at the grid, without gradient.

    outside: the border's value or the background. start: the border's value also where transparent;
    the sums of bicubic and lanczos4 near the border begin with it, whatever the border.
    lanes: float32 numbers in a vector register (see `float_lanes`).
    """
    work = WORKING.get(image.dtype, torch.float32)
    outside, start = outside.to(work), start.to(work)
    sampler = _Sampler(image, grid, outside, start, rule, lanes)
    if rule.interpolation == "nearest":
        total = sampler.nearest()
    elif work == torch.int32:
        total = sampler.integers()
    elif rule.interpolation == "bilinear":
        total = sampler.bilinear()
    else:
        total = sampler.wide()
    return convert(total, image.dtype)


def float_lanes() -> int:
    """float32 numbers in a vector register of this machine: 16 with AVX-512, else AVX2's 8.

    OpenCV 4.14's last bits depend on it for bilinear images of one channel: the head of a row is
    summed in registers, in another order than the rest that does not fill one.
    """
    return 16 if torch.backends.cpu.get_cpu_capability() == "AVX512" else 8


class _Sampler:
    """One call of `values`: the neighbours of every position, read under the border's rule."""

    def __init__(
        self,
        image: Tensor,
        grid: Grid,
        outside: Tensor,
        start: Tensor,
        rule: Rule,
        lanes: int,
    ) -> None:
        self.rule, self.grid, self.lanes = rule, grid, lanes
        self.height, self.width = image.shape[-2:]
        self.outside, self.start = outside, start
        self.read = reader(image, grid.x.shape, outside.dtype)
        self.transparent = rule.border == "transparent"
        self.taps = TAPS[rule.interpolation]
        self.vector = (
            rule.arithmetic == "opencv4" and image.shape[-3] == 1 and image.dtype in VECTOR_TYPES
        )
        self.vector_wide = self.vector and (
            rule.interpolation == "bicubic" or image.dtype != torch.float32
        )
        border = rule.border
        if self.transparent and self.taps > 2:
            border = "reflect_101"  # the pixel is shown or not as a whole, by where it looks
        x, y = grid.pixel()
        first = self.taps // 2 - 1 if self.taps > 1 else 0
        self.columns = [resolve(x - first + k, self.width, border) for k in range(self.taps)]
        self.rows = [resolve(y - first + k, self.height, border) for k in range(self.taps)]
        self.on_image = _image_like((x >= 0) & (x < self.width) & (y >= 0) & (y < self.height))
        last = self.taps - 1 - first
        self.interior = _image_like(
            (x >= first) & (x < self.width - last) & (y >= first) & (y < self.height - last)
        )

    def tap(self, row: int, column: int) -> tuple[Tensor, Tensor | None]:
        """A neighbour's value, and whether it is on the image (None: it always is)."""
        (y, y_inside), (x, x_inside) = self.rows[row], self.columns[column]
        value = self.read(y * self.width + x)
        if x_inside is None or y_inside is None:
            return value, None
        return value, _image_like(x_inside & y_inside)

    def filled(self, row: int, column: int) -> Tensor:
        """A neighbour's value; what stands outside where it is missing."""
        value, inside = self.tap(row, column)
        return value if inside is None else torch.where(inside, value, self.outside)

    def nearest(self) -> Tensor:
        return self.filled(0, 0)

    def integers(self) -> Tensor:
        """Any order gives the same sum; a half is rounded up."""
        x, y = self.grid.step()
        table = tables.integer_table(self.rule.interpolation, x.device)
        step = y * tables.STEPS + x
        total = torch.zeros((), dtype=torch.int32, device=x.device)
        weights = [_image_like(table[:, k][step]) for k in range(self.taps**2)]
        for k, weight in enumerate(weights):
            total = total + self.filled(*divmod(k, self.taps)) * weight
        if self.transparent and self.taps == 2:
            share, weight = self._on_image_sums(weights)
            part = (share.float() * tables.ONE / weight.float()).to(torch.int32)
            total = torch.where(self.interior, total, part)
        total = (total + tables.ONE // 2) >> 15
        return self._transparent(total)

    def bilinear(self) -> Tensor:
        weights = self._weights()
        (w00, w01), (w10, w11) = ([weights(r, c) for c in (0, 1)] for r in (0, 1))
        p00, p01, p10, p11 = (self.filled(r, c) for r in (0, 1) for c in (0, 1))
        total = p00 * w00 + p01 * w01 + p10 * w10 + p11 * w11
        if self.vector:
            fused = fma32(p00, w00, fma32(p01, w01, fma32(p10, w10, p11 * w11)))
            in_vector = vector_part(self.interior, self.grid.block, self.lanes)
            total = torch.where(in_vector, fused, total)
        if self.transparent:
            share, weight = self._on_image_sums([w00, w01, w10, w11])
            total = torch.where(self.interior, total, share / weight)
        return self._transparent(self._missed(total))

    def wide(self) -> Tensor:
        """Bicubic and lanczos4: by rows inside; near the border as differences from `start`."""
        weights = self._weights()
        zero = self.start.new_zeros(())
        inner, outer = zero, self.start
        columns = [zero, zero, zero, zero]  # a vector register adds every fourth column
        for r in range(self.taps):
            line = None
            for c in range(self.taps):
                (value, inside), weight = self.tap(r, c), weights(r, c)
                term = value * weight
                line = term if line is None else line + term
                added = outer + (value - self.start) * weight
                outer = added if inside is None else torch.where(inside, added, outer)
                if self.vector_wide:
                    columns[c % 4] = fma32(value, weight, columns[c % 4])
            inner = inner + line
        if self.vector_wide:
            inner = (columns[0] + columns[2]) + (columns[1] + columns[3])
        return self._transparent(self._missed(torch.where(self.interior, inner, outer)))

    def _weights(self):
        """The weight of the tap (row, column): the product of the axes', rounded to float32."""
        table = tables.axis_table(self.rule.interpolation, self.grid.x.device)
        x, y = (
            [_image_like(table[:, k][step]) for k in range(self.taps)] for step in self.grid.step()
        )
        return lambda row, column: (y[row] * x[column]).to(self.outside.dtype)

    def _on_image_sums(self, weights: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """The sum over the neighbours on the image, and of their weights; 1 where there is none."""
        share = weight = self.start.new_zeros(())
        for k, w in enumerate(weights):
            value, inside = self.tap(*divmod(k, self.taps))
            assert inside is not None
            share = torch.where(inside, share + value * w, share)
            weight = torch.where(inside, weight + w, weight)
        return share, torch.where(weight == 0, 1, weight)

    def _missed(self, total: Tensor) -> Tensor:
        """The border's value itself where no neighbour is on the image."""
        if self.rule.border != "constant":
            return total
        any_of = [_any([inside for _, inside in axis]) for axis in (self.rows, self.columns)]
        return torch.where(_image_like(any_of[0] & any_of[1]), total, self.outside)

    def _transparent(self, total: Tensor) -> Tensor:
        """The background where the position, rounded down, is not on the image."""
        return torch.where(self.on_image, total, self.outside) if self.transparent else total


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


def _any(masks: Sequence[Tensor | None]) -> Tensor:
    return torch.stack([mask for mask in masks if mask is not None]).any(0)


def _image_like(field: Tensor) -> Tensor:
    """(*P, h, w) with a dimension for the channels."""
    return field[..., None, :, :]
