"""Pixels in front in the native library: native/front.cpp."""

from __future__ import annotations

from math import prod

import numpy as np
import torch
from torch import Tensor

from warpkit.core.shapes import broadcast_shapes
from warpkit.engine.backends.cpu.calls import Family, address, launch
from warpkit.engine.backends.cpu.memory import empty
from warpkit.engine.sampling.layout import broadcast_index

FRONTS = Family("front")


def forward(size: tuple[int, int], flow: Tensor, depth: Tensor) -> tuple[Tensor, tuple[()]]:
    """As `definitions.front.front`."""
    batch = tuple(broadcast_shapes(flow.shape[:-3], depth.shape[:-2]))
    flow, depth = flow.contiguous(), depth.contiguous()
    found = torch.from_numpy(empty((*batch, *size), np.dtype(np.int64)))
    arrays = {
        "flow": flow,
        "depth": depth,
        "flow_starts": broadcast_index(flow.shape[:-3], batch, flow.stride()[:-3]),
        "depth_starts": broadcast_index(depth.shape[:-2], batch, depth.stride()[:-2]),
        "nearest": torch.from_numpy(empty((*batch, *size), np.dtype(np.float64))),
        "out": found,
    }
    codes = {name: address(array) for name, array in arrays.items()}
    codes |= {"height": depth.shape[-2], "width": depth.shape[-1]}
    codes |= {"to_height": size[0], "to_width": size[1]}
    codes |= {"wide_flow": int(flow.dtype == torch.float64)}
    codes |= {"wide_depth": int(depth.dtype == torch.float64)}
    launch(FRONTS.block("front", codes), 0, prod(batch), 4 * prod(batch) * depth[..., 0].numel())
    return found, ()
