"""Arguments that are right in form and look like another convention: one warning, never an error.

Values are looked at on the CPU alone, outside of tracing and transforms, and only as far as it
takes to see that all is well: one number of a field of points, the largest of the boxes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from warpkit.core.caller_warnings import warn
from warpkit.core.tracing import is_eager

MOST_CHANNELS_LAST = 4
"""RGBA; an image that is no wider than this is (H, W, C) more often than a strip."""
LEAST_SIDE = 24
"""Of both sides of an (H, W, C) image; the features of networks are as narrow only where they are
as low, such as (512, 4, 4)."""
LEAST_IMAGE, LEAST_POINTS = 16, 512
"""Sides and points below which all near a corner can be meant, and a look of 4 us would cost."""


def look_at_layout(function: str, argument: str, shape: Sequence[int]) -> None:
    """An image (..., C, H, W) whose shape is that of (..., H, W, C)."""
    if torch.compiler.is_compiling():  # a comparison would bind a dynamic size
        return
    channels, height, width = shape[-3:]
    if type(width) is not int or width > MOST_CHANNELS_LAST:
        return
    if min(channels, height) >= LEAST_SIDE:
        text = f"{function}: `{argument}` of shape {tuple(shape)} is read as (..., C, H, W), and "
        warn(text + "looks like (..., H, W, C): image.movedim(-1, -3) makes one of the other")


def look_at_points(function: str, points: Tensor, size: Sequence[int]) -> None:
    """A field of points (..., h, w, 2) that is the [-1, 1] of F.grid_sample, not pixels."""
    if points.device.type != "cpu" or points.numel() < 2 * LEAST_POINTS or not is_eager(points):
        return
    values = points.detach()
    # in pixels, the last point of a field is seldom near the image's first pixel
    if min(size) < LEAST_IMAGE or not -1 <= values[(-1,) * values.ndim].item() <= 1:
        return
    low, high = (end.item() for end in values.aminmax())
    if -1 <= low < 0 < high <= 1:
        text = f"{function}: all `points` lie within [-1, 1], the first pixel of an image of "
        text += f"{tuple(size)}: they are (x, y) in pixels here. A grid of F.grid_sample with "
        text += "align_corners=False is ((x + 1) * W - 1) / 2, ((y + 1) * H - 1) / 2 in pixels"
        warn(text)


def look_at_flow(function: str, flow: Tensor) -> None:
    """A field (..., h, w, 2) of offsets that is the [-1, 1] of F.grid_sample.

    Small offsets are the usual case: only a ramp that runs from one end of [-1, 1] to the other is
    no field of offsets.
    """
    height, width = flow.shape[-3:-1]
    if flow.device.type != "cpu" or not is_eager(flow) or min(height, width) < LEAST_IMAGE:
        return
    values = flow.detach()
    corners = values[(0,) * (values.ndim - 3)][:: height - 1, :: width - 1].double()
    ends = corners.new_tensor((1 - 2 / width, 1 - 2 / height))
    first, last = corners[0, 0], corners[1, 1]
    if not bool(((first <= -ends) & (first >= -1) & (last >= ends) & (last <= 1)).all()):
        return
    low, high = (end.item() for end in values.aminmax())
    if low >= -1 and high <= 1:
        text = f"{function}: `flow` runs from -1 to 1 over {height} x {width} pixels, as a grid of "
        text += "F.grid_sample does: it is the offset (dx, dy) of every pixel, in pixels, here"
        warn(text)


def look_at_boxes(function: str, boxes: Tensor, size: Sequence[int]) -> None:
    """Boxes (N, 4) that are shares of the images' sides, not pixels."""
    if boxes.device.type != "cpu" or boxes.numel() == 0 or min(size) < LEAST_IMAGE:
        return
    if not is_eager(boxes) or not boxes.detach().amax().item() <= 1:
        return
    values = boxes.detach()
    if values.amin().item() >= 0 and bool((values % 1 != 0).any()):  # whole: the first pixel
        text = f"{function}: all `boxes` lie within [0, 1], the first pixel of images of "
        text += f"{tuple(size)}: they are pixels here. Shares of the sides times (W, H, W, H) are"
        warn(text)
