"""Tables of the pixels that each output of a resize by splines reads: the filter and the samples.

A sample of a spline is a sum of coefficients, and each of them is one of all pixels, with weights
that fall off by a factor of 2 to 6 a pixel. So it is a sum of pixels, of those near the position:
28 of spline3 for float32. The row of pixels has no end here; the border then folds it. That is
exact, without the sums that start a recursion, and serves rows of any length.

scikit-image smooths what shrinks before, by a Gaussian, which is one more sum.
"""

from __future__ import annotations

import torch
from torch import Tensor

from warpkit.engine.definitions.rules import resolve
from warpkit.engine.definitions.splines import (
    CONTINUED,
    FILTER_BORDERS,
    continued,
    impulse,
    reach,
    weights,
)

Row = tuple[Tensor, Tensor]
"""Of each output the first pixel (m,), float64, and the weights (m, K) of it and the next ones."""


def table(
    position: Tensor, length: int, order: int, border: str, sigma: float, dtype: torch.dtype
) -> Row | tuple[Tensor, Tensor]:
    """The pixels (m, K), int64, and their weights (m, K) at positions (m,) of a row of `length`.

    order: of the spline; sigma: of the Gaussian before, or 0; dtype: of the sums.
    """
    row = samples(position, order, dtype)
    if sigma > 1e-15:  # SciPy's least
        row = smoothed(_inside(row, length, border, order), sigma)
        order = 1  # the samples are folded already
    first, weight = _inside(row, length, border, order)
    pixel = first[:, None].long() + torch.arange(weight.shape[1], device=first.device)
    return pixel.remainder(length) if border == "wrap" else pixel, weight


def filter_table(
    length: int, order: int, border: str, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, Tensor]:
    """The pixels (m, K), int64, and their weights (m, K), that make the coefficients of a row.

    They begin `CONTINUED` pixels earlier and end later under a border that continues the row.
    """
    pad, far = continued(border), reach(order, dtype)
    k = torch.arange(float(-pad), length + pad, dtype=torch.float64, device=device)
    away = torch.arange(float(-far), far + 1, dtype=torch.float64, device=device)
    row = k - far, impulse(order, away).expand(len(k), -1)
    first, weight = _inside(row, length, border, order)
    pixel = first[:, None].long() + torch.arange(weight.shape[1], device=device)
    return pixel.remainder(length) if border == "wrap" else pixel, weight


def samples(position: Tensor, order: int, dtype: torch.dtype) -> Row:
    """The weights of a row without end at positions (m,), for a spline's samples."""
    base = position.detach().floor().nan_to_num(0.0)  # an invalid box's, whose weights are NaN
    near = torch.stack(weights(position - base, order), -1)
    if order < 2:
        return base, near
    far, half = reach(order, dtype), near.shape[1] // 2
    at = torch.arange(1.0 - half, half + 1, dtype=torch.float64, device=base.device)
    pixels = torch.arange(1.0 - far, far + 1, dtype=torch.float64, device=base.device)
    return base + pixels[0], near @ impulse(order, at[:, None] - pixels)


def smoothed(row: Row, sigma: float) -> Row:
    """The same weights of a row that a Gaussian smooths first: scipy.ndimage.gaussian_filter's."""
    first, weight = row
    radius = int(4 * sigma + 0.5)
    x = torch.arange(-radius, radius + 1, dtype=torch.float64, device=first.device)
    gauss = torch.exp(-0.5 / sigma**2 * x**2)
    count = weight.shape[1]
    spread = weight.new_zeros(count, count + 2 * radius)
    for k in range(count):
        spread[k, k : k + 2 * radius + 1] = gauss / gauss.sum()
    return first - radius, weight @ spread


def _inside(row: Row, length: int, border: str, order: int) -> Row:
    """The same weights of pixels 0 .. length - 1, by the border; under wrap perhaps modulo."""
    first, weight = row
    count = weight.shape[1]
    if border == "wrap" and count < length:
        return first, weight
    index = first[:, None].long() + torch.arange(count, device=first.device)
    if order > 1 and border in FILTER_BORDERS:
        whole = length + 2 * CONTINUED
        index = resolve(index + CONTINUED, whole, FILTER_BORDERS[border])[0] - CONTINUED
    index, inside = resolve(index, length, border)
    if inside is not None:  # the pixels of value 0 beyond the row
        weight = torch.where(inside, weight, 0.0)
    begin = first.clamp(0, max(length - count, 0))
    sums = weight.new_zeros(weight.shape[0], min(count, length))
    return begin, sums.scatter_add(1, index - begin[:, None].long(), weight)
