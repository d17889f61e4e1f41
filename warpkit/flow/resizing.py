"""Resizes flows: scales the grid and the offsets."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from warpkit import resizing
from warpkit.core import checks
from warpkit.core.sharding import batched
from warpkit.flow.arguments import as_field
from warpkit.types import FlowLike


@batched(flow=3)
def resize(flow: FlowLike, size: Sequence[int]) -> Tensor:
    """The flow of the same motion between images of another size.

    flow (..., H, W, 2), pixels; size (h, w). Returns (..., h, w, 2): `warpkit.resize` of both
    components, dx times w / W and dy times h / H. Gradients: all orders.

    >>> resize([[[1.0, 2.0], [1.0, 2.0]]], (1, 4))
    tensor([[[2., 2.],
             [2., 2.],
             [2., 2.],
             [2., 2.]]])
    """
    name = "resize"
    device, dtype = checks.result_kind(flow)
    field = as_field(name, "flow", flow, device)
    height, width = checks.check_size(name, "size", size)
    planes = resizing.resize(field.movedim(-1, -3), (height, width))
    scale = planes.new_tensor([width / field.shape[-2], height / field.shape[-3]])
    return (planes.movedim(-3, -1) * scale).to(dtype)
