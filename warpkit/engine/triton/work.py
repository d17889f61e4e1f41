"""The arguments of all kernels: sizes, strides and switches, by name."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from math import prod
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from warpkit.engine.definitions.layout import (
    batch_of,
    cycle,
    fill_strides,
    is_channels_last,
    mapping_batch,
    mapping_size,
    read_in_place,
)
from warpkit.engine.definitions.reference import compute_dtype
from warpkit.engine.definitions.rules import CODE, TAPS, SamplingRule, borders_of
from warpkit.engine.triton.positions import COLUMNS

NARROW = 2**31
"""Tensors with at least this many elements are indexed in 64 bits."""

REALS = {torch.float32: tl.float32, torch.float64: tl.float64}
MOVED = {torch.int8: tl.int8, torch.int32: tl.int32, torch.int64: tl.int64}
"""The types that hold labels, which are only copied."""


class CudaLaunch(NamedTuple):
    """A call's dense tensors, and the kernels' arguments in groups."""

    image: Tensor
    mapping: Tensor
    fill: Tensor
    batch: tuple[int, ...]
    real: torch.dtype
    """The type of the computation."""
    channels_last: bool
    """Whether image, gradients and their memory are channels-last."""
    dense: bool
    """Whether `fill` has a value for every output pixel."""
    sizes: dict[str, Any]
    maps: dict[str, Any]
    strides: dict[str, Any]
    """The strides of `fill`."""
    switches: dict[str, Any]

    @property
    def items(self) -> int:
        """The number of images in the result."""
        return prod(self.batch)


def prepare(
    image: Tensor, mapping: Tensor, fill: Tensor, size: Sequence[int], rule: SamplingRule
) -> CudaLaunch:
    """Dense tensors, and the kernels' information about them.

    Tensors as in `launch.forward`.
    """
    batch = batch_of(image.shape, mapping.shape)
    image, mapping = read_in_place(image), mapping.contiguous()
    if len(batch) != 1:
        image = image.contiguous()
    mapping_cycle, image_cycle = (
        cycle(mapping_batch(mapping.shape), batch),
        cycle(image.shape[:-3], batch),
    )
    if mapping_cycle is None:
        mapping = mapping.expand(
            *batch, *mapping.shape[len(mapping_batch(mapping.shape)) :]
        ).contiguous()
        mapping_cycle = 1, prod(batch)
    if image_cycle is None:  # repeated in an outer and an inner dimension, so it must be copied
        image = image.expand(*batch, *image.shape[-3:]).contiguous()
        image_cycle = 1, prod(batch)
    fill, strides = _strides_of(fill, batch)
    channels, height, width = image.shape[-3:]
    channels_last, (h, w) = is_channels_last(image), size
    kind = 0 if mapping.shape[-1] == 2 else mapping.shape[-2]
    sizes = {
        "channels": channels, "height": height, "width": width, "out_height": h, "out_width": w,
        "plane": 1 if channels_last else height * width, "pixel": channels if channels_last else 1,
        "out_plane": 1 if channels_last else h * w, "out_pixel": channels if channels_last else 1,
    }  # fmt: skip
    maps = {
        "mapping_div": mapping_cycle[0], "mapping_mod": mapping_cycle[1],
        "numbers": mapping_size(mapping.shape),
        "image_div": image_cycle[0], "image_mod": image_cycle[1],
    }  # fmt: skip
    is_large = max(image.numel(), prod(batch) * channels * h * w) >= NARROW
    real = torch.float64 if image.dtype in MOVED else compute_dtype(image.dtype)
    along_y, along_x = borders_of(rule.border)
    switches = {
        "KIND": kind, "TAPS": TAPS[rule.interpolation], "WAY": CODE[rule.interpolation],
        "BORDER_Y": CODE[along_y], "BORDER_X": CODE[along_x],
        "REAL": REALS[real], "OFFSET": tl.int64 if is_large else tl.int32,
        # rows of a warp's patch have 32 bytes, the unit in which memory is written
        "SPAN": 16 if image.element_size() < 4 else 8,
    }  # fmt: skip
    dense = max(fill.shape[-2:], default=1) > 1
    return CudaLaunch(
        image, mapping, fill, batch, real, channels_last, dense, sizes, maps, strides, switches
    )


def in_cycle(tensor: Tensor, batch: Sequence[int], core: int) -> tuple[Tensor, int, int]:
    """A tensor dense and without repeated memory, and (div, mod) of `layout.cycle`.

    core: the number of its dimensions after its batch.
    """
    for d in range(tensor.ndim - core):
        if tensor.stride(d) == 0 and tensor.shape[d] > 1:
            tensor = tensor.narrow(d, 0, 1)
    own = tensor.shape[: tensor.ndim - core]
    turns = cycle(own, batch)
    if turns is None:  # repeated in an outer and an inner dimension, so it must be copied
        tensor = tensor.expand(*batch, *tensor.shape[tensor.ndim - core :])
        turns = 1, prod(batch)
    return tensor.contiguous(), turns[0], turns[1]


def _strides_of(fill: Tensor, batch: tuple[int, ...]) -> tuple[Tensor, dict[str, int]]:
    """`fill` dense, with the strides for the result's shape."""
    fill_shape = (1,) * (3 - fill.ndim) + tuple(fill.shape)
    fill = fill.reshape(fill_shape)
    if prod(fill_shape[:-3]) > 1:
        fill = fill.expand(*batch, *fill_shape[-3:])
    names = ("fill_item", "fill_channel", "fill_row", "fill_column")
    return fill.contiguous(), dict(zip(names, fill_strides(fill_shape), strict=True))


def block(call: CudaLaunch) -> dict[str, int]:
    """The switches of kernels whose programs loop over all channels.

    For planar images: tiles of 512 pixels, so 4 pixels per thread keep 16 loads in flight, and
    channels share the computation of taps. For channels-last images, channels are read together.
    """
    taps = call.switches["TAPS"]
    unroll = taps if taps < 8 else 1  # lanczos4's 64 taps at once would not fit in registers
    if call.channels_last:
        channel_block = min(8, triton.next_power_of_2(call.sizes["channels"]))
        return {"CHANNEL_BLOCK": channel_block, "PIXELS": 128, "UNROLL": unroll}
    return {"CHANNEL_BLOCK": 1, "PIXELS": 512 if taps <= 2 else 256, "UNROLL": unroll}


def tiles_of(size: Sequence[int], pixels: int) -> int:
    """The number of tiles that cover an area."""
    return triton.cdiv(size[1], COLUMNS.value) * triton.cdiv(size[0], pixels // COLUMNS.value)


def launch(kernel: Any, programs: int, *arrays: Tensor, **options: Any) -> None:
    """Run `programs` programs on the current stream of the first array's device.

    Products and sums are not fused, see `map_tile`. The interpreter takes CPU tensors.
    """
    device = arrays[0].device
    context: AbstractContextManager[Any] = nullcontext()
    if device.type == "cuda":
        context = torch.cuda.device(device)
    with context:
        kernel[(programs,)](*arrays, **options, enable_fp_fusion=False)
