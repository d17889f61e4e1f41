"""Pixels in front in the native library: native/depth/front.cpp."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
import torch
from torch import Tensor

from warpkit.core.shapes import broadcast_shapes
from warpkit.engine.cpu.calls import Family, address, launch
from warpkit.engine.cpu.launch import room
from warpkit.engine.cpu.memory import empty
from warpkit.engine.definitions.layout import broadcast_index

FRONTS = Family("front")


def forward(
    size: tuple[int, int], image: Tensor, flow: Tensor, depth: Tensor
) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """As `definitions.front.shown`; also the numbers of the pixels."""
    shapes = image.shape[:-3], flow.shape[:-3], depth.shape[:-2]
    batch = tuple(broadcast_shapes(*shapes))
    flow, depth = flow.contiguous(), depth.contiguous()
    starts = {
        f"{name}_starts": broadcast_index(shape, batch, tensor.stride()[: len(shape)])
        for name, tensor, shape in zip(
            ("image", "flow", "depth"), (image, flow, depth), shapes, strict=True
        )
    }
    out = room((*batch, image.shape[-3], *size), image.dtype, False)
    found = torch.from_numpy(empty((*batch, *size), np.dtype(np.int32)))  # -1 in holes
    filled = torch.empty((*batch, *size), dtype=torch.bool, device="cpu")
    arrays = {"image": image, "flow": flow, "depth": depth, "out": out, "filled": filled}
    codes = dict(zip(("plane", "line", "pixel"), image.stride()[-3:], strict=True))
    codes |= {"wide_flow": int(flow.dtype == torch.float64)}
    codes |= {"wide_depth": int(depth.dtype == torch.float64)}
    work = prod(batch) * (4 * depth.shape[-2] * depth.shape[-1] + out[..., 0, 0].numel())
    _run("front", codes, arrays | starts | {"found": found}, image, size, prod(batch), work)
    return (out, filled), found


def backward(
    size: tuple[int, int],
    found: Tensor,
    grads: tuple[Tensor, ...],
    tensors: tuple[Tensor, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor, ...]:
    """The gradient of the image (..., C, H, W)."""
    image, flow, depth = tensors
    grad, shape = grads[0].contiguous(), image.shape[-3:]
    out = room((*found.shape[:-2], *shape), grad.dtype, False)
    arrays = {"grad": grad, "found": found, "out": out}
    units = prod(found.shape[:-2]) * shape[0]
    _run("front_backward", {}, arrays, image, size, units, out.numel())
    return out.sum_to_size(image.shape), flow, depth


def _run(
    task: str,
    codes: dict[str, int],
    arrays: Mapping[str, Tensor | np.ndarray],
    image: Tensor,
    size: tuple[int, int],
    units: int,
    work: int,
) -> None:
    """A task for an image (..., C, H, W); size (h, w) of the result."""
    sizes = ("channels", "height", "width", "to_height", "to_width")
    codes |= dict(zip(sizes, (*image.shape[-3:], *size), strict=True))
    codes |= {"number_bytes": image.element_size()}
    codes |= {name: address(array) for name, array in arrays.items()}
    launch(FRONTS.block(task, codes), 0, units, work)
