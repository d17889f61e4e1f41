"""cv2.getRectSubPix: a rectangle at a fractional position, by OpenCV's own sums.

The corner, its fractions and the four weights are float32. Bytes are summed with 16-bit weights,
floats one product after the other in float32. Columns beyond the image read one pixel of each row,
and OpenCV uses the two weights b and 1 - b for them, because the sums of the four rounded weights
may differ. Versions 4.14 and 5.0.0 agree.
"""

from __future__ import annotations

import torch
from torch import Tensor

SMALLEST = 1e-4
"""The smallest fraction along x by which `_by_recurrence` divides."""


def rectangle(image: Tensor, center: Tensor, size: tuple[int, int], floating: bool) -> Tensor:
    """Pixels around a point: image (..., H, W), center (2,), (x, y) in pixels; size (h, w).

    floating: unrounded sums as floats; otherwise rounded bytes in float64.
    """
    half = torch.tensor(
        [(size[1] - 1) / 2, (size[0] - 1) / 2], dtype=torch.float32, device=center.device
    )
    corner = center.float() - half.to(center.device)
    first = corner.floor()
    a, b = (corner - first).unbind()
    limits = image.shape[-1], image.shape[-2]
    # a corner far outside reads only the edge
    x, y = (at.clamp(-size[1 - i] - 2, limits[i] + 1).long() for i, at in enumerate(first.unbind()))
    columns = torch.arange(size[1] + 1, device=image.device) + x
    rows = torch.arange(size[0] + 1, device=image.device) + y
    beyond = (columns < 0) | (columns >= limits[0] - 1)
    within = ~beyond[:-1].any() & (y >= 0) & (y + size[0] < limits[1])
    columns, rows = columns.clamp(0, limits[0] - 1), rows.clamp(0, limits[1] - 1)
    pixels = image.index_select(-1, columns).index_select(-2, rows)
    if not floating:
        pixels = pixels.double()
    elif image.dtype != torch.float64:
        pixels = pixels.float()
    total = _by_weights(pixels, a, b, beyond[:-1], floating)
    if not floating:
        return ((total + 32768) / 65536).floor()
    if image.dtype == torch.uint8 and image.shape[-3] == 1:
        total = torch.where(within, _by_recurrence(pixels, a, b), total)
    return total


def _by_weights(pixels: Tensor, a: Tensor, b: Tensor, beyond: Tensor, floating: bool) -> Tensor:
    """Sums over pixels (..., h + 1, w + 1); two weights in the columns (w,) `beyond` the image."""
    four = [(1 - a) * (1 - b), a * (1 - b), (1 - a) * b, a * b]
    two = [1 - b, b]
    if not floating:
        four, two = ([(65536 * w).round().double() for w in weights] for weights in (four, two))
    upper, lower = pixels[..., :-1, :], pixels[..., 1:, :]
    parts = upper[..., :-1], upper[..., 1:], lower[..., :-1], lower[..., 1:]
    total = parts[0] * four[0]
    for part, weight in zip(parts[1:], four[1:], strict=True):
        total = total + part * weight
    return torch.where(beyond, parts[0] * two[0] + parts[2] * two[1], total)


def _by_recurrence(pixels: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Floats from one channel of bytes, fully inside: pixels (1, h + 1, w + 1), a and b ().

    The right half of a column's sum, times (1 - a) / a in float64, gives the left half of the next
    column's; so OpenCV keeps `a` from being 0.
    """
    a = a.clamp(min=SMALLEST)
    upper, lower = pixels[..., :-1, :], pixels[..., 1:, :]
    right = (a * (1 - b)) * upper[..., 1:] + (a * b) * lower[..., 1:]
    ratio = (1.0 - a.double()) / a.double()
    first = (1 - a) * ((1 - b) * upper[..., :1] + b * lower[..., :1])
    left = (right[..., :-1].double() * ratio).float()
    return torch.cat((first, left), dim=-1) + right
