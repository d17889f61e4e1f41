"""Visualises flows: direction as hue, length as saturation."""

from __future__ import annotations

import math
from functools import cache

import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.core.sharding import batched
from warpkit.engine.definitions.reference import compute_dtype
from warpkit.flow.arguments import as_field
from warpkit.types import FlowLike

STRETCHES = ((15, 0, 1), (6, 1, 0), (4, 1, 2), (11, 2, 1), (13, 2, 0), (6, 0, 2))
"""The wheel of Baker et al. (2007): steps, the channel that is full, the one that changes.

The channels rise and fall in turn.
"""


@batched(flow=3)
def to_image(flow: FlowLike) -> Tensor:
    """Visualise a flow in torchvision.utils.flow_to_image's colours, scaled by its longest offset.

    flow (..., h, w, 2), pixels. Returns (..., 3, h, w), RGB in [0, 1], of the flow's type: the
    direction as a colour of the wheel, paler for shorter offsets relative to the longest of the
    same flow, white for 0. Offsets that are not finite are black, and do not count as longest.
    torchvision's bytes are (255 * image).floor(). No gradient.

    >>> to_image([[[0.0, 0.0], [2.0, 0.0]]])[:, 0]
    tensor([[1., 1.],
            [1., 0.],
            [1., 0.]])
    """
    device, dtype = checks.result_kind(flow)
    field = as_field("to_image", "flow", flow, device).detach().to(compute_dtype(dtype))
    finite = field.isfinite().all(-1)
    field = torch.where(finite[..., None], field, 0.0)
    longest = _lengths(field).amax((-1, -2))[..., None, None, None]
    field = field / (longest + torch.finfo(field.dtype).eps)
    dx, dy = field.unbind(-1)
    wheel = torch.tensor(_wheel(), dtype=field.dtype, device=field.device)
    place = (torch.atan2(-dy, -dx) / math.pi + 1) / 2 * (len(wheel) - 1)
    first = place.floor().long()
    part = (place - first)[..., None]
    colour = (1 - part) * (wheel[first] / 255) + part * (wheel[(first + 1) % len(wheel)] / 255)
    image = 1 - _lengths(field)[..., None] * (1 - colour)
    # rounding may make the longest length exceed 1 by its last bit
    image = torch.where(finite[..., None], image.clamp(0, 1), 0.0)
    return image.movedim(-1, -3).to(dtype)


def _lengths(field: Tensor) -> Tensor:
    """The lengths (..., h, w) of a field's offsets (..., h, w, 2), rounded as in torchvision."""
    return field.square().sum(-1).sqrt()


@cache
def _wheel() -> tuple[tuple[int, ...], ...]:
    """The wheel's 55 colours, RGB in 0 ... 255."""
    colours = []
    for n, (steps, full, changing) in enumerate(STRETCHES):
        for k in range(steps):
            colour = [0, 0, 0]
            colour[full] = 255
            change = 255 * k // steps
            colour[changing] = change if n % 2 == 0 else 255 - change
            colours.append(tuple(colour))
    return tuple(colours)
