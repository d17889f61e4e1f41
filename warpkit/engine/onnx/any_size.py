"""Pillow's filters for bytes of any height and width, with tables computed in the graph in float64.

They give Pillow's own numbers by two detours. A Python number with a float64 tensor becomes a
float32 constant, so pi is a sum of three. And onnxruntime's float64 sine is only exact to 5e-11, so
a series replaces it. Which pass comes first depends on the sizes: the graph has both orders under
an `If`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.arithmetic.pillow import BITS, CHOOSES_ORDER
from warpkit.engine.definitions.resize import SUPPORT
from warpkit.engine.onnx.passes import as_images, as_planes, to_bytes, turned

STEP = 7
"""Bits of the low digit: windows of up to 514 taps have exact sums, and the 22 - 7 bits of the high
digit leave room for Lanczos' negative weights."""

PI_HIGH = float(np.float32(math.pi))
PI_MIDDLE = float(np.float32(math.pi - PI_HIGH))
PI_LOW = float(np.float32(math.pi - PI_HIGH - PI_MIDDLE))


def resize(image: Tensor, size: Sequence[int], interpolation: str) -> Tensor:
    """Resizes (..., C, H, W), with symbolic H and W, to `size` (h, w) as Pillow does."""
    filter_of, reach = FILTERS[interpolation], SUPPORT[interpolation]
    planes, (rows, columns) = as_planes(image), map(int, size)

    def down(values: Tensor) -> Tensor:
        return _filtered(values, rows, filter_of, reach)

    def across(values: Tensor) -> Tensor:
        return turned(_filtered(turned(values), columns, filter_of, reach))

    def down_first(values: Tensor) -> Tensor:
        return across(down(values)).clone(memory_format=torch.contiguous_format)

    def across_first(values: Tensor) -> Tensor:
        return down(across(values)).clone(memory_format=torch.contiguous_format)

    if not CHOOSES_ORDER:
        return as_images(across_first(planes), image)
    whole: Any = {"dtype": torch.int64, "device": image.device}
    height, width = (torch.scalar_tensor(side, **whole) for side in image.shape[-2:])
    is_first = (height > rows) & (height - rows > 2 * (width - columns))
    return as_images(torch.cond(is_first, down_first, across_first, (planes,)), image)


def _filtered(planes: Tensor, size: int, filter_of: Any, reach: float) -> Tensor:
    """One pass of bytes (P, n, k) along their rows: a window for every output row."""
    rows, high, low = _table(planes.shape[1], size, filter_of, reach, planes.device)
    windows = planes.index_select(1, rows.reshape(-1)).to(torch.float32)
    windows = windows.reshape(planes.shape[0], size, -1, planes.shape[2])
    total = torch.matmul(high, windows) + torch.matmul(low, windows).floor()
    return to_bytes(total * 2.0 ** (STEP - BITS) + 0.5).squeeze(2)


def _table(
    n: Any, m: int, filter_of: Any, reach: float, device: torch.device
) -> tuple[Tensor, Tensor, Tensor]:
    """The steps of `pillow_tables`: pixels (m, K) for an axis of n, and two digits (m, 1, K)."""
    wide: Any = {"dtype": torch.float64, "device": device}
    length = torch.scalar_tensor(n, **wide)
    scale = length / float(m)
    stretch = scale.clamp(min=1.0)
    centre = (torch.arange(m, **wide) + 0.5) * scale
    first = (centre - reach * stretch + 0.5).clamp(min=0.0).floor()
    end = torch.minimum((centre + reach * stretch + 0.5).floor(), length)
    taps = int(2 * reach) * torch.sym_max(n, m) // m + 2
    index = first[:, None] + torch.arange(taps, **wide)
    weight = filter_of((index - centre[:, None] + 0.5) * (1.0 / stretch))
    weight = torch.where(index < end[:, None], weight, 0.0)
    weight = weight / weight.cumsum(1)[:, -1:]  # from left to right
    whole = weight * 2.0**BITS
    whole = torch.where(whole < 0, (whole - 0.5).ceil(), (whole + 0.5).floor())
    high = (whole * 2.0**-STEP).floor()
    low = whole * 2.0**-STEP - high
    high, low = (part.to(torch.float32)[:, None] for part in (high, low))
    return torch.minimum(index, length - 1.0).to(torch.int64), high, low


def _bilinear(x: Tensor) -> Tensor:
    return (1.0 - x.abs()).clamp(min=0.0)


def _bicubic(x: Tensor) -> Tensor:
    x = x.abs()
    near = (1.5 * x - 2.5) * x * x + 1.0
    return torch.where(
        x < 1, near, torch.where(x < 2, (((x - 5.0) * x + 8.0) * x - 4.0) * -0.5, 0.0)
    )


def _lanczos(x: Tensor) -> Tensor:
    return torch.where((x >= -3) & (x < 3), _sinc(x) * _sinc(x / 3.0), 0.0)


def _sinc(x: Tensor) -> Tensor:
    away = torch.where(x == 0, 1.0, x)
    return torch.where(x == 0, 1.0, _sine_of_pi(away) / _times_pi(away))


def _times_pi(x: Tensor) -> Tensor:
    return x * PI_HIGH + (x * PI_MIDDLE + x * PI_LOW)


def _sine_of_pi(x: Tensor) -> Tensor:
    """sin(pi x), from whole half turns and the series y (1 - y^2 / 6 (1 - y^2 / 20 (...)))."""
    turns = x.round()
    angle = _times_pi(x - turns)
    square = angle * angle
    series = torch.ones_like(square)
    for k in range(23, 1, -2):
        series = 1.0 - series * square / float(k * (k - 1))
    odd = turns - 2.0 * (turns * 0.5).floor()
    return angle * series * (1.0 - 2.0 * odd)


FILTERS: dict[str, Callable[[Tensor], Tensor]] = {
    "bilinear": _bilinear,
    "bicubic": _bicubic,
    "lanczos": _lanczos,
}
"""The filters of deployed models; box and hamming need fixed sizes."""
