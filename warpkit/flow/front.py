"""Splats with a z-buffer: of all pixels that land on one, the nearest is shown."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.core.caller_warnings import warn_of_lost_gradients
from warpkit.engine.definitions.labels import as_signed, from_signed
from warpkit.engine.operators.front import FRONT
from warpkit.geometry.arguments import floats

WIDE = (torch.float32, torch.float64)


def as_depth(name: str, value: Any, image: Tensor) -> Tensor:
    """The depths (..., 1, H, W) of an image's pixels, validated."""
    if value is None:
        wanted = "given with mode='front': the smallest is in front"
        checks.fail(name, "depth", wanted, None)
    depth = floats(name, "depth", value, image.device)
    checks.check_last(name, "depth", depth, 1, *image.shape[-2:])
    return depth


def front_values(
    name: str, image: Tensor, flow: Tensor, depth: Tensor, size: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """The image (..., C, h, w) with the pixels in front, 0 in holes; and where one is.

    image (..., C, H, W), of any type; flow (..., H, W, 2); depth (..., 1, H, W).
    """
    checks.broadcast_batch(
        name, image=image.shape[:-3], flow=flow.shape[:-3], depth=depth.shape[:-3]
    )
    real = torch.ones((), device=image.device)  # labels follow depths that are trained, too
    warn_of_lost_gradients(name, real, "nearest", flow=flow, depth=depth)
    near = depth.detach()[..., 0, :, :]
    places = (v if v.dtype in WIDE else v.double() for v in (flow.detach(), near))
    values, filled = FRONT(size, as_signed(image), *places)
    return from_signed(values, image.dtype), filled[..., None, :, :]
