"""Sums over the pixels of two images and their slopes, for the normal equations of an alignment.

`warpkit.alignment.equations` has them in torch operations, some forty passes over the images; here
they are two. Sums run down the columns, so that neighbouring columns are neighbouring lanes of a
vector and no sum is reordered; what the columns hold is added up by torch. The pixels of the
outermost ring are left out: their weight is 0 there.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.backends.cpu.runtime.compiler import DIGEST, kernel
from warpkit.engine.backends.cpu.threads import run

FIRST = 6
"""Sums of the first pass, times the weight: 1, W, F, W W, F F, W F."""

SHARED, CHANNEL = 8, 4
"""Sums of the second pass, of all channels: gx gx, gx gy, gy gy, gx r, gy r, and the products of
both images' slopes, F W, F F, W W; of each channel: gx, gy, gx W, gy W."""


def first_sums(fixed: Tensor, warped: Tensor, weight: Tensor) -> Tensor:
    """The sums of FIRST, (N, C, 6), float64.

    fixed (N, C, h, w); warped (N, C or more, h, w), of which the first C are read; weight
    (N, 1, h, w); of one float type, dense.
    """
    count, channels, _, width = fixed.shape
    out = np.zeros((count, channels, FIRST, width))
    arrays = [t.numpy() for t in (fixed, warped, weight)]
    work = _first_kernel()

    def share(begin: int, end: int) -> None:
        work(*arrays, out, begin, end)

    run(share, count, fixed.numel())
    return torch.from_numpy(out).sum(-1)


@cache
def _first_kernel() -> Any:
    digest = DIGEST

    @kernel
    def first(fixed, warped, weight, out, begin, end):
        digest  # noqa: B018
        for n in range(begin, end):
            for c in range(fixed.shape[1]):
                s0, s1, s2 = out[n, c, 0], out[n, c, 1], out[n, c, 2]
                s3, s4, s5 = out[n, c, 3], out[n, c, 4], out[n, c, 5]
                for y in range(1, fixed.shape[2] - 1):
                    m_row, w_row, f_row = weight[n, 0, y], warped[n, c, y], fixed[n, c, y]
                    for x in range(fixed.shape[3]):
                        m, w, f = np.float64(m_row[x]), np.float64(w_row[x]), np.float64(f_row[x])
                        mw, mf = m * w, m * f
                        s0[x] += m
                        s1[x] += mw
                        s2[x] += mf
                        s3[x] += mw * w
                        s4[x] += mf * f
                        s5[x] += mw * f

    return first


def second_sums(
    fixed: tuple[Tensor, Tensor, Tensor],
    warped: Tensor,
    weight: Tensor,
    gain: Tensor,
    bias: Tensor,
    half: float,
    degree: int,
) -> Tensor:
    """The sums of SHARED and CHANNEL times x^i y^j, (N, 8 + 4 C, D), D = (degree + 1)^2, float64.

    fixed: the image and its slopes, (N, C, h, w) each; warped, weight as of `first_sums`; gain and
    bias (N, C, 1, 1); half: pixels to a unit of x and y, which the gradients G are by as well.
    """
    image = fixed[0]
    count, channels, _, width = image.shape
    maps, powers = SHARED + CHANNEL * channels, degree + 1
    columns = np.zeros((count, maps * powers, width))
    parts = tuple(t.numpy() for t in fixed)
    arrays = [t.numpy() for t in (warped, weight)]
    lines = [t.detach().reshape(count, channels).to(image.dtype).numpy() for t in (gain, bias)]
    units = np.array((0.5, half / 2), parts[0].dtype)
    work = _second_kernel(powers)

    def share(begin: int, end: int) -> None:
        rows = np.empty((maps, width), parts[0].dtype)
        work(parts, *arrays, *lines, units, half, rows, columns, begin, end)

    run(share, count, image.numel())
    place = (torch.arange(width, dtype=torch.float64) - (width - 1) / 2) / half
    along = torch.stack([place**k for k in range(powers)], -1)
    sums = torch.from_numpy(columns).unflatten(1, (maps, powers)) @ along
    return sums.transpose(-1, -2).flatten(-2)


@cache
def _second_kernel(powers: int) -> Any:
    digest = DIGEST

    @kernel
    def second(parts, warped, weight, gain, bias, units, half, rows, columns, begin, end):
        digest  # noqa: B018
        fixed, fixed_x, fixed_y = parts
        last = fixed.shape[3] - 1
        part, unit = units[0], units[1]
        for n in range(begin, end):
            for y in range(1, fixed.shape[2] - 1):
                rows[:SHARED] = 0.0
                s0, s1, s2, s3 = rows[0], rows[1], rows[2], rows[3]
                s4, s5, s6, s7 = rows[4], rows[5], rows[6], rows[7]
                m_row = weight[n, 0, y]
                for c in range(fixed.shape[1]):
                    a, b = gain[n, c], bias[n, c]
                    f_row, fx_row, fy_row = fixed[n, c, y], fixed_x[n, c, y], fixed_y[n, c, y]
                    above, w_row, below = (
                        warped[n, c, y - 1],
                        warped[n, c, y],
                        warped[n, c, y + 1],
                    )
                    x_row, y_row = rows[SHARED + 4 * c], rows[SHARED + 4 * c + 1]
                    xw_row, yw_row = rows[SHARED + 4 * c + 2], rows[SHARED + 4 * c + 3]
                    for x in range(1, last):
                        m, w = m_row[x], w_row[x]
                        wx = (w_row[x + 1] - w_row[x - 1]) * part
                        wy = (below[x] - above[x]) * part
                        fx, fy = fx_row[x], fy_row[x]
                        r = f_row[x] - b - a * w
                        gx, gy = (fx + a * wx) * unit, (fy + a * wy) * unit
                        mx, my = m * gx, m * gy
                        s0[x] += mx * gx
                        s1[x] += mx * gy
                        s2[x] += my * gy
                        s3[x] += mx * r
                        s4[x] += my * r
                        s5[x] += m * (fx * wx + fy * wy)
                        s6[x] += m * (fx * fx + fy * fy)
                        s7[x] += m * (wx * wx + wy * wy)
                        x_row[x] = mx
                        y_row[x] = my
                        xw_row[x] = mx * w
                        yw_row[x] = my * w
                height_of = (y - (fixed.shape[2] - 1) / 2) / half
                for q in range(rows.shape[0]):
                    row, power = rows[q], 1.0
                    for j in range(powers):
                        column = columns[n, q * powers + j]
                        for x in range(1, last):
                            column[x] += power * row[x]
                        power *= height_of

    return second
