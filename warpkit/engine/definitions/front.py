"""Which pixel is in front where several land on one: a z-buffer."""

from __future__ import annotations

import torch
from torch import Tensor

from warpkit.core.shapes import broadcast_shapes
from warpkit.engine.definitions.maps import pixel_points


def front(size: tuple[int, int], flow: Tensor, depth: Tensor) -> Tensor:
    """The pixel shown at each target (..., h, w), int64: its number among H W, or -1 in a hole.

    Pixel p goes to the one nearest to p + flow(p), half to even; the smallest depth is shown, of
    equal ones the first. flow (..., H, W, 2); depth (..., H, W), of any numbers; NaN is not shown.
    """
    (height, width), (h, w) = depth.shape[-2:], size
    at = flow.double() + pixel_points((height, width), torch.float64, flow.device)
    x, y = at.round().unbind(-1)
    batch = broadcast_shapes(flow.shape[:-3], depth.shape[:-2])
    near = depth.double().expand(*batch, height, width)
    lands = (x >= 0) & (x < w) & (y >= 0) & (y < h) & ~near.isnan()
    # those that land nowhere compete for one target more
    target = torch.where(lands, torch.where(lands, y * w + x, 0.0), float(h * w)).long()
    target = target.flatten(-2)
    near = torch.where(near.isnan(), torch.inf, near).flatten(-2)
    nearest = near.new_full((1,), torch.inf).expand(*batch, h * w + 1)
    nearest = nearest.scatter_reduce(-1, target, near, "amin")
    order = torch.arange(height * width, device=depth.device)
    order = torch.where(near == nearest.gather(-1, target), order, height * width)
    first = order.new_full((1,), height * width).expand(*batch, h * w + 1)
    first = first.scatter_reduce(-1, target, order, "amin")[..., :-1].unflatten(-1, (h, w))
    return torch.where(first < height * width, first, -1)


def shown(
    size: tuple[int, int], image: Tensor, flow: Tensor, depth: Tensor
) -> tuple[Tensor, Tensor]:
    """The image (..., C, h, w) of the pixels in front, 0 in holes; and where one is (..., h, w).

    image (..., C, H, W), of a float or signed type; flow and depth as in `front`.
    """
    return moved(size, front(size, flow, depth), image, flow, depth)


def moved(
    size: tuple[int, int], in_front: Tensor, image: Tensor, flow: Tensor, depth: Tensor
) -> tuple[Tensor, Tensor]:
    """As `shown`, from the result of `front` in any type."""
    batch = broadcast_shapes(image.shape[:-3], flow.shape[:-3], depth.shape[:-2])
    in_front = in_front.long().expand(*batch, *size)
    filled, channels = in_front >= 0, image.shape[-3]
    index = torch.where(filled, in_front, 0)[..., None, :, :].expand(*batch, channels, *size)
    pixels = image.expand(*batch, *image.shape[-3:]).flatten(-2)
    values = pixels.gather(-1, index.flatten(-2)).unflatten(-1, size)
    return values.masked_fill(~filled[..., None, :, :], 0), filled
